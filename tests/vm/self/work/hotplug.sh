# Takes CPU 1 away and gives it back while programs run.
cpu=/sys/devices/system/cpu/cpu1/online
for i in 1 2 3; do
	echo 0 >$cpu || exit 1
	ls -l /usr/bin | sort -k5n | md5sum
	echo 1 >$cpu || exit 1
	for k in 1 2 3 4; do
		taskset -c 1 ls -l /usr/bin | taskset -c 1 sort -k5n | md5sum
	done
done
