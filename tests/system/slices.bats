#!/usr/bin/env bats
# A part of a snapshot: info and the lists of a report, of a span of time, a CPU, a process, a thread.
bats_require_minimum_version 1.5.0

setup() {
	build=${PTSNAP_BUILDDIR:-$BATS_TEST_DIRNAME/../..}
	ctl=${PTSNAPCTL:-$build/ctl/ptsnapctl}
	make=$build/tests/support/make_bundle
	[ -x "$ctl" ] && [ -x "$make" ] || skip "not built"
	export PTSNAP_DECODE=$build/decoder/worker/ptsnap-decode PTSNAP_PAGER=
	dir=$(mktemp -d)
	bundle=$dir/psbs.ptsnap
	"$make" psbs "$bundle"
}

teardown() {
	[ -z "$dir" ] || rm -rf "$dir"
}

# sum OPTIONS...: the instructions of all functions.
sum() {
	timeout 60 "$ctl" functions --json=short "$@" "$bundle" | jq 'map(.selfInstructions) | add // 0'
}

@test "functions count what a thread, a CPU and a span of time did" {
	all=$(sum)
	one=$(sum --tid=4712) two=$(sum --tid=4713)
	[ "$one" -gt 0 ]
	[ "$two" -gt 0 ]
	[ $((one + two)) -eq "$all" ]
	[ $(($(sum --pid=4711 --cpu=0) + $(sum --cpu=1))) -eq "$all" ]
	[ "$(sum --cpu=7)" -eq 0 ]
	[ "$(sum --comm='no*body')" -eq 0 ]
	late=$(sum --from=-20us)
	[ "$late" -gt 0 ]
	[ "$late" -lt "$all" ]
	[ $(($(sum --to=-20us) + late)) -ge "$all" ]
	early=$(sum --to=-20us)
	[ "$early" -lt "$all" ]
	[ "$(timeout 60 "$ctl" images --json=short --tid=4712 "$bundle" | jq 'map(.instructions) | add')" -eq "$one" ]
}

@test "turns, threads and processes are those of the span" {
	timeout 60 "$ctl" turns --json=short --from=-30us --to=-20us "$bundle" >"$dir/part"
	timeout 60 "$ctl" turns --json=short "$bundle" >"$dir/all"
	[ "$(jq length "$dir/part")" -gt 0 ]
	[ "$(jq length "$dir/part")" -lt "$(jq length "$dir/all")" ]
	[ "$(timeout 60 "$ctl" processes --json=short --tid=4713 "$bundle" | jq -c 'map(.pid)')" = "[4711]" ]
	[ "$(timeout 60 "$ctl" processes --json=short --tid=1 "$bundle" | jq -c 'map(.pid)')" = "[]" ]
	timeout 60 "$ctl" gaps --from=-10us "$bundle"
}

@test "the page of a part says which part, and shows the selected threads" {
	run -0 timeout 60 "$ctl" info --from=-30us --to=-20us "$bundle"
	[[ $output == *"Part      from 30.0 us before the trigger to 20.0 us before it"* ]]
	[[ $output == *"Threads where the part ends"* && $output != *"state not known"* ]]
	run -0 timeout 60 "$ctl" info --tid=4713 "$bundle"
	[[ $output == *"Part      1 of 2 threads, 0 of 0 that stand out"* && $output == *"4713 "* ]]
	[[ $output != *"4712 "* && $output == *"nothing of the selected threads"* ]]
	timeout 60 "$ctl" info --json=short --tid=4713 "$bundle" >"$dir/json"
	[ "$(jq -c '[.selected.threads, .selected.threadsTotal, (.threads | length)]' "$dir/json")" = "[1,2,1]" ]
}

@test "a report of a part fits the schema" {
	python3 -c 'import jsonschema' || skip "no python3-jsonschema"
	schema=${PTSNAP_SRCDIR:-$BATS_TEST_DIRNAME/../..}/docs/ptsnap-report-2.schema.json
	for options in --from=-20us --to=-20us; do
		timeout 60 "$ctl" info --json=short "$options" "$bundle" >"$dir/part.json"
		jq -e .slice "$dir/part.json"
		python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))' "$dir/part.json" "$schema"
	done
}

@test "a part of a saved report, an empty part and a bad time are refused" {
	"$ctl" decode -o "$dir/report.json" "$bundle"
	for verb in info functions turns; do
		run -2 "$ctl" $verb --from=-5us "$dir/report.json"
		[[ $output == *"a saved report has no trace"*"fetch --format=bundle"* ]]
		run -2 "$ctl" $verb --from=-1us --to=-2us "$bundle"
		[[ $output == *"nothing lies between --from and --to"* ]]
		run -2 "$ctl" $verb --from=never "$bundle"
		[[ $output == *"give a time like 20ms"* ]]
	done
	run -2 "$ctl" functions --tid=4712 "$dir/report.json"
	run -2 "$ctl" functions --comm="$(printf 'a%.0s' $(seq 70))" "$bundle"
	[[ $output == *"at most 63 bytes"* ]]
	run -2 "$ctl" info --baseline="$dir/report.json" --tid=4 "$bundle"
	run -2 "$ctl" gaps --tid=4 "$bundle"
	timeout 60 "$ctl" threads --tid=4713 "$dir/report.json"
}
