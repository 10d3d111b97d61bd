# "make bench" prints figures of this host; make check does not run these programs.
bench_programs = tests/bench/bench_stop tests/bench/bench_freeze tests/bench/bench_timeline
bench_helpers = tests/bench/busy tests/bench/usage tests/bench/bench_walk tests/bench/bench_worker \
	tests/bench/worst
if HAVE_LIBIPT
bench_helpers += tests/bench/bench_ipt
endif
if HAVE_BPF
bench_programs += tests/bench/bench_probe
endif
EXTRA_PROGRAMS += $(bench_programs) $(bench_helpers)
CLEANFILES += $(bench_programs) $(bench_helpers)
EXTRA_DIST += tests/bench/bench_sideband.py tests/bench/bench_decode.py tests/bench/measure.py \
	tests/bench/parts.py tests/bench/peers.py tests/bench/programs.py tests/bench/bench_page.mjs
BENCH_SAMPLE = tests/bench/sample.c tests/bench/sample.h

tests_bench_bench_freeze_SOURCES = tests/bench/bench_freeze.c $(BENCH_SAMPLE)
tests_bench_bench_freeze_LDADD = capture/libptcapture.a proto/libptproto.a
tests_bench_bench_probe_SOURCES = tests/bench/bench_probe.c
tests_bench_bench_probe_LDADD = capture/libptprobe.a capture/libptcapture.a proto/libptproto.a $(BPF_LIBS) $(JSONC_LIBS)
tests_bench_bench_stop_SOURCES = tests/bench/bench_stop.c $(BENCH_SAMPLE)
tests_bench_bench_timeline_SOURCES = tests/bench/bench_timeline.c tests/bench/storm.c tests/bench/storm.h
tests_bench_bench_timeline_LDADD = daemon/libptdaemon.a capture/libptcapture.a \
	sideband/libptsideband.a decoder/run/libptrun.a proto/libptproto.a $(SYSTEMD_LIBS) $(JSONC_LIBS)
tests_bench_bench_ipt_SOURCES = tests/bench/bench_ipt.c tests/bench/ipt_image.c tests/bench/ipt_image.h \
	tests/bench/code.c tests/bench/code.h
tests_bench_bench_ipt_LDADD = proto/libptproto.a $(LIBIPT_LIBS) $(JSONC_LIBS)
tests_bench_bench_walk_SOURCES = tests/bench/bench_walk.c tests/bench/walk_nodes.c \
	tests/bench/walk_nodes.h tests/bench/code.c tests/bench/code.h
tests_bench_bench_walk_LDADD = decoder/libptdecoder.a proto/libptproto.a $(ZYDIS_LIBS) $(JSONC_LIBS)
tests_bench_bench_worker_SOURCES = decoder/worker/main.c tests/bench/no_sandbox.c
tests_bench_bench_worker_CPPFLAGS = $(decoder_worker_ptsnap_decode_CPPFLAGS)
tests_bench_bench_worker_LDADD = $(WORKER_LIBS)
tests_bench_busy_SOURCES = tests/bench/busy.c
tests_bench_usage_SOURCES = tests/bench/usage.c
tests_bench_worst_SOURCES = tests/bench/worst.c

.PHONY: bench bench-decode bench-page
bench: $(bench_programs) $(bench_helpers) daemon/ptsnapd bench-decode
	@for program in $(bench_programs); do ./$$program || exit 1; done
	@PTSNAP_BUILDDIR=. $(srcdir)/tests/bench/bench_sideband.py
# BENCH_DECODE: options of bench_decode.py. PTSNAP_BENCH_DIR: directory that keeps traces.
bench-decode: all $(bench_helpers)
	@PTSNAP_BUILDDIR=. PTSNAP_SRCDIR=$(srcdir) PYTHONDONTWRITEBYTECODE=1 \
		$(srcdir)/tests/bench/bench_decode.py $(BENCH_DECODE)
# BENCH_PAGE: the number of calls.
bench-page: all
	@node $(srcdir)/tests/bench/bench_page.mjs ctl/ptsnapctl $(BENCH_PAGE)
