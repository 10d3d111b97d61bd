# Figures of this host, by "make bench"; make check does not run them.
bench_programs = tests/bench/bench_stop tests/bench/bench_freeze
EXTRA_PROGRAMS += $(bench_programs)
CLEANFILES += $(bench_programs)
BENCH_SAMPLE = tests/bench/sample.c tests/bench/sample.h

tests_bench_bench_freeze_SOURCES = tests/bench/bench_freeze.c $(BENCH_SAMPLE)
tests_bench_bench_freeze_LDADD = capture/libptcapture.a proto/libptproto.a
tests_bench_bench_stop_SOURCES = tests/bench/bench_stop.c $(BENCH_SAMPLE)

.PHONY: bench
bench: $(bench_programs)
	@for program in $(bench_programs); do ./$$program || exit 1; done
