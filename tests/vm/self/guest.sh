#!/bin/sh
# Runs in a guest that traces itself, as root: installs the recorder and starts its service, runs a
# workload, has a trigger take a snapshot, and copies the bundle to out/. The file "settings" has
# TRACE, AUX, TERMS, MODEL, FILTERS, TRIGGER and PERF, and the file "workload" what the guest does meanwhile.
. ./lib.sh
. ./install.sh
. ./settings
CONF=/etc/ptsnap/ptsnapd.conf
UNITS=/etc/systemd/system
stty -F /dev/ttyS1 raw 2>/dev/null
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
mkdir -p /var/lib/ptsnap
mount -t tmpfs -o size=1500M tmpfs /var/lib/ptsnap
ctl() { ASAN_OPTIONS=detect_leaks=0 ptsnapctl "$@"; }

# No decoder runs in the guest, whose work would be traced, too.
configure() {
	local unit
	mkdir -p /etc/ptsnap/triggers.d
	{
		printf '[Trace]\nSource=intel_pt\nRequirePT=yes\nTrace=%s\n' "$TRACE"
		[ -z "$TERMS" ] || printf 'Terms=%s\n' "$TERMS"
		printf '[Rings]\nRingSize=%s\nRingBudget=1G\nTimelineMax=1G\n[Service]\nMaxUse=1400M\n' "$AUX"
	} >$CONF
	for trigger in control signal unit; do
		printf '[Trigger]\nDecode=no\nReason=selftrace\n' >/etc/ptsnap/triggers.d/$trigger.conf
	done
	for unit in ptsnapd ptsnap-snapshot@; do
		mkdir -p "$UNITS/$unit.service.d"
		printf '[Service]\nEnvironment=ASAN_OPTIONS=detect_leaks=0\n' >"$UNITS/$unit.service.d/80-local.conf"
		be_patient $unit
	done
	# The unit whose failure is a trigger.
	printf '[Unit]\nOnFailure=ptsnap-snapshot@%%n.service\n[Service]\nType=oneshot\nExecStart=%s fail\n' \
		"$PWD/mark $PWD/out/event" >$UNITS/broken.service
	allow_kernel && systemctl daemon-reload
}
start_service() {
	systemctl start ptsnapd.service && is "$(status .state)" tracing ||
		{ journalctl -u ptsnapd --no-pager -n 10; return 1; }
}
# Writes the TSC of the event to out/event, a moment before the event.
trigger_event() {
	case $TRIGGER in
	client) ./mark out/event && ctl -q snapshot --no-decode >/dev/null ;;
	sigusr2) ./mark out/event "$(systemctl show -P MainPID ptsnapd)" ;;
	unit) fails systemctl start broken.service ;;
	esac
}
stored() {
	SNAPSHOT=$(ctl --json=short list | jq -r 'select(.state == "done" or .state == "failed").id' | tail -n 1)
	[ -n "$SNAPSHOT" ] || { ctl list; return 1; }
}
kind() { ctl --json=short list | jq -r .trigger | tail -n 1; }

note "kernel $(uname -r), $(nproc) CPUs"
chmod 755 . ./*
check "the emulator's trace unit is there" load "model=$MODEL"
dmesg | grep fake_intel_pt >out/module
check "and says so" grep -q "the emulator's trace unit" out/module
check "the recorder is installed" install_recorder
check "and configured" configure
check "the service starts, and traces" start_service
[ -z "$FILTERS" ] || check "address filters are set" ./setfilter "$(systemctl show -P MainPID ptsnapd)" $FILTERS
t0=$(up)
sh ./workload >out/workload.log 2>&1
echo $? >out/workload.status
note "the workload took from $t0 to $(up), status $(cat out/workload.status)"
grep -H stop $FAKE/cpu*/state >out/state
check "the trigger: $TRIGGER" trigger_event
check "takes a snapshot" within 300 stored
# What the recorder executes from now on would fill the log of what executed.
check "tracing stops" ctl -q yield
check "the snapshot is the trigger's" is "$(kind)" "$(echo $TRIGGER | sed 's/client/control/;s/sigusr2/signal/')"
check "is fetched" ctl -q fetch --format=bundle -o out/self.ptsnap "$SNAPSHOT"
check "the service stops" systemctl stop ptsnapd.socket ptsnapd.service
[ -z "$PERF" ] || . ./perf.sh
journalctl -o short-monotonic --no-hostname >out/journal 2>&1
check "no program of ours complained of its memory" fails grep -E "AddressSanitizer|runtime error" out/journal
dmesg >out/dmesg
check "the kernel has nothing to complain of" fails grep -E "WARNING: CPU|BUG:|Oops|soft lockup" out/dmesg
tap "1..$n_tests"
exit 0
