// Hears what a map asks the server for while the page stands still, and shows nothing. It stands in the fragment that
// answers, so that an answer redraws that fragment alone and not the page.

const LISTENING = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  const before = LISTENING.get(parentElement);
  if (before) STORE.bell.removeEventListener("ask", before);
  const hear = ({ detail: { name, question } }) => name === data.name && setTriggerValue("asked", question);
  LISTENING.set(parentElement, hear);
  STORE.bell.addEventListener("ask", hear);
  return () => {
    STORE.bell.removeEventListener("ask", hear);
    LISTENING.delete(parentElement);
  };
}
