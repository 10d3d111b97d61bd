// One moment: the icicle of a thread's calls around it, and what every thread was doing.

import { BEGINS, cpuBefore, ENDS, threadTitle } from "./data.js";
import { Painter, ROW } from "./draw.js";
import { stackBefore } from "./stats.js";
import { count, duration, share } from "./text.js";
import { fitCanvas, View } from "./view.js";

/** The frames of THREAD that are open at TIME, the outermost first. */
export function stackAt(thread, time) {
	return stackBefore(thread.frames, time + 1e-6);
}

/** What THREAD was doing at TIME, in words. */
export function stateAt(thread, time) {
	const gap = thread.gaps.find((g) => g.start <= time && time < g.end);

	if (gap)
		return `gap: ${gap.name}, for ${duration(gap.end - gap.start)}`;
	const run = thread.runs.find((r) => r.start <= time && time < r.end);

	if (run)
		return `on CPU ${run.cpu} since ${duration(time - run.start)}`;
	const off = thread.offs.list[thread.offs.row.at(time)];

	if (off)
		return `${off.text === "unknown" ? "not on a CPU" : off.text} since ${duration(time - off.start)}`;
	return thread.runs.length > 0 ? "not on a CPU yet" : "no switches recorded";
}

function item(term, text) {
	const dt = document.createElement("dt"), dd = document.createElement("dd");

	dt.textContent = term;
	dd.textContent = text;
	return [dt, dd];
}

/** The facts of a call as [term, text] pairs. */
export function callFacts(app, thread, i) {
	const { frames } = thread, f = app.trace.functions[frames.func[i]];
	const start = frames.start[i], end = frames.end[i], wall = end - start;
	const cpu = cpuBefore(thread, end) - cpuBefore(thread, start);
	const within = (width) => width > 0 ? `, within ${duration(width)}` : "";
	const early = frames.startWidth[i], late = frames.endWidth[i];
	let children = 0;

	for (let k = i + 1; k < frames.n && frames.depth[k] > frames.depth[i]; k++)
		children += frames.parent[k] === i ? 1 : 0;
	return [
		["function", f.name],
		["file", [f.image, f.address].filter(Boolean).join(" ") || "unknown"],
		["source", f.file ? `${f.file}:${f.line}` : "unknown"],
		["thread", `${threadTitle(thread)}, CPU ${frames.cpu[i]}`],
		["begin", `${app.whenExactly(start)} (${BEGINS[frames.kind[i] & 15] ?? "?"}${within(early)})`],
		["end", `${app.whenExactly(end)} (${ENDS[frames.kind[i] >> 4] ?? "?"}${within(late)})`],
		["wall time", duration(wall) + (early + late > 0
			? ` (${duration(Math.max(wall - early, 0))} to ${duration(wall + late)})` : "")],
		["CPU time", `${duration(cpu)} (${share(cpu, wall)})`],
		["off CPU", duration(wall - cpu)],
		["instructions", `${count(frames.insns[i])} of its own`],
		["calls made", count(children)],
		["depth", String(frames.depth[i])],
	];
}

/** The tab of the chosen call and moment. */
export class Stacks {
	constructor(app, canvas, facts, threads) {
		Object.assign(this, { app, canvas, facts, threads, key: "" });
		this.view = new View(app.trace.length);
	}

	draw() {
		const { app } = this, { select } = app, time = app.moment();
		const key = `${time} ${select.thread?.number} ${select.frame} ${app.theme}`;

		if (key !== this.key && select.thread) {
			this.key = key;
			this.frameView(select, time);
			this.writeFacts(select, time);
			this.writeThreads(time);
		}
		this.drawIcicle(time);
	}

	// Wide enough for the innermost call that has some length, and for what is around it.
	frameView({ thread, frame }, time) {
		const innermost = frame >= 0 ? frame : stackAt(thread, time).at(-1);
		const span = innermost === undefined ? this.app.view.span : Math.max(thread.frames.duration(innermost), 20) * 4;
		const middle = frame >= 0 ? (thread.frames.start[frame] + thread.frames.end[frame]) / 2 : time;

		this.view.show(middle - span / 2, middle + span / 2);
	}

	drawIcicle(time) {
		const { app, view } = this, { ctx, width, height } = fitCanvas(this.canvas);
		const painter = new Painter(ctx, app, 0, width, height), { thread } = app.select;

		ctx.fillStyle = app.colors.back;
		ctx.fillRect(0, 0, width, height);
		view.width = Math.max(width, 1);
		if (!thread)
			return;
		const rows = app.timeline.rows(thread), room = Math.floor((height - ROW) / ROW);
		const last = Math.max(stackAt(thread, time).length + 2, app.select.frame < 0 ? 0
			: thread.frames.depth[app.select.frame] + 3);
		const skip = Math.max(0, Math.min(last, rows.length) - room);

		this.skip = skip;
		rows.slice(skip, skip + room).forEach((row, i) =>
			painter.row(row, thread.frames, view, ROW + i * ROW));
		painter.labelLater(`${threadTitle(thread)}, ${duration(view.span)} around ${app.when(time)}${
			skip > 0 ? `, ${skip} outer calls above` : ""}`, 0, width, ROW / 2, app.colors.faint);
		painter.finish();
		ctx.fillStyle = app.colors.accent;
		ctx.fillRect(view.x(time), ROW, 1, height);
	}

	/** The frame at a place of the icicle, or -1. */
	at(x, y) {
		const { thread } = this.app.select, depth = Math.floor(y / ROW) - 1 + (this.skip ?? 0);
		const row = thread && y >= ROW ? this.app.timeline.rows(thread)[depth] : undefined;
		const i = row ? row.at(this.view.time(x)) : -1;

		return i >= 0 ? row.ids[i] : -1;
	}

	writeFacts({ thread, frame }, time) {
		const pairs = frame >= 0 ? callFacts(this.app, thread, frame)
			: [["moment", time === this.app.trace.trigger ? "the trigger" : this.app.whenExactly(time)],
				["thread", threadTitle(thread)], ["", "Click a call in the timeline, or press \u2193, to see its figures."]];

		this.facts.replaceChildren(...pairs.flatMap(([term, text]) => item(term, text)));
	}

	writeThreads(time) {
		this.threads.replaceChildren(...this.app.trace.threads.slice(0, 200).map((thread) => {
			const li = document.createElement("li"), button = document.createElement("button");
			const stack = stackAt(thread, time).map((i) => this.app.trace.functions[thread.frames.func[i]].name);
			const path = document.createElement("span"), state = document.createElement("span");

			state.className = "state";
			state.textContent = stateAt(thread, time);
			path.className = "stack";
			button.textContent = threadTitle(thread);
			button.addEventListener("click", () => this.app.chooseMoment(thread, time));
			path.textContent = stack.slice(-12).reverse().join(" \u2039 ");
			li.append(button, " ", state, path);
			return li;
		}));
	}
}
