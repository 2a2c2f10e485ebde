// Undo and redo: each change of the form is an entry of the browser's history, so that Back undoes and Forward redoes.
const MERGED_MS = 1500
const [undoButton, redoButton] = ["undo", "redo"].map(id => document.getElementById(id))

// `read` gives the form as a value, `restore` puts one into the form.
export function openHistory(read, restore) {
  let step = history.state?.step ?? 0
  let newest = step
  let current = JSON.stringify(read())
  let typedAt = -MERGED_MS

  function enter(change, form, address = location.href) {
    history[`${change}State`]({ step, form }, "", address)
    undoButton.disabled = step === 0
    redoButton.disabled = step === newest
  }

  // Record the form if it has changed; what is typed without a pause is one step. Returns the number of the step.
  function record({ typed = false } = {}) {
    const form = read()
    const text = JSON.stringify(form)
    if (text === current) return step
    const merged = typed && performance.now() - typedAt < MERGED_MS && step === newest
    typedAt = typed ? performance.now() : -MERGED_MS
    current = text
    if (!merged) newest = step += 1
    enter(merged ? "replace" : "push", form)
    return step
  }

  // The address that opens a step's state, once the server has said it.
  function address(of, href) {
    if (of === step && new URL(href, location.href).href !== location.href) enter("replace", history.state.form, href)
  }

  function undo() { record(); if (step > 0) history.back() }
  function redo() { if (step < newest) history.forward() }

  addEventListener("popstate", event => {
    if (!event.state) { enter("replace", JSON.parse(current)); return }  // a link within the page
    step = event.state.step
    newest = Math.max(newest, step)
    current = JSON.stringify(event.state.form)
    typedAt = -MERGED_MS
    enter("replace", event.state.form)
    restore(event.state.form)
  })
  undoButton.addEventListener("click", undo)
  redoButton.addEventListener("click", redo)

  // A page that is loaded again at a step that no address holds has it from the browser.
  const kept = history.state?.form
  if (kept && JSON.stringify(kept) !== current) { current = JSON.stringify(kept); restore(kept) }
  enter("replace", kept ?? read())
  return { record, address, undo, redo }
}
