#!/usr/bin/env bats
# The files for systemd that make install installs, checked with systemd's own tools in a scratch root:
# units, drop-ins, their scores, users, directories, texts for the journal, and the generator's limits.

# The program's directories are below the configured prefix.
setup_file() {
	export ROOT
	unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
	ROOT=$(mktemp -d /tmp/ptsnap-units-XXXXXX)
	make -s -C "$PTSNAP_BUILDDIR" install DESTDIR="$ROOT" >"$ROOT/install.log" 2>&1 || {
		tail -n 20 "$ROOT/install.log" >&2
		return 1
	}
	UNITS=$(dirname "$(find "$ROOT" -name ptsnapd.service)")
	VENDOR=$(dirname "$(find "$ROOT" -name ptsnapd.conf)")
	export UNITS VENDOR
	# Files of the host that the units name.
	mkdir -p "$ROOT/bin" "$ROOT/etc/systemd/system"
	printf '#!/bin/sh\n' >"$ROOT/bin/kill"
	chmod +x "$ROOT/bin/kill"
	printf 'root:x:0:0::/:/bin/sh\n' >"$ROOT/etc/passwd"
	printf 'root:x:0:\n' >"$ROOT/etc/group"
	for d in /lib/systemd/system /usr/lib/systemd/system; do
		[ ! -f "$d/sysinit.target" ] || [ -e "$ROOT/sys/sysinit.target" ] || {
			mkdir -p "$ROOT/sys"
			cp "$d"/*.target "$ROOT/sys"
		}
	done
}

teardown_file() {
	rm -rf "$ROOT"
}

need() {
	command -v "$1" >/dev/null || skip "no $1"
	[ -f "$ROOT/sys/sysinit.target" ] || [ "$1" != systemd-analyze ] || skip "no units of systemd's own"
}

# Makes a copy of the units for one test. Drop-ins go to $DIR/UNIT.d.
setup() {
	bats_require_minimum_version 1.5.0
	DIR=$(mktemp -d "$ROOT/unit-XXXXXX")
	DIR=${DIR#"$ROOT"}
	cp -r "$UNITS/." "$ROOT$DIR"
}

# verify UNIT...: expects no message about any of them.
verify() {
	for u; do
		run --separate-stderr env SYSTEMD_UNIT_PATH="$DIR:/sys" \
			systemd-analyze verify --root="$ROOT" --man=no --recursive-errors=yes "$u"
		echo "$u: $output $stderr"
		[ "$status" -eq 0 ] && [ -z "$output$stderr" ] || return 1
	done
}

# Prints the units by name, templates as instances.
all_units() {
	echo ptsnapd.service ptsnapd.socket ptsnapd-status.socket ptsnap-decode.socket ptsnap-decode@x.service \
		ptsnap-snapshot@a.service.service
}

# score UNIT: prints systemd's exposure score in tenths of a point.
score() {
	SYSTEMD_UNIT_PATH="$DIR:/sys" systemd-analyze security --offline=yes --root="$ROOT" "$1" |
		sed -n 's/.*exposure level for .*: \([0-9]*\)\.\([0-9]\) .*/\1\2/p' | sed 's/^0//'
}

# below UNIT POINTS: expects an exposure score of at most POINTS, as systemd compares.
below() {
	SYSTEMD_UNIT_PATH="$DIR:/sys" systemd-analyze security --offline=yes --root="$ROOT" --threshold="$2" "$1" >/dev/null
}

drop_in() {
	mkdir -p "$ROOT$DIR/$1.d"
	cp "$2" "$ROOT$DIR/$1.d"
}

@test "units: systemd-analyze verify finds nothing" {
	need systemd-analyze
	# shellcheck disable=SC2046
	verify $(all_units)
}

@test "units: systemd-analyze verify finds a deliberate mistake" {
	need systemd-analyze
	echo "ProtectSystems=strict" >>"$ROOT$DIR/ptsnapd.socket"
	run ! verify ptsnapd.socket
	rm -f "$ROOT$DIR/ptsnapd.socket"
	run ! verify ptsnapd.service
}

@test "units: every program is where its unit says, and no @path@ is left" {
	run ! grep -rE '@[a-z]*dir@' "$UNITS" "$VENDOR"
	sed -n 's/^Exec[A-Za-z]*=\([^ ]*\).*/\1/p' "$UNITS"/*.service | grep -v '^/bin/kill$' >"$ROOT/exec"
	[ "$(wc -l <"$ROOT/exec")" -ge 3 ]
	while read -r program; do
		echo "$program"
		[ -x "$ROOT$program" ]
	done <"$ROOT/exec"
}

@test "units: everything that ptsnapd.service enables exists" {
	command -v systemctl >/dev/null || skip "no systemctl"
	for u in $(sed -n 's/^Also=//p' "$UNITS/ptsnapd.service"); do
		[ -f "$UNITS/$u" ]
		grep -q '^WantedBy=sockets.target$' "$UNITS/$u"
	done
	[ -n "$(sed -n 's/^Also=//p' "$UNITS/ptsnapd.service")" ]
}

@test "units: the socket for all users belongs to the same service, and is not enabled" {
	unit=$UNITS/ptsnapd-status.socket
	grep -qx 'Service=ptsnapd.service' "$unit"
	grep -qx 'FileDescriptorName=status' "$unit"
	grep -qx 'SocketMode=0666' "$unit"
	path=$(sed -n 's/^ListenStream=//p' "$UNITS/ptsnapd.socket")
	grep -qx "ListenStream=$path.status" "$unit"
	grep -qx 'SocketMode=0660' "$UNITS/ptsnapd.socket"
	run ! grep -rlE '^(Also|Wants|Requires|Sockets)=.*ptsnapd-status' "$UNITS"
}

@test "scores: recorder at most 2.2, decoder at most 0.5, snapshot at most 1.0" {
	need systemd-analyze
	score ptsnapd.service
	score ptsnap-decode@x.service
	score ptsnap-snapshot@a.service
	below ptsnapd.service 22
	below ptsnap-decode@x.service 5
	below ptsnap-snapshot@a.service 10
	run ! below ptsnapd.service 5
}

@test "drop-ins: each one verifies, and grants what it says" {
	need systemd-analyze
	plain=$(score ptsnapd.service)
	[ -n "$plain" ]
	for name in kernel-text bpf-text paranoid3 pressure; do
		drop_in ptsnapd.service "$VENDOR/drop-ins/$name.conf"
		verify ptsnapd.service
		echo "$name: $(score ptsnapd.service), without it $plain"
		[ "$(score ptsnapd.service)" -gt "$plain" ]
		rm "$ROOT$DIR/ptsnapd.service.d/$name.conf"
	done
	for name in kernel-text bpf-text paranoid3 metrics pressure kernel-log; do
		drop_in ptsnapd.service "$VENDOR/drop-ins/$name.conf"
	done
	verify ptsnapd.service
}

@test "drop-ins: none is active, and no sysctl is set" {
	[ -z "$(find "$ROOT" -path '*/systemd/*' \( -name 'kernel-text*' -o -name 'bpf-text*' -o -name 'paranoid*' -o -name 'metrics*' -o -name 'kernel-log*' \
		-o -name 'pressure*' \))" ]
	[ -z "$(find "$ROOT" -name '60-ptsnap*' -not -path "$VENDOR/sysctl.d/*")" ]
	grep -qx 'kernel.perf_event_paranoid = 2' "$VENDOR/sysctl.d/60-ptsnap-paranoid.conf"
	[ "$(find "$VENDOR/sysctl.d" "$VENDOR/drop-ins" -type f | wc -l)" -eq \
		"$(grep -l '# To use this file\|# Takes a snapshot when' "$VENDOR"/sysctl.d/* "$VENDOR"/drop-ins/* | wc -l)" ]
}

@test "a drop-in for all services takes no snapshot of ptsnap's own services" {
	need systemd-analyze
	drop_in service "$VENDOR/drop-ins/10-ptsnap-snapshot.conf"
	cat >"$ROOT$DIR/other.service" <<-END
		[Service]
		ExecStart=/bin/kill
	END
	verify other.service ptsnap-snapshot@other.service.service
	# A mistake in the drop-in shows which units read it: other units do, ptsnap's units do not.
	echo "Nonsense=yes" >>"$ROOT$DIR/service.d/10-ptsnap-snapshot.conf"
	run ! verify other.service
	verify ptsnapd.service ptsnap-decode@x.service ptsnap-snapshot@other.service.service
}

@test "sysusers: it makes the users and groups of the units" {
	need systemd-sysusers
	run -0 systemd-sysusers --root="$ROOT" --dry-run "$(find "$ROOT" -path '*/sysusers.d/ptsnap.conf')"
	systemd-sysusers --root="$ROOT" "$(find "$ROOT" -path '*/sysusers.d/ptsnap.conf')"
	for u in $(sed -n 's/^\(User\|SocketUser\)=//p' "$UNITS"/*.service "$UNITS"/*.socket | sort -u); do
		grep -q "^$u:" "$ROOT/etc/passwd"
	done
	for g in $(sed -n 's/^\(Group\|SocketGroup\|SupplementaryGroups\)=//p' "$UNITS"/*.service "$UNITS"/*.socket | sort -u); do
		grep -q "^$g:" "$ROOT/etc/group"
	done
	run ! grep '^ptsnap.*/bin/.*sh$' "$ROOT/etc/passwd"
}

@test "tmpfiles: it makes the directories that the units name" {
	need systemd-tmpfiles
	[ "$(id -u)" -eq 0 ] || skip "not root"
	command -v systemd-sysusers >/dev/null || skip "no systemd-sysusers"
	systemd-sysusers --root="$ROOT" "$(find "$ROOT" -path '*/sysusers.d/ptsnap.conf')"
	run -0 systemd-tmpfiles --root="$ROOT" --create "$(find "$ROOT" -path '*/tmpfiles.d/ptsnap.conf')"
	[ -z "$output" ]
	uid=$(sed -n 's/^ptsnap:[^:]*:\([0-9]*\):.*/\1/p' "$ROOT/etc/passwd")
	[ "$(stat -c '%a %u' "$ROOT/var/lib/ptsnap")" = "750 $uid" ]
	[ "$(stat -c '%a %u' "$ROOT/run/ptsnap")" = "755 0" ]
}

# Prints the message ids of log.h, one a line.
ids_in_header() {
	sed -n 's/^#define LOG_EVENT_[A-Z_]* *"\([0-9a-f]\{32\}\)"$/\1/p' "$PTSNAP_SRCDIR/daemon/base/log.h" | sort
}

@test "catalog: it has a text for each message of the recorder, and no others" {
	[ "$(ids_in_header | wc -l)" -eq "$(grep -c '^#define LOG_EVENT_' "$PTSNAP_SRCDIR/daemon/base/log.h")" ]
	[ "$(ids_in_header | uniq | wc -l)" -ge 8 ]
	catalog=$(find "$ROOT" -name ptsnap.catalog)
	diff <(ids_in_header) <(sed -n 's/^-- //p' "$catalog" | sort)
	# The recorder sends every field that the text names.
	for field in $(grep -o '@[A-Z_]*@' "$catalog" | tr -d @ | sort -u); do
		echo "$field"
		grep -rq "$field" "$PTSNAP_SRCDIR/daemon" --include=*.c --include=*.h
	done
}

@test "catalog: journalctl reads it" {
	need journalctl
	catalog=$(find "$ROOT" -name ptsnap.catalog)
	mkdir -p "$ROOT/usr/lib/systemd/catalog" "$ROOT/var/lib/systemd/catalog"
	cmp -s "$catalog" "$ROOT/usr/lib/systemd/catalog/ptsnap.catalog" || cp "$catalog" "$ROOT/usr/lib/systemd/catalog"
	run -0 --separate-stderr journalctl --root="$ROOT" --update-catalog
	[ -z "$stderr" ]
	run -0 journalctl --root="$ROOT" --list-catalog
	for id in $(ids_in_header); do
		grep -q "^$id ptsnap: " <<<"$output"
	done
}

@test "generator: systemd accepts its drop-ins with limits" {
	need systemd-analyze
	generator=$(find "$ROOT" -name ptsnap-generator)
	printf '[Service]\nDecodeMemoryMax=1G\nDecodeTimeout=10min\n' >"$ROOT$DIR/conf"
	run -0 "$generator" --config="$ROOT$DIR/conf" "$ROOT$DIR" "$ROOT$DIR" "$ROOT$DIR"
	[ -z "$output" ]
	verify ptsnapd.service ptsnap-decode@x.service
	grep -qx 'MemoryMax=1342177280' "$ROOT$DIR/ptsnap-decode@.service.d/50-limits.conf"
	grep -qx 'RuntimeMaxSec=630s' "$ROOT$DIR/ptsnap-decode@.service.d/50-limits.conf"
	high=$(sed -n 's/^MemoryHigh=//p' "$ROOT$DIR/ptsnapd.service.d/50-memory.conf")
	max=$(sed -n 's/^MemoryMax=//p' "$ROOT$DIR/ptsnapd.service.d/50-memory.conf")
	[ "$high" -gt 134217728 ] && [ "$max" -gt "$high" ]
}

@test "generator: a failure is reported, and nothing is left half done" {
	generator=$(find "$ROOT" -name ptsnap-generator)
	run -1 "$generator"
	run -1 "$generator" --config= "$ROOT$DIR/nowhere"
	[[ "$output" == *nowhere* ]]
	mkdir "$ROOT$DIR/out"
	run -1 "$generator" --config="$ROOT$DIR/nowhere" "$ROOT$DIR/out"
	[ -z "$(ls "$ROOT$DIR/out")" ]
	# The generator is silent about invalid files; the recorder reports them.
	printf '[Rings]\nRingBudget=many\nnonsense\n' >"$ROOT$DIR/conf"
	run -0 "$generator" --config="$ROOT$DIR/conf" "$ROOT$DIR/out"
	[ -z "$output" ]
	[ -f "$ROOT$DIR/out/ptsnapd.service.d/50-memory.conf" ]
}

@test "make uninstall removes everything" {
	root=$(mktemp -d "$ROOT/again-XXXXXX")
	make -s -C "$PTSNAP_BUILDDIR" install DESTDIR="$root" >/dev/null 2>&1
	[ -n "$(find "$root" -name 'ptsnap*.service')" ]
	make -s -C "$PTSNAP_BUILDDIR" uninstall DESTDIR="$root" >/dev/null 2>&1
	[ -z "$(find "$root" -type f)" ]
}
