check_PROGRAMS += \
	tests/unit/daemon/test_config \
	tests/unit/daemon/test_files \
	tests/unit/daemon/test_intake \
	tests/unit/daemon/test_peer \
	tests/unit/daemon/test_procs \
	tests/unit/daemon/test_store \
	tests/unit/daemon/test_trigger

TEST_DAEMON_LIBS = daemon/libptdaemon.a capture/libptcapture.a sideband/libptsideband.a \
	proto/libptproto.a $(CMOCKA_LIBS) $(SYSTEMD_LIBS) $(JSONC_LIBS)
TEST_DAEMON_DIR = tests/unit/daemon/scratch_dir.c tests/unit/daemon/scratch_dir.h
TEST_DAEMON_RING = tests/unit/daemon/ring_source.c tests/unit/daemon/ring_source.h

tests_unit_daemon_test_config_SOURCES = tests/unit/daemon/test_config.c
tests_unit_daemon_test_config_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_test_files_SOURCES = tests/unit/daemon/test_files.c $(TEST_DAEMON_DIR)
tests_unit_daemon_test_files_LDADD = $(TEST_DAEMON_LIBS)
# Counts what the steady state allocates.
tests_unit_daemon_test_intake_SOURCES = tests/unit/daemon/test_intake.c $(TEST_DAEMON_RING)
tests_unit_daemon_test_intake_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc
tests_unit_daemon_test_intake_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_test_peer_SOURCES = tests/unit/daemon/test_peer.c
tests_unit_daemon_test_peer_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_test_procs_SOURCES = tests/unit/daemon/test_procs.c $(TEST_DAEMON_DIR)
tests_unit_daemon_test_procs_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_test_store_SOURCES = tests/unit/daemon/test_store.c $(TEST_DAEMON_DIR)
tests_unit_daemon_test_store_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_test_trigger_SOURCES = tests/unit/daemon/test_trigger.c $(TEST_DAEMON_DIR) \
	$(TEST_DAEMON_RING)
tests_unit_daemon_test_trigger_LDADD = $(TEST_DAEMON_LIBS)
