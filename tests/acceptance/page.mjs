// Opens the page of a recipe's folder, and of one of its cells, in headless Chromium from disk, and uses them.
//
//     node tests/acceptance/page.mjs FOLDER [SHOTS]
//
// FOLDER is a recipe's folder with its report.html. Needs Chromium (CHROMIUM names it, /usr/bin/chromium by default) and playwright-core
// (`npm install playwright-core`; NODE_PATH or a node_modules above this file). Fails on any error in the console, on any request but for
// the files themselves, on a body that scrolls sideways, on a page without bars, and on filters that do not filter. With SHOTS,
// screenshots of both themes at laptop and phone width are written there, to be looked at.
import { createRequire } from "node:module";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, shots] = process.argv.slice(2);
if (!folder) {
  console.error("usage: node tests/acceptance/page.mjs FOLDER [SHOTS]");
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

async function open(file, { theme, width }) {
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

// A page is as wide as the window; what is wider scrolls in a container of its own. Shares have bars.
async function look({ page, where }) {
  const layout = await page.evaluate(() => ({
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    bars: document.querySelectorAll(".numbers td[style]").length,
  }));
  expect(layout.wide <= 0, `${where}: the body scrolls sideways by ${layout.wide} px`);
  expect(layout.bars > 0, `${where}: no bar under a figure`);
}

// Every answer leads to the very case on its cell's own page, which is there.
async function browse({ page, where }) {
  await page.locator("details.more").last().evaluate((more) => { more.open = true; });
  const links = await page.locator("a[href*='report.html']").evaluateAll((found) => found.map((link) => link.getAttribute("href")));
  for (const link of links) expect(existsSync(join(folder, link.split("#")[0])), `${where}: ${link} is not there`);
  const cases = links.filter((link) => link.includes("#"));
  expect(cases.length > 0, `${where}: no item is listed`);
  const whole = await open(join(folder, cases[0].split("#")[0]), { theme: "light", width: 1280 });
  await whole.page.evaluate((hash) => { location.hash = hash; }, cases[0].split("#")[1]);
  await whole.page.waitForTimeout(100);
  expect((await whole.page.locator("details.case[open]").count()) === 1, `${where}: ${cases[0]} opens no case`);
  await whole.context.close();
}

// The chips of a run's page.
async function filter({ page, where }) {
  const cases = () => page.locator("details.case:visible").count();
  const all = await cases();
  for (const chip of await page.locator(".chip:has(input:enabled)").all()) {
    const count = Number(await chip.locator("b").textContent());
    await chip.locator("span").click();
    expect((await cases()) === count, `${where}: "${await chip.textContent()}" shows ${await cases()}`);
  }
  await page.locator(".chip").first().locator("span").click();
  expect((await cases()) === all, `${where}: "all" does not show all`);
  await page.locator("details.case summary").first().click();
}

const report = join(folder, "report.html");
const cell = join(folder, "cells", readdirSync(join(folder, "cells")).sort()[0], "report.html");
if (shots) mkdirSync(shots, { recursive: true });
for (const theme of ["light", "dark"]) {
  for (const width of [1280, 390]) {
    for (const [name, file, use] of [["recipe", report, browse], ["run", cell, filter]]) {
      const opened = await open(file, { theme, width });
      await look(opened);
      await use(opened);
      await look(opened);
      if (shots) await opened.page.screenshot({ path: join(shots, `${name}-${theme}-${width}.png`), fullPage: true });
      await opened.context.close();
    }
  }
}
await browser.close();
for (const failure of failures) console.error(failure);
console.log(failures.length === 0 ? "the pages hold" : `${failures.length} failures`);
process.exit(failures.length === 0 ? 0 : 1);
