"use strict";
(() => {
  const sheet = JSON.parse(document.getElementById("data").textContent);
  const KIND = "wardround-ratings";
  const SCHEMA = 1;
  const STORE = `wardround-rating-${sheet.sheet}`;
  const LAST = sheet.entries.length - 1;
  const element = (id) => document.getElementById(id);
  const codes = new Map(sheet.entries.map((entry, place) => [entry.code, place]));

  let state;
  let at = 0;
  let kept = true;
  let exported = true;

  const nothing = () => ({ rater: "", entries: sheet.entries.map((entry) => ({ code: entry.code, score: null, comment: "" })) });
  const rated = () => state.entries.filter((entry) => entry.score !== null).length;
  const progress = () => `${rated()} of ${sheet.entries.length} rated`;
  const isEmpty = () => state.rater === "" && state.entries.every((entry) => entry.score === null && entry.comment === "");

  // What is exported, and what the browser keeps.
  const file = () => ({ kind: KIND, schema: SCHEMA, sheet: sheet.sheet, rater: state.rater.trim(), entries: state.entries });

  // The state that a file holds; throws what is wrong with it, in words.
  const read = (text) => {
    let found;
    try {
      found = JSON.parse(text);
    } catch {
      throw new Error("it is no JSON");
    }
    if (found === null || found.kind !== KIND || found.schema !== SCHEMA || !Array.isArray(found.entries)) throw new Error("it holds no ratings");
    if (found.sheet !== sheet.sheet) throw new Error("it rates another sheet");
    const fresh = nothing();
    fresh.rater = typeof found.rater === "string" ? found.rater : "";
    for (const entry of found.entries) {
      const place = entry === null ? undefined : codes.get(entry.code);
      if (place === undefined) throw new Error("it has an entry that is not on this sheet");
      if (![null, 0, 1, 2, 3].includes(entry.score)) throw new Error(`the score of entry ${entry.code} is not one of 0 to 3`);
      fresh.entries[place].score = entry.score;
      fresh.entries[place].comment = typeof entry.comment === "string" ? entry.comment : "";
    }
    return fresh;
  };

  const say = (text, isBad) => {
    element("status").textContent = text;
    element("status").classList.toggle("bad", isBad === true);
  };

  const save = () => {
    exported = false;
    try {
      localStorage.setItem(STORE, JSON.stringify({ ...file(), at }));
    } catch {
      kept = false;
    }
    element("unkept").hidden = kept;
  };

  const load = () => {
    state = nothing();
    try {
      const text = localStorage.getItem(STORE);
      if (text !== null) {
        state = read(text);
        const place = JSON.parse(text).at;
        at = Number.isInteger(place) && place >= 0 && place <= LAST ? place : 0;
      }
      localStorage.setItem(`${STORE}-probe`, "");
      localStorage.removeItem(`${STORE}-probe`);
    } catch {
      kept = false;
    }
    element("unkept").hidden = kept;
  };

  // Fills a part, or hides it where there is nothing to say.
  const fill = (id, text) => {
    const part = element(`${id}-part`);
    if (!part) return;
    part.hidden = !text;
    element(id).textContent = text || "";
  };

  const showText = (entry) => {
    const text = element("text");
    if (entry.options) {
      text.textContent = entry.question;
      element("image").hidden = !entry.image;
      element("image").textContent = entry.image ? `The question has an image, which is not shown here: ${entry.image}` : "";
      element("options").replaceChildren(...entry.options.map(([letter, words]) => {
        const item = document.createElement("li");
        const name = document.createElement("b");
        name.textContent = letter;
        const option = document.createElement("span");
        option.className = "words";
        option.textContent = words;
        item.append(name, option);
        item.classList.toggle("chosen", letter === entry.answer);
        return item;
      }));
    } else {
      const mark = document.createElement("mark");
      mark.textContent = entry.marked;
      text.replaceChildren(entry.before, ...(entry.marked ? [mark] : []), entry.after);
    }
  };

  const showFinding = (entry) => {
    if (entry.options) {
      const chosen = entry.options.find(([letter]) => letter === entry.answer);
      element("verdict").textContent = chosen ? `${entry.answer}: ${chosen[1]}` : entry.answer ? `${entry.answer}, which is no option` : "No answer that could be read.";
      fill("rationale", entry.rationale || "No reason given.");
    } else {
      element("verdict").textContent = entry.finding;
      fill("original", entry.marked);
      const isFound = entry.marked !== "" || entry.correction !== null;
      fill("correction", entry.correction || (isFound ? "None given." : ""));
    }
  };

  const showScore = () => {
    const mine = state.entries[at];
    for (const button of element("scores").children) button.setAttribute("aria-pressed", String(Number(button.dataset.score) === mine.score));
    element("state").textContent = mine.score === null ? "not rated" : `rated ${mine.score}`;
    element("state").classList.toggle("rated", mine.score !== null);
    element("progress").value = rated();
    element("count").textContent = progress();
    const button = element("all").children[at].firstChild;
    button.lastChild.textContent = mine.score === null ? "" : mine.score;
    button.setAttribute("aria-label", `Entry ${mine.code}, ${mine.score === null ? "not rated" : `rated ${mine.score}`}`);
  };

  const show = () => {
    const entry = sheet.entries[at];
    element("title").textContent = `Entry ${entry.code}, ${at + 1} of ${sheet.entries.length}`;
    showText(entry);
    showFinding(entry);
    element("comment").value = state.entries[at].comment;
    element("previous").disabled = at === 0;
    element("next").disabled = at === LAST;
    for (const [place, item] of Array.from(element("all").children).entries()) item.firstChild.setAttribute("aria-current", String(place === at));
    showScore();
  };

  const showAll = () => {
    element("rater").value = state.rater;
    element("all").replaceChildren(...sheet.entries.map((entry, place) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      const score = document.createElement("b");
      button.append(entry.code, score);
      button.addEventListener("click", () => go(place));
      item.append(button);
      return item;
    }));
    const here = at;
    for (at = 0; at <= LAST; at += 1) showScore();
    at = here;
    show();
  };

  const go = (place) => {
    if (place < 0 || place > LAST) {
      say(place < 0 ? "This is the first entry." : `This is the last entry. ${progress()}.`);
      return;
    }
    at = place;
    save();
    show();
    say("");
    element("entry").focus({ preventScroll: true });
    element("entry").scrollIntoView({ block: "nearest" });
    if (element("entry").getBoundingClientRect().top < 0) element("entry").scrollIntoView();
  };

  const rate = (score) => {
    state.entries[at].score = score;
    save();
    showScore();
    say(score === null ? `Entry ${state.entries[at].code} has no score any more. ${progress()}.` : `Entry ${state.entries[at].code} rated ${score}. ${progress()}.`);
  };

  const nextUnrated = () => {
    const places = state.entries.map((_, step) => (at + 1 + step) % state.entries.length);
    const open = places.find((place) => state.entries[place].score === null);
    if (open === undefined) say(`Every entry is rated: export with e.`);
    else go(open);
  };

  const download = () => {
    if (state.rater.trim() === "") {
      say("Fill in your initials first: a file must say who rated.", true);
      element("rater").setAttribute("aria-invalid", "true");
      element("rater").focus();
      return;
    }
    const missing = sheet.entries.length - rated();
    if (missing > 0 && !window.confirm(`${missing} of ${sheet.entries.length} entries are not rated. Export all the same?`)) {
      say(`Not exported. u goes to the next unrated entry. ${progress()}.`);
      return;
    }
    const link = document.createElement("a");
    const name = state.rater.trim().toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-");
    link.download = `ratings-${name}-${sheet.sheet}.json`;
    link.href = URL.createObjectURL(new Blob([`${JSON.stringify(file(), null, 1)}\n`], { type: "application/json" }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    exported = true;
    say(`Exported as ${link.download}. ${progress()}.`);
  };

  const restore = async () => {
    const chosen = element("restore").files[0];
    element("restore").value = "";
    if (!chosen) return;
    try {
      const found = read(await chosen.text());
      if (!isEmpty() && !window.confirm(`What is rated here (${progress()}) is replaced by what the file holds. Go on?`)) return;
      state = found;
      at = 0;
      save();
      showAll();
      say(`Restored from ${chosen.name}. ${progress()}.`);
    } catch (error) {
      say(`${chosen.name} is not restored: ${error.message}.`, true);
    }
  };

  const clear = () => {
    if (isEmpty() || !window.confirm(`Every score and comment here (${progress()}) is deleted. Export first to keep them. Go on?`)) return;
    state = nothing();
    at = 0;
    save();
    showAll();
    say("Everything is as it was at first.");
  };

  const KEYS = {
    n: () => go(at + 1), ArrowRight: () => go(at + 1),
    p: () => go(at - 1), ArrowLeft: () => go(at - 1),
    u: nextUnrated, c: () => element("comment").focus(), i: () => element("rater").focus(), e: download,
    Delete: () => rate(null),
  };

  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const isWriting = event.target.matches("textarea, input:not([type=file])");
    if (isWriting) {
      if (event.key === "Escape") element("entry").focus({ preventScroll: true });
      return;
    }
    // Some keyboards have digits behind Shift; their row is known by its place.
    const digit = /^[0-3]$/.test(event.key) ? event.key : event.shiftKey ? undefined : (/^Digit([0-3])$/.exec(event.code) || [])[1];
    const act = digit === undefined ? KEYS[event.key] : () => rate(Number(digit));
    if (!act) return;
    event.preventDefault();
    act();
  };

  element("rater").addEventListener("input", () => {
    state.rater = element("rater").value;
    element("rater").removeAttribute("aria-invalid");
    save();
  });
  element("comment").addEventListener("input", () => {
    state.entries[at].comment = element("comment").value;
    save();
  });
  element("scores").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) rate(Number(button.dataset.score));
  });
  element("previous").addEventListener("click", () => go(at - 1));
  element("next").addEventListener("click", () => go(at + 1));
  element("export").addEventListener("click", download);
  element("restore").addEventListener("change", restore);
  element("clear").addEventListener("click", clear);
  document.addEventListener("keydown", press);
  // The same sheet in another tab: neither may write over what the other has saved.
  window.addEventListener("storage", (event) => {
    if (event.key !== STORE) return;
    const here = at;
    load();
    at = here;
    showAll();
  });
  window.addEventListener("beforeunload", (event) => {
    if (!kept && !exported) event.preventDefault();
  });

  load();
  if (!isEmpty()) element("help").open = false;
  element("main").hidden = false;
  showAll();
  if (!isEmpty()) say(`Taken up where it was left. ${progress()}.`);
})();
