# ctl: ptsnapctl, the user's program. Includes proto only.

# Everything but main, so that tests can link it.
noinst_LIBRARIES += ctl/libptctl.a
ctl_libptctl_a_CPPFLAGS = $(AM_CPPFLAGS) \
	-DPTSNAP_VERSION=\"$(PACKAGE_VERSION)\" \
	-DPTSNAP_LIBEXECDIR=\"$(pkglibexecdir)\" \
	-DPTSNAP_SBINDIR=\"$(sbindir)\"
ctl_libptctl_a_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) $(ZSTD_CFLAGS)
ctl_libptctl_a_SOURCES = \
	ctl/answers.c ctl/answers.h \
	ctl/check_trace.c ctl/check_trace.h ctl/check_trace_private.h \
	ctl/check_trace_decode.c \
	ctl/check_trace_emulated.c \
	ctl/check_trace_json.c \
	ctl/check_trace_judge.c \
	ctl/check_trace_lines.c \
	ctl/check_trace_live.c \
	ctl/check_trace_page.c \
	ctl/check_trace_walks.c \
	ctl/client.c ctl/client.h \
	ctl/client_error.c ctl/client_error.h \
	ctl/cmd_check.c \
	ctl/cmd_decode.c \
	ctl/cmd_delete.c \
	ctl/cmd_export.c \
	ctl/cmd_fetch.c \
	ctl/cmd_list.c \
	ctl/cmd_monitor.c \
	ctl/cmd_pin.c \
	ctl/cmd_reload.c \
	ctl/cmd_snapshot.c \
	ctl/cmd_status.c \
	ctl/cmd_yield.c \
	ctl/debug_files.c ctl/debug_files.h \
	ctl/debuginfod.c ctl/debuginfod.h \
	ctl/decode_option.c ctl/decode_option.h \
	ctl/deliver.c ctl/deliver.h \
	ctl/exit_code.h \
	ctl/export_features.c ctl/export_features.h \
	ctl/export_images.c ctl/export_images.h \
	ctl/export_layout.c ctl/export_layout.h \
	ctl/export_perfdata.c ctl/export_perfdata.h \
	ctl/export_records.c ctl/export_records.h \
	ctl/export_sink.c ctl/export_sink.h \
	ctl/field.c ctl/field.h \
	ctl/figure.c ctl/figure.h \
	ctl/findings.c ctl/findings.h \
	ctl/import_images.c ctl/import_images.h \
	ctl/import_perfdata.c ctl/import_perfdata.h \
	ctl/import_pevents.c ctl/import_pevents.h \
	ctl/import_records.c ctl/import_records.h \
	ctl/import_traces.c ctl/import_traces.h \
	ctl/import_zstd.c ctl/import_zstd.h \
	ctl/join.c ctl/join.h \
	ctl/monitor_env.c ctl/monitor_env.h \
	ctl/name.c ctl/name.h \
	ctl/option.c ctl/option.h \
	ctl/output.c ctl/output.h \
	ctl/pevent_option.c ctl/pevent_option.h \
	ctl/raw.c ctl/raw.h ctl/raw_option.c \
	ctl/say.c ctl/say.h \
	ctl/show.c ctl/show.h \
	ctl/show_events.c ctl/show_events.h \
	ctl/show_table.c ctl/show_table.h \
	ctl/show_turns.c ctl/show_turns.h \
	ctl/show_option.c ctl/show_option.h \
	ctl/show_skim.c ctl/show_skim.h \
	ctl/size.c ctl/size.h \
	ctl/stored.c ctl/stored.h \
	ctl/text.c ctl/text.h \
	ctl/verb.h \
	ctl/walk_layout.h \
	ctl/walk_match.c ctl/walk_match.h \
	ctl/walk_model.c ctl/walk_model.h \
	ctl/whole_file.c ctl/whole_file.h \
	ctl/worker_path.c ctl/worker_path.h

bin_PROGRAMS += ctl/ptsnapctl
ctl_ptsnapctl_CPPFLAGS = $(ctl_libptctl_a_CPPFLAGS)
ctl_ptsnapctl_CFLAGS = $(ctl_libptctl_a_CFLAGS)
ctl_ptsnapctl_SOURCES = ctl/main.c
ctl_ptsnapctl_LDADD = ctl/libptctl.a decoder/run/libptrun.a proto/libptproto.a $(JSONC_LIBS) $(ZSTD_LIBS) -lm

# What `ptsnapctl check --trace' traces: no library, fixed addresses, nothing but its own branches.
pkglibexec_PROGRAMS += ctl/ptsnap-walk
ctl_ptsnap_walk_SOURCES = ctl/walk_program.S ctl/walk_layout.h
ctl_ptsnap_walk_CCASFLAGS =
ctl_ptsnap_walk_CFLAGS =
ctl_ptsnap_walk_LDFLAGS = -nostdlib -static -no-pie -Wl,--build-id -Wl,-T,$(top_srcdir)/ctl/walk_program.ld
ctl_ptsnap_walk_LDADD =
ctl_ptsnap_walk_DEPENDENCIES = $(top_srcdir)/ctl/walk_program.ld
EXTRA_DIST += ctl/walk_program.ld
