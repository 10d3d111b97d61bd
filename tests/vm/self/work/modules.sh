# Loads and unloads a module of the kernel, whose code runs in between. File: dummy.ko.
for i in 1 2 3 4 5 6 7 8; do
	insmod ./dummy.ko numdummies=1 || exit 1
	cat /sys/class/net/dummy0/address
	echo 1300 >/sys/class/net/dummy0/mtu
	rmmod dummy || exit 1
done
insmod ./dummy.ko
