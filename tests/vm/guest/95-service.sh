# The service with its own units, on the fake PMU. Runs last, because the cases redefine functions.
UNITS=/etc/systemd/system
OUT=$PWD/out
show() { tail -n 20 "$1" | cut -c1-300 | sed 's/^/# /' >/dev/ttyS1; }
. ./service/lib.sh
. ./service/cases.sh

PREFIX=$(sed -n 's,^ExecStart=\(.*\)/sbin/ptsnapd.*,\1,p' service/ptsnapd.service)
PATH=$PREFIX/sbin:$PREFIX/bin:$PATH
export ASAN_OPTIONS=detect_leaks=0

install_service() {
	mkdir -p "$PREFIX/sbin" "$PREFIX/bin" "$PREFIX/libexec/ptsnap" "$PREFIX/lib/sysusers.d" \
		"$PREFIX/lib/tmpfiles.d"
	cp ptsnapd "$PREFIX/sbin/" && cp ptsnapctl "$PREFIX/bin/" &&
		cp ptsnap-decode "$PREFIX/libexec/ptsnap/" && cp service/*.s* $UNITS/ &&
		cp service/sysusers.conf "$PREFIX/lib/sysusers.d/ptsnap.conf" &&
		cp service/tmpfiles.conf "$PREFIX/lib/tmpfiles.d/ptsnap.conf"
}
add_user() { # NAME NUMBER
	echo "$1:x:$2:$2::/:/bin/sh" >>/etc/passwd
	echo "$1:x:$2:" >>/etc/group
}

write_settings() {
	printf '[Trace]\nSource=intel_pt\n[Rings]\nRingSize=1M\nSidebandRingSize=64K\n'
}
begin_trace() { load; }
end_trace() { :; }
walk() { # SEED [USER]: a process that branches, on CPU 1
	local started
	[ -z "${2:-}" ] || export WALK_UID=$(id -u "$2")
	started=$(./feeder walk 1 "$1" 100 "$PWD/ptsnap-walk" /dev/null)
	unset WALK_UID
	sleep 0.5
	kill "${started% *}"
}
before_client() { walk 7; }
before_reload() { walk 8; }
before_users() {
	walk 9 alice
	walk 10 bob
}

# An emulated processor is slow.
BACK_MSEC=20000
WATCHDOG_SEC=8
# PREFIX lies there in make distcheck.
case $PREFIX in
/tmp/* | /var/tmp/* | /home/* | /root/*)
	skipped "the service's cases" "its units may not see what is in $PREFIX"
	return
	;;
esac
check "the service is installed" install_service
add_user alice 1001
add_user bob 1002
add_user carol 1003
add_user eve 1004
# With Debian's kernel, a unit without CAP_SYS_ADMIN needs this (systemd/sysctl.d).
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
echo 2 >/proc/sys/kernel/perf_event_paranoid
prepare_host
for case in start access client alone users signal failure coredump journal reload watchdog crash stop; do
	"case_$case"
done
echo "$paranoid" >/proc/sys/kernel/perf_event_paranoid
journalctl -o short-monotonic --no-hostname >out/journal 2>&1
