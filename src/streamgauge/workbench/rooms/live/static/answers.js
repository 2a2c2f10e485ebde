// Shows the answers of a query as they come: rows of server-sent events enter the table at its top.
import { showTerm } from "/static/parts.js"

const ROWS = 200
const table = document.getElementById("answers")
const link = document.getElementById("link")

const cell = (row, text, name = "", full = "") => {
  const made = row.insertCell()
  showTerm(made, text, full)
  made.className = name
  return made
}

const head = columns => {
  const row = table.tHead.rows[0]
  if (row.cells.length > 3 || !columns.length) return
  for (const name of columns) {
    const made = document.createElement("th")
    made.scope = "col"
    made.textContent = name
    row.append(made)
  }
}

const put = answer => {
  head(answer.columns)
  const body = table.tBodies[0]
  for (const [number, instant, sign, cells] of [...answer.rows].reverse()) {
    document.getElementById(`answer-${number}`)?.removeAttribute("id")
    const row = body.insertRow(0)
    row.id = `answer-${number}`
    row.className = "fresh"
    setTimeout(() => { row.className = "" }, 1500)
    cell(row, number, "n"); cell(row, instant, "when"); cell(row, sign)
    if (sign) for (const [text, full] of cells) cell(row, text, "", full)
    else cell(row, "no rows", "note").colSpan = Math.max(1, answer.columns.length)
  }
  while (body.rows.length > ROWS) body.deleteRow(-1)
}

const source = new EventSource(`${table.dataset.events}?after=${table.dataset.last}`)
source.onopen = () => { link.textContent = "Live, newest first." }
source.onerror = () => { link.textContent = source.readyState === EventSource.CLOSED ? "No longer live: load the page again." : "Connecting again." }
source.onmessage = event => put(JSON.parse(event.data))
source.addEventListener("held", () => { link.textContent = "Held: answers wait." })
source.addEventListener("flowing", () => { link.textContent = "Live, newest first." })
source.addEventListener("missed", event => { link.textContent = `Live; ${JSON.parse(event.data).missed} answers are no longer kept.` })
source.addEventListener("over", event => { link.textContent = `The end: ${JSON.parse(event.data).why}.`; source.close() })
