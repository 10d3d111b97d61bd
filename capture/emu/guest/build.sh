#!/bin/bash
# build.sh CACHE [SERIES]: makes what the virtual machine needs, in the folder CACHE: kernel, module, initramfs
# and root image, all of Debian's packages. SERIES: of the kernel, as 6.12; default: the one that Debian's
# release has. Nothing is made twice. Status 77, with a reason on stderr: cannot be had here.
# VM_PACKAGES: makes a root image that has these packages, too.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/pack.sh"
# As installed, the bell is in the module's folder.
module_files=("$here"/module/*)
[ -e "$here/module/bell.h" ] || module_files+=("$here/../system/bell.h")
cache=$1
metapackage=linux-image-${2:+$2-}cloud-amd64
tmp=$cache/tmp
umask 022
guest_packages="usr-is-merged systemd systemd-sysv dbus kmod mount util-linux tar bash dash coreutils
 grep sed mawk procps less ncurses-base findutils libc-bin base-files base-passwd login jq systemd-coredump"
# Of these, a kernel has some built in.
drivers="virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk"
# For workloads.
modules="dummy overlay"
PATH=$PATH:/usr/sbin:/sbin

skip() { echo "$*" >&2; exit 77; }
die() { echo "build.sh: $*" >&2; exit 1; }
step() { printf '# %s %s\n' "$(date +%T)" "$*" >&2; }
quietly() { # LOG COMMAND...: what it says matters only when it fails
	local log=$1
	shift
	"$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2; return 1; }
}

check_tools() {
	local tool package missing=
	[ "$(uname -m)" = x86_64 ] || skip "not x86-64"
	command -v apt-get >/dev/null || skip "no apt-get: the machine is made of Debian's packages, on a Debian host"
	while read -r tool package; do
		command -v "$tool" >/dev/null || missing+=" $package"
	done <<-END
		qemu-system-x86_64 qemu-system-x86
		busybox busybox-static
		cpio cpio
		mkfs.ext4 e2fsprogs
		gcc gcc
		make make
		strip binutils
		xz xz-utils
		dpkg-deb dpkg
	END
	[ -z "$missing" ] || skip "missing packages:$missing"
	! ldd "$(command -v busybox)" >/dev/null 2>&1 || skip "busybox is not static; the package busybox-static is"
}

depends_on() { # PACKAGE PATTERN
	apt-cache depends "$1" 2>/dev/null | awk -v pattern="$2" '$1 == "Depends:" && $2 ~ pattern { print $2 }'
}

kernel() {
	local image version deb
	step "kernel and headers"
	image=$(depends_on "$metapackage" ^linux-image-)
	[ -n "$image" ] || skip "apt knows no $metapackage"
	version=${image#linux-image-}
	mkdir -p "$tmp/debs" "$tmp/kernel"
	# shellcheck disable=SC2046
	(cd "$tmp/debs" && quietly ../log apt-get -qq -o APT::Sandbox::User=root download "$image" \
		"linux-headers-$version" $(depends_on "linux-headers-$version" '^linux-(headers|kbuild)-')) ||
		skip "cannot download the kernel's packages"
	for deb in "$tmp"/debs/*.deb; do
		dpkg-deb -x "$deb" "$tmp/kernel"
	done
	mv "$tmp/kernel/boot/vmlinuz-$version" "$tmp/vmlinuz"
	ln -s "usr/src/linux-headers-$version" "$tmp/kernel/headers"
	sed -i "s,/usr/src/,$cache/kernel/usr/src/,g" "$tmp/kernel/headers/Makefile"
}

# Copies a module of the kernel to DIR. False: there is none of that name.
kernel_module() { # NAME DIR
	local file
	file=$(find "$tmp/kernel/lib/modules" -name "$1.ko" -o -name "$1.ko.xz")
	[ -n "$file" ] || return 1
	cp "$file" "$2/"
	[ "${file%.xz}" = "$file" ] || xz -d "$2/$1.ko.xz"
}

initramfs() {
	local driver name there=
	step "initramfs"
	mkdir -p "$tmp/ird"/{bin,dev,root,m} "$tmp/ko"
	for name in $modules; do
		kernel_module "$name" "$tmp/ko" || die "the kernel has no $name.ko"
	done
	cp "$(command -v busybox)" "$tmp/ird/bin/busybox"
	for driver in $drivers; do
		! kernel_module "$driver" "$tmp/ird/m" || there+=" $driver"
	done
	sed "s/@drivers@/$there/" "$here/initramfs.sh" >"$tmp/ird/init"
	chmod 755 "$tmp/ird/init"
	(cd "$tmp/ird" && find . | cpio -o -H newc --quiet | gzip -1) >"$tmp/initramfs"
	rm -rf "$tmp/kernel/lib"
}

# Sets up what maintainer scripts would have set up, as far as the guest needs it.
configure_guest() { # ROOT
	local root=$1 unit
	cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
	cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
	echo 'messagebus:x:100:100::/nonexistent:/usr/sbin/nologin' >>"$root/etc/passwd"
	printf 'messagebus:x:100:\nsystemd-journal:x:101:\n' >>"$root/etc/group"
	mkdir -p "$root"/{proc,sys,dev,run,tmp,root,var/tmp,var/log/journal,etc/systemd/system}
	chmod 1777 "$root/tmp" "$root/var/tmp"
	ln -sf /run "$root/var/run"
	ln -sf dash "$root/usr/bin/sh"
	ln -sf mawk "$root/usr/bin/awk"
	ldconfig -r "$root" 2>/dev/null
	echo ptsnap-vm >"$root/etc/hostname"
	: >"$root/etc/fstab"
	echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
	cp "$here/vm.target" "$here/vm.service" "$root/etc/systemd/system/"
	for unit in systemd-random-seed systemd-update-utmp systemd-journal-flush \
		systemd-machine-id-commit systemd-pstore; do
		ln -sf /dev/null "$root/etc/systemd/system/$unit.service"
	done
}

# Makes root the owner of all files of a file system that another user has made. Inodes are used in order.
give_to_root() { # IMAGE
	dumpe2fs -h "$1" 2>/dev/null |
		awk '/^Inode count:/ { n = $3 } /^Free inodes:/ { n -= $3 } END { print n }' |
		{ read -r n && for i in 2 $(seq 11 "$n"); do
			printf 'sif <%d> uid 0\nsif <%d> gid 0\n' "$i" "$i"
		done; } | debugfs -w -f - "$1" >/dev/null 2>&1
}

# Makes IMAGE, a file system of SIZE, of packages and all that they depend on.
root_image() { # IMAGE SIZE PACKAGE...
	local image=$1 size=$2 debs=$tmp/guest root=$tmp/root deb
	shift 2
	step "root file system"
	mkdir -p "$debs/partial" "$root/usr"/{bin,sbin,lib,lib64}
	: >"$debs/status" # as for a machine that has nothing
	quietly "$tmp/log" apt-get -qq -o Dir::State::status="$debs/status" \
		-o Dir::Cache::archives="$debs" -o Debug::NoLocking=1 -o APT::Install-Recommends=0 \
		-o APT::Sandbox::User=root --download-only -y install "$@" ||
		skip "cannot download the guest's packages"
	for deb in bin sbin lib lib64; do
		ln -s "usr/$deb" "$root/$deb"
	done
	for deb in "$debs"/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$root"
	done
	rm -rf "$root/usr/share"/{doc,man,locale,info,zsh,bash-completion,bug,lintian} \
		"$root/usr/lib/udev/hwdb.d" "$root/usr/lib/x86_64-linux-gnu/perl-base"
	configure_guest "$root"
	truncate -s "$size" "$image"
	mkfs.ext4 -q -d "$root" -O ^has_journal "$image"
	[ "$(id -u)" = 0 ] || give_to_root "$image"
}

# The kernel's and the guest's part: kept as long as what makes it is the same.
system() {
	local stamp
	stamp=$(cat "$here/build.sh" "$here/initramfs.sh" "$here"/vm.* | cksum)
	[ "$(cat "$cache/stamp" 2>/dev/null)" != "$stamp" ] || return 0
	rm -rf "$cache"
	mkdir -p "$tmp"
	kernel
	initramfs
	# shellcheck disable=SC2086
	root_image "$tmp/root.img" 500M $guest_packages
	mv "$tmp/kernel" "$tmp/ko" "$tmp/vmlinuz" "$tmp/initramfs" "$tmp/root.img" "$cache/"
	rm -rf "$tmp"
	echo "$stamp" >"$cache/stamp"
}

more_packages() {
	local image
	image=$(root_image_in "$cache")
	[ ! -e "$image" ] || return 0
	rm -rf "$tmp"
	mkdir -p "$tmp"
	# shellcheck disable=SC2086
	root_image "$tmp/more.img" 3G $guest_packages $VM_PACKAGES
	mv "$tmp/more.img" "$image"
	rm -rf "$tmp"
}

module() {
	local stamp
	# Installed files are in another order than those of the sources.
	stamp=$(for f in "${module_files[@]}"; do echo "${f##*/} $(cksum <"$f")"; done | sort | cksum)
	[ "$(cat "$cache/module.stamp" 2>/dev/null)" != "$stamp" ] || return 0
	step "module"
	rm -rf "$cache/module"
	mkdir "$cache/module"
	cp "${module_files[@]}" "$cache/module/"
	chmod -R u+w "$cache/module"
	quietly "$cache/module.log" make -s -C "$cache/kernel/headers" M="$cache/module" \
		CONFIG_DEBUG_INFO_BTF_MODULES= modules ||
		die "the module does not compile"
	strip --strip-debug "$cache/module/fake_intel_pt.ko"
	echo "$stamp" >"$cache/module.stamp"
}

check_tools
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
# Tests that run side by side share the folder. The lock ends with this program.
exec 9>"$cache.lock"
flock 9
tmp=$cache/tmp
system
more_packages
module
