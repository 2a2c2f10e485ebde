// The timeline of a run, or of two: the part that is wanted is read from the page's own address.
import { openTimeline } from "/static/timeline.js"

const host = document.getElementById("timeline")

async function show(view) {
  const address = new URL(location.href)
  address.searchParams.set("width", Math.max(280, host.clientWidth - 2))
  if (view) address.searchParams.set("view", view.join(","))
  else address.searchParams.delete("view")
  const answer = await fetch(address, { headers: { Accept: "text/html" } })
  if (!answer.ok) return
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("timeline")
  const focused = document.activeElement?.matches(".timeline")
  if (fresh) host.innerHTML = fresh.innerHTML
  if (focused) host.querySelector(".timeline").focus({ preventScroll: true })
}

if (host) {
  openTimeline(host, show)
  if (host.querySelector("svg").width.baseVal.value > host.clientWidth) show(null)
}
