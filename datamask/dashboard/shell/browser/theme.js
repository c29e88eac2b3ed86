// Tells the server when the page turns dark or light, so that figures drawn there are drawn anew. Shows nothing.

const GROUNDS = new WeakMap();

function mount({ parentElement, setStateValue }) {
  // Streamlit calls this again whenever the theme changes
  const host = parentElement.host ?? parentElement;
  const ground = getComputedStyle(host).getPropertyValue("--st-background-color").trim();
  const before = GROUNDS.get(parentElement);
  GROUNDS.set(parentElement, ground);
  if (before !== undefined && before !== ground) setStateValue("ground", ground);
}
