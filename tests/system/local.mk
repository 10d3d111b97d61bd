SYSTEM_TESTS += tests/scenario/call_truth.tap tests/scenario/calls.tap tests/scenario/changing.tap tests/scenario/exact.tap tests/scenario/images.tap tests/scenario/jit.tap tests/scenario/machine.tap \
	tests/scenario/incidents.tap tests/scenario/minutes.tap tests/scenario/owners.tap tests/scenario/shifted.tap tests/scenario/skim.tap tests/scenario/source.tap tests/scenario/times.tap
EXTRA_DIST += tests/scenario/call_truth.py tests/scenario/calls.py tests/scenario/changing.py tests/scenario/common.py tests/scenario/exact.py tests/scenario/images.py tests/scenario/jit.py tests/scenario/machine.py \
	tests/scenario/incidents.py tests/scenario/minutes.py tests/scenario/owners.py tests/scenario/shifted.py tests/scenario/skim.py tests/scenario/source.py tests/scenario/times.py tests/support/cut_bundle.py tests/support/shift_bundle.py

# proto/varlink against a stranger's client; ptsnapctl against a recorder that misbehaves.
SYSTEM_TESTS += tests/system/varlink_certification.sh
SYSTEM_TESTS += tests/system/completion.sh tests/system/tutorial.sh
# The page of `ptsnapctl view' in a Chromium.
SYSTEM_TESTS += tests/system/page_browser.tap
EXTRA_DIST += tests/system/page_browser.mjs tests/support/browser.mjs
# Exports as their readers find them.
SYSTEM_TESTS += tests/system/export_readers.tap
EXTRA_DIST += tests/system/export_readers.py tests/system/speedscope_reader.mjs
# Kills the recorder.
SYSTEM_TESTS += tests/system/images_crash.tap tests/system/recover.tap
EXTRA_DIST += tests/system/images_crash.py tests/system/recover.py
if HAVE_BATS
SYSTEM_TESTS += tests/system/access.bats tests/system/calls.bats tests/system/check_trace.bats tests/system/conditions.bats tests/system/config.bats tests/system/ctl.bats tests/system/daemon.bats \
	tests/system/images.bats tests/system/lines.bats tests/system/listing.bats tests/system/slices.bats tests/system/names.bats tests/system/recipes.bats tests/system/triggers.bats tests/system/units.bats tests/system/view.bats tests/system/watch.bats
endif
EXTRA_DIST += tests/system/access.bats tests/system/calls.bats tests/system/one_user.py tests/support/split_users.py tests/system/check_trace.bats tests/system/conditions.bats tests/system/config.bats tests/system/ctl.bats tests/system/daemon.bats \
	tests/system/images.bats tests/system/lines.bats tests/system/listing.bats tests/system/slices.bats tests/system/names.bats tests/system/recipes.bats tests/system/triggers.bats tests/system/units.bats tests/system/view.bats tests/system/watch.bats tests/support/make_calls.py tests/system/recorder.bash tests/system/hostile_client.py \
	tests/system/fake_decoder.py tests/system/fake_recorder.py

# The installed units under a real systemd.
SYSTEM_TESTS += tests/system/nspawn.tap
EXTRA_DIST += tests/system/service/nspawn.sh tests/system/service/guest.sh tests/system/service/lib.sh \
	tests/system/service/cases.sh tests/system/service/workload.sh tests/system/service/lines.c \
	tests/system/service/units/broken.service tests/system/service/units/cases.service \
	tests/system/service/units/cases.target tests/system/service/units/emulated.service

# The kernel's own rings under load; every record passes through a wrapped function.
if HAVE_CMOCKA
check_PROGRAMS += tests/system/test_load tests/system/test_live
endif
tests_system_test_live_SOURCES = tests/system/test_live.c \
	tests/system/load_source.c tests/system/load_source.h \
	tests/system/proc_oracle.c tests/system/proc_oracle.h
tests_system_test_live_LDADD = daemon/libptdaemon.a capture/libptcapture.a \
	sideband/libptsideband.a decoder/run/libptrun.a proto/libptproto.a $(CMOCKA_LIBS) $(SYSTEMD_LIBS) $(JSONC_LIBS)
tests_system_test_load_SOURCES = tests/system/test_load.c \
	tests/system/load_source.c tests/system/load_source.h \
	tests/unit/daemon/scratch_dir.c tests/unit/daemon/scratch_dir.h
tests_system_test_load_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=timeline_push
tests_system_test_load_LDADD = daemon/libptdaemon.a capture/libptcapture.a \
	sideband/libptsideband.a decoder/run/libptrun.a proto/libptproto.a $(CMOCKA_LIBS) $(SYSTEMD_LIBS) $(JSONC_LIBS)
