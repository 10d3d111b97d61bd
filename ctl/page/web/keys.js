// What the keys do. The page's help is this list.

/** [keys, words for people, action(app)]. */
export const KEYS = [
	[["w", "+"], "zoom in", (app) => app.zoom(0.6)],
	[["s", "-"], "zoom out", (app) => app.zoom(1 / 0.6)],
	[["a"], "move left", (app) => app.pan(-0.2)],
	[["d"], "move right", (app) => app.pan(0.2)],
	[["0"], "show the whole window", (app) => app.showAll()],
	[["f", "Enter"], "show the chosen call, or the selected time, as large as it fits", (app) => app.showChosen()],
	[["ArrowLeft"], "the call before, of the same depth", (app) => app.step(-1)],
	[["ArrowRight"], "the next call of the same depth", (app) => app.step(1)],
	[["ArrowUp"], "the caller", (app) => app.up()],
	[["ArrowDown"], "the first call within", (app) => app.down()],
	[["/"], "search", (app) => app.focusSearch()],
	[["n"], "next hit; without a search, next call of the same function", (app) => app.nextHit(1)],
	[["N"], "the hit before", (app) => app.nextHit(-1)],
	[["r"], "select the time of the chosen call", (app) => app.rangeOfChosen()],
	[["e"], "show less or more rows of the thread", (app) => app.fold()],
	[["E"], "hide or show the calls of all threads", (app) => app.foldAll()],
	[["c"], "hide or show the CPUs", (app) => app.foldCpus()],
	[["j"], "next thread", (app) => app.stepThread(1)],
	[["k"], "the thread before", (app) => app.stepThread(-1)],
	[["1"], "call and stacks", (app) => app.showTab("call")],
	[["2"], "flame graph", (app) => app.showTab("flame")],
	[["3"], "functions", (app) => app.showTab("functions")],
	[["4"], "what stands out", (app) => app.showTab("suspects")],
	[["g"], "go to the next suspect", (app) => app.suspects.step(1)],
	[["G"], "go to the suspect before", (app) => app.suspects.step(-1)],
	[["?"], "this help", (app) => app.showTab("keys")],
	[["t"], "light or dark", (app) => app.toggleTheme()],
	[["Escape"], "forget the selected time, the search, the chosen call", (app) => app.escape()],
];

export const MOUSE = [
	["click", "choose a call; on a thread's name: show less or more rows; on the number of CPUs: hide or show them"],
	["double click", "show the call as large as it fits"],
	["drag", "move"],
	["Shift and drag, or drag on the ruler", "select a time"],
	["Ctrl and wheel", "zoom"],
	["wheel", "scroll; with Shift: move"],
	["drag on the overview", "show another part"],
];

const SHOWN = { ArrowLeft: "\u2190", ArrowRight: "\u2192", ArrowUp: "\u2191", ArrowDown: "\u2193" };

/** The action of a key event, or undefined. */
export function actionOf(event) {
	if (event.ctrlKey || event.metaKey || event.altKey)
		return undefined;
	return KEYS.find(([keys]) => keys.includes(event.key))?.[2];
}

/** What the colours and marks of the timeline mean: [class of the style sheet, words]. */
export const LEGEND = [
	["run", "the thread ran; in the overview: how many of the CPUs were in use"],
	["wait", "the thread could have run, and had no CPU"],
	["block", "the thread waited"],
	["call", "a call; each function has its colour"],
	["pale", "a call of a thread that was not on a CPU"],
	["unseen-end", "begin or end of the call was not seen"],
	["gap", "a gap: what happened meanwhile is not known"],
	["dark", "dark time: the CPU was not traced"],
	["trigger", "the trigger"],
	["mark", "an event besides branches; point at it"],
	["hit", "hits of the search"],
];

function pair(term, words) {
	const div = document.createElement("div"), dt = document.createElement("dt"), dd = document.createElement("dd");

	if (typeof term === "string")
		dt.textContent = term;
	else
		dt.append(term);
	dd.textContent = words;
	div.append(dt, dd);
	return div;
}

/** Fills the elements with the list of keys and with that of colours. */
export function writeHelp(keys, legend) {
	const rows = [...KEYS.map(([names, words]) => [names.map((k) => SHOWN[k] ?? k).join("  "), words]), ...MOUSE];

	keys.replaceChildren(...rows.map(([names, words]) => pair(names, words)));
	legend.replaceChildren(...LEGEND.map(([name, words]) => {
		const swatch = document.createElement("div");

		swatch.className = `swatch ${name}`;
		return pair(swatch, words);
	}));
}

/** Listens to keys: in the search field, only Enter and Escape are ours. */
export function listen(app, field) {
	document.addEventListener("keydown", (event) => {
		if (event.target === field) {
			if (event.key === "Escape" || event.key === "Enter") {
				field.blur();
				if (event.key === "Enter")
					app.nextHit(event.shiftKey ? -1 : 1);
				event.preventDefault();
			}
			return;
		}
		// Enter and the arrows belong to a link, button or list that has the focus.
		if (/^(A|BUTTON|SELECT|INPUT)$/.test(event.target.tagName) && /^(Enter|Arrow.*| )$/.test(event.key))
			return;
		const action = actionOf(event);

		if (!action)
			return;
		event.preventDefault();
		action(app);
	});
}
