#!/usr/bin/env bats
# ptsnapctl check --trace with the emulated source: the branches of a known program come out of rings,
# snapshot and decoder unchanged, a program with other branches is found, and nothing is left behind.

setup() {
	bats_require_minimum_version 1.5.0
	CTL=$PTSNAP_BUILDDIR/ctl/ptsnapctl
	WALK=$PTSNAP_BUILDDIR/ctl/ptsnap-walk
	# The path of a socket has at most 107 bytes.
	DIR=$(mktemp -d /tmp/ptsnap-bats-XXXXXX)
	export TMPDIR=$DIR/tmp
	mkdir "$TMPDIR"
	unset LISTEN_FDS LISTEN_PID NOTIFY_SOCKET JOURNAL_STREAM
}

teardown() {
	rm -rf "$DIR"
}

needs_emulator() {
	command -v qemu-x86_64 >/dev/null || skip "no qemu-x86_64"
}

# A copy of ptsnap-walk under another name, to tell its processes from those of other tests.
copy_walk() {
	cp "$WALK" "$DIR/$1"
}

nobody_runs() {
	! grep -qsF "$DIR/$1" /proc/[0-9]*/cmdline
}

nothing_is_left() {
	[ -z "$(ls -A "$TMPDIR")" ]
}

# patch FILE ADDRESS OLD NEW: replaces one byte of the near text.
patch() {
	local offset=$(($2 - 0x10001000 + 0x1000))

	[ "$(od -An -tx1 -j $offset -N 1 "$1" | tr -d ' ')" = "$3" ]
	printf "\\x$4" | dd of="$1" bs=1 seek=$offset conv=notrunc status=none
}

@test "all branches of two walks on two CPUs are equal" {
	needs_emulator
	copy_walk walk-equal
	run -0 timeout 120 "$CTL" check --trace --source=emulated --json=short --walk="$DIR/walk-equal"
	nothing_is_left
	nobody_runs walk-equal
	python3 - "$output" <<-'END'
	import json, sys
	r = json.loads(sys.argv[1])
	assert r["equal"] is True, r
	assert r["result"].startswith("equal: "), r
	assert len(r["cpus"]) == 2, r
	for cpu in r["cpus"]:
	    assert cpu["verdict"] == "equal" and cpu["branches"] > 10000, cpu
	    assert cpu["rounds"] > 10 and cpu["differences"] == 0, cpu
	    assert cpu["firstDifference"] is None and cpu["mbPerSecond"] > 0, cpu
	    assert cpu["psbMeanBytes"] <= cpu["psbMaxBytes"], cpu
	    assert cpu["darkNSec"] > 0 and cpu["copyNSec"] > 0, cpu
	assert r["configuration"]["source"] == "emulated", r
	assert r["clock"]["meanIntervalNSec"] > 0, r
	END
}

@test "the page ends with the result, and fits" {
	needs_emulator
	run -0 timeout 120 "$CTL" check --trace --source=emulated
	[[ ${lines[-1]} == "equal: "*" branches on 2 CPUs" ]]
	for word in Host Kernel Source Clock Errata Skew Gaps; do
		[[ $output == *$'\n'"$word"* ]]
	done
	[ "${#lines[@]}" -le 40 ]
}

# The fourth conditional branch tests another bit than the model: bt $34 becomes bt $35.
@test "a program with other branches gives DIFFERENT and exit code 1" {
	needs_emulator
	copy_walk walk-other
	patch "$DIR/walk-other" 0x10001164 22 23
	run -1 timeout 120 "$CTL" check --trace --source=emulated --walk="$DIR/walk-other"
	[[ ${lines[-1]} == "DIFFERENT: "*" differences on "* ]]
	[[ $output == *"expected "*"got "*"packet at 0x"* ]]
	nothing_is_left
	nobody_runs walk-other
}

@test "an interrupted check leaves nothing behind" {
	needs_emulator
	copy_walk walk-cut
	"$CTL" check --trace --source=emulated --for=60s --walk="$DIR/walk-cut" >"$DIR/out" 2>&1 3>&- &
	pid=$!
	for _ in $(seq 300); do
		nobody_runs walk-cut || break
		sleep 0.1
	done
	sleep 1
	kill -TERM $pid
	status=0
	wait $pid || status=$?
	[ $status -eq 143 ]
	nothing_is_left
	nobody_runs walk-cut
}

@test "a time-out gives exit code 124 and leaves nothing behind" {
	needs_emulator
	copy_walk walk-late
	run -124 timeout 120 "$CTL" check --trace --source=emulated --for=60s --timeout=3s \
		--walk="$DIR/walk-late"
	[[ $output == *"not done in time"* ]]
	nothing_is_left
	nobody_runs walk-late
}

@test "a recorder that cannot start gives one message and the exit code for not tracing" {
	printf '#!/bin/sh\necho "ptsnapd: no machine today" >&2\nexit 6\n' >"$DIR/ptsnapd"
	chmod +x "$DIR/ptsnapd"
	run -6 timeout 60 "$CTL" check --trace --source=emulated --ptsnapd="$DIR/ptsnapd"
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == *"no machine today"* ]]
	nothing_is_left
}

@test "--source=intel_pt without a recorder gives exit code 5" {
	run -5 timeout 60 "$CTL" --socket="$DIR/none" check --trace --source=intel_pt
	[ "${#lines[@]}" -eq 1 ]
	nothing_is_left
}

@test "a recorder with another source gives exit code 6" {
	needs_emulator
	"$PTSNAP_BUILDDIR/daemon/ptsnapd" --source=emulated --socket="$DIR/s" --state-dir="$DIR/state" \
		--aux-size=1M -- sleep 60 >"$DIR/log" 2>&1 3>&- &
	pid=$!
	for _ in $(seq 200); do
		"$CTL" --socket="$DIR/s" status >/dev/null 2>&1 && break
		sleep 0.1
	done
	run timeout 60 "$CTL" --socket="$DIR/s" check --trace --source=intel_pt
	kill -TERM $pid
	wait $pid || true
	[ "$status" -eq 6 ]
	[[ $output == *"source is emulated, not intel_pt"* ]]
	nothing_is_left
}

@test "a missing ptsnap-walk gives one message and exit code 1" {
	run -1 timeout 60 "$CTL" check --trace --source=emulated --walk="$DIR/none"
	[ "${#lines[@]}" -eq 1 ]
	[[ $output == *"$DIR/none: cannot be run"* ]]
}
