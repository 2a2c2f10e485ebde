// The search field of the list of examples.
const search = document.getElementById("search")
for (const each of document.querySelectorAll(".scripted")) each.hidden = false
const matches = document.getElementById("matches")
search.addEventListener("input", () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean)
  let count = 0
  for (const theme of document.querySelectorAll(".theme")) {
    let some = false
    for (const item of theme.querySelectorAll("li")) {
      const text = `${theme.querySelector("h2").textContent} ${item.textContent}`.toLowerCase()
      item.hidden = !words.every(word => text.includes(word))
      if (!item.hidden) { some = true; count += 1 }
    }
    theme.hidden = !some
  }
  matches.textContent = words.length ? `${count} found` : ""
})
