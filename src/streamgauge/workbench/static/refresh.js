// Keeps the parts of a page current that have the attribute data-live: the page is read again every two seconds.
// Without script a page reloads by itself (a noscript element in its head).
import { readAgain } from "/static/parts.js"

const SECONDS = 2

const refresh = async () => {
  if (!document.hidden) await readAgain()
  setTimeout(refresh, 1000 * SECONDS)
}

setTimeout(refresh, 1000 * SECONDS)
