#!/bin/bash
# matrix.sh [NAME...]: the long form of the self-traced machine, for `make check-selftrace`: boots a
# machine for each line of the list below, or only for the lines with these names, and prints a table.
# Needs some minutes a line. PTSNAP_VM_KEEP: a folder where bundle, log and console of each line are kept.
# Status 1: a line failed.
set -u
src=$(cd "$(dirname "$0")/.." && pwd)
build=${PTSNAP_BUILDDIR:?}
cache=${PTSNAP_VM_CACHE:-$build/tests/vm/cache}
status=0

work() { echo "--file=$src/self/work/$1.sh -- sh ./$1.sh"; } # NAME
# One root image for all that need more than the guest has.
real() { echo "--packages=make,gcc,libc6-dev,git,python3,sqlite3,nginx-light,apache2-utils,systemd-container $(work "$1")"; } # NAME

# NAME OPTIONS: of selftrace; "~" is a space in an argument.
list() {
	cat <<-END
		user --trace=user --aux-size=8M
		kernel --trace=kernel
		both --trace=both
		both-cyc --trace=both --pt=cyc,mtc,tsc,mtc_period=6
		both-noretcomp --trace=both --pt=noretcomp,mtc,tsc,mtc_period=6
		user-tsc --trace=user --pt=tsc
		kaslr --trace=both --kernel=mitigations=off
		mitigations --trace=both --kernel=nokaslr
		one-cpu --trace=both --cpus=1
		four-cpus --trace=both --cpus=4
		broadwell --trace=both --cpu-model=broadwell
		icelake --trace=user --cpu-model=icelake
		sapphirerapids --trace=both --cpu-model=sapphirerapids
		alderlake --trace=user --cpu-model=alderlake
		sierraforest --trace=both --cpu-model=sierraforest
		events --trace=both --cpu-model=sierraforest --pt=event,pwr_evt,mtc,tsc,mtc_period=6
		overflow --trace=both --cpu-model=sapphirerapids --overflow=50000
		filters --trace=both --cpu-model=alderlake --filter=filter:vfs_read-vfs_write --filter=filter:do_sys_openat2
		trace-stop --trace=both --cpu-model=alderlake --filter=stop:ksys_sync -- sh -c 'ls~-l~/usr/bin~|~md5sum;sync;ls~-l~/etc~|~md5sum'
		turns --trace=user --aux-size=128M --memory=2800 --file=$build/tests/support/guest_turns -- ./guest_turns 90
		perf-user --perf --trace=user --aux-size=2M
		perf-both --perf --trace=both --aux-size=2M
		rare-user --trace=user --file=$build/tests/support/guest_rare -- ./guest_rare
		rare-kernel --trace=kernel --file=$build/tests/support/guest_rare -- ./guest_rare
		rare-both --trace=both --aux-size=8M --file=$build/tests/support/guest_rare -- ./guest_rare
		patched --trace=both $(work patched)
		kprobes --trace=both $(work kprobes)
		sigusr2 --trace=both --trigger=sigusr2
		unit-fails --trace=both --trigger=unit
		units --trace=both --aux-size=8M -- sh -c 'for~i~in~1~2~3~4~5~6~7~8;do~systemd-run~-q~--wait~-p~DynamicUser=yes~-p~PrivateTmp=yes~true~||~exit~1;done'
		user-6.12 --trace=user --kernel-version=6.12
		kernel-6.12 --trace=kernel --kernel-version=6.12
		both-6.12 --trace=both --kernel-version=6.12
		mitigations-6.12 --trace=both --kernel-version=6.12 --kernel=nokaslr
		eight-cpus --trace=both --cpus=8 --aux-size=1M
		preempt --trace=both --kernel=mitigations=off~nokaslr~preempt=full
		modules --trace=both --file=$cache/ko/dummy.ko $(work modules)
		bpf --trace=both --file=$build/tests/support/guest_bpf $(work bpf)
		keys --trace=both $(work keys)
		hotplug --trace=both $(work hotplug)
		spaces --trace=both --file=$cache/ko/overlay.ko $(work spaces)
		sleep --trace=both $(work sleep)
		make --trace=both --aux-size=8M $(real make)
		git --trace=both $(real git)
		python --trace=both $(real python)
		nginx --trace=both $(real nginx)
		sqlite --trace=both $(real sqlite)
		fifty --trace=both $(work fifty)
		nspawn --trace=both --file=$cache/ko/overlay.ko $(real nspawn)
	END
}

one() { # NAME OPTION...
	local name=$1 out t0=$SECONDS r
	shift
	set -- ${PTSNAP_VM_KEEP:+--keep="$PTSNAP_VM_KEEP/$name"} "${@//\~/ }"
	out=$(bash "$src/selftrace" "$@" 2>&1)
	r=$?
	[ $r = 77 ] && { echo "$name: cannot be run here: ${out##*$'\n'}"; return; }
	# A workload that failed was not traced at its work.
	[ $r != 0 ] || grep -q '^# .* the workload took .*, status 0$' <<<"$out" || r=1
	[ $r = 0 ] || status=1
	printf '%s: %s, %s s\n' "$name" "$([ $r = 0 ] && echo equal || echo "NOT EQUAL")" $((SECONDS - t0))
	if [ $r = 0 ]; then
		echo "$out" | grep -E '^(CPU|all|perf |ptsnapctl |.*libipt)' | sed 's/^/  /'
	else
		echo "$out" | tail -n 30 | sed 's/^/  /'
	fi
}

while read -r name options; do
	[ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
	eval "one $name $options" </dev/null
done < <(list)
exit $status
