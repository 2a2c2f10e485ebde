// A timeline that the server draws at an address: the part that is wanted, and nothing else of the page.
import { openTimeline } from "/static/timeline.js"

const host = document.getElementById("timeline")
const region = host?.querySelector(".timeline")
let shown = null

async function show(view) {
  shown = view
  const address = new URL(host.dataset.drawn, location.href)
  address.searchParams.set("width", Math.max(280, host.clientWidth - 2))
  if (view) address.searchParams.set("view", view.join(","))
  const answer = await fetch(address)
  if (!answer.ok || shown !== view) return
  const text = await answer.text()
  const focused = region.querySelector(":focus")?.getAttribute("aria-label")
  region.innerHTML = text
  if (focused) [...region.querySelectorAll("[tabindex]")].find(each => each.getAttribute("aria-label") === focused)?.focus({ preventScroll: true })
}

if (host) {
  openTimeline(host, show)
  const fits = () => Math.abs((host.querySelector("svg")?.width.baseVal.value ?? 0) - host.clientWidth) < 24
  new ResizeObserver(() => { if (!fits()) show(shown) }).observe(host)
  addEventListener("refreshed", () => { if (!shown) show(null) })  // what is zoomed into stays as it is
}
