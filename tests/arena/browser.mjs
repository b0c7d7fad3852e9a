// A person in front of the page of the arena: joins, walks, fights, trades, drinks, takes gold out of
// a mail, changes the map, looks at the leaderboard. Its argument is the page's address. Exit code 0: all of it worked.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [url, screenshot] = process.argv.slice(2);
const profile = await mkdtemp(join(tmpdir(), "arena-browser-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.ZEZE_CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});
try {
  const page = await context.newPage();
  page.on("console", (message) => console.log(`page: ${message.text()}`));
  page.on("pageerror", (error) => console.log(`page failed: ${error}`));
  await page.goto(url);
  await page.fill("#name", "visitor");
  await page.click("#join button");

  const eventually = { timeout: 30_000 };
  const says = async (selector, pattern, where = page) => {
    await where.waitForFunction(
      ([where, source]) => new RegExp(source).test(document.querySelector(where)?.textContent ?? ""),
      [selector, pattern],
      eventually,
    );
    console.log(`${selector}: ${(await where.textContent(selector))?.trim()}`);
  };
  await says("#state", "^ready$");
  await says("#gold", "^1000$");
  await says("#server", "^[34]$");

  // Walking shows on the map: the own dot is where the click was.
  await page.locator("#map").click({ position: { x: 250, y: 250 } });
  await page.waitForFunction(() => {
    const canvas = document.querySelector("#map");
    const [r, g, b] = canvas.getContext("2d").getImageData(252, 252, 1, 1).data;
    return r > 200 && g > 150 && b < 150;
  }, undefined, eventually);
  console.log("walked to the middle of the map");

  // Fights, until one was fought: somebody must be near.
  const end = Date.now() + 30_000;
  for (let map = 1; ; map = (map % 8) + 1) {
    await page.click("#fight");
    const fought = await page
      .waitForFunction(() => /You fought/.test(document.querySelector("#log").textContent), undefined, {
        timeout: 1500,
      })
      .catch(() => undefined);
    if (fought !== undefined) break;
    if (Date.now() > end) throw new Error("nobody fought");
    await page.selectOption("#maps", `${map}`);
    await page.waitForTimeout(300);
  }
  await says("#log", "You fought and (won|lost)\\.");
  await page.click("#trade");
  await says("#log", "You bought (swords|shields|potions|scrolls) from bot-|It did not work");

  // What a potion does wears off; with the next day, a quarter of a minute, comes a mail with gold.
  await page.click("#drink");
  await says("#buff", "^\\+20 %$");
  await says("#buff", "^none$");
  await says("#mails", "Day \\d+.*Take \\d+ gold");
  const take = page.locator("#mails button", { hasText: "Take" });
  await take.first().click();
  await says("#log", "You took what came with a mail");
  await page.locator("#mails button", { hasText: "Delete" }).first().click();
  await says("#board", "bot-\\d+: \\d+");
  if (screenshot !== undefined) await page.screenshot({ path: screenshot });

  // The same player in a second window: the first one says so and stays away, until it is asked to
  // come back; then it is the other one's turn.
  const second = await context.newPage();
  await second.goto(url);
  await second.fill("#name", "visitor");
  await second.click("#join button");
  await says("#state", "^ready$", second);
  await says("#state", "^kicked$");
  await page.waitForSelector("#play-here", { state: "visible" });
  await page.click("#play-here");
  await says("#state", "^ready$");
  await says("#state", "^kicked$", second);
  if ((await page.textContent("#state")) !== "ready") throw new Error("they kick each other");
  console.log("the page was played");
} finally {
  await context.close();
  await rm(profile, { recursive: true, force: true });
}
