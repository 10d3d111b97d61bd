# Who may include whom: one line a room, from docs/ARCHITECTURE.md. A room is the folder of the
# including file; what it includes in quotes must lie in one of the folders (or be a header) listed.
cd "${PTSNAP_SRCDIR:-.}" || exit 1
rules='
proto:               proto
decoder/run:         proto decoder/run
capture/proc:        proto capture/proc
capture/kernel:      proto capture/proc capture/kernel
capture/ring:        proto capture/proc capture/ring
capture/perf:        proto capture/proc capture/ring capture/perf
capture/emu/machine: proto capture/emu/machine
capture/emu/host:    proto capture/proc capture/ring capture/perf capture/emu/machine capture/emu/host
capture/emu/plugin:  proto capture/emu/machine capture/emu/plugin
sideband:            proto sideband
decoder:             proto decoder
decoder/worker:      proto decoder decoder/worker sideband
daemon:              proto decoder/run capture/proc capture/kernel capture/ring capture/perf capture/emu/host daemon sideband/space.h sideband/timeline.h
ctl:                 proto decoder/run ctl
'
status=0
n=0
for f in $(find proto capture sideband decoder daemon ctl -name '*.[ch]' | sort); do
	room=$(dirname "$f")
	allowed=$(printf '%s\n' "$rules" | sed -n "s,^$room: *,,p")
	[ -n "$allowed" ] || { echo "$f: room $room has no rule in tests/check/layers.sh"; status=1; continue; }
	for inc in $(sed -n 's/^#include "\(.*\)"/\1/p' "$f"); do
		n=$((n + 1))
		[ "$inc" != config.h ] || continue
		dir=$(dirname "$inc")
		ok=no
		for a in $allowed; do
			[ "$a" != "$dir" ] && [ "$a" != "$inc" ] || ok=yes
		done
		[ $ok = yes ] || { echo "$f includes $inc: $room may include only: $allowed"; status=1; }
	done
done
# Private libraries: what a program must not do, it is not linked with.
banned() { # ROOM HEADER-PATTERN WHY
	hits=$(grep -lE "^#include <($2)" "$1"/*.[ch] 2>/dev/null)
	[ -z "$hits" ] || { echo "$3: $hits"; status=1; }
}
for room in proto decoder/run capture/proc capture/kernel capture/ring capture/perf capture/emu/host capture/emu/machine daemon ctl sideband; do
	banned $room 'Zydis' 'instructions are decoded in decoder/ and capture/emu only'
done
for room in proto decoder/run capture/proc capture/kernel capture/ring capture/perf capture/emu/host capture/emu/machine capture/emu/plugin daemon ctl decoder; do
	banned $room 'libelf|gelf|elfutils' 'ELF is parsed in sideband/elf.c only'
done
for room in proto decoder/run capture/proc capture/kernel capture/ring capture/perf capture/emu/host capture/emu/machine capture/emu/plugin daemon ctl sideband decoder; do
	banned $room 'intel-pt' 'libipt is an oracle for tests'
done
[ $n -gt 100 ] || { echo "only $n includes seen: the check itself is broken"; status=1; }
exit $status
