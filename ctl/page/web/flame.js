// Flame graph: the calls of a selection, those with equal paths as one box, callers above callees.

import { Painter, ROW } from "./draw.js";
import { flameTree } from "./stats.js";
import { count, duration, plural, share } from "./text.js";
import { fitCanvas } from "./view.js";

/** Calls box(node, x0, x1, depth) for each node that is at least SMALLEST wide on [0, width). */
export function layoutFlame(root, width, smallest, box) {
	const place = (node, x, depth) => {
		const scale = root.value > 0 ? width / root.value : 0;

		box(node, x, x + node.value * scale, depth);
		let at = x;
		const children = [...node.children.values()].filter((c) => c.value * scale >= smallest)
			.sort((a, b) => b.value - a.value);

		for (const child of children) {
			place(child, at, depth + 1);
			at += child.value * scale;
		}
	};

	place(root, 0, 0);
}

/** A value of the tree with its unit. */
export function weightText(value, weight) {
	return weight.endsWith("time") ? duration(value) : `${count(value)} ${weight}`;
}

/** The path of a node, as `a > b > c`. */
function pathText(node, trace) {
	const names = [];

	for (let n = node; n && n.func >= 0; n = n.parent)
		names.unshift(trace.functions[n.func].name);
	return names.join(" \u203a ");
}

/** The flame graph of the app's scope. */
export class Flame {
	constructor(app, canvas, spacer, info) {
		Object.assign(this, { app, canvas, spacer, info, boxes: [], key: "", weight: "CPU time" });
		this.zoomed = null;
	}

	/** Makes the tree again if the scope is another one. */
	update() {
		const { app } = this, scope = app.scope();
		const key = `${scope.key} ${this.weight}`;

		if (key === this.key)
			return;
		this.key = key;
		this.root = flameTree(scope.threads, scope.from, scope.to, this.weight);
		this.zoomed = this.root;
	}

	draw() {
		this.update();
		const { app, zoomed } = this, scroll = this.canvas.parentElement.scrollTop;
		const { ctx, width, height } = fitCanvas(this.canvas, this.canvas.parentElement);
		const painter = new Painter(ctx, app, 0, width, 1);
		let deepest = 0;

		ctx.fillStyle = app.colors.back;
		ctx.fillRect(0, 0, width, height);
		this.boxes = [];
		layoutFlame(zoomed, width, 0.5, (node, x0, x1, depth) => {
			const y = depth * ROW - scroll;

			deepest = Math.max(deepest, depth);
			if (y + ROW < 0 || y > height)
				return;
			this.boxes.push({ node, x0, x1, y });
			ctx.fillStyle = node.func < 0 ? app.colors.line : app.colors.frames[painter.hue(node.func)];
			ctx.fillRect(x0, y, Math.max(x1 - x0 - 0.5, 0.5), ROW - 1);
			if (x1 - x0 > 24)
				painter.label(node.func < 0 ? this.title() : app.trace.functions[node.func].name,
					x0, x1, y + ROW / 2);
		});
		this.spacer.style.height = `${(deepest + 1) * ROW}px`;
		this.tell(zoomed);
	}

	title() {
		return `${this.app.scope().text}: ${weightText(this.root.value, this.weight)}`;
	}

	tell(node) {
		if (node.func < 0) {
			this.info.textContent = `${this.title()}. A click on a box shows it as wide as everything.`;
			return;
		}
		this.info.textContent = `${weightText(node.value, this.weight)} (${share(node.value, this.root.value)}), itself ${
			weightText(Math.max(node.self, 0), this.weight)}, ${plural(node.calls, "call")}: ${pathText(node, this.app.trace)}`;
	}

	at(x, y) {
		return this.boxes.find((box) => x >= box.x0 && x < box.x1 && y >= box.y && y < box.y + ROW)?.node;
	}

	/** Shows NODE as wide as everything; the top box again shows its caller. */
	zoom(node) {
		this.zoomed = node === this.zoomed ? node.parent ?? node : node;
		this.app.changed();
	}
}
