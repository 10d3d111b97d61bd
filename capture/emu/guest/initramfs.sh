#!/bin/busybox sh
# PID 1 until the root file system is there.
B=/bin/busybox
$B mount -t devtmpfs devtmpfs /dev
for driver in @drivers@; do
	$B insmod /m/$driver.ko
done
i=0
while [ ! -b /dev/vda ] && [ $i -lt 500 ]; do
	$B usleep 20000
	i=$((i + 1))
done
$B mount -t ext4 -o noatime /dev/vda /root || {
	echo "no root file system" >/dev/console
	$B poweroff -f
}
$B mount -o move /dev /root/dev
exec $B switch_root /root /lib/systemd/systemd
