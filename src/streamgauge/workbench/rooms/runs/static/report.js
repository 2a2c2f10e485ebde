// The plots of a report: each is asked for when it comes near the part of the page that is seen, or is printed.

const draw = async room => {
  const answer = await fetch(room.dataset.drawing)
  const text = await answer.text()
  if (answer.ok) room.outerHTML = text
  else room.textContent = "This plot could not be drawn: load the page again."
}

const seen = new IntersectionObserver(entries => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue
    seen.unobserve(target)
    draw(target)
  }
}, { rootMargin: "100px" })

for (const room of document.querySelectorAll(".plot.later")) seen.observe(room)
addEventListener("beforeprint", () => document.querySelectorAll(".plot.wide.later").forEach(draw))
