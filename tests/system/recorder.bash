# Functions for tests that start and stop a recorder with the emulated source in a directory of its
# own.

recorder_setup() {
	bats_require_minimum_version 1.5.0
	PTSNAPD=$PTSNAP_BUILDDIR/daemon/ptsnapd
	CTL=$PTSNAP_BUILDDIR/ctl/ptsnapctl
	# The path of a socket has at most 107 bytes.
	DIR=$(mktemp -d /tmp/ptsnap-bats-XXXXXX)
	SOCKET=$DIR/s
	STATE=$DIR/state
	unset LISTEN_FDS LISTEN_PID NOTIFY_SOCKET JOURNAL_STREAM
	PID=
}

recorder_teardown() {
	[ -z "$PID" ] || { kill -TERM "$PID" 2>/dev/null; wait "$PID" 2>/dev/null || true; }
	if mountpoint -q "$STATE" 2>/dev/null; then umount "$STATE"; fi
	rm -rf "$DIR"
}

needs_emulator() {
	command -v qemu-x86_64 >/dev/null || skip "no qemu-x86_64"
}

# eventually COMMAND...: repeats COMMAND until it succeeds, for 20 s at most.
eventually() {
	local n=0
	until "$@"; do
		n=$((n + 1))
		[ $n -lt 200 ] || { cat "$DIR/log" >&2; return 1; }
		sleep 0.1
	done
}

answers() {
	"$CTL" --socket="$SOCKET" status >/dev/null 2>&1
}

# start [OPTIONS] -- COMMAND: starts a recorder in the background, with its log in $DIR/log.
start() {
	needs_emulator
	"$PTSNAPD" --config= --source=emulated --socket="$SOCKET" --state-dir="$STATE" --aux-size=1M "$@" \
		2>"$DIR/log" 3>&- &
	PID=$!
	eventually answers
}

stop() {
	kill -TERM "$PID"
	wait "$PID"
	PID=
}

# record [OPTIONS] -- COMMAND: runs a recorder that takes a snapshot when COMMAND ends.
record() {
	"$PTSNAPD" --config= --source=emulated --socket="$SOCKET" --state-dir="$STATE" --aux-size=1M \
		--exit-with-command "$@" >/dev/null 2>"$DIR/log"
}

# newest SUFFIX: prints the newest file with SUFFIX in the state directory.
newest() {
	ls "$STATE"/*."$1" | tail -n 1
}
