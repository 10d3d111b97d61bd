SYSTEM_TESTS += tests/scenario/exact.tap tests/scenario/machine.tap tests/scenario/times.tap
EXTRA_DIST += tests/scenario/common.py tests/scenario/exact.py tests/scenario/machine.py \
	tests/scenario/times.py

# proto/varlink against a stranger's client; ptsnapctl against a recorder that misbehaves.
SYSTEM_TESTS += tests/system/varlink_certification.sh
if HAVE_BATS
SYSTEM_TESTS += tests/system/check_trace.bats tests/system/config.bats tests/system/ctl.bats tests/system/daemon.bats
endif
EXTRA_DIST += tests/system/check_trace.bats tests/system/config.bats tests/system/ctl.bats tests/system/daemon.bats tests/system/hostile_client.py \
	tests/system/fake_decoder.py tests/system/fake_recorder.py

# The kernel's own rings under load; every record passes through a wrapped function.
if HAVE_CMOCKA
check_PROGRAMS += tests/system/test_load
endif
tests_system_test_load_SOURCES = tests/system/test_load.c \
	tests/system/load_source.c tests/system/load_source.h \
	tests/unit/daemon/scratch_dir.c tests/unit/daemon/scratch_dir.h
tests_system_test_load_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=timeline_push
tests_system_test_load_LDADD = daemon/libptdaemon.a capture/libptcapture.a \
	sideband/libptsideband.a proto/libptproto.a $(CMOCKA_LIBS) $(SYSTEMD_LIBS) $(JSONC_LIBS)
