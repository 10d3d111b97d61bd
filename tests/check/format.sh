# Checks that every source file is formatted by .clang-format.
command -v clang-format >/dev/null || { echo "no clang-format"; exit 77; }
cd "${PTSNAP_SRCDIR:-.}" || exit 1
find proto capture sideband decoder daemon ctl tests -name '*.[ch]' -print0 |
	xargs -0 clang-format --dry-run -Werror
