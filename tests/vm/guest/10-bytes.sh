# Snapshots contain exactly the fed bytes: ring sizes, wraps, CPUs, snapshots.
load

# Up to Linux 6.13 the kernel maps a page of a ring when the page is first read, which must not be while
# CPUs are stopped. Two rings of 8 MiB have 4,096 pages.
faults() { cut -d' ' -f10 "/proc/$(systemctl show -P MainPID ptsnapd)/stat"; }
first_faults() {
	local before first second
	start --aux-size=8M --data-size=64K || return 1
	before=$(faults)
	snapshot || return 1
	first=$(($(faults) - before))
	before=$(faults)
	snapshot || return 1
	second=$(($(faults) - before))
	note "page faults: first snapshot $first, second $second"
	stop
	[ "$first" -lt $((second + 2048)) ] || { echo "$first page faults, then $second"; return 1; }
}
check "the first snapshot takes no page faults for the rings" first_faults

parts() { # SIZE of the ring: prints amounts of bytes to feed one after another, without a common divisor
	echo "$(($1 / 3)) 1 $(($1 / 2 + 7)) $1 $(($1 * 2 + 13)) $(($1 - 1)) $(($1 + 1)) 0 5"
}

try_size() { # SIZE
	local part i=0 starts
	start --aux-size="$1" --data-size=64K || return 1
	new_ring 0
	new_ring 1
	for part in $(parts "$1"); do
		i=$((i + 1))
		feed 0 "$part" && feed 1 $((part * 3 / 4 + 3)) && snapshot || return 1
		both_exact || { echo "after part $i, $part bytes"; return 1; }
	done
	starts=$(pmu 0 starts)
	stop
	echo "$starts starts"
}
check "4 KiB rings: two CPUs, 9 snapshots, the bytes that were fed" try_size 4096
check "64 KiB rings: the same" try_size 65536

# Tracing continues while snapshots are made.
load_test() {
	local i end0=0 end1=0 now cpu
	start --aux-size=256K --data-size=64K || return 1
	for cpu in 0 1; do
		new_ring $cpu
		eval "./feeder run $cpu \$BASE_$cpu >end.$cpu & pid$cpu=\$!"
	done
	for i in $(seq 30); do
		snapshot || return 1
		for cpu in 0 1; do
			eval "local base=\$BASE_$cpu last=\$end$cpu"
			now=$(./feeder check "$BUNDLE" $cpu "$base") ||
				{ echo "snapshot $i, CPU $cpu: $now"; return 1; }
			[ "$now" -gt "$last" ] || { echo "snapshot $i: $now, before $last"; return 1; }
			eval "end$cpu=$now"
		done
	done
	kill $pid0 $pid1
	wait
	FED_0=$(cat end.0)
	FED_1=$(cat end.1)
	snapshot && both_exact
}
check "30 snapshots while two CPUs trace: each whole and newer than the last" load_test
check "the rings wrapped meanwhile" [ "$(pmu 0 wraps)" -gt 1 ]
check "each stop left its AUX record: where the trace ends, the ring's size" aux_records 262144
stop
