#!/bin/bash
# Packs the guest's programs, boots the VM, and prints the results as TAP.
set -u
src=$PTSNAP_SRCDIR/tests/vm
guest=$PTSNAP_SRCDIR/capture/emu/guest
build=$PTSNAP_BUILDDIR
cache=${PTSNAP_VM_CACHE:-$build/tests/vm/cache}
work=$(mktemp -d) || exit 1
out=${PTSNAP_VM_OUT:-$work/out}
trap 'rm -rf "$work"' EXIT

. "$guest/pack.sh"

pack() { # DIR
	local programs
	programs="$build/daemon/ptsnapd $build/ctl/ptsnapctl $build/ctl/ptsnap-walk
		$build/decoder/worker/ptsnap-decode $build/tests/vm/feeder
		$build/tests/vm/kernel_see $(command -v perf)"
	# shellcheck disable=SC2086
	pack_programs "$1" $programs || return 1
	strip -g "$1"/ptsnap* "$1/feeder" "$1/kernel_see" "$1"/lib/*
	# The installed tree with its units; without manual pages, which the guest does not need.
	env -u MAKEFLAGS -u MFLAGS make -s -C "$build" install DESTDIR="$1/install" >/dev/null 2>&1 || return 1
	rm -rf "$1"/install/*/*/share "$1"/install/*/share
	find "$1/install" -type f -perm -1 -exec strip -g {} + 2>/dev/null
	# Files of the kernel that runs in the guest, and the modules of its initramfs.
	cp "$cache/vmlinuz" "$1/" || return 1
	zcat "$cache/initramfs" | (cd "$1" && cpio -id --quiet 'm/*') || return 1
	cp "$cache/module/fake_intel_pt.ko" "$src"/guest/*.sh "$1/"
	# The installed service, and its test cases.
	mkdir -p "$1/service" && cp "$build"/systemd/*.service "$src"/../../systemd/*.socket \
		"$src"/../system/service/lib.sh \
		"$src"/../system/service/cases.sh "$src"/../system/service/units/broken.service \
		"$1/service/" || return 1
	cp "$src/../../systemd/sysusers.d/ptsnap.conf" "$1/service/sysusers.conf"
	cp "$src/../../systemd/tmpfiles.d/ptsnap.conf" "$1/service/tmpfiles.conf"
	chmod 755 "$1/run.sh"
	[ -z "${PTSNAP_VM_ONLY:-}" ] || sed -i "s/^# Runs/ONLY='$PTSNAP_VM_ONLY'\n&/" "$1/run.sh"
}

reason=$(bash "$guest/build.sh" "$cache" 2>&1)
case $? in
0) [ -z "$reason" ] || echo "$reason" ;;
77) echo "1..0 # SKIP ${reason##*$'\n'}"; exit 0 ;;
*) echo "$reason" | sed 's/^/# /'; echo "Bail out! the VM cannot be built"; exit 1 ;;
esac
pack "$work/in" || { echo "Bail out! not all programs are there"; exit 1; }
t0=$SECONDS
bash "$guest/boot.sh" "$cache" "$work/in" "$out" 2 "${PTSNAP_VM_SECONDS:-1800}"
booted=$?
tr -d '\r' <"$out/tap"
echo "# the guest ran for $((SECONDS - t0)) s"
if [ $booted != 0 ] || ! grep -q '^1\.\.' "$out/tap"; then
	tail -n 40 "$out/console" | tr -d '\r' | sed 's/^/# /'
	echo "Bail out! the guest did not come to its end"
	exit 1
fi
