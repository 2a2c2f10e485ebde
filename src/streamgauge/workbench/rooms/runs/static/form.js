// Shows the fields of the workload that is chosen; without this script "Check" does.
const chosen = document.getElementById("workload")
const show = () => {
  for (const part of document.querySelectorAll("[data-of]")) part.hidden = part.dataset.of !== chosen.value
}
chosen.addEventListener("change", show)
show()
