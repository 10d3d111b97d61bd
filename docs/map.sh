#!/bin/sh
# make map: prints every room with its door, and one line about each file from its head comment.
cd "${PTSNAP_SRCDIR:-$(dirname "$0")/..}" || exit 1
grep '^[a-z]' tests/check/rooms.txt | while IFS=: read -r headers rest; do
	room=${headers%% *}
	headers=${headers#* }
	door=${headers%% *}
	listed=
	printf '\n%s (door: %s; other public headers:%s; may include:%s)\n' "$room" "$door" "${headers#"$door"}" "$rest"
	for file in "$room/$door" "$room"/*.c "$room"/*.S "$room"/*.h; do
		[ -f "$file" ] || continue
		case $file in
		"$room/$door") [ -z "$listed" ] || continue; listed=yes ;;
		*.h) [ ! -f "${file%.h}.c" ] || continue ;;
		esac
		printf '  %-26s %4d  %s\n' "${file##*/}" "$(wc -l <"$file")" "$(awk '
			NR == 1 { next }
			/\*\// || /^ \*$/ { exit }
			{ sub(/^ \* ?/, ""); text = text (text == "" ? "" : " ") $0 }
			END { sub(/\.( .*)?$/, ".", text); print substr(text, 1, 120) }' "$file")"
	done
done
