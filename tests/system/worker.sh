#!/bin/sh
# ptsnap-decode as the daemon starts it, sandbox included: reports of synthetic bundles against the
# schema; corrupt, truncated and foreign files give an error and not a crash; a full disk and a
# reader that is gone are said.
set -u

top=${PTSNAP_SRCDIR:-.}
build=${PTSNAP_BUILDDIR:-$(pwd)}
decode=${PTSNAP_DECODE:-$build/decoder/worker/ptsnap-decode}
make_bundle=${MAKE_BUNDLE:-$build/tests/support/make_bundle}
run_worker=${RUN_WORKER:-$build/tests/support/run_worker}
bundle_keep=${BUNDLE_KEEP:-$build/tests/oracle/bundle_keep}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
status=0
fail() {
	echo "FAILED: $*"
	status=1
}
# run VIEW BUNDLE OUTPUT [LIMIT [HASH [DEADLINE]]] -> $said
run() {
	said=$("$run_worker" "$decode" "$@")
}
ended_well() {
	case $said in
	"condition 0 signal 0 exit 0 error 0 "*) return 0 ;;
	*) return 1 ;;
	esac
}

kinds="plain tips long small cpus leaf many empty nopsb nosideband noimage overflow last halves turns degraded busy"
for kind in $kinds; do
	"$make_bundle" "$kind" "$dir/$kind.ptsnap" || fail "make_bundle $kind"
	for view in 0 1 2 3 4 5 6; do
		run $view "$dir/$kind.ptsnap" "$dir/$kind.$view"
		ended_well || fail "$kind view $view: $said"
	done
done
lines=$(wc -l <"$dir/plain.4")
[ "$lines" = 799 ] || fail "plain: $lines instructions"
cmp -s "$dir/plain.4" "$dir/tips.4" || fail "return compression changes the instructions"

# From its images asked for one by one, and from what was needed of them alone.
for kind in $kinds; do
	"$bundle_keep" "$decode" "$dir/$kind.ptsnap" >"$dir/keep" || fail "$kind: $(cat "$dir/keep")"
done

# Events that are no branches, one of each kind (tests/scripts/report.pts lists them).
run 0 "$top/tests/fuzz/corpus/worker/events" "$dir/events.0"
ended_well || fail "events: $said"
for list in ptwrites frequencies power interrupts aborts; do
	grep -q "\"$list\":\[{" "$dir/events.0" || fail "events: no $list"
done

# Deadlines: however little can be done, a report, which says what it is of. The long one, where the
# bundle is small, is long enough for all, and all is the same as without.
for kind in $kinds; do
	for deadline in 0 50000000 1000000000; do
		out=$dir/$kind-$deadline.0
		run 0 "$dir/$kind.ptsnap" "$out" 2097152 0 $deadline
		ended_well || fail "$kind in $deadline ns: $said"
		grep -q "\"decoded\":{\"deadlineNSec\":$deadline,\"complete\":" "$out" ||
			fail "$kind in $deadline ns: it does not say of what it is"
	done
	run 0 "$dir/$kind.ptsnap" "$dir/late" 2097152 0 1000000000000
	grep -q '"complete":true' "$dir/late" || fail "$kind: not all in a quarter of an hour"
	for report in "$dir/late" "$dir/$kind.0"; do
		sed 's/"decoded":{[^}]*},//; s/,"window":[^,]*,"olderFrames":[a-z]*//g' "$report" >"$report.same"
	done
	cmp -s "$dir/late.same" "$dir/$kind.0.same" || fail "$kind: a deadline that is not reached changes it"
done
grep -q '"complete":false' "$dir/halves-0.0" || fail "halves: all of it in no time"

# A small limit: shorter, still a report.
run 0 "$dir/many.ptsnap" "$dir/many.cut" 20000
ended_well || fail "limit: $said"
size=$(wc -c <"$dir/many.cut")
[ "$size" -le 20000 ] || fail "limit: $size bytes"
grep -q '"what":"processes"' "$dir/many.cut" || fail "limit: the cut is not said"
cp "$dir/many.cut" "$dir/manycut.0"

if python3 -c 'import jsonschema' 2>/dev/null; then
	python3 "$top/tests/system/worker_schema.py" "$top/docs/ptsnap-report-2.schema.json" \
		"$dir"/*.0 || fail "schema"
else
	echo "python3-jsonschema is not installed: reports are not validated"
fi

# Every kind of gap is in the schema and in the manual.
kinds=$(sed -n 's/^\t\[FAULT_[A-Z_]*\] = { "\([a-z-]*\)".*/\1/p' "$top/decoder/packet/fault.c")
[ "$(echo "$kinds" | wc -l)" -gt 30 ] || fail "kinds of gaps: $kinds"
for kind in $(echo "$kinds" | grep -vx none); do
	grep -q "\"$kind\"" "$top/docs/ptsnap-report-2.schema.json" || fail "no $kind in the schema"
	grep -q "\*$kind\*" "$top/docs/ptsnap-report.5.scd" || fail "no $kind in the manual"
done

# Options that make no sense are refused: no such view, a deadline for a list of branches.
for senseless in 7 "3 0"; do # VIEW [DEADLINE]
	set -- $senseless # two words
	run $1 "$dir/plain.ptsnap" "$dir/out" 2097152 0 ${2-}
	case $said in
	"condition 3 signal 0 exit 1 error -22 "*) ;; # EINVAL
	*) fail "view $senseless: $said" ;;
	esac
done

# Not a bundle, cut short, bytes turned: a result, never a signal.
bad() {
	run 0 "$1" "$dir/out"
	case $said in
	"condition 3 signal 0 exit 1 error -74 "*) ;; # EBADMSG
	*) fail "$1: $said" ;;
	esac
}
: >"$dir/nothing"
bad "$dir/nothing"
cp "$decode" "$dir/foreign"
bad "$dir/foreign"
total=$(wc -c <"$dir/plain.ptsnap")
for part in 1 3 5 7 9; do
	head -c $((total * part / 10)) "$dir/plain.ptsnap" >"$dir/truncated"
	bad "$dir/truncated"
done
i=0
while [ $i -lt 40 ]; do
	cp "$dir/leaf.ptsnap" "$dir/corrupt"
	printf '\377\202' | dd of="$dir/corrupt" bs=1 conv=notrunc status=none \
		seek=$((i * 7919 % ($(wc -c <"$dir/leaf.ptsnap") - 2)))
	run 0 "$dir/corrupt" "$dir/out"
	case $said in
	"condition 0 signal 0 exit 0 error 0 "* | "condition 3 signal 0 exit 1 error -74 "*) ;;
	*) fail "corrupt $i: $said" ;;
	esac
	i=$((i + 1))
done

if [ -w /dev/full ]; then
	run 4 "$dir/long.ptsnap" /dev/full
	case $said in
	"condition 3 signal 0 exit 1 error -28 "*) ;; # ENOSPC
	*) fail "full disk: $said" ;;
	esac
fi
# Threads change nothing; nor does it what of memory they may have.
"$make_bundle" huge "$dir/huge.ptsnap" || fail "make_bundle huge"
for more in threads=1 threads=2 threads=7 memory=268435456; do
	said=$("$run_worker" $more "$decode" 0 "$dir/huge.ptsnap" "$dir/huge.$more")
	ended_well || fail "$more: $said"
	cmp -s "$dir/huge.threads=1" "$dir/huge.$more" || fail "$more changes the report"
done

# Without symbols: a report that says so, and has no name.
said=$("$run_worker" no-symbols=1 "$decode" 0 "$dir/plain.ptsnap" "$dir/nameless.0")
ended_well || fail "without symbols: $said"
grep -q '"namesLeftOut":true' "$dir/nameless.0" || fail "without symbols: it does not say so"

# A decoder that somebody else starts for each connection: the same reports. It ends by itself when
# the channel is closed, in the midst of a decode.
if command -v systemd-socket-activate >/dev/null; then
	systemd-socket-activate --seqpacket --accept --listen="$dir/socket" "$decode" \
		2>"$dir/activate" &
	activate=$!
	i=0
	while [ ! -S "$dir/socket" ] && [ $i -lt 100 ]; do
		sleep 0.1
		i=$((i + 1))
	done
	for kind in plain long many cpus; do
		said=$("$run_worker" "socket=$dir/socket" /nonexistent 0 "$dir/$kind.ptsnap" "$dir/out")
		case $said in
		"condition 0 signal 0 exit -1 error 0 "*) ;;
		*) fail "$kind over a socket: $said" ;;
		esac
		cmp -s "$dir/$kind.0" "$dir/out" || fail "$kind over a socket: another report"
	done
	said=$("$run_worker" "socket=$dir/socket" threads=3 /nonexistent 0 "$dir/huge.ptsnap" "$dir/out")
	cmp -s "$dir/huge.threads=1" "$dir/out" || fail "threads over a socket: $said"
	# Nobody reads what this one writes.
	children=/proc/$activate/task/$activate/children
	mkfifo "$dir/fifo"
	sleep 1000 <"$dir/fifo" &
	reader=$!
	said=$("$run_worker" "socket=$dir/socket" timeout=300000 "$decode" 4 "$dir/long.ptsnap" \
		"$dir/fifo")
	case $said in
	"condition 2 signal 0 exit -1 error 0 "*) ;;
	*) fail "nobody reads: $said" ;;
	esac
	i=0
	while [ -n "$(cat "$children" 2>/dev/null)" ] && [ $i -lt 100 ]; do
		sleep 0.1
		i=$((i + 1))
	done
	[ $i -lt 100 ] || fail "a decoder outlives its channel"
	kill "$reader" "$activate"
	wait "$activate" 2>/dev/null
else
	echo "systemd-socket-activate is not installed: a decoder of a socket is not tested"
fi

"$decode" </dev/null >/dev/null 2>"$dir/usage" 3<&-
[ $? = 2 ] && grep -q "started by ptsnapd" "$dir/usage" || fail "started by hand"
exit $status
