#!/bin/bash
# Prints the result of one self-traced machine as TAP.
out=$(bash "$PTSNAP_SRCDIR/tests/vm/selftrace" --aux-size=2M 2>&1)
status=$?
if [ $status = 77 ]; then
	echo "1..0 # SKIP ${out##*$'\n'}"
	exit 0
fi
echo 1..2
echo "$out" | sed 's/^/# /'
[ $status = 0 ] && echo "ok 1 - user and kernel code is what executed" ||
	echo "not ok 1 - user and kernel code is what executed"
# All programs of the workload are at their paths, also those that have exited.
all=$(grep "^all: " <<<"$out")
[ -n "$all" ] && ! [[ $all == *image-gone* ]] && echo "ok 2 - no program's code is missing" ||
	echo "not ok 2 - no program's code is missing"
