// bench_page.mjs PTSNAPCTL [CALLS]: how long the page of `ptsnapctl view' needs to open in Chromium, and how long its
// frames take while it scrolls, moves and zooms. CALLS are those of make_calls.py, 1,000,000 unless given.

import { execFileSync } from "node:child_process";
import { mkdtempSync, openSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { Browser } from "../support/browser.mjs";

const [, , ptsnapctl, calls = "1000000"] = process.argv;
const BROWSERS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];
const TIMES = 3;
// What is done before each frame; I counts the frames.
const MOTIONS = {
	"nothing": "",
	"scroll": "scroller.scrollTop += i < 90 ? 12 : -12",
	"move": "wheel(i < 90 ? 20 : -20, 0, false)",
	"zoom in and out": "wheel(0, i < 90 ? -15 : 15, true)",
	"scroll and move": "scroller.scrollTop += 12; wheel(10, 0, false)",
};

function findBrowser() {
	return BROWSERS.find((name) => {
		try {
			execFileSync(name, ["--version"], { stdio: "ignore" });
			return true;
		} catch {
			return false;
		}
	});
}

function makePage(directory) {
	const stream = join(directory, "a.calls"), page = join(directory, "a.html");
	const generator = join(dirname(fileURLToPath(import.meta.url)), "../support/make_calls.py");

	execFileSync("python3", ["-B", generator, calls], { stdio: ["ignore", openSync(stream, "w"), "inherit"] });
	execFileSync(ptsnapctl, ["view", "-q", "-o", page, stream]);
	return page;
}

// The milliseconds of 180 frames, sorted.
function frames(browser, motion) {
	return browser.get(`(async () => {
		const scroller = document.getElementById("scroll"), canvas = document.getElementById("timeline");
		const { x, y } = canvas.getBoundingClientRect(), next = () => new Promise(requestAnimationFrame), times = [];
		const wheel = (deltaX, deltaY, ctrlKey) => canvas.dispatchEvent(new WheelEvent("wheel",
			{ clientX: x + 900, clientY: y + 100, deltaX, deltaY, ctrlKey, bubbles: true, cancelable: true }));
		let last = await next();

		for (let i = 0; i < 180; i++) {
			${motion};
			const now = await next();

			times.push(now - last);
			last = now;
		}
		return times.sort((a, b) => a - b);
	})()`);
}

// The milliseconds of processor time of the process that shows a page: the busiest one.
async function processorTime(browser) {
	const { processInfo } = await browser.send("SystemInfo.getProcessInfo");

	return 1000 * Math.max(...processInfo.filter(({ type }) => type === "renderer").map(({ cpuTime }) => cpuTime));
}

// Opens PAGE in a browser that runs already, and says the milliseconds up to each step.
async function open(browser, page, empty) {
	await browser.open(empty);
	await browser.open(page);
	await browser.until('document.documentElement?.dataset.ready === "yes"');
	return { processor: Math.round(await processorTime(browser)),
		...await browser.get('Object.fromEntries(performance.getEntriesByType("mark").map((m) => [m.name, Math.round(m.startTime)]))') };
}

const program = findBrowser(), directory = mkdtempSync("/tmp/ptsnap-bench-page.");

if (!program) {
	console.log("no Chromium");
	process.exit(77);
}
const page = makePage(directory), empty = join(directory, "empty.html");

writeFileSync(empty, "<!doctype html><title>empty</title>");
console.log(`page of ${calls} calls: ${(statSync(page).size / 2 ** 20).toFixed(1)} MiB`);
for (let i = 0; i < TIMES; i++) {
	const browser = new Browser(program, join(directory, `profile${i}`));
	const { begin, unpacked, parsed, ready, processor } = await open(browser, page, empty);

	console.log(`open: script after ${begin} ms, unpacked ${unpacked}, parsed ${parsed}, drawn ${ready} ms; ${
		processor} ms of processor time`);
	for (const [name, motion] of Object.entries(i < TIMES - 1 ? {} : MOTIONS)) {
		const times = await frames(browser, motion), at = (p) => times[Math.floor((times.length - 1) * p)].toFixed(1);
		const rate = 1000 * times.length / times.reduce((sum, t) => sum + t, 0);

		console.log(`${name}: ${rate.toFixed(1)} frames/s; ms of a frame: median ${at(0.5)}, p90 ${at(0.9)}, p99 ${at(0.99)}, max ${at(1)}`);
	}
	await browser.end();
}
rmSync(directory, { recursive: true });
