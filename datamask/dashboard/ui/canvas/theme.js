// Tells the server when the page turns dark or light, so that figures drawn there are drawn anew. Shows nothing.

const TOLD = new WeakMap();

export default function ({ parentElement, setStateValue }) {
  // Streamlit calls this again whenever the theme changes
  const host = parentElement.host ?? parentElement;
  const ground = getComputedStyle(host).getPropertyValue("--st-background-color").trim();
  const before = TOLD.get(parentElement);
  TOLD.set(parentElement, ground);
  if (before !== undefined && before !== ground) setStateValue("ground", ground);
}
