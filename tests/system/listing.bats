#!/usr/bin/env bats
# ptsnapctl branches, insns, timeline: lines of synthetic bundles, as many as --view=summary and the report
# have.
bats_require_minimum_version 1.5.0

setup() {
	build=${PTSNAP_BUILDDIR:-$BATS_TEST_DIRNAME/../..}
	ctl=${PTSNAPCTL:-$build/ctl/ptsnapctl}
	make=$build/tests/support/make_bundle
	[ -x "$ctl" ] && [ -x "$make" ] || skip "not built"
	export PTSNAP_DECODE=$build/decoder/worker/ptsnap-decode PTSNAP_PAGER=
	dir=$(mktemp -d)
}

teardown() {
	[ -z "$dir" ] || rm -rf "$dir"
}

made() {
	"$make" "$1" "$dir/$1.ptsnap"
	bundle=$dir/$1.ptsnap
}

summary() {
	timeout 60 "$ctl" decode --view=summary --json=short "$bundle" 2>/dev/null | jq ".$1"
}

# lines VERB FILTER OPTIONS...: how many lines FILTER selects.
lines() {
	local verb=$1 filter=$2
	shift 2
	timeout 60 "$ctl" "$verb" -q --json=short "$@" "$bundle" | jq -c "select($filter)" | wc -l
}

@test "as many branches, instructions and gaps as the summary and --view have" {
	for kind in plain cpus overflow turns noimage leaf nopsb small; do
		made "$kind"
		echo "$kind"
		[ "$(lines branches .kind)" -eq "$(summary branches)" ]
		[ "$(lines insns .instruction)" -eq "$(summary instructions)" ]
		gaps=$("$ctl" decode --view=branches "$bundle" | grep '^# gap' | grep -vc 'gap head' || true)
		[ "$(timeout 60 "$ctl" branches -q --json=short "$bundle" | jq -s 'map(.gaps // 0) | add // 0')" -eq "$gaps" ]
	done
}

@test "addresses are those of --view=branches and --view=insns, in their order" {
	made cpus
	"$ctl" decode --view=insns "$bundle" | grep -v '^#' >"$dir/want"
	"$ctl" insns -q --json=short "$bundle" | jq -r '.address' | sed 's/^0x//' | cmp - "$dir/want"
	"$ctl" decode --view=branches "$bundle" | grep -v '^#' >"$dir/want"
	"$ctl" branches -q --json=short "$bundle" |
		jq -r '"\(.from.address // "0x0") \(.to.address // "0x0")"' | sed 's/0x//g' | cmp - "$dir/want"
}

@test "slices select lines" {
	made turns
	[ "$(lines branches '.kind' --tid=4712)" -gt 0 ]
	nobodys=$(lines branches '.kind and .tid == null')
	[ $(($(lines branches '.kind' --tid=4712) + $(lines branches '.kind' --tid=4713) + nobodys)) -eq "$(summary branches)" ]
	[ "$(lines branches '.tid != 4713' --tid=4713)" -eq 0 ]
	[ "$(lines insns '.function == "leaf"')" -eq "$(lines insns .instruction --function=leaf)" ]
	[ "$(lines insns .instruction --image='*/none')" -eq 0 ]
	[ "$(lines insns true --limit=7)" -eq 7 ]
	timeout 60 "$ctl" insns -q --json=short "$bundle" | tail -n 9 >"$dir/want"
	timeout 60 "$ctl" insns -q --json=short --last=9 "$bundle" | cmp - "$dir/want"
	early=$(lines branches '.kind' --to=-50us) late=$(lines branches '.kind' --from=-50us)
	[ "$early" -gt 0 ]
	[ "$late" -gt 0 ]
	[ "$(lines branches '.atNSec < -50000' --from=-50us)" -eq 0 ]
	[ $((early + late)) -ge "$(summary branches)" ]
	run -2 "$ctl" branches --from=-1us --to=-2us "$bundle"
	[[ $output == *"nothing lies between"* ]]
	run -2 "$ctl" insns --last=3 --limit=3 "$bundle"
	run -2 "$ctl" branches --syntax=intel "$bundle"
	run -1 "$ctl" insns "$BATS_TEST_FILENAME"
}

@test "a span has the lines of the whole between its times" {
	for span in psbs:60:40 psbs:199:190 psbs:7:3 turns:99:90 cpus:6:3; do
		IFS=: read -r kind from to <<<"$span"
		made "$kind"
		for verb in branches insns; do
			timeout 60 "$ctl" $verb -q --json=short "$bundle" |
				jq -c "select(.atNSec >= -$from""000 and .atNSec <= -$to""000)" >"$dir/want"
			[ -s "$dir/want" ]
			timeout 60 "$ctl" $verb -q --json=short --from=-"$from"us --to=-"$to"us "$bundle" |
				jq -c . | cmp - "$dir/want"
		done
	done
}

@test "text has names, bytes and both syntaxes, and nothing that drives a terminal" {
	made overflow
	"$ctl" insns -q "$bundle" >"$dir/out"
	grep -q ' 400220 ff c1  *inc %ecx  *leaf+0x0$' "$dir/out"
	grep -q '# gap overflow$' "$dir/out"
	"$ctl" insns -q --syntax=intel "$bundle" | grep -q ' inc ecx '
	"$ctl" branches -q "$bundle" >"$dir/out"
	grep -q ' call  *main+0x0  *leaf+0x0$' "$dir/out"
	# The name of the thread has an escape sequence.
	! LC_ALL=C grep -q "$(printf '\033')" "$dir/out"
	"$ctl" branches -q --json=pretty "$bundle" | jq -e 'length == 55'
	"$ctl" branches -q --json=pretty --comm=none "$bundle" | jq -e '. == []'
}

@test "on a terminal lines are as wide as it is" {
	command -v script >/dev/null || skip "no script"
	made small
	for columns in 80 100 132 200; do
		for verb in branches "insns --lines" calls; do
			script -qec "stty cols $columns; NO_COLOR=1 PTSNAP_PAGER= '$ctl' $verb -q '$bundle'" /dev/null \
				</dev/null | tr -d '\r' >"$dir/out"
			[ "$(wc -l <"$dir/out")" -gt 10 ]
			! LC_ALL=C grep -q "$(printf '\033')" "$dir/out"
			[ "$(wc -L <"$dir/out")" -le "$columns" ]
		done
	done
	# A pager reads the lines.
	for verb in branches calls; do
		script -qec "PTSNAP_PAGER='sed s/^/P/' '$ctl' $verb -q '$bundle'" /dev/null </dev/null >"$dir/out"
		[ "$(wc -l <"$dir/out")" -gt 10 ]
		[ "$(grep -c '^P' "$dir/out")" -eq "$(wc -l <"$dir/out")" ]
		script -qec "PTSNAP_PAGER='sed s/^/P/' '$ctl' $verb -q --no-pager '$bundle'" /dev/null </dev/null >"$dir/out"
		! grep -q '^P' "$dir/out"
	done
}

@test "timeline has the turns, gaps and the trigger of the report, in the order of time" {
	made turns
	timeout 60 "$ctl" decode -o "$dir/report.json" "$bundle" 2>/dev/null
	timeout 60 "$ctl" timeline --json=short "$dir/report.json" >"$dir/timeline"
	timeout 60 "$ctl" timeline --json=short "$bundle" 2>/dev/null | cmp - "$dir/timeline"
	jq -e 'map(.atNSec) | . == sort' "$dir/timeline"
	[ "$(jq 'map(select(.event == "run")) | length' "$dir/timeline")" -eq "$(jq '.turns | length' "$dir/report.json")" ]
	[ "$(jq 'map(select(.event == "gap")) | length' "$dir/timeline")" -eq \
		"$(jq '[.gaps[] | select(.atNSec != null)] | length' "$dir/report.json")" ]
	[ "$(jq 'map(select(.event == "trigger")) | length' "$dir/timeline")" -eq 1 ]
	"$ctl" timeline --limit=5 "$dir/report.json" >"$dir/out"
	[ "$(grep -c runs "$dir/out")" -eq 5 ]
	grep -q '^5 of ' "$dir/out"
	! LC_ALL=C grep -q "$(printf '\033')" "$dir/out"
	[ "$("$ctl" timeline --json=short --tid=4713 "$dir/report.json" | jq 'map(.tid) | unique | length')" -eq 2 ]
	run -2 "$ctl" timeline --from=-1us --to=-2us "$dir/report.json"
	run -2 "$ctl" timeline --function=x "$dir/report.json"
	run -1 "$ctl" timeline "$BATS_TEST_FILENAME"
}

@test "timeline --picture has a row for each CPU and a letter for each thread" {
	made turns
	"$ctl" timeline --picture "$bundle" >"$dir/out" 2>/dev/null
	[ "$(wc -L <"$dir/out")" -le 80 ]
	[ "$(grep -c '^CPU [0-2] *[AB?.#]*$' "$dir/out")" -eq 3 ]
	grep -q '^A  .* (4712) ' "$dir/out"
	grep -q '^B  second (4713) ' "$dir/out"
	[ "$(wc -L <"$dir/out")" -le 110 ]
	"$ctl" timeline --picture --cpu=1 "$bundle" >"$dir/out" 2>/dev/null
	[ "$(grep -c '^CPU ' "$dir/out")" -eq 1 ]
}
