# Functions of the guest's test scripts, which source this file. The current directory is the folder of
# the input archive.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
FAKE=/sys/kernel/debug/fake_pt
SOCKET=/run/ptsnap/io.ptsnap.recorder
STATE=/run/ptsnap-state
LOG=$PWD/out/ptsnapd.log
n_tests=0

tap() { printf '%s\n' "$*" >/dev/ttyS1; }
up() { cut -d' ' -f1 /proc/uptime; }
note() { tap "# $(up) $*"; }

# NAME COMMAND...: one test case; prints the output of COMMAND if it fails.
check() {
	local name=$1
	shift
	n_tests=$((n_tests + 1))
	if "$@" >check.log 2>&1; then
		tap "ok $n_tests - $name"
	else
		tap "not ok $n_tests - $name"
		sed 's/^/# /' check.log | tail -n 20 >/dev/ttyS1
	fi
}

# COMMAND...: succeeds if COMMAND fails.
fails() { ! "$@"; }
is() { [ "$1" = "$2" ] || { echo "is '$1', should be '$2'"; return 1; }; }
has() { case $1 in *"$2"*) ;; *) echo "no '$2' in: $1"; return 1 ;; esac; }

# SECONDS COMMAND...: repeats COMMAND until it succeeds.
within() {
	local end
	end=$(up)
	end=$((${end%.*} + $1))
	shift
	until "$@" >within.log 2>&1; do
		[ "$(cut -d. -f1 /proc/uptime)" -lt $end ] || { cat within.log; return 1; }
		sleep 0.2
	done
}

# CPU KEY: prints a value of the fake PMU's state.
pmu() { sed -n "s/^$2=//p" $FAKE/cpu$1/state; }
load() { insmod ./fake_intel_pt.ko "$@"; }
unload() { rmmod fake_intel_pt; }

# Starts the recorder as a service of systemd. PROPERTIES: properties of the unit, separated by ";".
start() {
	local property
	systemctl -q is-active ptsnapd && stop
	rm -rf ${STATE:?}/*
	set -- "$PWD/ptsnapd" --source=intel_pt --state-dir=$STATE --max-use=200M \
		--worker="$PWD/ptsnap-decode" "$@"
	IFS=';'
	for property in $PROPERTIES; do
		set -- -p "$property" "$@"
	done
	unset IFS
	systemd-run -q --collect --unit=ptsnapd -p Type=notify -p NotifyAccess=main \
		-p "StandardError=append:$LOG" -p LimitCORE=0 -p TimeoutStartSec=60 \
		-E ASAN_OPTIONS=detect_leaks=0 "$@" || { tail -n 3 "$LOG"; return 1; }
}
stop() { systemctl stop ptsnapd; }
said() { grep -qE "$1" "$LOG" || { echo "the recorder did not say '$1'"; tail -n 3 "$LOG"; return 1; }; }

ctl() { ASAN_OPTIONS=detect_leaks=0 ./ptsnapctl "$@"; }
# JQ-EXPRESSION: prints a part of the recorder's status.
status() { ctl --json=short status | jq -r "$1"; }
# CPU STATE...: the CPU has one of these states.
cpu_is() {
	local cpu=$1 state
	shift
	state=$(status ".cpus[] | select(.cpu == $cpu).state")
	case " $* " in
	*" $state "*) ;;
	*) echo "CPU $cpu is $state, should be $*"; return 1 ;;
	esac
}
why() { status ".cpus[] | select(.cpu == $1).why"; }

# Sets BUNDLE and REPORT to the files of a new snapshot.
snapshot() {
	SNAPSHOT=$(ctl -q snapshot --no-decode "$@") || return 1
	BUNDLE=$STATE/$SNAPSHOT.ptsnap
}
snapshot_report() {
	REPORT=$PWD/out/report.json
	ctl -q snapshot -o "$REPORT" "$@"
}

# CPU BYTES: feeds bytes, counted in FED_cpu. BASE_cpu is the position at which the ring began.
new_ring() { # CPU
	eval "BASE_$1=\${FED_$1:-0}"
}
feed() {
	eval "local from=\${FED_$1:-0}"
	./feeder numbers "$1" "$from" "$2" || return 1
	eval "FED_$1=$((from + $2))"
}
# CPU: the CPU's trace in the newest snapshot equals the fed bytes.
exact() {
	local end
	eval "local base=\${BASE_$1:-0} fed=\${FED_$1:-0}"
	end=$(./feeder check "$BUNDLE" "$1" "$base") || { echo "$end"; return 1; }
	is "$end" "$fed"
}
both_exact() { exact 0 && exact 1; }
# SIZE: the last stop of each CPU wrote an AUX record (perf_event_open(2), PERF_RECORD_AUX) with the
# trace's end, the ring's size, and PERF_AUX_FLAG_OVERWRITE.
aux_records() {
	local cpu line
	for cpu in 0 1; do
		eval "local fed=$((FED_$cpu - BASE_$cpu))"
		line=$(./feeder aux "$BUNDLE" | grep "^$cpu " | tail -n 1)
		is "$line" "$cpu $((fed % $1)) $1 0x2" || return 1
	done
}

# JQ-EXPRESSION: prints a part of the report about the walk's process ($pid).
of_pid() { jq -c ".threads[] | select(.pid == $pid) | $1" "$REPORT"; }
# Prints all turns of the newest report's snapshot, as JSON: the report may lack older ones.
turns() {
	PTSNAP_DECODE=$PWD/ptsnap-decode ctl -q turns --json=short "$(jq -r .id "$REPORT")"
}
# Compares the TSC with the sideband's clock: the packets' times lie within the process's turns.
in_turn() {
	turns >out/turns.json || return 1
	jq -e --slurpfile turns out/turns.json "\$turns[0] as \$turns | .threads[] | select(.pid == $pid) | .lastBranches |
		length > 0 and all(.atNSec as \$at | \$turns | any(
			.pid == $pid and .cpu == 1 and .atNSec <= \$at and \$at <= .untilNSec))" \
		"$REPORT" >/dev/null || { of_pid '[.lastBranches[0], .lastBranches[-1]]'; return 1; }
}
