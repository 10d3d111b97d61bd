# Other users of Intel PT.
load
hold() { # CPU
	mkfifo held
	./feeder hold "$1" >held &
	holder=$!
	read -r _ <held
	rm held
}
hold 1
start --aux-size=64K --data-size=64K
new_ring 0
busy() { cpu_is 1 busy && cpu_is 0 tracing; }
check "another user has a CPU: busy, the other CPU traces" busy
check "the recorder says who may have it" has "$(why 1)" "feeder (pid $holder)"
kill $holder
wait $holder
check "when it ends the CPU is taken" within 20 cpu_is 1 tracing
new_ring 1
both() { feed 0 3001 && feed 1 70001 && snapshot && both_exact; }
check "and traced" both

# With perf(1), which may be missing.
perf_record() {
	./perf record -q -B -N -e intel_pt//u -a -S -m,16 -o perf.data -- sleep 1000 2>perf.log &
	perf=$!
	within 10 [ "$(pmu 0 on)$(pmu 1 on)" = 11 ]
}
perf_end() { kill $perf; wait $perf; }
if ./perf version >/dev/null 2>&1; then
	perf_refused() {
		fails ./perf record -q -e intel_pt//u -a -S -m,16 -o perf.data -- true 2>perf.log
	}
	check "perf record is refused while the recorder has the CPUs" perf_refused
	stop
	perf_record
	start --aux-size=64K --data-size=64K
	all_busy() { cpu_is 0 busy && cpu_is 1 busy && is "$(status .state)" degraded; }
	check "perf record has all CPUs: busy, and the recorder runs all the same" all_busy
	check "the recorder names perf" has "$(why 0)" "perf (pid"
	perf_end
	taken_again() { cpu_is 0 tracing && cpu_is 1 tracing; }
	check "when perf ends its CPUs are taken" within 20 taken_again
fi

yielded() { cpu_is 0 yielded && cpu_is 1 yielded && is "$(pmu 0 on)$(pmu 1 on)" 00; }
taken() { cpu_is 0 tracing && cpu_is 1 tracing; }
check "yield: accepted" ctl yield --for=8s
check "yield: handed back" yielded
check "yield: another user gets in" hold 0
kill $holder
wait $holder
check "yield: taken again when the time is over" within 25 taken
check "yield --end: handed back" ctl yield --for=10min
check "yield --end: taken again at once" ctl yield --end
check "yield --end: both CPUs trace" within 5 taken
new_ring 0
new_ring 1
check "and the bytes are exact" both
stop
