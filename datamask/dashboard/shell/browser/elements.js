// The one way to make an element, for every component. Components are modules of their own, put together by
// dashboard/shell/components.py from the files they name; what two of them need stands in a file that both name.

function make(kind, name, parent, text) {
  const made = document.createElement(kind);
  if (name) made.className = name;
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
}
