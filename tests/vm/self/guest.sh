#!/bin/sh
# Runs in a guest that traces itself, as root: records with the recorder, runs a workload, takes a
# snapshot, and copies the bundle to out/. The file "settings" has TRACE, AUX, TERMS and MODEL, and the file
# "workload" what the guest does meanwhile.
. ./lib.sh
. ./settings
stty -F /dev/ttyS1 raw 2>/dev/null
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
mkdir -p /usr/local/lib $STATE
mount -t tmpfs -o size=700M tmpfs $STATE
for library in lib/*; do
	[ -e "/usr/lib/x86_64-linux-gnu/${library##*/}" ] || cp "$library" /usr/local/lib/
done
ldconfig
chmod 755 . ./*
note "kernel $(uname -r), $(nproc) CPUs"
check "the emulator's trace unit is there" load "model=$MODEL"
dmesg | grep fake_intel_pt >out/module
check "and says so" grep -q "the emulator's trace unit" out/module
check "the recorder starts" start --trace="$TRACE" --aux-size="$AUX" $TERMS
t0=$(up)
sh ./workload >out/workload.log 2>&1
echo $? >out/workload.status
note "the workload took from $t0 to $(up), status $(cat out/workload.status)"
check "a snapshot" snapshot --reason=selftrace
# What the recorder executes from now on would fill the log of what executed.
check "tracing stops" ctl -q yield
check "is fetched" ctl -q fetch --format=bundle -o out/self.ptsnap "$SNAPSHOT"
check "the recorder stops" stop
dmesg >out/dmesg
check "the kernel has nothing to complain of" fails grep -E "WARNING:|BUG:|Oops|soft lockup" out/dmesg
tap "1..$n_tests"
exit 0
