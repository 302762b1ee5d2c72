"use strict";
(() => {
  const form = document.getElementById("filters");
  const cases = Array.from(document.querySelectorAll("details.case"));
  const search = document.getElementById("search");
  const run = document.getElementById("run");
  const shown = document.getElementById("shown");
  const none = document.getElementById("none");
  const words = new Map();

  const wordsOf = (entry) => {
    if (!words.has(entry)) {
      const parts = [entry.querySelector(".item b"), entry.querySelector(".question")];
      const text = parts.map((part) => (part ? part.textContent : "")).join(" ");
      words.set(entry, text.replace(/\s+/g, " ").toLowerCase());
    }
    return words.get(entry);
  };

  const apply = () => {
    const flag = form.elements.flag.value;
    const wanted = search.value.trim().replace(/\s+/g, " ").toLowerCase();
    let count = 0;
    for (const entry of cases) {
      const fits =
        (flag === "" || entry.dataset.flags.split(" ").includes(flag)) &&
        (!run || run.value === "" || run.value === entry.dataset.run) &&
        (wanted === "" || wordsOf(entry).includes(wanted));
      entry.hidden = !fits;
      count += fits ? 1 : 0;
    }
    shown.textContent = `${count} of ${cases.length} shown`;
    none.hidden = count > 0 || cases.length === 0;
  };

  // A link to a case or a prompt opens it, whatever is filtered away at the time.
  const follow = () => {
    const target = document.getElementById(location.hash.slice(1));
    // What is not here may stand on a page behind this one.
    const next = document.querySelector("nav.pages a[rel=next]");
    if (location.hash.length > 1 && !target && next) {
      location.replace(next.getAttribute("href").split("#")[0] + location.hash);
      return;
    }
    if (!target || target.tagName !== "DETAILS") return;
    if (target.hidden) {
      form.reset();
      apply();
    }
    target.open = true;
    target.scrollIntoView();
  };

  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("open").addEventListener("click", () => {
    for (const entry of cases) if (!entry.hidden) entry.open = true;
  });
  document.getElementById("close").addEventListener("click", () => {
    for (const entry of cases) entry.open = false;
  });
  window.addEventListener("hashchange", follow);
  form.hidden = false;
  apply();
  follow();
})();
