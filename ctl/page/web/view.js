// The part of the window that is on the screen, and its colours.

/** From FROM to TO, in ns since the first time, on WIDTH pixels from LEFT on. */
export class View {
	constructor(length) {
		this.length = length;
		this.left = 0;
		this.width = 1;
		this.show(0, length);
	}

	get span() {
		return this.to - this.from;
	}

	/** Nanoseconds of a pixel. */
	get pixel() {
		return this.span / this.width;
	}

	/** Shows [from, to], as far as there is something: at least 20 ns, at most all. */
	show(from, to) {
		const span = Math.min(Math.max(to - from, 20), Math.max(this.length, 20));
		const middle = (from + to) / 2;

		this.from = Math.min(Math.max(middle - span / 2, 0), Math.max(this.length - span, 0));
		this.to = this.from + span;
	}

	/** FACTOR above 1 shows more. ANCHOR stays where it is. */
	zoom(factor, anchor = (this.from + this.to) / 2) {
		const span = Math.min(Math.max(this.span * factor, 20), Math.max(this.length, 20));
		const place = (anchor - this.from) / this.span;

		this.show(anchor - place * span, anchor + (1 - place) * span);
	}

	pan(ns) {
		this.show(this.from + ns, this.to + ns);
	}

	/** Moves TIME to the middle if the view does not have it. */
	reveal(from, to) {
		const middle = (from + Math.min(to, from + this.span)) / 2;

		if (to <= this.from || from >= this.to || to - from < this.pixel)
			this.show(middle - this.span / 2, middle + this.span / 2);
	}

	x(time) {
		return this.left + (time - this.from) / this.pixel;
	}

	time(x) {
		return this.from + (x - this.left) * this.pixel;
	}
}

const HUES = 24, SHADES = 4; // a shade says how much of a cell calls fill
export const DIM = HUES;
const NAMES = ["back", "text", "faint", "line", "accent", "warn", "run", "wait", "block", "dark", "hit"];

/** The colours of the page, from the style sheet and computed; as CSS, and as pixels of an image. */
export class Colors {
	constructor() {
		this.probe = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
		this.read();
	}

	/** Reads them again after the theme changed. */
	read() {
		const style = getComputedStyle(document.documentElement);
		const get = (name) => style.getPropertyValue(`--${name}`).trim();

		this.numbers = new Map();
		for (const name of NAMES) {
			this[name] = get(name);
			this.numbers.set(name, this.toNumber(this[name]));
		}
		this.frames = Array.from({ length: HUES + 1 }, (_, hue) => hue === DIM
			? `hsl(0 0% ${get("dim-light")})`
			: `hsl(${hue * 360 / HUES} ${get("frame-saturation")} ${get("frame-light")})`);
		this.pixels = this.frames.map((color) => Array.from({ length: SHADES }, (_, shade) =>
			mix(this.number("back"), this.toNumber(color), (shade + 1) / SHADES)));
		this.hatch = this.makeHatch();
	}

	// A pixel as four bytes in memory: red, green, blue, alpha.
	toNumber(color) {
		this.probe.clearRect(0, 0, 1, 1);
		this.probe.fillStyle = color;
		this.probe.fillRect(0, 0, 1, 1);
		return new Uint32Array(this.probe.getImageData(0, 0, 1, 1).data.buffer)[0];
	}

	// Diagonal lines for what is not known.
	makeHatch() {
		const tile = new OffscreenCanvas(6, 6), ctx = tile.getContext("2d");

		ctx.strokeStyle = this.warn;
		ctx.lineWidth = 1;
		for (const x of [-6, 0, 6]) {
			ctx.moveTo(x, 6);
			ctx.lineTo(x + 6, 0);
		}
		ctx.stroke();
		return ctx.createPattern(tile, "repeat");
	}

	/** The pixel of a frame's hue. FILL from 0 to 1 says how much of the place is covered. */
	pixel(hue, fill = 1) {
		return this.pixels[hue][Math.min(SHADES - 1, Math.max(0, Math.ceil(fill * SHADES) - 1))];
	}

	/** Makes the pixels of LINE pale where MASK is not 0. */
	fade(line, mask) {
		const back = this.number("back");
		let last = 0, pale = 0;

		for (let x = 0; x < line.length; x++) {
			if (mask[x] === 0)
				continue;
			if (line[x] !== last) {
				last = line[x];
				pale = mix(last, back, 0.6);
			}
			line[x] = pale;
		}
	}

	/** The pixel of a colour's name; a number is a pixel already. */
	number(color) {
		return typeof color === "number" ? color : this.numbers.get(color);
	}
}

/** The pixel between A (share 0) and B (share 1), without transparency. */
export function mix(a, b, share) {
	let mixed = 0xff000000;

	for (const shift of [0, 8, 16])
		mixed |= Math.round((a >> shift & 255) * (1 - share) + (b >> shift & 255) * share) << shift;
	return mixed >>> 0;
}

/** A hue for a text, always the same. */
export function hueOf(text) {
	let hash = 2166136261;

	for (let i = 0; i < text.length; i++)
		hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
	return (hash >>> 8) % HUES;
}

/** Makes CANVAS as large as it is shown, for the resolution of the screen; returns its context. In
 * a SCROLLER, it is as high as what is to be seen of the scroller, and not as its contents. */
export function fitCanvas(canvas, scroller) {
	if (scroller && canvas.style.height !== `${scroller.clientHeight}px`)
		canvas.style.height = `${scroller.clientHeight}px`;
	const scale = window.devicePixelRatio || 1;
	const width = canvas.clientWidth, height = canvas.clientHeight;

	if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
		canvas.width = Math.round(width * scale);
		canvas.height = Math.round(height * scale);
	}
	const ctx = canvas.getContext("2d", { alpha: false });

	ctx.setTransform(scale, 0, 0, scale, 0, 0);
	ctx.direction = "ltr";
	return { ctx, width, height };
}
