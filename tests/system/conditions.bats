#!/usr/bin/env bats
# Triggers with conditions as a whole: from a file and from `ptsnapctl trigger add', what list and
# report say, wrong settings, tests, too many events, and kill -9.

load recorder

setup() {
	recorder_setup
	mkdir "$DIR/t" "$DIR/watched"
	mkfifo "$DIR/fifo"
	command -v jq >/dev/null || skip "no jq"
}

teardown() {
	recorder_teardown
}

ctl() {
	"$CTL" --socket="$SOCKET" "$@"
}

# field FILTER: prints jq's output for the newest snapshot in the list.
field() {
	ctl list --json=short | tail -n 1 | jq -c "$1"
}

# trigger NAME FILTER: prints jq's output for a trigger.
trigger() {
	ctl trigger list --json=short | jq -c ".[] | select(.name == \"$1\") | $2"
}

is() { # NAME FILTER VALUE
	[ "$(trigger "$1" "$2")" = "$3" ]
}

ended() {
	[ "$(field .state)" = '"done"' ]
}

@test "a trigger of a file fires for its condition, and list and report name trigger and event" {
	printf '[Trigger]\nFIFO=%s\nReason=the shop is slow\nLabel=team=shop\n' "$DIR/fifo" >"$DIR/t/slow.conf"
	start --triggers="$DIR/t" -- sleep 60
	is slow '[.on,.state,.runtime]' '["fifo","armed",false]'
	echo x >"$DIR/fifo"
	eventually is slow .fired 1
	eventually ended
	event="the shop is slow: a program wrote to $DIR/fifo"
	[ "$(field '[.trigger,.name,.reason,.labels.team]')" = "[\"fifo\",\"slow\",\"$event\",\"shop\"]" ]
	[[ $(ctl list) == *" fifo "*" slow: team=shop the shop is slow: a program wrote to "* ]]
	ctl fetch latest -o "$DIR/report"
	run -0 ctl info --no-pager latest
	[[ $(tr -s ' \n' ' ' <<<"$output") == *'fifo, slow, "the shop is slow: a program wrote to '* ]]
	[ "$(jq -c '[.trigger.kind,.trigger.name,.trigger.reason]' "$DIR/report")" = "[\"fifo\",\"slow\",\"$event\"]" ]
	is slow '[.events,.lastEvent]' "[1,\"a program wrote to $DIR/fifo\"]"
	run -0 ctl trigger
	[[ $output == *"slow                 fifo       armed           1        1 a program wrote to $DIR/fifo"* ]]
}

@test "trigger add: an event right after the reply fires the trigger" {
	start -- sleep 60
	ctl trigger add core --path-appears="$DIR/watched/core.*" --decode=no
	: >"$DIR/watched/near-miss"
	: >"$DIR/watched/core.1"
	eventually is core .fired 1
	[ "$(field .reason)" = "\"$DIR/watched/core.1 appeared\"" ]
	is core .events 1
	# A reload keeps the trigger armed.
	ctl reload
	is core '[.state,.runtime,.events]' '["armed",true,1]'
	: >"$DIR/watched/core.2"
	eventually is core .events 2
	ctl trigger remove core
	[ -z "$(trigger core .)" ]
	run -2 ctl trigger remove core
}

@test "trigger add: anything wrong is one line, and nothing is added" {
	start -- sleep 60
	before=$(ctl trigger list --json=short)
	wrong() { # PART OPTION...
		part=$1
		shift
		run -1 ctl trigger add new "$@"
		echo "$output"
		[ "${#lines[@]}" -eq 1 ]
		[[ $output == "ptsnapctl: the recorder does not add the trigger: "*"$part"* ]]
		[ "$(ctl trigger list --json=short)" = "$before" ]
	}
	wrong "Pressure=disk is not valid; valid: cpu, memory or io" --pressure=disk
	wrong "On=pressure needs Pressure=" --on=pressure
	wrong "FIFO=$DIR/fifo needs On=fifo" --pressure=cpu --fifo="$DIR/fifo"
	wrong "is longer than PressureWindow=" --pressure=cpu --pressure-stall=3s
	wrong "$DIR/none: No such file or directory" --path-appears="$DIR/none/x"
	wrong "$DIR/watched: Is a directory" --fifo="$DIR/watched"
	wrong "$DIR/m: No such file or directory" --metric-file="$DIR/m" --metric=a --metric-above=1
	wrong "needs either MetricAbove= or MetricBelow=" --metric-file="$DIR/m" --metric=a
	run -1 ctl trigger add control --on=control
	[[ $output == *"has a trigger control already"* ]]
	run -2 ctl trigger add
	run -2 ctl trigger add a b
	run -2 ctl trigger list --fifo=/x
	run -2 ctl trigger explode
	[ "$(ctl trigger list --json=short)" = "$before" ]
}

@test "a file with an incomplete condition is told, and disables only its trigger" {
	printf '[Trigger]\nOn=pressure\n' >"$DIR/t/bad.conf"
	printf '[Trigger]\nPathAppears=%s/gone/x\n' "$DIR" >"$DIR/t/broken.conf"
	start --triggers="$DIR/t" -- sleep 60
	grep -q "bad.conf: On=pressure needs Pressure=, the trigger is disabled" "$DIR/log"
	grep -q "trigger broken: cannot be armed: $DIR/gone: No such file or directory" "$DIR/log"
	is bad .state '"disabled"'
	is broken .state '"broken"'
	ctl snapshot --no-decode >/dev/null
}

@test "trigger test makes the event of each kind that has a harmless one" {
	printf 'load 1\n' >"$DIR/m"
	start -- sleep 60
	ctl trigger add p --path-appears="$DIR/watched/x" --decode=no
	ctl trigger add f --fifo="$DIR/fifo" --decode=no
	ctl trigger add m --metric-file="$DIR/m" --metric=load --metric-above=5 --decode=no
	for name in p f m; do
		run -0 --separate-stderr ctl trigger test $name
		[ "\"$output\"" = "$(field .id)" ]
		eventually ended
		[[ $(field .reason) == '"test: '* ]]
		is $name .fired 1
	done
	[ -z "$(ls -A "$DIR/watched")" ]
	if [ -w /dev/kmsg ]; then
		ctl trigger add k --kernel-log=oops --decode=no
		ctl trigger test k
	fi
	if [ -w /proc/pressure/memory ]; then
		ctl trigger add pressure --pressure=memory
		run -1 ctl trigger test pressure
		[[ $output == *"cannot be made without harm" ]]
	fi
	run -1 ctl trigger test control
	run -2 ctl trigger test none
}

@test "Count= ends a trigger" {
	start -- sleep 60
	ctl trigger add once --fifo="$DIR/fifo" --decode=no --count=1
	echo x >"$DIR/fifo"
	eventually is once .state '"over"'
	is once .fired 1
	# Nobody reads the FIFO any more.
	! dd if=/dev/zero of="$DIR/fifo" oflag=nonblock count=1 2>/dev/null
}

@test "a trigger with too many events is disabled, says so, and comes back" {
	start -- sleep 60
	ctl trigger add storm --fifo="$DIR/fifo" --decode=no --burst=1 --interval=1h
	exec 8<>"$DIR/fifo"
	# Each write is an event if the recorder runs before the next one.
	storms() {
		for _ in $(seq 60); do
			echo x >&8
			sleep 0.005
		done
		is storm .state '"resting"'
	}
	eventually storms
	[[ $(trigger storm .cause) == '"disabled for 10 s: more than 20 events in 2 s"' ]]
	grep -q "trigger storm: disabled for 10 s" "$DIR/log"
	is storm .fired 1
	eventually is storm .state '"armed"'
	exec 8>&-
}

@test "kill -9 leaves nothing behind, and triggers that were added are gone" {
	start -- sleep 60
	ctl trigger add f --fifo="$DIR/fifo"
	ctl trigger add p --path-appears="$DIR/watched/x"
	command=$(pgrep -P "$PID")
	kill -KILL "$PID"
	wait "$PID" || true
	kill $command
	! dd if=/dev/zero of="$DIR/fifo" oflag=nonblock count=1 2>/dev/null
	[ -z "$(ls -A "$DIR/watched")" ]
	rm -f "$SOCKET"
	start -- sleep 60
	[ -z "$(trigger f .)" ]
	ctl trigger add f --fifo="$DIR/fifo"
}
