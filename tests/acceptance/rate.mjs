// Rates on the page of `wardround rate export` in headless Chromium, from disk, by the keyboard alone, and scores what it exports.
//
//     node tests/acceptance/rate.mjs WARDROUND FOLDER [SHOTS]
//
// WARDROUND is the binary, FOLDER what `rate export` wrote. Two raters: the first rates some, reloads, goes on and exports; the second
// restores a file of his own in a fresh browser. Needs Chromium and playwright-core as page.mjs does. Fails on any error in the console, on any
// request but for the file itself, on a body that scrolls sideways, on a state that is lost, and on scores that are not those given. With SHOTS,
// screenshots of both themes at laptop and phone width are written there, to be looked at.
import { createRequire } from "node:module";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [binary, folder, shots] = process.argv.slice(2);
if (!folder) {
  console.error("usage: node tests/acceptance/rate.mjs WARDROUND FOLDER [SHOTS]");
  process.exit(2);
}
const paths = [process.cwd(), ...(process.env.NODE_PATH || "").split(":").filter(Boolean)];
const require = createRequire(import.meta.url);
const { chromium } = require(require.resolve("playwright-core", { paths }));

const failures = [];
const expect = (holds, what) => {
  if (!holds) failures.push(what);
};
const url = pathToFileURL(resolve(folder, "rate.html")).href;
const key = JSON.parse(readFileSync(join(folder, "rate-key.json"), "utf8"));
const count = key.entries.length;
const scratch = mkdtempSync(join(tmpdir(), "rate-"));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox"] });

async function open({ theme = "light", width = 1280 } = {}) {
  const context = await browser.newContext({ colorScheme: theme, viewport: { width, height: 900 }, acceptDownloads: true });
  const page = await context.newPage();
  page.on("console", (message) => expect(!["error", "warning"].includes(message.type()), `console: ${message.text()}`));
  page.on("pageerror", (error) => failures.push(`the page threw ${error}`));
  page.on("request", (request) => expect(request.url() === url || request.url().startsWith("blob:"), `asks for ${request.url()}`));
  await page.goto(url);
  return { page, context };
}

const press = async (page, ...keys) => {
  for (const one of keys) await page.keyboard.press(one);
};
const told = (page) => page.locator("#count").textContent();
const place = (page) => page.locator("#title").textContent();
const focused = (page) => page.evaluate(() => document.activeElement.id);

async function exported(page, accept = true) {
  if (!accept) {
    const asked = page.waitForEvent("dialog");
    const pressed = press(page, "e");
    const dialog = await asked;
    const words = dialog.message();
    await dialog.dismiss();
    await pressed;
    return words;
  }
  const [download] = await Promise.all([page.waitForEvent("download"), press(page, "e")]);
  const path = join(scratch, download.suggestedFilename());
  await download.saveAs(path);
  return path;
}

// The first rater gives the scores 0 1 2 3 0 1 … in the sheet's order, by keys alone.
const byFirst = (at) => at % 4;
const first = await open();
{
  const { page } = first;
  for (const run of key.runs) {
    const text = (await page.content()).toLowerCase();
    for (const name of [run.path, run.system, ...run.models, ...run.models.map((model) => model.split("/").pop())]) {
      expect(!text.includes(name.toLowerCase()), `the page says ${name}`);
    }
  }
  await press(page, "e");
  expect((await focused(page)) === "rater", "an export without initials does not ask for them");
  expect((await page.locator("#status").textContent()).includes("initials"), "an export without initials does not say why");
  await page.keyboard.type("AB 1");
  await press(page, "Escape");
  expect((await focused(page)) === "entry", "Escape does not leave the initials");
  const half = Math.floor(count / 2);
  for (let at = 0; at < half; at += 1) {
    await press(page, String(byFirst(at)), at % 2 === 0 ? "n" : "ArrowRight");
  }
  await press(page, "c");
  await page.keyboard.type("no 3 is given: n, p and e are letters here");
  await press(page, "Escape");
  expect((await told(page)) === `${half} of ${count} rated`, `after ${half} entries: ${await told(page)}`);
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  expect(outline === "solid", `the focus is not visible: ${outline}`);

  await page.reload();
  expect((await told(page)) === `${half} of ${count} rated`, `after a reload: ${await told(page)}`);
  expect((await place(page)).includes(`, ${half + 1} of`), `after a reload the page is at ${await place(page)}`);
  expect((await page.locator("#comment").inputValue()).startsWith("no 3 is given"), "a comment is lost");
  expect((await page.locator("#rater").inputValue()) === "AB 1", "the initials are lost");

  const words = await exported(page, false);
  expect(words.startsWith(`${count - half} of ${count} entries are not rated`), `an incomplete export asks: ${words}`);
  for (let at = half; at < count; at += 1) await press(page, String(byFirst(at)), "u");
  await press(page, "3", "Delete");
  expect((await told(page)) === `${count - 1} of ${count} rated`, "Delete does not take a score back");
  await press(page, "n", "n", "p", "u");
  const last = Number((await place(page)).match(/, (\d+) of/)[1]) - 1;
  await press(page, String(byFirst(last)), "u");
  expect((await page.locator("#status").textContent()).startsWith("Every entry is rated"), "u finds what is rated");
  const again = (last + 1) % count;
  await page.locator("#all button").nth(again).focus();
  await press(page, "Enter");
  expect((await place(page)).includes(`, ${again + 1} of`), "an entry of the list does not open");
  await page.locator("#scores button").nth(3).focus();
  await press(page, "Space", String(byFirst(again)));
}
const one = await exported(first.page);
const file = JSON.parse(readFileSync(one, "utf8"));
expect(file.entries.every((entry, at) => entry.score === byFirst(at)), "the file has other scores than were given");
expect(file.rater === "AB 1" && file.sheet === key.sheet, "the file says another rater or sheet");
expect(file.entries.some((entry) => entry.comment.startsWith("no 3")), "the file lacks the comment");
await first.context.close();

// The second rater, in a browser that knows nothing: from a file, and on. His scores are the first's, but 3 for every 0.
const begun = { ...file, rater: "Dr. Ü", entries: file.entries.map((entry, at) => ({ ...entry, score: at === 0 ? null : entry.score === 0 ? 3 : entry.score, comment: "" })) };
const restored = join(scratch, "begun.json");
writeFileSync(restored, JSON.stringify(begun));
const broken = join(scratch, "broken.json");
writeFileSync(broken, JSON.stringify({ ...begun, sheet: "another" }));
const second = await open();
expect((await told(second.page)) === `0 of ${count} rated`, "a fresh browser knows ratings");
await second.page.setInputFiles("#restore", broken);
await second.page.waitForFunction(() => document.getElementById("status").classList.contains("bad"));
expect((await second.page.locator("#status").textContent()).includes("it rates another sheet"), "a file of another sheet is not told");
await second.page.setInputFiles("#restore", restored);
await second.page.waitForFunction(() => document.getElementById("rater").value !== "");
expect((await told(second.page)) === `${count - 1} of ${count} rated`, `restored: ${await told(second.page)}`);
await press(second.page, "u", "3");
const two = await exported(second.page);
await second.context.close();

const scored = JSON.parse(execFileSync(binary, ["rate", "score", join(folder, "rate-key.json"), one, two, "--format", "json"], { encoding: "utf8" }));
const [ratings, raters] = scored.tables;
for (const [run, row] of ratings.rows.entries()) {
  const own = key.entries.map((entry, at) => [entry, at]).filter(([entry]) => entry.run === run);
  const mean = (of) => own.map(([, at]) => of(at)).reduce((sum, score) => sum + score, 0) / own.length;
  const near = (found, expected, what) => expect(Math.abs(found - expected) < 1e-12, `${row.run}, ${what}: ${found}, not ${expected}`);
  near(row["MOS by rater: AB 1"], mean(byFirst), "first rater");
  near(row["MOS by rater: Dr. Ü"], mean((at) => byFirst(at) || 3), "second rater");
  expect(row.unrated === 0, `${row.run}: ${row.unrated} unrated`);
}
const zeros = Array.from({ length: count }, (_, at) => byFirst(at)).filter((score) => score === 0).length;
expect(raters.rows[0]["identical scores"] === count - zeros, `identical: ${raters.rows[0]["identical scores"]}`);

// Both themes, both widths: nothing is wider than the window, the score is in reach, what is hidden is hidden.
if (shots) mkdirSync(shots, { recursive: true });
for (const theme of ["light", "dark"]) {
  for (const width of [1280, 390]) {
    const { page, context } = await open({ theme, width });
    const where = `${theme}, ${width}`;
    if (shots) await page.screenshot({ path: join(shots, `rate-${theme}-${width}-first.png`) });
    await press(page, "2", "n", "1", "n", "3", "p", "p");
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(wide <= 0, `${where}: the body scrolls sideways by ${wide} px`);
    expect(await page.locator("#scores").isVisible(), `${where}: no scores`);
    expect(await page.locator("#unkept").isHidden(), `${where}: the state is not kept`);
    if (width === 390) {
      const box = await page.locator("#scores").boundingBox();
      expect(box.y >= 0 && box.y + box.height <= 900, `${where}: the scores are out of reach`);
    }
    if (shots) {
      await page.screenshot({ path: join(shots, `rate-${theme}-${width}-view.png`) });
      await page.screenshot({ path: join(shots, `rate-${theme}-${width}.png`), fullPage: true });
    }
    await context.close();
  }
}
await browser.close();
for (const failure of failures) console.error(failure);
console.log(failures.length === 0 ? `${count} entries rated by keyboard, scored as given` : `${failures.length} failures`);
process.exit(failures.length === 0 ? 0 : 1);
