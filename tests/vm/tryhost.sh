#!/bin/bash
# Installs ptsnap in a scratch root, runs ptsnap-tryhost there, and prints the results as TAP.
work=$(mktemp -d -p /var/tmp) || exit 1
trap 'rm -rf "$work"' EXIT
export PTSNAP_VM_CACHE=${PTSNAP_VM_CACHE:-$PTSNAP_BUILDDIR/tests/vm/cache}
reason=$(bash "$PTSNAP_SRCDIR/capture/emu/guest/build.sh" "$PTSNAP_VM_CACHE" 2>&1)
case $? in
0) ;;
77) echo "1..0 # SKIP ${reason##*$'\n'}"; exit 0 ;;
*) echo "$reason" | sed 's/^/# /'; echo "Bail out! the VM cannot be built"; exit 1 ;;
esac
env -u MAKEFLAGS -u MFLAGS make -s -C "$PTSNAP_BUILDDIR" install DESTDIR="$work/root" >/dev/null 2>&1 ||
	{ echo "Bail out! make install"; exit 1; }
program=$(find "$work/root" -name ptsnap-tryhost -type f -perm -1)
n=0
check() { # NAME COMMAND...
	local name=$1
	shift
	n=$((n + 1))
	if "$@" >"$work/said" 2>&1; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		tail -n 20 "$work/said" | sed 's/^/# /'
	fi
}
ends() { # STATUS COMMAND...: OUT has what COMMAND says
	local wanted=$1 got=0
	shift
	OUT=$("$@" 2>&1) || got=$?
	[ "$got" = "$wanted" ] || { echo "status $got, should be $wanted"; echo "$OUT"; return 1; }
}
says() { case $OUT in *"$1"*) ;; *) echo "no '$1' in: $OUT"; return 1 ;; esac; }

check "a wrong option: 2" ends 2 "$program" --cpu=2
check "a wrong model: 2" ends 2 "$program" --cpu-model=486 -- true
check "memory that the trace unit does not reach: 2" ends 2 "$program" --memory=4096M -- true
check "no terminal and no COMMAND: 2" ends 2 "$program" </dev/null
mkdir "$work/bin"
for tool in bash cat cut dirname du mkdir mktemp readlink rm stty uname apt-get; do
	ln -s "$(command -v "$tool")" "$work/bin/"
done
check "without QEMU: 125" ends 125 env PATH="$work/bin" "$program" -- true
check "and says what to install" says "qemu-system-x86"

mkdir "$work/share"
echo "hello from outside" >"$work/share/hello"
# shellcheck disable=SC2016
check "a machine runs COMMAND: its status" ends 7 "$program" --cpus=2 --share="$work/share" -- sh -c '
	export ASAN_OPTIONS=detect_leaks=0
	cat /share/hello
	[ ! -t 1 ] || exit 4
	systemctl is-active ptsnapd
	ptsnapctl -q status || exit 1
	ls -lR /usr/lib | sort | md5sum
	ptsnapctl -q snapshot --no-decode || exit 2
	ptsnapctl -q fetch --format=bundle -o /share/it.ptsnap latest || exit 3
	exit 7'
check "COMMAND has the shared folder" says "hello from outside"
check "the recorder is a service there" says "active"
decoded() {
	PTSNAP_DECODE=$PTSNAP_BUILDDIR/decoder/worker/ptsnap-decode "$PTSNAP_BUILDDIR/ctl/ptsnapctl" decode --json=short \
		"$work/share/it.ptsnap" >"$work/report.json" || return 1
	jq -e '.totals.instructions > 1000 and .host.kernel != null' "$work/report.json" ||
		{ jq -c '.totals, .host' "$work/report.json"; return 1; }
	jq -e '[.functions[].name] | any(. == "do_syscall_64")' "$work/report.json"
}
check "the bundle comes back, and has programs and the kernel" decoded
echo "1..$n"
