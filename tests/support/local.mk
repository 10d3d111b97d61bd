# Programs that tests run; nothing of it is installed.
noinst_PROGRAMS += tests/support/vl_cert_server tests/support/truth_window \
	tests/support/emu_run tests/support/guest_signals
tests_support_vl_cert_server_SOURCES = tests/support/vl_cert_server.c
tests_support_vl_cert_server_LDADD = proto/libptproto.a $(JSONC_LIBS)

# What was really executed, out of a truth file.
tests_support_truth_window_SOURCES = tests/support/truth_window.c tests/support/truth.c \
	tests/support/truth.h
tests_support_truth_window_LDADD =

# The emulated source alone: runs a command, dumps its rings.
tests_support_emu_run_SOURCES = tests/support/emu_run.c
tests_support_emu_run_LDADD = capture/libptcapture.a proto/libptproto.a $(JSONC_LIBS)

# A guest: runs under the emulator, so without sanitizers.
tests_support_guest_signals_SOURCES = tests/support/guest_signals.c
tests_support_guest_signals_CFLAGS = -std=gnu11 -O2 -Wall -Wextra -Wno-clobbered -Wno-infinite-recursion
tests_support_guest_signals_LDFLAGS =
