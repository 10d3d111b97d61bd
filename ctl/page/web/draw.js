// Drawing that timeline, stacks and flame graph share: rows of frames and spans, and texts in boxes.
//
// A canvas takes 10 us for a rectangle or an image, and a screen has 20,000 boxes. Boxes are therefore
// pixels of one image, written here line by line; texts and hatching are drawn on top of the image.

import { FOUND, LOST } from "./data.js";
import { fit } from "./text.js";
import { DIM } from "./view.js";

export const ROW = 16;
export const FONT = "11px ui-monospace, 'DejaVu Sans Mono', Consolas, monospace";

/** The image of a canvas from LEFT to RIGHT, in pixels of the screen: SCALE of them are one of CSS. */
class Screen {
	constructor(width, height, scale) {
		Object.assign(this, { width, height, scale });
		this.image = new ImageData(width, height);
		this.pixels = new Uint32Array(this.image.data.buffer);
		this.line = new Uint32Array(width);
	}

	// The lines from Y on, HEIGHT high, as far as there are such: calls visit(the line's first pixel).
	eachLine(y, height, visit) {
		const from = Math.max(Math.round(y * this.scale), 0);
		const to = Math.min(Math.round((y + height) * this.scale), this.height);

		for (let line = from; line < to; line++)
			visit(line * this.width);
	}

	/** Copies LINE into all lines of a row. */
	stretch(line, y, height) {
		this.eachLine(y, height, (at) => this.pixels.set(line, at));
	}

	/** The same for the pixels of LINE that are not 0. */
	overlay(line, y, height) {
		for (let x = 0; x < line.length; x++) {
			if (line[x] === 0)
				continue;
			let end = x + 1;

			while (end < line.length && line[end] === line[x])
				end++;
			this.eachLine(y, height, (at) => this.pixels.fill(line[x], at + x, at + end));
			x = end - 1;
		}
	}
}

/** What the frames are painted with: context, colours, functions, the search, and the room from LEFT
 * to RIGHT. Boxes are seen after finish(). */
export class Painter {
	constructor(ctx, app, left, right, height) {
		const scale = window.devicePixelRatio || 1;
		const width = Math.max(1, Math.round((right - left) * scale)), lines = Math.max(1, Math.round(height * scale));

		Object.assign(this, { ctx, left, right, scale, colors: app.colors, trace: app.trace, search: app.search });
		ctx.font = FONT;
		ctx.textBaseline = "middle";
		Painter.charWidth ??= ctx.measureText("0000000000").width / 10;
		const key = `${width} ${lines} ${scale}`;

		this.screen = Painter.screens.get(ctx)?.key === key ? Painter.screens.get(ctx).screen
			: new Screen(width, lines, scale);
		Painter.screens.set(ctx, { key, screen: this.screen });
		this.screen.pixels.fill(this.colors.number("back"));
		this.later = [];
	}

	hue(func) {
		const { search } = this;

		return search.active && !search.functions[func] ? DIM : this.trace.hues[func];
	}

	/** TEXT within [left, right), shortened in front of its end KEEP; nothing where less than 3 letters fit. */
	label(text, left, right, y, color = this.colors.text, keep = "") {
		const room = Math.floor((right - left - 6) / Painter.charWidth);

		if (room < 3)
			return;
		const fitted = fit(text, keep, room);

		this.ctx.fillStyle = color;
		// Letters that may be wider than a place are squeezed.
		this.ctx.fillText(fitted, left + 3, y, /[^\0-\u04ff\u2026]/.test(fitted) ? right - left - 6 : undefined);
	}

	/** A text within the room, when the boxes are there. */
	labelLater(text, x0, x1, y, color, keep) {
		this.later.push(() => this.label(text, Math.max(x0, this.left), Math.min(x1, this.right), y, color, keep));
	}

	/** Shows the boxes, and what lies over them. */
	finish() {
		this.ctx.putImageData(this.screen.image, Math.round(this.left * this.scale), 0);
		for (const draw of this.later)
			draw();
		this.later = [];
	}

	/** Colours LINE from X0 to X1 of the canvas, at least one pixel; wider boxes end with a bare one. */
	fill(line, x0, x1, color) {
		const from = Math.max(Math.round((x0 - this.left) * this.scale), 0);
		let to = Math.min(Math.max(Math.round((x1 - this.left) * this.scale), from + 1), line.length);

		if (to - from > 3)
			to--;
		line.fill(color, from, to);
	}

	/** The frames of one depth at Y; those where MASK is not 0 are pale. The line is kept for scrolling
	 * up and down. */
	row(row, frames, view, y, mask) {
		const key = [view.from, view.to, this.left, this.right, this.scale, this.search.text,
			this.colors.back].join(" ");

		if (row.drawn?.key !== key) {
			const line = new Uint32Array(this.screen.width).fill(this.colors.number("back"));

			row.drawn = { key, line, boxes: this.drawRow(row, frames, view, line) };
			if (mask)
				this.colors.fade(line, mask);
		}
		this.screen.stretch(row.drawn.line, y, ROW - 1);
		for (const { frame, x0, x1 } of row.drawn.boxes)
			this.later.push(() => {
				this.edges(frames.kind[frame], x0, x1, y);
				this.label(this.trace.functions[frames.func[frame]].name, Math.max(x0, this.left),
					Math.min(x1, this.right), y + ROW / 2);
			});
	}

	// Returns the boxes that have room for a text.
	drawRow(row, frames, view, line) {
		const { colors, left, scale } = this, { from, to } = view, boxes = [], cell = view.pixel / scale;

		row.draw(from, to, cell, (i) => {
			const frame = row.ids[i];
			const x0 = left + (row.start[i] - from) / view.pixel, x1 = left + (row.end[i] - from) / view.pixel;

			this.fill(line, x0, x1, colors.pixel(this.hue(frames.func[frame])));
			if (x1 - x0 > 8)
				boxes.push({ frame, x0, x1 });
		}, (first, behind, longest, cellStart) => {
			const x = Math.max(Math.round((cellStart - from) / cell), 0);

			if (x < line.length)
				line[x] = colors.pixel(this.hue(frames.func[row.ids[longest]]),
					(row.before[behind] - row.before[first]) / cell);
		});
		return boxes;
	}

	// A begin or end that was not seen has a line.
	edges(kind, x0, x1, y) {
		this.ctx.fillStyle = this.colors.warn;
		if ((kind & 15) === FOUND && x0 >= this.left)
			this.ctx.fillRect(x0, y, 2, ROW - 1);
		if (kind >> 4 >= LOST && x1 <= this.right)
			this.ctx.fillRect(x1 - 2.5, y, 2, ROW - 1);
	}

	/** The pixels of the spans of ROW, 0 where there is none. paint(index) gives { color, text, keep, cover }
	 * with a name of Colors, or a number as of Colors.pixel(). COVER: "hatch" or a colour, over what is
	 * there and its texts. Texts and covers are for Y. */
	line(row, view, paint, y, height) {
		const { colors, scale } = this, line = this.screen.line.fill(0);

		row.draw(view.from, view.to, view.pixel / scale, (i) => {
			const span = paint(i), x0 = view.x(row.start[i]), x1 = view.x(row.end[i]);

			if (span.cover && x1 - x0 > 4)
				this.cover(span, x0, x1, y, height);
			else
				this.fill(line, x0, x1, colors.number(span.color));
			if (span.text && !span.cover && x1 - x0 > 20)
				this.labelLater(span.text, x0, x1, y + Math.min(height, ROW) / 2, undefined, span.keep);
		}, (first, behind, longest, cellStart) => {
			const x = Math.max(Math.round((cellStart - view.from) / view.pixel * scale), 0);

			if (x < line.length)
				line[x] = colors.number(paint(longest).color);
		});
		return line;
	}

	// Hides what is below: a text there and the text of the cover would be one over the other.
	cover({ cover, text }, from, to, y, height) {
		const { ctx, colors } = this, x0 = Math.max(from, this.left), x1 = Math.min(to, this.right);
		const width = text.length * Painter.charWidth + 6;

		this.later.push(() => {
			ctx.fillStyle = colors[cover];
			ctx.fillRect(x0, y, x1 - x0, height);
			if (x1 - x0 < width + 12)
				return;
			ctx.fillStyle = colors.back;
			ctx.fillRect(x0, y, width, Math.min(height, ROW));
			this.label(text, x0, x1, y + Math.min(height, ROW) / 2, colors.warn);
		});
	}

	/** Spans of one colour each, over what is there. */
	spans(row, view, y, height, paint) {
		this.screen.overlay(this.line(row, view, paint, y, height), y, height);
	}
}
Painter.screens = new WeakMap();
