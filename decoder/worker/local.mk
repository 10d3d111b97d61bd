pkglibexec_PROGRAMS += decoder/worker/ptsnap-decode
noinst_LIBRARIES += decoder/worker/libptworker.a

decoder_worker_libptworker_a_CFLAGS = $(AM_CFLAGS) $(SECCOMP_CFLAGS)
decoder_worker_libptworker_a_SOURCES = \
	decoder/worker/ask.c decoder/worker/ask.h \
	decoder/worker/calls.c decoder/worker/calls.h \
	decoder/worker/cgroup.c decoder/worker/cgroup.h \
	decoder/worker/contexts.c decoder/worker/contexts.h \
	decoder/worker/decode.c decoder/worker/decode.h \
	decoder/worker/decode_last.c \
	decoder/worker/decode_private.h \
	decoder/worker/decode_rounds.c \
	decoder/worker/decode_stretch.c \
	decoder/worker/functions.c decoder/worker/functions.h \
	decoder/worker/gaps.c decoder/worker/gaps.h \
	decoder/worker/gaps_recording.c \
	decoder/worker/hash.h \
	decoder/worker/lanes.c decoder/worker/lanes.h \
	decoder/worker/lines.c decoder/worker/lines.h \
	decoder/worker/marks.c decoder/worker/marks.h \
	decoder/worker/packet_line.c decoder/worker/packet_line.h \
	decoder/worker/permit.c decoder/worker/permit.h \
	decoder/worker/pevent.c decoder/worker/pevent.h \
	decoder/worker/pevent_record.c decoder/worker/pevent_record.h \
	decoder/worker/replay.c decoder/worker/replay.h \
	decoder/worker/replay_images.c decoder/worker/replay_images.h \
	decoder/worker/replay_kernel.c decoder/worker/replay_kernel.h \
	decoder/worker/replay_kernel_files.c decoder/worker/replay_kernel_files.h \
	decoder/worker/report.c decoder/worker/report.h \
	decoder/worker/report_cpus.c \
	decoder/worker/report_decoded.c \
	decoder/worker/report_functions.c \
	decoder/worker/report_host.c \
	decoder/worker/report_marks.c \
	decoder/worker/report_parts.h \
	decoder/worker/report_processes.c \
	decoder/worker/report_reach.c \
	decoder/worker/report_source.c \
	decoder/worker/report_threads.c \
	decoder/worker/report_turns.c \
	decoder/worker/report_untraced.c \
	decoder/worker/report_summary.c decoder/worker/report_values.c decoder/worker/report_values.h \
	decoder/worker/rounds.c decoder/worker/rounds.h \
	decoder/worker/sandbox.c decoder/worker/sandbox.h \
	decoder/worker/scan.c decoder/worker/scan.h \
	decoder/worker/segment.c decoder/worker/segment.h \
	decoder/worker/shift.c decoder/worker/shift.h \
	decoder/worker/shift_private.h \
	decoder/worker/shift_samples.c decoder/worker/shift_spans.c \
	decoder/worker/skim.c decoder/worker/skim.h \
	decoder/worker/skim_json.c decoder/worker/skim_json.h \
	decoder/worker/skim_lines.c decoder/worker/skim_lines.h \
	decoder/worker/skim_map.c decoder/worker/skim_map.h \
	decoder/worker/skim_rank.c decoder/worker/skim_rank.h \
	decoder/worker/skim_read.c decoder/worker/skim_read.h \
	decoder/worker/skim_shift.c decoder/worker/skim_shift.h \
	decoder/worker/skim_whose.c decoder/worker/skim_whose.h \
	decoder/worker/stopwatch.c decoder/worker/stopwatch.h \
	decoder/worker/steps.c decoder/worker/steps.h \
	decoder/worker/steps_clock.c decoder/worker/steps_clock.h \
	decoder/worker/steps_count.c decoder/worker/steps_count.h \
	decoder/worker/steps_table.c decoder/worker/steps_table.h \
	decoder/worker/tally.c decoder/worker/tally.h \
	decoder/worker/tally_cache.c decoder/worker/tally_cache.h \
	decoder/worker/tally_counting.h \
	decoder/worker/tally_last.c \
	decoder/worker/tally_private.h \
	decoder/worker/tally_quick.c \
	decoder/worker/tally_steps.c \
	decoder/worker/tally_views.c decoder/worker/tally_views.h \
	decoder/worker/tscmap.c decoder/worker/tscmap.h \
	decoder/worker/track.c decoder/worker/track.h \
	decoder/worker/turns.c decoder/worker/turns.h \
	decoder/worker/turns_cost.c \
	decoder/worker/turns_decide.c \
	decoder/worker/turns_private.h \
	decoder/worker/views.c decoder/worker/views.h \
	decoder/worker/views_packets.c decoder/worker/views_packets.h \
	decoder/worker/views_events.c decoder/worker/views_events.h \
	decoder/worker/views_ptxed.c decoder/worker/views_ptxed.h \
	decoder/worker/views_ptxed_code.c \
	decoder/worker/views_ptxed_text.c \
	decoder/worker/walk.c decoder/worker/walk.h \
	decoder/worker/whose.c decoder/worker/whose.h \
	decoder/worker/whose_code.c \
	decoder/worker/whose_kernel.c \
	decoder/worker/whose_private.h \
	decoder/worker/window.c decoder/worker/window.h

WORKER_LIBS = decoder/worker/libptworker.a decoder/libptdecoder.a sideband/libptimage.a \
	sideband/libptsideband.a proto/libptproto.a $(ZYDIS_LIBS) $(ELF_LIBS) $(SECCOMP_LIBS) \
	$(JSONC_LIBS) $(ZSTD_LIBS) -lm

decoder_worker_ptsnap_decode_CPPFLAGS = $(AM_CPPFLAGS) -DPTSNAP_VERSION=\"$(PACKAGE_VERSION)\"
decoder_worker_ptsnap_decode_SOURCES = decoder/worker/main.c decoder/worker/realpath.c
decoder_worker_ptsnap_decode_LDADD = $(WORKER_LIBS)
