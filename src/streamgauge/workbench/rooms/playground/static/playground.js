// The playground without reloads: the form's state is sent at every change, and the drawn part is replaced.
import { openEditor } from "./editor.js"
import { openHistory } from "./history.js"
import { openTimeline, place, span } from "/static/timeline.js"

const form = document.getElementById("playground")
const drawn = document.getElementById("drawn")
const link = document.getElementById("link")
const stale = document.getElementById("stale")
document.documentElement.classList.add("scripted-page")
for (const each of form.querySelectorAll(".scripted")) each.hidden = false
// Only a file comes by the form itself.
form.addEventListener("submit", event => { if (!event.submitter?.closest(".files")) event.preventDefault() })

const query = form.elements.query
const example = form.dataset.case ? `&case=${form.dataset.case}` : ""
let answer = null
let running = null
let again = false
let timer = 0

function value(field) {
  const control = form.elements[field]
  return control ? control.value : ""
}

function whole(text) {
  const said = text.trim()
  return said === "" ? null : /^-?\d{1,15}$/.test(said) ? Number(said) : said
}

function semantics(which) {
  const found = { profile: value(`${which}.profile`) }
  for (const row of form.querySelectorAll("tr[data-field]")) {
    const name = row.dataset.field
    const controls = [...form.querySelectorAll(`[name="${which}.${name}"]`)]
    const [first] = controls
    if (first.type === "checkbox") found[name] = controls.filter(each => each.checked).map(each => each.value)
    else if (first.tagName === "INPUT") found[name] = whole(first.value)
    else found[name] = ["notify_empty", "partial_head"].includes(name) ? first.value === "yes" : first.value
  }
  return found
}

function width() {
  const box = drawn.querySelector(".timeline") || drawn
  return Math.max(280, Math.floor(box.clientWidth || form.clientWidth))
}

// Pause after a key before its edit is sent. It is short, because one request is under way at a time anyway.
const TYPING_MS = 40
const TEXTS = ["stream", "syntax", "static", "dialect", "recording"]

function read() {
  const found = { query: editor.text(), advance: whole(value("advance")), a: semantics("a") }
  for (const name of TEXTS) found[name] = value(name)
  if (form.elements.second.checked) found.b = semantics("b")
  return found
}

let view = null
const state = () => ({ ...read(), width: width(), view })

function fill(which, fields) {
  form.elements[`${which}.profile`].value = fields.profile
  for (const row of form.querySelectorAll("tr[data-field]")) {
    const fresh = fields[row.dataset.field]
    for (const control of form.querySelectorAll(`[name="${which}.${row.dataset.field}"]`)) {
      if (control.type === "checkbox") control.checked = fresh.includes(control.value)
      else control.value = fresh === null ? "" : fresh === true ? "yes" : fresh === false ? "no" : fresh
    }
  }
}

// Replace a text and put the caret to where it changed.
function retype(area, text) {
  if (area.value === text) return
  let same = 0
  while (same < text.length && text[same] === area.value[same]) same += 1
  area.value = text
  area.setSelectionRange?.(same, same)
}

function restore(found) {
  editor.replace(found.query)
  for (const name of ["stream", "static", "recording"]) retype(form.elements[name], found[name])
  for (const name of ["syntax", "dialect"]) form.elements[name].value = found[name]
  form.elements.advance.value = found.advance ?? ""
  form.elements.second.checked = Boolean(found.b)
  fill("a", found.a)
  if (found.b) fill("b", found.b)
  evaluate()
}

async function post(path, data) {
  const response = await fetch(path, { method: "POST", headers: { "content-type": "application/json", accept: "application/json" }, body: JSON.stringify(data) })
  const found = await response.json()
  if (!response.ok) throw new Error(found.error || response.statusText)
  return found
}

function trouble(where, sentence) {
  const place = form.querySelector(`[data-trouble="${where}"]`)
  if (!place) return
  place.textContent = sentence
  place.hidden = !sentence
}

function told(errors) {
  for (const each of form.querySelectorAll("[data-trouble]")) trouble(each.dataset.trouble, "")
  const [first] = editor.underline(errors.filter(each => each.where === "query"))
  for (const each of [...errors].reverse()) trouble(each.where === "state" ? "query" : each.where, each.where === "query" ? first : each.sentence)
  outdated(errors.length > 0)
}

// A picture of another state than the form's is grey and cannot be used.
function outdated(old) {
  stale.hidden = !old
  drawn.inert = old
}

function differing() {
  const two = form.elements.second.checked
  form.classList.toggle("two", two)
  form.classList.toggle("one", !two)
  const [a, b] = [semantics("a"), semantics("b")]
  for (const row of form.querySelectorAll("tr[data-field]"))
    row.classList.toggle("differs", two && JSON.stringify(a[row.dataset.field]) !== JSON.stringify(b[row.dataset.field]))
}

// One request at a time: what changed meanwhile is sent when the answer is here.
async function evaluate({ typed = false } = {}) {
  clearTimeout(timer)
  const step = steps.record({ typed })
  if (running) { again = true; return }
  running = performance.now()
  drawn.setAttribute("aria-busy", "true")
  differing()
  try {
    const asked = state()
    answer = await post("/playground/evaluate?brief", asked)
    told(answer.errors)
    if (!answer.errors.length) {
      const focused = document.activeElement?.matches(".timeline")
      drawn.innerHTML = answer.html
      if (focused) drawn.querySelector(".timeline")?.focus({ preventScroll: true })
    }
    document.getElementById("simplify").hidden = !answer.simple
    link.hidden = !answer.link
    if (answer.link) link.href = `/playground/?s=${answer.link}${example}`
    if (answer.link || step) steps.address(step, answer.link ? link.href : "/playground/")
    editor.know({ dialect: answer.dialect, query: answer.query })
  } catch (error) {
    trouble(error.message.startsWith("advance") || error.message.includes("how far time") ? "advance" : "query", error.message)
    outdated(true)
  }
  drawn.setAttribute("aria-busy", "false")
  form.dataset.redrawn = String(Number(form.dataset.redrawn || 0) + 1)
  const began = running
  requestAnimationFrame(() => setTimeout(() => { form.dataset.took = String(performance.now() - began) }))
  running = null
  if (again) { again = false; evaluate() }
}

function soon(wait = TYPING_MS) {
  clearTimeout(timer)
  timer = setTimeout(() => evaluate({ typed: wait > 0 }), wait)
}

const editor = openEditor(query, () => soon())
const steps = openHistory(read, restore)

const APART = ["recording", "workload", "seed", "parameters", "file"]
form.addEventListener("input", event => {
  if (!event.target.closest(".editor") && !APART.includes(event.target.id) && !event.target.matches("select, [type=checkbox]")) soon()
})
form.addEventListener("change", event => {
  const { target } = event
  if (target.matches("select, [type=checkbox]") && !APART.includes(target.id) && !target.name.endsWith(".profile")) soon(0)
})

// A profile fills all fields of its side.
for (const which of ["a", "b"]) form.elements[`${which}.profile`].addEventListener("change", async event => {
  event.stopPropagation()
  const { value: profile } = event.target
  try { fill(which, { profile, ...await post("/playground/profile", { name: profile }) }) } catch (error) { trouble(which, error.message); outdated(true); return }
  evaluate()
})

document.getElementById("simplify").addEventListener("click", () => {
  form.elements.stream.value = answer.simple
  form.elements.syntax.value = "simple"
  evaluate()
})

document.getElementById("generate").addEventListener("click", async () => {
  const [workload, seed, parameters] = ["workload", "seed", "parameters"].map(id => document.getElementById(id).value)
  try {
    const found = await post("/playground/generate", { workload, seed, parameters, query: editor.text() })
    form.elements.stream.value = found.stream
    form.elements.syntax.value = found.syntax
    evaluate()
  } catch (error) { trouble("stream", error.message) }
})

document.getElementById("file").addEventListener("change", async event => {
  const [file] = event.target.files
  if (!file) return
  if (file.size > 3 * 2 ** 20) { trouble("stream", "the file is larger than 3 MiB: load a shorter stream"); return }
  form.elements.stream.value = await file.text()
  const endings = { nq: "nquads", trig: "trig", jsonl: "jsonl", ndjson: "jsonl" }
  form.elements.syntax.value = endings[file.name.split(".").pop()] || "simple"
  evaluate()
})

document.getElementById("diagnose").addEventListener("click", async event => {
  event.preventDefault()
  const place = document.getElementById("diagnosis")
  place.textContent = "Searching for the semantics behind these answers …"
  try { place.innerHTML = (await post("/playground/diagnose", state())).html } catch (error) { place.textContent = error.message }
})

link.addEventListener("click", event => {
  event.preventDefault()
  navigator.clipboard?.writeText(link.href).then(() => { link.textContent = "Link copied" }, () => {})
})

// A report's row may be folded away.
addEventListener("hashchange", () => {
  const row = document.getElementById(location.hash.slice(1))
  const fold = row?.closest("details")
  if (fold && !fold.open) { fold.open = true; row.scrollIntoView() }
})

openTimeline(drawn, times => { view = times; evaluate() })

// Delete removes the element that has the focus, Shift and an arrow key move it.
drawn.addEventListener("keydown", event => {
  const here = event.target
  if (!here.matches("circle.element")) return
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
  if (event.key === "Delete") remove(here)
  else if (step && event.shiftKey) { event.preventDefault(); move(here, step * unit()) }
})

function unit() {
  const rough = span(drawn).each * 6
  const power = 10 ** Math.max(0, Math.floor(Math.log10(rough)))
  return Math.max(1, [1, 2, 5, 10].map(each => each * power).find(each => each >= rough))
}

async function move(circle, by, to) {
  const number = Number(circle.dataset.number)
  const written = answer?.places[number]
  if (!written) { trouble("stream", "only elements in the simple notation can be moved: write the stream simply first"); return }
  const text = [...form.elements.stream.value]
  const time = to ?? answer.times[number] + by
  text.splice(written[0], written[1] - written[0], String(time))
  form.elements.stream.value = text.join("")
  await evaluate()
  focusElement(number)
}

// The focus stays at the place in the stream, and the page where it is.
function focusElement(number) {
  const circle = drawn.querySelector(`circle[data-number="${number}"]`)
  circle?.setAttribute("tabindex", "0")
  circle?.focus({ preventScroll: true })
}

// An element's place in the text: from the line's begin, or the bar before it, to the line's end, or the bar behind it.
function part(text, number) {
  const [from, to] = answer.places[number]
  let start = from
  while (start > 0 && !"|\n".includes(text[start - 1])) start -= 1
  let end = to
  while (end < text.length && !"|\n".includes(text[end])) end += 1
  return { start, end, body: text.slice(to, end) }
}

// A new element at a time says what the nearest one says.
async function add(time) {
  if (!answer?.places.length) { trouble("stream", "elements are added to a stream in the simple notation that has one already"); return }
  const text = [...form.elements.stream.value]
  const { times } = answer
  const nearest = times.reduce((best, each, number) => Math.abs(each - time) < Math.abs(times[best] - time) ? number : best, 0)
  const before = times.findLastIndex(each => each <= time)
  const written = `${time}${part(text, nearest).body.join("").trimEnd()}`
  if (before >= 0) text.splice(part(text, before).end, 0, `\n${written}`)
  else text.unshift(`${written}\n`)
  form.elements.stream.value = text.join("").replace(/\n[ \t]*\|/g, "\n")
  await evaluate()
}

async function remove(circle) {
  const number = Number(circle.dataset.number)
  if (!answer?.places[number]) return
  const text = [...form.elements.stream.value]
  const { start, end } = part(text, number)
  text.splice(start, end - start + (end < text.length ? 1 : 0))
  form.elements.stream.value = text.join("")
  await evaluate()
  focusElement(Math.min(number, answer.times.length - 1))
}

drawn.addEventListener("dblclick", event => {
  const lane = drawn.querySelector(".lane.elements")
  const box = lane?.getBoundingClientRect()
  if (!box || event.clientY > box.bottom + 8 || !event.target.closest("svg") || event.target.matches("circle")) return
  add(Math.max(0, snapped(event)))
})

// The time of a place, at a round one that is near.
function snapped(event) {
  const { svg, first, left, each } = span(drawn)
  const step = unit()
  return Math.round((first + (place(svg, event) - left) * each) / step) * step
}

let drag = null
drawn.addEventListener("pointerdown", event => {
  if (!event.target.matches("circle.element")) return
  drag = { circle: event.target, from: event.clientX, cx: event.target.getAttribute("cx"), moved: false }
  event.target.setPointerCapture(event.pointerId)
  event.target.classList.add("dragged")
  event.preventDefault()
})
drawn.addEventListener("pointermove", event => {
  if (!drag) return
  drag.moved ||= Math.abs(event.clientX - drag.from) > 3
  drag.circle.setAttribute("cx", place(span(drawn).svg, event))
})
drawn.addEventListener("pointerup", event => {
  if (!drag) return
  const { circle, moved, cx } = drag
  drag = null
  circle.classList.remove("dragged")
  if (moved) { move(circle, 0, Math.max(0, snapped(event))); return }
  circle.setAttribute("cx", cx)
  circle.focus()
})

// Control Z undoes and Control Y, or Shift Control Z, redoes; the query's editor has keys of its own.
addEventListener("keydown", event => {
  const key = event.key.toLowerCase()
  if (!(event.ctrlKey || event.metaKey) || event.altKey || !"zy".includes(key)) return
  if (event.target.closest(".editor") || APART.includes(event.target.id)) return
  event.preventDefault()
  if (key === "y" || event.shiftKey) steps.redo()
  else steps.undo()
})

let seen = form.clientWidth
new ResizeObserver(() => { if (Math.abs(form.clientWidth - seen) > 24) { seen = form.clientWidth; soon() } }).observe(form)
evaluate()
