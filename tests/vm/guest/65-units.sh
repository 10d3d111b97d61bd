# The units as make install leaves them, under a real systemd on cgroup v2, and a kernel with Debian's
# perf_event_paranoid of 3.
UNITS=$(find "$PWD/install" -name ptsnapd.service)
case $UNITS in
"$PWD"/install/usr/*lib/systemd/system/*) have_units=yes ;;
*) have_units=no; note "units are installed where this systemd does not look: ${UNITS:-nowhere}" ;;
esac
VENDOR=/${UNITS#"$PWD"/install/}
VENDOR=${VENDOR%/systemd/system/*}/ptsnap
ETC=/etc/systemd/system/ptsnapd.service.d
DECODER=/etc/systemd/system/ptsnap-decode@.service.d
# Here a system call that the units do not allow kills the process, instead of failing unnoticed.
STRICT="SystemCallErrorNumber="
LOCAL="Environment=ASAN_OPTIONS=detect_leaks=0\nStandardError=append:$LOG\n$STRICT"

# Small rings of 1 MiB make the tests faster.
install_units() {
	cp -r install/. / && systemd-sysusers && systemd-tmpfiles --create ptsnap.conf || return 1
	mkdir -p $ETC $DECODER /etc/ptsnap
	printf "[Service]\n$STRICT\n" >$DECODER/80-local.conf
	printf "[Service]\n$LOCAL\n" >$ETC/80-local.conf
	printf '[Rings]\nRingSize=1M\n' >/etc/ptsnap/ptsnapd.conf
	systemctl daemon-reload
}
remove_units() {
	systemctl stop ptsnapd.socket ptsnap-decode.socket ptsnapd.service
	(cd install && find . -type f -path '*/systemd/*') | (cd / && xargs rm -f)
	rm -rf $ETC $DECODER /etc/ptsnap
	systemctl daemon-reload
	systemctl reset-failed
}
show() { systemctl show -P "$1" "${2:-ptsnapd.service}"; }
# DROP-IN...: starts the recorder with these drop-ins only.
with() {
	local name
	systemctl stop ptsnapd.service
	rm -f $ETC/[0-7]*.conf $ETC/[a-z]*.conf
	for name; do
		cp "$VENDOR/drop-ins/$name.conf" $ETC/ || return 1
	done
	systemctl daemon-reload
	systemctl reset-failed ptsnapd.service 2>/dev/null
	systemctl start ptsnapd.service || { systemctl status ptsnapd.service; tail -n 5 "$LOG"; return 1; }
}
both_tracing() { is "$(pmu 0 on)$(pmu 1 on)" 11; }

# NAME CLASS: checks the scheduling class of the recorder's thread NAME.
thread_is() {
	local task
	for task in /proc/"$(show MainPID)"/task/*; do
		[ "$(cat "$task/comm")" != "$1" ] || { is "$(cut -d' ' -f41 "$task/stat")" "$2"; return; }
	done
	echo "no thread $1"
	return 1
}

refused_at_3() {
	: >"$LOG"
	fails with 2>/dev/null || return 1
	is "$(show ExecMainStatus) $(show NRestarts)" "4 0" && said "perf_event_paranoid"
}
traces_with_admin() { with paranoid3 && both_tracing; }
traces_at_2() {
	paranoid 3
	sed 's/ //g' $VENDOR/sysctl.d/60-ptsnap-paranoid.conf | grep -v '^#' | while IFS='=' read -r key value; do
		echo "$value" >"/proc/sys/$(echo "$key" | tr . /)"
	done
	is "$(cat /proc/sys/kernel/perf_event_paranoid)" 2 && with && both_tracing
}
as_it_should() {
	local pid
	pid=$(show MainPID)
	is "$(ps_uid "$pid")" "$(id -u ptsnap)" || return 1
	# PERFMON, SYSLOG, SYS_PTRACE, IPC_LOCK, DAC_READ_SEARCH, CHECKPOINT_RESTORE
	is "$(sed -n 's/^CapEff:\t//p' "/proc/$pid/status")" 0000014400084004 || return 1
	is "$(sed -n 's/^CapBnd:\t//p' "/proc/$pid/status")" 0000014400084004 || return 1
	is "$(stat -c '%a %U %G' $SOCKET /run/ptsnap/decode | tr '\n' ,)" \
		"660 root ptsnap-users,600 ptsnap ptsnap," || return 1
	is "$(stat -c '%a %U' /var/lib/ptsnap)" "750 ptsnap"
}
ps_uid() { sed -n 's/^Uid:\t\([0-9]*\).*/\1/p' "/proc/$1/status"; }
quick_threads() { thread_is ptsnap-drain 1 && thread_is ptsnap-pt 1; }
reports() {
	feed 0 1000
	ctl -q snapshot --reason=units -o report.json || return 1
	is "$(jq -r .trigger.reason report.json)" units && is "$(show NAccepted ptsnap-decode.socket)" 1
}
checks() {
	ctl check >said.txt || { cat said.txt; return 1; }
	fails grep -vE '^(ok|note) ' said.txt
}
knows_of_cpus() {
	echo 0 >/sys/devices/system/cpu/cpu1/online
	within 3 cpu_is 1 offline
	local r=$?
	echo 1 >/sys/devices/system/cpu/cpu1/online
	[ $r = 0 ] && within 3 cpu_is 1 tracing && fails grep "no messages of the kernel" "$LOG"
}
limits_follow() {
	local before
	before=$(show MemoryMax)
	printf '[Rings]\nRingSize=1M\nTimelineMax=256M\n[Service]\nDecodeMemoryMax=1G\n' >/etc/ptsnap/ptsnapd.conf
	systemctl daemon-reload
	is "$(show MemoryMax ptsnap-decode@x.service)" $((1280 << 20)) || return 1
	# An eighth more, so that the kernel reclaims memory before it kills.
	is "$(show MemoryMax)" $((before + (192 << 20) * 9 / 8))
}
is_killed_when_it_hangs() {
	local pid
	printf '[Service]\nWatchdogSec=2s\n' >$ETC/70-quick.conf
	systemctl daemon-reload
	systemctl restart ptsnapd.service || return 1
	pid=$(show MainPID)
	kill -STOP "$pid"
	within 20 lives_again "$pid" || return 1
	is "$(show NRestarts)" 1 && both_tracing
}
lives_again() { [ "$(show MainPID)" != "$1" ] && [ "$(show SubState)" = running ]; }
reads_kcore() {
	printf '[Trace]\nTrace=both\n[Rings]\nRingSize=1M\n' >/etc/ptsnap/ptsnapd.conf
	with && ctl check >said.txt
	grep -q "^warning *kernel-text.*kernel-text.conf" said.txt || { cat said.txt; return 1; }
	with kernel-text && ctl check >said.txt
	grep -q "^ok *kernel-text" said.txt || { cat said.txt; return 1; }
}
unit_fails() {
	mkdir -p /etc/systemd/system/service.d
	cp $VENDOR/drop-ins/10-ptsnap-snapshot.conf /etc/systemd/system/service.d/
	printf '[Service]\nExecStart=/bin/false\n' >/run/systemd/system/broken.service
	systemctl daemon-reload
	is "$(show OnFailure broken.service)" ptsnap-snapshot@broken.service.service &&
		is "$(show OnFailure)$(show OnFailure ptsnap-decode@x.service)" "" &&
		is "$(show OnFailure ptsnap-snapshot@x.service)" "" || return 1
	systemctl start broken.service 2>/dev/null
	within 20 is_listed unit
	local r=$?
	rm -r /etc/systemd/system/service.d /run/systemd/system/broken.service
	systemctl daemon-reload
	return $r
}
is_listed() { ctl --json=short list | jq -e "select(.trigger == \"$1\")" >/dev/null; }
switched_off() {
	systemctl stop ptsnapd.socket ptsnapd.service
	: >/run/ptsnap/disabled
	systemctl start ptsnapd.service 2>/dev/null
	is "$(show ActiveState)" inactive || return 1
	rm /run/ptsnap/disabled
	systemctl start ptsnapd.socket && ctl status >/dev/null && is "$(show ActiveState)" active
}
degraded() {
	systemctl stop ptsnapd.service
	unload
	with && is "$(status .state) $(show NRestarts)" "degraded 0"
}

if [ $have_units = yes ]; then
	paranoid() { echo "$1" >/proc/sys/kernel/perf_event_paranoid; }
	load
	check "units: users, directories, a reload" install_units
	paranoid 3
	check "units: paranoid 3, as installed: refused once, and why" refused_at_3
	check "units: paranoid 3, with paranoid3.conf: traces" traces_with_admin
	check "units: with 60-ptsnap-paranoid.conf: traces" traces_at_2
	check "units: user, capabilities, sockets, directories" as_it_should
	check "units: the threads that must not wait do not" quick_threads
	check "units: check finds nothing in the way" checks
	check "units: a report, made by the decoder's unit" reports
	check "units: news of CPUs come in" knows_of_cpus
	check "units: a service that fails has a snapshot taken, our own have none" unit_fails
	check "units: memory limits follow from the configuration" limits_follow
	check "units: a recorder that hangs is killed, and lives again" is_killed_when_it_hangs
	check "units: the kernel's code is read with kernel-text.conf alone" reads_kcore
	check "units: /run/ptsnap/disabled switches it off, a client starts it" switched_off
	check "units: without the PMU it starts degraded" degraded
	remove_units
	paranoid 3
fi
