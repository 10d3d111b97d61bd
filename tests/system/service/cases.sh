# The service's cases, each a function; CASES is their order. Run by guest.sh in a container and by
# the VM's 95-service.sh. The place gives: write_settings, begin_trace, end_trace, before_client,
# before_users, before_reload, tap, show, up; PREFIX, OUT. Users: alice and bob may use the recorder, carol is an administrator, eve is nobody.
CASES="start limits access client alone pinned everybody users lines excluded signal failure watch journal reload conditions watchdog crash stop degraded
	drop_ins disabled scores"
CONF=/etc/ptsnap/ptsnapd.conf.d
BACK_MSEC=2000 # from a recorder's death to READY
WATCHDOG_SEC=3

# Prepares the host as packages and administrators do.
prepare_host() {
	mkdir -p $CONF /etc/systemd/system/ptsnapd.service.d
	{
		write_settings
		printf '[Limits]\nTriggerBurst=0\nUserBurst=0\n'
	} >$CONF/50-test.conf
	# The watchdog is short, so that a hang is seen soon; ASAN_OPTIONS is for sanitizers.
	printf '[Service]\nWatchdogSec=%s\nEnvironment=ASAN_OPTIONS=detect_leaks=0\n' $WATCHDOG_SEC \
		>/etc/systemd/system/ptsnapd.service.d/50-test.conf
	for unit in ptsnap-decode@ ptsnap-snapshot@; do
		mkdir -p "/etc/systemd/system/$unit.service.d"
		printf '[Service]\nEnvironment=ASAN_OPTIONS=detect_leaks=0\n' \
			>"/etc/systemd/system/$unit.service.d/50-test.conf"
	done
	systemd-sysusers "$PREFIX/lib/sysusers.d/ptsnap.conf"
	systemd-tmpfiles --create "$PREFIX/lib/tmpfiles.d/ptsnap.conf"
	add_to ptsnap-users alice
	add_to ptsnap-users bob
	add_to ptsnap-users carol
	add_to ptsnap-admin carol
	systemctl daemon-reload
}

# GROUP USER
add_to() {
	grep -q "^$1:.*[:,]$2\(,\|\$\)" /etc/group ||
		sed -i "/^$1:/{s/\$/,$2/;s/:,/:/}" /etc/group
}

answers() { ctl -q status; }
tracing() { is "$(status .state)" tracing; }

case_start() {
	check "the machine's unit starts" begin_trace
	check "the recorder starts, and says READY" systemctl start ptsnapd.service
	check "as active (running)" is "$(unit ptsnapd.service SubState)" running
	check "not as root" is "$(stat -c %U "/proc/$(main_pid)")" ptsnap
	check "its socket is the group's" is "$(stat -c '%a %G' /run/ptsnap/io.ptsnap.recorder)" \
		"660 ptsnap-users"
	check "it traces" within 10 tracing
}

# By ptsnap-generator, from the sizes of the rings.
case_limits() {
	check "the generator has computed the units' limits" \
		has "$(unit ptsnapd.service DropInPaths) $(unit ptsnap-decode@x.service DropInPaths)" \
		/run/systemd/generator
	check "the recorder is below its own" below_limit
}
below_limit() {
	local used limit
	used=$(awk '/^RssAnon/ { print $2 * 1024 }' "/proc/$(main_pid)/status")
	limit=$(unit ptsnapd.service MemoryMax)
	echo "$used of $limit"
	[ "$used" -gt 0 ] && { [ "$limit" = infinity ] || [ "$used" -lt "$limit" ]; }
}

case_access() {
	check "a member of ptsnap-users may ask" as alice ptsnapctl -q status
	check "nobody else: 4" ends 4 as eve ptsnapctl -q status
	check "a member may not pause the recorder: 4" ends 4 as alice ptsnapctl -q yield --for=1s
	ID=$(ctl -q snapshot --no-decode)
	check "nor delete what another took: 4" ends 4 as alice ptsnapctl -q delete "$ID"
	check "an administrator may" as carol ptsnapctl -q delete "$ID"
}

case_client() {
	before_client
	check "a client's snapshot becomes a report" ctl -q snapshot -o "$OUT/client.json"
	check "with instructions in it" jq -e '.totals.instructions > 1000' "$OUT/client.json"
	check "which a unit of its own has decoded" decoded_apart
}
# Not by the recorder itself.
decoded_apart() {
	is "$(unit ptsnap-decode.socket ActiveState)" active &&
		[ "$(unit ptsnap-decode.socket NAccepted)" -ge 1 ]
}

# Where the socket is not: the recorder starts a decoder itself, as its own user.
case_alone() {
	systemctl stop ptsnap-decode.socket
	check "without the decoder's socket a snapshot becomes a report, too" \
		ctl -q snapshot -o "$OUT/alone.json"
	systemctl start ptsnap-decode.socket
}

# A pinned snapshot is pinned in the next recorder, too.
case_pinned() {
	ID=$(ctl -q snapshot --no-decode)
	check "a member may not pin: 4" ends 4 as alice ptsnapctl -q pin "$ID"
	check "an administrator may" as carol ptsnapctl -q pin "$ID"
	check "what is pinned is not deleted" ends 1 as carol ptsnapctl -q delete "$ID"
	systemctl restart ptsnapd.service
	check "it is still pinned after a restart" is "$(list "select(.id == \"$ID\").pinned")" true
	check "and can be unpinned" as carol ptsnapctl -q unpin "$ID"
	check "and deleted" as carol ptsnapctl -q delete "$ID"
	forget_starts
}
# StartLimitBurst= is not meant for so many starts within ten minutes.
forget_starts() { systemctl reset-failed ptsnapd.service; }

STATUS_SOCKET=/run/ptsnap/io.ptsnap.recorder.status
# A second socket, for who may not use the first one.
case_everybody() {
	check "nobody has enabled the socket for everybody" [ ! -e $STATUS_SOCKET ]
	printf '[Access]\nAllowStatusToAll=yes\n' >$CONF/60-everybody.conf
	systemctl stop ptsnapd.service
	check "it starts, and the service with it" systemctl start ptsnapd-status.socket ptsnapd.service
	check "everybody may connect" is "$(stat -c '%a %U' $STATUS_SOCKET)" "666 root"
	check "and to the other one the group alone" is "$(stat -c '%a %G' /run/ptsnap/io.ptsnap.recorder)" \
		"660 ptsnap-users"
	check "who is in no group is told how the recorder is" within 10 eve_hears tracing
	check "and nothing of what others do" is "$(eve_asks 'keys_unsorted - ["version", "state", "source",
		"terms", "pid", "uptimeUSec", "snapshots"] | length')" 0
	check "and gets nothing else: 4" ends 4 as eve ptsnapctl -q list
	check "nor there: 4" ends 4 as eve ptsnapctl --socket=$STATUS_SOCKET -q snapshot
	check "members are told more" is "$(as alice ptsnapctl --json=short status | jq 'has("attrs")')" true
	rm $CONF/60-everybody.conf
	systemctl restart ptsnapd.service
	check "without the setting the socket alone opens nothing: 4" ends 4 as eve ptsnapctl -q status
	systemctl stop ptsnapd-status.socket
	check "without the socket: 4" ends 4 as eve ptsnapctl -q status
	check "the recorder goes on" within 10 tracing
	forget_starts
}
eve_asks() { as eve ptsnapctl --json=short status | jq -r "$1"; }
eve_hears() { is "$(eve_asks .state)" "$1"; }

# The uids of the processes in REPORT.
uids() { jq -c '[.processes[].uid] | unique' "$1"; }
# REPORT UID: it has only that user's processes and threads.
only_of() {
	is "$(uids "$1")" "[$2]" &&
		jq -e '([.processes[].pid] | unique) as $p | .threads | length > 0 and
			all(.pid as $pid | $p | index($pid) != null)' "$1" >/dev/null
}
case_users() {
	before_users
	check "root sees the processes of both users" within 20 both_seen
	for user in alice bob; do
		check "$user sees $user's threads, and nobody else's" within 20 sees_only $user
	done
	check "no text of bob's is in alice's report" fails grep -q "bob" "$OUT/alice.json"
}
sees_only() {
	as "$1" ptsnapctl -q snapshot --json=short >"$OUT/$1.json" &&
		only_of "$OUT/$1.json" "$(id -u "$1")"
}
both_seen() {
	ctl -q snapshot -o "$OUT/root.json" &&
		has "$(uids "$OUT/root.json")" "$(id -u alice),$(id -u bob)"
}

# Lines of a program with DWARF (lines.c), if there is one: read by the decoder's unit, kept with the bundle.
case_lines() {
	[ -x /opt/lines ] || return 0
	check "nobody asked for lines: there are none" within 20 has_program bare
	printf '[Service]\nSourceLines=yes\n' >$CONF/60-lines.conf
	systemctl reload ptsnapd.service
	check "SourceLines=yes: reports have lines and inlined functions" within 20 has_program lines
	check "that decoder did not crash" is "$(jq .namesLeftOut "$OUT/lines.json")" null
	check "the bundle has what they need" decodes_with_lines
	rm $CONF/60-lines.conf
	systemctl reload ptsnapd.service
}
# HOW: a snapshot of the program, which waits in a function that was inlined.
has_program() {
	ctl -q snapshot -o "$OUT/lines.json" && is "$(jq -r "$WAITS" "$OUT/lines.json")" "$1"
}
WAITS='.places as $p | [.threads[] | select(.comm == "lines") | .stack[]? | $p[.] | select(.name == "work")] |
	if length == 0 then "absent"
	elif any(((.file // "") | endswith("/lines.c")) and .inlined[0].name == "rest" and
		(.inlined[0].file | endswith("/lines.c"))) then "lines"
	elif any(has("file") or has("inlined")) then "half" else "bare" end'
decodes_with_lines() {
	ctl fetch "$(jq -r .id "$OUT/lines.json")" --format=bundle -o "$OUT/lines.ptsnap" &&
		ptsnapctl decode --lines --report-size=192K -o "$OUT/again.json" "$OUT/lines.ptsnap" &&
		is "$(jq -c "[.threads, .places]" "$OUT/again.json")" "$(jq -c "[.threads, .places]" "$OUT/lines.json")"
}

# Whom ExcludeUsers= names is not decoded for anybody.
case_excluded() {
	printf '[Access]\nExcludeUsers=bob\n' >$CONF/60-excluded.conf
	systemctl restart ptsnapd.service
	check "an excluded user's threads are in nobody's report" within 20 without_bob
	check "which says that somebody's are missing" has "$(jq -c .gapCounts "$OUT/excluded.json")" excluded
	rm $CONF/60-excluded.conf
	systemctl restart ptsnapd.service
}
without_bob() {
	ctl -q snapshot -o "$OUT/excluded.json" &&
		jq -e --argjson bob "$(id -u bob)" '([.processes[] | select(.uid == $bob).pid]) as $p |
			.totals.instructions > 0 and .gapCounts.excluded > 0 and
			all(.threads[]; .pid as $pid | $p | index($pid) == null)' "$OUT/excluded.json"
}

case_signal() {
	systemctl kill --kill-who=main -s USR2 ptsnapd.service
	check "systemctl kill -s USR2 takes a snapshot" within 10 list_has trigger signal
	check "the recorder goes on" answers
	# Whoever waits for its end may wait long: containers are not told of empty control groups.
	systemd-run -q --collect --unit=asker.service -p TimeoutStopSec=1s \
		sh -c "kill -USR2 $(main_pid) && sleep 2"
	check "a signal's sender is named by its unit" within 10 list_has senderUnit asker.service
}

case_failure() {
	systemctl start broken.service 2>/dev/null
	check "a failing unit takes a snapshot" within 10 list_has trigger unit
	check "which names the unit" list_has 'unit' broken.service
	check "and how it failed, as systemd says it" has \
		"$(list 'select(.unit == "broken.service") | "\(.reason) \(.labels.result)"')" \
		"broken.service failed: exit-code, exited 7 exit-code"
	check "and who asked" list_has senderUnit ptsnap-snapshot@broken.service.service
	check "the snapshot's own unit has not failed" \
		fails systemctl -q is-failed ptsnap-snapshot@broken.service.service
}

# In the VM alone: a container's core files are its host's.
COREDUMPS=/var/lib/systemd/coredump
# UNIT COMMAND: a unit of which a process ends by SIGSEGV after COMMAND; NAMED: what its snapshot names.
crash() {
	printf '[Unit]\nOnFailure=ptsnap-snapshot@%%n.service\n[Service]\nType=oneshot\n%s\n' \
		"ExecStart=/bin/bash -c '$2; kill -SEGV \$\$\$\$'" >"/run/systemd/system/$1"
	systemctl daemon-reload
	systemctl start "$1" 2>/dev/null
	is "$(unit "$1" Result)" core-dump || return 1
	within 60 crash_is "$1" done || return 1
	NAMED=$(list "select(.unit == \"$1\") | .coredump // \"\"")
}
crash_is() { is "$(list "select(.unit == \"$1\").state")" "$2"; }
# UNIT SUFFIX: the file is there, whole, and that of the unit's process.
names_core_of() {
	local pid
	pid=$(unit "$1" ExecMainPID)
	case $NAMED in
	"core.bash.0.$(tr -d - </proc/sys/kernel/random/boot_id).$pid."*[0-9]"$2") ;;
	*) echo "the snapshot of process $pid names '$NAMED'"; return 1 ;;
	esac
	[ -s "$COREDUMPS/$NAMED" ] || { ls -l $COREDUMPS; return 1; }
}
crashes() { crash "$1" "${3:-:}" && names_core_of "$1" "$2"; }
in_report() { # UNIT
	ctl fetch "$(list "select(.unit == \"$1\").id")" --format=report -o "$OUT/crash.json" &&
		is "$(jq -r .trigger.coredump "$OUT/crash.json")" "$NAMED"
}
# NAME: of a group of a user's own, below a unit's; a process of it crashes.
stranger() {
	printf 'd=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/%s\n%s\n' "$1" \
		'mkdir $d && echo $$ >$d/cgroup.procs && exec bash -c '\''sleep 1; kill -SEGV $$'\' >/run/stranger
	systemd-run -q --wait --collect --unit=stranger -p User=alice -p Delegate=yes bash /run/stranger
	within 5 alice_crashed
}
alice_crashed() { has "$(ls $COREDUMPS)" "core.bash.$(id -u alice)."; }
keep_coredumps() { # SETTING
	mkdir -p /run/systemd/coredump.conf.d
	printf '[Coredump]\n%s\n' "$1" >/run/systemd/coredump.conf.d/test.conf
}
case_coredump() {
	systemctl start systemd-coredump.socket
	check "the kernel gives core files to systemd-coredump" \
		has "$(cat /proc/sys/kernel/core_pattern)" /systemd-coredump
	check "the core file of a unit that crashes is named" crashes crash.service .zst
	check "in its report, too" in_report crash.service
	check "users are not told" is "$(as alice ptsnapctl --json=short list | jq -r '.coredump // empty')" ""
	check "one that takes its time to write is named" crashes crash-large.service .zst \
		'x=$(head -c 40M /dev/urandom | base64 -w 0)'
	keep_coredumps Compress=no
	check "one that is not compressed is, too" crashes crash-plain.service ""
	check "a user's process crashes in a group with a unit's name" stranger crash-none.service
	keep_coredumps Storage=none
	check "where no core files are kept the snapshot is taken" crash crash-none.service :
	check "and names none, nor the user's" is "$NAMED" ""
	rm -r /run/stranger /run/systemd/coredump.conf.d /run/systemd/system/crash*.service
	systemctl daemon-reload
}

# How often trigger "watched" was asked for, whatever came of it.
watched() { status '[.triggers[] | select(.name == "watched") | .fired + .joined + .refused + .limited] | add // 0'; }
# Nothing new for a while.
watched_settles_at() {
	sleep 3
	is "$(watched)" "$1"
}
# systemd's own signals on the bus: of a unit that is started again there is no OnFailure=.
case_watch() {
	[ -S /run/dbus/system_bus_socket ] || {
		skipped "units that fail are watched" "no system bus"
		return
	}
	mkdir -p /etc/ptsnap/triggers.d
	printf '[Trigger]\nOn=unit\nUnits=watched*.service\nWatch=yes\nDecode=no\nBurst=0\n' \
		>/etc/ptsnap/triggers.d/watched.conf
	printf '[Unit]\nStartLimitIntervalSec=60\nStartLimitBurst=3\n[Service]\nRestart=on-failure\nRestartSec=500ms\n%s\n' \
		"ExecStart=/bin/sh -c 'sleep 0.2; kill -SEGV \$\$\$\$'" >/run/systemd/system/watched.service
	systemctl daemon-reload
	check "a trigger that watches is taken by a reload" systemctl reload ptsnapd.service
	check "the bus is there" within 10 journal_has -u ptsnapd.service --grep="watching units that fail"
	systemctl start watched.service
	check "a unit that is started again is seen when it fails" within 10 list_has name watched
	check "with the reason" has "$(list 'select(.name == "watched").reason')" "watched.service failed: "
	check "each of its three runs is one failure" watched_settles_at 3
	systemctl daemon-reload
	check "and none is told again" watched_settles_at 3
	printf '[Service]\nType=oneshot\nExecStart=/bin/false\n' >/run/systemd/system/watched-once.service
	systemctl daemon-reload
	systemctl start watched-once.service 2>/dev/null
	check "a oneshot unit is seen once" watched_settles_at 4
	rm /etc/ptsnap/triggers.d/watched.conf /run/systemd/system/watched*.service
	systemctl daemon-reload
	systemctl reload ptsnapd.service
	check "without that trigger nobody watches" is "$(watched)" 0
}

journal_has() { [ -n "$(journalctl -q -o cat "$@")" ]; }
# By fields, as scripts ask.
case_journal() {
	check "the journal of the unit that failed names the snapshot" \
		within 10 journal_has UNIT=broken.service PTSNAP_TRIGGER=unit _SYSTEMD_UNIT=ptsnapd.service
	check "that the recorder is ready has an ID" \
		journal_has MESSAGE_ID=8607353630e94a41b4885beb621d4e79 _UID="$(id -u ptsnap)"
	check "that a report is stored has one, too" \
		journal_has MESSAGE_ID=59d4eea1815d42fa8ced3e37df686be1
}

# SINCE (of /proc/uptime): the report reaches back to before it, as it does not with new rings.
reaches_back() {
	ctl -q snapshot -o "$OUT/after.json" &&
		jq -e --argjson ago "$(up | awk -v since="$1" '{ print int(($1 - since) * 1e9) }')" \
			'[.cpus[].gotNSec] | max > $ago' "$OUT/after.json"
}
case_reload() {
	local pid since
	pid=$(main_pid)
	before_reload
	since=$(up)
	printf '[Service]\nMaxSnapshots=77\n' >$CONF/60-reload.conf
	check "systemctl reload" systemctl reload ptsnapd.service
	check "the same process goes on" is "$(main_pid)" "$pid"
	check "it traces" within 5 tracing
	check "what was traced before is still there" reaches_back "$since"
	printf '[Service]\nMaxSnapshots=nonsense\n' >$CONF/60-reload.conf
	check "a wrong file does not stop it" systemctl reload ptsnapd.service
	check "it answers" within 5 answers
	rm $CONF/60-reload.conf
	systemctl reload ptsnapd.service
}

# NAME JQ-EXPRESSION of a trigger.
trigger() { ctl --json=short trigger list | jq -r ".[] | select(.name == \"$1\") | $2"; }
fired() { is "$(trigger "$1" .fired)" 1; }
is_event() { is "$(trigger "$1" .lastEvent)" "$2"; }
# PART OPTION...: the trigger is refused, and the message has PART.
add_refused() {
	local said part=$1
	shift
	said=$(ctl trigger add wrong "$@" 2>&1) && return 1
	has "$said" "$part"
}
# CAP_SYS_RESOURCE is bit 24 (linux/capability.h).
may_exceed() { [ $((0x$(awk '$1 == "CapBnd:" { print $2 }' /proc/1/status) >> 24 & 1)) = 1 ]; }
# The container gives the service a /dev/kmsg that is no log; that the service sees it is the drop-in's doing.
with_kernel_log() {
	cp "$PREFIX/lib/ptsnap/drop-ins/kernel-log.conf" /etc/systemd/system/ptsnapd.service.d/70-drop-in.conf
	systemctl daemon-reload
	systemctl restart ptsnapd.service && within 5 answers
	fails add_refused "/dev/kmsg: No such file" --kernel-log=oops
}
case_conditions() {
	mkdir /run/shop /run/shop/watched
	mkfifo /run/shop/slow
	chown alice:ptsnap /run/shop/slow
	chmod 0660 /run/shop/slow
	printf 'load 1\n' >/run/shop/m.prom
	check "the service arms a FIFO" ctl trigger add fifo --fifo=/run/shop/slow --decode=no
	check "a folder" ctl trigger add path --path-appears='/run/shop/watched/*' --decode=no
	check "a file of metrics" ctl trigger add metric --metric-file=/run/shop/m.prom --metric=load \
		--metric-above=5 --decode=no
	check "an owner of the FIFO fires it" as alice sh -c 'echo x >/run/shop/slow'
	check "there is a snapshot" within 10 fired fifo
	check "with the event as its reason" within 10 list_has reason "a program wrote to /run/shop/slow"
	check "a file of another user" as root touch /run/shop/watched/a
	check "is an event" within 10 is_event path "/run/shop/watched/a appeared"
	check "bob may not add triggers" ends 4 as bob ptsnapctl trigger add x --fifo=/run/shop/slow
	check "without the drop-in, no kernel log" add_refused "/dev/kmsg: No such file" --kernel-log=oops
	if [ -r /proc/pressure/memory ]; then
		check "without CAP_SYS_RESOURCE, no window of 1 s" add_refused "CAP_SYS_RESOURCE" \
			--pressure=memory --pressure-window=1s
		check "with the drop-in pressure it starts" starts_with pressure
	fi
	if [ -r /proc/pressure/memory ] && may_exceed; then
		check "and arms a window of 1 s" ctl trigger add short --pressure=memory --pressure-window=1s
	else
		skipped "and arms a window of 1 s" "no PSI, or this host gives nobody CAP_SYS_RESOURCE"
	fi
	check "with the drop-in kernel-log, /dev/kmsg is there" with_kernel_log
	rm /etc/systemd/system/ptsnapd.service.d/70-drop-in.conf
	systemctl daemon-reload
	systemctl restart ptsnapd.service
	check "it goes on without them" within 5 tracing
}

# Microseconds of CLOCK_MONOTONIC.
stamp() { unit ptsnapd.service "$1TimestampMonotonic"; }
# N: more restarts than that, and it runs.
restarted() {
	[ "$(unit ptsnapd.service NRestarts)" -gt "$1" ] && is "$(unit ptsnapd.service SubState)" running
}
restarts() { unit ptsnapd.service NRestarts; }
# From its death to READY; a host that was busy just then gets another chance, and a third.
back_soon() {
	local gap before
	for try in 1 2 3; do
		gap=$(($(stamp ActiveEnter) - $(stamp ActiveExit)))
		note "from death to READY: $((gap / 1000)) ms"
		[ $gap -le 0 ] || [ $gap -gt $((BACK_MSEC * 1000)) ] || return 0
		before=$(restarts)
		kill -KILL "$(main_pid)"
		within 20 restarted "$before" || return 1
	done
	return 1
}
case_watchdog() {
	local pid before
	pid=$(main_pid) before=$(restarts)
	kill -STOP "$pid"
	check "a recorder that hangs is killed and started again" within 40 restarted "$before"
	check "soon after its death" back_soon
	check "it is another process" fails is "$(main_pid)" "$pid"
	check "and traces" within 5 tracing
	check "its snapshots are reports" ctl -q snapshot -o "$OUT/recovered.json"
}

# A decoder takes its time: what is asked for now is being decoded in a moment.
slow_decoder() {
	printf '[Service]\nExecStartPre=/bin/sleep 3\n' \
		>/etc/systemd/system/ptsnap-decode@.service.d/60-slow.conf
	systemctl daemon-reload
}
quick_decoder() {
	rm /etc/systemd/system/ptsnap-decode@.service.d/60-slow.conf
	systemctl daemon-reload
}
decoding() { is "$(list "select(.id == \"$1\").state")" decoding; }

# Its sealed snapshots outlive it in systemd's hands.
case_crash() {
	local id before
	slow_decoder
	id=$(ctl -q snapshot --no-wait)
	check "a snapshot is being decoded" within 10 decoding "$id"
	quick_decoder
	before=$(restarts)
	kill -KILL "$(main_pid)"
	check "a recorder that dies is started again" within 20 restarted "$before"
	check "soon after that" back_soon
	check "what it had not decoded is decoded" within 30 has_report "$id"
}
has_report() { ctl fetch "$1" --format=report -o "$OUT/kept.json"; }

case_stop() {
	local id
	slow_decoder
	id=$(ctl -q snapshot --no-wait)
	check "a snapshot is being decoded again" within 10 decoding "$id"
	check "it stops while it decodes" timeout 20 systemctl stop ptsnapd.service
	check "without a failure" is "$(unit ptsnapd.service Result)" success
	check "the bundle is kept" [ -s "/var/lib/ptsnap/$id.ptsnap" ]
	quick_decoder
	end_trace
}

# A host without PT, or where nothing may be traced.
case_degraded() {
	mv $CONF/50-test.conf 50-test.conf
	printf '[Trace]\nSource=intel_pt\n' >$CONF/50-none.conf
	check "without a PMU the unit starts, and says READY" systemctl start ptsnapd.service
	check "degraded" is "$(status .state)" degraded
	check "ptsnapctl check says so: 6" ends 6 ctl -q check
	check "a snapshot becomes a report, which says so" \
		ctl -q snapshot -o "$OUT/degraded.json"
	check "and is of all that runs" jq -e '.trace.degraded and (.processes | length > 3)' \
		"$OUT/degraded.json"
}

starts_with() { # DROP-IN
	cp "$PREFIX/lib/ptsnap/drop-ins/$1.conf" /etc/systemd/system/ptsnapd.service.d/70-drop-in.conf
	systemctl daemon-reload
	systemctl restart ptsnapd.service && within 5 answers
}
case_drop_ins() {
	for name in kernel-text bpf-text paranoid3; do
		check "with the drop-in $name it starts" starts_with $name
	done
	rm /etc/systemd/system/ptsnapd.service.d/70-drop-in.conf
	systemctl daemon-reload
	systemctl stop ptsnapd.service ptsnapd.socket
}

case_disabled() {
	touch /run/ptsnap/disabled
	systemctl start ptsnapd.service 2>/dev/null
	check "/run/ptsnap/disabled keeps it from starting" \
		is "$(unit ptsnapd.service ActiveState)" inactive
	rm /run/ptsnap/disabled
	check "and no longer when it is gone" systemctl start ptsnapd.service
	check "its socket is there again" within 5 answers
	systemctl stop ptsnapd.service ptsnapd.socket
	rm $CONF/50-none.conf
	mv 50-test.conf $CONF/
}

# Tenths; the file's own name, as systemd's options of the boot do not count here.
case_scores() {
	check "the recorder's score is at most 2.2" \
		systemd-analyze security --no-pager --threshold=22 ptsnapd.service
	check "the decoder's at most 0.5" systemd-analyze security --no-pager --offline=yes \
		--threshold=5 "$PREFIX/lib/systemd/system/ptsnap-decode@.service"
}
