// The last part of every component: `mount`, defined before it, is called with the data that the server sent last. What it
// returns is called once its element has left the page.
//
// Where new data comes while the component's module is imported, Streamlit 1.67 gives the earlier call up, which runs all
// the same, now and then after the later one, and is cleaned up after at once. Then the later one is made again.

const REMEMBERED = 8;
const SHEET = new CSSStyleSheet();
const CALLS = new WeakMap(); // by element, those that were not given up

SHEET.replaceSync(STYLE);

export default function (call) {
  const element = call.parentElement, sheets = element.getRootNode().adoptedStyleSheets;
  if (sheets && !sheets.includes(SHEET)) sheets.push(SHEET);
  const calls = CALLS.get(element) ?? [], made = { call, leave: mount(call) };
  CALLS.set(element, calls);
  calls.push(made);
  calls.splice(0, calls.length - REMEMBERED);
  return () => {
    if (!element.isConnected) return made.leave?.();
    const last = calls.at(-1) === made;
    calls.splice(calls.indexOf(made), 1);
    if (last && calls.length) calls.at(-1).leave = mount(calls.at(-1).call);
  };
}
