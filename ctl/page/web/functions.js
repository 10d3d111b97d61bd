// Functions of the scope as a table: calls, times, and the distribution of their durations.

import { averageWidth, BUCKETS, bucketStart, functionTable } from "./stats.js";
import { count, duration, plural, share } from "./text.js";

const BARS = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588";
const MAX_ROWS = 300;

const FIGURES = [
	["function", (r, app) => app.trace.functions[r.func].name, null],
	["calls", (r) => count(r.calls), (r) => r.calls],
	["self CPU", (r) => duration(r.selfCpu), (r) => r.selfCpu],
	["self", (r) => duration(r.self), (r) => r.self],
	["total CPU", (r) => duration(r.totalCpu), (r) => r.totalCpu],
	["total", (r) => duration(r.total), (r) => r.total],
	["p50", (r) => quantile(r.p50), (r) => r.p50],
	["p90", (r) => quantile(r.p90), (r) => r.p90],
	["p99", (r) => quantile(r.p99), (r) => r.p99],
	["max", (r) => quantile(r.max), (r) => r.max],
	["instructions", (r) => count(r.insns), (r) => r.insns],
	["durations", (r, app, range) => spark(r.histogram, range), null],
];

const quantile = (ns) => Number.isNaN(ns) ? "-" : duration(ns);

/** The buckets of HISTOGRAM from RANGE.from to RANGE.to as bars, with a logarithmic height. */
export function spark(histogram, range) {
	const most = Math.log2(1 + Math.max(...histogram));
	let text = "";

	for (let b = range.from; b <= range.to; b++) {
		const level = histogram[b] === 0 ? 0 : Math.max(1, Math.round(8 * Math.log2(1 + histogram[b]) / most));

		text += BARS[level];
	}
	return text;
}

/** The buckets of HISTOGRAM in words, one a line. */
export function bucketsText(histogram) {
	const lines = [];

	histogram.forEach((n, b) => {
		if (n > 0)
			lines.push(`${plural(n, "call")} from ${duration(bucketStart(b))} to ${duration(bucketStart(b + 1))}`);
	});
	return lines.join("\n");
}

/** The buckets in use, of all rows. */
export function usedBuckets(table) {
	let from = BUCKETS - 1, to = 0;

	for (const { histogram } of table) {
		for (let b = 0; b < BUCKETS; b++) {
			if (histogram[b] > 0) {
				from = Math.min(from, b);
				to = Math.max(to, b);
			}
		}
	}
	return from <= to ? { from, to } : { from: 0, to: 0 };
}

/** The table in the element BODY. */
export class Functions {
	constructor(app, table, info) {
		Object.assign(this, { app, table, info, key: "", sort: 2, rows: [] });
	}

	update() {
		const scope = this.app.scope();
		const key = `${scope.key} ${this.sort} ${this.app.search.text}`;

		if (key === this.key)
			return false;
		if (scope.key !== this.scopeKey) {
			this.rows = functionTable(this.app.trace, scope.threads, scope.from, scope.to);
			this.width = averageWidth(scope.threads, scope.from, scope.to);
		}
		this.key = key;
		this.scopeKey = scope.key;
		this.scope = scope;
		return true;
	}

	draw() {
		if (!this.update())
			return;
		const { app } = this, { search } = app;
		const [, , value] = FIGURES[this.sort];
		const shown = search.active ? this.rows.filter((r) => search.functions[r.func]) : this.rows;
		const range = usedBuckets(shown);
		const whole = shown.reduce((sum, r) => sum + r.selfCpu, 0);

		shown.sort((a, b) => (value(b) || 0) - (value(a) || 0) || a.func - b.func);
		this.info.textContent = `${this.scope.text}: ${count(shown.length)} functions${
			search.active ? " found" : ""}${shown.length > MAX_ROWS ? `, the first ${MAX_ROWS} shown` : ""}; durations from ${
			duration(bucketStart(range.from))} to ${duration(bucketStart(range.to + 1))}, bars logarithmic; times are known within ${duration(this.width)} on average`;
		this.table.replaceChildren(this.head(), this.body(shown.slice(0, MAX_ROWS), range, whole));
	}

	head() {
		const row = document.createElement("tr");

		FIGURES.forEach(([title, , value], i) => {
			const cell = document.createElement("th"), button = document.createElement("button");

			button.textContent = title;
			button.disabled = !value;
			button.addEventListener("click", () => this.sortBy(i));
			if (i === this.sort)
				cell.setAttribute("aria-sort", "descending");
			cell.append(button);
			row.append(cell);
		});
		const head = document.createElement("thead");

		head.append(row);
		return head;
	}

	body(rows, range, whole) {
		const body = document.createElement("tbody");

		for (const r of rows) {
			const tr = document.createElement("tr"), f = this.app.trace.functions[r.func];

			FIGURES.forEach(([title, text], i) => {
				const cell = document.createElement("td");

				cell.textContent = text(r, this.app, range);
				if (i === 0)
					cell.append(this.findButton(f, cell));
				if (title === "self CPU")
					cell.title = share(r.selfCpu, whole);
				if (title === "durations")
					cell.title = bucketsText(r.histogram);
				if (title === "max" && r.slowest)
					cell.replaceChildren(this.slowestButton(r));
				tr.append(cell);
			});
			tr.title = [f.name, f.image, f.file && `${f.file}:${f.line}`].filter(Boolean).join("\n");
			body.append(tr);
		}
		return body;
	}

	findButton(f, cell) {
		const button = document.createElement("button");

		button.textContent = f.name;
		cell.replaceChildren();
		button.addEventListener("click", () => this.app.find(`=${f.name}`));
		return button;
	}

	slowestButton(r) {
		const button = document.createElement("button");

		button.textContent = quantile(r.max);
		button.title = "go to the slowest call";
		button.addEventListener("click", () => this.app.choose(r.slowest.thread, r.slowest.frame, true));
		return button;
	}

	sortBy(i) {
		this.sort = i;
		this.app.changed();
	}
}
