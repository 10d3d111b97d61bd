// Sums over calls: functions with the distribution of their durations, and the tree of a flame
// graph.

import { cpuBefore } from "./data.js";

/** Durations are counted in buckets of half an octave: bucket 0 is below 1 ns. */
export const BUCKETS = 96;

export function bucketOf(ns) {
	return ns < 1 ? 0 : Math.min(BUCKETS - 1, 1 + Math.floor(2 * Math.log2(ns)));
}

export function bucketStart(bucket) {
	return bucket === 0 ? 0 : 2 ** ((bucket - 1) / 2);
}

/** The first frame that starts at TIME or later. */
export function firstFrame(frames, time) {
	let low = 0, high = frames.n;

	while (low < high) {
		const middle = low + high >> 1;

		if (frames.start[middle] >= time)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/** The frames of a thread that are open at TIME and began before, the outermost first. */
export function stackBefore(frames, time) {
	const stack = [];
	let i = firstFrame(frames, time) - 1;

	while (i >= 0 && frames.end[i] <= time)
		i = frames.parent[i];
	for (; i >= 0; i = frames.parent[i])
		stack.unshift(i);
	return stack;
}

/** Calls visit(frame) for each frame of THREAD within [from, to), parents first. */
export function eachFrame(thread, from, to, visit) {
	const { frames } = thread;

	for (const i of stackBefore(frames, from))
		visit(i);
	for (let i = firstFrame(frames, from); i < frames.n && frames.start[i] < to; i++)
		visit(i);
}

/** Wall and CPU time of frame I within [from, to). */
export function timeWithin(thread, i, from, to) {
	const start = Math.max(thread.frames.start[i], from), end = Math.min(thread.frames.end[i], to);
	const wall = Math.max(end - start, 0);

	return { wall, cpu: wall > 0 ? cpuBefore(thread, end) - cpuBefore(thread, start) : 0 };
}

function percentile(sorted, p) {
	return sorted.length > 0 ? sorted[Math.max(0, Math.ceil(sorted.length * p) - 1)] : NaN;
}

// Sums of each function, by its number.
class Sums {
	constructor(n) {
		for (const name of ["self", "selfCpu", "total", "totalCpu", "insns"])
			this[name] = new Float64Array(n);
		for (const name of ["calls", "whole"])
			this[name] = new Uint32Array(n);
		this.active = new Int32Array(n);
	}

	addThread(thread, from, to) {
		const { frames } = thread, open = [];
		const close = () => this.active[frames.func[open.pop()]]--;

		eachFrame(thread, from, to, (i) => {
			const func = frames.func[i], parent = frames.parent[i];
			const { wall, cpu } = timeWithin(thread, i, from, to);

			while (open.length > 0 && open.at(-1) !== parent)
				close();
			if (parent >= 0) {
				this.self[frames.func[parent]] -= wall;
				this.selfCpu[frames.func[parent]] -= cpu;
			}
			this.self[func] += wall;
			this.selfCpu[func] += cpu;
			if (this.active[func] === 0) { // recursion counts once
				this.total[func] += wall;
				this.totalCpu[func] += cpu;
			}
			if (frames.start[i] >= from) {
				this.calls[func]++;
				if (frames.whole(i))
					this.whole[func]++;
			}
			if (frames.end[i] <= to)
				this.insns[func] += frames.insns[i];
			open.push(i);
			this.active[func]++;
		});
		while (open.length > 0)
			close();
	}
}

// The durations of the calls that began within [from, to) and were seen whole, sorted, one after the
// other by function; and the slowest call of each.
function sortDurations(threads, from, to, sums) {
	const n = sums.whole.length, ends = new Uint32Array(n), slowest = new Array(n);
	const offsets = new Uint32Array(n + 1);

	for (let f = 0; f < n; f++)
		offsets[f + 1] = offsets[f] + sums.whole[f];
	ends.set(offsets.subarray(0, n));
	const durations = new Float64Array(offsets[n]), best = new Float64Array(n).fill(-1);

	for (const thread of threads) {
		const { frames } = thread;

		for (let i = firstFrame(frames, from); i < frames.n && frames.start[i] < to; i++) {
			const func = frames.func[i];

			if (!frames.whole(i))
				continue;
			const d = frames.duration(i);

			durations[ends[func]++] = d;
			if (d > best[func]) {
				best[func] = d;
				slowest[func] = { thread, frame: i };
			}
		}
	}
	return {
		slowest,
		of: (f) => durations.subarray(offsets[f], offsets[f + 1]).sort(),
	};
}

/** The functions that ran in THREADS within [from, to): calls, times, distribution. */
export function functionTable(trace, threads, from, to) {
	const sums = new Sums(trace.functions.length);
	const table = [];

	threads.forEach((thread) => sums.addThread(thread, from, to));
	const durations = sortDurations(threads, from, to, sums);

	for (let f = 0; f < trace.functions.length; f++) {
		if (sums.calls[f] === 0 && sums.total[f] <= 0)
			continue;
		const sorted = durations.of(f), histogram = new Uint32Array(BUCKETS);

		sorted.forEach((d) => histogram[bucketOf(d)]++);
		table.push({
			func: f, calls: sums.calls[f], whole: sorted.length, insns: sums.insns[f],
			self: sums.self[f], selfCpu: sums.selfCpu[f],
			total: sums.total[f], totalCpu: sums.totalCpu[f],
			p50: percentile(sorted, 0.5), p90: percentile(sorted, 0.9),
			p99: percentile(sorted, 0.99), max: percentile(sorted, 1),
			slowest: durations.slowest[f], histogram,
		});
	}
	return table;
}

/** How exact begins are known, on average, of the calls that begin within [from, to); 0: no calls. */
export function averageWidth(threads, from, to) {
	let sum = 0, n = 0;

	for (const { frames } of threads) {
		for (let i = firstFrame(frames, from); i < frames.n && frames.start[i] < to; i++, n++)
			sum += frames.startWidth[i];
	}
	return n > 0 ? sum / n : 0;
}

/** What a flame graph can be as wide as. */
export const WEIGHTS = ["CPU time", "wall time", "instructions", "calls"];

/**
 * The tree of a flame graph: the frames of THREADS within [from, to) with equal paths are one node
 * { func, value, self, calls, children, parent }. Instructions are those of calls that end within.
 */
export function flameTree(threads, from, to, weight) {
	const root = { func: -1, value: 0, self: 0, calls: 0, children: new Map(), parent: null };

	for (const thread of threads) {
		const { frames } = thread, path = [];

		eachFrame(thread, from, to, (i) => {
			const depth = frames.depth[i], func = frames.func[i];
			const above = depth > 0 ? path[depth - 1] : root;
			let node = above.children.get(func);

			if (!node) {
				node = { func, value: 0, self: 0, calls: 0, children: new Map(), parent: above };
				above.children.set(func, node);
			}
			path[depth] = node;
			if (frames.start[i] >= from)
				node.calls++;
			if (weight === "calls")
				node.self += frames.start[i] >= from ? 1 : 0;
			else if (weight === "instructions")
				node.self += frames.end[i] <= to ? frames.insns[i] : 0;
			else {
				const { wall, cpu } = timeWithin(thread, i, from, to);
				const value = weight === "CPU time" ? cpu : wall;

				node.self += value;
				above.self -= value;
			}
		});
	}
	root.self = 0;
	sumUp(root);
	return root;
}

// Values are sums of selves. Frames are less than PAGE_MAX_DEPTH deep, a safe recursion.
function sumUp(node) {
	node.value = Math.max(node.self, 0);
	for (const child of node.children.values())
		node.value += sumUp(child);
	return node.value;
}
