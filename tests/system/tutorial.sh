#!/bin/sh
# The program of ptsnap-tutorial(7), and the steps of that page.
set -eu
dir=${PTSNAP_BUILDDIR:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! command -v qemu-x86_64 >/dev/null || [ ! -e "$dir/capture/emu/ptsnap-emupmu.so" ]; then
	echo "no emulated PMU"
	exit 77
fi
fail() {
	echo "$1" >&2
	cat "$work/log" "$work/out" >&2
	exit 1
}
ctl() {
	"$dir/ctl/ptsnapctl" "$@" >"$work/out" 2>&1 || fail "ptsnapctl $*: exit status $?"
}
"$dir/daemon/ptsnapd" --config= --source=emulated --emu-cpus=2 --socket="$work/socket" --state-dir="$work/state" \
	--exit-with-command -- "$dir/docs/ptsnap-example" --slow=600000 --requests=1050 >"$work/log" 2>&1 ||
	fail "ptsnapd: exit status $?"
grep -q '^1050 requests, ' "$work/log" || fail "the server did not finish"
# As the page starts the recorder: when the server has ended, the recorder still serves the snapshot.
"$dir/daemon/ptsnapd" --config= --source=emulated --emu-cpus=2 --socket="$work/socket" --state-dir="$work/served" \
	-- "$dir/docs/ptsnap-example" --slow=600000 --requests=1050 >"$work/log" 2>&1 &
recorder=$!
trap 'kill $recorder 2>/dev/null; wait; rm -rf "$work"' EXIT
for text in '^1050 requests, ' ': snapshot .* done$'; do
	tries=0
	until grep -q "$text" "$work/log"; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || fail "the log never had: $text"
		sleep 0.1
	done
	[ "$text" != '^1050 requests, ' ] || kill -USR2 $recorder
done
for step in "info" "calls --function=handle --longer-than=1us" "timeline" "timeline --picture"; do
	# shellcheck disable=SC2086
	ctl --socket="$work/socket" $step latest
done
kill $recorder
wait $recorder || true
trap 'rm -rf "$work"' EXIT
bundle=$(find "$work/state" -name '*.ptsnap' | head -n 1)
ctl info --no-pager "$bundle"
grep -q 'What stands out' "$work/out" || fail "info has no suspects"
ctl calls --function=rebuild_table --depth=1 "$bundle"
grep -q " rebuild_table" "$work/out" || fail "no call of rebuild_table()"
ctl calls --function=handle --depth=1 "$bundle"
grep -q ' handle' "$work/out" || fail "no call of handle()"
ctl view "$bundle" -o "$work/page.html"
[ -s "$work/page.html" ] || fail "no page"
for bad in --requests=x --slow= --slow=-1 --watchdog=0 --nonsense; do
	status=0
	"$dir/docs/ptsnap-example" "$bad" >/dev/null 2>&1 || status=$?
	[ "$status" = 2 ] || fail "ptsnap-example $bad: exit status $status"
done
