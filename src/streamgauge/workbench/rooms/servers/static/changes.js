// Shows the notifications of a channel as they come, and reads the channel's answer again after them.
import { readAgain, showTerm } from "/static/parts.js"

const ROWS = 200
const table = document.getElementById("changes")
const link = document.getElementById("link")
let waiting = 0

const cell = (row, text, name = "", full = "") => {
  const made = row.insertCell()
  showTerm(made, text, full)
  made.className = name
}

// The changes that this tab has shown, newest first: they are there again when the page is loaded anew.
const PLACE = `changes of ${location.pathname}`
let known = JSON.parse(sessionStorage.getItem(PLACE) || "[]")

const insert = (rows, fresh) => {
  const body = table.tBodies[0]
  for (const [number, time, sign, cells] of [...rows].reverse()) {
    const row = body.insertRow(0)
    if (fresh) {
      row.className = "fresh"
      setTimeout(() => { row.className = "" }, 1500)
    }
    cell(row, number, "n"); cell(row, time, "when"); cell(row, sign)
    for (const [text, full] of cells) cell(row, text, "", full)
  }
  while (body.rows.length > ROWS) body.deleteRow(-1)
}

const put = told => {
  insert(told.rows, true)
  known = [...told.rows, ...known].slice(0, ROWS)
  try { sessionStorage.setItem(PLACE, JSON.stringify(known)) } catch { /* more than the browser keeps */ }
  clearTimeout(waiting)
  waiting = setTimeout(readAgain, 300)
}

insert(known, false)
const source = new EventSource(`${table.dataset.events}?after=${table.dataset.last}`)
source.onopen = () => { link.textContent = "Listening, newest first." }
source.onerror = () => { link.textContent = source.readyState === EventSource.CLOSED ? "No longer listening: load the page again." : "Connecting again." }
source.onmessage = event => put(JSON.parse(event.data))
source.addEventListener("over", event => { link.textContent = `The end: ${JSON.parse(event.data).why}.`; source.close() })
