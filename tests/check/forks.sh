# Checks that tests fork by test_fork() only, which detaches children from cmocka (see
# tests/support/child.h).
cd "${PTSNAP_SRCDIR:-.}" || exit 1
hits=$(grep -rnE --include='*.c' --include='*.h' '(^|[^_.a-z"])v?fork\(\)' tests/unit tests/system)
[ -z "$hits" ] || { echo "use test_fork() of tests/support/child.h:"; echo "$hits"; exit 1; }
[ "$(grep -rl 'test_fork()' tests/unit | wc -l)" -gt 10 ] || { echo "few uses of test_fork() seen: the check itself is broken"; exit 1; }
