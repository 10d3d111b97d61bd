#!/usr/bin/env bats
# ptsnapd as a whole: it starts, refuses to start, serves, survives its clients and its decoder, and
# ends.

load recorder

setup() {
	recorder_setup
	HOSTILE=$PTSNAP_SRCDIR/tests/system/hostile_client.py
	EMULATOR=
}

teardown() {
	[ -z "$EMULATOR" ] || kill -TERM "$EMULATOR" 2>/dev/null || true
	# Whoever waits at this FIFO ends.
	[ ! -p "$DIR/end" ] || : 1<>"$DIR/end"
	recorder_teardown
}

ended() {
	! kill -0 "$PID" 2>/dev/null
}

# Prints the number of snapshots in state $1.
count() {
	"$CTL" --socket="$SOCKET" list --json=short | grep -c "\"state\": *\"$1\"" || true
}

lines() {
	printf '%s\n' "$1" | wc -l
}

@test "an unknown option gives one message that lists the valid ones, and exit code 2" {
	run -2 "$PTSNAPD" --nonsense
	[ "$(lines "$output")" -eq 1 ]
	[[ $output == "ptsnapd: unknown option --nonsense; valid: --source "*" --state-dir "* ]]
}

@test "an unknown value gives one message that lists the valid ones, and exit code 2" {
	run -2 "$PTSNAPD" --source=magic
	[ "$output" = "ptsnapd: --source=magic is not valid; valid: auto, intel_pt, emulated" ]
}

@test "unknown trace terms give one message and exit code 2" {
	needs_emulator
	run -2 "$PTSNAPD" --source=emulated --socket="$SOCKET" --state-dir="$STATE" --pt=nonsense \
		--exit-with-command -- true
	[ "$(lines "$output")" -eq 1 ]
	[[ $output == *nonsense* && $output == *mtc_period* ]]
}

@test "tracing the kernel with the emulated source gives one message and exit code 2" {
	local trace
	for trace in kernel both; do
		run -2 "$PTSNAPD" --source=emulated --socket="$SOCKET" --state-dir="$STATE" \
			--trace=$trace --exit-with-command -- true
		[ "$output" = "ptsnapd: the emulated source has no kernel to trace: use --trace=user" ]
	done
}

@test "a missing command gives one message and exit code 127" {
	run -127 "$PTSNAPD" --source=emulated --socket="$SOCKET" --state-dir="$STATE" -- no-such-command
	[ "$output" = "ptsnapd: no-such-command: command not found" ]
	[ ! -e "$SOCKET" ]
}

@test "a command that is not executable gives one message and exit code 126" {
	echo text >"$DIR/text"
	run -126 "$PTSNAPD" --source=emulated --socket="$SOCKET" --state-dir="$STATE" -- "$DIR/text"
	[ "$output" = "ptsnapd: $DIR/text: not executable" ]
}

@test "a missing qemu gives one message and exit code 6" {
	run -6 "$PTSNAPD" --source=emulated --emu-qemu=/no/such/qemu --socket="$SOCKET" \
		--state-dir="$STATE" --exit-with-command -- true
	[ "$(lines "$output")" -eq 1 ]
	[[ $output == *qemu* ]]
	[ ! -e "$SOCKET" ]
}

@test "a missing PMU gives one message that says what to do, and exit code 6" {
	[ ! -e /sys/bus/event_source/devices/intel_pt ] || skip "this host has the PMU"
	for args in "" "--source=intel_pt" "-- true"; do
		# shellcheck disable=SC2086
		run -6 timeout 20 "$PTSNAPD" --require-pt --socket="$SOCKET" --state-dir="$STATE" $args
		[ "$(lines "$output")" -eq 1 ]
		[[ $output == *"no Intel PT"* && $output == *"--source=emulated -- COMMAND"* ]]
		[ ! -e "$SOCKET" ]
	done
}

@test "a missing decoder gives one message before the command runs, and exit code 1" {
	run -1 "$PTSNAPD" --source=emulated --socket="$SOCKET" --state-dir="$STATE" \
		--worker="$DIR/absent" --exit-with-command -- touch "$DIR/ran"
	[ "$output" = "ptsnapd: $DIR/absent: cannot be run: No such file or directory; --worker=PATH names ptsnap-decode" ]
	[ ! -e "$DIR/ran" ]
}

@test "a truth directory that cannot be made gives one message before the command runs, and exit code 1" {
	run -1 "$PTSNAPD" --source=emulated --socket="$SOCKET" --state-dir="$STATE" \
		--emu-truth="$DIR/absent/truth" --exit-with-command -- touch "$DIR/ran"
	[ "$output" = "ptsnapd: --emu-truth=$DIR/absent/truth: cannot be written: No such file or directory" ]
	touch "$DIR/file"
	run -1 "$PTSNAPD" --source=emulated --socket="$SOCKET" --state-dir="$STATE" \
		--emu-truth="$DIR/file" --exit-with-command -- touch "$DIR/ran"
	[ "$output" = "ptsnapd: --emu-truth=$DIR/file: cannot be written: Not a directory" ]
	[ ! -e "$DIR/ran" ]
}

@test "a truth directory with files of an earlier run gives one message and exit code 1, and the files stay" {
	mkdir "$DIR/truth"
	echo precious >"$DIR/truth/1.1"
	run -1 "$PTSNAPD" --source=emulated --socket="$SOCKET" --state-dir="$STATE" \
		--emu-truth="$DIR/truth" --exit-with-command -- touch "$DIR/ran"
	[ "$(lines "$output")" -eq 1 ]
	[[ $output == "ptsnapd: --emu-truth=$DIR/truth: holds files of an earlier run"* ]]
	[ "$(cat "$DIR/truth/1.1")" = precious ]
	[ ! -e "$DIR/ran" ]
}

# refused OPTIONS... WORDS: expects one line that contains WORDS, and exit code 2.
refused() {
	local words=${*: -1}
	run -2 "$PTSNAPD" --source=emulated "${@:1:$#-1}" -- true
	[ "$(lines "$output")" -eq 1 ]
	[[ $output == "ptsnapd: --emu-"*"$words"* ]]
}

@test "an impossible machine gives one message that says what is possible, and exit code 2" {
	refused --emu-cpus=0 "valid: a number from 1 to 64"
	refused --emu-cpus=65 "valid: a number from 1 to 64"
	refused --emu-quantum=10 "from 1000 to 1000000000"
	refused --emu-tasks=1 "valid: a number from 16 to 4096"
	refused --emu-overflow=1 "valid: 0 (none) or a size"
	refused --emu-lose=x "valid: 0 (none) or a number"
	refused --emu-offline=1:5s:1s "FROM before TO"
	refused --emu-offline=2:1s:2s "there are only 2 (--emu-cpus)"
	refused --emu-cpus=1 --emu-offline=0:1s: "at least one of 1"
	refused --emu-offline=1:1:3 --emu-offline=1:2:4 "while it is away already"
}

@test "--help and --version go to stdout" {
	run -0 --separate-stderr "$PTSNAPD" --help
	[[ $output == *--exit-with-command* ]]
	[ -z "$stderr" ]
	run -0 "$PTSNAPD" --version
	[[ $output == "ptsnapd "* ]]
}

@test "a socket in use stops the second recorder before its command runs" {
	start -- sleep 60
	run -1 "$PTSNAPD" --source=emulated --socket="$SOCKET" --state-dir="$DIR/other" \
		--exit-with-command -- touch "$DIR/ran"
	[ "$output" = "ptsnapd: $SOCKET is in use by another recorder" ]
	[ ! -e "$DIR/ran" ]
	answers
}

@test "without standard files, nothing else gets their numbers" {
	needs_emulator
	"$PTSNAPD" --config= --source=emulated --socket="$SOCKET" --state-dir="$STATE" --aux-size=1M \
		-- sleep 60 <&- >&- 2>&- 3>&- &
	PID=$!
	eventually answers
	for fd in 0 1 2; do
		[ "$(readlink "/proc/$PID/fd/$fd")" = /dev/null ]
	done
	stop
}

@test "a state directory in use stops the second recorder" {
	start -- sleep 60
	run -1 "$PTSNAPD" --source=emulated --socket="$DIR/s2" --state-dir="$STATE" \
		--exit-with-command -- true
	[ "$output" = "ptsnapd: $STATE is in use by another recorder" ]
}

@test "a socket without a listener is replaced, another file is not" {
	python3 -c 'import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$SOCKET"
	start -- sleep 60
	stop
	[ ! -e "$SOCKET" ]
	echo precious >"$SOCKET"
	run -1 "$PTSNAPD" --source=emulated --socket="$SOCKET" --state-dir="$STATE" \
		--exit-with-command -- true
	[ "$output" = "ptsnapd: $SOCKET exists and is not a socket" ]
	[ "$(cat "$SOCKET")" = precious ]
}

@test "missing directories are made, and the socket is for owner and group" {
	SOCKET=$DIR/a/b/s
	STATE=$DIR/c/d
	start -- sleep 60
	[ "$(stat -c %a "$SOCKET")" = 660 ]
	[ "$(stat -c %a "$STATE")" = 750 ]
}

@test "the command's input, output and exit status are passed on" {
	needs_emulator
	run -7 --separate-stderr bash -c "echo in | '$PTSNAPD' --source=emulated \
		--exit-with-command --socket='$SOCKET' --state-dir='$STATE' -- \
		sh -c 'read x; echo got \$x; exit 7'"
	[ "$output" = "got in" ]
	[[ $stderr == *"ptsnapd: "* ]]
	[ ! -e "$SOCKET" ]
}

@test "a command killed by a signal gives exit code 128 plus the signal" {
	needs_emulator
	run -143 --separate-stderr "$PTSNAPD" --source=emulated --exit-with-command \
		--socket="$SOCKET" --state-dir="$STATE" -- sh -c 'kill -TERM $$'
	[[ $stderr == *"the command was killed by signal 15 (Terminated)"* ]]
	grep -q '"reason": *"the command was killed by signal 15 (Terminated)"' "$STATE"/*.json
}

@test "--exit-with-command takes a last snapshot" {
	needs_emulator
	"$PTSNAPD" --source=emulated --exit-with-command --socket="$SOCKET" --state-dir="$STATE" -- \
		ls / >/dev/null 3>&-
	ls "$STATE"/*.ptsnap "$STATE"/*.json
	grep -q '"trigger": *"exit"' "$STATE"/*.entry
	grep -q '"state": *"done"' "$STATE"/*.entry
}

@test "the command starts with the original signal dispositions" {
	needs_emulator
	"$PTSNAPD" --source=emulated --exit-with-command --socket="$SOCKET" --state-dir="$STATE" -- \
		grep -E '^Sig(Blk|Ign)' /proc/self/status >"$DIR/traced" 3>&-
	grep -E '^SigBlk' /proc/self/status | cmp - <(grep SigBlk "$DIR/traced")
}

@test "a snapshot while the command runs, and after it has ended" {
	start -- sleep 2
	"$CTL" --socket="$SOCKET" snapshot --reason=first >/dev/null
	"$CTL" --socket="$SOCKET" status --json=short | grep -q '"processes":1,"mappings":[1-9]'
	eventually grep -q "command ended with status 0" "$DIR/log"
	"$CTL" --socket="$SOCKET" status | grep -q ended
	"$CTL" --socket="$SOCKET" snapshot --reason=second >/dev/null
	[ "$(count done)" -eq 2 ]
	"$CTL" --socket="$SOCKET" fetch latest --format=bundle -o "$DIR/bundle"
	tar xOf "$DIR/bundle" manifest.json | grep -q '"reason": *"second"'
}

@test "processes that COMMAND started go on after its end, and are recorded" {
	start -- sh -c 'sleep 60 >/dev/null 2>&1 & echo child $! >&2'
	eventually grep -q "command ended with status 0" "$DIR/log"
	"$CTL" --socket="$SOCKET" status --json=short | grep -q '"state":"tracing"'
	"$CTL" --socket="$SOCKET" snapshot >/dev/null
	kill "$(sed -n 's/^child //p' "$DIR/log")"
	all_ended() { "$CTL" --socket="$SOCKET" status --json=short | grep -q '"state":"ended"'; }
	eventually all_ended
}

@test "SIGUSR2 takes a snapshot and names its sender" {
	start -- sleep 60
	kill -USR2 "$PID"
	one_done() { [ "$(count done)" -eq 1 ]; }
	eventually one_done
	"$CTL" --socket="$SOCKET" list --json=short | grep -q '"trigger": *"signal"'
	"$CTL" --socket="$SOCKET" list --json=short | grep -q "\"uid\": *$(id -u)"
}

@test "SIGTERM ends the recorder cleanly, together with its command" {
	start -- sleep 60
	child=$("$CTL" --socket="$SOCKET" status --json=short |
		python3 -c 'import json,sys; print(json.load(sys.stdin)["command"]["pid"])')
	kill -0 "$child"
	stop
	[ ! -e "$SOCKET" ]
	! kill -0 "$child" 2>/dev/null
}

@test "SIGTERM also ends a command that ignores it" {
	start -- sh -c 'trap "" TERM; echo ready >&2; while :; do sleep 1; done'
	eventually grep -q ready "$DIR/log"
	stop
	grep -q "did not end in time" "$DIR/log"
}

@test "hostile messages close only their own connection" {
	start -- sleep 60
	run -0 python3 "$HOSTILE" "$SOCKET"
	answers
	"$CTL" --socket="$SOCKET" snapshot >/dev/null
}

@test "a client that goes away in mid-snapshot does not cancel it" {
	cat >"$DIR/slow" <<-SLOW
		#!/bin/sh
		sleep 1
		exec $PTSNAP_BUILDDIR/decoder/worker/ptsnap-decode
	SLOW
	chmod +x "$DIR/slow"
	start --worker="$DIR/slow" -- sleep 60
	python3 "$HOSTILE" "$SOCKET" leave-snapshot
	one_done() { [ "$(count done)" -eq 1 ]; }
	eventually one_done
}

# killed N: makes a decoder whose first N processes are killed.
killed() {
	cat >"$DIR/killed" <<-KILLED
		#!/bin/sh
		n=\$(cat "$DIR/n" 2>/dev/null || echo 0)
		[ "\$n" -lt $1 ] || exec $PTSNAP_BUILDDIR/decoder/worker/ptsnap-decode
		echo \$((n + 1)) >"$DIR/n"
		kill -KILL \$\$
	KILLED
	chmod +x "$DIR/killed"
}

@test "after a decoder was killed, the snapshot is decoded again without names" {
	killed 1
	start --worker="$DIR/killed" -- sleep 60
	"$CTL" --socket="$SOCKET" snapshot -o "$DIR/report"
	[ "$(jq '.namesLeftOut' "$DIR/report")" = true ]
	[ "$(jq '[.functions[] | select(.name | contains("+0x") | not)] | length' "$DIR/report")" -eq 0 ]
	grep -q "decoded without names: with them the decoder was killed by signal 9" "$STATE"/*.entry
	"$CTL" --socket="$SOCKET" snapshot -o "$DIR/report"
	[ "$(jq '.namesLeftOut' "$DIR/report")" = null ]
}

# systemd-socket-activate takes the place of systemd, and starts decoders.
@test "decoders that a socket starts make the same reports" {
	command -v systemd-socket-activate >/dev/null || skip "no systemd-socket-activate"
	systemd-socket-activate --seqpacket --accept --listen="$DIR/decode" \
		"$PTSNAP_BUILDDIR/decoder/worker/ptsnap-decode" 2>"$DIR/activate" 3>&- &
	local helper=$!
	eventually [ -S "$DIR/decode" ]
	start --decoder-socket="$DIR/decode" -- sleep 60
	has_code() {
		"$CTL" --socket="$SOCKET" snapshot -o "$DIR/report"
		[ "$(jq '.totals.instructions > 1000' "$DIR/report")" = true ]
	}
	eventually has_code
	grep -q ptsnap-decode "$DIR/activate"
	run ! grep -q "of the recorder's own" "$STATE"/*.entry
	kill "$helper"
	wait "$helper" 2>/dev/null || true
	# Nobody listens any more: the recorder starts its own decoder.
	has_code
	grep -q "decoded by a program that the recorder started" "$STATE"/*.entry
}

@test "what a failed decoder writes to standard error is in the log, cleaned and bounded" {
	cat >"$DIR/talks" <<-'TALKS'
		#!/bin/sh
		printf '<0>ptsnapd: \033[2Jassertion failed\n' >&2
		head -c 10000000 /dev/zero | tr '\0' x >&2
		kill -ABRT $$
	TALKS
	chmod +x "$DIR/talks"
	start --worker="$DIR/talks" -- sleep 60
	run -1 "$CTL" --socket="$SOCKET" snapshot
	eventually grep -q "bytes more, which are left out" "$DIR/log"
	grep -q "^ptsnapd: the decoder says: <0>ptsnapd: ?\[2Jassertion failed$" "$DIR/log"
	[ "$(wc -c <"$DIR/log")" -lt 8192 ]
	[ "$(grep -c "the decoder says" "$DIR/log")" -le 33 ]
}

@test "a killed decoder fails its snapshot, the bundle stays, and the next snapshot works" {
	killed 2
	start --worker="$DIR/killed" -- sleep 60
	run -1 "$CTL" --socket="$SOCKET" snapshot
	[[ $output == *"killed by signal 9"* ]]
	[ "$(count failed)" -eq 1 ]
	run ! "$CTL" --socket="$SOCKET" fetch latest -o "$DIR/report"
	"$CTL" --socket="$SOCKET" fetch latest --format=bundle -o "$DIR/bundle"
	tar tf "$DIR/bundle" | grep -q manifest.json
	"$CTL" --socket="$SOCKET" snapshot >/dev/null
	[ "$(count done)" -eq 1 ]
}

@test "a decoder that hangs is stopped after --decode-timeout" {
	printf '#!/bin/sh\nexec sleep 60\n' >"$DIR/hangs"
	chmod +x "$DIR/hangs"
	start --worker="$DIR/hangs" --decode-timeout=300ms -- sleep 60
	run -1 "$CTL" --socket="$SOCKET" snapshot
	[[ $output == *"not done after 225 ms"* ]]
}

@test "SIGTERM during decoding keeps the bundle" {
	printf '#!/bin/sh\nexec sleep 60\n' >"$DIR/hangs"
	chmod +x "$DIR/hangs"
	start --worker="$DIR/hangs" -- sleep 60
	kill -USR2 "$PID"
	stored() { ls "$STATE"/*.ptsnap >/dev/null 2>&1; }
	eventually stored
	stop
	stored
	grep -q '"state": *"failed"' "$STATE"/*.entry
}

@test "on a full disk the last snapshots stay in memory and can be fetched" {
	[ "$(id -u)" -eq 0 ] || skip "needs root for a small tmpfs"
	mkdir "$STATE"
	mount -t tmpfs -o size=64k tmpfs "$STATE" 2>/dev/null || skip "no tmpfs here"
	start -- sleep 60
	"$CTL" --socket="$SOCKET" snapshot --no-decode
	"$CTL" --socket="$SOCKET" list --json=short | grep -q "kept in memory only"
	"$CTL" --socket="$SOCKET" fetch latest --format=bundle -o "$DIR/bundle"
	tar tf "$DIR/bundle" | grep -q manifest.json
	[ -z "$(ls -A "$STATE" | grep tmp)" ]
	"$CTL" --socket="$SOCKET" snapshot --no-decode
	"$CTL" --socket="$SOCKET" snapshot --no-decode
	[ "$(count done)" -eq 2 ]
	answers
}

@test "a snapshot with a deadline says which part is decoded, and its bundle can be decoded whole" {
	start -- sh -c 'while :; do /bin/true; done'
	sleep 1
	"$CTL" --socket="$SOCKET" snapshot --deadline=0 -o "$DIR/report"
	grep -q '"complete":false' "$DIR/report"
	# The bundle also has the code for the part that there was no time for.
	"$CTL" --socket="$SOCKET" fetch latest --format=bundle -o "$DIR/bundle"
	"$CTL" decode --json=short "$DIR/bundle" -o "$DIR/whole"
	run ! grep -q '"image-[a-z]*":' "$DIR/whole"
	run ! grep -q '"decoded"' "$DIR/whole"
	for time in 0 50ms 1s; do
		"$CTL" --socket="$SOCKET" snapshot --deadline=$time -o "$DIR/report"
		grep -q '"decoded":{"deadlineNSec":' "$DIR/report"
	done
	"$CTL" --socket="$SOCKET" snapshot -o "$DIR/report"
	run ! grep -q '"decoded"' "$DIR/report"
}

@test "old snapshots are there after a restart" {
	start -- sleep 60
	"$CTL" --socket="$SOCKET" snapshot --reason='before the restart' >/dev/null
	stop
	start -- sleep 60
	"$CTL" --socket="$SOCKET" list --json=short | grep -q 'before the restart'
	"$CTL" --socket="$SOCKET" fetch latest -o "$DIR/report"
	[ -s "$DIR/report" ]
}

@test "rings of the smallest size" {
	start --aux-size=4K --data-size=4K -- sleep 60
	"$CTL" --socket="$SOCKET" snapshot --no-decode >/dev/null
	[ "$(count done)" -eq 1 ]
}

@test "systemd's socket is used when it is handed over, and is not removed" {
	command -v systemd-socket-activate >/dev/null || skip "no systemd-socket-activate"
	needs_emulator
	systemd-socket-activate --fdname=varlink -l "$SOCKET" \
		"$PTSNAPD" --source=emulated --socket="$DIR/unused" --state-dir="$STATE" -- sleep 60 \
		2>"$DIR/log" 3>&- &
	PID=$!
	eventually answers
	[ ! -e "$DIR/unused" ]
	stop
	[ -S "$SOCKET" ]
}

@test "the service manager is told when the recorder is ready and when it ends" {
	needs_emulator
	python3 - "$DIR/notify" >"$DIR/told" 3>&- <<-'NOTIFY' &
		import socket, sys
		s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		s.bind(sys.argv[1])
		s.settimeout(30)
		while True:
		    m = s.recv(4096).decode()
		    print(m, flush=True)
		    if "STOPPING" in m:
		        break
	NOTIFY
	listener=$!
	bound() { [ -S "$DIR/notify" ]; }
	eventually bound
	NOTIFY_SOCKET=$DIR/notify start -- sleep 60
	eventually grep -q READY=1 "$DIR/told"
	stop
	wait "$listener"
	grep -q STOPPING=1 "$DIR/told"
}

has_pt() {
	[ -e /sys/bus/event_source/devices/intel_pt ]
}

@test "--check says why this host cannot be traced, and gives exit code 6" {
	has_pt && skip "this host has Intel PT"
	run -6 "$PTSNAPD" --config= --check --state-dir="$DIR"
	[[ ${lines[0]} == "failure  pmu: "*"; fix: "* ]]
	grep -q GenuineIntel /proc/cpuinfo || [[ ${lines[0]} == *"not an Intel CPU"* ]]
	for line in "${lines[@]}"; do
		[[ $line =~ ^(ok\ {7}|note\ {5}|warning\ {2}|failure\ {2})[a-z-]+:\  ]]
	done
	run -6 "$PTSNAPD" --config= --check --json --state-dir="$DIR"
	printf '%s' "$output" | python3 -c 'import json, sys
for f in json.load(sys.stdin):
    assert sorted(f) == ["fix", "level", "text", "what"]
    assert f["level"] in ("ok", "note", "warning", "failure")'
}

@test "--check with a command needs no Intel PT" {
	needs_emulator
	run -0 "$PTSNAPD" --config= --check --source=emulated --state-dir="$DIR" -- true
	[[ $output == *"ok       emulator: "* ]]
	run -6 "$PTSNAPD" --config= --check --source=emulated --emu-qemu=/nowhere \
		--state-dir="$DIR" -- true
	[[ $output == *"failure  emulator: "* ]]
}

@test "check asks the recorder for what it knows, many at a time" {
	start -- sleep 60
	pids=
	for i in 1 2 3 4; do
		"$CTL" --socket="$SOCKET" check >"$DIR/check.$i" 3>&- & pids="$pids $!"
	done
	for pid in $pids; do wait "$pid"; done
	for i in 1 2 3 4; do
		grep -q "^ok       recorder: 2 of 2 CPUs are traced (emulated)" "$DIR/check.$i"
	done
	stop
}

@test "a running check does not keep the recorder from ending" {
	start -- sleep 60
	"$CTL" --socket="$SOCKET" check >/dev/null 2>&1 3>&- & client=$!
	stop
	wait "$client" || true
}

@test "the emulated source cannot yield Intel PT" {
	start -- sleep 60
	run -1 "$CTL" --socket="$SOCKET" yield --for=1s
	[[ $output == *"cannot do this: this source takes no Intel PT"* ]]
	"$CTL" --socket="$SOCKET" status --attrs | grep -q "^Terms      pt,mtc,tsc"
	stop
}

@test "other users may ask for the status, but not for a check or for Intel PT" {
	[ "$(id -u)" -eq 0 ] || skip "not root"
	command -v setpriv >/dev/null || skip "no setpriv"
	start -- sleep 60
	chmod 0755 "$DIR"
	chmod 0666 "$SOCKET"
	cp "$CTL" "$DIR/ctl"
	stranger() { setpriv --reuid=65534 --regid=65534 --clear-groups "$DIR/ctl" --socket="$SOCKET" "$@"; }
	stranger status -q
	run -4 stranger check
	run -4 stranger yield
	run -4 stranger yield --end
	stop
}

@test "without Intel PT and without a command the recorder records the sideband, and says so" {
	has_pt && skip "this host has Intel PT"
	"$PTSNAPD" --check --json --config= --state-dir="$DIR" |
		grep -q '"perf events can be opened' || skip "no perf events"
	"$PTSNAPD" --config= --socket="$SOCKET" --state-dir="$STATE" 2>"$DIR/log" 3>&- &
	PID=$!
	eventually answers
	run -0 "$CTL" --socket="$SOCKET" status
	[[ $output == *"State      degraded"* ]]
	[[ $output == *"no-pt"* ]]
	run -6 "$CTL" --socket="$SOCKET" check
	[[ $output == *"failure  recorder: no CPU is traced"* ]]
	run -1 "$CTL" --socket="$SOCKET" yield
	[[ $output == *"this host has no Intel PT"* ]]
	[ "$(grep -c no-pt "$DIR/log")" -eq 1 ]
	stop
}

@test "mapped files leave descriptors for clients and snapshots" {
	"$PTSNAPD" --check --json --config= --state-dir="$DIR" |
		grep -q '"perf events can be opened' || skip "no perf events"
	mkdir "$DIR/maps"
	python3 -c 'import mmap, sys, time
all = []
for i in range(300):
    with open(sys.argv[1] + "/%u" % i, "w+b") as f:
        f.write(b"\xc3" * 4096)
        f.flush()
        all.append(mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
open(sys.argv[1] + "/ready", "w").close()
time.sleep(60)' "$DIR/maps" 3>&- &
	MAPPER=$!
	eventually test -e "$DIR/maps/ready"
	(ulimit -n $((2 * $(nproc --all) + 206)) && exec "$PTSNAPD" --config= --source=intel_pt \
		--socket="$SOCKET" --state-dir="$STATE") 2>"$DIR/log" 3>&- &
	PID=$!
	eventually timeout 5 "$CTL" --socket="$SOCKET" status -q
	run -0 timeout 60 "$CTL" --socket="$SOCKET" snapshot -q --last=1ms
	kill "$MAPPER"
	! grep -q "Too many open files" "$DIR/log"
	stop
}

@test "--check finds what would keep the recorder from starting" {
	run -6 "$PTSNAPD" --config= --check --source=emulated --state-dir=/dev/null/x -- true
	[[ $output == *"failure  state-dir: /dev/null/x cannot be used as state directory: Not a directory"* ]]
	run -6 "$PTSNAPD" --config= --check --source=intel_pt --cpus=4000 --state-dir="$DIR"
	[[ $output == *"failure  cpus: CPUs=4000: this host has no CPU 4000, only "* ]]
}

# The machine is in a process of its own, beside the recorder.
start_apart() { # OPTIONS of the recorder
	"$PTSNAPD" --config= --source=emulated --emu-socket="$DIR/e" --socket="$SOCKET" \
		--state-dir="$STATE" "$@" 2>>"$DIR/log" 3>&- &
	PID=$!
}

traced_threads() {
	"$CTL" --socket="$SOCKET" snapshot | grep -q "executed for"
}

@test "the machine of another process is traced like the recorder's own" {
	needs_emulator
	"$PTSNAPD" --config= --emulate="$DIR/e" --aux-size=1M -- \
		sh -c 'while [ ! -e "$0" ]; do /bin/true; done; exit 3' "$DIR/end" 2>"$DIR/emulator" 3>&- &
	EMULATOR=$!
	eventually test -S "$DIR/e"
	start_apart
	eventually answers
	# The rings have one reader.
	run -6 "$PTSNAPD" --config= --source=emulated --emu-socket="$DIR/e" --socket="$DIR/s2" \
		--state-dir="$DIR/state2"
	[ "$output" = "ptsnapd: $DIR/e: the emulator there has another recorder" ]
	run -0 "$CTL" --socket="$SOCKET" snapshot
	[[ $output == *"Process "*" sh -c while"* ]]
	run -0 "$CTL" --socket="$SOCKET" fetch latest --json=off
	[[ $output == *"CPUs stopped within "* ]]
	[[ $output != *"stop-timeout"* ]]
	# The recorder dies; the next one finds the processes that run.
	kill -KILL "$PID"
	wait "$PID" || true
	start_apart --exit-with-command
	eventually answers
	eventually traced_threads
	touch "$DIR/end"
	ended_with=0
	wait "$PID" || ended_with=$?
	PID=
	[ "$ended_with" -eq 3 ]
	ended_with=0
	wait "$EMULATOR" || ended_with=$?
	[ "$ended_with" -eq 3 ]
	grep -q "a recorder has the rings" "$DIR/emulator"
	[ "$(grep -c "^ptsnapd: the command ended with status 3" "$DIR/log")" -eq 1 ]
	[ ! -e "$DIR/e" ]
	[ "$(ls "$STATE"/*.ptsnap | wc -l)" -ge 3 ]
}

# Between fork(2) and execve(2) a child has what its parent has.
@test "a machine takes the next recorder while a child of a killed recorder has the channel" {
	needs_emulator
	"$PTSNAPD" --config= --emulate="$DIR/e" --aux-size=1M -- sleep 60 2>"$DIR/emulator" 3>&- &
	EMULATOR=$!
	eventually test -S "$DIR/e"
	mkfifo "$DIR/end"
	python3 - "$DIR" <<-'KILLED' || true
		import os, signal, socket, sys
		s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		s.connect(sys.argv[1] + "/e")
		s.recv(1)
		if os.fork() == 0:
		    open(sys.argv[1] + "/end").read()
		    os._exit(0)
		os.kill(os.getpid(), signal.SIGKILL)
	KILLED
	start_apart
	eventually answers
	: >"$DIR/end"
	stop
}

# A thread that has died has a virtual CPU, which nobody takes away any more.
@test "the command of a killed recorder goes on to its own end" {
	cat >"$DIR/two.py" <<-'TWO'
		import os, signal, sys, time
		end = sys.argv[1]
		spins = os.fork()
		while spins == 0:
		    pass
		open(end + "/began", "w").close()
		while not os.path.exists(end + "/go"):
		    time.sleep(0.01)
		os.kill(spins, signal.SIGKILL)
		os.waitpid(spins, 0)
		os.rename(end + "/go", end + "/done")
	TWO
	start --emu-cpus=1 -- python3 "$DIR/two.py" "$DIR"
	eventually test -e "$DIR/began"
	kill -KILL "$PID"
	wait "$PID" || true
	PID=
	touch "$DIR/go"
	eventually test -e "$DIR/done"
}

@test "a recorder survives the death of its machine" {
	needs_emulator
	"$PTSNAPD" --config= --emulate="$DIR/e" --aux-size=1M -- sleep 60 2>"$DIR/emulator" 3>&- &
	EMULATOR=$!
	eventually test -S "$DIR/e"
	start_apart
	eventually answers
	guest=$(pgrep -P "$EMULATOR")
	kill -KILL "$EMULATOR"
	eventually grep -q "the emulator has gone" "$DIR/log"
	run -0 "$CTL" --socket="$SOCKET" snapshot -q
	kill -KILL "$guest"
	stop
}
