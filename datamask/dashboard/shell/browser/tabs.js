// A row of tabs whose open one is the browser's own: no answer of the server moves it, other than to open another one,
// which is a new round. It is never disabled and never drawn anew, so the focus stays where the reader put it.

const STATES = new WeakMap();

// The server draws the panels beneath the row; one that another tab has left there is hidden at once.
function showPanels(state, host) {
  const { key, names } = state.data;
  const around = host.closest(`.st-key-${key}_all`);
  if (!around) return;
  if (state.around !== around) {
    state.watch?.disconnect();
    state.watch = new MutationObserver(() => showPanels(state, host));
    state.watch.observe(around, { childList: true, subtree: true });
    state.around = around;
  }
  names.forEach((name, k) => {
    const panel = around.querySelector(`.st-key-${key}_panel_${k}`);
    panel?.setAttribute("role", "tabpanel");
    panel?.setAttribute("aria-label", name);
    if (panel) panel.style.display = name === state.open ? "" : "none";
  });
}

function mount({ data, parentElement, setStateValue }) {
  if (!data) return;
  const host = parentElement.host ?? parentElement;
  let state = STATES.get(parentElement);
  if (!state) {
    STATES.set(parentElement, (state = { root: document.createElement("div") }));
    state.root.setAttribute("role", "tablist");
    parentElement.append(state.root);
  }
  const before = state.data, tabs = state.root.children;
  state.data = data;
  state.send = () => setStateValue("open", { name: state.open, rounds: state.data.rounds });
  if (before?.rounds !== data.rounds) state.open = data.open;
  const show = () => {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab.textContent === state.open));
      tab.tabIndex = tab.textContent === state.open ? 0 : -1;
    }
    showPanels(state, host);
  };
  const open = (tab) => {
    tab.focus();
    if (tab.textContent === state.open) return;
    state.open = tab.textContent;
    show();
    state.send();
  };
  if (JSON.stringify(before?.names) !== JSON.stringify(data.names)) {
    state.root.replaceChildren();
    data.names.forEach((name, k) => {
      const tab = make("button", "tab", state.root, name);
      tab.type = "button";
      tab.setAttribute("role", "tab");
      tab.onclick = () => open(tab);
      tab.onkeydown = (event) => {
        const n = data.names.length;
        const next = { ArrowLeft: (k + n - 1) % n, ArrowRight: (k + 1) % n, Home: 0, End: n - 1 }[event.key];
        if (next === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
        event.preventDefault();
        open(tabs[next]);
      };
    });
  }
  show();
}
