// The button that compares says how many runs are marked, and waits for two.
const tell = () => {
  const form = document.getElementById("compare")
  if (!form) return
  const button = form.querySelector("button")
  const count = document.querySelectorAll("input[name=run]:checked").length
  button.disabled = count < 2
  const words = count < 2 ? "Mark two runs to compare them" : count === 2 ? "Compare the two marked runs" : `Report on the ${count} marked runs`
  if (button.textContent !== words) button.textContent = words
}

addEventListener("change", tell)
addEventListener("pageshow", tell)
addEventListener("refreshed", tell)
tell()
