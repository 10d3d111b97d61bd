# Who may include whom: one line a room, from docs/ARCHITECTURE.md. A room is the folder of the
# including file; what it includes in quotes must lie in one of the folders (or be a header) listed.
cd "${PTSNAP_SRCDIR:-.}" || exit 1
rules='
proto:          proto
capture:        proto capture capture/emu/sched.h
capture/emu:    proto capture/emu
sideband:       proto sideband
decoder:        proto decoder
decoder/worker: proto decoder decoder/worker sideband
daemon:         proto capture daemon sideband/space.h sideband/timeline.h
ctl:            proto ctl
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
for room in proto capture capture/emu daemon ctl sideband; do
	[ "$room" = capture/emu ] || banned $room 'Zydis' 'instructions are decoded in decoder/ and capture/emu only'
done
for room in proto capture capture/emu daemon ctl decoder; do
	banned $room 'libelf|gelf|elfutils' 'ELF is parsed in sideband/elf.c only'
done
for room in proto capture daemon ctl sideband decoder; do
	banned $room 'intel-pt' 'libipt is an oracle for tests'
done
[ $n -gt 100 ] || { echo "only $n includes seen: the check itself is broken"; status=1; }
exit $status
