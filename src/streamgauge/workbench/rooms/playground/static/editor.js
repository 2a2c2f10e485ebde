// The plain text area as an editor.
export function openEditor(area, changed) {
  area.addEventListener("input", changed)
  return { text: () => area.value, underline: () => {}, know: () => {} }
}
