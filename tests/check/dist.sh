# Checks that the tarball contains every source file, script and test: some local.mk names the file or a
# folder above it.
cd "${PTSNAP_SRCDIR:-.}" || exit 1
status=0
n=0
named=$(cat Makefile.am configure.ac $(find . -name local.mk -not -path './build*') | grep -v '^#' | tr -s ' \t\\=()' '\n\n\n\n\n\n' | sort -u)
is_named() { printf '%s\n' "$named" | grep -qxF "$1"; }
for f in $(find proto capture sideband decoder daemon ctl systemd docs tests -name '*.[ch]' -o -name '*.py' -o -name '*.sh' \
	-o -name '*.bash' -o -name '*.bats' -o -name '*.tap' -o -name '*.pts' -o -name '*.scd' | sort); do
	n=$((n + 1))
	path=$f
	until is_named "$path"; do
		case $path in
		*/*/*) path=${path%/*} ;;
		*) echo "no local.mk names $f"; status=1; break ;;
		esac
	done
done
[ $n -gt 500 ] || { echo "only $n files seen: the check itself is broken"; status=1; }
exit $status
