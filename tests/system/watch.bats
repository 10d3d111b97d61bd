#!/usr/bin/env bats
# Watching the recorder: monitor, metrics, and the status of the recorder itself.

setup() {
	bats_require_minimum_version 1.5.0
	command -v qemu-x86_64 >/dev/null || skip "no qemu-x86_64"
	PTSNAPD=$PTSNAP_BUILDDIR/daemon/ptsnapd
	CTL=$PTSNAP_BUILDDIR/ctl/ptsnapctl
	DIR=$(mktemp -d /tmp/ptsnap-bats-XXXXXX)
	SOCKET=$DIR/s
	unset LISTEN_FDS LISTEN_PID NOTIFY_SOCKET JOURNAL_STREAM
	PID=
}

teardown() {
	[ -z "$PID" ] || { kill -TERM "$PID" 2>/dev/null; wait "$PID" 2>/dev/null || true; }
	rm -rf "$DIR"
}

# eventually COMMAND...: repeats COMMAND until it succeeds, for 30 s at most.
eventually() {
	local n=0
	until "$@"; do
		n=$((n + 1))
		[ $n -lt 300 ] || { cat "$DIR/log" >&2; return 1; }
		sleep 0.1
	done
}

ctl() {
	"$CTL" --socket="$SOCKET" "$@"
}

answers() {
	ctl status >/dev/null 2>&1
}

start() {
	"$PTSNAPD" --config= --source=emulated --socket="$SOCKET" --state-dir="$DIR/state" --aux-size=1M \
		"$@" -- sh -c 'while :; do ls >/dev/null; done' 2>"$DIR/log" 3>&- &
	PID=$!
	eventually answers
}

@test "monitor prints the log, as text and JSON" {
	start
	ctl monitor >"$DIR/text" 2>&1 3>&- &
	local text=$!
	ctl monitor --json=short >"$DIR/json" 3>&- &
	local json=$!
	sleep 0.5
	ctl snapshot --no-wait --reason=why
	eventually grep -q "snapshot .* done" "$DIR/text"
	eventually grep -q "done" "$DIR/json"
	grep -q "^20.* snapshot .* begun (control: why)$" "$DIR/text"
	# Each message has its MESSAGE_ID.
	[ "$(jq -r .messageId <"$DIR/json" | sort -u | wc -l)" -eq 2 ]
	[ "$(jq -r 'select(.message | test("done")) | .bytes' <"$DIR/json")" -gt 1000 ]
	[ "$(jq -r 'select(.message | test("done")) | .durationUSec' <"$DIR/json")" -gt 100 ]
	kill -TERM "$PID"
	wait "$PID" || true
	PID=
	# monitor ends when the recorder ends.
	wait "$text" && false
	wait "$json" && false
	true
}

@test "monitor gets all lines of a burst, and the number of lines that it missed" {
	command -v python3 >/dev/null || skip "no python3"
	mkdir "$DIR/t"
	start --triggers="$DIR/t"
	{ echo "[Trigger]"; for i in $(seq 500); do echo "Unknown$i=x"; done; } >"$DIR/t/a.conf"
	cat >"$DIR/monitor.py" <<-'CALLS'
		import json, socket, sys

		def call(method, **rest):
		    s = socket.socket(socket.AF_UNIX)
		    s.settimeout(20)
		    s.connect(sys.argv[1])
		    s.sendall(json.dumps({"method": "io.ptsnap.recorder." + method, **rest}).encode() + b"\0")
		    return s

		def answers(s, n):
		    data = b""
		    while data.count(b"\0") < n:
		        data += s.recv(1 << 20) or sys.exit("it hung up")
		    return [json.loads(one)["parameters"] for one in data.split(b"\0")[:n]]

		def monitor():
		    s = call("Monitor", more=True)
		    answers(call("Status"), 1)
		    return s

		first = monitor()
		answers(call("Reload"), 1)
		lines = answers(first, 20)
		if [l["missed"] for l in lines] != [0] * 20 or "Unknown20 " not in lines[19]["event"]["message"]:
		    sys.exit("%r" % lines[:3])
		for i in range(5):
		    answers(call("Reload"), 1)
		first.close()
		answers(call("Status"), 1)
		answers(call("Status"), 1)
		second = monitor()
		answers(call("Reload"), 1)
		if answers(second, 1)[0]["missed"] != 0:
		    sys.exit("what another one missed")
	CALLS
	run -0 python3 "$DIR/monitor.py" "$SOCKET"
}

@test "monitor takes no operand, and a call without \`more' is refused" {
	start
	run ctl monitor now
	[ "$status" -eq 2 ]
	run python3 - "$SOCKET" <<-'EOF'
		import socket, sys
		s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
		s.send(b'{"method":"io.ptsnap.recorder.Monitor"}\0')
		print(s.recv(4096).decode())
	EOF
	[[ $output == *ExpectedMore* ]]
}

@test "the metrics file is valid for Prometheus, complete and current" {
	start --metrics-file="$DIR/pt.prom"
	eventually test -s "$DIR/pt.prom"
	ctl snapshot --label=team=db --label='what="x\y"' --unit=a@b.service >/dev/null
	eventually grep -q 'ptsnap_snapshots_total{result="done"} 1' "$DIR/pt.prom"
	grep -q '^ptsnap_snapshot_timestamp_seconds{id="[^"]*",state="done",trigger="control",unit="a@b.service",label_team="db",label_what="\\"x\\\\y\\""} [0-9.]*$' "$DIR/pt.prom"
	[ "$(stat -c %a "$DIR/pt.prom")" = 644 ]
	[ ! -e "$DIR/pt.prom.tmp" ]
	# Every family has its HELP and TYPE before it, once; every line is a comment or a sample.
	run python3 - "$DIR/pt.prom" <<-'EOF'
		import re, sys
		name, seen = None, set()
		for line in open(sys.argv[1]):
		    m = re.fullmatch(r"# (HELP|TYPE) (ptsnap_[a-z_]+) (.+)\n", line)
		    if m and m[1] == "HELP":
		        assert m[2] not in seen, line
		        name = m[2]
		        seen.add(name)
		    elif m:
		        assert m[2] == name and m[3] in ("counter", "gauge"), line
		        assert (m[3] == "counter") == name.endswith("_total"), line
		    else:
		        label = r'[a-z_A-Z0-9]+="(\\.|[^"\\\n])*"'
		        assert re.fullmatch(name + r"(\{" + label + "(," + label + r")*\})? [0-9.]+\n", line), line
		assert len(seen) > 20, seen
	EOF
	[ "$status" -eq 0 ] || { echo "$output"; false; }
	if command -v promtool >/dev/null; then promtool check metrics <"$DIR/pt.prom"; fi
}

@test "a metrics file that cannot be written is reported once" {
	start --metrics-file="$DIR/none/pt.prom"
	eventually grep -q "MetricsFile=" "$DIR/log"
	[ "$(grep -c "MetricsFile=" "$DIR/log")" -eq 1 ]
	# The recorder does not write through a link, and does not remove files of others.
	ln -s "$DIR/victim" "$DIR/pt.prom.tmp"
	kill -TERM "$PID"
	wait "$PID" || true
	start --metrics-file="$DIR/pt.prom"
	eventually test -s "$DIR/pt.prom"
	[ ! -e "$DIR/victim" ]
	[ -L "$DIR/pt.prom.tmp" ]
}

@test "status shows what the recorder costs" {
	start
	ctl snapshot >/dev/null
	run ctl status --json=short
	[ "$(jq .self.cpuUSec <<<"$output")" -gt 0 ]
	[ "$(jq .self.rssBytes <<<"$output")" -gt 1000000 ]
	[ "$(jq .self.lastDarkNSec <<<"$output")" -gt 1000 ]
	run ctl status
	[[ $output == *"Itself"*"CPU"* ]]
}

@test "list shows the unit and the labels" {
	start
	ctl snapshot --no-wait --unit=nginx.service --label=b=2 --label=a=1 --reason=slow
	run ctl list
	[[ $output == *"nginx.service a=1 b=2 slow"* ]]
}
