# Functions that the cases need: TAP, waiting, users.
# Each place has a tap LINE and a show FILE of its own.

# NAME COMMAND...: one test; what COMMAND says is shown when it fails.
check() {
	local name=$1
	shift
	n_tests=$((n_tests + 1))
	if "$@" >check.log 2>&1; then
		tap "ok $n_tests - $name"
	else
		tap "not ok $n_tests - $name"
		show check.log
	fi
}

# NAME REASON: a test that cannot run here.
skipped() {
	n_tests=$((n_tests + 1))
	tap "ok $n_tests - $1 # SKIP $2"
}

fails() { ! "$@"; }
is() { [ "$1" = "$2" ] || { echo "is '$1', should be '$2'"; return 1; }; }
has() { case $1 in *"$2"*) ;; *) echo "no '$2' in: $1"; return 1 ;; esac; }
# STATUS COMMAND...: COMMAND ends with it.
ends() {
	local wanted=$1 got=0
	shift
	"$@" || got=$?
	is "$got" "$wanted"
}

# SECONDS COMMAND...: until COMMAND succeeds.
within() {
	local end
	end=$(cut -d. -f1 /proc/uptime)
	end=$((end + $1))
	shift
	until "$@" >within.log 2>&1; do
		[ "$(cut -d. -f1 /proc/uptime)" -lt $end ] || { cat within.log; return 1; }
		sleep 0.1
	done
}

# USER COMMAND...
as() {
	local user=$1
	shift
	setpriv --reuid="$user" --regid="$user" --init-groups "$@"
}

unit() { systemctl show -p "$2" --value "$1"; }
main_pid() { unit ptsnapd.service MainPID; }
ctl() { timeout 60 ptsnapctl "$@"; }
# JQ-EXPRESSION of the recorder's status, of each line of its list.
status() { ctl --json=short status | jq -r "$1"; }
list() { ctl --json=short list | jq -r "$1"; }
# KEY VALUE: of one snapshot in the list.
list_has() {
	[ -n "$(list "select(.$1 == \"$2\").id")" ] || { list "[.id, .$1] | @text"; return 1; }
}
