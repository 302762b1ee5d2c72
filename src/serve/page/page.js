"use strict";
// Shows the calls of a case as they come, and loads the page again when it is over. Without it the page refreshes itself.
(() => {
  const list = document.getElementById("calls");
  const state = document.getElementById("state");
  if (!list || !list.dataset.events || !window.EventSource) return;
  // Calls that the page came with; the stream begins with them again.
  let known = Number(list.dataset.count);
  let seen = 0;
  const events = new EventSource(list.dataset.events);
  const show = (call) => {
    const item = document.createElement("li");
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    const text = document.createElement("pre");
    summary.textContent = call.line.trim();
    text.textContent = call.text;
    text.dir = "auto";
    details.append(summary, text);
    item.append(details);
    list.append(item);
  };
  events.addEventListener("call", (event) => {
    seen += 1;
    if (seen <= known) return;
    known = seen;
    show(JSON.parse(event.data));
    if (state) state.textContent = seen + (seen === 1 ? " call is done." : " calls are done.");
  });
  const end = () => {
    events.close();
    location.reload();
  };
  events.addEventListener("done", end);
  // The server's own error has data; a lost connection has none, and the browser asks again by itself.
  events.addEventListener("error", (event) => {
    if (event.data) end();
    else seen = 0;
  });
})();
