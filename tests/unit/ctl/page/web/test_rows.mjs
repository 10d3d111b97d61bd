// ctl/page/web/rows.js: what a pixel shows is what a slow search finds.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Row, rowOf } from "../../../../../ctl/page/web/rows.js";

let random = 7;
const below = (n) => {
	random = Math.imul(random, 1664525) + 1013904223 | 0;
	return (random >>> 8) % n;
};

function makeList(n) {
	let time = 0;

	return Array.from({ length: n }, () => {
		const start = time + below(20), end = start + (below(10) === 0 ? below(3000) : below(9));

		time = end;
		return { start, end };
	});
}

test("longest_of_any_range_is_the_longest", () => {
	for (const n of [1, 4, 5, 16, 17, 63, 64, 65, 300, 1025]) {
		const list = makeList(n), row = rowOf(list);

		for (let k = 0; k < 200; k++) {
			const i = below(n), j = i + 1 + below(n - i);
			const lengths = list.slice(i, j).map((x) => x.end - x.start);
			const found = row.longest(i, j);

			assert.ok(found >= i && found < j);
			assert.equal(list[found].end - list[found].start, Math.max(...lengths));
		}
	}
});

test("firstAfter_and_firstFrom_find_the_first", () => {
	const list = makeList(500), row = rowOf(list);

	for (let k = 0; k < 500; k++) {
		const time = below(list.at(-1).end + 10), i = below(500);
		const after = list.findIndex((x) => x.end > time), from = list.findIndex((x, at) => at > i && x.start >= time);

		assert.equal(row.firstAfter(time), after < 0 ? 500 : after);
		assert.equal(row.firstFrom(i, time), from < 0 ? 500 : from);
	}
});

test("at_finds_the_element_around_a_time", () => {
	const row = rowOf([{ start: 10, end: 20 }, { start: 30, end: 40 }]);

	assert.deepEqual([5, 10, 19, 20, 30, 40].map((time) => row.at(time)), [-1, 0, 0, -1, 1, -1]);
});

test("draw_shows_each_element_once_and_long_ones_alone", () => {
	const list = makeList(3000), row = rowOf(list), last = list.at(-1).end;

	for (const cell of [1, 7, 50, 400, last]) {
		const from = below(last), to = from + below(last - from), seen = [];

		row.draw(from, to, cell, (i) => {
			assert.ok(list[i].end - list[i].start >= cell);
			seen.push(i);
		}, (first, behind, longest, cellStart) => {
			assert.ok(first < behind && longest >= first && longest < behind);
			assert.equal(cellStart % cell, 0);
			for (let i = first; i < behind; i++) {
				assert.ok(list[i].end - list[i].start < cell);
				assert.ok(list[i].start >= cellStart && list[i].start < cellStart + cell);
				seen.push(i);
			}
		});
		const wanted = list.flatMap((x, i) => x.end > from && x.start < to ? [i] : []);

		assert.deepEqual(seen.slice(0, wanted.length), wanted);
		// The last cell may reach beyond the view.
		assert.ok(seen.slice(wanted.length).every((i) => list[i].start < to + cell));
	}
});

test("row_of_nothing_draws_nothing", () => {
	const row = new Row({ start: [], end: [] }, []);

	row.draw(0, 100, 1, assert.fail, assert.fail);
	assert.equal(row.at(5), -1);
});
