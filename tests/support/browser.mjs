// A Chromium without a window, over its debugging pipe: one page, keys, mouse, and what the page shows.

import { spawn } from "node:child_process";

const KEYS = {
	Enter: [13, "\r"], Escape: [27], Tab: [9], ArrowLeft: [37], ArrowUp: [38], ArrowRight: [39], ArrowDown: [40],
};

/** Starts PROGRAM with DIRECTORY for its files. */
export class Browser {
	constructor(program, directory) {
		this.waiting = new Map();
		this.sent = 0;
		this.rest = "";
		this.errors = [];   // of the page's script
		this.requests = []; // other than the page itself
		this.refused = [];  // by the page's policy
		this.child = spawn(program, ["--headless", "--no-sandbox", "--remote-debugging-pipe", `--user-data-dir=${directory}`,
			"--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
			"--window-size=1400,900", "about:blank"],
		{ stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"], env: { ...process.env, HOME: directory } });
		this.child.on("exit", (code) => this.fail(`the browser ended with status ${code}`));
		this.child.on("error", (error) => this.fail(`the browser cannot be started: ${error.message}`));
		this.child.stdio[3].on("error", () => {});
		this.child.stdio[4].on("data", (data) => this.receive(String(data)));
	}

	fail(message) {
		for (const { reject } of this.waiting.values())
			reject(new Error(message));
		this.waiting.clear();
		this.dead = message;
	}

	receive(data) {
		const messages = (this.rest + data).split("\0");

		this.rest = messages.pop();
		for (const message of messages.map((m) => JSON.parse(m))) {
			const waits = this.waiting.get(message.id);

			this.waiting.delete(message.id);
			if (message.error)
				waits?.reject(new Error(message.error.message));
			else if (waits)
				waits.resolve(message.result);
			else
				this.note(message);
		}
	}

	note({ method, params }) {
		if (method === "Runtime.exceptionThrown")
			this.errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
		else if (method === "Network.requestWillBeSent" && !params.request.url.startsWith("file:"))
			this.requests.push(params.request.url);
		else if (method === "Log.entryAdded" && params.entry.source === "security")
			this.refused.push(params.entry.text);
	}

	send(method, params = {}) {
		return new Promise((resolve, reject) => {
			if (this.dead) {
				reject(new Error(this.dead));
				return;
			}
			const sessionId = /^(Browser|SystemInfo)\./.test(method) ? undefined : this.session;

			this.waiting.set(++this.sent, { resolve, reject });
			this.child.stdio[3].write(`${JSON.stringify({ id: this.sent, method, params, sessionId })}\0`);
		});
	}

	/** Opens FILE in a new page. */
	async open(file) {
		const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });

		this.session = (await this.send("Target.attachToTarget", { targetId, flatten: true })).sessionId;
		for (const part of ["Runtime", "Network", "Log", "Page"])
			await this.send(`${part}.enable`);
		await this.send("Emulation.setDeviceMetricsOverride", { width: 1400, height: 900, deviceScaleFactor: 1, mobile: false });
		await this.send("Page.navigate", { url: `file://${file}` });
	}

	/** The value of EXPRESSION in the page. */
	async get(expression) {
		const { result, exceptionDetails } = await this.send("Runtime.evaluate",
			{ expression, returnByValue: true, awaitPromise: true });

		if (exceptionDetails)
			throw new Error(`${expression.slice(0, 300)}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
		return result.value;
	}

	/** Waits until EXPRESSION is true in the page; returns its value. The page draws in between. */
	async until(expression) {
		this.awaits = expression;
		for (;;) {
			const value = await this.get(expression);

			if (value)
				return value;
			await this.get("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 5)))");
		}
	}

	text(id) {
		return this.get(`document.getElementById(${JSON.stringify(id)}).textContent`);
	}

	async key(key) {
		const [code = key.toUpperCase().charCodeAt(0), typed = key.length === 1 ? key : undefined] = KEYS[key] ?? [];
		const event = { key, windowsVirtualKeyCode: code, ...(typed ? { text: typed } : {}) };

		await this.send("Input.dispatchKeyEvent", { type: typed ? "keyDown" : "rawKeyDown", ...event });
		await this.send("Input.dispatchKeyEvent", { ...event, type: "keyUp", text: undefined });
	}

	async type(text) {
		for (const key of text)
			await this.key(key);
	}

	mouse(type, x, y, more = {}) {
		return this.send("Input.dispatchMouseEvent", { type, x, y, ...more });
	}

	async click(x, y) {
		await this.mouse("mouseMoved", x, y);
		await this.mouse("mousePressed", x, y, { button: "left", clickCount: 1 });
		await this.mouse("mouseReleased", x, y, { button: "left", clickCount: 1 });
	}

	/** The middle of the first element that SELECTOR finds. */
	middle(selector) {
		return this.get(`(() => { const r = document.querySelector(${JSON.stringify(selector)}).getClientRects()[0];
			return [r.x + r.width / 2, r.y + r.height / 2]; })()`);
	}

	async screenshot() {
		return Buffer.from((await this.send("Page.captureScreenshot")).data, "base64");
	}

	/** Ends the browser, and waits until it and its files are at rest. */
	async end() {
		const gone = this.dead ? undefined : new Promise((done) => this.child.once("exit", done));
		const timer = setTimeout(() => this.child.kill("SIGKILL"), 20000);

		this.send("Browser.close").catch(() => {});
		await gone;
		clearTimeout(timer);
	}
}
