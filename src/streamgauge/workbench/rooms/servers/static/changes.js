// Shows the notifications of a channel as they come, and reads the channel's answer again after them.
import { readAgain, showTerm } from "/static/parts.js"

const ROWS = 200
const table = document.getElementById("changes")
const link = document.getElementById("link")
let waiting = 0

const cell = (row, text, name = "") => {
  const made = row.insertCell()
  showTerm(made, text)
  made.className = name
}

const put = told => {
  const body = table.tBodies[0]
  for (const [number, time, sign, cells] of [...told.rows].reverse()) {
    const row = body.insertRow(0)
    row.className = "fresh"
    setTimeout(() => { row.className = "" }, 1500)
    cell(row, number, "n"); cell(row, time, "when"); cell(row, sign)
    for (const text of cells) cell(row, text)
  }
  while (body.rows.length > ROWS) body.deleteRow(-1)
  clearTimeout(waiting)
  waiting = setTimeout(readAgain, 300)
}

const source = new EventSource(`${table.dataset.events}?after=${table.dataset.last}`)
source.onopen = () => { link.textContent = "Listening, newest first." }
source.onerror = () => { link.textContent = source.readyState === EventSource.CLOSED ? "No longer listening: load the page again." : "Connecting again." }
source.onmessage = event => put(JSON.parse(event.data))
source.addEventListener("over", event => { link.textContent = `The end: ${JSON.parse(event.data).why}.`; source.close() })
