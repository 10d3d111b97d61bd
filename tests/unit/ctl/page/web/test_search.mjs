// ctl/page/web: search.js, text.js, keys.js, and the time axis of view.js and timeline.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { parse } from "../../../../../ctl/page/web/data.js";
import { actionOf, KEYS } from "../../../../../ctl/page/web/keys.js";
import { parseQuery, Search } from "../../../../../ctl/page/web/search.js";
import { count, duration, exact, moment, parseDuration, plural, share, visible } from "../../../../../ctl/page/web/text.js";
import { niceStep } from "../../../../../ctl/page/web/timeline.js";
import { mix, View } from "../../../../../ctl/page/web/view.js";
import * as r from "./records.mjs";

// Thread 1: malloc(10..20), free(30..90) { malloc(40..50) }; thread 2: Malloc_x(10..60).
const trace = parse(r.bytes(r.head(0, 100), r.func(1, "malloc"), r.func(2, "free"), r.func(3, "Malloc_x"), r.lane(1, 0),
	r.begin(10, 1), r.finish(10), r.begin(10, 2), r.begin(10, 1), r.finish(10), r.finish(40), r.lane(2, 1), r.begin(10, 3),
	r.finish(50), r.end()));
const find = (text) => {
	const search = new Search(trace);

	search.set(text);
	return search;
};

test("search_words_mean_what_they_say", () => {
	assert.equal(find("malloc").n, 3);
	assert.equal(find("=malloc").n, 2);
	assert.equal(find("m*c").n, 2);
	assert.equal(find("/^mal.*x$/").n, 1);
	assert.equal(find(">10ns").n, 4);
	assert.equal(find("malloc >11ns").n, 1);
	assert.equal(find("<11ns malloc").n, 2);
	assert.equal(find("nothing").n, 0);
	assert.equal(find("  ").active, false);
});

test("search_words_that_are_not_valid_are_named", () => {
	assert.equal(parseQuery("a >10days").bad, ">10days");
	assert.equal(parseQuery("/(/").bad, "/(/");
	assert.equal(find("/(/").active, false);
	assert.equal(parseQuery("=operator< (int)").bad, null);
});

test("search_next_goes_through_all_hits_in_both_directions", () => {
	const search = find("malloc"), order = [];

	for (let at = search.next(1, { time: -1 }); at; at = search.next(1, at))
		order.push([at.thread.number, at.frame]);
	assert.deepEqual(order, [[1, 0], [2, 0], [1, 2]]);
	const back = [];

	for (let at = search.next(-1, { time: 1000 }); at; at = search.next(-1, at))
		back.unshift([at.thread.number, at.frame]);
	assert.deepEqual(back, order);
});

test("visible_keeps_letters_and_shows_controls", () => {
	assert.equal(visible("na\u00efve_\u0434\u05d0 <b>"), "na\u00efve_\u0434\u05d0 <b>");
	assert.equal(visible("\u202e\u2066\u00ad\t"), "\\u{202e}\\u{2066}\\u{ad}\\u{9}");
	assert.equal(visible("a" + "\u0301".repeat(9)).includes("\u0301"), false);
});

test("numbers_read_as_people_read_them", () => {
	assert.equal(count(1234567), "1,234,567");
	assert.deepEqual([plural(1, "call"), plural(2000, "call")], ["1 call", "2,000 calls"]);
	assert.deepEqual([0, 999, 1000, 12345, 999999, 1e6, 123456789, 2.5e9].map(duration),
		["0 ns", "999 ns", "1.000 us", "12.35 us", "1.000 ms", "1.000 ms", "123.5 ms", "2.500 s"]);
	assert.equal(duration(-1500), "-1.500 us");
	assert.deepEqual([5, 1005, 1000005, 1000000005].map(exact), ["5 ns", "1.005 us", "1.000005 ms", "1.000000005 s"]);
	assert.deepEqual([share(1, 3), share(3, 3), share(999.9, 1000), share(1, 0)], ["33.3 %", "100 %", "99.9 %", "-"]);
	assert.deepEqual([moment(1500, 5000, 500), moment(2e6, 9e6, 1e6), moment(5, 50, 5)], ["1.5 us", "2 ms", "5 ns"]);
	assert.deepEqual(["10us", "1.5ms", "7", "2s"].map(parseDuration), [10000, 1.5e6, 7, 2e9]);
	assert.deepEqual([0.3, 1, 3, 11, 60, 1e6].map(niceStep), [1, 1, 5, 20, 100, 1e6]);
});

test("view_stays_within_the_window", () => {
	const view = new View(1000);

	view.left = 100;
	view.width = 500;
	view.zoom(0.1, 300);
	assert.equal(view.span, 100);
	assert.equal(view.x(300), 100 + 500 * 0.3); // the anchor stays
	view.pan(-5000);
	assert.deepEqual([view.from, view.to], [0, 100]);
	view.pan(5000);
	assert.deepEqual([view.from, view.to], [900, 1000]);
	view.zoom(1e-9);
	assert.equal(view.span, 20);
	view.zoom(1e9);
	assert.deepEqual([view.from, view.to], [0, 1000]);
	view.show(200, 300);
	view.reveal(250, 260);
	assert.equal(view.from, 200);
	view.reveal(600, 610);
	assert.equal((view.from + view.to) / 2, 605);
	assert.equal(view.time(view.x(610)), 610);
});

test("mix_is_between_two_pixels", () => {
	assert.equal(mix(0xff000000, 0xffffffff, 0.5), 0xff808080);
	assert.equal(mix(0xff123456, 0xffffffff, 0), 0xff123456);
});

test("keys_are_unique_and_leave_the_browser_its_own", () => {
	const keys = KEYS.flatMap(([list]) => list);

	assert.equal(new Set(keys).size, keys.length);
	assert.equal(actionOf({ key: "w", ctrlKey: true }), undefined);
	assert.equal(typeof actionOf({ key: "w" }), "function");
	assert.equal(actionOf({ key: "x" }), undefined);
});
