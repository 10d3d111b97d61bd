# Events and CPUs change while the recorder runs.
load
check "the kernel does with early, second and pinned events what we know of it" ./feeder facts 1
start --aux-size=64K --data-size=64K
new_ring 0
new_ring 1

both_trace() { cpu_is 0 tracing && cpu_is 1 tracing && is "$(pmu 0 on)$(pmu 1 on)" 11; }
check "under paranoid 3, as a service: both CPUs trace" both_trace

check "ptsnapctl check: nothing is in the way" ctl check

# The recorder's events are pinned: other programs do not stop them.
undisturbed() {
	local before
	before=$(pmu 0 starts)
	./feeder disturb 0 || return 1
	is "$(pmu 0 starts)" "$before"
}
check "pinned events of others, and tasks that have some, do not stop the trace" undisturbed

# A CPU goes offline and comes back.
online() { echo "$2" >/sys/devices/system/cpu/cpu$1/online; }
feed 0 1000
feed 1 100001
online 1 0
check "a CPU goes offline: the recorder sees it" within 10 cpu_is 1 offline
kept() { snapshot && both_exact; }
check "its trace is kept" kept
online 1 1
check "it comes back: traced again" within 10 cpu_is 1 tracing
new_ring 1
again() { feed 1 70001 && snapshot && both_exact; }
check "by a new ring" again

# An event in the error state.
broken() { # the event is scheduled again, and refused; the recorder may mend it at any time
	echo 1 >$FAKE/cpu0/refuse
	echo 1 >$FAKE/cpu0/break
	is "$(pmu 0 refused)" 1
}
runs() { is "$(pmu "$1" on)" 1; }
check "an event falls into the error state" broken
check "it is mended" within 20 runs 0
feed 0 5001
check "and goes on in its ring" kept
refused_restart() {
	echo 1 >$FAKE/cpu0/refuse
	snapshot && within 20 runs 0 && feed 0 777 && snapshot && both_exact
}
check "a CPU that does not restart after a snapshot is mended" refused_restart

# Each AUX flag becomes a gap with a name: TRUNCATED, PARTIAL, COLLISION (include/uapi/linux/perf_event.h).
flag() { # FLAG GAP
	echo "$1" >$FAKE/cpu1/flags
	snapshot_report --reason=flags && has "$(jq -c .gapCounts "$REPORT")" "\"$2\":1"
}
check "an AUX record that says truncated" flag 0x1 aux-truncated
check "one that says partial" flag 0x4 aux-partial
check "one that says collision" flag 0x8 aux-collision
stop
