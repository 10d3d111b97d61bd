#!/usr/bin/env bats
# Triggers as a whole: files, limits, labels, signals, units that fail; and reloading the configuration
# while the rings go on.

load recorder

setup() {
	recorder_setup
	mkdir "$DIR/t"
	BUS=
	SYSTEMD=
}

teardown() {
	for p in $SYSTEMD $BUS; do kill -TERM "$p" 2>/dev/null || true; done
	recorder_teardown
}

# trigger NAME LINE...: writes the file of a trigger.
trigger() {
	local name=$1
	shift
	printf '%s\n' "[Trigger]" "$@" >"$DIR/t/$name.conf"
}

ctl() {
	"$CTL" --socket="$SOCKET" "$@"
}

# field FILTER: prints jq's output for the newest snapshot in the list.
field() {
	ctl list --json=short | tail -n 1 | jq -c "$1"
}

# counter TRIGGER NAME: prints a counter of a trigger.
counter() {
	ctl status --json=short | jq -c ".triggers[] | select(.name == \"$1\") | .$2"
}

counts() { # TRIGGER NAME N
	[ "$(counter "$1" "$2")" = "$3" ]
}

needs_jq() {
	command -v jq >/dev/null || skip "no jq"
}

# Prints the address of a ring in the recorder's memory.
rings() {
	grep -E 'memfd|ptsnap' "/proc/$PID/maps" | grep -E ' rw-s | r--s ' | cut -d' ' -f1 | sort | head -n 4
}

@test "--test-config shows the triggers, with the lines of those that come from files" {
	trigger web On=unit "Units=web-*.service" LastBytes=2M Burst=nonsense
	trigger signal Decode=no
	run -1 --separate-stderr "$PTSNAPD" --config= --triggers="$DIR/t" --test-config
	[[ $output == *"# Trigger web ($DIR/t/web.conf)"* ]]
	[[ $output == *"#   Units=web-*.service  # line 3"* ]]
	[[ $output == *"# Trigger signal ($DIR/t/signal.conf)"* ]]
	[[ $output == *"# Trigger control (built in)"* ]]
	[ "${stderr_lines[0]}" = "ptsnapd: $DIR/t/web.conf:5: Burst=nonsense is not valid, ignored; valid: a number up to 1000000; 0: no limit" ]
	[ "${#stderr_lines[@]}" -eq 1 ]
	needs_jq
	run -1 --separate-stderr "$PTSNAPD" --config= --triggers="$DIR/t" --test-config=json
	[ "$(jq -c '.triggers | map(.name)' <<<"$output")" = '["control","signal","unit","exit","web"]' ]
	[ "$(jq -c '.triggers[] | select(.name == "web") | .settings[] | select(.key == "LastBytes") |
		[.text, .origin, .line]' <<<"$output")" = '["2M","file",4]' ]
}

@test "--test-config names users that the host does not have" {
	trigger mine On=signal "SignalUsers=0 root no-such-user"
	run -1 --separate-stderr "$PTSNAPD" --config= --triggers="$DIR/t" --test-config
	[ "$stderr" = "ptsnapd: SignalUsers=no-such-user: this host has no such user" ]
	trigger mine On=signal "SignalUsers=a,b"
	run -1 --separate-stderr "$PTSNAPD" --config= --triggers="$DIR/t" --test-config
	[[ $stderr == *"SignalUsers=a,b is not valid, ignored; valid: names or numbers of users; up to 64"* ]]
}

@test "--config=FILE alone reads no triggers of the system" {
	run -0 "$PTSNAPD" --config= --test-config
	[ "$(grep -c '^# Trigger ' <<<"$output")" -eq 4 ]
	run -0 "$PTSNAPD" --config= --triggers= --test-config
	[ "$(grep -c '^# Trigger ' <<<"$output")" -eq 4 ]
}

@test "a trigger's name, unit and labels are in list, bundle and report" {
	needs_jq
	trigger web On=unit "Units=web-*.service" Label=team=web "Reason=web is down"
	start --triggers="$DIR/t" -- sleep 60
	ctl snapshot --trigger=unit --unit=web-1.service --label=release=7 -o "$DIR/report"
	[ "$(field '[.trigger, .name, .unit, .reason, .labels]')" = \
		'["unit","web","web-1.service","web is down",{"release":"7","team":"web"}]' ]
	ctl fetch latest --format=bundle -o "$DIR/bundle"
	tar xOf "$DIR/bundle" manifest.json | jq -c '[.trigger.unit, .labels]' >"$DIR/manifest"
	grep -qF '["web-1.service",[{"key":"release","value":"7"},{"key":"team","value":"web"}]]' "$DIR/manifest"
	[ "$(jq -c '[.schemaVersion, .trigger.kind, .trigger.unit, .trigger.labels]' "$DIR/report")" = \
		'["2.0","unit","web-1.service",{"release":"7","team":"web"}]' ]
	# The built-in trigger takes snapshots for other units.
	ctl snapshot --no-decode --trigger=unit --unit=db.service >/dev/null
	[ "$(field '[.name, .reason, .labels]')" = '["unit",null,null]' ]
	run -2 ctl snapshot --trigger=web --unit=db.service
	[[ $output == *"no trigger web, or the trigger is disabled or not for this unit"* ]]
	run -2 ctl snapshot --trigger=signal
	run -2 ctl snapshot --unit='a b'
	[[ $output == *"value of unit"* ]]
	run -2 ctl snapshot --label=1x=2
	[[ $output == *"give KEY=VALUE"* ]]
}

@test "a trigger beyond its limit gives exit code 7, a message, and a counter" {
	needs_jq
	trigger two Burst=2 Interval=1h Decode=no
	start --triggers="$DIR/t" -- sleep 60
	ctl snapshot --trigger=two --no-decode >/dev/null
	ctl snapshot --trigger=two --no-decode >/dev/null
	run -7 ctl snapshot --trigger=two
	[[ $output == *"the recorder takes the next snapshot in "*" ms" ]]
	run -7 ctl snapshot --trigger=two
	counts two fired 2
	counts two limited 2
	[ "$(ctl status --json=short | jq .snapshots.limited)" -eq 2 ]
	# The refusal is logged once; other triggers still fire.
	[ "$(grep -c 'trigger two has fired too often' "$DIR/log")" -eq 1 ]
	ctl snapshot --no-decode >/dev/null
}

@test "MinFill= refuses a snapshot of too short a trace, and says why" {
	trigger late MinFill=1h
	start --triggers="$DIR/t" -- sleep 60
	run -6 ctl snapshot --trigger=late
	[[ $output == *"takes no snapshot: tracing began "*" ms ago, and trigger late wants 3600000 ms of it (MinFill=)" ]]
	ctl snapshot --no-decode >/dev/null
}

@test "a disabled trigger does not exist for clients" {
	trigger control Enabled=no
	trigger signal Enabled=no
	start --triggers="$DIR/t" -- sleep 60
	run -2 ctl snapshot
	[[ $output == *"no trigger control"* ]]
	kill -USR2 "$PID"
	ctl status >/dev/null
	[ -z "$(ctl list --json=short)" ]
}

@test "SIGUSR2 names its sender's unit, and is limited" {
	needs_jq
	trigger signal Decode=no Burst=1 Interval=1h Label=by=signal
	start --triggers="$DIR/t" -- sleep 60
	kill -USR2 "$PID"
	eventually counts signal fired 1
	one() { [ "$(field .state)" = '"done"' ]; }
	eventually one
	[ "$(field '[.trigger, .name, .labels.by, .uid]')" = "[\"signal\",\"SIGUSR2\",\"signal\",$(id -u)]" ]
	unit=$(grep -oE '[^/]*\.(service|scope)' /proc/self/cgroup | tail -n 1) || true
	[ -z "$unit" ] || [ "$(field .senderUnit)" = "\"$unit\"" ]
	kill -USR2 "$PID"
	eventually counts signal limited 1
}

@test "--from-monitor-env takes what systemd says about a failed unit" {
	needs_jq
	start -- sleep 60
	MONITOR_UNIT=web.service MONITOR_SERVICE_RESULT=core-dump MONITOR_EXIT_CODE=dumped \
		MONITOR_EXIT_STATUS=SEGV MONITOR_INVOCATION_ID=0123456789abcdef0123456789abcdef \
		ctl snapshot --no-wait --from-monitor-env --label=result=mine >/dev/null
	[ "$(field '[.trigger, .name, .unit, .reason]')" = \
		'["unit","unit","web.service","web.service failed: core-dump, dumped SEGV"]' ]
	[ "$(field '.labels')" = \
		'{"exit_code":"dumped","exit_status":"SEGV","invocation":"0123456789abcdef0123456789abcdef","result":"mine"}' ]
	unset MONITOR_UNIT
	run -2 ctl snapshot --no-wait --from-monitor-env
	[[ $output == *'$MONITOR_UNIT is not set; systemd 251'* ]]
	run -0 --separate-stderr ctl snapshot --no-wait --from-monitor-env --trigger=unit --unit=web.service
	[[ $stderr == *'$MONITOR_UNIT is not set'* ]]
}

@test "SIGHUP reads configuration and triggers again, and the rings stay" {
	needs_jq
	printf '[Service]\nMaxSnapshots=9\n' >"$DIR/c"
	start --config="$DIR/c" --triggers="$DIR/t" -- sleep 60
	before=$(rings)
	[ -n "$before" ]
	pid=$(ctl status --json=short | jq .pid)
	run -2 ctl snapshot --trigger=late
	for _ in 1 2 3; do ctl snapshot --no-decode >/dev/null; done
	printf '[Service]\nMaxSnapshots=2\n[Rings]\nRingSize=2M\nTimelineMax=5M\n' >"$DIR/c"
	trigger late Burst=1 Interval=1h
	kill -HUP "$PID"
	logged() { grep -q "configuration read again" "$DIR/log"; }
	eventually logged
	grep -q "ptsnapd: $DIR/c:5: TimelineMax=5M takes effect after a restart (now: 64M)" "$DIR/log"
	# The command line wins over RingSize=, before and after the reload.
	! grep -q "RingSize=2M takes effect" "$DIR/log"
	[ "$(ctl list --json=short | wc -l)" -eq 2 ]
	[ "$(rings)" = "$before" ]
	[ "$(ctl status --json=short | jq .pid)" -eq "$pid" ]
	ctl snapshot --trigger=late --no-decode >/dev/null
	run -7 ctl snapshot --trigger=late
	# After another reload, the counters stay.
	kill -HUP "$PID"
	twice() { [ "$(grep -c "configuration read again" "$DIR/log")" -eq 2 ]; }
	eventually twice
	run -7 ctl snapshot --trigger=late
	counts late fired 1
}

@test "reload prints what is wrong, and a missing file changes nothing" {
	printf '[Service]\n' >"$DIR/c"
	start --config="$DIR/c" --triggers="$DIR/t" -- sleep 60
	run -0 ctl reload
	[ -z "$output" ]
	printf '[Service]\nMaxUse=much\n' >"$DIR/c"
	trigger odd Interval=never
	run -0 --separate-stderr ctl reload
	[[ ${stderr_lines[0]} == "ptsnapctl: $DIR/c:2: MaxUse=much is not valid, ignored; valid: "* ]]
	[[ ${stderr_lines[1]} == "ptsnapctl: $DIR/t/odd.conf:2: Interval=never is not valid"* ]]
	rm "$DIR/c"
	run -1 ctl reload
	[[ $output == "ptsnapctl: the recorder keeps its old configuration: "*"no such file" ]]
	ctl snapshot --no-decode >/dev/null
}

@test "reload does not disturb a snapshot that is being decoded" {
	cat >"$DIR/slow" <<-SLOW
		#!/bin/sh
		sleep 1
		exec $PTSNAP_BUILDDIR/decoder/worker/ptsnap-decode
	SLOW
	chmod +x "$DIR/slow"
	printf '[Service]\n' >"$DIR/c"
	start --worker="$DIR/slow" --config="$DIR/c" -- sleep 60
	ctl snapshot -o "$DIR/report" &
	client=$!
	decoding() { ctl list --json=short | grep -q decoding; }
	eventually decoding
	for _ in 1 2 3 4 5; do ctl reload; done
	wait $client
	[ -s "$DIR/report" ]
	ctl reload
	ctl snapshot >/dev/null
}

@test "the service manager is told about a reload" {
	command -v python3 >/dev/null || skip "no python3"
	python3 - "$DIR/notify" >"$DIR/told" 3>&- <<-'LISTEN' &
		import socket, sys
		s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		s.bind(sys.argv[1])
		while True:
		    print(s.recv(4096).decode().replace("\n", " "), flush=True)
	LISTEN
	BUS=$!
	listening() { [ -S "$DIR/notify" ]; }
	eventually listening
	export NOTIFY_SOCKET=$DIR/notify
	start -- sleep 60
	kill -HUP "$PID"
	told() { grep -A1 -E '^RELOADING=1 MONOTONIC_USEC=[0-9]+' "$DIR/told" | grep -q '^READY=1'; }
	eventually told
}

@test "failed units are noticed on the bus, once each, also after the bus was away" {
	needs_jq
	needs_emulator
	command -v dbus-daemon >/dev/null || skip "no dbus-daemon"
	trigger web On=unit "Units=web-*.service" Watch=yes Decode=no Label=from=bus
	export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$DIR/bus
	start --triggers="$DIR/t" -- sleep 60
	refused() { grep -q "units that fail cannot be watched: no systemd on a system bus" "$DIR/log"; }
	eventually refused
	dbus-daemon --session --nofork --address="unix:path=$DIR/bus" 2>/dev/null 3>&- &
	BUS=$!
	bus() { [ -S "$DIR/bus" ]; }
	eventually bus
	mkfifo "$DIR/in"
	"$PTSNAP_BUILDDIR/tests/support/fake_systemd" <"$DIR/in" >"$DIR/said" 3>&- &
	SYSTEMD=$!
	exec 9>"$DIR/in"
	subscribed() { grep -q subscribed "$DIR/said"; }
	eventually subscribed
	echo "db.service signal 11" >&9
	echo "web-1.service signal 11" >&9
	eventually counts web fired 1
	one() { [ "$(field .state)" = '"done"' ]; }
	eventually one
	[ "$(field '[.trigger, .name, .unit, .reason, .pid]')" = \
		'["unit","web","web-1.service","web-1.service failed: signal, killed by SIGSEGV",4711]' ]
	[ "$(field '.labels')" = '{"from":"bus","result":"signal"}' ]
	counts unit fired 0
	# Any client of the bus can send signals to the recorder alone.
	if command -v busctl >/dev/null; then
		busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" emit --destination="$(busctl \
			--address="$DBUS_SYSTEM_BUS_ADDRESS" list | awk '$3 == "ptsnapd" { print $1 }')" \
			/org/freedesktop/systemd1/unit/web_2d9_2eservice org.freedesktop.DBus.Properties \
			PropertiesChanged 'sa{sv}as' org.freedesktop.systemd1.Service 1 Result s signal 0
	fi
	echo "web-1.service core-dump 6" >&9
	eventually counts web fired 2
	[[ $(ctl list) != *web-9* ]]
	kill -TERM "$SYSTEMD" "$BUS"
	exec 9>&-
	ctl status >/dev/null
}

@test "a bus that does not answer does not keep the recorder from ending" {
	needs_emulator
	command -v python3 >/dev/null || skip "no python3"
	trigger web On=unit Watch=yes
	export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$DIR/bus
	python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("listens", flush=True)
time.sleep(1000)' "$DIR/bus" >"$DIR/said" 3>&- &
	BUS=$!
	listens() { grep -q listens "$DIR/said"; }
	eventually listens
	start --triggers="$DIR/t" -- sleep 60
	kill -TERM "$PID"
	ended() { ! kill -0 "$PID" 2>/dev/null; }
	eventually ended
	kill -TERM "$BUS"
}

@test "a recorder ends when its terminal closes" {
	needs_emulator
	command -v python3 >/dev/null || skip "no python3"
	cat >"$DIR/terminal.py" <<-'TTY'
		import os, pty, sys, time
		pid, fd = pty.fork()
		if pid == 0:
		    os.execv(sys.argv[2], sys.argv[2:])
		for _ in range(200):
		    if os.path.exists(sys.argv[1]):
		        break
		    time.sleep(0.1)
		time.sleep(0.5)
		os.close(fd)
		for _ in range(200):
		    done, status = os.waitpid(pid, os.WNOHANG)
		    if done:
		        sys.exit(os.waitstatus_to_exitcode(status))
		    time.sleep(0.1)
		os.kill(pid, 9)
		sys.exit("it did not end")
	TTY
	run -0 python3 "$DIR/terminal.py" "$SOCKET" "$PTSNAPD" --config= --source=emulated --socket="$SOCKET" \
		--state-dir="$STATE" --aux-size=1M -- sleep 60
	[ ! -e "$SOCKET" ]
}

@test "invalid parameters are named, and no snapshot is taken" {
	command -v python3 >/dev/null || skip "no python3"
	start -- sleep 60
	cat >"$DIR/call.py" <<-'CALL'
		import json, socket, sys
		bad = [("labels", v) for v in ([], "x", {"a": 1}, {"a": None}, {"1": "x"}, {"a": "x\n"}, {"a": "x\0y"},
		       {"a": "y" * 128}, {"k%d" % i: "" for i in range(9)})]
		bad += [("unit", v) for v in (7, "x" * 300, "a/b.service", "a.service\0", "nothing")]
		bad += [("trigger", v) for v in (7, "x" * 64, "unit\0x")]
		for name, value in bad:
		    s = socket.socket(socket.AF_UNIX)
		    s.connect(sys.argv[1])
		    call = {"method": "io.ptsnap.recorder.Snapshot", "parameters": {name: value}}
		    s.sendall(json.dumps(call).encode() + b"\0")
		    answer = b""
		    while not answer.endswith(b"\0"):
		        answer += s.recv(65536) or sys.exit("%s %r: no answer" % (name, value))
		    answer = json.loads(answer[:-1])
		    if answer.get("parameters") != {"parameter": name}:
		        sys.exit("%s %r: %r" % (name, value, answer))
	CALL
	run -0 python3 "$DIR/call.py" "$SOCKET"
	[ -z "$(ctl list --json=short)" ]
}
