// The page: reads the block, holds what is chosen and shown, and draws when something changed.

import { parse, threadTitle, unpack } from "./data.js";
import { $ } from "./dom.js";
import { Flame } from "./flame.js";
import { Functions } from "./functions.js";
import { listen, writeHelp } from "./keys.js";
import { Pointer } from "./pointer.js";
import { Search } from "./search.js";
import { Stacks, stackAt } from "./stacks.js";
import { Suspects } from "./suspects.js";
import { count, duration, exact, plural } from "./text.js";
import { Timeline } from "./timeline.js";
import { Colors, hueOf, View } from "./view.js";

class App {
	constructor(trace) {
		this.trace = trace;
		trace.hues = Uint8Array.from(trace.functions, (f) => hueOf(f.image + f.name));
		this.view = new View(trace.length);
		this.select = { thread: trace.threads[0] ?? null, frame: -1 };
		this.range = null;  // { from, to }: the selected time
		this.cursor = null; // the chosen moment
		this.tab = "call";
		this.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
		document.documentElement.dataset.theme = this.theme;
		this.colors = new Colors();
		this.search = new Search(trace);
		this.timeline = new Timeline(this, $("timeline"), $("scroll"), $("spacer"), $("overview"));
		this.stacks = new Stacks(this, $("icicle"), $("facts"), $("threads"));
		this.flame = new Flame(this, $("flame"), $("flame-spacer"), $("flame-info"));
		this.functions = new Functions(this, $("functions"), $("functions-info"));
		this.suspects = new Suspects(this, $("suspects"), $("suspects-info"), $("suspects-tab"));
		this.pending = false;
	}

	/** Draws before the next frame of the screen. */
	changed() {
		if (this.pending)
			return;
		this.pending = true;
		requestAnimationFrame(() => {
			this.pending = false;
			this.draw();
		});
	}

	/** The panel waits until the timeline is at rest. */
	draw() {
		this.timeline.draw();
		clearTimeout(this.resting);
		this.resting = setTimeout(() => this.drawPanel(), 60);
		$("range").textContent = `${this.when(this.view.from)} to ${this.when(this.view.to)} (${duration(this.view.span)})`;
	}

	drawPanel() {
		if (this.tab === "call")
			this.stacks.draw();
		else if (this.tab === "flame")
			this.flame.draw();
		else if (this.tab === "functions")
			this.functions.draw();
	}

	/** A time as people read it: from the trigger, or from the first time. */
	when(time) {
		const zero = this.trace.trigger ?? 0, d = time - zero;

		return `${d >= 0 ? "+" : "-"}${duration(Math.abs(d))}`;
	}

	/** The same to the last digit. */
	whenExactly(time) {
		const d = time - (this.trace.trigger ?? 0);

		return `${d >= 0 ? "+" : "-"}${exact(Math.abs(d))}`;
	}

	/** The moment that the first tab shows: the chosen one, or that of the trigger if it is to be seen. */
	moment() {
		const { thread, frame } = this.select;

		const { trigger } = this.trace, { from, to } = this.view;

		if (this.cursor !== null)
			return this.cursor;
		if (frame >= 0)
			return thread.frames.start[frame];
		return trigger !== null && from <= trigger && trigger <= to ? trigger : (from + to) / 2;
	}

	/** What flame graph and table are about: the selected time, or else the whole window. */
	scope() {
		const one = $("scope-thread").value === "one" && this.select.thread;
		const { from, to } = $("scope-time").value === "view" ? this.view
			: this.range ?? { from: 0, to: this.trace.length };
		const what = $("scope-time").value === "view" ? "visible time" : this.range ? "selected time" : "whole window";

		return {
			threads: one ? [one] : this.trace.threads, from, to,
			key: `${one ? one.number : "all"} ${from} ${to}`,
			text: `${one ? threadTitle(one) : "all threads"}, ${what} of ${duration(to - from)}`,
		};
	}

	choose(thread, frame, reveal) {
		this.select = { thread, frame };
		this.cursor = null;
		if (reveal) {
			this.view.reveal(thread.frames.start[frame], thread.frames.end[frame]);
			this.timeline.reveal(thread, frame);
		}
		$("live").textContent = `${this.trace.functions[thread.frames.func[frame]].name}, ${duration(thread.frames.duration(frame))}`;
		this.changed();
	}

	chooseMoment(thread, time) {
		this.select = { thread, frame: stackAt(thread, time).at(-1) ?? -1 };
		this.cursor = time;
		this.timeline.reveal(thread, this.select.frame);
		this.changed();
	}

	/** Shows a place as suspects have it: its time selected, its thread and call chosen, all in view. */
	showPlace({ from, to, thread, frame, cpu }) {
		const long = from !== null && to > from;

		this.range = long ? { from, to } : null;
		this.cursor = from !== null && !long ? from : null;
		if (thread) {
			this.select = { thread, frame };
			this.timeline.reveal(thread, frame);
		} else if (cpu !== null) {
			this.timeline.revealCpu(cpu);
		}
		if (long)
			this.show(from, to);
		else if (from !== null)
			this.view.reveal(from, from);
		$("live").textContent = [thread && threadTitle(thread),
			frame >= 0 && this.trace.functions[thread.frames.func[frame]].name,
			from !== null && this.when(from)].filter(Boolean).join(", ");
		this.changed();
	}

	zoom(factor, anchor) {
		this.view.zoom(factor, anchor ?? this.anchor());
		this.changed();
	}

	// The chosen call stays in place while keys zoom, if it is to be seen.
	anchor() {
		const time = this.select.frame >= 0 || this.cursor !== null ? this.moment() : NaN;

		return time >= this.view.from && time <= this.view.to ? time : undefined;
	}

	pan(share) {
		this.view.pan(this.view.span * share);
		this.changed();
	}

	show(from, to) {
		const margin = (to - from) * 0.05;

		this.view.show(from - margin, to + margin);
		this.changed();
	}

	showAll() {
		this.show(0, this.trace.length);
	}

	showChosen() {
		const { thread, frame } = this.select;

		if (frame >= 0)
			this.show(thread.frames.start[frame], thread.frames.end[frame]);
		else if (this.range)
			this.show(this.range.from, this.range.to);
	}

	/** The neighbour of the same depth; without a chosen call, the first one that is to be seen. */
	step(direction) {
		const { thread, frame } = this.select;

		if (!thread || thread.frames.n === 0)
			return;
		const row = this.timeline.rows(thread)[frame >= 0 ? thread.frames.depth[frame] : 0];
		const i = frame >= 0 ? row.ids.indexOf(frame) + direction : row.firstAfter(this.view.from);

		if (i >= 0 && i < row.n)
			this.choose(thread, row.ids[i], true);
	}

	up() {
		const { thread, frame } = this.select;

		if (frame >= 0 && thread.frames.parent[frame] >= 0)
			this.choose(thread, thread.frames.parent[frame], true);
	}

	down() {
		const { thread, frame } = this.select;

		if (frame < 0)
			this.step(0);
		else if (frame + 1 < thread.frames.n && thread.frames.parent[frame + 1] === frame)
			this.choose(thread, frame + 1, true);
	}

	stepThread(direction) {
		const { threads } = this.trace;
		const i = threads.indexOf(this.select.thread) + direction;

		if (i < 0 || i >= threads.length)
			return;
		this.select = { thread: threads[i], frame: -1 };
		this.timeline.reveal(threads[i], -1);
		$("live").textContent = threadTitle(threads[i]);
		this.changed();
	}

	fold() {
		const lane = this.select.thread && this.timeline.laneOf(this.select.thread);

		if (lane)
			this.timeline.fold(lane);
		this.changed();
	}

	foldAll() {
		this.timeline.foldAll();
		this.changed();
	}

	foldCpus() {
		this.timeline.foldCpus();
		this.changed();
	}

	rangeOfChosen() {
		const { thread, frame } = this.select;

		if (frame >= 0)
			this.range = { from: thread.frames.start[frame], to: thread.frames.end[frame] };
		this.changed();
	}

	find(text) {
		$("find").value = text;
		this.search.set(text);
		$("found").textContent = this.search.bad ? `not valid: ${this.search.bad}`
			: this.search.active ? `${count(this.search.n)} calls` : "";
		this.changed();
	}

	focusSearch() {
		$("find").focus();
		$("find").select();
	}

	nextHit(direction) {
		const { thread, frame } = this.select;

		if (!this.search.active && frame >= 0)
			this.find(`=${this.trace.functions[thread.frames.func[frame]].name}`);
		const hit = this.search.next(direction, frame >= 0 ? { thread, frame }
			: { time: direction > 0 ? this.view.from : this.view.to });

		if (hit)
			this.choose(hit.thread, hit.frame, true);
	}

	escape() {
		if (this.range)
			this.range = null;
		else if (this.search.text !== "")
			this.find("");
		else {
			this.select.frame = -1;
			this.cursor = null;
		}
		this.changed();
	}

	showTab(name) {
		this.tab = name;
		for (const tab of document.querySelectorAll("[role=tab]")) {
			tab.setAttribute("aria-selected", String(tab.dataset.tab === name));
			$(`tab-${tab.dataset.tab}`).hidden = tab.dataset.tab !== name;
		}
		$("scope").hidden = name !== "flame" && name !== "functions";
		$("weight").hidden = $("flame-info").hidden = name !== "flame";
		this.changed();
	}

	setTheme(theme) {
		this.theme = theme;
		document.documentElement.dataset.theme = theme;
		this.colors.read();
		this.changed();
	}

	toggleTheme() {
		this.setTheme(this.theme === "dark" ? "light" : "dark");
	}
}

// What the page does not show is said at its top.
function remarks(trace) {
	const list = [];

	if (!trace.complete)
		list.push("The stream of calls was cut off: later calls are missing.");
	if (trace.cut > 0)
		list.push(`The decoder left out ${count(trace.cut)} calls.`);
	if (trace.leftOut > 0)
		list.push(`${count(trace.leftOut)} calls are not in this page, because of its limit; take a shorter time.`);
	if (trace.repaired > 0)
		list.push(`${count(trace.repaired)} events had no valid place in time or order.`);
	if (trace.frames === 0)
		list.push("There are no calls.");
	return list.join(" ");
}

// page.html#FROM-TO, in ns since the first time, is a link to a part, and #suspect-N one to a suspect.
function followHash(app) {
	const m = /^#(\d{1,16})-(\d{1,16})$/.exec(location.hash);

	const suspect = /^#suspect-(\d{1,6})$/.exec(location.hash);

	if (m)
		app.show(Number(m[1]), Number(m[2]));
	if (suspect)
		app.suspects.go(Number(suspect[1]) - 1);
}

// Makes the rows of threads that were not seen yet while nobody waits: scrolling to a thread would wait.
function prepare(app) {
	const later = globalThis.requestIdleCallback ?? ((work) => setTimeout(work, 100));
	const thread = app.trace.threads.find((t) => !t.rows);

	if (!thread)
		return;
	later(() => {
		app.timeline.rows(thread);
		prepare(app);
	});
}

async function start() {
	performance.mark("begin");
	const bytes = await unpack($("data").textContent);

	performance.mark("unpacked");
	const trace = parse(bytes);

	performance.mark("parsed");
	const app = new App(trace);

	$("data").remove();
	document.title = `${trace.title} - ptsnap`;
	$("title").textContent = trace.title;
	$("size").textContent = `${plural(trace.frames, "call")}, ${plural(trace.threads.length, "thread")}, ${
		plural(trace.cpus.length, "CPU")}, ${duration(trace.length)}`;
	$("occasion").textContent = trace.occasion;
	$("notes").textContent = remarks(trace);
	writeHelp($("keys"), $("legend"));
	new Pointer(app);
	listen(app, $("find"));
	addEventListener("hashchange", () => followHash(app));
	app.showTab(trace.suspects?.length > 0 ? "suspects" : "call");
	followHash(app);
	app.draw();
	performance.mark("ready");
	document.documentElement.dataset.ready = "yes";
	prepare(app);
	return app;
}

start().catch((error) => {
	$("notes").textContent = `This page cannot be shown: ${error.message}`;
});
