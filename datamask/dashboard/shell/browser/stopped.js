// Says in one sentence that the server has stopped. Streamlit's own dialog asks about Streamlit and the internet.

const STOPPED = "The datamask server does not answer. Start it again if it has stopped, then reload this page.";
const STREAMLITS = /^(Is Streamlit still running|Streamlit server is not responding)/;

function sayStopped() {
  for (const dialog of document.querySelectorAll('[role="dialog"]')) {
    const texts = document.createTreeWalker(dialog, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      if (!STREAMLITS.test(texts.currentNode.data)) continue;
      texts.currentNode.data = STOPPED;
      const command = dialog.querySelector("pre")?.parentElement; // names a script that is not this one
      if (command) command.style.display = "none";
    }
  }
}

if (!document.documentElement.saysStopped) {
  document.documentElement.saysStopped = true;
  const dialogs = new MutationObserver(sayStopped);
  const connection = new MutationObserver((changes) => {
    // dialogs are looked at only while there is no connection
    dialogs.disconnect();
    if (changes.at(-1).target.dataset.testConnectionState !== "CONNECTED")
      dialogs.observe(document.body, { childList: true, subtree: true });
  });
  connection.observe(document.body, { attributeFilter: ["data-test-connection-state"], subtree: true });
}
