// ctl/page/web/data.js: records to threads, calls, CPUs.

import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";

import { cpuBefore, parse, unpack } from "../../../../../ctl/page/web/data.js";
import * as r from "./records.mjs";

const TWO_CALLS = [r.title("a snapshot"), r.head(1000, 500, 1400), r.thread(1, 7, 8, "main"),
	r.func(1, "outer", "/bin/x", 0x1_0000_0010n, "x.c", 3), r.func(2, "inner"), r.lane(1, 2),
	r.begin(10, 1, 6), r.begin(20, 2, 0, 5), r.finish(30, 400, 0, 6), r.finish(40, 50, 4)];

test("parse_two_calls_nest", () => {
	const trace = parse(r.bytes(...TWO_CALLS, r.end(2, 3, 4, 5))), { frames } = trace.threads[0];

	assert.equal(trace.title, "a snapshot");
	assert.equal(trace.length, 500);
	assert.equal(trace.trigger, 400);
	assert.deepEqual([trace.complete, trace.cut, trace.leftOut, trace.repaired], [true, 3, 4, 5]);
	assert.deepEqual([trace.threads[0].pid, trace.threads[0].tid, trace.threads[0].name], [7, 8, "main"]);
	assert.equal(frames.n, 2);
	assert.deepEqual([...frames.start.subarray(0, 2)], [10, 30]);
	assert.deepEqual([...frames.end.subarray(0, 2)], [100, 60]);
	assert.deepEqual([...frames.parent.subarray(0, 2)], [-1, 0]);
	assert.deepEqual([...frames.depth.subarray(0, 2)], [0, 1]);
	assert.deepEqual([...frames.insns.subarray(0, 2)], [50, 400]);
	assert.deepEqual([frames.startWidth[1], frames.endWidth[1]], [5, 6]);
	assert.deepEqual([frames.whole(0), frames.whole(1)], [false, true]);
	assert.equal(frames.cpu[1], 2);
	assert.deepEqual(trace.functions[trace.threads[0].frames.func[0]], { name: "outer", address: "0x100000010", image: "/bin/x", file: "x.c", line: 3 });
	assert.equal(trace.functions[trace.threads[0].frames.func[1]].name, "inner");
});

test("parse_more_calls_than_fit_grows", () => {
	const calls = Array.from({ length: 1000 }, () => [...r.begin(1, 1), ...r.finish(1, 3)]).flat();
	const trace = parse(r.bytes(r.head(0, 5000), r.lane(1, 0), calls, r.end()));

	assert.equal(trace.frames, 1000);
	assert.equal(trace.threads[0].frames.start[999], 1999);
	assert.equal(trace.threads[0].frames.insns[999], 3);
});

test("parse_open_calls_last_until_the_end", () => {
	const trace = parse(r.bytes(r.head(0, 500), r.lane(1, 0), r.on(5), r.begin(10, 1)));

	assert.equal(trace.complete, false);
	assert.equal(trace.threads[0].frames.end[0], 500);
	assert.deepEqual(trace.threads[0].runs.map((run) => [run.start, run.end]), [[5, 500]]);
	assert.equal(trace.functions[trace.threads[0].frames.func[0]].name, "[unknown]");
});

test("parse_frames_of_an_untraced_kernel_have_names", () => {
	const trace = parse(r.bytes(r.head(0, 500), r.lane(1, 0), r.begin(1, 0, 3), r.begin(1, 0, 4), r.begin(1, 0), r.end()));

	assert.deepEqual([...trace.threads[0].frames.func.subarray(0, 3)].map((f) => trace.functions[f].name),
		["[interrupt]", "[system call]", "[unknown]"]);
});

test("parse_switches_give_runs_and_cpu_time", () => {
	const trace = parse(r.bytes(r.head(0, 1000), r.lane(1, 3), r.off(100, 1), r.lane(1, 4), r.on(100), r.off(50, 0),
		r.end()));
	const [thread] = trace.threads;

	assert.deepEqual(thread.runs.map((run) => [run.start, run.end, run.cpu, run.why]), [[0, 100, 3, 1], [200, 250, 4, 0]]);
	assert.deepEqual([50, 100, 150, 225, 250, 900].map((time) => cpuBefore(thread, time)), [50, 100, 100, 125, 150, 150]);
	assert.deepEqual(trace.cpus.map((cpu) => [cpu.number, cpu.runs.length]), [[3, 1], [4, 1]]);
});

test("parse_gaps_and_marks_belong_to_thread_and_cpu", () => {
	const trace = parse(r.bytes(r.head(0, 1000), r.lane(0, 2), r.gap(100, 50, "dark"), r.mark(5, 30, "frequency"), r.mark(7, 1, "cstate"),
		r.lane(1, 2), r.gap(10, 20, "overflow"), r.mark(6, 0x1_0000_0000n, "ptwrite"), r.end()));

	assert.deepEqual(trace.cpus[0].gaps.map((gap) => gap.name), ["overflow", "dark"]);
	assert.deepEqual(trace.cpus[0].frequency, [{ time: 5, value: 30, unit: "MHz" }]);
	assert.deepEqual(trace.cpus[0].marks.map((mark) => mark.name), ["cstate"]);
	assert.deepEqual(trace.threads[0].gaps.map((gap) => [gap.start, gap.end]), [[10, 30]]);
	assert.deepEqual(trace.threads[0].marks, [{ time: 6, cpu: 2, value: "0x100000000", name: "ptwrite" }]);
});

test("parse_texts_of_strangers_become_visible", () => {
	const trace = parse(r.bytes(r.head(0, 10), r.thread(1, 1, 1, "a\u202eb\u0000c\n"), r.func(1, [0xff, 0x41]),
		r.func(2, "\u200b\u{e0041}\u{feff}"), r.end()));

	assert.equal(trace.threads[0].name, "a\\u{202e}b\\u{0}c\\u{a}");
	assert.deepEqual(trace.functions.slice(3).map((f) => f.name).slice(0, 1), ["\ufffdA"]);
	assert.equal(trace.functions[4].name, "\\u{200b}\\u{e0041}\\u{feff}");
});

test("parse_data_that_is_cut_off_or_unknown_is_an_error", () => {
	const whole = r.bytes(...TWO_CALLS, r.end());

	assert.throws(() => parse(r.bytes(r.head(0, 10), [5, 0x80])), /cut off/);
	assert.throws(() => parse(r.bytes([1, 200, 65])), /cut off/);
	assert.throws(() => parse(r.bytes([15])), /unknown record 15/);
	// Whatever is missing at the end, nothing but this error happens.
	for (let n = 0; n < whole.length; n++) {
		try {
			parse(whole.subarray(0, n));
		} catch (error) {
			assert.match(error.message, /cut off/);
		}
	}
});

test("parse_any_bytes_end", () => {
	let random = 1;

	for (let k = 0; k < 300; k++) {
		const bytes = Uint8Array.from({ length: 200 }, () => {
			random = Math.imul(random, 1664525) + 1013904223 | 0;
			return k % 2 === 0 ? random >>> 24 : (random >>> 24) % 0x30;
		});

		try {
			parse(bytes);
		} catch (error) {
			assert.match(error.message, /the data of this page/);
		}
	}
});

test("unpack_reads_base64_of_zlib_in_lines", async () => {
	const data = Uint8Array.from({ length: 5000 }, (_, i) => i * i & 255);
	const text = deflateSync(data).toString("base64").replace(/.{100}/g, "$&\n");

	assert.deepEqual(await unpack(`\n${text}\n`), data);
});

test("parse_cpu_number_beyond_16_bits_is_kept", () => {
	const { threads } = parse(r.bytes(r.head(0, 100), r.thread(1, 1, 1, "t"), r.func(1, "f"), r.lane(1, 65543),
		r.begin(1, 1), r.finish(2), r.end(1)));

	assert.equal(threads[0].frames.cpu[0], 65543);
});

test("unpack_refuses_what_is_cut_off_or_no_zlib", async () => {
	const text = deflateSync(Buffer.from("x".repeat(100000))).toString("base64");

	await assert.rejects(unpack(text.slice(0, 40)));
	await assert.rejects(unpack("AAAA"));
});
