// Mouse, wheel, touch and the controls of the page.

import { threadTitle } from "./data.js";
import { $ } from "./dom.js";
import { count, duration } from "./text.js";

const CLICK = 4; // a press that moves less is a click

/** Connects the elements of the page with APP. */
export class Pointer {
	constructor(app) {
		this.app = app;
		this.press = null;
		this.timeline();
		this.overview();
		this.panel();
		this.controls();
	}

	timeline() {
		const { app } = this, canvas = $("timeline");

		canvas.addEventListener("pointerdown", (e) => {
			if (e.button !== 0)
				return;
			const hit = app.timeline.hit(e.offsetX, e.offsetY);

			this.press = { x: e.offsetX, y: e.offsetY, from: app.view.from, to: app.view.to, hit,
				scroll: $("scroll").scrollTop, range: e.shiftKey || hit.ruler, moved: false };
			canvas.setPointerCapture(e.pointerId);
		});
		canvas.addEventListener("pointermove", (e) => this.move(e));
		canvas.addEventListener("pointerup", (e) => this.release(e));
		canvas.addEventListener("pointercancel", () => { this.press = null; });
		canvas.addEventListener("pointerleave", () => this.tip(null));
		canvas.addEventListener("dblclick", () => app.showChosen());
		$("scroll").addEventListener("scroll", () => app.changed());
		$("scroll").addEventListener("wheel", (e) => this.wheel(e, app.view), { passive: false });
		addEventListener("resize", () => app.changed());
	}

	wheel(e, view) {
		const { app } = this, sideways = e.shiftKey && e.deltaX === 0 ? e.deltaY : e.deltaX;

		if (e.ctrlKey || e.metaKey) {
			view.zoom(Math.exp(Math.max(-200, Math.min(e.deltaY, 200)) / 250), view.time(e.offsetX));
		} else if (Math.abs(sideways) > 0 && Math.abs(sideways) >= Math.abs(e.shiftKey ? 0 : e.deltaY)) {
			view.pan(sideways * view.pixel);
		} else {
			return;
		}
		e.preventDefault();
		app.changed();
	}

	move(e) {
		const { app, press } = this, { view } = app;

		if (!press) {
			this.tip(e);
			return;
		}
		const dx = e.offsetX - press.x, dy = e.offsetY - press.y;

		press.moved ||= Math.abs(dx) + Math.abs(dy) >= CLICK;
		if (!press.moved)
			return;
		this.tip(null);
		if (press.range) {
			const times = [press.hit.time, view.time(Math.max(e.offsetX, view.left))].sort((a, b) => a - b);

			app.range = { from: Math.max(times[0], 0), to: Math.min(times[1], app.trace.length) };
		} else {
			const span = press.to - press.from, by = -dx * span / view.width;

			view.show(press.from + by, press.to + by);
			$("scroll").scrollTop = press.scroll - dy;
		}
		app.changed();
	}

	release(e) {
		const { app, press } = this;

		this.press = null;
		if (!press || press.moved)
			return;
		const { hit } = press;

		if (hit.lane?.head) {
			app.timeline.foldCpus();
		} else if (hit.gutter && hit.lane?.thread) {
			app.select = { thread: hit.lane.thread, frame: -1 };
			app.timeline.fold(hit.lane);
		} else if (hit.frame >= 0) {
			app.choose(hit.lane.thread, hit.frame, false);
		} else if (hit.thread) {
			app.chooseMoment(hit.thread, hit.time);
		}
		if (!hit.gutter && !hit.lane?.head)
			app.cursor = app.view.time(e.offsetX);
		app.changed();
	}

	overview() {
		const { app } = this, canvas = $("overview");
		const go = (e) => {
			const { whole } = app.timeline, time = (e.offsetX - whole.left) * whole.pixel;

			app.view.show(time - app.view.span / 2, time + app.view.span / 2);
			app.changed();
		};

		canvas.addEventListener("pointerdown", (e) => {
			canvas.setPointerCapture(e.pointerId);
			go(e);
		});
		canvas.addEventListener("pointermove", (e) => {
			if (e.buttons & 1)
				go(e);
		});
	}

	panel() {
		const { app } = this, flame = $("flame"), icicle = $("icicle");

		flame.addEventListener("pointermove", (e) => {
			const node = app.flame.at(e.offsetX, e.offsetY);

			if (node)
				app.flame.tell(node);
		});
		flame.addEventListener("click", (e) => {
			const node = app.flame.at(e.offsetX, e.offsetY);

			if (node)
				app.flame.zoom(node);
		});
		$("tab-flame").addEventListener("scroll", () => app.drawPanel());
		icicle.addEventListener("wheel", (e) => {
			this.wheel(e, app.stacks.view);
			app.drawPanel();
		}, { passive: false });
		icicle.addEventListener("click", (e) => {
			const frame = app.stacks.at(e.offsetX, e.offsetY);

			if (frame >= 0)
				app.choose(app.select.thread, frame, true);
		});
		this.handle();
	}

	// The line between timeline and panel can be moved.
	handle() {
		const { app } = this, handle = $("handle");

		handle.addEventListener("pointerdown", (e) => handle.setPointerCapture(e.pointerId));
		handle.addEventListener("pointermove", (e) => {
			if (!(e.buttons & 1))
				return;
			$("panel").style.height = `${Math.max(80, Math.min(innerHeight - e.clientY, innerHeight - 200))}px`;
			app.changed();
		});
	}

	controls() {
		const { app } = this;
		let timer = 0;

		$("find").addEventListener("input", () => {
			clearTimeout(timer);
			timer = setTimeout(() => app.find($("find").value), 120);
		});
		for (const [id, action] of [["zoom-in", () => app.zoom(0.6)], ["zoom-out", () => app.zoom(1 / 0.6)],
			["zoom-all", () => app.showAll()], ["hit-next", () => app.nextHit(1)],
			["hit-before", () => app.nextHit(-1)], ["theme", () => app.toggleTheme()]])
			$(id).addEventListener("click", action);
		for (const tab of document.querySelectorAll("[role=tab]"))
			tab.addEventListener("click", () => app.showTab(tab.dataset.tab));
		for (const id of ["scope-time", "scope-thread"])
			$(id).addEventListener("change", () => app.changed());
		$("weight").addEventListener("change", () => {
			app.flame.weight = $("weight").value;
			app.changed();
		});
	}

	/** Shows what is under the mouse. */
	tip(e) {
		const tip = $("tip"), text = e ? this.tipText(this.app.timeline.hit(e.offsetX, e.offsetY)) : "";

		tip.hidden = text === "";
		if (text === "")
			return;
		tip.textContent = text;
		tip.style.left = `${Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
		tip.style.top = `${Math.min(e.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
	}

	tipText(hit) {
		const { app } = this, lines = [];

		if (hit.frame >= 0) {
			const { frames } = hit.lane.thread, f = app.trace.functions[frames.func[hit.frame]];

			lines.push(f.name, `${duration(frames.duration(hit.frame))} at ${app.when(frames.start[hit.frame])}`);
			if (f.image)
				lines.push(f.image);
		} else if (hit.lane?.cpu && hit.thread) {
			lines.push(threadTitle(hit.thread));
		}
		if (hit.frequency)
			lines.push(`${count(hit.frequency.value)} ${hit.frequency.unit}`);
		if (hit.mark)
			lines.push(`${hit.mark.name} ${hit.mark.value}, at ${app.whenExactly(hit.mark.time)}`);
		if (hit.gap)
			lines.push(`gap: ${hit.gap.name}, ${duration(hit.gap.end - hit.gap.start)}`);
		else if (hit.off)
			lines.push(`not on a CPU: ${hit.off.text}`);
		return lines.join("\n");
	}
}
