# A container of systemd-nspawn, with users of its own, whose root is an overlay. File: overlay.ko.
# Package: systemd-container.
insmod ./overlay.ko || exit 1
mkdir -p /run/c && mount -t tmpfs c /run/c && mkdir -p /run/c/up /run/c/work /run/c/root || exit 1
mount -t overlay -o lowerdir=/,upperdir=/run/c/up,workdir=/run/c/work c /run/c/root || exit 1
for users in no 100000:65536; do
	systemd-nspawn -q --register=no --keep-unit --private-users=$users --private-network --directory=/run/c/root \
		sh -c 'id; ls -l /usr/bin | sort -k5n | md5sum; ps; cat /proc/self/uid_map' || exit 1
done
