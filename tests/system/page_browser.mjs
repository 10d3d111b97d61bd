// The page of `ptsnapctl view' in a browser: page_browser.mjs BROWSER PAGE DIRECTORY. Says TAP.
//
// PAGE is made of make_calls.py's stream. A stream has no suspects: they are added to the page's data here.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { deflateSync, inflateSync } from "node:zlib";

import { Browser } from "../support/browser.mjs";
import { parse } from "../../ctl/page/web/data.js";
import { duration, exact } from "../../ctl/page/web/text.js";
import * as r from "../unit/ctl/page/web/records.mjs";

const [, , program, made, directory] = process.argv;
const HOSTILE = "</script><script>document.title='owned'</script>";

const html = readFileSync(made, "utf8");
const block = /id="data">([^<]*)</.exec(html)[1];
const records = inflateSync(Buffer.from(block, "base64"));
const trace = parse(new Uint8Array(records));
const nameOf = ({ frames }, i) => trace.functions[frames.func[i]].name;

const half = Math.floor(trace.length / 2), quarter = Math.floor(trace.length / 4);
// The longest call, of those within a quarter of the time, of the thread with most calls; and a late one
// of another thread.
const [first, second] = trace.threads;
const slow = longest(first), late = second.frames.n - 20;

function longest({ frames }) {
	let best = -1; // has no duration

	for (let i = 0; i < frames.n; i++)
		if (frames.whole(i) && frames.duration(i) < quarter && !(frames.duration(i) < frames.duration(best)))
			best = i;
	return best;
}

function pageWithSuspects() {
	const at = (thread, i) => ({ from: thread.frames.start[i], to: thread.frames.end[i], tid: thread.tid });
	const more = r.bytes(r.occasion(`host ${HOSTILE}`), r.looked(),
		r.suspect("slow-calls", `the first ${HOSTILE}`, nameOf(first, slow), at(first, slow)),
		r.suspect("long-call", "the second", nameOf(second, late), at(second, late)),
		r.suspect("gap", "the third, of another time", "", { from: trace.length * 2, to: trace.length * 3, cpu: 1 }),
		r.suspect("frequency", "the fourth", "", { from: half, to: half + quarter, cpu: 6 }));
	const path = `${directory}/suspects.html`;

	writeFileSync(path, html.replace(block, `\n${deflateSync(Buffer.concat([records, more])).toString("base64")}\n`));
	return path;
}

const browser = new Browser(program, `${directory}/profile`);
const fact = (name) => `[...document.querySelectorAll("#facts dt")].find((d) => d.textContent === ${JSON.stringify(name)})?.nextSibling.textContent`;
const RANGE = 'document.getElementById("range").textContent';
const isReady = 'document.documentElement?.dataset.ready === "yes"';

async function open(path) {
	await browser.open(path);
	await browser.until(isReady);
}

async function changed(expression, before) {
	return browser.until(`(${expression}) !== ${JSON.stringify(before)} && (${expression})`);
}

// Presses KEY and returns what EXPRESSION becomes.
async function press(key, expression) {
	const before = await browser.get(expression);

	await browser.key(key);
	return changed(expression, before);
}

const CASES = {
	async "the page opens, says what it has, and asks for nothing"() {
		await open(made);
		assert.match(await browser.text("size"), /^5,000 calls, 8 threads, 8 CPUs, /);
		assert.equal(await browser.text("notes"), "");
		assert.equal(await browser.text("occasion"), "");
		assert.match(await browser.text("suspects-info"), /^Nobody looked/);
		assert.equal(await browser.get('document.querySelectorAll("script").length'), 1);
	},
	async "the head is one line, and each colour of the legend is one"() {
		for (const width of [1280, 1920]) {
			await browser.send("Emulation.setDeviceMetricsOverride", { width, height: 900, deviceScaleFactor: 1, mobile: false });
			await browser.until(`innerWidth === ${width} && document.getElementById("overview").width === ${width}`);
			const [height, right, over] = await browser.get(`(() => { const h = document.querySelector("header"), t = document.getElementById("theme");
				return [h.clientHeight, t.getBoundingClientRect().right, document.documentElement.scrollWidth]; })()`);

			assert.ok(height < 45 && right <= width && over === width, `${height} ${right} ${over} of ${width}`);
		}
		assert.equal(await browser.get(`(() => { const all = [...document.querySelectorAll("#legend .swatch")].map((s) => {
			const { backgroundColor, backgroundImage, borderLeft } = getComputedStyle(s); return backgroundColor + backgroundImage + borderLeft; });
			return new Set(all).size === all.length && all.length > 9 && !all.some((s) => s.startsWith("rgba(0, 0, 0, 0)none")); })()`), true);
	},
	async "before a call is chosen, the moment is that of the trigger"() {
		await browser.until(`${fact("moment")} === "the trigger"`);
	},
	async "keys zoom and move"() {
		const whole = await browser.get(RANGE), zoomed = await press("w", RANGE);

		await press("d", RANGE);
		await press("a", RANGE);
		await press("s", RANGE);
		await browser.key("0");
		await browser.until(`${RANGE} === ${JSON.stringify(whole)}`);
		assert.notEqual(zoomed, whole);
	},
	async "keys hide and show CPUs and calls of threads"() {
		const height = 'document.getElementById("spacer").offsetHeight', whole = await browser.get(height);

		for (const key of ["c", "E"]) {
			assert.ok(await press(key, height) < whole, key);
			assert.equal(await press(key, height), whole, key);
		}
	},
	async "keys choose calls"() {
		const { frames } = first;
		const isFollowed = (i) => frames.depth.indexOf(frames.depth[i], i + 1) < frames.n && frames.depth.indexOf(frames.depth[i], i + 1) > 0;
		let call = 1;

		// From the first call down to one that has a neighbour.
		await browser.key("1");
		await browser.key("ArrowDown");
		await isCall(first, 0);
		await browser.key("ArrowDown");
		await isCall(first, 1);
		for (; !isFollowed(call); call++) {
			assert.equal(frames.parent[call + 1], call);
			await browser.key("ArrowDown");
			await isCall(first, call + 1);
		}
		await browser.key("ArrowRight");
		await isCall(first, frames.depth.indexOf(frames.depth[call], call + 1));
		await browser.key("ArrowLeft");
		await isCall(first, call);
		await press("f", RANGE);
		await browser.key("ArrowUp");
		await isCall(first, frames.parent[call]);
		await press("j", fact("thread"));
		await press("k", fact("thread"));
	},
	async "a search finds calls, and n goes through them"() {
		const wanted = trace.threads.reduce((n, { frames }) => n + frames.func.subarray(0, frames.n)
			.reduce((sum, f) => sum + (trace.functions[f].name.includes("lock_") ? 1 : 0), 0), 0);

		await browser.key("/");
		await browser.type("lock_");
		await browser.until(`document.getElementById("found").textContent === "${wanted} calls"`);
		await browser.key("Enter");
		await browser.until(`${fact("function")}?.includes("lock_")`);
		const begin = await browser.get(fact("begin"));

		await press("n", fact("begin"));
		await browser.key("N");
		await browser.until(`${fact("begin")} === ${JSON.stringify(begin)}`);
		await browser.key("Escape");
		await browser.until('document.getElementById("find").value === ""');
	},
	async "flame graph and functions have what the stream has"() {
		await browser.key("0");
		await browser.key("2");
		await browser.until('document.getElementById("flame-info").textContent !== ""');
		await browser.key("3");
		await browser.until('document.querySelectorAll("#functions tbody tr").length > 0');
		const shown = await browser.get('[...document.querySelectorAll("#functions tbody tr")].map((tr) => [tr.cells[0].textContent, tr.cells[1].textContent])');
		const calls = new Map();

		for (const { frames } of trace.threads)
			for (const f of frames.func.subarray(0, frames.n))
				calls.set(trace.functions[f].name, (calls.get(trace.functions[f].name) ?? 0) + 1);
		assert.equal(shown.length, calls.size);
		for (const [name, n] of shown)
			assert.equal(n, String(calls.get(name)), name);
	},
	async "the mouse chooses a call, selects a time and zooms"() {
		await browser.key("1");
		await browser.key("0");
		const { x, y, height } = await browser.get('(({ x, y, height }) => ({ x, y, height }))(document.getElementById("timeline").getBoundingClientRect())');
		const places = [700, 500, 900, 300, 1100].flatMap((dx) =>
			Array.from({ length: Math.floor(height / 8) - 4 }, (_, i) => [x + dx, y + 30 + 8 * i]));
		let tip = "", place;

		// The first place below the ruler where the mouse finds a call.
		while (!/\d [mun]?s at [+-]/.test(tip)) {
			place = places.shift();
			assert.ok(place, "no call under the mouse");
			await browser.mouse("mouseMoved", ...place);
			tip = await browser.get('document.getElementById("tip").hidden ? "" : document.getElementById("tip").textContent');
		}
		await browser.click(...place);
		await browser.until(`${fact("function")} === ${JSON.stringify(tip.split("\n")[0])}`);
		await browser.mouse("mousePressed", x + 500, y + 8, { button: "left", clickCount: 1 });
		await browser.mouse("mouseMoved", x + 800, y + 8, { button: "left", buttons: 1 });
		await browser.mouse("mouseReleased", x + 800, y + 8, { button: "left", clickCount: 1 });
		await browser.key("3");
		await browser.until('document.getElementById("functions-info").textContent.includes("selected time")');
		const before = await browser.get(RANGE);

		await browser.mouse("mouseWheel", x + 700, y + 100, { deltaX: 0, deltaY: -200, modifiers: 2 });
		await changed(RANGE, before);
	},
	async "both themes draw calls"() {
		const colors = `(() => { const c = document.getElementById("timeline");
			const p = new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer);
			const n = new Map(); for (const v of p) n.set(v, (n.get(v) ?? 0) + 1);
			return [n.size, [...n].sort((a, b) => b[1] - a[1])[0][0] & 255]; })()`;
		const theme = 'document.documentElement.dataset.theme';

		await browser.key("0");
		for (let k = 0; k < 2; k++) {
			const now = await press("t", theme);
			const [n, back] = await browser.until(`(() => { const v = ${colors}; return ${
				now === "dark" ? "v[1] < 64" : "v[1] > 192"} && v; })()`);

			assert.ok(n > 20, `${n} colours on ${back}, ${now}`);
		}
	},
	async "names are no HTML, and the policy refuses script"() {
		assert.match(await browser.get("document.title"), / - ptsnap$/);
		assert.equal(await browser.get(`(() => { try { document.createElement("div").innerHTML = "<b>x</b>"; return "made"; }
			catch { return "refused"; } })()`), "refused");
		await browser.get(`(() => { const i = new Image(); i.src = "file:///none.png"; document.body.append(i); })()`);
		while (!browser.refused.some((text) => text.includes("Content Security Policy") && text.includes("none.png")))
			await browser.get("new Promise((done) => setTimeout(done, 5))");
		assert.deepEqual(browser.errors, []);
		assert.deepEqual(browser.requests, []);
	},
	async "a link to a part of the time shows it"() {
		await open(`${made}#1000-2000`);
		assert.match(await browser.get(RANGE), new RegExp(`\\(${duration(1100)}\\)$`));
	},
	async "suspects are links to their place, by keys"() {
		await open(pageWithSuspects());
		assert.equal(await browser.text("suspects-tab"), "What stands out (4)");
		assert.equal(await browser.text("occasion"), `host ${HOSTILE}`);
		assert.equal(await browser.get('document.querySelectorAll("#suspects a").length'), 3);
		assert.match(await browser.get('document.querySelectorAll("#suspects li")[2].textContent'), /not in this page/);
		assert.ok((await browser.get('document.querySelector("#suspects a").textContent')).includes(HOSTILE));
		await press("g", RANGE);
		await showsSuspect(first, slow);
		await press("g", RANGE);
		await showsSuspect(second, late);
		await press("G", RANGE);
		await showsSuspect(first, slow);
		// Tab and Enter reach a link like any other.
		await browser.get('document.querySelectorAll("#suspects a")[0].focus()');
		await browser.key("Tab");
		await press("Enter", RANGE);
		await showsSuspect(second, late);
	},
	async "suspects are links to their place, by mouse and by address"() {
		await browser.key("4");
		await browser.until('!document.getElementById("tab-suspects").hidden');
		const before = await press("0", RANGE);

		await browser.click(...await browser.middle("#suspects li:nth-child(2) a"));
		await changed(RANGE, before);
		await showsSuspect(second, late);
		await browser.get('location.hash = "#suspect-1"');
		await showsSuspect(first, slow);
		await browser.key("4");
		await browser.click(...await browser.middle("#suspects li:nth-child(4) a"));
		await browser.until(`${RANGE}.includes("(${duration(quarter * 1.1)})")`);
		assert.deepEqual(browser.errors, []);
		assert.equal(await browser.get("document.title.includes('owned')"), false);
	},
};

// Waits until call I of THREAD is the chosen one.
async function isCall({ frames, tid }, i) {
	await browser.until(`${fact("function")} === ${JSON.stringify(nameOf({ frames }, i))} &&
		${fact("depth")} === "${frames.depth[i]}" && ${fact("thread")}.includes("/${tid},") &&
		${fact("begin")}.startsWith(${JSON.stringify(when(frames.start[i]))})`);
}

// A time as the page says it.
function when(time) {
	const d = time - trace.trigger;

	return `${d >= 0 ? "+" : "-"}${exact(Math.abs(d))} `;
}

// The time of the suspect's call is what is seen, with a margin; thread and call are chosen and in view.
async function showsSuspect(thread, i) {
	const span = duration(Math.max(thread.frames.duration(i) * 1.1, 20));

	await browser.until(`${RANGE}.endsWith(${JSON.stringify(`(${span})`)})`);
	await browser.key("1");
	await isCall(thread, i);
	await browser.key("4");
}

const names = Object.keys(CASES);
let failed = 0;

console.log(`1..${names.length}`);
for (const [i, name] of names.entries()) {
	let timer;
	const late = new Promise((_, reject) => {
		timer = setTimeout(() => reject(new Error(`no end within 120 s, waits for ${browser.awaits}`)), Number(process.env.LATE ?? 120000));
	});

	try {
		await Promise.race([CASES[name](), late]);
		console.log(`ok ${i + 1} - ${name}`);
	} catch (error) {
		failed++;
		console.log(`not ok ${i + 1} - ${name}\n${String(error.stack).replace(/^/gm, "# ")}`);
	}
	clearTimeout(timer);
}
await browser.end();
process.exit(failed > 0 ? 1 : 0);
