#!/bin/sh
# make map: every room with its door, and one line about each file, from the file's own head comment.
cd "${PTSNAP_SRCDIR:-$(dirname "$0")/..}" || exit 1
grep -v '^#' tests/check/rooms.txt | while read -r room door rest; do
	[ -n "$room" ] || continue
	door=${door%:}
	printf '\n%s (door: %s; may include:%s)\n' "$room" "$door" "${rest:+ $rest}"
	for file in "$room"/*.c "$room"/*.S "$room/$door" "$room"/*.h; do
		[ -f "$file" ] || continue
		case $file in
		"$room/$door") ;;
		*.h) [ ! -f "${file%.h}.c" ] && [ "$file" != "$room/$door" ] || continue ;;
		esac
		printf '  %-26s %4d  %s\n' "${file##*/}" "$(wc -l <"$file")" "$(awk '
			NR == 1 { next }
			/\*\// || /^ \*$/ { exit }
			{ sub(/^ \* ?/, ""); text = text (text == "" ? "" : " ") $0 }
			END { sub(/\.( .*)?$/, ".", text); print substr(text, 1, 120) }' "$file")"
	done
done
