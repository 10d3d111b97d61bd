// Composes the records of a page, independently of ctl/page.

function number(v) {
	const bytes = [];

	for (v = BigInt(v); v > 127n; v >>= 7n)
		bytes.push(Number(v & 127n) | 128);
	return [...bytes, Number(v)];
}

const two = (v) => [...number(BigInt(v) >> 32n), ...number(BigInt(v) & 0xffffffffn)];
const text = (t) => {
	const bytes = typeof t === "string" ? new TextEncoder().encode(t) : t;

	return [...number(bytes.length), ...bytes];
};

export const title = (t) => [1, ...text(t)];
export const head = (first, length, trigger = 0) => [2, ...number(first), ...number(length), ...number(trigger)];
export const thread = (n, pid, tid, name) => [3, ...number(n), ...number(pid), ...number(tid), ...text(name)];
export const func = (n, name, image = "", address = 0, file = "", line = 0) =>
	[4, ...number(n), ...two(address), ...text(name), ...text(image), ...text(file), ...number(line)];
export const lane = (n, cpu) => [5, ...number(n), ...number(cpu)];
export const on = (delta) => [6, ...number(delta)];
export const off = (delta, why) => [7, ...number(delta), ...number(why)];
export const gap = (time, length, name) => [8, ...number(time), ...number(length), ...text(name)];
export const mark = (time, value, name) => [9, ...number(time), ...two(value), ...text(name)];
export const end = (frames = 0, cut = 0, leftOut = 0, repaired = 0) =>
	[10, ...number(frames), ...number(cut), ...number(leftOut), ...number(repaired)];
export const begin = (delta, f, kind = 0, width = 0) =>
	[0x10 + kind + (width > 0 ? 8 : 0), ...number(delta), ...number(f), ...(width > 0 ? number(width) : [])];
export const finish = (delta, insns = 0, kind = 0, width = 0) =>
	[0x20 + kind + (width > 0 ? 8 : 0), ...number(delta), ...number(insns), ...(width > 0 ? number(width) : [])];


export const looked = () => [11];
export const occasion = (words) => [13, ...text(words)];
export const suspect = (kind, words, f, { from, to, tid, cpu }) =>
	[12, (from === undefined ? 0 : 1) | (tid === undefined ? 0 : 2) | (cpu === undefined ? 0 : 4), ...number(from ?? 0),
		...number(to ?? 0), ...number(tid ?? 0), ...number(cpu ?? 0), ...text(kind), ...text(words), ...text(f)];
export const bytes = (...records) => Uint8Array.from(records.flat());
