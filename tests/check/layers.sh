# Who may include whom: tests/check/rooms.txt has a line for each room, with its door and the rooms that
# it may include. A room is the folder of the including file.
cd "${PTSNAP_SRCDIR:-.}" || exit 1
rules=$(sed -n 's,^\([a-z][^ ]*\) [^ ]*:,\1: \1,p' tests/check/rooms.txt)
status=0
n=0
for f in $(find proto capture sideband decoder daemon ctl -name '*.[ch]' | sort); do
	room=$(dirname "$f")
	allowed=$(printf '%s\n' "$rules" | sed -n "s,^$room: *,,p")
	[ -n "$allowed" ] || { echo "$f: room $room has no line in tests/check/rooms.txt"; status=1; continue; }
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
while read -r room door rest; do
	case $room in '' | '#'*) continue ;; esac
	[ -f "$room/${door%:}" ] || { echo "tests/check/rooms.txt: $room has no door ${door%:}"; status=1; }
done <tests/check/rooms.txt
# Private libraries: what a program must not do, it is not linked with.
banned() { # HEADER-PATTERN ROOMS-THAT-MAY WHY
	hits=$(grep -rlE "^#include <($1)" proto capture sideband decoder daemon ctl --include='*.[ch]' | grep -vE "^($2)/")
	[ -z "$hits" ] || { echo "$3: $hits"; status=1; }
}
banned Zydis 'decoder/code|decoder/worker/view|capture/emu/plugin' 'instructions are decoded in decoder/code and capture/emu/plugin only'
banned 'libelf|gelf|elfutils' 'sideband/(elf|dwarf|symbols|kernel)|decoder/worker' 'ELF and DWARF are parsed in sideband/elf, dwarf, symbols, kernel only'
banned intel-pt none 'libipt is an oracle for tests'
[ $n -gt 100 ] || { echo "only $n includes seen: the check itself is broken"; status=1; }
exit $status
