# Programs in namespaces of their own, with an overlay as their root. File: overlay.ko.
insmod ./overlay.ko || exit 1
mkdir -p /run/over && mount -t tmpfs over /run/over || exit 1
for i in 1 2 3; do
	mkdir -p /run/over/$i/up /run/over/$i/work /run/over/$i/root
	mount -t overlay -o lowerdir=/,upperdir=/run/over/$i/up,workdir=/run/over/$i/work over \
		/run/over/$i/root || exit 1
	unshare --mount --pid --uts --ipc --net --fork chroot /run/over/$i/root sh -c '
		mount -t proc proc /proc
		hostname inside
		cp /usr/bin/ls /usr/bin/true
		/usr/bin/true /usr | sort | md5sum
		echo $$ >/root/pid
		ps' || exit 1
	unshare --user --map-root-user --pid --fork sh -c 'id; ls -l /proc/self | wc -l' || exit 1
	umount /run/over/$i/root || exit 1
done
