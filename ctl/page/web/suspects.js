// What stands out, as links to its place.

import { threadTitle } from "./data.js";
import { duration, plural } from "./text.js";

// Rules about the duration of one call.
const CALLS = ["slow-calls", "long-call", "stuck-call"];

// How far the frame I is from what SUSPECT says; the nearest one is meant.
function distance(frames, i, { kind, from, to }) {
	const start = frames.start[i], end = frames.end[i], early = Math.abs(start - from);

	if (CALLS.includes(kind))
		return early + Math.abs(end - to);
	return start <= from && from <= end ? (from - start) / (from + 1) : 1 + early;
}

// The frame of THREADS that is meant: { thread, frame }, or null.
function nearestFrame(trace, threads, suspect) {
	const named = Uint8Array.from(trace.functions, (f) => f.name === suspect.function ? 1 : 0);
	let best = null;

	for (const thread of threads) {
		const { frames } = thread;

		for (let i = 0; i < frames.n; i++) {
			if (!named[frames.func[i]])
				continue;
			const d = distance(frames, i, suspect);

			if (!best || d < best.d)
				best = { thread, frame: i, d };
		}
	}
	return best;
}

/** Where SUSPECT is: { from, to, thread, frame, cpu }, or null if it is not in the page. Times are
 * null, THREAD is null and FRAME is -1 where they are not known. */
export function placeOf(trace, suspect) {
	const { from, tid, cpu } = suspect, threads = trace.threads.filter((t) => tid === null || t.tid === tid);
	const inPage = from !== null && from <= trace.length;
	const to = inPage ? Math.min(suspect.to, trace.length) : null;
	const place = { from: inPage ? from : null, to, thread: tid === null ? null : threads[0] ?? null, frame: -1, cpu };

	if (from !== null && !inPage)
		return null;
	if (inPage && suspect.function !== "")
		Object.assign(place, nearestFrame(trace, threads, suspect));
	return inPage || place.thread ? place : null;
}

/** The list in the tab. */
export class Suspects {
	constructor(app, list, info, tab) {
		const { suspects } = app.trace;

		Object.assign(this, { app, list, current: -1 });
		this.places = (suspects ?? []).map((suspect) => placeOf(app.trace, suspect));
		tab.textContent = suspects?.length > 0 ? `What stands out (${suspects.length})` : "What stands out";
		info.textContent = !suspects ? "Nobody looked for what stands out: the page was made of a saved call stream, or with --no-suspects."
			: suspects.length === 0 ? "Nothing stands out, by the rules in ptsnap-report(5), SUSPECTS."
				: `${plural(suspects.length, "suspect")}; the rules are in ptsnap-report(5), SUSPECTS. g and G go to the next one and to the one before.`;
		list.replaceChildren(...(suspects ?? []).map((suspect, i) => this.item(suspect, i)));
	}

	item(suspect, i) {
		const li = document.createElement("li"), where = document.createElement("span");
		const link = document.createElement(this.places[i] ? "a" : "span");

		link.textContent = suspect.text || suspect.kind;
		where.className = "where";
		where.textContent = this.where(this.places[i]);
		if (this.places[i]) {
			link.href = `#suspect-${i + 1}`;
			link.addEventListener("click", (event) => {
				event.preventDefault();
				this.go(i);
			});
		}
		li.append(link, where);
		return li;
	}

	// The place in words.
	where(place) {
		const { app } = this;

		if (!place)
			return "Its place is not in this page.";
		return [
			place.from !== null && `from ${app.when(place.from)}${place.to > place.from ? ` for ${duration(place.to - place.from)}` : ""}`,
			place.thread && threadTitle(place.thread),
			place.cpu !== null && `CPU ${place.cpu}`,
			place.frame >= 0 && app.trace.functions[place.thread.frames.func[place.frame]].name,
		].filter(Boolean).join(", ");
	}

	/** Shows suspect I. */
	go(i) {
		const place = this.places[i];

		if (!place)
			return;
		this.current = i;
		[...this.list.children].forEach((li, k) => li.classList.toggle("current", k === i));
		this.list.children[i].scrollIntoView({ block: "nearest" });
		this.app.showPlace(place);
	}

	/** The next one that has a place, or the one before. */
	step(direction) {
		const n = this.places.length;

		for (let k = 1; k <= n; k++) {
			const from = this.current < 0 && direction < 0 ? n : this.current;
			const i = ((from + k * direction) % n + n) % n;

			if (this.places[i]) {
				this.go(i);
				return;
			}
		}
	}
}
