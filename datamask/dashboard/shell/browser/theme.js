// Tells the server when the page is not as dark or light as it was drawn for, so that it draws the figures again. The
// server says for which: where the page turns while this script is still being loaded, there is no change to see.

const TOLD = new WeakMap();

function mount({ parentElement, data, setStateValue }) {
  // Streamlit calls this again whenever the theme changes
  const dark = getComputedStyle(parentElement.host ?? parentElement).colorScheme === "dark";
  if (dark === data.dark) TOLD.delete(parentElement);
  else if (TOLD.get(parentElement) !== dark) {
    TOLD.set(parentElement, dark); // once: a server that draws the same all the same is not asked forever
    setStateValue("turned", Date.now());
  }
}
