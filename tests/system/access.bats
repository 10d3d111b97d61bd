# Access rights of root, of the administrators' group and of users; two users must not see each other.

load recorder

setup() {
	recorder_setup
	[ "$(id -u)" -eq 0 ] || skip "not root"
	command -v setpriv >/dev/null || skip "no setpriv"
	SYSTEM=$PTSNAP_SRCDIR/tests/system
	SUPPORT=$PTSNAP_SRCDIR/tests/support
	chmod 0755 "$DIR"
	cp "$CTL" "$DIR/ctl"
}

teardown() {
	recorder_teardown
}

# Starts a recorder to which all users may connect.
start_open() {
	start "$@"
	chmod 0666 "$SOCKET"
}

# as UID[:GROUP] VERB...: runs a verb as that user.
as() {
	local who=$1 groups=--clear-groups
	shift
	case $who in *:*) groups=--groups=${who#*:} ;; esac
	setpriv --reuid="${who%:*}" --regid="${who%:*}" "$groups" "$DIR/ctl" --socket="$SOCKET" "$@"
}

@test "users may take, list and fetch snapshots and do nothing else; administrators may do everything" {
	start_open --admin-group=4711 -- sleep 60
	as 1001 snapshot --reason=mine >/dev/null
	as 1001 status -q
	as 1001 list >/dev/null
	run -4 as 1001 check
	[[ $output == *"Check is for root and members of the group 4711"* ]]
	run -4 as 1001 yield
	# A condition would see files and the kernel's log with the recorder's rights.
	for verb in "trigger list" "trigger add x --path-appears=$DIR/x" "trigger remove x" "trigger test x"; do
		run -4 as 1001 $verb
		[[ $output == *"Trigger"*" is for root and members of the group 4711"* ]]
	done
	as 1002:4711 trigger add x --path-appears="$DIR/x"
	as 1002:4711 trigger remove x
	id=$(as 1001 list | awk 'END { print $1 }')
	run -4 as 1001 delete "$id"
	[[ $output == *"Delete is for root"* ]]
	run -4 as 1001 fetch latest --format=bundle -o "$DIR/x"
	[[ $output == *"Get of a bundle is for root"* ]]
	as 1002:4711 fetch latest --format=bundle -o - >/dev/null
	as 1002:4711 delete "$id"
	run -3 as 1002:4711 delete "$id"
	[ ! -e "$STATE/$id.ptsnap" ]
	stop
	grep -q "deleted by pid [0-9]* (ctl.*), uid 1002" "$DIR/log"
}

@test "an AdminGroup= that the host does not have gives nobody rights, and the log says so once" {
	start_open --admin-group=no-such-group -- sleep 60
	run -4 as 1001 check
	[[ $output == *"Check is for root (the group that AdminGroup="* ]]
	run -4 as 1001 check
	"$CTL" --socket="$SOCKET" reload
	"$CTL" --socket="$SOCKET" reload
	[ "$(grep -c "AdminGroup=no-such-group: this host has no such group" "$DIR/log")" -eq 1 ]
	stop
}

@test "a user learns only that another user's snapshot exists" {
	start_open -- sleep 60
	as 1001 snapshot --reason=first-secret >/dev/null
	"$CTL" --socket="$SOCKET" snapshot --reason=roots-secret >/dev/null
	[ "$("$CTL" --socket="$SOCKET" list --json=short | grep -c secret)" -eq 2 ]
	run -0 as 1001 list --json=short
	[[ $output == *first-secret* && $output != *roots-secret* ]]
	[ "$(as 1001 list --json=short | grep -o '"id":' | wc -l)" -eq 2 ]
	run -0 as 1002 list --json=short
	[[ $output != *secret* && $output != *'"uid":1001'* ]]
	run -0 as 1002 status --json=short
	[[ $output != *'"command"'* && $output != *'"cpus"'* ]]
	stop
}

@test "only the user who asked for a snapshot and administrators learn why it failed" {
	start_open -- sleep 60
	as 1001 snapshot >/dev/null
	stop
	entry=$(echo "$STATE"/*.entry)
	id=$(basename "$entry" .entry)
	python3 - "$entry" <<-'FAILED'
		import json, sys
		e = json.load(open(sys.argv[1])) | {"state": "failed", "error": "word-of-1001"}
		json.dump(e, open(sys.argv[1], "w"))
	FAILED
	rm "$STATE/$id.ptsnap" "$STATE/$id.json"
	start_open -- sleep 60
	for who in 0 1001 1002; do
		run ! as $who fetch "$id" -o -
		echo "$output" >"$DIR/$who"
	done
	grep -q word-of-1001 "$DIR/0"
	grep -q word-of-1001 "$DIR/1001"
	run ! grep -q word-of-1001 "$DIR/1002"
	grep -q "its bundle is not there" "$DIR/1002"
	stop
}

@test "two users see their own threads, and nothing of each other or of root" {
	cat >"$DIR/command" <<-'COMMAND'
		#!/bin/sh
		env -i A_SECRET=1 sort -n -o /dev/null /proc/self/status
		i=0
		while [ $i -lt 300 ]; do i=$((i + 1)); done
		env -i seq 1 5000 >/dev/null
		env -i wc -c /proc/self/maps >/dev/null
	COMMAND
	chmod +x "$DIR/command"
	"$PTSNAPD" --config= --source=emulated --socket="$SOCKET" --state-dir="$STATE" \
		--exit-with-command -- "$DIR/command" 2>"$DIR/log" 3>&-
	bundle=$(echo "$STATE"/*.ptsnap)
	owners=$(python3 - "$bundle" <<-'OWNERS'
		import json, sys, tarfile
		m = json.load(tarfile.open(sys.argv[1]).extractfile("manifest.json"))
		pids = [p["pid"] for p in m["processes"]]
		assert len(pids) >= 3, pids
		print(" ".join(f"{pid}={1001 + i % 2}" for i, pid in enumerate(pids[1:])))
	OWNERS
	)
	python3 "$SUPPORT/split_users.py" "$bundle" "$DIR/split" $owners
	cp "$DIR/split" "$bundle"
	start_open -- sleep 60
	id=$(basename "$bundle" .ptsnap)
	"$CTL" --socket="$SOCKET" fetch "$id" -o "$DIR/full.json"
	for uid in 1001 1002 1003; do
		as $uid fetch "$id" -o - >"$DIR/$uid.json"
		python3 "$SYSTEM/one_user.py" "$DIR/full.json" "$DIR/$uid.json" "$bundle" $uid
		python3 "$SYSTEM/worker_schema.py" "$PTSNAP_SRCDIR/docs/ptsnap-report-2.schema.json" \
			"$DIR/$uid.json"
	done
	# The second time, the recorder sends the report that it remembers.
	as 1001 fetch "$id" -o - | cmp - "$DIR/1001.json"
	run ! cmp -s "$DIR/1001.json" "$DIR/1002.json"
	# The administrator's report has all threads.
	grep -q '"threads": *\[{' "$DIR/full.json"
	stop
}

# part REPORT KEY: prints the value of KEY, a Python subscript.
part() {
	python3 -c 'import json, sys
print(eval("d" + sys.argv[2], {"d": json.load(open(sys.argv[1]))}))' "$1" "$2"
}

@test "nothing of excluded users is decoded, and none of their files and names are kept" {
	run -0 "$PTSNAPD" --config= --source=emulated --socket="$SOCKET" --state-dir="$STATE" \
		--exclude-users=root --exit-with-command -- sh -c 'seq 1 3000 >/dev/null' 3>&-
	report=$(echo "$STATE"/*.json)
	[ "$(part "$report" '["threads"]')" = "[]" ]
	[ "$(part "$report" '["functions"]')" = "[]" ]
	[ "$(part "$report" '["totals"]["instructions"]')" -eq 0 ]
	[ "$(part "$report" '["gapCounts"]["excluded"]')" -gt 0 ]
	run ! grep -q "seq 1 3000" "$report"
	run ! grep -qa "seq 1 3000" "$STATE"/*.ptsnap
	run ! ls "$STATE"/images/*.ranges
}

@test "a reload excludes further users at once; users that it no longer excludes stay excluded until a restart" {
	: >"$DIR/c"
	start --config="$DIR/c" -- sh -c 'while :; do seq 1 300 >/dev/null; done'
	run -0 "$CTL" --socket="$SOCKET" snapshot -o "$DIR/first.json"
	[ "$(part "$DIR/first.json" '["totals"]["instructions"]')" -gt 0 ]
	printf '[Access]\nExcludeUsers=root no-such-user\n' >"$DIR/c"
	run -0 --separate-stderr "$CTL" --socket="$SOCKET" reload
	[[ $stderr == *"ExcludeUsers=no-such-user: this host has no such user"* ]]
	[[ $stderr != *"takes effect after a restart"* ]]
	run -0 "$CTL" --socket="$SOCKET" snapshot -o "$DIR/second.json"
	[ "$(part "$DIR/second.json" '["totals"]["instructions"]')" -eq 0 ]
	[ "$(part "$DIR/second.json" '["gapCounts"]["excluded"]')" -gt 0 ]
	: >"$DIR/c"
	run -0 --separate-stderr "$CTL" --socket="$SOCKET" reload
	[[ $stderr == *"ExcludeUsers=root,no-such-user is no longer said, which takes effect after a restart"* ]]
	run -0 "$CTL" --socket="$SOCKET" snapshot -o "$DIR/third.json"
	[ "$(part "$DIR/third.json" '["totals"]["instructions"]')" -eq 0 ]
	stop
}

@test "an excluded process in a bundle is also a gap for an offline decoder" {
	"$PTSNAPD" --config= --source=emulated --socket="$SOCKET" --state-dir="$STATE" \
		--exit-with-command -- sh -c 'seq 1 3000 >/dev/null; wc -c /proc/self/stat >/dev/null' 2>"$DIR/log" 3>&-
	"$CTL" fetch --format=bundle -o "$DIR/whole" "$STATE"/*.ptsnap
	decode=$PTSNAP_BUILDDIR/decoder/worker/ptsnap-decode
	"$CTL" decode --worker="$decode" --json=short -o "$DIR/before" "$DIR/whole"
	pid=$(python3 -c 'import json, sys
print([t["pid"] for t in json.load(open(sys.argv[1]))["threads"] if t["comm"] == "seq"][0])' "$DIR/before")
	python3 "$SUPPORT/split_users.py" "$DIR/whole" "$DIR/excluded" "$pid=excluded"
	"$CTL" decode --worker="$decode" --json=short -o "$DIR/after" "$DIR/excluded"
	grep -q "\"pid\":$pid,\"tid\"" "$DIR/before"
	[ "$(part "$DIR/after" '["gapCounts"]["excluded"]')" -gt 0 ]
	run ! grep -q "\"pid\":$pid,\"tid\"" <(part "$DIR/after" '["threads"]' | tr "'" '"' | tr -d ' ')
	[ "$(part "$DIR/after" '["threads"].__len__()')" -gt 0 ]
	"$CTL" decode --worker="$decode" --view=branches "$DIR/whole" | grep -q "^# cpu . pid $pid "
	"$CTL" decode --worker="$decode" --view=branches "$DIR/excluded" >"$DIR/branches"
	run ! grep -q "^# cpu . pid $pid " "$DIR/branches"
}

@test "many connections of many users do not keep administrators out" {
	start_open -- sleep 60
	run -0 python3 "$SYSTEM/hostile_client.py" "$SOCKET" many-users
	stop
}

@test "with records of this host, two users see their own threads and nothing of each other" {
	"$PTSNAPD" --check --json --config= --state-dir="$DIR" |
		grep -q '"perf events can be opened' || skip "no perf events"
	"$PTSNAPD" --config= --socket="$SOCKET" --state-dir="$STATE" 2>"$DIR/log" 3>&- &
	PID=$!
	eventually answers
	chmod 0666 "$SOCKET"
	# Other users must not see its argument.
	cat >"$DIR/work" <<-'WORK'
		#!/bin/sh
		while [ -e "$1" ]; do i=0; while [ $i -lt 1000 ]; do i=$((i + 1)); done; done
	WORK
	chmod 0755 "$DIR/work"
	touch "$DIR/word-of-1001" "$DIR/word-of-1002"
	for uid in 1001 1002; do
		setpriv --reuid=$uid --regid=$uid --clear-groups "$DIR/work" "$DIR/word-of-$uid" 3>&- &
	done
	sleep 1
	as 1001 snapshot --no-wait >/dev/null
	id=$(as 1001 list | awk 'END { print $1 }')
	done_() { as 1001 list | grep -q "^$id *done"; }
	eventually done_
	rm "$DIR"/word-of-*
	"$CTL" --socket="$SOCKET" fetch "$id" -o "$DIR/full"
	"$CTL" --socket="$SOCKET" fetch "$id" --format=bundle -o "$DIR/bundle"
	for uid in 1001 1002; do
		as $uid fetch "$id" -o - >"$DIR/$uid"
		grep -q "word-of-$uid" "$DIR/$uid"
		python3 "$SYSTEM/one_user.py" "$DIR/full" "$DIR/$uid" "$DIR/bundle" $uid "word-of-$((2003 - uid))"
	done
	[ "$(part "$DIR/1001" '["turns"].__len__()')" -gt 0 ]
	stop
}

@test "with the setting, all users may ask for the status and for nothing else" {
	start --allow-status-to-all -- sleep 60
	[ "$(stat -c %a "$SOCKET.status")" -eq 666 ]
	[ "$(stat -c %a "$SOCKET")" -eq 660 ]
	"$CTL" --socket="$SOCKET" snapshot --no-decode --reason=roots-secret >/dev/null
	run -0 as 1001 status
	[[ $output == *"State      tracing"* && $output == *"1 done"* ]]
	run -0 as 1001 status --json=short
	[ "$(jq -r '[.version, .state, .source, .snapshots.done] | map(type) | unique | join(" ")' <<<"$output")" = "number string" ]
	[ "$(jq -c keys <<<"$output")" = '["pid","snapshots","source","state","terms","uptimeUSec","version"]' ]
	[ "$(jq -c '.snapshots | keys' <<<"$output")" = '["done","failed","running"]' ]
	# Users who may use the main socket get its status.
	[ "$("$CTL" --socket="$SOCKET" status --json=short | jq 'has("cpus")')" = true ]
	for verb in list "fetch latest" snapshot "pin latest" "delete x" yield reload "trigger list" "trigger add x" "trigger remove x" "trigger test x"; do
		run -4 as 1001 $verb
		[[ $output == *"permission denied"* ]]
		# The socket for all users refuses these verbs, also for root.
		for who in 0 1001; do
			SOCKET=$SOCKET.status run -4 as $who $verb
			[[ $output == *" is not for all users; run as root or as a member of the group that owns $SOCKET" ]]
		done
	done
	stop
	[ ! -e "$SOCKET.status" ]
}

@test "without the setting, other users get no answer" {
	start -- sleep 60
	[ ! -e "$SOCKET.status" ]
	run -4 as 1001 status
	[[ $output == *"permission denied"* ]]
	stop
	# The same holds for a socket that systemd hands over.
	command -v systemd-socket-activate >/dev/null || skip "no systemd-socket-activate"
	start_activated
	run -4 as 1001 status
	[[ $output == *"Status is not for all users"* ]]
	stop
	start_activated --allow-status-to-all
	as 1001 status -q
	stop
}

# Prepares a recorder that gets both sockets from systemd and starts with the first connection.
start_activated() {
	rm -f "$SOCKET" "$SOCKET.status"
	systemd-socket-activate -l "$SOCKET" -l "$SOCKET.status" --fdname=varlink:status \
		"$PTSNAPD" --config= --source=emulated --socket="$SOCKET" --state-dir="$STATE" --aux-size=1M "$@" \
		-- sleep 60 2>"$DIR/log" 3>&- &
	PID=$!
	eventually answers
	chmod 0660 "$SOCKET"
	chmod 0666 "$SOCKET.status"
}

@test "connections to the socket for all users take no place from connections to the main socket" {
	start --allow-status-to-all -- sleep 60
	run -0 python3 "$SYSTEM/hostile_client.py" "$SOCKET" everybody
	stop
}

@test "pinned snapshots stay, also after a restart; users who may delete a snapshot may pin it" {
	start_open --admin-group=4711 --max-snapshots=4 -- sleep 60
	as 1001 snapshot --no-decode --label=n=first >/dev/null
	run -4 as 1001 pin latest
	[[ $output == *"Pin is for root and members of the group 4711"* ]]
	as 1002:4711 pin latest
	id=$(as 1002:4711 list | awk 'END { print $1 }')
	as 1002:4711 pin "$id"
	as 1001 list | grep -q "^$id .* \[pinned\] n=first"
	[ "$(as 1001 list --json=short | jq .pinned)" = true ]
	run -1 as 1002:4711 delete "$id"
	[[ $output == *"$id: the snapshot is pinned; run \`ptsnapctl unpin $id' first" ]]
	for _ in 1 2 3 4 5; do
		"$CTL" --socket="$SOCKET" snapshot --no-decode >/dev/null
	done
	[ "$(as 1001 list --json=short | jq -r .id | wc -l)" -eq 4 ]
	as 1001 list | grep -q "^$id "
	"$CTL" --socket="$SOCKET" status | grep -q "^Snapshots .*, 1 pinned ("
	# At most half of the four snapshots may be pinned.
	as 1002:4711 pin latest
	before=$(as 1001 list --json=short | jq -r 'select(.pinned | not).id' | head -n 1)
	run -1 as 1002:4711 pin "$before"
	[[ $output == *"too much would be pinned: 3 snapshots of at most 2, "*" unpin other snapshots"* ]]
	run -3 as 1002:4711 pin none
	run -2 as 1002:4711 unpin latest
	run -2 as 1002:4711 pin
	stop
	grep -q "snapshot $id pinned by pid [0-9]* (ctl.*), uid 1002" "$DIR/log"
	start_open --admin-group=4711 --max-snapshots=1 -- sleep 60
	[ "$(as 1001 list --json=short | jq -r 'select(.pinned).id' | wc -l)" -eq 2 ]
	as 1002:4711 unpin "$id"
	as 1002:4711 delete "$id"
	[ ! -e "$STATE/$id.pinned" ]
	run -3 as 1002:4711 unpin "$id"
	stop
	grep -q "snapshot $id unpinned by " "$DIR/log"
}

# fires UID: prints how often UID can fire the trigger before it is refused. A call that joins another
# snapshot costs nothing.
fires() {
	local n=0
	while [ $n -lt 50 ]; do
		run as "$1" snapshot --no-wait --trigger=unit --unit=web.service
		[ "$status" -eq 0 ] || break
		n=$((n + 1))
	done
	[ "$status" -eq 7 ]
	echo $n
}

@test "users who fire a unit's trigger as often as possible do not use up the unit's own snapshots" {
	mkdir "$DIR/triggers"
	printf '[Trigger]\nOn=unit\nUnits=web.service\nDecode=no\nBurst=2\nInterval=1h\n' >"$DIR/triggers/web.conf"
	start_open --triggers="$DIR/triggers" --user-burst=0 -- sleep 60
	[ "$(fires 1001)" -ge 2 ]
	[ "$(fires 1002)" -eq 0 ]
	# The recorder's own user fires the trigger, as a unit of OnFailure= does.
	[ "$(fires 0)" -ge 2 ]
	run -7 as 1002 snapshot --no-wait --trigger=web --unit=web.service
	stop
}
