# Checks which room includes which. tests/check/rooms.txt has a line for each room: its door, its other
# public headers, and the rooms that it may include. All other headers are private: only their own room
# and tests include them.
cd "${PTSNAP_SRCDIR:-.}" || exit 1
rooms=$(sed -n '/^[a-z]/s, *: *\(.*\), : \1,p' tests/check/rooms.txt)
status=0
n=0
used=
# The guest's kernel module is built by the kernel's rules.
for f in $(find proto capture sideband decoder daemon ctl -path capture/emu/guest/module -prune -o -name '*.[chS]' -print | sort); do
	room=${f%/*}
	line=$(printf '%s\n' "$rooms" | grep "^$room ")
	[ -n "$line" ] || { echo "$f: room $room has no line in tests/check/rooms.txt"; status=1; continue; }
	allowed=" ${line#*:} "
	for inc in $(sed -n 's/^#include "\(.*\)"/\1/p' "$f"); do
		n=$((n + 1))
		[ "$inc" != config.h ] && [ "${inc%/*}" != "$room" ] || continue
		used="$used $inc"
		case $allowed in
		*" ${inc%/*} "*) ;;
		*) echo "$f includes $inc: $room may include only:$allowed"; status=1 ;;
		esac
	done
done
while IFS=: read -r room rest; do
	for header in ${room#* }; do
		path=${room%% *}/$header
		[ -f "$path" ] || { echo "tests/check/rooms.txt: $path does not exist"; status=1; }
		public="$public $path"
	done
done <<END
$rooms
END
for inc in $(printf '%s\n' $used | sort -u); do
	case "$public " in
	*" $inc "*) ;;
	*) echo "$inc is private to its room, and another room includes it"; status=1 ;;
	esac
done
for path in $public; do
	grep -q "^${path%/*} ${path##*/}\b" tests/check/rooms.txt && continue # the door
	case "$used " in
	*" $path "*) ;;
	*) echo "tests/check/rooms.txt: no other room includes $path"; status=1 ;;
	esac
done
# Some libraries are private to a few rooms: a program that must not parse something does not link it.
banned() { # HEADER-PATTERN ROOMS-THAT-MAY WHY
	hits=$(grep -rlE "^#include <($1)" proto capture sideband decoder daemon ctl --include='*.[ch]' | grep -vE "^($2)/")
	[ -z "$hits" ] || { echo "$3: $hits"; status=1; }
}
banned Zydis 'decoder/code|decoder/worker/view|capture/emu/plugin' 'instructions are decoded in decoder/code and capture/emu/plugin only'
banned 'libelf|gelf|elfutils' 'sideband/(elf|dwarf|symbols|kernel)|decoder/worker' 'ELF and DWARF are parsed in sideband/elf, dwarf, symbols, kernel only'
banned intel-pt none 'libipt is an oracle for tests'
[ $n -gt 100 ] || { echo "only $n includes seen: the check itself is broken"; status=1; }
exit $status
