// The parts of a page that have the attribute data-live and an id, replaced by those of the page as it is now.
const put = (old, fresh) => {
  if (old.innerHTML === fresh.innerHTML) return
  const focus = old.contains(document.activeElement) ? document.activeElement.id : ""
  const open = new Set([...old.querySelectorAll("details[open][id]")].map(one => one.id))
  const scrolled = new Map([...old.querySelectorAll(".scroll[id]")].map(one => [one.id, one.scrollLeft]))
  old.innerHTML = fresh.innerHTML
  for (const id of open) document.getElementById(id)?.setAttribute("open", "")
  for (const [id, left] of scrolled) { const one = document.getElementById(id); if (one) one.scrollLeft = left }
  if (focus) document.getElementById(focus)?.focus({ preventScroll: true })
}

// A term in a cell; the text of a literal runs in its base direction.
export const showTerm = (cell, term) => {
  const [, text, tag, way] = /^("[^]*")(@[A-Za-z0-9-]+?--(ltr|rtl))$/.exec(term) || []
  if (!way) { cell.textContent = term; return }
  const apart = document.createElement("bdi")
  apart.dir = way
  apart.textContent = text
  cell.replaceChildren(apart, tag)
}

export const readAgain = async () => {
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } })
    if (!answer.ok) return
    const page = new DOMParser().parseFromString(await answer.text(), "text/html")
    for (const old of document.querySelectorAll("[data-live][id]")) {
      const fresh = page.getElementById(old.id)
      if (fresh) put(old, fresh)
    }
  } catch { /* the workbench is away: the next turn tries again */ }
}
