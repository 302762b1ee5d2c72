// Opens the page of a run on notes in headless Chromium from disk, and uses it.
//
//     node tests/acceptance/notes.mjs PAGE [SHOTS]
//
// PAGE is the report.html of a run of medguards or base-llm, or of one that searches. Needs what page.mjs needs. Fails on any error in
// the console, on any request but for the file itself, on a body that scrolls sideways, on a page without bars, on filters and searches that do not filter, and on a marked sentence without its word. With
// SHOTS, screenshots of both themes at laptop and phone width are written there, to be looked at.
import { createRequire } from "node:module";
import { mkdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [file, shots] = process.argv.slice(2);
if (!file) {
  console.error("usage: node tests/acceptance/notes.mjs PAGE [SHOTS]");
  process.exit(2);
}
const paths = [process.cwd(), ...(process.env.NODE_PATH || "").split(":").filter(Boolean)];
const require = createRequire(import.meta.url);
const { chromium } = require(require.resolve("playwright-core", { paths }));

const failures = [];
const expect = (holds, what) => {
  if (!holds) failures.push(what);
};

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--allow-file-access-from-files"],
});

async function open({ theme, width }) {
  const context = await browser.newContext({ colorScheme: theme, viewport: { width, height: 900 } });
  const page = await context.newPage();
  const where = `${file} (${theme}, ${width})`;
  const url = pathToFileURL(resolve(file)).href;
  page.on("console", (message) => expect(!["error", "warning"].includes(message.type()), `${where}: console: ${message.text()}`));
  page.on("pageerror", (error) => failures.push(`${where}: ${error}`));
  page.on("request", (request) => expect(request.url().split("#")[0] === url, `${where}: asks for ${request.url()}`));
  await page.goto(url);
  return { page, context, where };
}

async function look({ page, where }) {
  const layout = await page.evaluate(() => ({
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    bars: document.querySelectorAll(".numbers td[style]").length,
  }));
  expect(layout.wide <= 0, `${where}: the body scrolls sideways by ${layout.wide} px`);
  expect(layout.bars > 0, `${where}: no bar under a figure`);
}

// Every chip shows as many notes as it says; an id finds its note, once a run; nonsense finds none.
async function filter({ page, where }) {
  const cases = () => page.locator("details.case:visible").count();
  const all = await cases();
  expect(all > 0, `${where}: no note is listed`);
  const counts = {};
  for (const chip of await page.locator(".chip:has(input:enabled)").all()) {
    const count = Number(await chip.locator("b").textContent());
    const value = await chip.locator("input").getAttribute("value");
    await chip.locator("span").click();
    counts[value] = await cases();
    expect(counts[value] === count, `${where}: "${await chip.textContent()}" shows ${counts[value]}`);
  }
  const of = (flag) => counts[flag] || 0;
  expect(of("missed-error") + of("false-alarm") <= of("wrong"), `${where}: ${JSON.stringify(counts)}`);
  expect(of("wrong-sentence") <= of("right"), `${where}: ${JSON.stringify(counts)}`);
  await page.locator(".chip").first().locator("span").click();
  expect((await cases()) === all, `${where}: "all" does not show all`);
  const id = await page.locator("details.case .item b").first().textContent();
  await page.fill("#search", id);
  const found = await cases();
  expect(found > 0 && found < all || all === 1, `${where}: searching ${id} shows ${found} of ${all}`);
  await page.fill("#search", "no note says this");
  expect((await cases()) === 0 && (await page.locator("#none").isVisible()), `${where}: the search finds what is not there`);
  await page.fill("#search", "");
}

// The way to an answer of a system that searches: every turn has its steps, every search its passages with their ranks, marked words of a source are whole words, and links lead to the web.
async function follow({ page, where }) {
  const way = await page.evaluate(() => {
    const turns = Array.from(document.querySelectorAll(".round.way"));
    const searches = Array.from(document.querySelectorAll(".way .steps details"));
    searches.forEach((search) => { search.open = true; });
    const shared = Array.from(document.querySelectorAll(".passage mark"));
    const isCut = (mark) => [mark.previousSibling, mark.nextSibling].some((side, place) => {
      const text = side ? side.textContent : "";
      return /[\p{L}\p{N}]/u.test(place === 0 ? text.slice(-1) : text.slice(0, 1));
    });
    const links = Array.from(document.querySelectorAll(".sources a"));
    return {
      turns: turns.length,
      searches: searches.length,
      still: turns.filter((turn) => !turn.querySelector(".steps li")).length,
      empty: searches.filter((search) => !search.querySelector("tbody tr") && !/\b0 passages/.test(search.textContent)).length,
      cut: shared.filter((mark) => isCut(mark)).length,
      strange: links.filter((link) => !/^https?:\/\//.test(link.getAttribute("href"))).length,
    };
  });
  if (way.turns === 0) return;
  expect(way.still === 0, `${where}: ${way.still} of ${way.turns} turns have no step`);
  expect(way.empty === 0, `${where}: ${way.empty} of ${way.searches} searches show no passage`);
  expect(way.cut === 0, `${where}: ${way.cut} marked words are parts of words`);
  expect(way.strange === 0, `${where}: ${way.strange} links of sources lead elsewhere`);
  await look({ page, where: `${where}, the way` });
}

// Every note opens; marks say what they mark; a note in Arabic runs from the right; a link opens the very note.
async function read({ page, where }) {
  await page.locator("#open").click();
  const notes = await page.evaluate(() => {
    // Those in a source are words that the correction shares.
    const marks = Array.from(document.querySelectorAll("mark")).filter((mark) => !mark.closest(".passage"));
    const arabic = Array.from(document.querySelectorAll(".stem[lang=ar]"));
    return {
      closed: document.querySelectorAll("details.case:not([open])").length,
      marks: marks.length,
      mute: marks.filter((mark) => !/^(located|gold|located and gold)$/.test(mark.querySelector(".badge").textContent)).length,
      leftward: arabic.filter((note) => getComputedStyle(note).direction !== "rtl").length,
    };
  });
  expect(notes.closed === 0, `${where}: ${notes.closed} notes do not open`);
  expect(notes.marks > 0 && notes.mute === 0, `${where}: ${notes.mute} of ${notes.marks} marks say nothing`);
  expect(notes.leftward === 0, `${where}: ${notes.leftward} Arabic notes run from the left`);
  await look({ page, where: `${where}, all open` });
  await follow({ page, where });
  await page.locator("#close").click();
  const last = page.locator("details.case").last();
  const anchor = await last.getAttribute("id");
  await page.evaluate((hash) => { location.hash = hash; }, anchor);
  await page.waitForTimeout(100);
  expect((await page.locator("details.case[open]").count()) === 1, `${where}: #${anchor} opens no note`);
  expect(await last.evaluate((note) => note.open), `${where}: #${anchor} opens another note`);
  await page.locator("#close").click();
}

if (shots) mkdirSync(shots, { recursive: true });
for (const theme of ["light", "dark"]) {
  for (const width of [1280, 390]) {
    const opened = await open({ theme, width });
    await look(opened);
    await filter(opened);
    await read(opened);
    if (shots) {
      const { page } = opened;
      const shot = (part) => page.screenshot({ path: join(shots, `${basename(file, ".html")}-${theme}-${width}-${part}.png`), fullPage: true });
      await page.evaluate(() => scrollTo(0, 0));
      await shot("closed");
      await page.locator("details.case").evaluateAll((notes) => notes.slice(0, 5).forEach((note) => { note.open = true; }));
      await shot("open");
    }
    await opened.context.close();
  }
}
await browser.close();
for (const failure of failures) console.error(failure);
console.log(failures.length === 0 ? "the page holds" : `${failures.length} failures`);
process.exit(failures.length === 0 ? 0 : 1);
