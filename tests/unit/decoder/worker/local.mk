check_PROGRAMS += \
	tests/unit/decoder/worker/test_ask \
	tests/unit/decoder/worker/test_ask_debug \
	tests/unit/decoder/worker/calltree/test_calltree \
	tests/unit/decoder/worker/listing/test_listing \
	tests/unit/decoder/worker/count/test_calls \
	tests/unit/decoder/worker/test_deadline \
	tests/unit/decoder/worker/test_slice \
	tests/unit/decoder/worker/replay/test_dumps \
	tests/unit/decoder/worker/replay/test_images \
	tests/unit/decoder/worker/replay/test_kernel_files \
	tests/unit/decoder/worker/count/test_marks \
	tests/unit/decoder/worker/replay/test_permit \
	tests/unit/decoder/worker/view/test_pevent \
	tests/unit/decoder/worker/replay/test_replay \
	tests/unit/decoder/worker/report/test_report \
	tests/unit/decoder/worker/report/test_report_gaps \
	tests/unit/decoder/worker/report/test_report_limit \
	tests/unit/decoder/worker/report/test_report_marks \
	tests/unit/decoder/worker/report/test_report_source \
	tests/unit/decoder/worker/report/test_suspects_calls \
	tests/unit/decoder/worker/report/test_suspects_threads \
	tests/unit/decoder/worker/replay/test_rounds \
	tests/unit/decoder/worker/test_sandbox \
	tests/unit/decoder/worker/test_sandbox_calls \
	tests/unit/decoder/worker/test_sandbox_dwarf \
	tests/unit/decoder/worker/turns/test_shift \
	tests/unit/decoder/worker/skim/test_skim \
	tests/unit/decoder/worker/skim/test_skim_read \
	tests/unit/decoder/worker/count/test_steps \
	tests/unit/decoder/worker/count/test_durations \
	tests/unit/decoder/worker/count/test_tally \
	tests/unit/decoder/worker/count/test_tally_steps \
	tests/unit/decoder/worker/test_threads \
	tests/unit/decoder/worker/view/test_track \
	tests/unit/decoder/worker/turns/test_turns \
	tests/unit/decoder/worker/turns/test_turns_load \
	tests/unit/decoder/worker/turns/test_turns_many \
	tests/unit/decoder/worker/turns/test_turns_sweep \
	tests/unit/decoder/worker/view/test_views \
	tests/unit/decoder/worker/view/test_views_events \
	tests/unit/decoder/worker/view/test_views_packets \
	tests/unit/decoder/worker/view/test_views_ptxed
# Run by tests/system/worker.sh.
noinst_PROGRAMS += tests/support/make_bundle tests/support/run_worker
SYSTEM_TESTS += tests/system/worker.sh
EXTRA_DIST += tests/system/worker_schema.py

tests_support_make_bundle_SOURCES = tests/support/make_bundle_main.c tests/support/make_bundle.c \
	tests/support/make_bundle.h tests/support/make_wild.c tests/support/make_wild.h
tests_support_make_bundle_LDADD = proto/libptproto.a $(JSONC_LIBS)
tests_support_run_worker_SOURCES = tests/support/run_worker.c
tests_support_run_worker_LDADD = decoder/run/libptrun.a proto/libptproto.a $(JSONC_LIBS)

TEST_WORKER_LIBS = $(WORKER_LIBS) $(CMOCKA_LIBS)
TEST_WORKER_MADE = tests/support/make_bundle.c tests/support/make_bundle.h \
	tests/support/make_wild.c tests/support/make_wild.h tests/unit/decoder/worker/made.h \
	tests/unit/decoder/worker/made_parts.h

tests_unit_decoder_worker_test_ask_SOURCES = tests/unit/decoder/worker/test_ask.c $(TEST_WORKER_MADE)
tests_unit_decoder_worker_test_ask_LDADD = decoder/run/libptrun.a $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_test_ask_debug_SOURCES = tests/unit/decoder/worker/test_ask_debug.c
tests_unit_decoder_worker_test_ask_debug_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_calltree_test_calltree_SOURCES = \
	tests/unit/decoder/worker/calltree/test_calltree.c $(TEST_WORKER_MADE)
tests_unit_decoder_worker_calltree_test_calltree_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_listing_test_listing_SOURCES = \
	tests/unit/decoder/worker/listing/test_listing.c $(TEST_WORKER_MADE)
tests_unit_decoder_worker_listing_test_listing_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_count_test_calls_SOURCES = tests/unit/decoder/worker/count/test_calls.c
tests_unit_decoder_worker_count_test_calls_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_test_slice_SOURCES = tests/unit/decoder/worker/test_slice.c \
	tests/unit/decoder/worker/made_json.h $(TEST_WORKER_MADE)
tests_unit_decoder_worker_test_slice_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_test_deadline_SOURCES = tests/unit/decoder/worker/test_deadline.c \
	tests/unit/decoder/worker/made_json.h $(TEST_WORKER_MADE)
tests_unit_decoder_worker_test_deadline_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_replay_test_dumps_SOURCES = tests/unit/decoder/worker/replay/test_dumps.c \
	tests/unit/sideband/jitdump_maker.c tests/unit/sideband/jitdump_maker.h $(TEST_WORKER_MADE)
tests_unit_decoder_worker_replay_test_dumps_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_replay_test_images_SOURCES = tests/unit/decoder/worker/replay/test_images.c $(TEST_WORKER_MADE)
tests_unit_decoder_worker_replay_test_images_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_replay_test_kernel_files_SOURCES = tests/unit/decoder/worker/replay/test_kernel_files.c \
	tests/unit/sideband/elf_maker.c tests/unit/sideband/elf_maker.h $(TEST_WORKER_MADE)
tests_unit_decoder_worker_replay_test_kernel_files_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_count_test_marks_SOURCES = tests/unit/decoder/worker/count/test_marks.c
tests_unit_decoder_worker_count_test_marks_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_replay_test_permit_SOURCES = tests/unit/decoder/worker/replay/test_permit.c \
	tests/unit/decoder/worker/made_json.h $(TEST_WORKER_MADE)
tests_unit_decoder_worker_replay_test_permit_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_view_test_pevent_SOURCES = tests/unit/decoder/worker/view/test_pevent.c \
	tests/unit/decoder/worker/made_raw.h $(TEST_WORKER_MADE)
tests_unit_decoder_worker_view_test_pevent_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_replay_test_replay_SOURCES = tests/unit/decoder/worker/replay/test_replay.c $(TEST_WORKER_MADE)
tests_unit_decoder_worker_replay_test_replay_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=cpu_replay_step
tests_unit_decoder_worker_replay_test_replay_LDADD = $(TEST_WORKER_LIBS)
TEST_WORKER_REPORT = tests/unit/decoder/worker/report/made_report.h \
	tests/unit/decoder/worker/made_json.h $(TEST_WORKER_MADE)
tests_unit_decoder_worker_report_test_report_SOURCES = tests/unit/decoder/worker/report/test_report.c \
	$(TEST_WORKER_REPORT)
tests_unit_decoder_worker_report_test_report_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_report_test_report_gaps_SOURCES = tests/unit/decoder/worker/report/test_report_gaps.c \
	$(TEST_WORKER_REPORT)
tests_unit_decoder_worker_report_test_report_gaps_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_report_test_report_limit_SOURCES = tests/unit/decoder/worker/report/test_report_limit.c \
	$(TEST_WORKER_REPORT)
tests_unit_decoder_worker_report_test_report_limit_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_report_test_report_marks_SOURCES = tests/unit/decoder/worker/report/test_report_marks.c \
	tests/unit/decoder/worker/made_json.h $(TEST_WORKER_MADE)
tests_unit_decoder_worker_report_test_report_marks_LDADD = $(TEST_WORKER_LIBS)
# Says itself what DWARF would.
tests_unit_decoder_worker_report_test_report_source_SOURCES = tests/unit/decoder/worker/report/test_report_source.c \
	$(TEST_WORKER_REPORT)
tests_unit_decoder_worker_report_test_report_source_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_report_test_report_source_LDFLAGS = \
	-Wl,--wrap=symbols_lines,--wrap=symbols_dwarf,--wrap=demangle
# Say themselves what a decode would have found.
SUSPECTS_WRAPS = -Wl,--wrap=report_reach,--wrap=report_all_begin_ns,--wrap=report_system_call \
	-Wl,--wrap=report_linkage_at,--wrap=timeline_get_turn,--wrap=report_call_at \
	-Wl,--wrap=replay_read
tests_unit_decoder_worker_report_test_suspects_calls_SOURCES = \
	tests/unit/decoder/worker/report/test_suspects_calls.c \
	tests/unit/decoder/worker/report/suspects_world.h
tests_unit_decoder_worker_report_test_suspects_calls_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_report_test_suspects_calls_LDFLAGS = $(AM_LDFLAGS) $(SUSPECTS_WRAPS)
tests_unit_decoder_worker_report_test_suspects_threads_SOURCES = \
	tests/unit/decoder/worker/report/test_suspects_threads.c \
	tests/unit/decoder/worker/report/suspects_world.h
tests_unit_decoder_worker_report_test_suspects_threads_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_report_test_suspects_threads_LDFLAGS = $(AM_LDFLAGS) $(SUSPECTS_WRAPS)
tests_unit_decoder_worker_replay_test_rounds_SOURCES = tests/unit/decoder/worker/replay/test_rounds.c $(TEST_WORKER_MADE)
tests_unit_decoder_worker_replay_test_rounds_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_test_sandbox_SOURCES = tests/unit/decoder/worker/test_sandbox.c
tests_unit_decoder_worker_test_sandbox_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_test_sandbox_calls_SOURCES = tests/unit/decoder/worker/test_sandbox_calls.c
tests_unit_decoder_worker_test_sandbox_calls_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_test_sandbox_dwarf_SOURCES = tests/unit/decoder/worker/test_sandbox_dwarf.c \
	decoder/worker/realpath.c
tests_unit_decoder_worker_test_sandbox_dwarf_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_turns_test_shift_SOURCES = tests/unit/decoder/worker/turns/test_shift.c
tests_unit_decoder_worker_turns_test_shift_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_skim_test_skim_SOURCES = tests/unit/decoder/worker/skim/test_skim.c \
	tests/unit/decoder/worker/made_json.h tests/unit/decoder/worker/made_raw.h $(TEST_WORKER_MADE)
tests_unit_decoder_worker_skim_test_skim_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_skim_test_skim_read_SOURCES = tests/unit/decoder/worker/skim/test_skim_read.c
tests_unit_decoder_worker_skim_test_skim_read_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_count_test_steps_SOURCES = tests/unit/decoder/worker/count/test_steps.c
tests_unit_decoder_worker_count_test_steps_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_count_test_durations_SOURCES = tests/unit/decoder/worker/count/test_durations.c $(TEST_WORKER_MADE)
tests_unit_decoder_worker_count_test_durations_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_count_test_tally_SOURCES = tests/unit/decoder/worker/count/test_tally.c $(TEST_WORKER_MADE)
tests_unit_decoder_worker_count_test_tally_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_count_test_tally_steps_SOURCES = tests/unit/decoder/worker/count/test_tally_steps.c $(TEST_WORKER_MADE)
tests_unit_decoder_worker_count_test_tally_steps_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_test_threads_SOURCES = tests/unit/decoder/worker/test_threads.c $(TEST_WORKER_MADE)
tests_unit_decoder_worker_test_threads_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_view_test_track_SOURCES = tests/unit/decoder/worker/view/test_track.c
tests_unit_decoder_worker_view_test_track_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_turns_test_turns_SOURCES = tests/unit/decoder/worker/turns/test_turns.c
tests_unit_decoder_worker_turns_test_turns_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_turns_test_turns_sweep_SOURCES = tests/unit/decoder/worker/turns/test_turns_sweep.c
tests_unit_decoder_worker_turns_test_turns_sweep_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_turns_test_turns_load_SOURCES = tests/unit/decoder/worker/turns/test_turns_load.c \
	tests/support/timeline_look.h tests/unit/sideband/load.h tests/unit/sideband/records.h
tests_unit_decoder_worker_turns_test_turns_load_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_turns_test_turns_many_SOURCES = tests/unit/decoder/worker/turns/test_turns_many.c
tests_unit_decoder_worker_turns_test_turns_many_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_view_test_views_SOURCES = tests/unit/decoder/worker/view/test_views.c $(TEST_WORKER_MADE)
tests_unit_decoder_worker_view_test_views_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_view_test_views_events_SOURCES = tests/unit/decoder/worker/view/test_views_events.c \
	$(TEST_WORKER_MADE)
tests_unit_decoder_worker_view_test_views_events_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_view_test_views_packets_SOURCES = tests/unit/decoder/worker/view/test_views_packets.c \
	tests/unit/decoder/worker/made_raw.h $(TEST_WORKER_MADE)
tests_unit_decoder_worker_view_test_views_packets_LDADD = $(TEST_WORKER_LIBS)
tests_unit_decoder_worker_view_test_views_ptxed_SOURCES = tests/unit/decoder/worker/view/test_views_ptxed.c $(TEST_WORKER_MADE)
tests_unit_decoder_worker_view_test_views_ptxed_LDADD = $(TEST_WORKER_LIBS)
