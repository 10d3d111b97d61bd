# Sourced by guest.sh, when the recorder has stopped: the workload once more, recorded by perf. Leaves
# perf.data, with a copy of the kernel's text, and home/.debug, perf's copies of the programs, in out/.

# KEY: the sum of this value of all CPUs' trace units.
units() { cat $FAKE/cpu*/state | awk -F= -v "key=$1" '$1 == key { n += $2 } END { print n }'; }
# STARTS: so many starts there were, and each trace unit is on.
traced() { [ "$(units on)" = "$(nproc)" ] && [ "$(units starts)" -ge "$1" ]; }

# Fewer MTCs than perf's own default: more code in as many bytes.
[ -n "$TERMS" ] || [ "$MODEL" = broadwell ] || TERMS=mtc,mtc_period=6
perf_begins() {
	case $TRACE in
	user) set -- u ;;
	kernel) set -- k ;;
	*) set -- "" ;;
	esac
	mkdir -p out/home
	cat /sys/bus/event_source/devices/intel_pt/tsc_art_ratio >out/ratio
	perf_starts=$(units starts)
	HOME=$PWD/out/home ./perf record -a -S "-m,$AUX" --kcore -o out/perf.data \
		-e "intel_pt/$TERMS/$1" >out/perf.log 2>&1 &
	perf=$!
	perf_starts=$((perf_starts + $(nproc)))
	within 60 traced $perf_starts || { cat out/perf.log; return 1; }
}
# At SIGUSR2, perf disables the events, copies the buffers, and enables the events again.
perf_snapshot() {
	kill -USR2 $perf && within 120 traced $((perf_starts + $(nproc))) || { cat out/perf.log; return 1; }
}
perf_ends() {
	kill -INT $perf
	wait $perf
	# perf ends by the signal that it was sent.
	grep -q 'Captured and wrote' out/perf.log || { cat out/perf.log; return 1; }
}
check "perf record starts" perf_begins
t0=$(up)
sh ./workload >out/workload.log 2>&1
note "the workload took from $t0 to $(up), status $?"
check "perf takes a snapshot" perf_snapshot
check "perf ends" perf_ends
