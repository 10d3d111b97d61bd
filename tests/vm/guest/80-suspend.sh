# The host sleeps and wakes up (ACPI S3): all CPUs but one go offline and come back, and the distance of
# the TSC and the perf clock grows.
load
start --aux-size=1M --data-size=64K
new_ring 0
feed 0 1001
check "the host slept and woke up" timeout 60 rtcwake -m mem -s 3
awake() { is "$(pmu 0 on)$(pmu 1 on)" 11 && cpu_is 0 tracing && cpu_is 1 tracing; }
check "both CPUs are traced again" within 20 awake
new_ring 0
new_ring 1
kept_on() { feed 0 100003 && feed 1 4711 && snapshot && both_exact; }
check "in new rings" kept_on
walk=$(./feeder walk 1 6 100 "$PWD/ptsnap-walk" walk.expected)
pid=${walk% *} branches=${walk#* }
kill "$pid"
sleep 0.5
timed() { snapshot_report && is "$(of_pid .branches)" "$branches" && in_turn; }
check "a process's branches are its own, by the time of both clocks" timed
stop
