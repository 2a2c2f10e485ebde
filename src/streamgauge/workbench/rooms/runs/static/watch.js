/* Shows the progress of a job as the server tells it; without this script the page reloads itself. */
const job = document.getElementById("job")

/* The table of trials as it is now: a run that is done is in it with its measures. */
const refresh = async () => {
  const answer = await fetch(location.href)
  if (!answer.ok) return
  const page = new DOMParser().parseFromString(await answer.text(), "text/html")
  const [here, fresh] = [document, page].map(each => each.getElementById("plan"))
  if (here && fresh) here.replaceWith(fresh)
}

if (job) {
  const finished = () => job.querySelectorAll(".outcomes li").length
  let done = finished()
  const events = new EventSource(job.dataset.events)
  events.addEventListener("progress", event => {
    job.innerHTML = event.data
    if (finished() !== done) { done = finished(); refresh() }
  })
  events.addEventListener("over", () => { events.close(); location.reload() })
  addEventListener("pagehide", () => events.close())
}
