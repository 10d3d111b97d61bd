#!/usr/bin/env bats
# The command line of ptsnapctl, and ptsnapctl with a recorder that misbehaves. Exit codes are those
# of ptsnapctl(1).

setup() {
	here=${PTSNAP_SRCDIR:-$BATS_TEST_DIRNAME/../..}/tests/system
	ctl=${PTSNAPCTL:-${PTSNAP_BUILDDIR:-$BATS_TEST_DIRNAME/../..}/ctl/ptsnapctl}
	[ -x "$ctl" ] || skip "$ctl is not built"
	dir=$(mktemp -d)
	sock=$dir/socket
}

teardown() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	[ -z "$dir" ] || rm -rf "$dir"
}

# recorder BEHAVIOUR: starts a fake recorder.
recorder() {
	command -v python3 >/dev/null || skip "no python3"
	python3 "$here/fake_recorder.py" "$sock" "$1" 3>&- >/dev/null 2>&1 &
	server=$!
	for _ in $(seq 200); do
		[ -S "$sock" ] && return
		sleep 0.05
	done
	return 1
}

# Runs ptsnapctl with its messages in $err and its data in $output.
ctl() {
	run sh -c 'err=$1; shift; exec timeout 60 "$@" 2>"$err" </dev/null' sh "$dir/err" \
		"$ctl" --socket="$sock" "$@"
	err=$(cat "$dir/err")
}

# fails CODE PART: expects exit code CODE, one line on stderr that contains PART, and nothing on stdout.
fails() {
	echo "status $status, stdout: $output, stderr: $err"
	[ "$status" -eq "$1" ]
	[ "$(printf '%s\n' "$err" | wc -l)" -eq 1 ]
	case $err in *"$2"*) ;; *) return 1 ;; esac
	[ -z "$output" ]
}

@test "delete and unpin take no latest, which may be another snapshot by now" {
	recorder normal
	for verb in delete unpin; do
		ctl $verb latest
		fails 2 "$verb latest: give an ID"
	done
}

@test "no verb lists the verbs" {
	ctl
	fails 2 "snapshot, list, fetch, info, diff, functions, threads, processes, images, gaps, turns, timeline, pin, unpin, delete, status, monitor, check, yield, trigger, reload, decode, view, calls, branches, insns, export"
}

@test "unknown verb lists the verbs" {
	ctl frobnicate
	fails 2 "valid verbs: snapshot, list, fetch, info, diff, functions, threads, processes, images, gaps, turns, timeline, pin, unpin, delete, status, monitor, check, yield, trigger, reload, decode, view, calls, branches, insns, export, help, version"
}

@test "unknown option lists the options" {
	ctl snapshot --reson=x
	fails 2 "unknown option --reson=x (did you mean --reason?); valid options: --reason=, --last="
	ctl list -x
	fails 2 "unknown option -x; valid options: --limit=, --before=, --no-pager, --socket="
}

@test "a slip of the finger gets a hint" {
	ctl statsu
	fails 2 "unknown verb statsu (did you mean status?); valid verbs:"
	ctl list --limti=3
	fails 2 "unknown option --limti=3 (did you mean --limit?); valid options:"
	ctl fetch latest --format=bundel
	fails 2 "unknown value (did you mean bundle?); valid values: report, bundle"
}

@test "unknown values list the valid ones" {
	ctl --json=xml list
	fails 2 "valid values: pretty, short, off"
	ctl fetch latest --format=tar
	fails 2 "valid values: report, bundle"
	ctl export latest --format=xml
	fails 2 "valid values: perf.data"
	ctl decode --view=trees x
	fails 2 "valid values: report, summary, packets, branches, insns"
	ctl snapshot --last=8x
	fails 2 "a size like"
	ctl snapshot --deadline=soon
	fails 2 "a time like"
	ctl snapshot --deadline=18446744073709551s
	fails 2 "--deadline=18446744073709551s"
	ctl snapshot --deadline=1s --no-decode
	fails 2 "either --deadline or --no-decode"
	ctl snapshot --reason="$(printf 'two\nlines')"
	fails 2 "without control characters"
	ctl list --limit=0
	fails 2 "a number from 1 on"
	ctl snapshot --reason="$(printf 'x%.0s' $(seq 257))"
	fails 2 "at most 256 bytes"
	ctl --socket= list
	fails 2 "--socket= needs"
	ctl --timeout=soon list
	fails 2 "a time like"
	ctl decode --raw-pt=x --mtc-freq=16
	fails 2 "from 0 to 15"
	ctl decode --raw-pt=x --raw-image=y
	fails 2 "FILE[:OFFSET:LENGTH]@VADDR"
	ctl decode --raw-pt=x --cpu=6
	fails 2 "FAMILY/MODEL"
	ctl decode --raw-pt=x --cpuid-0x15=2
	fails 2 "EAX,EBX"
	ctl decode --gap=0 --view=packets x
	fails 2 "from 1"
	for size in 0 63K 17M x; do
		ctl decode --report-size=$size x
		[ "$status" -eq 2 ]
		[[ $err == *"--report-size=$size"* ]]
	done
	ctl decode --report-size=1M --view=summary x
	fails 2 "--report-size goes with --view=report"
	ctl decode --retstack=amd x
	fails 2 "valid values: auto, sdm, libipt"
	ctl decode --skim=all x
	fails 2 "valid values: psb, tip"
	ctl decode --deadline=soon x
	fails 2 "a time like"
	ctl decode --deadline=99999999999999999999h x
	fails 2 "a time like"
	ctl decode --deadline=18446744073709551s x
	fails 2 "--deadline=18446744073709551s"
	ctl decode --threads=1025 x
	fails 2 "from 0 to 1024"
	ctl decode --repeat=0 --view=summary x
	fails 2 "from 1 to 1000"
	ctl decode --repeat=1001 --view=summary x
	fails 2 "from 1 to 1000"
	ctl decode --raw-pt=x --pevent:time-shift=64
	fails 2 "from 0 to 63"
}

@test "options that do not fit the view of decode" {
	ctl decode --no-pad x
	fails 2 "--no-pad needs --view=packets"
	ctl decode --view=insns --event:tick x
	fails 2 "--event:tick needs --view=insns --ptxed"
	ctl decode --view=packets --ptxed x
	fails 2 "--ptxed needs --view=insns"
	ctl decode --view=packets --time --tcal x
	fails 2 "--time and --tcal exclude"
	ctl decode --gap=1 x
	fails 2 "--gap goes with --view=packets"
	ctl decode --repeat=2 x
	fails 2 "--repeat goes with --view=summary"
	ctl decode --view=branches --deadline=1s x
	fails 2 "--deadline goes with --view=report and --view=summary"
	ctl decode --view=summary --deadline=1s --repeat=2 x
	fails 2 "either --repeat or --deadline"
	ctl decode --view=packets --threads=2 x
	fails 2 "--threads: --view=packets"
	ctl decode --view=insns --skim=tip x
	fails 2 "--skim goes with --view=report"
	ctl decode --skim=tip --deadline=0 x
	fails 2 "nothing for"
	ctl decode --skim=tip --view=summary --hash x
	fails 2 "nothing for"
	ctl decode --skim=tip --threads=2 x
	fails 2 "nothing for"
	ctl decode --skim=psb --view=branches --max-errors=0 x
	fails 2 "nothing for"
	ctl decode --skim=psb --retstack=libipt x
	fails 2 "nothing for"
	for view in summary packets branches insns events; do
		ctl decode --view=$view --lines x
		fails 2 "--lines goes with --view=report"
		ctl decode --view=$view --symbols=/ x
		fails 2 "--symbols goes with --view=report"
	done
	ctl decode --view=insns --no-names x
	fails 2 "--no-names goes with --view=report"
	ctl decode --no-names --lines x
	fails 2 "either --no-names, or --lines"
	ctl decode --skim=psb --lines x
	fails 2 "not with other views nor with --skim"
	DEBUGINFOD_URLS=x ctl decode --view=insns --debuginfod x
	fails 2 "--debuginfod goes with --view=report"
	DEBUGINFOD_URLS= ctl decode --debuginfod x
	fails 2 "DEBUGINFOD_URLS"
	ctl decode --pevent:primary=x y
	fails 2 "--raw-pt"
	ctl decode --view=packets --sb:time y
	fails 2 "goes with --raw-pt"
}

@test "decode --view=packets takes the options of ptdump" {
	printf '\2\202\2\202\2\202\2\202\2\202\2\202\2\202\2\202\2\43\0\2\377' >"$dir/pt"
	ctl decode --raw-pt="$dir/pt" --view=packets --no-pad --no-offset --cpu 6/94 --mtc-freq 3
	[ "$status" -eq 0 ]
	[ "$output" = "psb
psbend
[13: error decoding packet: unknown opcode]" ]
	ctl decode --raw-pt="$dir/pt" --view=packets --gap=7
	fails 2 "no gap with this number"
}

@test "decode with --deadline, --repeat and --skim" {
	printf '\2\202\2\202\2\202\2\202\2\202\2\202\2\202\2\202\2\43' >"$dir/pt"
	for time in 0 50ms 1s; do
		ctl decode --raw-pt="$dir/pt" --deadline=$time --json=short
		[ "$status" -eq 0 ]
		[[ $output == *'"decoded":{"deadlineNSec":'* ]]
	done
	ctl decode --raw-pt="$dir/pt" --deadline=1s --json=off
	[[ $output == *"Window    the whole trace decoded (deadline 1.0 s)"* ]]
	ctl decode --raw-pt="$dir/pt" --json=short
	[[ $output != *'"decoded"'* ]]
	ctl decode --raw-pt="$dir/pt" --view=summary --repeat=3 --threads=1
	[ "$status" -eq 0 ]
	[[ $output == *'"passes":['*,*,*'],"passesElapsed":['*,*,*']'* ]]
	ctl decode --raw-pt="$dir/pt" --view=summary --skim=psb
	[ "$status" -eq 0 ]
	[[ $output == *'"psbs":1'* ]]
}

@test "operands that are missing or too many" {
	ctl fetch
	fails 2 "latest"
	ctl list x
	fails 2 "no operand"
	ctl version x
	fails 2 "no operand"
	ctl help list x
	fails 2 "one verb"
	ctl export a b
	fails 2 "export takes one operand: an ID of \`ptsnapctl list', latest, or a bundle"
	for verb in info functions timeline view calls branches insns export; do
		ctl $verb ''
		fails 2 "$verb takes no empty operand: an ID"
		ctl $verb a b
		fails 2 "$verb takes one operand: an ID"
		# The default is asked of the recorder.
		ctl $verb
		fails 5 "socket"
	done
	ctl decode ''
	fails 2 "the operand is empty"
	ctl export --images= a
	fails 2 "--images= needs"
	ctl decode
	fails 2 "BUNDLE"
	ctl decode a b
	fails 2 "BUNDLE"
	ctl decode --raw-pt=x y
	fails 2 "not both"
	ctl decode --cpu=6/85 y
	fails 2 "--raw-pt"
	ctl snapshot --no-wait -o x
	fails 2 "-o writes the report"
}

@test "help and version need no recorder" {
	ctl --help
	[ "$status" -eq 0 ]
	[[ $output == *"snapshot [--reason=TEXT]"* ]]
	ctl decode --help
	[ "$status" -eq 0 ]
	[[ $output == *"--raw-pt=FILE"* ]]
	ctl help fetch
	[[ $output == *"fetch ID|latest"* ]]
	ctl version
	[[ $output == "ptsnapctl "* ]]
	ctl --version
	[[ $output == "ptsnapctl "* ]]
}

@test "socket absent" {
	ctl status
	fails 5 "start ptsnapd"
}

@test "socket without a listener" {
	command -v python3 >/dev/null || skip "no python3"
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$sock"
	ctl status
	fails 5 "start ptsnapd"
}

@test "socket path too long" {
	run "$ctl" --socket="/$(printf 'x%.0s' $(seq 200))" status
	[ "$status" -eq 2 ]
	[[ $output == *"at most 107 bytes"* ]]
}

@test "socket without permission" {
	recorder normal
	chmod 0600 "$sock"
	chmod 0755 "$dir"
	if [ "$(id -u)" -eq 0 ]; then
		command -v setpriv >/dev/null || skip "no setpriv"
		cp "$ctl" "$dir/ptsnapctl"
		run setpriv --reuid=65534 --regid=65534 --clear-groups "$dir/ptsnapctl" \
			--socket="$sock" status
	else
		chmod 0000 "$sock"
		run "$ctl" --socket="$sock" status
	fi
	[ "$status" -eq 4 ]
	[[ $output == *"permission denied"* ]]
}

@test "status is printed, as text and JSON" {
	recorder normal
	ctl status
	[ "$status" -eq 0 ]
	[[ $output == *"State      tracing"* ]]
	[[ $output == *"pid 43, ended with status 3"* ]]
	# CPUs that are alike share a line.
	[[ $output == *$'\n0       tracing     0    8.0 MiB   64.0 KiB     1,234,567      -'* ]]
	[[ $output == *$'\n1-6     tracing     -    8.0 MiB   64.0 KiB             -      0'* ]]
	[[ $output == *$'\n7       tracing     -    8.0 MiB   64.0 KiB             -      5'* ]]
	[[ $output == *$'\n8       bu\\x1b[~    -        0 B   64.0 KiB'* ]]
	[[ $output == *$'\n        re\\x1b[31mason\\x0aline'* ]]
	[[ $output == *"Yielded    by uid 7, pid 99, until 2023-11-1"* ]]
	[[ $output == *"8.0 MiB"* ]]
	ctl --json=short status
	[ "$(printf '%s\n' "$output" | wc -l)" -eq 1 ]
	[[ $output == *'"state":'* ]]
	ctl -q status
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "status --attrs shows how the recorder traces" {
	recorder normal
	ctl status --attrs
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 8 ]
	[ "${lines[0]}" = "Preset     std" ]
	[ "${lines[1]}" = "Terms      tsc,mtc,mtc_period=9" ]
	[ "${lines[2]}" = "PT         type=8 config=0x2600e602" ]
	[ "${lines[3]}" = 'Sideband   type=1 re\x1b[31mason\x0aline' ]
	[ "${lines[4]}" = "Missing    text_poke" ]
	[ "${lines[5]}" = "Sizes      trace ring 4M instead of 8M" ]
	[ "${lines[6]}" = "Rings      8.0 MiB of trace, 64.0 KiB of sideband for CPU 0" ]
	[ "${lines[7]}" = "Clock      perf's, by the TSC" ]
	ctl --json=short status --attrs
	printf '%s' "$output" | python3 -c 'import json, sys
assert json.load(sys.stdin)["preset"] == "std"'
}

@test "check asks the recorder, and its exit code shows failures" {
	recorder normal
	ctl check
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 2 ]
	[ "${lines[0]}" = "ok       pmu: intel_pt is here" ]
	[ "${lines[1]}" = 'warning  lost: 3 records re\x1b[31mason\x0aline; fix: --data-size=2M' ]
	ctl -q check
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	ctl --json=short check
	printf '%s' "$output" | python3 -c 'import json, sys
assert [f["level"] for f in json.load(sys.stdin)] == ["ok", "warning"]'
}

@test "check with a failure gives exit code 6" {
	recorder failing
	ctl check
	[ "$status" -eq 6 ]
	[ "${lines[2]}" = "failure  paranoid: is 3; fix: sysctl" ]
	ctl -q check
	[ "$status" -eq 6 ]
	[ -z "$output" ]
}

@test "check without a recorder runs ptsnapd --check and says so" {
	cat >"$dir/ptsnapd" <<-'EOF'
		#!/bin/sh
		[ "$*" = "--check --json" ] || exit 3
		echo '[{"level": "failure", "what": "pmu", "text": "none", "fix": null}]'
		exit 6
	EOF
	chmod +x "$dir/ptsnapd"
	ctl check --ptsnapd="$dir/ptsnapd"
	[ "$status" -eq 6 ]
	[ "${#lines[@]}" -eq 2 ]
	[ "${lines[0]}" = "warning  recorder: no recorder runs here; fix: systemctl start ptsnapd" ]
	[ "${lines[1]}" = "failure  pmu: none" ]
	sed -i 's/failure/ok/' "$dir/ptsnapd"
	ctl check --ptsnapd="$dir/ptsnapd" --json=short
	[ "$status" -eq 0 ]
	printf '%s' "$output" | python3 -c 'import json, sys
assert [f["what"] for f in json.load(sys.stdin)] == ["recorder", "pmu"]'
	printf '#!/bin/sh\necho nonsense\n' >"$dir/ptsnapd"
	ctl check --ptsnapd="$dir/ptsnapd"
	fails 1 "no findings"
	ctl check --ptsnapd="$dir/absent"
	fails 1 "cannot be run"
}

@test "check's options" {
	ctl check x
	fails 2 "no operand"
	ctl check --for=1s
	fails 2 "go with --trace"
	ctl check --trace --source=magic
	fails 2 "valid values: auto, intel_pt, emulated"
}

@test "yield says until when Intel PT is free, and --end gives it back" {
	recorder normal
	ctl yield --for=10m
	[ "$status" -eq 0 ]
	[[ $output == "Intel PT is free until 2023-11-1"* ]]
	ctl yield
	[[ $output == "Intel PT is free; "* ]]
	ctl yield --end
	[ "$output" = "The recorder takes Intel PT again" ]
	ctl --json=short yield --for=1s
	[ "$output" = '{"untilUSec":1700000001000000}' ]
	ctl yield --for=1s --end
	fails 2 "either --for=TIME or --end"
	ctl yield --for=0
	fails 2 "a time like"
	ctl yield now
	fails 2 "no operand"
}

@test "yield with a recorder that cannot yield" {
	recorder 'error:io.ptsnap.recorder.NotSupported:{"cause": "no PT"}'
	ctl yield
	fails 1 "the recorder cannot do this: no PT"
}

@test "list escapes untrusted text" {
	recorder normal
	ctl list
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 3 ]
	[[ $output == *'re\x1b[31mason\x0aline'* ]]
	ctl list --json=short
	[ "${#lines[@]}" -eq 2 ]
	ctl list --json=pretty
	printf '%s' "$output" | python3 -c 'import json, sys; assert len(json.load(sys.stdin)) == 2'
}

@test "list fits the terminal, and a pager shows it" {
	script -qec true /dev/null >/dev/null 2>&1 || skip "no script(1), or no terminal to be had"
	recorder normal
	for columns in 80 124 125 200; do
		script -qec "stty cols $columns; PTSNAP_PAGER= '$ctl' --socket='$sock' list" /dev/null \
			</dev/null | tr -d '\r' >"$dir/out"
		[ "$(wc -l <"$dir/out")" -eq 3 ]
		[ "$(wc -L <"$dir/out")" -le "$columns" ]
		grep -q '^5abc-0001 .* re' "$dir/out"
		grep -q RAW "$dir/out" && wide=1 || wide=0
		[ "$wide" -eq $((columns >= 125)) ]
	done
	script -qec "PTSNAP_PAGER='sed s/^/P/' '$ctl' --socket='$sock' list" /dev/null </dev/null >"$dir/out"
	[ "$(grep -c '^P' "$dir/out")" -eq 3 ]
	script -qec "PTSNAP_PAGER='sed s/^/P/' '$ctl' --socket='$sock' list --no-pager" /dev/null </dev/null >"$dir/out"
	! grep -q '^P' "$dir/out"
}

@test "list asks for a page" {
	recorder normal
	ctl list --limit=2 --before=xyz --json=short
	[ "$status" -eq 0 ]
	[ "$(printf '%s\n' "$output" | tail -n 1 | jq -c .asked)" = '{"limit":2,"before":"xyz"}' ]
}

@test "snapshot waits and prints the summary" {
	recorder normal
	ctl snapshot --reason=why --last=8M
	[ "$status" -eq 0 ]
	[ -z "$err" ]
	[[ $output == *"Snapshot  5abc-0001"* ]]
	[[ $output == *'re\x1b[31mason\x0aline'* ]]
}

@test "snapshot's options reach the recorder" {
	recorder normal
	ctl snapshot --no-wait --reason=why --last=50ms --no-decode -j
	[ "$status" -eq 0 ]
	printf '%s' "$output" | python3 -c 'import json, sys
assert json.load(sys.stdin)["asked"] == {"reason": "why", "windowUSec": 50000, "decode": False}'
	ctl snapshot --no-wait --last=8M -j
	printf '%s' "$output" | python3 -c 'import json, sys
assert json.load(sys.stdin)["asked"] == {"windowBytes": 8388608}'
	ctl snapshot --no-wait --deadline=1.5s -j
	printf '%s' "$output" | python3 -c 'import json, sys
assert json.load(sys.stdin)["asked"] == {"deadlineUSec": 1500000}'
	ctl snapshot --no-wait
	[ "$output" = 5abc-0001 ]
}

@test "snapshot -o writes the report as JSON" {
	recorder normal
	ctl -q snapshot -o "$dir/report.json"
	[ "$status" -eq 0 ]
	[ -z "$output$err" ]
	[ "$(stat -c %a "$dir/report.json")" = 600 ]
	python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["id"] == "5abc-0001"' \
		"$dir/report.json"
	[ "$(ls "$dir" | grep -c report)" -eq 1 ]
}

@test "diff compares two saved reports" {
	for calls in 0 900; do
		cat >"$dir/$calls.json" <<-EOF
			{"id": "of-$calls", "totals": {"instructions": 1000}, "cpus": [{"cpu": 0, "gotNSec": 1000000000}],
			 "functions": [{"name": "f", "calls": $calls, "selfInstructions": $calls, "selfNSec": ${calls}000}]}
		EOF
	done
	ctl diff "$dir/0.json" "$dir/0.json"
	[ "$status" -eq 0 ]
	[[ $output == *"Nothing differs by more than counting noise"* ]]
	LC_ALL=C ctl diff "$dir/0.json" "$dir/900.json"
	[ "$status" -eq 0 ]
	[[ $output == *"A  of-0, "*"B  of-900, "*" more       f: 0.00 -> 0.09 % of a CPU"* ]]
	ctl diff --json=short "$dir/900.json" "$dir/0.json"
	printf '%s' "$output" | python3 -c 'import json, sys
assert json.load(sys.stdin)["functions"][0]["kind"] == "less"'
	ctl diff "$dir/0.json"
	fails 2 "diff takes two operands"
	ctl diff --limit=0 "$dir/0.json" "$dir/0.json"
	fails 2 "a number from 1 on"
	echo '[]' >"$dir/list.json"
	ctl diff "$dir/0.json" "$dir/list.json"
	[ "$status" -eq 1 ]
	ctl diff "$dir/0.json" "$dir/none.json"
	fails 1 "none.json: No such file"
}

# saved ID CALLS: a saved report of a function with so many calls.
saved() {
	cat >"$dir/$1.json" <<-EOF
		{"id": "$1", "totals": {"instructions": 1000}, "cpus": [{"cpu": 0, "gotNSec": 1000000000}],
		 "functions": [{"name": "f", "calls": $2, "selfInstructions": $2, "selfNSec": ${2}000}]}
	EOF
}

@test "a saved report of another version of the schema is refused" {
	echo '{"schemaVersion": "1.11", "id": "old"}' >"$dir/old.json"
	echo '{"schemaVersion": "2.7", "id": "newer"}' >"$dir/newer.json"
	printf '{"schemaVersion": "3\\u001b", "id": "new"}' >"$dir/new.json"
	ctl info "$dir/old.json"
	fails 1 "version 1.11 of the schema, and this program reads version 2.0; decode the snapshot again"
	ctl functions --json "$dir/old.json"
	fails 1 "version 1.11"
	ctl diff "$dir/newer.json" "$dir/new.json"
	fails 1 'version 3\x1b'
	ctl info "$dir/newer.json"
	[ "$status" -eq 0 ]
}

@test "info ends with what differs from a baseline" {
	saved quiet 0
	saved busy 900
	LC_ALL=C ctl info --baseline="$dir/quiet.json" "$dir/busy.json"
	[ "$status" -eq 0 ]
	[[ $output == "Snapshot"*"busy"*"Different from the baseline (A) in this snapshot (B)"*"A  quiet, "*" more       f: 0.00 -> 0.09 % of a CPU"* ]]
	ctl info --baseline="$dir/busy.json" "$dir/busy.json"
	[[ $output == *"Nothing differs by more than counting noise"* ]]
	ctl info --json=short --baseline="$dir/quiet.json" "$dir/busy.json"
	printf '%s' "$output" | python3 -c 'import json, sys
both = json.load(sys.stdin)
assert sorted(both) == ["difference", "report"] and both["report"]["id"] == "busy", both
assert both["difference"]["a"]["id"] == "quiet", both
assert both["difference"]["functions"][0]["kind"] == "more", both'
	ctl info --baseline="$dir/none.json" "$dir/busy.json"
	fails 1 "none.json: No such file"
	echo '{"skim": "psb"}' >"$dir/skim.json"
	ctl info --baseline="$dir/skim.json" "$dir/busy.json"
	fails 1 "the trace shows no code"
}

@test "snapshot ends with what differs from a baseline" {
	recorder normal
	saved quiet 0
	LC_ALL=C ctl -q snapshot --baseline="$dir/quiet.json"
	[ "$status" -eq 0 ]
	[[ $output == "Snapshot"*"Different from the baseline"*"A  quiet, "* ]]
	ctl -q snapshot --baseline=latest --json=short
	[ "$status" -eq 0 ]
	printf '%s' "$output" | python3 -c 'import json, sys
both = json.load(sys.stdin)
assert both["report"]["id"] == both["difference"]["a"]["id"] == "5abc-0001", both'
	# The snapshot is taken and shown whatever becomes of the baseline.
	ctl -q snapshot --baseline="$dir/none.json"
	[ "$status" -eq 1 ]
	[[ $err == *"none.json: No such file"* ]]
	[[ $output == "Snapshot"*5abc-0001* ]]
	for other in --no-wait --no-decode -o"$dir/x"; do
		ctl snapshot --baseline=latest "$other"
		fails 2 "--baseline compares what is printed"
	done
}

@test "a list of a saved report, as a table and as JSON" {
	echo '{"functions":[{"name":"one","selfInstructions":5},{"name":"two","selfInstructions":4}],
		"cut":[{"what":"functions","kept":2,"total":9}]}' >"$dir/report.json"
	ctl functions --function='t*' "$dir/report.json"
	[ "$status" -eq 0 ]
	[[ $output == *" two"*"1 of 2 functions match"*"it has 2 of 9"* ]]
	[[ $output != *one* ]]
	ctl functions --limit=1 --json=short "$dir/report.json"
	[ "$status" -eq 0 ]
	[ "$output" = '[{"name":"one","selfInstructions":5}]' ]
	[[ $err == *"it has 2 of 9"* ]]
	ctl -q turns --json=short "$dir/report.json"
	[ "$status" -eq 0 ]
	[ "$output$err" = null ]
	ctl gaps --tid=1 "$dir/report.json"
	fails 2 "unknown option --tid=1; valid options: --no-pager, --limit=, --from=, --to=, --cpu=, --socket="
	ctl threads --limit=0 "$dir/report.json"
	fails 2 "--limit=0 is not valid"
	ctl threads --cpu=x "$dir/report.json"
	fails 2 "--cpu=x: give a number"
	ctl turns a b
	fails 2 "turns takes one operand"
}

@test "a failed snapshot" {
	recorder normal
	ctl snapshot --reason=fail
	fails 1 "worker was killed"
}

@test "a request that is not UTF-8" {
	recorder normal
	ctl snapshot --reason="$(printf '\377')"
	fails 2 "not valid UTF-8"
}

@test "fetch copies the report and the bundle" {
	recorder normal
	ctl fetch latest
	[ "$status" -eq 0 ]
	[[ $output == '{"schemaVersion": "2.0"'* ]]
	ctl fetch latest --json=off
	[[ $output == "Report    5abc-0001"* ]]
	"$ctl" --socket="$sock" fetch 5abc --format=bundle -o - >"$dir/b1"
	"$ctl" --socket="$sock" fetch 5abc --format=bundle -o "$dir/b2"
	[ "$(stat -c %s "$dir/b1")" -eq 12 ]
	cmp "$dir/b1" "$dir/b2"
}

@test "fetch refuses a bundle on a terminal" {
	script -qec true /dev/null >/dev/null 2>&1 || skip "no script(1), or no terminal to be had"
	recorder normal
	run script -qec "'$ctl' --socket='$sock' fetch latest --format=bundle" /dev/null
	[ "$status" -eq 2 ]
	[[ $output == *"not written to a terminal"* ]]
}

# bundle KIND: makes a synthetic bundle in $dir/bundle, which the recorder also hands out.
bundle() {
	make=${PTSNAP_BUILDDIR:-$BATS_TEST_DIRNAME/../..}/tests/support/make_bundle
	[ -x "$make" ] || skip "$make is not built"
	"$make" "$1" "$dir/bundle"
	export FAKE_BUNDLE=$dir/bundle
}

@test "a list that a stored report has no room for is read from the bundle" {
	bundle turns
	export PTSNAP_DECODE=${PTSNAP_BUILDDIR:-$BATS_TEST_DIRNAME/../..}/decoder/worker/ptsnap-decode FAKE_REPORT=$dir/stored.json
	[ -x "$PTSNAP_DECODE" ] || skip "$PTSNAP_DECODE is not built"
	"$ctl" decode --json=short "$dir/bundle" >"$dir/whole.json" 2>/dev/null
	python3 - "$dir" <<-'EOF'
		import json, sys
		report = json.load(open(f"{sys.argv[1]}/whole.json"))
		report["cut"] = [{"what": "turns", "kept": 3, "total": len(report["turns"])}]
		report["id"] = "5abc-0001"
		report["turns"] = report["turns"][-3:]
		json.dump(report, open(f"{sys.argv[1]}/stored.json", "w"))
	EOF
	turns=$(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["turns"]))' "$dir/whole.json")
	[ "$turns" -gt 3 ]
	recorder normal
	rows='import json, sys; print(len([e for e in json.load(sys.stdin) if e.get("event", "run") == "run"]))'
	ctl turns --json=short 5abc
	[ "$status" -eq 0 ]
	[ "$(python3 -c "$rows" <<<"$output")" -eq "$turns" ]
	ctl timeline --json=short 5abc
	[ "$(python3 -c "$rows" <<<"$output")" -eq "$turns" ]
	ctl diff --json=short 5abc "$dir/whole.json"
	[ "$status" -eq 0 ]
	ctl diff "$dir/bundle" "$dir/bundle"
	[ "$status" -eq 0 ]
	[[ $output == *"Nothing differs"* ]]
	# What the report has in full is not decoded.
	export PTSNAP_DECODE=/bin/false
	ctl functions --json=short 5abc
	[ "$status" -eq 0 ]
	[ -z "$err" ]
	# A part is better than nothing.
	ctl turns --json=short 5abc
	[ "$status" -eq 0 ]
	[ "$(python3 -c "$rows" <<<"$output")" -eq 3 ]
	[[ $err == *"ended without a result"*"the report has no room for all turns: it has 3 of $turns"* ]]
}

@test "decode writes the same for a file, an ID and latest" {
	bundle cpus
	recorder normal
	for operand in "$dir/bundle" 5abc latest; do
		ctl -q decode --view=summary -o "$dir/$(basename "$operand").json" "$operand"
		echo "$status $err"
		[ "$status" -eq 0 ]
	done
	cmp "$dir/bundle.json" "$dir/5abc.json"
	cmp "$dir/bundle.json" "$dir/latest.json"
	# A file of that name wins.
	echo "no bundle" >"$dir/latest"
	cd "$dir"
	ctl -q decode latest
	fails 1 "latest: not a ptsnap bundle"
	ctl -q decode later.ptsnap
	fails 1 "later.ptsnap: No such file"
}

@test "the summary of decode fits the terminal, and a pager shows it" {
	script -qec true /dev/null >/dev/null 2>&1 || skip "no script(1), or no terminal to be had"
	bundle turns
	"$ctl" -q --json=off decode "$dir/bundle" >"$dir/whole"
	[ "$(wc -L <"$dir/whole")" -gt 80 ]
	for columns in 80 100 300; do
		script -qec "stty cols $columns; PTSNAP_PAGER= '$ctl' -q decode '$dir/bundle'" /dev/null \
			</dev/null | tr -d '\r' >"$dir/out"
		[ "$(wc -L <"$dir/out")" -le "$columns" ]
		[ "$(wc -l <"$dir/out")" -ge "$(wc -l <"$dir/whole")" ]
	done
	cmp "$dir/out" "$dir/whole"
	script -qec "PTSNAP_PAGER='sed s/^/P/' '$ctl' -q decode '$dir/bundle'" /dev/null </dev/null >"$dir/out"
	grep -q '^PReport' "$dir/out"
	script -qec "PTSNAP_PAGER='sed s/^/P/' '$ctl' -q decode --no-pager '$dir/bundle'" /dev/null </dev/null >"$dir/out"
	grep -q '^Report' "$dir/out"
}

@test "export writes the same for a file, an ID and latest" {
	bundle cpus
	recorder normal
	ctl -q export -o "$dir/p1" "$dir/bundle"
	[ "$status" -eq 0 ]
	[ -z "$output$err" ]
	ctl -q export --format=perf.data -o "$dir/p2" 5abc
	[ "$status" -eq 0 ]
	"$ctl" -q --socket="$sock" export latest >"$dir/p3"
	[ "$(head -c 8 "$dir/p1")" = PERFILE2 ]
	[ "$(stat -c %a "$dir/p1")" = 600 ]
	cmp "$dir/p1" "$dir/p2"
	cmp "$dir/p1" "$dir/p3"
}

@test "export names a mapped file that differs on this host" {
	bundle plain
	ctl export -o "$dir/out" "$dir/bundle"
	[ "$status" -eq 0 ]
	[[ $err == *'1 of 1 mapped files are gone'*', /usr/bin/loop'*'--symfs'* ]]
	ctl export -o "$dir/out" --images="$dir/images" "$dir/bundle"
	[ "$status" -eq 0 ]
	[[ $err == *"1 images are in $dir/images"* ]]
	[ -s "$dir"/images/usr/bin/loop*x ]
	[ "$(stat -c %a "$dir/images")" = 700 ]
	ctl export -o "$dir/out" --images="$dir/images" "$dir/bundle"
	fails 1 "is not empty"
	[ "$(id -u)" -eq 0 ] || skip "not root"
	install -d -m 0777 -o 65534 "$dir/planted"
	ctl export -o "$dir/out" --images="$dir/planted" "$dir/bundle"
	fails 1 "belongs to another user"
}

@test "export says nothing about mapped files that the bundle lacks" {
	bundle noimage
	ctl export -o "$dir/out" "$dir/bundle"
	[ "$status" -eq 0 ]
	[ -z "$err" ]
}

@test "export of a file that is no bundle leaves no output" {
	recorder normal
	ctl export -o "$dir/out" latest
	fails 1 "latest: not a bundle"
	ctl export -o "$dir/out" "$dir/none"
	fails 1 "No such file"
	ctl export -o "$dir/out" "$dir"
	fails 1 "not a regular file"
	ctl export -o "$dir/out" none
	fails 1 "not a bundle" # the recorder's answer
	bundle plain
	truncate -s -1 "$dir/bundle"
	ctl export -o "$dir/out" "$dir/bundle"
	fails 1 "not a bundle, or a damaged one"
	[ ! -e "$dir/out" ]
}

@test "export to places that cannot be written" {
	bundle plain
	ctl -q export -o "$dir/none/x" "$dir/bundle"
	fails 1 "No such file or directory"
	for name in "" "$dir/none/"; do
		ctl -q export -o "$name" --images="$dir/images" "$dir/bundle"
		[ "$status" -eq 1 ]
		[ ! -e "$dir/images" ]
	done
	ctl -q export -o /dev/full "$dir/bundle"
	fails 1 "No space left on device"
	ctl -q export -o "$dir/p" "$dir/bundle"
	ctl -q export -o "$dir/q" "$dir/p"
	fails 1 "is a perf.data already"
	ctl -q export --images=/dev/null -o /dev/null "$dir/bundle"
	fails 1 "Not a directory"
}

@test "export refuses options that do not go with the format" {
	ctl export --format=csv --images=x a
	fails 2 "--images goes with --format=perf.data"
	ctl export --symbols=x a
	fails 2 "perf.data decodes nothing"
	ctl export --weight=wall -o x.pftrace a
	fails 2 "--weight goes with --format=collapsed"
	ctl export --weight=time --format=collapsed a
	fails 2 "valid values: cpu, wall, instructions"
	ctl export --format=pprof $(for i in 1 2 3 4 5 6 7 8 9; do echo --symbols=/; done) a
	fails 2 "up to 8 directories"
}

@test "export writes each branch of a decode once" {
	bundle plain
	ctl export --format=brstack -o "$dir/br" "$dir/bundle"
	[ "$status" -eq 0 ]
	ctl decode --view=branches -o "$dir/branches" "$dir/bundle"
	awk '/^[0-9a-f]/ && $1 != "0" && $2 != "0" {n++} END {print n + 0}' "$dir/branches" >"$dir/n"
	awk '/^ / {n += NF - 1} END {print n + 0}' "$dir/br" >"$dir/m"
	cmp "$dir/n" "$dir/m"
	grep -q '^PERF_RECORD_MMAP2 .* r.xp /' "$dir/br"
	ctl export --format=brstack -o /dev/full "$dir/bundle"
	fails 1 "No space left on device"
}

@test "export of what is no call stream leaves no output" {
	bundle plain
	decoder 0:0
	for format in speedscope perfetto pprof collapsed callgrind sql csv brstack; do
		ctl export --format=$format -o "$dir/out" "$dir/bundle"
		fails 1 "invalid"
		[ ! -e "$dir/out" ]
	done
}

@test "a failed export leaves no directory of images behind" {
	bundle plain
	ctl -q export -o "$dir/none/x" --images="$dir/images" "$dir/bundle"
	fails 1 "No such file or directory"
	[ ! -e "$dir/images" ]
}

@test "no verb overwrites its input" {
	bundle plain
	cp "$dir/bundle" "$dir/copy"
	ln -s bundle "$dir/link"
	ctl decode -o "$dir/bundle" "$dir/bundle"
	fails 2 "this is the input to decode"
	ctl decode -o "$dir/link" "$dir/bundle"
	fails 2 "this is the input to decode"
	ctl decode -o "$dir/bundle" --raw-pt="$dir/bundle" --raw-image="$dir/copy"@0
	fails 2 "this is the input to decode"
	ctl decode -o "$dir/bundle" --raw-pt="$dir/copy" --raw-image="$dir/bundle"@0
	fails 2 "this is the input to decode"
	ctl export -o "$dir/link" "$dir/bundle"
	fails 2 "this is the bundle to export"
	cmp "$dir/bundle" "$dir/copy"
}

@test "closed standard descriptors are not taken for other files" {
	bundle plain
	ctl -q export -o "$dir/p" "$dir/bundle"
	for file in bundle p; do
		run sh -c '"$1" decode "$2" 2>&1 >&-' sh "$ctl" "$dir/$file"
		[ "$status" -eq 1 ]
		[[ $output == *"standard output is closed"* ]]
	done
	run sh -c '"$1" export -o "$2" "$3" <&- >&- 2>&-' sh "$ctl" "$dir/q" "$dir/bundle"
	[ "$status" -eq 0 ]
	cmp "$dir/p" "$dir/q"
}

@test "a missing sysroot gives a message" {
	bundle plain
	ctl decode --sysroot="$dir/none" "$dir/bundle"
	fails 1 "none: No such file or directory"
	ctl decode --sysroot="$dir/bundle" "$dir/bundle"
	fails 1 "bundle: not a directory"
	ctl decode --raw-pt="$dir/bundle" --pevent:sysroot="$dir/none"
	fails 1 "none: No such file or directory"
}

@test "missing or too many directories of --symbols give a message" {
	bundle plain
	ctl decode --symbols="$dir/none" "$dir/bundle"
	fails 1 "--symbols=$dir/none: No such file or directory"
	ctl decode --lines --symbols=/ --symbols="$dir/bundle" "$dir/bundle"
	fails 1 "--symbols=$dir/bundle: not a directory"
	ctl decode --symbols= "$dir/bundle"
	fails 1 "--symbols=: No such file or directory"
	ctl decode $(for i in 1 2 3 4 5 6 7 8 9; do echo --symbols=/; done) "$dir/bundle"
	fails 2 "up to 8 directories"
	ctl decode --lines=yes "$dir/bundle"
	fails 2 "--lines"
	ctl decode --symbols
	fails 2 "--symbols"
}

@test "export refuses a terminal" {
	script -qec true /dev/null >/dev/null 2>&1 || skip "no script(1), or no terminal to be had"
	bundle plain
	run script -qec "'$ctl' export --format=pprof '$dir/bundle'" /dev/null
	[ "$status" -eq 2 ]
	[[ $output == *"pprof is binary and not written to a terminal"* ]]
	run script -qec "'$ctl' export '$dir/bundle'" /dev/null
	[ "$status" -eq 2 ]
	[[ $output == *"not written to a terminal"* ]]
}

@test "fetch to places that cannot be written" {
	recorder normal
	ctl fetch latest -o "$dir/none/x"
	fails 1 "No such file or directory"
	ctl fetch latest -o "$dir"
	fails 1 "Is a directory"
	ctl fetch latest -o /dev/full
	fails 1 "No space left on device"
	ctl fetch latest -o /dev/null
	[ "$status" -eq 0 ]
	[ -c /dev/null ]
	run sh -c '"$1" --socket="$2" status >/dev/full' sh "$ctl" "$sock"
	[ "$status" -eq 1 ]
	[[ $output == *"No space left on device"* ]]
}

@test "an existing output file survives a failure" {
	recorder error:io.ptsnap.recorder.NoSuchReport
	echo precious >"$dir/out"
	ctl fetch latest -o "$dir/out"
	[ "$status" -eq 3 ]
	[ "$(cat "$dir/out")" = precious ]
}

@test "an answer without its file, or with a file of another size" {
	recorder nofd
	ctl fetch latest
	fails 1 "has no file"
	kill "$server"
	rm "$sock"
	recorder wrongsize
	ctl fetch latest
	fails 1 "announced"
}

@test "garbage reply" {
	recorder garbage
	ctl status
	fails 1 "not valid Varlink"
}

@test "endless reply" {
	recorder huge
	ctl status
	fails 1 "not valid Varlink"
}

@test "more replies than asked for" {
	recorder continues
	ctl status
	fails 1 "not valid Varlink"
}

@test "half a reply, then the end" {
	recorder half
	ctl status
	fails 5 "closed the connection"
}

@test "connection closed at once" {
	recorder closed
	ctl status
	fails 5 "closed the connection"
}

@test "no reply, and --timeout" {
	recorder silent
	ctl --timeout=200ms status
	fails 124 "no answer in time"
}

@test "slow reply, and --timeout" {
	recorder slow
	ctl snapshot --timeout=500ms
	fails 124 "no answer in time"
}

@test "error replies have exit codes" {
	check() { # CODE PART NAME PARAMETERS
		recorder "error:$3:$4"
		ctl fetch some
		fails "$1" "$2"
		kill "$server"
		rm "$sock"
	}
	i=io.ptsnap.recorder
	check 3 "some: no such report" $i.NoSuchReport '{"id":"some"}'
	check 3 "more than one report" $i.AmbiguousReport '{"id":"some"}'
	check 1 "some: the snapshot is pinned; run \`ptsnapctl unpin some' first" $i.Pinned '{"id":"some"}'
	check 1 "3 snapshots of at most 2, 4096 bytes of at most 1024, which is half of" $i.TooManyPinned \
		'{"bytes":4096,"maxBytes":1024,"snapshots":3,"maxSnapshots":2}'
	check 4 "List is not for all users; run as root or as a member of the group that owns /s" \
		$i.PermissionDenied '{"action":"List","socket":"/s"}'
	check 3 "--format=bundle" $i.NotDecoded '{"id":"some"}'
	check 7 "again in 1500 ms" $i.Busy '{"retryAfterUSec":1500000}'
	check 7 "the next snapshot in 1500 ms" $i.RateLimited '{"retryAfterUSec":1499001}'
	check 2 "no trigger web" $i.NoSuchTrigger '{"trigger":"web"}'
	check 1 "has a trigger web already" $i.TriggerExists '{"trigger":"web"}'
	check 1 "does not add the trigger: no such folder" $i.InvalidTrigger '{"trigger":"web","cause":"no such folder"}'
	check 1 "keeps its old configuration: gone" $i.NotReloaded '{"cause":"gone"}'
	check 6 "takes no snapshot: the PMU is gone" $i.NotTracing '{"cause":"the PMU is gone"}'
	check 1 "failed: \\x1b[2J" $i.Failed '{"id":"x","cause":"\u001b[2J"}'
	check 2 "not know the format" $i.UnsupportedFormat '{"format":"report"}'
	check 1 "12 bytes needed, 3 free" $i.NoSpace '{"needBytes":12,"haveBytes":3}'
	check 4 "permission denied by the recorder; run as root" org.varlink.service.PermissionDenied '{}'
	check 2 "value of reason" org.varlink.service.InvalidParameter '{"parameter":"reason"}'
	check 1 "older than ptsnapctl" org.varlink.service.MethodNotFound '{"method":"x"}'
	check 1 "answers with the error com.example.New" com.example.New '{}'
	check 3 "?: no such report" $i.NoSuchReport '{"id":7}'
}

@test "decode of a file that is no bundle" {
	ctl decode "$dir/none"
	fails 1 "No such file"
	ctl decode "$dir"
	fails 1 "not a regular file"
	: >"$dir/empty"
	ctl decode "$dir/empty"
	fails 1 "the file is empty"
	ctl decode --raw-pt="$dir/empty"
	fails 1 "the file is empty"
	echo x >"$dir/pt"
	ctl decode --raw-pt="$dir/pt" --raw-image="$dir/none@0x1000"
	fails 1 "No such file"
}

# worker SCRIPT: makes a fake ptsnap-decode that runs SCRIPT.
worker() {
	printf '#!/bin/sh\n%s\n' "$1" >"$dir/worker"
	chmod +x "$dir/worker"
	echo x >"$dir/bundle"
}

@test "decode with a worker that misbehaves" {
	worker 'exit 0'
	ctl decode --worker="$dir/absent" "$dir/bundle"
	fails 1 "cannot be run: No such file"
	ctl decode --worker="$dir/worker" "$dir/bundle"
	fails 1 "ended without a result"
	worker 'kill -SEGV $$'
	PTSNAP_DECODE=$dir/worker ctl decode "$dir/bundle"
	fails 1 "killed by signal 11"
	[[ $err != *"without --lines"* ]]
	[[ $err == *"; try --no-names"* ]]
	PTSNAP_DECODE=$dir/worker ctl decode --lines "$dir/bundle"
	fails 1 "please report this; try without --lines and --symbols, or with --no-names"
	worker 'exec sleep 60'
	ctl decode --timeout=200ms --worker="$dir/worker" -o "$dir/out" "$dir/bundle"
	fails 124 "not decoded in time"
	[ ! -e "$dir/out" ]
	[ "$(ls "$dir" | grep -c '^out')" -eq 0 ]
}

@test "what a decoder writes to standard error is escaped, and bounded" {
	# shellcheck disable=SC2016
	worker 'printf "<0>\033[2Jassertion\n" >&2; head -c 10000000 /dev/zero | tr "\0" x >&2
		env | grep -v "^PWD=\|^_=\|^SHLVL=" >"$0.env"; exit 0'
	LD_BIND_NOW=1 ctl decode --worker="$dir/worker" "$dir/bundle"
	[ "$status" -eq 1 ]
	[[ $err == *"ended without a result"* ]]
	[[ $err == *"ptsnapctl: ptsnap-decode says: <0>\\x1b[2Jassertion"* ]]
	[ "${#err}" -lt 8192 ]
	[[ $err == *" bytes more, which are left out"* ]]
	[ ! -s "$dir/worker.env" ]
}

@test "a decode without a recorder has a limit of memory" {
	# shellcheck disable=SC2016
	worker 'exec python3 -c "
import os, socket, struct
data, fds, _, _ = socket.recv_fds(socket.socket(fileno=3), 4096, 8)
print(struct.unpack_from(\"=Q\", data, 16 + 24)[0], file=open(\"$0.memory\", \"w\"))"'
	worker_memory() {
		ctl decode --worker="$dir/worker" "$@" "$dir/bundle" >/dev/null
		cat "$dir/worker.memory"
	}
	half=$(($(awk '/^MemTotal:/ { print $2 }' /proc/meminfo) * 512))
	[ "$(worker_memory)" -eq "$half" ]
	[ "$(worker_memory --memory=100M)" -eq $((100 << 20)) ]
	ctl decode --memory=1M "$dir/bundle"
	fails 2 "64M or more"
}

# decoder RESULT: makes a fake ptsnap-decode that answers RESULT; $pt and $image are raw files.
decoder() {
	command -v python3 >/dev/null || skip "no python3"
	# A decoder gets no environment variables.
	printf '#!/bin/sh\nFAKE_DECODER=%s exec python3 "%s"\n' "$1" "$here/fake_decoder.py" >"$dir/fake"
	chmod +x "$dir/fake"
	export PTSNAP_DECODE=$dir/fake
	pt=$dir/pt
	image=$dir/im:1@2
	echo xxxx >"$pt"
	echo xxxx >"$image"
}

# A worker of an older version has messages of another size.
@test "decode with a worker of another version" {
	command -v python3 >/dev/null || skip "no python3"
	worker 'exec python3 -c "import socket; socket.socket(fileno=3).send(bytes(48))"'
	ctl decode --worker="$dir/worker" "$dir/bundle"
	fails 1 "worker sent an invalid message; is it the ptsnap-decode of this version?"
}

@test "decode hands the raw files over as one bundle" {
	decoder 0:0
	set --
	for i in $(seq 600); do set -- "$@" "--raw-image=$image:1:2@$((i * 16))"; done
	ctl decode --view=summary --hash --json=pretty --raw-pt="$pt" "$@"
	[ "$status" -eq 0 ]
	[ -z "$err" ]
	[[ $output == *"view=1 hash=1 pretty=1 cpu0.pt,images/0,manifest.json,sideband"* ]]
}

@test "decode says that ranges of --raw-image were cut" {
	decoder 0:0
	ctl decode --raw-pt="$pt" --raw-image="$image:1:100@0" --raw-image="$image@0x1000"
	[ "$status" -eq 0 ]
	[[ $err == *"1 ranges of --raw-image end beyond their file"* ]]
	ctl -q decode --raw-pt="$pt" --raw-image="$image:1:100@0"
	[ -z "$err" ]
}

@test "decode writes JSON to a pipe and a file, and a summary to a terminal" {
	decoder 0:0
	ctl decode --raw-pt="$pt"
	[[ $output == '{"id": "fake"'* ]]
	ctl decode --raw-pt="$pt" --json=off
	[[ $output == "Report    fake"* ]]
	ctl decode --raw-pt="$pt" -o "$dir/out"
	[ -z "$output" ]
	[[ $(cat "$dir/out") == '{"id": "fake"'* ]]
}

@test "decode's failures leave no output file" {
	decoder -74:0 # EBADMSG
	ctl decode --raw-pt="$pt" -o "$dir/out"
	fails 1 "not a ptsnap bundle, or a truncated or damaged one"
	[ "$(ls "$dir" | grep -c '^out')" -eq 0 ]
	decoder -28:0 # ENOSPC
	ctl decode --raw-pt="$pt" -o "$dir/out"
	fails 1 "no space left"
	decoder -93:0 # EPROTONOSUPPORT
	ctl decode --raw-pt="$pt" -o "$dir/out"
	fails 1 "newer version of ptsnap"
}

@test "a killed decode leaves no temporary file" {
	python3 -c 'import os, sys; os.open(sys.argv[1], os.O_TMPFILE | os.O_WRONLY)' "$dir" ||
		skip "no python3, or a file system that has no files without a name"
	printf '#!/bin/sh\necho $$ >"%s/pid"\nexec sleep 60\n' "$dir" >"$dir/worker"
	chmod +x "$dir/worker"
	bundle plain
	mkdir "$dir/to"
	"$ctl" decode --worker="$dir/worker" -o "$dir/to/out" "$dir/bundle" 3>&- &
	server=$!
	for _ in $(seq 200); do
		[ ! -s "$dir/pid" ] || break
		sleep 0.05
	done
	kill -TERM "$server"
	wait "$server" || true
	kill "$(cat "$dir/pid")"
	[ -z "$(ls -A "$dir/to")" ]
}

@test "decode with more errors than --max-errors" {
	decoder 0:5
	ctl decode --raw-pt="$pt" -o "$dir/out"
	[ "$status" -eq 0 ]
	ctl decode --raw-pt="$pt" --max-errors=5 -o "$dir/out"
	[ "$status" -eq 0 ]
	rm "$dir/out"
	ctl decode --raw-pt="$pt" --max-errors=4 -o "$dir/out"
	fails 8 "5 errors, --max-errors allows 4"
	[ -s "$dir/out" ]
}

@test "a file that is no report is named, and what a report lacks is said" {
	echo '{}' >"$dir/other.json"
	echo '{"schemaVersion": "1.0"}' >"$dir/old.json"
	echo '{"schemaVersion": "2.0"' >"$dir/cut.json"
	for verb in info functions timeline "diff $dir/other.json"; do
		# shellcheck disable=SC2086
		ctl $verb "$dir/other.json"
		fails 1 "other.json: JSON, but no report"
	done
	ctl info "$dir/old.json"
	fails 1 "old.json: the report has version 1.0"
	ctl gaps "$dir/cut.json"
	fails 1 "cut.json: not valid JSON"
	echo '{"schemaVersion": "2.0"}' >"$dir/report.json"
	for verb in calls branches insns "view -o $dir/page" decode; do
		# shellcheck disable=SC2086
		ctl $verb "$dir/report.json"
		fails 1 "report.json: a saved report has no trace"
	done
}
