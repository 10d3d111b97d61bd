#!/bin/sh
# join.sh DIR OUT SCRIPT...: joins page.html, page.css and the scripts of DIR, in their order, to the C
# file OUT: the page in front of the data (page_web_head) and behind it (page_web_tail).
#
# The scripts are modules for node's tests; in the page they are one module, without their imports and
# exports. The policy of the page names the SHA-256 of the script and of the style sheet.
set -eu
dir=$1
out=$2
shift 2
work=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$work"' EXIT
for script; do
	sed -e '/^import .* from ".*";$/d' -e '/^export { .* };$/d' -e 's/^export //' "$dir/$script"
done >"$work/script"
cp "$dir/page.css" "$work/style"
# A browser hashes all between the tags, with the line ends there.
sum() {
	{ echo; cat "$1"; } | sha256sum | cut -c 1-64 | tr a-f A-F | basenc --base16 -d | base64
}
sed -e "s,@SCRIPT-SUM@,$(sum "$work/script")," -e "s,@STYLE-SUM@,$(sum "$work/style")," \
	-e "/^@STYLE@\$/{r $work/style" -e 'd}' -e "/^@SCRIPT@\$/{r $work/script" -e 'd}' "$dir/page.html" >"$work/page"
literal() {
	echo "const char $1[] ="
	sed -e 's/[\\"?]/\\&/g' -e 's/^/	"/' -e 's/$/\\n"/'
	echo '	;'
}
{
	echo '#include "ctl/page/page_private.h"'
	sed '/^@DATA@$/,$d' "$work/page" | literal page_web_head
	sed '1,/^@DATA@$/d' "$work/page" | literal page_web_tail
} >"$work/c"
mv "$work/c" "$out"
