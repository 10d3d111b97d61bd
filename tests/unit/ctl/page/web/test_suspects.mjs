// ctl/page/web/suspects.js: suspects find their places.

import assert from "node:assert/strict";
import { test } from "node:test";

import { parse } from "../../../../../ctl/page/web/data.js";
import { placeOf } from "../../../../../ctl/page/web/suspects.js";
import * as r from "./records.mjs";

// Thread 8 has calls of f from 10 to 20, 30 to 90, with one of g from 40 to 80 in the second one; and
// thread 9 one of f from 35 to 36.
const TRACE = [r.head(1000, 100, 1090), r.thread(1, 7, 8, "a"), r.thread(2, 7, 9, "b"), r.func(1, "f"),
	r.func(2, "g"), r.lane(1, 0), r.begin(10, 1), r.finish(10), r.begin(10, 1), r.begin(10, 2), r.finish(40),
	r.finish(10), r.lane(2, 1), r.begin(35, 1), r.finish(1), r.end(4)];

const traceOf = (...suspects) => parse(r.bytes(...TRACE, ...suspects));

test("parse_suspects_are_as_they_were_written", () => {
	const { suspects } = traceOf(r.looked(), r.suspect("slow-calls", "f(): slow\u202e", "f", { from: 30, to: 90, tid: 8 }),
		r.suspect("frequency", "slow", "", { cpu: 1 }));

	assert.deepEqual(suspects, [
		{ kind: "slow-calls", text: "f(): slow\\u{202e}", function: "f", from: 30, to: 90, tid: 8, cpu: null },
		{ kind: "frequency", text: "slow", function: "", from: null, to: null, tid: null, cpu: 1 },
	]);
});

test("parse_occasion_is_a_text_or_none", () => {
	assert.equal(parse(r.bytes(r.head(0, 100), r.occasion("host \u202ea"), r.end())).occasion, "host \\u{202e}a");
	assert.equal(parse(r.bytes(r.head(0, 100), r.end())).occasion, "");
});

test("parse_suspects_not_looked_for_differs_from_none", () => {
	assert.equal(traceOf().suspects, null);
	assert.deepEqual(traceOf(r.looked()).suspects, []);
});

test("placeOf_slow_call_is_the_call_of_that_time", () => {
	const trace = traceOf(r.suspect("slow-calls", "", "f", { from: 31, to: 88, tid: 8 }));
	const place = placeOf(trace, trace.suspects[0]);

	assert.equal(place.thread.tid, 8);
	assert.equal(place.thread.frames.start[place.frame], 30);
	assert.deepEqual([place.from, place.to], [31, 88]);
});

test("placeOf_function_of_no_thread_is_found_in_any", () => {
	const trace = traceOf(r.suspect("late-function", "", "g", { from: 39, to: 90 }));
	const place = placeOf(trace, trace.suspects[0]);

	assert.equal(place.thread.tid, 8);
	assert.equal(place.thread.frames.start[place.frame], 40);
});

test("placeOf_moment_is_in_the_innermost_call_of_the_function", () => {
	const trace = traceOf(r.suspect("crash", "", "g", { from: 50, to: 50, tid: 8 }));
	const place = placeOf(trace, trace.suspects[0]);

	assert.equal(place.thread.frames.start[place.frame], 40);
});

test("placeOf_no_function_is_thread_and_time", () => {
	const trace = traceOf(r.suspect("runnable", "", "", { from: 50, to: 500, tid: 9 }));

	assert.deepEqual(placeOf(trace, trace.suspects[0]),
		{ from: 50, to: 100, thread: trace.threads.find((t) => t.tid === 9), frame: -1, cpu: null });
});

test("placeOf_what_is_not_in_the_page_has_no_place", () => {
	const trace = traceOf(r.suspect("gap", "", "", { from: 200, to: 300, cpu: 0 }), r.suspect("wait", "", "", { tid: 77 }));

	assert.equal(placeOf(trace, trace.suspects[0]), null);
	assert.equal(placeOf(trace, trace.suspects[1]), null);
});

test("placeOf_thread_without_a_time_is_the_thread", () => {
	const trace = traceOf(r.suspect("wait", "", "f", { tid: 9 }));

	assert.equal(placeOf(trace, trace.suspects[0]).thread.tid, 9);
	assert.equal(placeOf(trace, trace.suspects[0]).from, null);
});
