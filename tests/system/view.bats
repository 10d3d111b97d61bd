#!/usr/bin/env bats
# ptsnapctl view: a call stream becomes a page, and the page's own modules read it.

setup() {
	src=${PTSNAP_SRCDIR:-$BATS_TEST_DIRNAME/../..}
	ctl=${PTSNAPCTL:-${PTSNAP_BUILDDIR:-$BATS_TEST_DIRNAME/../..}/ctl/ptsnapctl}
	[ -x "$ctl" ] || skip "$ctl is not built"
	dir=$(mktemp -d)
	python3 "$src/tests/support/make_calls.py" 5000 >"$dir/a.calls"
}

teardown() {
	[ -z "$dir" ] || rm -rf "$dir"
}

# facts PAGE: what the page's modules find in it, as JSON.
facts() {
	command -v node >/dev/null || skip "no node"
	cat >"$dir/facts.mjs" <<-END
		import { readFileSync } from "node:fs";
		import { parse, unpack } from "$src/ctl/page/web/data.js";

		const html = readFileSync(process.argv[2], "utf8");
		const trace = parse(await unpack(/id="data">([^<]*)</.exec(html)[1]));
		const sum = (of) => trace.threads.reduce((n, t) => n + of(t), 0);

		console.log(JSON.stringify({
			title: trace.title, frames: trace.frames, threads: trace.threads.length, cpus: trace.cpus.length,
			complete: trace.complete, leftOut: trace.leftOut, repaired: trace.repaired,
			runs: sum((t) => t.runs.length), gaps: sum((t) => t.gaps.length),
			marks: sum((t) => t.marks.length) + trace.cpus.reduce((n, c) => n + c.frequency.length + c.marks.length, 0),
			insns: sum((t) => t.frames.insns.subarray(0, t.frames.n).reduce((a, b) => a + b, 0)),
		}));
	END
	node "$dir/facts.mjs" "$1" >"$dir/facts.json"
}

fact() {
	jq -c ".$1" "$dir/facts.json"
}

@test "a page has every call, switch, gap and mark of the stream" {
	"$ctl" view -o "$dir/page.html" "$dir/a.calls"
	facts "$dir/page.html"
	[ "$(fact title)" = '"a.calls"' ]
	[ "$(fact complete)" = true ]
	[ "$(fact frames)" = 5000 ]
	[ "$(fact threads)" = 8 ]
	[ "$(fact repaired)" = 0 ]
	[ "$(fact runs)" = "$(grep -c '^R' "$dir/a.calls")" ]
	[ "$(fact gaps)" = "$(grep -c '^G	[1-9]' "$dir/a.calls")" ]
	[ "$(fact marks)" = "$(grep -c '^M' "$dir/a.calls")" ]
	[ "$(fact insns)" = "$(awk -F '\t' '/^E/ {n += $7} END {print n}' "$dir/a.calls")" ]
}

@test "no name of the stream is in the page, and nobody else may read the page" {
	"$ctl" view -o "$dir/page.html" "$dir/a.calls"
	! grep -q "owned" "$dir/page.html"
	[ "$(grep -c '<script' "$dir/page.html")" = 2 ]
	[ "$(stat -c %a "$dir/page.html")" = 600 ]
}

@test "without a browser: the data is whole, the policy names the script, and no name ends it" {
	"$ctl" view -o "$dir/page.html" "$dir/a.calls"
	python3 - "$dir/page.html" "$dir/a.calls" <<-'END'
		import base64, hashlib, re, sys, zlib
		html, calls = (open(path, "rb").read() for path in sys.argv[1:])
		tags = re.findall(rb"<(/?script)\b([^>]*)>", html)
		assert [t[0] for t in tags] == [b"script", b"/script"] * 2, tags
		assert b"<style" not in html.split(b"</style>", 1)[1]
		policy = re.search(rb'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', html).group(1).decode()
		assert html.index(b"Content-Security-Policy") < html.index(b"<style") < html.index(b"<script")
		rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
		script = re.search(rb'<script type="module">(.*)</script>', html, re.S).group(1)
		style = re.search(rb"<style>(.*)</style>", html, re.S).group(1)
		for rule, text in (("script-src", script), ("style-src", style)):
		    assert rules[rule] == "'sha256-" + base64.b64encode(hashlib.sha256(text).digest()).decode() + "'", rule
		assert rules["default-src"] == "'none'", rules
		assert b"on" not in [a.split(b"=")[0][:2] for a in re.findall(rb"<[a-z][^>]*\s([a-z]+=)", html)]
		data = zlib.decompress(base64.b64decode(re.search(rb'id="data">([^<]*)<', html).group(1)))
		# The names are in the data and nowhere else.
		for name in re.findall(rb"^F\t\d+\t\S+\t([^\t]+)", calls, re.M):
		    raw = re.sub(rb"\\x(..)", lambda m: bytes([int(m.group(1), 16)]), name)
		    assert raw in data, raw
		    assert not re.search(rb"[^\w]", raw) or raw not in html, raw
	END
}

@test "--limit leaves calls out and says how many" {
	run "$ctl" view --limit=1000 -o "$dir/page.html" "$dir/a.calls"
	[ "$status" = 0 ]
	[[ "$output" = *"4,000 calls are not in the page: --limit=1000"* ]]
	facts "$dir/page.html"
	[ "$(fact frames)" = 1000 ]
	[ "$(fact leftOut)" = 4000 ]
}

@test "without -o, the page goes to a pipe" {
	"$ctl" view "$dir/a.calls" | cat >"$dir/pipe.html"
	"$ctl" view -o "$dir/page.html" "$dir/a.calls"
	cmp "$dir/pipe.html" "$dir/page.html"
}

@test "what cannot be read leaves nothing on a pipe" {
	echo "no bundle" >"$dir/none.ptsnap"
	for input in "$dir/none.calls" "$dir/none.ptsnap"; do
		run sh -c '"$1" view "$2" 2>/dev/null | wc -c' sh "$ctl" "$input"
		[ "$output" -eq 0 ]
	done
}

@test "a stream that is damaged or cut off makes no page" {
	head -n 200 "$dir/a.calls" >"$dir/cut.calls"
	run "$ctl" view -o "$dir/page.html" "$dir/cut.calls"
	[ "$status" = 1 ]
	[[ "$output" = *"the file was cut off"* ]]
	sed '100s/\t/ /' "$dir/a.calls" >"$dir/bad.calls"
	run "$ctl" view -o "$dir/page.html" "$dir/bad.calls"
	[ "$status" = 1 ]
	[[ "$output" = *"not a call stream of this version, or a damaged one"* ]]
	[ ! -e "$dir/page.html" ]
}

@test "options that are not valid are usage errors" {
	run "$ctl" view --limit=0 "$dir/a.calls"
	[ "$status" = 2 ]
	run "$ctl" view ""
	[ "$status" = 2 ]
	run "$ctl" view "$dir/a.calls" "$dir/a.calls"
	[ "$status" = 2 ]
	run "$ctl" view -o "$dir/a.calls" "$dir/a.calls"
	[ "$status" = 2 ]
	[[ "$output" = *"this is the input to show"* ]]
	run "$ctl" view -o "$dir/no/page.html" "$dir/a.calls"
	[ "$status" = 1 ]
	[[ "$output" = *"No such file or directory"* ]]
	run "$ctl" view -o "$dir/page.html" "$dir/none.calls"
	[ "$status" != 0 ]
	[ ! -e "$dir/page.html" ]
}
