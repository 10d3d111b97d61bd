pkglibexec_PROGRAMS += decoder/worker/ptsnap-decode
noinst_LIBRARIES += decoder/worker/libptworker.a

decoder_worker_libptworker_a_CFLAGS = $(AM_CFLAGS) $(SECCOMP_CFLAGS)
decoder_worker_libptworker_a_SOURCES = \
	decoder/worker/ask.c decoder/worker/ask.h \
	decoder/worker/decode.c decoder/worker/decode.h \
	decoder/worker/decode_private.h \
	decoder/worker/decode_rounds.c \
	decoder/worker/decode_slice.c \
	decoder/worker/decode_stretch.c \
	decoder/worker/sandbox.c decoder/worker/sandbox.h \
	decoder/worker/calltree/calltree.c decoder/worker/calltree/calltree.h \
	decoder/worker/calltree/calltree_edges.c \
	decoder/worker/calltree/calltree_inlined.c decoder/worker/calltree/calltree_lines.c \
	decoder/worker/calltree/calltree_private.h \
	decoder/worker/count/calls.c decoder/worker/count/calls.h \
	decoder/worker/count/decoded.c decoder/worker/count/decoded.h \
	decoder/worker/count/durations.c decoder/worker/count/durations.h \
	decoder/worker/count/functions.c decoder/worker/count/functions.h \
	decoder/worker/count/gaps.c \
	decoder/worker/count/marks.c decoder/worker/count/marks.h \
	decoder/worker/count/steps.c decoder/worker/count/steps.h \
	decoder/worker/count/tally.c decoder/worker/count/tally.h \
	decoder/worker/count/tally_instances.c \
	decoder/worker/count/tally_cache.c decoder/worker/count/tally_cache.h \
	decoder/worker/count/tally_private.h \
	decoder/worker/count/tally_quick.c \
	decoder/worker/count/tally_steps.c \
	decoder/worker/count/tally_waits.c \
	decoder/worker/listing/listing.c decoder/worker/listing/listing.h \
	decoder/worker/listing/listing_places.c decoder/worker/listing/listing_private.h \
	decoder/worker/replay/contexts.c \
	decoder/worker/replay/cpu_replay.c \
	decoder/worker/replay/permit.c decoder/worker/replay/permit.h \
	decoder/worker/replay/replay.c decoder/worker/replay/replay.h \
	decoder/worker/replay/replay_dumps.c \
	decoder/worker/replay/replay_kernel.c \
	decoder/worker/replay/replay_load.c \
	decoder/worker/replay/replay_private.h \
	decoder/worker/replay/rounds.c decoder/worker/replay/rounds.h \
	decoder/worker/replay/segment.c decoder/worker/replay/segment.h \
	decoder/worker/replay/whose.c decoder/worker/replay/whose.h \
	decoder/worker/replay/whose_code.c \
	decoder/worker/replay/whose_kernel.c \
	decoder/worker/report/report.c decoder/worker/report/report.h \
	decoder/worker/report/report_asleep.c \
	decoder/worker/report/report_cpus.c \
	decoder/worker/report/report_functions.c \
	decoder/worker/report/report_host.c \
	decoder/worker/report/report_marks.c \
	decoder/worker/report/report_parts.h \
	decoder/worker/report/report_places.c \
	decoder/worker/report/report_processes.c \
	decoder/worker/report/report_source.c \
	decoder/worker/report/report_summary.c \
	decoder/worker/report/report_states.c \
	decoder/worker/report/report_suspects.c decoder/worker/report/report_suspects.h \
	decoder/worker/report/suspects_crash.c decoder/worker/report/suspects_deadlock.c \
	decoder/worker/report/suspects_locks.c decoder/worker/report/suspects_signal.c \
	decoder/worker/report/suspects_slow.c decoder/worker/report/suspects_stuck.c \
	decoder/worker/report/suspects_threads.c decoder/worker/report/suspects_waits.c \
	decoder/worker/report/report_threads.c \
	decoder/worker/report/report_turns.c \
	decoder/worker/report/report_values.c \
	decoder/worker/skim/skim.c decoder/worker/skim/skim.h \
	decoder/worker/skim/skim_json.c \
	decoder/worker/skim/skim_lines.c \
	decoder/worker/skim/skim_map.c \
	decoder/worker/skim/skim_private.h \
	decoder/worker/skim/skim_read.c decoder/worker/skim/skim_read.h \
	decoder/worker/skim/skim_shift.c \
	decoder/worker/skim/skim_owner.c \
	decoder/worker/turns/clocks.c \
	decoder/worker/turns/scan.c decoder/worker/turns/scan.h \
	decoder/worker/turns/shift.c decoder/worker/turns/shift.h \
	decoder/worker/turns/turns.c decoder/worker/turns/turns.h \
	decoder/worker/turns/turns_enter.c \
	decoder/worker/turns/turns_decide.c \
	decoder/worker/turns/turns_private.h \
	decoder/worker/view/lines.c \
	decoder/worker/view/pevent.c decoder/worker/view/pevent.h \
	decoder/worker/view/pevent_record.c \
	decoder/worker/view/stream_time.c decoder/worker/view/stream_time.h \
	decoder/worker/view/track.c \
	decoder/worker/view/views.c decoder/worker/view/views.h \
	decoder/worker/view/views_events.c \
	decoder/worker/view/views_packets.c \
	decoder/worker/view/views_ptxed.c decoder/worker/view/views_ptxed.h \
	decoder/worker/view/views_ptxed_text.c

WORKER_LIBS = decoder/worker/libptworker.a decoder/libptdecoder.a sideband/libptimage.a \
	sideband/libptsideband.a proto/libptproto.a $(ZYDIS_LIBS) $(ELF_LIBS) $(SECCOMP_LIBS) \
	$(JSONC_LIBS) $(ZSTD_LIBS) -lm

decoder_worker_ptsnap_decode_CPPFLAGS = $(AM_CPPFLAGS) -DPTSNAP_VERSION=\"$(PACKAGE_VERSION)\"
decoder_worker_ptsnap_decode_SOURCES = decoder/worker/main.c decoder/worker/realpath.c
decoder_worker_ptsnap_decode_LDADD = $(WORKER_LIBS)
