"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const form = document.getElementById("browse");
  const list = document.getElementById("items");
  const shown = document.getElementById("browsed");
  const sides = ["left", "right"];
  const RIGHT = 1 << data.flags.findIndex((flag) => flag[0] === "right");
  const WRONG = 1 << data.flags.findIndex((flag) => flag[0] === "wrong");

  const element = (tag, className, text) => {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const fill = (select, entries, chosen) => {
    select.replaceChildren();
    for (const [value, label] of entries) {
      const option = element("option", "", label);
      option.value = value;
      option.selected = String(value) === String(chosen);
      select.append(option);
    }
  };
  const field = (name) => form.elements[name];
  const cellOf = (side) => data.cells[Number(field(`${side}-cell`).value)];
  const itemOf = (side, question) => {
    const cell = cellOf(side);
    const run = Math.max(0, cell.runs.indexOf(Number(field(`${side}-run`).value)));
    return { run: cell.runs[run], cell, item: cell.items[run][question] };
  };

  // The methods and runs that the dataset has; the first and the last method to begin with.
  const offer = () => {
    const dataset = Number(field("dataset").value);
    const cells = data.cells.map((cell, place) => [place, cell]).filter((pair) => pair[1].dataset === dataset);
    const entries = cells.map(([place, cell]) => [place, data.methods[cell.method]]);
    sides.forEach((side, number) => {
      const select = field(`${side}-cell`);
      const before = select.selectedOptions[0] && select.selectedOptions[0].textContent;
      const same = entries.find((entry) => entry[1] === before);
      const chosen = same || entries[number === 0 ? 0 : entries.length - 1];
      fill(select, entries, chosen ? chosen[0] : "");
      runs(side);
    });
  };
  const runs = (side) => {
    const select = field(`${side}-run`);
    const before = select.value;
    fill(select, cellOf(side).runs.map((run) => [run, `run ${run}`]), before);
  };

  const letterOf = (letter, gold) => {
    const verdict = gold === "" ? "" : letter === gold ? " right" : " wrong";
    return element("b", `letter${verdict}`, letter || "–");
  };
  // What an agent answered before: its own letter, by name and draw.
  const ownBefore = (agents, place, before) => {
    if (!before) return undefined;
    const draw = agents.slice(0, place).filter((agent) => agent === agents[place]).length;
    const own = data.agents[before[2]].map((agent, at) => [agent, at]).filter((pair) => pair[0] === agents[place]);
    return own[draw] === undefined ? undefined : before[3][own[draw][1]];
  };
  const trail = (item, gold) => {
    const made = element("span", "trail");
    if (!item) return element("span", "trail", "no record");
    if (item[3]) return element("span", "trail wrong", "error");
    item[4].forEach((round, number) => {
      if (number > 0) made.append(" › ");
      const group = element("span");
      round[3].forEach((letter, place) => {
        const mark = letterOf(letter, gold);
        const before = ownBefore(data.agents[round[2]], place, item[4][number - 1]);
        if (before !== undefined && before !== letter) mark.classList.add("changed");
        group.append(mark);
      });
      made.append(group);
    });
    const end = element("span", "", "= ");
    end.append(letterOf(item[1], gold));
    made.append(" ", end);
    return made;
  };

  const titles = { initial: "first answers", round: "answers", final: "decision" };
  const column = (side, question, number) => {
    const { cell, run, item } = itemOf(side, number);
    const dataset = data.datasets[cell.dataset];
    const made = element("section", "side");
    made.append(element("h4", "", `${data.methods[cell.method]}, run ${run}`));
    if (!item) {
      made.append(element("p", "empty", "No record."));
      return made;
    }
    const answer = element("p", "final");
    answer.append(letterOf(item[1], question.gold), item[2] === null ? "" : ` team confidence ${(item[2] / 100).toFixed(2)}`);
    made.append(answer);
    if (item[3]) made.append(element("p", "failure", item[3]));
    for (const round of item[4]) {
      made.append(element("h5", "", `Round ${round[0]}, ${titles[round[1]] || round[1]}`));
      const said = element("ul", "said-list");
      round[3].forEach((letter, place) => {
        const line = element("li");
        line.append(letterOf(letter, question.gold), element("small", "", data.agents[round[2]][place] || "?"));
        const text = round[4][place];
        if (text !== null && text !== undefined) line.append(element("span", "words", data.texts[text]));
        said.append(line);
      });
      made.append(said);
    }
    if (item[5] !== null) {
      made.append(element("h5", "", "Rationale"), element("p", "words", data.texts[item[5]]));
    }
    const link = element("a", "", "the whole case, every text");
    link.href = `${cell.page}#${dataset.anchor}/${run}/${question.anchor}`;
    const foot = element("p", "link");
    foot.append(link);
    made.append(foot);
    return made;
  };

  const body = (question, number) => {
    const made = element("div", "body");
    const asked = element("section", "question");
    asked.append(element("p", "stem", question.stem || "The question is not in the log."));
    const options = element("ol", "options");
    for (const [letter, text] of question.options) {
      const line = element("li", letter === question.gold ? "gold" : "");
      line.append(element("b", "", letter), element("span", "", text));
      if (letter === question.gold) line.append(element("i", "badge right", "gold"));
      options.append(line);
    }
    asked.append(options);
    const both = element("div", "sides");
    for (const side of sides) both.append(column(side, question, number));
    made.append(asked, both);
    return made;
  };

  const fits = (side, question) => {
    const wanted = field(`${side}-flag`).value;
    const { item } = itemOf(side, question);
    return wanted === "" || (item && (item[0] & (1 << Number(wanted))) !== 0);
  };
  const fitsBoth = (number) => {
    const [left, right] = sides.map((side) => itemOf(side, number).item);
    const has = (item, flag) => Boolean(item) && (item[0] & flag) !== 0;
    switch (field("both").value) {
      case "differ": return Boolean(left) && Boolean(right) && left[1] !== right[1];
      case "gained": return has(left, WRONG) && has(right, RIGHT);
      case "lost": return has(left, RIGHT) && has(right, WRONG);
      case "wrong-alike": return has(left, WRONG) && has(right, WRONG) && left[1] === right[1];
      default: return true;
    }
  };

  const apply = () => {
    const dataset = data.datasets[Number(field("dataset").value)];
    const wanted = field("search").value.trim().replace(/\s+/g, " ").toLowerCase();
    const rows = [];
    dataset.questions.forEach((question, number) => {
      const words = `${question.id} ${question.stem}`.replace(/\s+/g, " ").toLowerCase();
      if (!words.includes(wanted) || !sides.every((side) => fits(side, number)) || !fitsBoth(number)) return;
      const row = element("details", "case pair");
      const head = element("summary", "row");
      const item = element("span", "item");
      item.append(element("b", "", question.id), element("span", "excerpt", question.stem));
      const gold = element("span", "gold");
      gold.append(element("span", "tag", "gold "), question.gold || "–");
      head.append(item, gold);
      for (const side of sides) {
        const cell = element("span", "of-side");
        cell.append(element("span", "tag", `${side} `), trail(itemOf(side, number).item, question.gold));
        head.append(cell);
      }
      row.append(head);
      row.addEventListener("toggle", () => {
        if (row.open && row.children.length === 1) row.append(body(question, number));
      });
      rows.push(row);
    });
    list.replaceChildren(...rows);
    shown.textContent = `${rows.length} of ${dataset.questions.length} shown`;
    document.getElementById("none").hidden = rows.length > 0;
  };

  fill(field("dataset"), data.datasets.map((dataset, place) => [place, dataset.label]), 0);
  for (const side of sides) {
    fill(field(`${side}-flag`), [["", "all"], ...data.flags.map((flag, bit) => [bit, flag[1]])], "");
  }
  offer();
  form.addEventListener("input", (event) => {
    if (event.target.name === "dataset") offer();
    for (const side of sides) if (event.target.name === `${side}-cell`) runs(side);
    apply();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  document.getElementById("items-head").hidden = false;
  apply();
})();
