// Arrow keys in the reader: previous and next sample, wherever the focus is in it, but where arrows have a use already.
// What it shows anew is read from its top, wherever it was scrolled to before.

const ARROWS_IN_USE = "input, textarea, select, canvas, [contenteditable], [role=tab], [role=radio], [role=slider], " +
  "[role=combobox], [role=listbox], [role=grid], [role=application], [role=menu]";
const LEAVE = new WeakMap();
const SHOWS = new WeakMap();

function mount({ data, parentElement }) {
  if (!data) return;
  LEAVE.get(parentElement)?.();
  const host = parentElement.host ?? parentElement, reader = host.closest(`.st-key-${data.around}`);
  if (!reader) return;
  if (SHOWS.get(reader) !== data.shows) reader.scrollTop = 0;
  SHOWS.set(reader, data.shows);
  // a press on its text puts the focus there; what was focused may go with the sample, the reader stays
  reader.tabIndex = -1;
  reader.setAttribute("role", "group");
  reader.setAttribute("aria-label", "Reader");
  const turn = (event) => {
    const which = { ArrowLeft: "previous", ArrowRight: "next" }[event.key];
    if (!which || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    if (event.composedPath().some((part) => part.matches?.(ARROWS_IN_USE))) return;
    if (!turnTo(which)) return;
    event.preventDefault();
    reader.focus({ preventScroll: true });
  };
  reader.addEventListener("keydown", turn);
  const leave = () => {
    reader.removeEventListener("keydown", turn);
    LEAVE.delete(parentElement);
  };
  LEAVE.set(parentElement, leave);
  return leave;
}
