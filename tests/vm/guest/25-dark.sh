# Times in which a CPU was not traced are gaps with begin and end, and a dead trace unit is a fault.
load
start --aux-size=64K --data-size=64K
new_ring 0
new_ring 1
runs() { is "$(pmu "$1" on)" 1; }
# KIND CPU: the report has a gap of that kind on that CPU, with its times, before the trigger.
hole() {
	jq -e ".gaps[] | select(.kind == \"$1\" and .cpu == $2 and .untilNSec > .atNSec and
		.untilNSec <= 1000000000)" "$REPORT" >/dev/null ||
		{ jq -c '[.gaps[] | [.kind, .cpu, .atNSec, .untilNSec]]' "$REPORT"; return 1; }
}
no_hole() { fails hole "$@" >/dev/null; }
reported() { snapshot_report --reason=dark; }

# A unit that refuses to restart: every call returns 0, and the event is in error.
check "no hole so far" eval "reported && no_hole pt-failed 0 && no_hole pt-silent 0"
refuse_some() { echo 2 >$FAKE/cpu0/refuse && snapshot && runs 0 && is "$(pmu 0 refused)" 2; }
check "a restart that is refused twice is tried again before the snapshot is told" refuse_some
check "its time is the copy's" eval "reported && no_hole pt-failed 0 && hole snapshot-copy 0"
refuse_more() { echo 5 >$FAKE/cpu0/refuse && snapshot && within 3 runs 0; }
check "a restart that is refused more often is tried again at once, behind the snapshot" refuse_more
check "the next report has the hole" eval "reported && hole pt-failed 0 && no_hole pt-failed 1"
check "the log says for how long" said "CPU 0 was not traced for [0-9.]+ s: the CPU did not trace again"
kept() { feed 0 5001 && feed 1 333 && snapshot && both_exact; }
check "the ring is the same one" kept

# A unit that refuses for longer: also a new event is refused.
echo 100000 >$FAKE/cpu0/refuse
check "a snapshot behind which a CPU stays dark" eval "snapshot && within 5 cpu_is 0 busy failed"
sleep 1
echo 0 >$FAKE/cpu0/refuse
check "is traced again when the unit allows it" within 40 runs 0
check "and all the time is in the report" eval "reported && hole pt-failed 0 && hole pt-busy 0"
new_ring 0

# The kernel stops the event by itself.
fall() { echo 1 >$FAKE/cpu1/refuse && echo 1 >$FAKE/cpu1/break && is "$(pmu 1 refused)" 1; }
check "an event falls into error" fall
check "the record of its stop makes the recorder look at once" within 4 runs 1
check "the report has the hole" eval "reported && hole pt-failed 1"

# Away and back before the snapshot.
online() { echo "$2" >/sys/devices/system/cpu/cpu$1/online; }
online 1 0
check "a CPU goes offline" within 10 cpu_is 1 offline
online 1 1
check "and comes back" within 10 cpu_is 1 tracing
new_ring 1
check "the report has the time" eval "reported && hole cpu-offline 1 && no_hole cpu-offline 0"
check "yielded" ctl yield --for=10min
sleep 0.5
check "and back" eval "ctl yield --end && within 5 runs 0 && within 5 runs 1"
new_ring 0
new_ring 1
check "the report has that time on both CPUs" eval "reported && hole pt-yielded 0 && hole pt-yielded 1"

# A unit that writes nothing while a program runs on its CPU.
spin() { timeout 3 taskset "$1" sh -c 'while :; do :; done' || [ $? = 124 ]; }
feed 0 1000
feed 1 1000
reported
: >"$LOG"
echo 1 >$FAKE/cpu0/mute
check "a program runs on the CPU of a dead unit" spin 1
feed 1 1000
check "the report has the silence of CPU 0, and none of CPU 1" \
	eval "reported && hole pt-silent 0 && no_hole pt-silent 1"
check "the log says so" said "CPU 0: the trace unit writes nothing \(pt-silent\)"
check "the check says so" eval "ctl check | grep -E '^warning +silent: CPU 0: user code ran'"
check "the status says so" is "$(status '[.cpus[].silent] | map(tostring) | join(",")')" true,false
echo 0 >$FAKE/cpu0/mute
check "the unit is well again" eval "feed 0 500 && feed 1 1000 && reported && no_hole pt-silent 0"
check "the log says that, too" said "CPU 0: the trace unit writes again"
check "and the check is content" eval "ctl check | fails grep silent"
stop
