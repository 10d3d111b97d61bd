# Checks that docs/ARCHITECTURE.md names every room of tests/check/rooms.txt and no missing folder, and
# that `make map` has a line for every file.
cd "${PTSNAP_SRCDIR:-.}" || exit 1
status=0
n=0
for room in $(sed -n 's,^\([a-z][^ ]*\) .*,\1,p' tests/check/rooms.txt); do
	n=$((n + 1))
	grep -qF "\`$room/\`" docs/ARCHITECTURE.md || { echo "docs/ARCHITECTURE.md does not name the room $room/"; status=1; }
done
for room in $(grep -oE '`(proto|capture|sideband|decoder|daemon|ctl)(/[a-z]+)*/`' docs/ARCHITECTURE.md | tr -d '`' | sort -u); do
	[ -d "$room" ] || { echo "docs/ARCHITECTURE.md names $room, which does not exist"; status=1; }
done
map=$(sh docs/map.sh)
for f in $(find proto capture sideband decoder daemon ctl -path capture/emu/guest/module -prune -o -name '*.c' -print | sort); do
	printf '%s\n' "$map" | grep -qE "^  ${f##*/} +[0-9]+ +[^ ]" || { echo "make map has no line for $f"; status=1; }
done
[ $n -gt 10 ] || { echo "only $n rooms seen: the check itself is broken"; status=1; }
exit $status
