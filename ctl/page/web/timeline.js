// The timeline: overview, ruler, CPUs and threads, each with what is not known of it.

import { cpuBefore, threadTitle, WHYS } from "./data.js";
import { Painter, ROW } from "./draw.js";
import { makeRows, rowOf } from "./rows.js";
import { count, duration, moment, plural } from "./text.js";
import { fitCanvas, hueOf, View } from "./view.js";

export const GUTTER = 190;
const RULER = 22, HEAD = 18, GAP = 5, FREQUENCY = 14, FIRST_ROWS = 24;
const FEW_CPUS = 4, FIRST_CPUS = 16; // need no head, or are shown at first

const OFF_COLORS = ["wait", "block", "line", "line"]; // by WHYS

const isDark = (gap) => gap.name.toLowerCase().includes("dark");

/** One lane for each CPU and each thread, and one for the head of the CPUs. */
export class Timeline {
	constructor(app, canvas, scroller, spacer, overview) {
		Object.assign(this, { app, canvas, scroller, spacer, overview });
		this.head = { head: true };
		this.cpus = app.trace.cpus.map((cpu) => ({ cpu }));
		this.threads = app.trace.threads.map((thread) => ({ thread, shown: Math.min(thread.frames.depths, FIRST_ROWS) }));
		this.showsCpus = this.cpus.length <= FIRST_CPUS;
		for (const { cpu, thread } of [...this.cpus, ...this.threads]) {
			const owner = cpu ?? thread;

			owner.runRow = rowOf(owner.runs);
			owner.gapRow = rowOf(owner.gaps);
			if (cpu)
				cpu.highest = cpu.frequency.reduce((max, f) => Math.max(max, f.value), 1);
			owner.markRow = rowOf(owner.marks.map(({ time }) => ({ start: time, end: time + 1 })));
			if (!thread)
				continue;
			thread.offs = offsOf(thread);
			thread.title = threadTitle(thread);
			thread.ids = ` ${thread.pid}/${thread.tid}`;
			thread.hue = hueOf(thread.title);
		}
		this.layout();
	}

	layout() {
		const head = this.cpus.length > FEW_CPUS || !this.showsCpus;
		let y = 0;

		this.lanes = [...head ? [this.head] : [], ...this.showsCpus ? this.cpus : [], ...this.threads];
		for (const lane of this.lanes) {
			lane.y = y;
			lane.height = lane.head ? HEAD : lane.cpu ? HEAD + (lane.cpu.frequency.length > 0 ? FREQUENCY : 0)
				: HEAD + lane.shown * ROW;
			y += lane.height + GAP;
		}
		this.spacer.style.height = `${y + RULER + 20}px`;
	}

	/** Folds, or shows all depths of, a thread's lane. */
	fold(lane) {
		const { depths } = lane.thread.frames;

		lane.shown = lane.shown === 0 ? Math.min(depths, FIRST_ROWS)
			: lane.shown < depths ? depths : 0;
		this.layout();
	}

	/** Shows or hides the CPUs. */
	foldCpus() {
		this.showsCpus = !this.showsCpus;
		this.layout();
	}

	/** Hides the calls of all threads, or shows them again. */
	foldAll() {
		const hide = this.threads.some((lane) => lane.shown > 0);

		for (const lane of this.threads)
			lane.shown = hide ? 0 : Math.min(lane.thread.frames.depths, FIRST_ROWS);
		this.layout();
	}

	laneOf(thread) {
		return this.threads.find((lane) => lane.thread === thread);
	}

	rows(thread) {
		return thread.rows ??= makeRows(thread.frames);
	}

	draw() {
		const { app, scroller } = this, { view } = app;
		const { ctx, width, height } = fitCanvas(this.canvas, scroller);

		view.left = Math.floor(Math.min(GUTTER, width / 3));
		view.width = Math.max(width - view.left, 1);
		this.right = width;
		const painter = new Painter(ctx, app, view.left, width, height);

		ctx.fillStyle = app.colors.back;
		ctx.fillRect(0, 0, view.left, height);
		for (const lane of this.lanes) {
			const y = lane.y + RULER - scroller.scrollTop;

			if (y + lane.height > RULER && y < height)
				this.drawLane(painter, lane, y, height);
		}
		painter.finish();
		this.drawSelection(painter, height);
		this.drawRuler(painter);
		this.drawOverview();
	}

	drawLane(painter, lane, y, bottom) {
		const { cpu, thread } = lane;

		if (lane.head)
			painter.label(`${this.showsCpus ? "\u25be" : "\u25b8"} ${plural(this.cpus.length, "CPU")}`, 0,
				this.app.view.left, y + HEAD / 2);
		else if (cpu)
			this.drawCpu(painter, cpu, y);
		else
			this.drawThread(painter, lane, y, bottom);
		if (!lane.head)
			this.drawGaps(painter, cpu ?? thread, cpu ? y : y + 6, cpu ? HEAD - 2 : lane.height - 6);
		painter.later.push(() => {
			painter.ctx.fillStyle = painter.colors.line;
			painter.ctx.fillRect(0, y + lane.height + 2, this.right, 1);
		});
	}

	drawGaps(painter, owner, y, height) {
		painter.spans(owner.gapRow, this.app.view, y, height, (i) => ({
			color: isDark(owner.gaps[i]) ? "dark" : "warn", cover: isDark(owner.gaps[i]) ? "dark" : "hatch",
			text: owner.gaps[i].name,
		}));
	}

	drawCpu(painter, cpu, y) {
		const { view } = this.app, { colors } = painter;

		painter.label(`CPU ${cpu.number}`, 0, view.left, y + HEAD / 2);
		painter.spans(cpu.runRow, view, y, HEAD - 2, (i) => {
			const { thread } = cpu.runs[i];

			return { color: colors.pixel(thread.hue), text: thread.name || "?", keep: ` ${thread.tid}` };
		});
		painter.spans(cpu.markRow, view, y, HEAD - 2, () => ({ color: "accent" }));
		if (cpu.frequency.length > 0)
			this.drawFrequency(painter, cpu, y + HEAD);
	}

	// A bar for each pixel, 0 at the bottom; the highest one where several changes share a pixel.
	drawFrequency(painter, cpu, y) {
		const { view } = this.app, { colors } = painter, list = cpu.frequency;
		const color = colors.number("accent"), step = view.pixel / painter.scale;
		let i = Math.max(0, firstOf(list, view.from) - 1);

		painter.label(`to ${count(cpu.highest)} ${list[0].unit}`, 0, view.left, y + FREQUENCY / 2, colors.faint);
		for (let x = 0; x < painter.screen.width; x++) {
			const to = view.from + (x + 1) * step;
			let value = list[i].time < to ? list[i].value : 0;

			for (; i + 1 < list.length && list[i + 1].time < to; i++)
				value = Math.max(value, list[i + 1].value);
			const height = (FREQUENCY - 2) * value / cpu.highest;

			painter.screen.eachLine(y + FREQUENCY - height, Math.min(height, 2), (at) => {
				painter.screen.pixels[at + x] = color;
			});
		}
	}

	drawThread(painter, lane, y, bottom) {
		const { view, select, search } = this.app, { colors } = painter, { thread } = lane;
		const hits = search.hits?.get(thread), off = (i) => ({ color: OFF_COLORS[thread.offs.list[i].why] });

		painter.label((lane.shown === 0 ? "\u25b8 " : "\u25be ") + (thread.name || "?"), 0, view.left, y + HEAD / 2,
			select.thread === thread ? colors.accent : colors.text, thread.ids);
		if (lane.shown > 0)
			painter.label(`  ${count(thread.frames.n)} calls`, 0, view.left, y + HEAD + ROW / 2, colors.faint);
		if (lane.shown > 1 && lane.shown < thread.frames.depths)
			painter.label(`  ${thread.frames.depths - lane.shown} rows more`, 0, view.left,
				y + HEAD + ROW * 1.5, colors.faint);
		painter.spans(thread.runRow, view, y, 5, () => ({ color: "run" }));
		painter.spans(thread.markRow, view, y + 6, HEAD - 7, () => ({ color: "accent" }));
		if (hits)
			painter.spans(hits.row, view, y + 6, HEAD - 7, () => ({ color: "hit" }));
		// Calls of a thread that is not on a CPU are pale.
		const mask = painter.line(thread.offs.row, view, off, y, 5);

		painter.screen.overlay(mask, y, 5);
		this.rows(thread).slice(0, lane.shown).forEach((row, depth) => {
			const at = y + HEAD + depth * ROW;

			if (at + ROW > 0 && at < bottom)
				painter.row(row, thread.frames, view, at, mask);
		});
	}

	drawSelection(painter, height) {
		const { view, select, range, cursor } = this.app, { ctx, colors } = painter;
		const clamp = (x) => Math.min(Math.max(x, view.left), this.right);

		if (range) {
			const x0 = clamp(view.x(range.from)), x1 = clamp(view.x(range.to));

			ctx.fillStyle = colors.accent;
			ctx.globalAlpha = 0.15;
			ctx.fillRect(x0, 0, x1 - x0, height);
			ctx.globalAlpha = 1;
		}
		if (cursor !== null && cursor >= view.from && cursor <= view.to) {
			ctx.fillStyle = colors.accent;
			ctx.fillRect(view.x(cursor), RULER, 1, height);
		}
		if (this.app.trace.trigger !== null) {
			const x = view.x(this.app.trace.trigger);

			ctx.fillStyle = colors.warn;
			if (x >= view.left && x <= this.right)
				ctx.fillRect(x - 1, RULER, 2, height);
		}
		if (select.frame < 0)
			return;
		const lane = this.laneOf(select.thread), { frames } = select.thread;
		const depth = frames.depth[select.frame];

		if (depth >= lane.shown)
			return;
		const x0 = clamp(view.x(frames.start[select.frame])), x1 = clamp(view.x(frames.end[select.frame]));

		ctx.strokeStyle = colors.accent;
		ctx.lineWidth = 2;
		ctx.strokeRect(x0, lane.y + RULER - this.scroller.scrollTop + HEAD + depth * ROW, Math.max(x1 - x0, 2), ROW - 1);
	}

	drawRuler(painter) {
		const { view, trace } = this.app, { ctx, colors } = painter;
		const zero = trace.trigger ?? 0;
		const step = niceStep(view.pixel * 110), flags = this.flags(painter);

		ctx.fillStyle = colors.back;
		ctx.fillRect(0, 0, this.right, RULER);
		painter.label(trace.trigger === null ? "from the first time" : "from the trigger", 0, view.left, RULER / 2, colors.faint);
		for (let n = Math.ceil((view.from - zero) / step); n * step + zero <= view.to; n++) {
			const x = view.x(n * step + zero);

			ctx.fillStyle = colors.line;
			ctx.fillRect(x, 0, 1, RULER);
			if (flags.every((flag) => x + 90 < flag.x || x > flag.x + flag.width))
				painter.label(moment(n * step, Math.max(Math.abs(view.from - zero), Math.abs(view.to - zero)), step),
					x, x + 130, RULER / 2, colors.faint);
		}
		ctx.fillStyle = colors.line;
		ctx.fillRect(0, RULER - 1, this.right, 1);
		this.drawFlags(ctx, flags);
	}

	// Words on the ruler: where the trigger is, and how long the selected time is.
	flags({ ctx }) {
		const { view, range, trace, colors } = this.app, flags = [];
		const add = (text, from, to, color) => {
			const width = Math.ceil(ctx.measureText(text).width) + 8;
			const x0 = Math.max(view.x(from), view.left), x1 = Math.min(view.x(to), this.right);

			if (to >= view.from && from <= view.to)
				flags.push({ text, x0, x1, color, width,
					x: Math.max(Math.min((x0 + x1 - width) / 2, this.right - width), view.left) });
		};

		if (trace.trigger !== null)
			add("trigger", trace.trigger, trace.trigger, colors.warn);
		if (range)
			add(duration(range.to - range.from), range.from, range.to, colors.accent);
		return flags;
	}

	drawFlags(ctx, flags) {
		for (const { text, x0, x1, x, width, color } of flags) {
			ctx.fillStyle = color;
			ctx.fillRect(x0, RULER - 4, Math.max(x1 - x0, 1), 3);
			ctx.fillRect(x, 2, width, RULER - 6);
			ctx.fillStyle = this.app.colors.back;
			ctx.fillText(text, x + 4, RULER / 2 - 1);
		}
	}

	// The whole window: CPUs in use, gaps, hits of the search, and the part that is shown.
	drawOverview() {
		const { app } = this, { view, colors, trace } = app;
		const { ctx, height } = fitCanvas(this.overview), width = this.right; // without the timeline's scroll bar
		const whole = this.whole = new View(trace.length);
		const key = [width, height, window.devicePixelRatio, app.theme, app.search.text].join(" ");

		whole.left = view.left;
		whole.width = Math.max(width - view.left, 1);
		if (key !== this.pictureOf) {
			this.pictureOf = key;
			ctx.fillStyle = colors.back;
			ctx.fillRect(0, 0, this.overview.width, height);
			this.drawWhole(new Painter(ctx, app, view.left, width, height), whole, height);
			this.picture = new OffscreenCanvas(this.overview.width, this.overview.height);
			this.picture.getContext("2d").drawImage(this.overview, 0, 0);
		}
		ctx.drawImage(this.picture, 0, 0, this.overview.clientWidth, height);
		ctx.fillStyle = colors.accent;
		ctx.globalAlpha = 0.2;
		ctx.fillRect(whole.x(view.from), 0, Math.max(view.span / whole.pixel, 2), height);
		ctx.globalAlpha = 1;
		ctx.fillRect(whole.x(view.from), 0, 1, height);
		ctx.fillRect(Math.max(whole.x(view.to) - 1, whole.x(view.from) + 1), 0, 1, height);
	}

	drawWhole(painter, whole, height) {
		const { app } = this, { ctx, colors } = painter, { trace } = app;

		ctx.fillStyle = colors.back;
		ctx.fillRect(0, 0, whole.left, height);
		painter.label("whole window", 0, whole.left, height / 2 - 4, colors.faint);
		painter.label(duration(trace.length), 0, whole.left, height / 2 + 10, colors.faint);
		this.drawBusy(painter, whole, height);
		for (const hits of app.search.hits?.values() ?? [])
			painter.spans(hits.row, whole, 0, 5, () => ({ color: "hit" }));
		for (const cpu of trace.cpus)
			painter.spans(cpu.gapRow, whole, height - 4, 4, () => ({ color: "warn" }));
		painter.finish();
	}

	// How many threads ran, on average, in each two pixels.
	drawBusy({ screen, colors, scale }, whole, height) {
		const { trace } = this.app, step = trace.length / Math.floor(whole.width / 2);
		const busy = new Float64Array(Math.floor(whole.width / 2));
		const most = Math.max(trace.cpus.length, 1);

		for (const thread of trace.threads) {
			let last = cpuBefore(thread, 0);

			for (let i = 0; i < busy.length && thread.runs.length > 0; i++) {
				const now = cpuBefore(thread, (i + 1) * step);

				busy[i] += (now - last) / step;
				last = now;
			}
		}
		busy.forEach((share, i) => {
			const h = Math.min(share / most, 1) * (height - 8), x = Math.round(i * 2 * scale);

			screen.eachLine(height - h, h, (at) =>
				screen.pixels.fill(colors.number("run"), at + x, at + Math.min(Math.round(x + 2 * scale), screen.width)));
		});
	}

	/** What is at a place of the canvas: { time, lane, thread, frame, gap, off }. */
	hit(x, y) {
		const { view } = this.app, time = view.time(x);
		const at = y - RULER + this.scroller.scrollTop;
		const lane = y < RULER ? undefined : this.lanes.find((l) => at >= l.y && at < l.y + l.height);
		const found = { time, lane, ruler: y < RULER, gutter: x < view.left, frame: -1 };

		if (!lane || lane.head || found.gutter)
			return found;
		const owner = lane.cpu ?? lane.thread;

		found.mark = owner.marks.find((mark) => Math.abs(mark.time - time) < 3 * view.pixel);
		found.frequency = lane.cpu?.frequency[firstOf(lane.cpu.frequency, time) - 1];
		found.gap = owner.gaps.find((gap) => gap.start <= time && time < gap.end);
		found.thread = lane.thread ?? owner.runs[owner.runRow.at(time)]?.thread;
		if (!lane.thread)
			return found;
		const depth = Math.floor((at - lane.y - HEAD) / ROW);

		found.off = lane.thread.offs.list[lane.thread.offs.row.at(time)];
		if (depth >= 0 && depth < lane.shown)
			found.frame = this.frameNear(lane.thread, depth, time);
		return found;
	}

	// The longest frame within a pixel of TIME.
	frameNear(thread, depth, time) {
		const row = this.rows(thread)[depth], { pixel } = this.app.view;
		const first = row.firstAfter(time - pixel);

		if (first >= row.n || row.start[first] > time + pixel)
			return -1;
		const at = row.at(time);

		if (at >= 0 && row.end[at] - row.start[at] > pixel)
			return row.ids[at];
		return row.ids[row.longest(first, row.firstFrom(first, time + pixel))];
	}

	/** Scrolls so that the CPU can be seen. */
	revealCpu(number) {
		if (!this.showsCpus)
			this.foldCpus();
		const lane = this.lanes.find(({ cpu }) => cpu?.number === number), top = this.scroller.scrollTop;

		if (lane && (lane.y < top || lane.y + lane.height > top + this.scroller.clientHeight - RULER))
			this.scroller.scrollTop = lane.y;
	}

	/** Scrolls so that the frame can be seen. */
	reveal(thread, frame) {
		const lane = this.laneOf(thread), depth = frame < 0 ? 0 : thread.frames.depth[frame];

		if (frame >= 0 && depth >= lane.shown) {
			lane.shown = thread.frames.depths;
			this.layout();
		}
		const y = lane.y + HEAD + depth * ROW, top = this.scroller.scrollTop;
		const room = this.scroller.clientHeight - RULER - ROW;

		if (y < top || y > top + room)
			this.scroller.scrollTop = Math.max(0, y - room / 2);
	}
}

// The times between the runs of a thread, with the reason why it left.
function offsOf(thread) {
	const list = [];

	thread.runs.forEach((run, i) => {
		const next = thread.runs[i + 1];

		if (next ? next.start > run.end : run.why !== 3)
			list.push({ start: run.end, end: next ? next.start : Number.MAX_SAFE_INTEGER, why: run.why,
				text: WHYS[run.why] });
	});
	return { list, row: rowOf(list) };
}

// The first mark at TIME or later.
function firstOf(list, time) {
	let low = 0, high = list.length;

	while (low < high) {
		const middle = low + high >> 1;

		if (list[middle].time >= time)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/** 1, 2 or 5 times a power of ten, at least NS and at least 1. */
export function niceStep(ns) {
	const power = 10 ** Math.floor(Math.log10(Math.max(ns, 1)));

	return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= ns) ?? power * 10;
}
