"use strict";
// Keys: every button or link with data-key is pressed by that key, except while text is typed.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input, textarea, select");
  if (typing) {
    if (event.key === "Escape") event.target.blur();
    // Enter in the note must not press the first button of the form by accident.
    if (event.key === "Enter" && event.target.name === "note") { event.preventDefault(); event.target.blur(); }
    return;
  }
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const field = document.querySelector(`[data-focus="${CSS.escape(key)}"]`);
  const control = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (field) { event.preventDefault(); field.focus(); }
  else if (control) { event.preventDefault(); control.click(); }
});
// One press, one decision: the server would ignore a repeated form anyway.
for (const form of document.forms) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
}
