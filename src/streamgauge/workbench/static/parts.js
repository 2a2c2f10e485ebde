// The parts of a page that have the attribute data-live and an id, replaced by those of the page as it is now.
const live = () => document.querySelectorAll("[data-live][id]")
const shown = new WeakMap([...live()].map(one => [one, one.innerHTML]))

const put = (old, fresh) => {
  const now = fresh.innerHTML
  if (shown.get(old) === now) return
  shown.set(old, now)
  const focus = old.contains(document.activeElement) ? document.activeElement.id : ""
  const open = new Set([...old.querySelectorAll("details[open][id]")].map(one => one.id))
  const scrolled = new Map([...old.querySelectorAll(".scroll[id]")].map(one => [one.id, one.scrollLeft]))
  const marked = new Set([...old.querySelectorAll("input[type=checkbox]:checked")].map(one => one.value))
  old.innerHTML = fresh.innerHTML
  for (const one of old.querySelectorAll("input[type=checkbox]")) one.checked = marked.has(one.value)
  for (const id of open) document.getElementById(id)?.setAttribute("open", "")
  for (const [id, left] of scrolled) { const one = document.getElementById(id); if (one) one.scrollLeft = left }
  if (focus) document.getElementById(focus)?.focus({ preventScroll: true })
}

// A term in a cell, all of it where one points at it; the text of a literal runs in its base direction.
export const showTerm = (cell, term, full) => {
  if (full) cell.title = full
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
    for (const old of live()) {
      const fresh = page.getElementById(old.id)
      if (fresh) put(old, fresh)
    }
    dispatchEvent(new Event("refreshed"))
  } catch { /* the workbench is away: the next turn tries again */ }
}
