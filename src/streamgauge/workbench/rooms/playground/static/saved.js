// Saved states as tabs, and the states that were drawn last; this browser keeps both. Without script neither is shown.
const KEPT = { saved: 30, drawn: 20 }
const form = document.getElementById("playground")
const link = document.getElementById("link")
const part = document.getElementById("saved")
const [tabs, past, name, status] = ["tabs", "past", "saved-name", "saved-status"].map(id => document.getElementById(id))

const key = list => `playground.${list}`

// The kept states, each a name, an address of this room, and the time (ms) at which it was kept.
const states = list => {
  try {
    const kept = JSON.parse(localStorage.getItem(key(list)) ?? "[]")
    return kept.filter(({ address }) => new URL(address, location.href).pathname === "/playground/")
  } catch { return [] }
}

const keep = (list, kept) => {
  try { localStorage.setItem(key(list), JSON.stringify(kept.slice(0, KEPT[list]))) }
  catch { status.textContent = "This browser has no room for more: remove some." }
}

// The first line of the query that is not a prefix or comment, in short.
const title = () => {
  const line = form.elements.query.value.split("\n").map(text => text.trim()).find(text => text && !/^(PREFIX|BASE|#)/i.test(text))
  return (line ?? "empty query").slice(0, 60)
}

const here = () => link.hidden ? "" : new URL(link.href, location.href).pathname + new URL(link.href, location.href).search

const element = (tag, text, values = {}) => Object.assign(document.createElement(tag), { textContent: text }, values)

function show() {
  const address = here()
  tabs.replaceChildren(...states("saved").map(state => {
    const item = document.createElement("li")
    const tab = element("a", state.name, { href: state.address })
    if (state.address === address) tab.setAttribute("aria-current", "page")
    const remove = element("button", "×", { type: "button", ariaLabel: `Remove ${state.name}` })
    remove.addEventListener("click", () => {
      keep("saved", states("saved").filter(other => other.name !== state.name))
      show()
      name.focus()
    })
    item.append(tab, remove)
    return item
  }))
  past.replaceChildren(...states("drawn").map(state => {
    const item = document.createElement("li")
    const time = element("time", ` ${new Date(state.at).toLocaleString()}`, { className: "note" })
    item.append(element("a", state.name, { href: state.address }), time)
    return item
  }))
}

function drawn() {
  const address = here()
  const kept = states("drawn")
  if (address && kept[0]?.address !== address) {
    keep("drawn", [{ name: title(), address, at: Date.now() }, ...kept.filter(state => state.address !== address)])
  }
  show()
}

document.getElementById("save").addEventListener("click", () => {
  const address = here()
  const text = name.value.trim() || title()
  status.textContent = address ? `Saved as ${text}.` : "This state is too large for a link, and is not saved."
  if (!address) return
  keep("saved", [...states("saved").filter(state => state.name !== text), { name: text, address, at: Date.now() }].slice(-KEPT.saved))
  name.value = ""
  show()
})

part.hidden = false
new MutationObserver(drawn).observe(form, { attributeFilter: ["data-redrawn"] })
addEventListener("storage", show)
show()
