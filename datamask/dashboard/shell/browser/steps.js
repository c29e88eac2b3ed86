// Which changes of the address are steps of Back: another page, run or corpus. Streamlit makes a step of every
// word that the server writes there; a colour, a filter or a marked sample takes the place of the one before.

const STEPS = ["corpus", "run"];

function leadsElsewhere(url) {
  const next = new URL(url, location.href), now = new URLSearchParams(location.search);
  // what is filled in for a page that was asked for without it leads nowhere either
  const changed = (name) => now.has(name) && next.searchParams.get(name) !== now.get(name);
  return next.pathname !== location.pathname || STEPS.some(changed);
}

if (!history.pushState.steps) {
  const push = history.pushState;
  history.pushState = function (state, unused, url) {
    return (url && !leadsElsewhere(url) ? history.replaceState : push).call(history, state, unused, url);
  };
  history.pushState.steps = STEPS;
}
