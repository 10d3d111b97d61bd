# Has the kernel patch its text again and again: static keys, static calls, tracepoints.
for i in 1 2 3 4 5 6 7 8; do
	echo 1 >/proc/sys/kernel/sched_schedstats || exit 1
	echo 1 >/sys/kernel/debug/tracing/events/sched/sched_switch/enable || exit 1
	ls -l /usr/lib >/dev/null
	echo 0 >/sys/kernel/debug/tracing/events/sched/sched_switch/enable
	echo 0 >/proc/sys/kernel/sched_schedstats
	ls -l /usr/lib >/dev/null
done
