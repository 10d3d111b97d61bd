// ctl/page/web/join.sh: the page is one document whose policy permits its script and style and nothing
// else.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const source = readFileSync(`${process.env.PTSNAP_BUILDDIR}/ctl/page/page_web.c`, "utf8");
const page = [...source.matchAll(/^\t"(.*)\\n"$/gm)].map(([, line]) => line.replace(/\\(.)/g, "$1")).join("\n");
const policy = /Content-Security-Policy" content="([^"]*)"/.exec(page)[1];
const between = (open, close) => page.slice(page.lastIndexOf(open) + open.length, page.lastIndexOf(close));
const script = between('<script type="module">', "</script>"), style = between("<style>", "</style>");
const sum = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

test("policy_names_the_sums_of_script_and_style", () => {
	const rules = Object.fromEntries(policy.split("; ").map((rule) => rule.split(/ (.*)/)));

	assert.equal(rules["default-src"], "'none'");
	assert.equal(rules["script-src"], sum(script));
	assert.equal(rules["style-src"], sum(style));
	assert.equal(rules["base-uri"], "'none'");
	assert.equal(rules["require-trusted-types-for"], "'script'");
});

test("script_is_one_module", () => {
	const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "--check"], { input: script });

	assert.equal(status, 0, String(stderr));
	assert.doesNotMatch(script, /^(import|export) /m);
});

test("page_has_nothing_from_elsewhere_and_makes_no_html", () => {
	assert.doesNotMatch(page, /https?:|\bfetch\(|XMLHttpRequest|WebSocket|\bimport\(/);
	assert.doesNotMatch(page, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function\(/);
	assert.doesNotMatch(page, / on[a-z]+=| style="/);
	assert.doesNotMatch(script, /<\/script|<!--/i);
	assert.equal(page.match(/<script/g).length, 2);
});

test("every_id_that_the_script_asks_for_exists_once", () => {
	const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);

	assert.equal(new Set(ids).size, ids.length);
	for (const [, id] of script.matchAll(/\$\("([^"]+)"\)/g))
		assert.ok(ids.includes(id), id);
});
