// Streams of the folder become buttons that add them to the sources.
const sources = document.getElementById("sources")

for (const name of document.querySelectorAll(".files code")) {
  const button = document.createElement("button")
  button.type = "button"
  button.textContent = name.textContent
  button.addEventListener("click", () => {
    const lines = sources.value.split("\n").filter(line => line.trim())
    if (!lines.includes(name.textContent)) sources.value = [...lines, name.textContent].join("\n")
    sources.focus()
  })
  name.replaceWith(button)
}
