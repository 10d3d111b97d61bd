// Texts: those of strangers made visible, and numbers as people read them.

// Characters that control, reorder or hide their neighbours. Right-to-left letters stay: CSS and
// the canvas keep each name in a frame of its own.
const UNSAFE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|\p{M}{4,}/gu;

/** A stranger's text with unsafe characters as \u{202e}. */
export function visible(text) {
	return text.replace(UNSAFE, (found) =>
		Array.from(found, (c) => `\\u{${c.codePointAt(0).toString(16)}}`).join(""));
}

/** TEXT and its end KEEP in ROOM letters: TEXT is shortened first, as KEEP tells it from others. */
export function fit(text, keep, room) {
	const left = room - keep.length;

	if (text.length <= left)
		return text + keep;
	if (left >= 4)
		return `${text.slice(0, left - 1)}\u2026${keep}`;
	return text.length <= room ? text : `${text.slice(0, room - 1)}\u2026`;
}

/** 1234567 as 1,234,567. */
export function count(n) {
	return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** "1 call", "2 calls". */
export function plural(n, noun) {
	return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

const UNITS = [["s", 1e9], ["ms", 1e6], ["us", 1e3]];

/** Nanoseconds with three or four digits and a unit: 1.234 ms. */
export function duration(ns) {
	for (const [unit, size] of UNITS) {
		const v = ns / size;

		if (Math.abs(v) >= 0.99995)
			return `${v.toFixed(Math.abs(v) >= 100 ? 1 : Math.abs(v) >= 10 ? 2 : 3)} ${unit}`;
	}
	return `${Math.round(ns)} ns`;
}

/** Nanoseconds to the last digit: 1.234567 ms. */
export function exact(ns) {
	const [unit, size, digits] = Math.abs(ns) >= 1e9 ? ["s", 1e9, 9] : Math.abs(ns) >= 1e6 ? ["ms", 1e6, 6]
		: Math.abs(ns) >= 1e3 ? ["us", 1e3, 3] : ["ns", 1, 0];

	return `${(ns / size).toFixed(digits)} ${unit}`;
}

/** A time on the axis, exact to STEP ns, in the unit that suits the distance SPAN. */
export function moment(ns, span, step) {
	const [unit, size] = UNITS.find(([, s]) => span >= s) ?? ["ns", 1];
	const digits = Math.max(0, Math.ceil(Math.log10(size / Math.max(step, 1)) - 1e-9));

	return `${(ns / size).toFixed(digits)} ${unit}`;
}

/** "12.3 %"; only the whole is 100 %. */
export function share(part, whole) {
	if (!(whole > 0))
		return "-";
	const percent = 100 * part / whole;

	return `${percent >= 100 ? 100 : Math.floor(percent * 10) / 10} %`;
}

/** Parses 10us, 1.5ms, 3s, 200ns or 200; NaN for anything else. */
export function parseDuration(text) {
	const m = /^(\d+(?:\.\d+)?)(ns|us|ms|s)?$/.exec(text);

	return m ? Number(m[1]) * { ns: 1, us: 1e3, ms: 1e6, s: 1e9 }[m[2] ?? "ns"] : NaN;
}
