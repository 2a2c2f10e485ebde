/* Shows the progress of a job as the server tells it; without this script the page reloads itself. */
const job = document.getElementById("job")
if (job) {
  const events = new EventSource(job.dataset.events)
  events.addEventListener("progress", event => { job.innerHTML = event.data })
  events.addEventListener("over", () => { events.close(); location.reload() })
  addEventListener("pagehide", () => events.close())
}
