#!/bin/bash
# Installs the build into a root that shares the host's /usr, boots systemd in it and says in TAP what
# came of the cases (guest.sh, cases.sh). Called by nspawn.tap. Nothing of the host is changed: /usr is
# read-only, units that would set up the kernel are masked.
set -u
here=$PTSNAP_SRCDIR/tests/system/service
build=$PTSNAP_BUILDDIR
PATH=$PATH:/usr/sbin:/sbin
seconds=${PTSNAP_NSPAWN_SECONDS:-180}

skip() { echo "1..0 # SKIP $*"; exit 0; }
bail() { echo "Bail out! $*"; exit 1; }

check_host() {
	local tool
	[ "$(id -u)" = 0 ] || skip "not root"
	for tool in systemd-nspawn dbus-daemon qemu-x86_64 setpriv jq bash; do
		command -v $tool >/dev/null || skip "no $tool"
	done
	[ -x /usr/lib/systemd/systemd ] || skip "no systemd on this host"
	[ -L /bin ] || skip "/usr is not merged"
	[ -x "$build/capture/emu/ptsnap-emupmu.so" ] || skip "no software PMU"
}

install_build() { # DIR
	env -u MAKEFLAGS -u MFLAGS make -s -C "$build" install DESTDIR="$1" >"$work/install.log" 2>&1 || {
		tail -n 20 "$work/install.log" | sed 's/^/# /'
		bail "make install fails"
	}
	daemon=$(cd "$1" && find . -name ptsnapd -path '*sbin/*' -type f | head -n 1)
	prefix=${daemon#.}
	prefix=${prefix%/*bin/ptsnapd}
	case $prefix in
	/usr/*) ;;
	*) skip "the prefix is $prefix, not below /usr" ;;
	esac
}

user() { # NAME NUMBER
	echo "$1:x:$2:$2::/:/bin/sh" >>"$root/etc/passwd"
	echo "$1:x:$2:" >>"$root/etc/group"
}

make_root() {
	local dir unit
	mkdir -p "$root"/{usr,etc/systemd/system,var/log/journal,run,tmp,proc,sys,dev,root,t,out}
	for dir in bin sbin lib lib64; do
		ln -s usr/$dir "$root/$dir"
	done
	chmod 1777 "$root/tmp"
	cp /usr/share/base-passwd/passwd.master "$root/etc/passwd"
	cp /usr/share/base-passwd/group.master "$root/etc/group"
	user messagebus 100
	user alice 1001
	user bob 1002
	user carol 1003
	user eve 1004
	cp -rL /etc/dbus-1 /etc/ld.so.cache /etc/os-release "$root/etc/"
	[ ! -d /etc/alternatives ] || cp -a /etc/alternatives "$root/etc/"
	echo ptsnap-nspawn >"$root/etc/hostname"
	: >"$root/etc/fstab"
	echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
	# These units would act on the host's kernel, or have nothing to do here.
	for unit in systemd-sysctl.service systemd-binfmt.service systemd-modules-load.service \
		systemd-udevd.service systemd-udev-trigger.service systemd-remount-fs.service \
		systemd-pcrphase.service systemd-pcrphase-sysinit.service \
		systemd-machine-id-commit.service systemd-update-utmp.service \
		systemd-journal-flush.service systemd-logind.service systemd-networkd.service \
		systemd-resolved.service systemd-timesyncd.service systemd-user-sessions.service \
		dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount \
		sys-kernel-tracing.mount sys-fs-fuse-connections.mount sys-kernel-config.mount; do
		ln -s /dev/null "$root/etc/systemd/system/$unit"
	done
	cp "$here"/units/* "$root/etc/systemd/system/"
	mkdir -p "$root/opt"
	! command -v gcc >/dev/null || gcc -O2 -g -o "$root/opt/lines" "$here/lines.c"
}

# Without the two variables nspawn masks /proc/kallsyms and refuses perf_event_open. Under a systemd of
# the host's own the container gets a scope; else there is nobody to ask for one.
boot() {
	local keep=--keep-unit
	[ ! -d /run/systemd/system ] || keep=
	SYSTEMD_NSPAWN_API_VFS_WRITABLE=yes SYSTEMD_SECCOMP=0 timeout -k 5 "$seconds" \
		systemd-nspawn -q -D "$root" -M "ptsnap-test-$$" --register=no $keep --capability=all \
		--console=pipe --overlay-ro="/usr:$work/install/usr:/usr" --bind-ro="$here:/t" \
		--bind="$out:/out" --setenv=PREFIX="$prefix" \
		--setenv=ONLY="${PTSNAP_NSPAWN_ONLY:-}" --boot \
		systemd.unit=cases.target systemd.show_status=0 \
		</dev/null >"$out/console" 2>&1
}

work=$(mktemp -d /tmp/ptsnap-nspawn-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
out=${PTSNAP_NSPAWN_OUT:-$work/out}
root=$work/root
mkdir -p "$out"
: >"$out/tap"
check_host
install_build "$work/install"
make_root
t0=$SECONDS
boot
booted=$?
cat "$out/tap"
echo "# the container ran for $((SECONDS - t0)) s"
if ! grep -q '^1\.\.' "$out/tap"; then
	tail -n 30 "$out/console" | tr -d '\r' | sed 's/^/# /'
	# Where containers cannot be made at all there is not one line of systemd's.
	[ -s "$out/tap" ] || [ -e "$out/began" ] || skip "systemd-nspawn cannot boot here ($booted)"
	bail "the container did not come to its end"
fi
