// The page's block to typed arrays. ctl/page/page.h describes the records.

import { visible } from "./text.js";

export const BEGINS = ["call", "jump", "signal", "interrupt", "syscall", "inlined", "found"];
export const ENDS = ["return", "left", "unwound", "swapped", "lost", "open"];
export const WHYS = ["preempted", "blocked", "exited", "unknown"];
const MAX_NUMBER = 2 ** 22; // PAGE_MAX_NUMBER
// Functions are numbered from 1. These have no number: frames of a kernel that was not traced.
const UNNUMBERED = ["[unknown]", "[interrupt]", "[system call]"];
const INTERRUPT = 3, SYSCALL = 4;

// The index of a function in the trace's list, of a frame that began as KIND.
function functionIndex(number, kind) {
	if (number > 0)
		return number + UNNUMBERED.length - 1;
	return kind === INTERRUPT ? 1 : kind === SYSCALL ? 2 : 0;
}

export const FOUND = 6, SWAPPED = 3, LOST = 4, OPEN = 5;

// One call each: arrays of the same length, in the order of begin, so that a frame stands behind
// the frames around it. Times are ns since the first time of the page.
const COLUMNS = {
	start: Float64Array, end: Float64Array, insns: Float64Array, func: Uint32Array,
	parent: Int32Array, depth: Uint16Array, cpu: Uint32Array, kind: Uint8Array,
	startWidth: Float32Array, endWidth: Float32Array,
};

/** The calls of one thread. `kind` is the begin, and the end times 16. */
export class Frames {
	constructor() {
		this.n = 0;
		this.capacity = 0;
		this.depths = 0;
		this.grow(64);
	}

	grow(capacity) {
		for (const [name, Type] of Object.entries(COLUMNS)) {
			const grown = new Type(capacity);

			if (this[name])
				grown.set(this[name].subarray(0, this.n));
			this[name] = grown;
		}
		this.capacity = capacity;
	}

	/** Adds a call; there is room. */
	begin(time, func, kind, cpu, parent, depth, width) {
		const i = this.n++;

		this.start[i] = this.end[i] = time;
		this.func[i] = func;
		this.kind[i] = kind | OPEN << 4;
		this.cpu[i] = cpu;
		this.parent[i] = parent;
		this.depth[i] = depth;
		this.startWidth[i] = width;
		if (depth >= this.depths)
			this.depths = depth + 1;
		return i;
	}

	duration(i) {
		return this.end[i] - this.start[i];
	}

	/** Whether begin and end were both seen. */
	whole(i) {
		return (this.kind[i] & 15) !== FOUND && this.kind[i] >> 4 < SWAPPED;
	}
}

function newThread(number) {
	return {
		number, pid: 0, tid: 0, name: "", frames: new Frames(),
		runs: [], gaps: [], marks: [],        // runs: {start, end, cpu, why}
		open: [], last: 0, on: -1, onCpu: 0,  // while parsing
	};
}

/** Base64 to bytes; line ends are ignored. */
export function fromBase64(text) {
	if (Uint8Array.fromBase64)
		return Uint8Array.fromBase64(text);
	const binary = atob(text), bytes = new Uint8Array(binary.length);

	for (let i = 0; i < binary.length; i++)
		bytes[i] = binary.charCodeAt(i);
	return bytes;
}

/** The text of the block to the bytes of its records. */
export async function unpack(text) {
	const { readable, writable } = new DecompressionStream("deflate"), writer = writable.getWriter();

	// What is wrong with the data is told by the reader.
	writer.write(fromBase64(text)).catch(() => {});
	writer.close().catch(() => {});
	return new Uint8Array(await new Response(readable).arrayBuffer());
}

class Reader {
	constructor(bytes) {
		this.bytes = bytes;
		this.pos = 0;
	}

	number() {
		const bytes = this.bytes;
		let b = bytes[this.pos++];

		if (b < 128)
			return b;
		for (let v = b & 127, scale = 128; ; scale *= 128) {
			b = bytes[this.pos++];
			if (b === undefined)
				throw new Error("the data of this page is cut off");
			v += (b & 127) * scale;
			if (b < 128)
				return v;
		}
	}

	/** The number of a thread or function; a page has no more than that. */
	id() {
		const n = this.number();

		if (n > MAX_NUMBER)
			throw new Error("the data of this page is damaged");
		return n;
	}

	hex() {
		const high = this.number(), low = this.number();

		return "0x" + (high > 0 ? high.toString(16) + low.toString(16).padStart(8, "0")
			: low.toString(16));
	}

	text() {
		const n = this.number();

		this.pos += n;
		return visible(Reader.decoder.decode(this.bytes.subarray(this.pos - n, this.pos)));
	}
}
Reader.decoder = new TextDecoder();

class Parser {
	constructor(bytes) {
		this.in = new Reader(bytes);
		this.threads = new Map();
		this.cpu = 0;
		this.lastFunction = 0;
		this.trace = {
			title: "", occasion: "", first: 0, length: 0, trigger: null, functions: [],
			complete: false, cut: 0, leftOut: 0, repaired: 0,
			suspects: null, // null: nobody looked for them
		};
	}

	thread(number) {
		if (!this.threads.has(number))
			this.threads.set(number, newThread(number));
		return this.threads.get(number);
	}

	run() {
		const { in: input } = this;

		this.lane = this.thread(0);
		while (input.pos < input.bytes.length)
			this.record(input.bytes[input.pos++]);
		if (input.pos > input.bytes.length)
			throw new Error("the data of this page is cut off");
	}

	record(tag) {
		const { in: input, lane } = this;

		if (tag >= 0x10) {
			const width = (tag & 8) !== 0, kind = tag & 7;

			lane.last += input.number();
			if (tag < 0x20)
				this.begin(kind, input.id(), width ? input.number() : 0);
			else
				this.finish(kind, input.number(), width ? input.number() : 0);
			return;
		}
		switch (tag) {
		case 1: this.trace.title = input.text(); break;
		case 2: this.head(); break;
		case 3: {
			const thread = this.thread(input.id());

			thread.pid = input.number();
			thread.tid = input.number();
			thread.name = input.text();
			break;
		}
		case 4: {
			const number = input.id(), address = input.hex(), name = input.text();
			const image = input.text(), file = input.text(), line = input.number();

			this.trace.functions[functionIndex(number)] = { name: name || address, address, image, file, line };
			break;
		}
		case 5:
			this.lane = this.thread(input.id());
			this.cpu = input.number();
			break;
		case 6: lane.last += input.number(); this.on(lane); break;
		case 7: lane.last += input.number(); this.off(lane, input.number()); break;
		case 8: {
			const start = input.number(), length = input.number();

			lane.gaps.push({ start, end: start + length, cpu: this.cpu, name: input.text() });
			break;
		}
		case 9:
			lane.marks.push({
				time: input.number(), cpu: this.cpu, value: input.hex(), name: input.text(),
			});
			break;
		case 10:
			this.trace.complete = true;
			input.number();
			this.trace.cut = input.number();
			this.trace.leftOut = input.number();
			this.trace.repaired = input.number();
			break;
		case 11: this.trace.suspects ??= []; break;
		case 12: this.suspect(); break;
		case 13: this.trace.occasion = input.text(); break;
		default: throw new Error(`the data of this page has an unknown record ${tag}`);
		}
	}

	head() {
		const { in: input, trace } = this;

		trace.first = input.number();
		trace.length = input.number();
		const trigger = input.number();

		trace.trigger = trigger > 0 ? trigger - trace.first : null;
	}

	suspect() {
		const { in: input } = this, known = input.number();
		const from = input.number(), to = input.number(), tid = input.number(), cpu = input.number();

		(this.trace.suspects ??= []).push({
			from: known & 1 ? from : null, to: known & 1 ? to : null,
			tid: known & 2 ? tid : null, cpu: known & 4 ? cpu : null,
			kind: input.text(), text: input.text(), function: input.text(),
		});
	}

	begin(kind, func, width) {
		const { lane } = this, { open } = lane;

		const index = functionIndex(func, kind);

		if (lane.frames.n === lane.frames.capacity)
			this.grow(lane.frames);
		this.lastFunction = Math.max(this.lastFunction, index);
		open.push(lane.frames.begin(lane.last, index, kind, this.cpu,
			open.length > 0 ? open[open.length - 1] : -1, open.length, width));
	}

	// Makes room for as many calls as there will be if the rest of the page is as what was read. A browser
	// fills new arrays with 0: growing by a half each time took as long as reading the page.
	grow(frames) {
		const { bytes, pos } = this.in, all = frames.n * bytes.length / pos;

		frames.grow(Math.ceil(Math.min(Math.max(all * 1.1, frames.n * 1.5), frames.n * 16)));
	}

	finish(kind, insns, width) {
		const { lane } = this, { frames } = lane, i = lane.open.pop();

		if (i === undefined)
			return;
		frames.end[i] = lane.last;
		frames.kind[i] = frames.kind[i] & 15 | kind << 4;
		frames.insns[i] = insns;
		frames.endWidth[i] = width;
	}

	on(lane) {
		if (lane.on >= 0)
			lane.runs.push({ start: lane.on, end: lane.last, cpu: lane.onCpu, why: 3 });
		lane.on = lane.last;
		lane.onCpu = this.cpu;
	}

	// A thread that leaves a CPU without having come had it from the first time on.
	off(lane, why) {
		if (lane.on < 0 && lane.runs.length > 0)
			return;
		lane.runs.push({ start: Math.max(lane.on, 0), end: lane.last, cpu: this.cpu, why });
		lane.on = -1;
	}

	// What is still open lasts until the end of the page.
	finishThread(lane) {
		for (const i of lane.open)
			lane.frames.end[i] = this.trace.length;
		if (lane.on >= 0)
			lane.runs.push({ start: lane.on, end: this.trace.length, cpu: lane.onCpu, why: 3 });
		lane.cpuTime = sumRuns(lane);
	}

	// Every function that a frame names exists.
	finishFunctions() {
		const { functions } = this.trace;

		UNNUMBERED.forEach((name, i) => {
			functions[i] = { name, address: "", image: "", file: "", line: 0 };
		});
		for (let i = 0; i <= Math.max(this.lastFunction, functions.length - 1); i++)
			functions[i] ??= functions[0];
	}
}

const lastOf = (lane) => lane.gaps.concat(lane.marks)
	.reduce((last, { end, time }) => Math.max(last, end ?? time), lane.last);

// Adds how long the thread had run before each run, for cpuBefore().
function sumRuns(lane) {
	let sum = 0;

	for (const run of lane.runs) {
		run.before = sum;
		sum += run.end - run.start;
	}
	return sum;
}

/** How long the thread was on a CPU before TIME. Without known runs it always was. */
export function cpuBefore(thread, time) {
	const { runs } = thread;
	let low = 0, high = runs.length;

	if (runs.length === 0)
		return time;
	while (low < high) {
		const middle = low + high >> 1;

		if (runs[middle].start <= time)
			low = middle + 1;
		else
			high = middle;
	}
	if (low === 0)
		return 0;
	const run = runs[low - 1];

	return run.before + Math.min(time, run.end) - run.start;
}

// A change of frequency has MHz, or only a ratio where the clock of the bus is not known.
function isFrequency(mark) {
	return mark.name === "frequency" || mark.name === "ratio";
}

// What each CPU did: runs of threads, gaps, frequency.
function gatherCpus(lanes) {
	const cpus = new Map();
	const cpu = (number) => {
		if (!cpus.has(number))
			cpus.set(number, { number, runs: [], gaps: [], marks: [], frequency: [] });
		return cpus.get(number);
	};

	for (const lane of lanes) {
		for (const run of lane.runs)
			cpu(run.cpu).runs.push({ start: run.start, end: run.end, thread: lane });
		for (const gap of lane.gaps)
			cpu(gap.cpu).gaps.push(gap);
		for (const mark of lane.marks.filter(isFrequency))
			cpu(mark.cpu).frequency.push({
				time: mark.time, value: Number(mark.value), unit: mark.name === "ratio" ? "times the bus clock" : "MHz",
			});
		lane.marks = lane.marks.filter((mark) => !isFrequency(mark));
		for (const mark of lane.number === 0 ? lane.marks : [])
			cpu(mark.cpu).marks.push(mark);
	}
	for (const c of cpus.values()) {
		c.runs.sort((a, b) => a.start - b.start);
		c.gaps.sort((a, b) => a.start - b.start);
		c.marks.sort((a, b) => a.time - b.time);
		c.frequency.sort((a, b) => a.time - b.time);
	}
	return [...cpus.values()].sort((a, b) => a.number - b.number);
}

/** The records as { title, first, length, trigger, functions, threads, cpus, ... }. */
export function parse(bytes) {
	const parser = new Parser(bytes), { trace } = parser;

	parser.run();
	const lanes = [...parser.threads.values()];

	trace.length = lanes.reduce((length, lane) => Math.max(length, lastOf(lane)),
		Math.max(trace.length, 1));
	lanes.forEach((lane) => parser.finishThread(lane));
	parser.finishFunctions();
	trace.cpus = gatherCpus(lanes);
	trace.threads = lanes.filter((lane) => lane.number > 0)
		.sort((a, b) => b.frames.n - a.frames.n || a.number - b.number);
	trace.frames = trace.threads.reduce((n, thread) => n + thread.frames.n, 0);
	return trace;
}

/** "name (pid/tid)". */
export function threadTitle(thread) {
	return `${thread.name || "?"} ${thread.pid}/${thread.tid}`;
}
