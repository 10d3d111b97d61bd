// Search: functions by name and calls by duration.
//
//   malloc         names that contain it, in any case        =malloc      exactly this name
//   std::*::find   * stands for anything                     /^h.*d$/     a regular expression
//   >10us <1ms     calls that took longer, or less           Words are joined by "and".

import { rowOf } from "./rows.js";
import { parseDuration } from "./text.js";

const escapePattern = (text) => text.replace(/[.+?^${}()|[\]\\]/g, "\\$&");

// A test for names, or null for a word that is none.
function nameTest(word) {
	if (word.startsWith("="))
		return (name) => name === word.slice(1);
	if (word.length > 2 && word.startsWith("/") && word.endsWith("/")) {
		try {
			const pattern = new RegExp(word.slice(1, -1), "i");

			return (name) => pattern.test(name);
		} catch {
			return null;
		}
	}
	if (word.includes("*")) {
		const pattern = new RegExp(`^${word.split("*").map(escapePattern).join(".*")}$`, "i");

		return (name) => pattern.test(name);
	}
	const lower = word.toLowerCase();

	return (name) => name.toLowerCase().includes(lower);
}

/** The words of TEXT: { tests, longer, shorter, bad }; bad is the first word that is not valid. */
export function parseQuery(text) {
	const query = { tests: [], longer: 0, shorter: Infinity, bad: null };
	// An exact name may have spaces: it is the whole text.
	const words = text.trim().startsWith("=") ? [text.trim()] : text.trim().split(/\s+/);

	for (const word of words.filter((w) => w !== "")) {
		if (/^[<>]/.test(word)) {
			const ns = parseDuration(word.slice(1));

			if (Number.isNaN(ns))
				query.bad ??= word;
			else if (word[0] === ">")
				query.longer = Math.max(query.longer, ns);
			else
				query.shorter = Math.min(query.shorter, ns);
			continue;
		}
		const test = nameTest(word);

		if (test)
			query.tests.push(test);
		else
			query.bad ??= word;
	}
	return query;
}

/** What the user looks for, and where it is. */
export class Search {
	constructor(trace) {
		this.trace = trace;
		this.set("");
	}

	/** Searches for TEXT. Durations are wall time. */
	set(text) {
		const { trace } = this, query = parseQuery(text);

		this.text = text;
		this.bad = query.bad;
		this.active = text.trim() !== "" && !query.bad;
		this.functions = Uint8Array.from(trace.functions, (f) =>
			query.tests.every((test) => test(f.name)) ? 1 : 0);
		this.hits = null;
		this.n = 0;
		if (!this.active)
			return;
		this.hits = new Map();
		for (const thread of trace.threads) {
			const frames = this.find(thread.frames, query);

			if (frames.length === 0)
				continue;
			this.n += frames.length;
			this.hits.set(thread, { frames, row: this.makeRow(thread.frames, frames) });
		}
	}

	find(frames, query) {
		const found = new Uint32Array(frames.n);
		let n = 0;

		for (let i = 0; i < frames.n; i++) {
			const d = frames.end[i] - frames.start[i];

			if (this.functions[frames.func[i]] && d >= query.longer && d < query.shorter)
				found[n++] = i;
		}
		return found.slice(0, n);
	}

	// Hits may nest: the row has the outermost ones.
	makeRow(frames, hits) {
		const list = [];

		for (const i of hits) {
			if (list.length === 0 || frames.start[i] >= list.at(-1).end)
				list.push({ start: frames.start[i], end: frames.end[i] });
		}
		return rowOf(list);
	}

	/** The next hit in the order of begin (DIRECTION 1) or the one before (-1): { thread, frame }, or
	 * null. FROM is { thread, frame } or a time. */
	next(direction, from) {
		let best = null;

		for (const [thread, { frames: hits }] of this.hits ?? []) {
			const frame = this.nextIn(thread, hits, direction, from);

			if (frame === null)
				continue;
			const d = thread.frames.start[frame] * direction;

			if (!best || d < best.d || (d === best.d && (thread.number - best.thread.number) * direction < 0))
				best = { thread, frame, d };
		}
		return best && { thread: best.thread, frame: best.frame };
	}

	nextIn(thread, hits, direction, from) {
		const { start } = thread.frames;
		const time = from.thread ? from.thread.frames.start[from.frame] : from.time;
		// In another thread, equal times count as later if the thread's number is higher.
		const later = from.thread && from.thread !== thread ? thread.number > from.thread.number : false;
		let low = 0, high = hits.length;

		const isBehind = (i) => from.thread === thread ? i > from.frame
			: later ? start[i] >= time : start[i] > time;

		while (low < high) {
			const middle = low + high >> 1;

			if (isBehind(hits[middle]))
				high = middle;
			else
				low = middle + 1;
		}
		if (direction > 0)
			return low < hits.length ? hits[low] : null;
		low--;
		if (low >= 0 && from.thread === thread && hits[low] === from.frame)
			low--;
		return low >= 0 ? hits[low] : null;
	}
}
