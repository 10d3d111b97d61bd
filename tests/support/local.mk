# Programs that tests run; none of them is installed.
noinst_PROGRAMS += tests/support/vl_cert_server tests/support/truth_window \
	tests/support/truth_subset tests/support/truth_owners tests/support/truth_times \
	tests/support/truth_calls tests/support/emu_run \
	tests/support/fuse_file tests/support/fake_systemd
tests_support_fake_systemd_SOURCES = tests/support/fake_systemd.c
tests_support_fake_systemd_LDADD = $(SYSTEMD_LIBS)
tests_support_fuse_file_SOURCES = tests/support/fuse_file.c
tests_support_fuse_file_LDADD =
tests_support_vl_cert_server_SOURCES = tests/support/vl_cert_server.c
tests_support_vl_cert_server_LDADD = proto/libptproto.a $(JSONC_LIBS)

# Read a truth directory, which says what was executed, and compare with what was decoded.
TRUTH_SOURCES = tests/support/truth.c tests/support/truth.h \
	tests/support/truth_walk.c tests/support/truth_walk.h
# Without sanitizers, which make the comparison several times slower. The unit tests of the shared
# files have sanitizers.
TRUTH_CFLAGS = -std=gnu11 -fPIE $(WARN_CFLAGS) $(HARDEN_CFLAGS) $(ZYDIS_CFLAGS)
SUBSET_SOURCES = tests/support/subset.c tests/support/subset.h
tests_support_truth_window_SOURCES = tests/support/truth_window.c $(TRUTH_SOURCES)
tests_support_truth_window_CFLAGS = $(TRUTH_CFLAGS)
tests_support_truth_window_LDADD =
tests_support_truth_owners_SOURCES = tests/support/truth_owners.c $(TRUTH_SOURCES)
tests_support_truth_owners_CFLAGS = $(TRUTH_CFLAGS)
tests_support_truth_owners_LDADD = proto/libptproto.a
tests_support_truth_subset_SOURCES = tests/support/truth_subset.c $(TRUTH_SOURCES) $(SUBSET_SOURCES)
tests_support_truth_subset_CFLAGS = $(TRUTH_CFLAGS)
tests_support_truth_subset_LDADD =
tests_support_truth_times_SOURCES = tests/support/truth_times.c $(TRUTH_SOURCES)
tests_support_truth_times_CFLAGS = $(TRUTH_CFLAGS)
tests_support_truth_times_LDADD =
tests_support_truth_calls_SOURCES = tests/support/truth_calls.c tests/support/truth_clock.h \
	tests/support/truth_offs.c tests/support/truth_offs.h \
	tests/support/truth_stack.c tests/support/truth_stack.h \
	tests/support/call_lines.c tests/support/call_lines.h $(TRUTH_SOURCES)
tests_support_truth_calls_CFLAGS = $(TRUTH_CFLAGS)
tests_support_truth_calls_LDADD = proto/libptproto.a $(ZYDIS_LIBS)
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/support/test_truth_walk tests/unit/support/test_subset \
	tests/unit/support/test_child
endif
tests_unit_support_test_child_SOURCES = tests/unit/support/test_child.c
tests_unit_support_test_child_LDADD = $(CMOCKA_LIBS)
tests_unit_support_test_truth_walk_SOURCES = tests/unit/support/test_truth_walk.c $(TRUTH_SOURCES)
tests_unit_support_test_truth_walk_LDADD = $(CMOCKA_LIBS)
tests_unit_support_test_subset_SOURCES = tests/unit/support/test_subset.c $(SUBSET_SOURCES)
tests_unit_support_test_subset_LDADD = $(CMOCKA_LIBS)

# Scripts: program, trace, sideband and expectation in one text (docs/PTSCRIPT.md).
PTSCRIPT_SOURCES = tests/support/ptscript.c tests/support/ptscript.h \
	tests/support/ptscript_event.c \
	tests/support/ptscript_expect.c \
	tests/support/ptscript_line.c tests/support/ptscript_line.h \
	tests/support/ptscript_packet.h \
	tests/support/ptscript_sideband.c \
	tests/support/ptscript_trace.c
noinst_PROGRAMS += tests/support/ptscript_tool
tests_support_ptscript_tool_SOURCES = tests/support/ptscript_tool.c \
	tests/support/ptscript_program.c tests/support/ptscript_program.h $(PTSCRIPT_SOURCES)
tests_support_ptscript_tool_LDADD = proto/libptproto.a $(JSONC_LIBS)
if HAVE_CMOCKA
check_PROGRAMS += tests/unit/support/test_ptscript tests/unit/support/test_ptscript_trace
endif
tests_unit_support_test_ptscript_SOURCES = tests/unit/support/test_ptscript.c \
	tests/support/ptscript_program.c tests/support/ptscript_program.h $(PTSCRIPT_SOURCES)
tests_unit_support_test_ptscript_LDADD = decoder/libptdecoder.a proto/libptproto.a \
	$(ZYDIS_LIBS) $(CMOCKA_LIBS)
tests_unit_support_test_ptscript_trace_SOURCES = tests/unit/support/test_ptscript_trace.c \
	$(PTSCRIPT_SOURCES)
tests_unit_support_test_ptscript_trace_LDADD = decoder/libptdecoder.a proto/libptproto.a \
	$(ZYDIS_LIBS) $(CMOCKA_LIBS)

# Runs a command under the emulated source and dumps its rings.
tests_support_emu_run_SOURCES = tests/support/emu_run.c
tests_support_emu_run_LDADD = capture/libptcapture.a proto/libptproto.a $(JSONC_LIBS)

# Guests run under the emulator, and therefore without sanitizers.
GUEST_CFLAGS = -std=gnu11 -O2 -Wall -Wextra
noinst_PROGRAMS += tests/support/guest_signals tests/support/guest_spin tests/support/guest_threads \
	tests/support/guest_forks tests/support/guest_jit tests/support/guest_maps \
	tests/support/guest_odd tests/support/guest_rare tests/support/guest_turns tests/support/guest_bpf tests/support/guest_jumps tests/support/guest_swap tests/support/guest_fixed0 \
	tests/support/guest_fixed1 tests/support/guest_incidents tests/support/guest_minute tests/support/guest_crowd
tests_support_guest_signals_SOURCES = tests/support/guest_signals.c
tests_support_guest_signals_CFLAGS = $(GUEST_CFLAGS) -Wno-clobbered -Wno-infinite-recursion
tests_support_guest_signals_LDFLAGS =
tests_support_guest_spin_SOURCES = tests/support/guest_spin.c
tests_support_guest_spin_CFLAGS = $(GUEST_CFLAGS)
tests_support_guest_spin_LDFLAGS =
tests_support_guest_spin_LDADD =
tests_support_guest_threads_SOURCES = tests/support/guest_threads.c
tests_support_guest_threads_CFLAGS = $(GUEST_CFLAGS)
tests_support_guest_threads_LDFLAGS = -pthread
tests_support_guest_forks_SOURCES = tests/support/guest_forks.c
tests_support_guest_forks_CFLAGS = $(GUEST_CFLAGS)
tests_support_guest_forks_LDFLAGS = -pthread
tests_support_guest_jit_SOURCES = tests/support/guest_jit.c
tests_support_guest_jit_CFLAGS = $(GUEST_CFLAGS)
tests_support_guest_jit_LDFLAGS =
tests_support_guest_maps_SOURCES = tests/support/guest_maps.c
tests_support_guest_maps_CFLAGS = $(GUEST_CFLAGS)
tests_support_guest_maps_LDFLAGS = -pthread
tests_support_guest_maps_LDADD = -ldl
tests_support_guest_swap_SOURCES = tests/support/guest_swap.c
tests_support_guest_swap_CFLAGS = $(GUEST_CFLAGS)
tests_support_guest_swap_LDFLAGS =
tests_support_guest_swap_LDADD = -ldl
# Two programs with different code at one fixed address.
tests_support_guest_fixed0_SOURCES = tests/support/guest_fixed.c
tests_support_guest_fixed0_CFLAGS = $(GUEST_CFLAGS) -fno-pie -DVARIANT=0
tests_support_guest_fixed0_LDFLAGS = -no-pie
tests_support_guest_fixed0_LDADD =
tests_support_guest_fixed1_SOURCES = tests/support/guest_fixed.c
tests_support_guest_fixed1_CFLAGS = $(GUEST_CFLAGS) -fno-pie -DVARIANT=1
tests_support_guest_fixed1_LDFLAGS = -no-pie
tests_support_guest_fixed1_LDADD =
tests_support_guest_jumps_SOURCES = tests/support/guest_jumps.c
tests_support_guest_jumps_CFLAGS = $(GUEST_CFLAGS) -Wno-clobbered
tests_support_guest_jumps_LDFLAGS = -pthread
tests_support_guest_incidents_SOURCES = tests/support/guest_incidents.c
tests_support_guest_incidents_CFLAGS = $(GUEST_CFLAGS)
tests_support_guest_incidents_LDFLAGS = -pthread
tests_support_guest_incidents_LDADD =
tests_support_guest_minute_SOURCES = tests/support/guest_minute.c
tests_support_guest_minute_CFLAGS = $(GUEST_CFLAGS)
tests_support_guest_minute_LDFLAGS =
tests_support_guest_minute_LDADD =
tests_support_guest_crowd_SOURCES = tests/support/guest_crowd.c
tests_support_guest_crowd_CFLAGS = $(GUEST_CFLAGS)
tests_support_guest_crowd_LDFLAGS = -pthread
tests_support_guest_crowd_LDADD =
tests_support_guest_rare_SOURCES = tests/support/guest_rare.c
tests_support_guest_rare_CFLAGS = $(GUEST_CFLAGS) -w
tests_support_guest_rare_LDFLAGS = -pthread
tests_support_guest_turns_SOURCES = tests/support/guest_turns.c
tests_support_guest_turns_CFLAGS = $(GUEST_CFLAGS)
tests_support_guest_turns_LDFLAGS = -pthread
tests_support_guest_bpf_SOURCES = tests/support/guest_bpf.c
tests_support_guest_bpf_CFLAGS = $(GUEST_CFLAGS)
tests_support_guest_odd_SOURCES = tests/support/guest_odd.c
tests_support_guest_odd_CFLAGS = $(GUEST_CFLAGS)
tests_support_guest_odd_LDFLAGS = -pthread

# ptsnap-decode with seams at every PSB, and a clock that gives the same times in each run.
noinst_PROGRAMS += tests/support/seams_worker
tests_support_seams_worker_SOURCES = tests/support/seams_worker.c decoder/worker/main.c
tests_support_seams_worker_CPPFLAGS = $(decoder_worker_ptsnap_decode_CPPFLAGS)
tests_support_seams_worker_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=flow_new,--wrap=flow_free,--wrap=ahead_take,--wrap=clock_gettime
tests_support_seams_worker_LDADD = $(WORKER_LIBS)

# Included by make_bundle.c and make_wild.c.
EXTRA_DIST += tests/support/make_elf.h

# Synthetic perf.data files, for tests of whole programs and for the fuzz corpus.
noinst_PROGRAMS += tests/support/make_perfdata
tests_support_make_perfdata_SOURCES = tests/support/make_perfdata_main.c \
	tests/support/make_perfdata.c tests/support/make_perfdata.h \
	tests/support/make_bundle.c tests/support/make_bundle.h \
	tests/support/make_wild.c tests/support/make_wild.h
tests_support_make_perfdata_LDADD = proto/libptproto.a $(JSONC_LIBS) $(ZSTD_LIBS)
EXTRA_DIST += tests/support/beside.h tests/support/child.h tests/support/flow_look.h tests/support/seams.h \
	tests/support/timeline_look.h

# Call streams in the formats of other tools, without a decoder.
noinst_PROGRAMS += tests/support/export_stream
tests_support_export_stream_SOURCES = tests/support/export_stream.c
tests_support_export_stream_LDADD = ctl/libptctl.a decoder/run/libptrun.a proto/libptproto.a $(JSONC_LIBS) $(ZLIB_LIBS) -lm
