// Uses the page of `wardround serve` in headless Chromium, as a clinician would, and holds axe's rules against every page and state.
//
//     node tests/acceptance/serve.mjs WARDROUND [SHOTS]
//
// WARDROUND is the binary. Tiny synthetic models are made in a temporary folder and served with keys and an audit log. Needs Chromium
// (CHROMIUM names it, /usr/bin/chromium by default), playwright-core and axe-core (`npm install playwright-core axe-core`; NODE_PATH or a
// node_modules above this file). Fails on any error in the console, on any request to another server, on a body that scrolls sideways at
// 320 CSS pixels (which is 1280 at 400 %), on any violation of axe's WCAG 2.2 AA rules, and on markup of a note that comes to life. With
// SHOTS, screenshots are written there, to be looked at.
import { spawn, spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const [binary, shots] = process.argv.slice(2);
if (!binary) {
  console.error("usage: node tests/acceptance/serve.mjs WARDROUND [SHOTS]");
  process.exit(2);
}
const wardround = resolve(binary);
const paths = [process.cwd(), ...(process.env.NODE_PATH || "").split(":").filter(Boolean)];
const require = createRequire(import.meta.url);
const { chromium } = require(require.resolve("playwright-core", { paths }));
const axe = readFileSync(require.resolve("axe-core/axe.min.js", { paths }), "utf8");
if (shots) mkdirSync(shots, { recursive: true });

const failures = [];
const expect = (holds, what) => {
  if (!holds) failures.push(what);
};

const folder = mkdtempSync(join(tmpdir(), "serve-page-"));
const run = (...args) => {
  const done = spawnSync(wardround, args, { cwd: folder, encoding: "utf8" });
  if (done.status !== 0) throw new Error(`${args.join(" ")}: ${done.stderr}`);
  return done.stdout;
};
for (const family of ["gemma3", "llama", "qwen3"]) {
  run("models", "synth", family, family);
}
const key = run("keys", "add", "keys", "ward", "--role", "clinician").match(/wr_\S+/)[0];
const server = spawn(
  wardround,
  [
    "serve", "gemma3", "llama", "qwen3", "--port", "0", "--keys", "keys", "--audit", "audit", "--audit-content", "full",
    "--system", "medguards=gemma3", "--system", "medmad", "--set", "medmad.record_chars=24", "--set", "medmad.max_tokens=48", "--set", "medmad.t_max=0",
    "--set", "medguards.max_tokens=24", "--offline",
  ],
  { cwd: folder },
);
let log = "";
server.stderr.on("data", (text) => (log += text));
const origin = await new Promise((found, lost) => {
  let text = "";
  server.stdout.on("data", (more) => {
    text += more;
    const line = text.match(/listening on (\S+)/);
    if (line) found(line[1]);
  });
  server.on("exit", () => lost(new Error(`the server ended: ${log}`)));
});
for (let tries = 0; tries < 600; tries++) {
  if ((await fetch(`${origin}/health`)).ok) break;
  await new Promise((go) => setTimeout(go, 100));
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox"],
});

async function open({ theme = "light", width = 1280, script = true } = {}) {
  const context = await browser.newContext({
    colorScheme: theme, viewport: { width, height: 900 }, javaScriptEnabled: script, bypassCSP: false,
  });
  const page = await context.newPage();
  const where = `${theme}, ${width}${script ? "" : ", no script"}`;
  page.on("console", (message) => {
    // A wrong key is answered by 401 and a case that there is not by 404, which the browser writes down.
    if (["error", "warning"].includes(message.type()) && !/status of 40[14]/.test(message.text())) {
      failures.push(`${where}: console: ${message.text()}`);
    }
  });
  page.on("pageerror", (error) => failures.push(`${where}: ${error}`));
  page.on("dialog", (dialog) => {
    failures.push(`${where}: a dialog says ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(`${origin}/`)) failures.push(`${where}: asks for ${request.url()}`);
  });
  return { page, context, where };
}

// What must hold of every page in every state.
async function look(view, name) {
  try {
    await hold(view, name);
  } catch (error) {
    // A case may end while its page is looked at, and the page is loaded again.
    if (!/at-work/.test(name) || !/navigat|destroyed/i.test(String(error))) throw error;
  }
}

async function hold({ page, where }, name) {
  const said = await page.locator("body").innerText();
  expect(said.includes("Decision support under evaluation, not for care."), `${where}, ${name}: does not say what it is`);
  expect(/synthetic/i.test(said), `${where}, ${name}: does not say synthetic`);
  expect(/wr_[0-9a-f]{16}/.test(said), `${where}, ${name}: names no fingerprint`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  expect(wide <= 0, `${where}, ${name}: the body scrolls sideways by ${wide} px`);
  // A page without a script cannot be asked, and can store nothing.
  if (!/no script/.test(where)) {
    const stored = await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie]);
    expect(JSON.stringify(stored) === '[0,0,""]', `${where}, ${name}: the page stores ${JSON.stringify(stored)}`);
  }
  if (shots) await page.screenshot({ path: join(shots, `${name}-${where.replace(/\W+/g, "-")}.png`), fullPage: true });
  // axe is a script.
  if (/no script/.test(where)) return;
  // Playwright evaluates in the page's own world without adding a script element, which the policy would refuse.
  await page.evaluate(axe);
  const found = await page.evaluate(() =>
    axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
  );
  for (const violation of found.violations) {
    failures.push(`${where}, ${name}: axe ${violation.id}: ${violation.nodes.map((node) => node.html).join(" | ").slice(0, 300)}`);
  }
}

const NOTE = `Fever for two days. <script>document.title = "owned"; alert(1)</script> Malaria is treated with aspirin.
"><img src=x onerror=alert(2)> Seen on the ward.`;
const QUESTION = "Which vitamin is <b>retinol</b>?\nA) Vitamin A\nB) Vitamin D\nC) Vitamin K";

async function login(view) {
  const { page } = view;
  const answer = await page.goto(`${origin}/`);
  expect(page.url() === `${origin}/login`, `${view.where}: nobody was asked to log in`);
  const policy = answer.headers()["content-security-policy"];
  expect(
    policy === "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    `${view.where}: the policy is ${policy}`,
  );
  for (const [name, value] of [["x-content-type-options", "nosniff"], ["referrer-policy", "same-origin"], ["cache-control", "no-store"]]) {
    expect(answer.headers()[name] === value, `${view.where}: ${name} is ${answer.headers()[name]}`);
  }
  await page.getByLabel("Your key").fill("wr_wrong");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  await look(view, "login-wrong");
  await page.getByLabel("Your key").fill(key);
  await page.keyboard.press("Enter");
  await page.waitForURL(`${origin}/`);
}

// A case from its form to its end. By keyboard alone: the field is reached by tabbing, and the form is sent from its button.
async function work(view, label, button, text) {
  const { page, where } = view;
  await page.goto(`${origin}/`);
  const reach = async (locator, what) => {
    for (let steps = 0; steps < 60; steps++) {
      if (await locator.evaluate((element) => element === document.activeElement)) return;
      await page.keyboard.press("Tab");
    }
    failures.push(`${where}: ${what} is not reached by the keyboard`);
  };
  await reach(page.getByLabel(label), label);
  await page.keyboard.insertText(text);
  await reach(page.getByRole("button", { name: button }), button);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/cases\/[\w-]{43}$/);
  if (!(await page.locator("#feedback").count())) await look(view, `${button}-at-work`.replace(/\W+/g, "-"));
  await page.locator("#feedback").waitFor({ timeout: 120000 });
  expect((await page.title()) !== "owned", `${where}: a note's script ran`);
  expect((await page.locator("main script, main img, main b").count()) === 0, `${where}: a note's markup is alive`);
  expect((await page.locator("#calls > li").count()) > 0, `${where}: no call is listed`);
}

try {
  for (const options of [{}, { theme: "dark", width: 640 }, { width: 320 }, { script: false }]) {
    const view = await open(options);
    const { page, where } = view;
    await login(view);
    const cookies = await view.context.cookies();
    expect(cookies.length === 1 && cookies[0].name === "wr_session" && cookies[0].httpOnly && cookies[0].sameSite === "Strict",
      `${where}: the cookies are ${JSON.stringify(cookies.map(({ value, ...rest }) => rest))}`);
    await look(view, "index");
    await work(view, "The note's text", "Check the note", NOTE);
    expect((await page.locator(".note").innerText()).includes("<script>document.title"), `${where}: the note's markup is not shown as text`);
    await page.locator("#calls summary").first().focus();
    await page.keyboard.press("Enter");
    expect(await page.locator("#calls details").first().evaluate((details) => details.open), `${where}: Enter unfolds no call`);
    await look(view, "note");
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("Save the case as JSON").click()]);
    const saved = JSON.parse(readFileSync(await download.path(), "utf8"));
    expect(saved.status === "done" && saved.item.text === NOTE, `${where}: the exported case is not the note's`);
    await page.getByLabel("Yes").focus();
    await page.keyboard.press("Space");
    await page.getByLabel(/Comment/).fill("A <b>bold</b> comment");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("it is in the audit log").waitFor();
    await work(view, /The question/, "Ask", QUESTION);
    expect((await page.locator(".question").innerText()).includes("<b>retinol</b>"), `${where}: the question's markup is not shown as text`);
    await look(view, "question");
    await page.goto(`${origin}/cases/none`);
    await look(view, "unknown-case");
    await page.getByRole("button", { name: "Log out" }).click();
    await page.waitForURL(`${origin}/login`);
    await page.goto(`${origin}/cases/none`);
    expect(page.url() === `${origin}/login`, `${where}: a page is seen without logging in`);
    await view.context.close();
  }
  const trail = readFileSync(join(folder, "audit/trail.jsonl"), "utf8");
  const events = trail.trim().split("\n").map((line) => JSON.parse(line).event);
  for (const event of ["start", "login", "login_failed", "case", "feedback", "export"]) {
    expect(events.includes(event), `the audit log has no ${event}`);
  }
  for (const [name, text] of [["the audit log", trail], ["stderr", log]]) {
    expect(!text.includes("Malaria") && !text.includes(key), `${name} has the note's text or a key`);
  }
} finally {
  await browser.close();
  server.kill("SIGTERM");
  await new Promise((gone) => server.on("exit", gone));
  rmSync(folder, { recursive: true, force: true });
}
if (failures.length) {
  console.error([...new Set(failures)].join("\n"));
  process.exit(1);
}
console.log("every page and state holds");
