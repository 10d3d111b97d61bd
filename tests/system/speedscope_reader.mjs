// speedscope_reader.mjs BROWSER SPEEDSCOPE PROFILE DIRECTORY: opens PROFILE as the command `speedscope' does, and prints
// its table of functions as JSON: [{ name, self }], in ns with speedscope's two decimals.

import { readFileSync, writeFileSync } from "node:fs";

import { Browser } from "../support/browser.mjs";

const [, , program, speedscope, profile, directory] = process.argv;
const UNITS = { ns: 1, "\u00b5s": 1e3, ms: 1e6, s: 1e9 };

const loader = `${directory}/load.js`;

writeFileSync(loader, `speedscope.loadFileFromBase64("profile", ${JSON.stringify(readFileSync(profile).toString("base64"))})`);
const late = setTimeout(async () => {
	console.error(`no end within 120 s, waits for ${browser.awaits}`);
	await browser.end();
	process.exit(1);
}, 120000);
const browser = new Browser(program, `${directory}/profile`);

await browser.open(`${speedscope}/dist/release/index.html#localProfilePath=${loader}`);
await browser.until('document.body?.innerText.includes("Sandwich")');
await browser.key("3");
await browser.until('document.querySelectorAll("tbody tr, table tr").length > 2');
const rows = await browser.get('[...document.querySelectorAll("table tr")].map((tr) => [...tr.cells].map((td) => td.textContent))');

console.log(JSON.stringify(rows.filter((cells) => / ?\(/.test(cells[0] ?? "")).map(([, self, name]) => {
	const [, digits, unit] = /([\d.]+)(ns|\u00b5s|ms|s) /.exec(self);

	return { name, self: Number(digits) * UNITS[unit] };
})));
clearTimeout(late);
await browser.end();
process.exit(browser.errors.length > 0 ? 1 : 0);
