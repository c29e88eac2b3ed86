// Hears what a map asks the server for while the page stands still, and shows nothing. It stands in the fragment that
// answers, so that an answer redraws that fragment alone and not the page.
//
// Of two questions that reach a busy server, it gets the later one alone; so each goes with those before it, numbered.

const LISTENING = new WeakMap();
const REPEATED = 8; // questions that go together
STORE.asked ??= {};

// Streamlit sends what happens within one task as one message and draws the fragment of the first part alone, so a click
// on a button in the same moment would draw nothing. Such a click waits until the question has left.
STORE.leaving ??= 0;
STORE.holdsClicks ??= document.addEventListener("click", (event) => {
  if (!STORE.leaving || !event.isTrusted) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  setTimeout(() => event.target.click(), 0);
}, true) ?? true;

function mount({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  const before = LISTENING.get(parentElement);
  if (before) STORE.bell.removeEventListener("ask", before);
  const hear = ({ detail: { name, question } }) => {
    if (name !== data.name) return;
    const asked = STORE.asked[name] ?? [], number = (asked.at(-1)?.number ?? 0) + 1;
    STORE.asked[name] = [...asked, { ...question, number }].slice(-REPEATED);
    setTriggerValue("asked", STORE.asked[name]);
    STORE.leaving += 1;
    setTimeout(() => { STORE.leaving -= 1; }, 0); // after Streamlit's own timer, which sends the message
  };
  LISTENING.set(parentElement, hear);
  STORE.bell.addEventListener("ask", hear);
  return lasting(parentElement, () => {
    STORE.bell.removeEventListener("ask", hear);
    LISTENING.delete(parentElement);
  });
}
