# Checks that every header compiles by itself and begins with a comment.
cd "${PTSNAP_SRCDIR:-.}" || exit 1
status=0
n=0
flags=$(pkg-config --cflags json-c libsystemd libelf 2>/dev/null)
# The guest's kernel module needs the kernel's headers, and the headers of BPF programs need clang.
for h in $(find proto capture sideband decoder daemon ctl -path capture/emu/guest/module -prune -o -name '*.h' ! -name '*.bpf.h' -print | sort); do
	n=$((n + 1))
	# shellcheck disable=SC2086
	printf '#include "%s"\n' "$h" | ${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -I. $flags \
		-fsyntax-only -x c - || { echo "$h does not compile by itself"; status=1; }
	[ "$(sed -n 1p "$h")" = '/*' ] || { echo "$h does not begin with a comment that says what it is"; status=1; }
	grep -q '^#pragma once' "$h" || { echo "$h has no #pragma once"; status=1; }
done
[ $n -gt 20 ] || { echo "only $n headers seen: the check itself is broken"; status=1; }
exit $status
