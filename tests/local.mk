# How tests run: programs without a suffix are cmocka's and speak TAP, .tap and .bats speak TAP, .sh
# says 0, 77 (skipped) or failure.
if HAVE_CMOCKA
include $(top_srcdir)/tests/unit/proto/local.mk
include $(top_srcdir)/tests/unit/capture/local.mk
include $(top_srcdir)/tests/unit/sideband/local.mk
include $(top_srcdir)/tests/unit/decoder/local.mk
include $(top_srcdir)/tests/unit/decoder/worker/local.mk
include $(top_srcdir)/tests/unit/daemon/local.mk
include $(top_srcdir)/tests/unit/ctl/local.mk
endif
include $(top_srcdir)/tests/support/local.mk
include $(top_srcdir)/tests/fuzz/local.mk
include $(top_srcdir)/tests/oracle/local.mk
include $(top_srcdir)/tests/scripts/local.mk
include $(top_srcdir)/tests/system/local.mk
include $(top_srcdir)/tests/bench/local.mk
include $(top_srcdir)/tests/vm/local.mk

TEST_EXTENSIONS = .bats .sh .tap
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/support/cmocka-tap.sh
BATS_LOG_DRIVER = $(LOG_DRIVER)
BATS_LOG_COMPILER = bats
AM_BATS_LOG_FLAGS = --formatter tap
TAP_LOG_DRIVER = $(LOG_DRIVER)
TAP_LOG_COMPILER = $(SHELL)
SH_LOG_COMPILER = $(SHELL)
AM_TESTS_ENVIRONMENT = \
	PTSNAP_SRCDIR='$(abs_top_srcdir)'; export PTSNAP_SRCDIR; \
	PTSNAP_BUILDDIR='$(abs_top_builddir)'; export PTSNAP_BUILDDIR; \
	PTSNAP_CORPUS="$${PTSNAP_CORPUS:-$(abs_top_srcdir)/../shared/corpus}"; export PTSNAP_CORPUS;

CHECK_TESTS = tests/check/layers.sh tests/check/headers.sh tests/check/format.sh tests/check/forks.sh tests/check/map.sh tests/check/dist.sh
# The longest first: make runs several side by side, and the last ones should be short.
TESTS += $(LONG_TESTS) $(SYSTEM_TESTS) $(ORACLE_TESTS) $(FUZZ_TESTS) $(CHECK_TESTS) $(check_PROGRAMS)
EXTRA_DIST += tests/check/rooms.txt $(CHECK_TESTS) $(FUZZ_TESTS) $(ORACLE_TESTS) $(SYSTEM_TESTS) $(LONG_TESTS) tests/support/cmocka-tap.sh \
	tests/sysfs

