#!/bin/sh
# Runs in the guest as root, as a service of systemd. Test lines go to the second serial port; files in
# out/ are copied back to the host.
. ./lib.sh
stty -F /dev/ttyS1 raw 2>/dev/null
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
mkdir -p /usr/local/lib $STATE
mount -t tmpfs -o size=500M tmpfs $STATE
for library in lib/*; do
	[ -e "/usr/lib/x86_64-linux-gnu/${library##*/}" ] || cp "$library" /usr/local/lib/
done
ldconfig
chmod 755 . ./*
# Lift the limit on real-time tasks, so that a process with high priority keeps its CPU.
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
note "kernel $(uname -r), $(nproc) CPUs, paranoid $(cat /proc/sys/kernel/perf_event_paranoid)"
for script in ${ONLY:-[0-9]*.sh}; do
	t0=$(up)
	# shellcheck disable=SC1090
	. "./$script"
	systemctl -q is-active ptsnapd && stop
	[ ! -d $FAKE ] || unload
	note "$script took from $t0 to $(up)"
done
check "no program of ours complained of its memory" \
	fails grep -E "AddressSanitizer|runtime error|LeakSanitizer" "$LOG"
dmesg >out/dmesg
check "the kernel has nothing to complain of" fails grep -E "WARNING:|BUG:|Oops" out/dmesg
tap "1..$n_tests"
exit 0
