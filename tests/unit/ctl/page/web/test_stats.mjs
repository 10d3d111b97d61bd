// ctl/page/web/stats.js: sums by function, percentiles, and the tree of a flame graph.

import assert from "node:assert/strict";
import { test } from "node:test";

import { parse } from "../../../../../ctl/page/web/data.js";
import { layoutFlame } from "../../../../../ctl/page/web/flame.js";
import { bucketsText, spark, usedBuckets } from "../../../../../ctl/page/web/functions.js";
import { averageWidth, bucketOf, bucketStart, flameTree, functionTable, stackBefore } from "../../../../../ctl/page/web/stats.js";
import { fit } from "../../../../../ctl/page/web/text.js";
import * as r from "./records.mjs";

// f(0..100) { g(10..40) { f(20..30) } g(50..90) }; the thread is off the CPU from 60 to 80.
const trace = parse(r.bytes(r.head(0, 100), r.thread(1, 1, 1, "t"), r.func(1, "f"), r.func(2, "g"), r.lane(1, 0), r.on(0),
	r.begin(0, 1), r.begin(10, 2), r.begin(10, 1), r.finish(10, 5), r.finish(10, 7), r.begin(10, 2), r.off(10, 1), r.on(20),
	r.finish(10, 11), r.finish(10, 13), r.end()));
const [thread] = trace.threads;
const [F, G] = ["f", "g"].map((name) => trace.functions.findIndex((f) => f.name === name));
const byName = (table) => Object.fromEntries(table.map((row) => [trace.functions[row.func].name, row]));

test("functionTable_counts_recursion_once", () => {
	const { f, g } = byName(functionTable(trace, [thread], 0, 100));

	assert.deepEqual([f.calls, f.total, f.totalCpu, f.self, f.selfCpu, f.insns], [2, 100, 80, 40, 40, 18]);
	assert.deepEqual([g.calls, g.total, g.totalCpu, g.self, g.selfCpu, g.insns], [2, 70, 50, 60, 40, 18]);
	assert.deepEqual([f.p50, f.max, g.p50, g.p90, g.max], [10, 100, 30, 40, 40]);
	assert.deepEqual(g.slowest, { thread, frame: 3 });
	assert.equal(g.histogram[bucketOf(30)], 1);
});

test("functionTable_of_a_part_clips_times", () => {
	const { f, g } = byName(functionTable(trace, [thread], 15, 55));

	assert.deepEqual([f.calls, f.total, f.self], [1, 40, 20]); // 10 of the inner f, 10 between the two g
	assert.deepEqual([g.calls, g.total, g.self], [1, 30, 20]);
});

test("functionTable_calls_not_seen_whole_have_no_duration", () => {
	const other = parse(r.bytes(r.head(0, 100), r.lane(1, 0), r.begin(0, 1, 6), r.begin(10, 1), r.finish(5), r.begin(5, 1),
		r.finish(50, 0, 4), r.finish(0, 0, 4), r.end()));
	const [row] = functionTable(other, other.threads, 0, 100);

	assert.deepEqual([row.calls, row.whole, row.max], [3, 1, 5]);
});

test("averageWidth_is_of_the_calls_that_begin_within", () => {
	const other = parse(r.bytes(r.head(0, 100), r.lane(1, 0), r.begin(0, 1, 0, 9), r.begin(10, 1, 0, 30), r.begin(10, 1), r.end()));

	assert.equal(averageWidth(other.threads, 5, 100), 15);
	assert.equal(averageWidth(other.threads, 50, 100), 0);
});

test("stackBefore_has_the_open_frames", () => {
	assert.deepEqual(stackBefore(thread.frames, 25), [0, 1, 2]);
	assert.deepEqual(stackBefore(thread.frames, 20), [0, 1]);
	assert.deepEqual(stackBefore(thread.frames, 45), [0]);
	assert.deepEqual(stackBefore(thread.frames, 0), []);
});

test("flameTree_joins_equal_paths", () => {
	const root = flameTree([thread], 0, 100, "wall time"), f = root.children.get(F), g = f.children.get(G);

	assert.deepEqual([root.value, f.value, f.self, f.calls], [100, 100, 30, 1]);
	assert.deepEqual([g.value, g.self, g.calls, g.children.get(F).value], [70, 60, 2, 10]);
	assert.equal(flameTree([thread], 0, 100, "CPU time").value, 80);
	assert.equal(flameTree([thread], 0, 100, "calls").value, 4);
	assert.equal(flameTree([thread], 0, 100, "instructions").value, 36);
	assert.equal(flameTree([thread], 15, 25, "wall time").children.get(F).children.get(G).value, 10);
});

test("layoutFlame_places_children_within_their_caller", () => {
	const boxes = [];

	layoutFlame(flameTree([thread], 0, 100, "wall time"), 200, 1, (node, x0, x1, depth) => boxes.push([node.func, x0, x1, depth]));
	assert.deepEqual(boxes, [[-1, 0, 200, 0], [F, 0, 200, 1], [G, 0, 140, 2], [F, 0, 20, 3]]);
});

test("buckets_are_half_octaves", () => {
	for (const ns of [1, 2, 3, 100, 1e6, 1e12]) {
		const b = bucketOf(ns);

		assert.ok(bucketStart(b) <= ns * (1 + 1e-12) && ns < bucketStart(b + 1) * (1 + 1e-12));
	}
	assert.equal(bucketOf(0), 0);
});

test("spark_has_a_bar_for_each_bucket", () => {
	const histogram = new Uint32Array(96);

	histogram[4] = 1;
	histogram[6] = 1000;
	assert.deepEqual(usedBuckets([{ histogram }]), { from: 4, to: 6 });
	assert.equal(spark(histogram, { from: 4, to: 6 }), "\u2581 \u2588");
	assert.deepEqual(usedBuckets([]), { from: 0, to: 0 });
});

test("bucketsText_has_a_line_for_each_bucket_in_use", () => {
	const histogram = new Uint32Array(96);

	histogram[0] = 1;
	histogram[bucketOf(1024)] = 20;
	assert.equal(bucketsText(histogram), "1 call from 0 ns to 1 ns\n20 calls from 1.024 us to 1.448 us");
});

test("fit_shortens_what_threads_have_in_common_and_keeps_their_ids", () => {
	assert.equal(fit("server", " 1/2", 10), "server 1/2");
	assert.equal(fit("server", " 1/2", 9), "serv\u2026 1/2");
	assert.equal(fit("server", " 1/2", 7), "server");
	assert.equal(fit("server", " 1/2", 5), "serv\u2026");
	assert.equal(fit("server", "", 5), "serv\u2026");
});
