# Figures of this host, by "make bench"; make check does not run them.
bench_programs = tests/bench/bench_stop tests/bench/bench_freeze tests/bench/bench_timeline
EXTRA_PROGRAMS += $(bench_programs) tests/bench/busy
CLEANFILES += $(bench_programs) tests/bench/busy
EXTRA_DIST += tests/bench/bench_sideband.py
BENCH_SAMPLE = tests/bench/sample.c tests/bench/sample.h

tests_bench_bench_freeze_SOURCES = tests/bench/bench_freeze.c $(BENCH_SAMPLE)
tests_bench_bench_freeze_LDADD = capture/libptcapture.a proto/libptproto.a
tests_bench_bench_stop_SOURCES = tests/bench/bench_stop.c $(BENCH_SAMPLE)
tests_bench_bench_timeline_SOURCES = tests/bench/bench_timeline.c tests/bench/storm.c tests/bench/storm.h
tests_bench_bench_timeline_LDADD = daemon/libptdaemon.a capture/libptcapture.a \
	sideband/libptsideband.a proto/libptproto.a $(SYSTEMD_LIBS) $(JSONC_LIBS)
tests_bench_busy_SOURCES = tests/bench/busy.c

.PHONY: bench
bench: $(bench_programs) tests/bench/busy daemon/ptsnapd
	@for program in $(bench_programs); do ./$$program || exit 1; done
	@PTSNAP_BUILDDIR=. $(srcdir)/tests/bench/bench_sideband.py
