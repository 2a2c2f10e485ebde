// The timeline of a page, which the server draws: walk it by keys, see what belongs together, zoom and pan.

const SVG = "http://www.w3.org/2000/svg"
const LISTED = 60
const SOON_MS = 80
const NOTCH = 1.25

// The numbers of the elements in a window, which are written as ranges: 0-3 7.
function inside(window) {
  return window.dataset.members.split(" ").filter(Boolean).flatMap(range => {
    const [first, last = first] = range.split("-").map(Number)
    return Array.from({ length: last - first + 1 }, (_, at) => first + at)
  })
}

// The times (ms) that are shown, from `from` to `to` in all, and their places (px); `each` is the time of a pixel.
export function span(host) {
  const svg = host.querySelector(".timeline svg")
  if (!svg) return null
  const names = ["first", "last", "left", "right", "from", "to"]
  const found = Object.fromEntries(names.map(name => [name, Number(svg.dataset[name])]))
  return { svg, ...found, each: Math.max(1, found.last - found.first) / (found.right - found.left) }
}

export const place = (svg, event) => event.clientX - svg.parentElement.getBoundingClientRect().left

// `host` stays when its picture is replaced; `show` draws the times [first, last], or all for null.
export function openTimeline(host, show) {
  let timer = 0
  let drawn = {}  // the picture and the times that it was drawn for

  // Until the server has drawn them, the times of `view` are a part of the picture, moved and stretched.
  function look(view) {
    const now = span(host)
    if (!now) return
    const { svg, left, right, from, to } = now
    if (drawn.svg !== svg) drawn = { svg, first: now.first, last: now.last }
    const whole = !view || view[1] - view[0] >= to - from
    const [first, last] = whole ? [from, to] : view
    Object.assign(svg.dataset, { first, last })
    const zoom = (drawn.last - drawn.first) / (last - first)
    const shift = left * (1 - zoom) + (right - left) * (drawn.first - first) / (last - first)
    svg.style.transform = `matrix(${zoom},0,0,1,${shift},0)`
    clearTimeout(timer)
    timer = setTimeout(() => show(whole ? null : view), SOON_MS)
  }

  // Zoom by a factor around a time, which keeps its place; pan by a share of what is shown.
  function turn(factor, around, by = 0) {
    const now = span(host)
    if (!now) return
    const { first, last } = now
    const length = Math.min(now.to - now.from, Math.max(2, Math.round((last - first) * factor)))
    const at = around ?? (first + last) / 2
    const start = at - (at - first) * length / (last - first) + by * (last - first)
    const begin = Math.round(Math.min(Math.max(start, now.from), now.to - length))
    look([begin, begin + length])
  }

  const timeAt = (now, event) => now.first + (place(now.svg, event) - now.left) * now.each

  host.addEventListener("wheel", event => {
    const region = event.target.closest?.(".timeline")
    const now = span(host)
    if (!region || !now || !(event.ctrlKey || event.metaKey || region.contains(document.activeElement))) return
    event.preventDefault()
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) turn(1, null, Math.sign(event.deltaX) / 8)
    else turn(event.deltaY < 0 ? 1 / NOTCH : NOTCH, timeAt(now, event))
  }, { passive: false })

  const KEYS = { "+": [1 / NOTCH], "=": [1 / NOTCH], "-": [NOTCH], ArrowLeft: [1, null, -1 / 4], ArrowRight: [1, null, 1 / 4] }
  host.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (event.target.matches(".timeline")) {
      if (event.key === "0") look(null)
      else if (KEYS[event.key]) turn(...KEYS[event.key])
      else return
      event.preventDefault()
      return
    }
    const here = event.target.closest(".lane [tabindex]")
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (!here || !step || event.shiftKey) return
    event.preventDefault()
    const all = [...here.closest(".lane").querySelectorAll("[tabindex]")]
    const next = all[all.indexOf(here) + step]
    if (next) { here.tabIndex = -1; next.tabIndex = 0; next.focus() }
  })
  for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => {
    if (button.dataset.zoom === "all") look(null)
    else turn(button.dataset.zoom === "in" ? 1 / 2 : 2)
  })

  // A range is chosen by dragging over the ground; on the minimap what is shown is dragged.
  let brush = null
  host.addEventListener("pointerdown", event => {
    const now = span(host)
    if (!now || event.button || !event.target.closest?.(".timeline svg") || event.target.closest(".lane [tabindex]")) return
    brush = { now, from: place(now.svg, event), mini: Boolean(event.target.closest(".minimap")) }
    if (!brush.mini) {
      brush.rect = document.createElementNS(SVG, "rect")
      brush.rect.setAttribute("class", "brush")
      now.svg.append(brush.rect)
    }
    now.svg.setPointerCapture(event.pointerId)
    drag(event)
  })
  function drag(event) {
    const { now, from, mini, rect } = brush
    const x = place(now.svg, event)
    if (mini) {
      const share = (x - now.left) / (now.right - now.left)
      const half = (now.last - now.first) / 2
      const middle = Math.min(Math.max(now.from + share * (now.to - now.from), now.from + half), now.to - half)
      brush.view = [Math.round(middle - half), Math.round(middle + half)]
      return
    }
    const box = { x: Math.min(from, x), y: 18, width: Math.abs(x - from), height: now.svg.height.baseVal.value - 18 }
    for (const [name, value] of Object.entries(box)) rect.setAttribute(name, value)
    brush.view = box.width > 6 ? [box.x, box.x + box.width].map(x => Math.round(now.first + (x - now.left) * now.each)) : null
  }
  host.addEventListener("pointermove", event => { if (brush) drag(event) })
  host.addEventListener("pointerup", () => {
    if (!brush) return
    brush.rect?.remove()
    const { view, now } = brush
    brush = null
    if (!view) return
    const first = Math.max(view[0], now.from)
    const last = Math.max(first + 2, Math.min(view[1], now.to))
    look([first, last])
  })

  // The words of a shape are shown while it is pointed at; they are its name all the time.
  host.addEventListener("pointerover", event => {
    const shape = event.target.closest?.(".lane [aria-label]")
    if (!shape || shape.querySelector(":scope > title")) return
    const title = document.createElementNS(SVG, "title")
    title.textContent = shape.getAttribute("aria-label")
    shape.prepend(title)
  })

  const element = number => host.querySelector(`circle[data-number="${number}"]`)

  function members(event, on) {
    const window = event.target.closest?.(".window")
    if (window) for (const number of inside(window)) element(number)?.classList.toggle("inside", on)
  }
  for (const [on, off] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
    host.addEventListener(on, event => members(event, true))
    host.addEventListener(off, event => members(event, false))
  }

  // What belongs to a shape: an element's windows, a report's windows, a window's elements; their reports and rows.
  function choose(shape) {
    for (const each of host.querySelectorAll(".chosen")) each.classList.remove("chosen")
    const number = Number(shape.dataset.number)
    const windows = [...host.querySelectorAll(".window")].filter(each =>
      each === shape || (shape.matches("circle") ? inside(each).includes(number) : share(each, shape)))
    const reports = [...host.querySelectorAll("a.report")].filter(each => each === shape || windows.some(one => share(one, each)))
    const elements = shape.matches("circle") ? [shape] : windows.flatMap(inside).map(element)
    const rows = reports.map(each => document.getElementById(each.getAttribute("href").slice(1)))
    for (const each of [shape, ...windows, ...reports, ...elements, ...rows]) each?.classList.add("chosen")
  }
  const names = shape => (shape.dataset.scopes || "").split(" ").filter(Boolean)
  const share = (one, other) => names(one).some(name => names(other).includes(name))

  function content(window) {
    const list = document.createElement("ul")
    const numbers = inside(window)
    for (const number of numbers.slice(0, LISTED)) {
      const item = document.createElement("li")
      item.textContent = element(number)?.getAttribute("aria-label") || ""
      if (item.textContent) list.append(item)
    }
    const heading = document.createElement("p")
    const more = numbers.length > LISTED ? `, the first ${LISTED} elements:` : ":"
    heading.textContent = window.getAttribute("aria-label") + (numbers.length ? more : "")
    host.querySelector("#held")?.replaceChildren(heading, list)
  }

  function seen(event) {
    const shape = event.target.closest?.(".lane [tabindex]")
    if (!shape) return
    if (shape.matches(".window")) content(shape)
    if (shape.matches(".bin")) { if (event.type === "click") look([Number(shape.dataset.first), Math.max(Number(shape.dataset.first) + 2, Number(shape.dataset.last))]) }
    else choose(shape)
  }
  host.addEventListener("focusin", seen)
  host.addEventListener("click", seen)
}
