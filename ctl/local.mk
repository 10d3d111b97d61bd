# ctl: ptsnapctl, the user's program. Includes proto only.

# Everything but main, so that tests can link it.
noinst_LIBRARIES += ctl/libptctl.a
ctl_libptctl_a_CPPFLAGS = $(AM_CPPFLAGS) \
	-DPTSNAP_VERSION=\"$(PACKAGE_VERSION)\" \
	-DPTSNAP_LIBEXECDIR=\"$(pkglibexecdir)\" \
	-DPTSNAP_SBINDIR=\"$(sbindir)\"
ctl_libptctl_a_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS) $(ZSTD_CFLAGS) $(ZLIB_CFLAGS)
ctl_libptctl_a_SOURCES = \
	ctl/decode/answers.c ctl/decode/answers.h \
	ctl/check/check_trace.c ctl/check/check_trace.h ctl/check/check_trace_private.h \
	ctl/check/check_trace_decode.c \
	ctl/check/check_trace_emulated.c \
	ctl/check/check_trace_live.c \
	ctl/check/check_trace_result.c \
	ctl/client/client.c ctl/client/client.h \
	ctl/baseline.c ctl/baseline.h \
	ctl/cmd_calls.c \
	ctl/cmd_check.c \
	ctl/cmd_decode.c \
	ctl/cmd_diff.c \
	ctl/cmd_export.c \
	ctl/cmd_info.c \
	ctl/cmd_listing.c \
	ctl/cmd_recorder.c \
	ctl/cmd_snapshot.c \
	ctl/cmd_status.c \
	ctl/cmd_stored.c \
	ctl/cmd_tables.c \
	ctl/report.c \
	ctl/cmd_timeline.c \
	ctl/cmd_trigger.c \
	ctl/cmd_view.c \
	ctl/calls/calls.c ctl/calls/calls.h ctl/calls/order.c ctl/calls/order.h \
	ctl/calls/slice.c ctl/calls/slice.h ctl/calls/source.c ctl/calls/gaps.c ctl/calls/gaps.h \
	ctl/listing/listing.c ctl/listing/listing.h ctl/listing/listing_print.c \
	ctl/decode/decode_option.c ctl/decode/decode_option.h \
	ctl/decode/decode_run.c ctl/decode/decode_run.h \
	ctl/diff/diff.c ctl/diff/diff.h ctl/diff/noise.c ctl/diff/noise.h \
	ctl/diff/diff_private.h ctl/diff/finds.c ctl/diff/paths.c \
	ctl/diff/side.c ctl/diff/side.h \
	ctl/show/deliver.c ctl/show/show_diff.c \
	ctl/export/brstack.c \
	ctl/export/export.c ctl/export/export.h ctl/export/export_private.h \
	ctl/export/format_perfetto.c \
	ctl/export/format_pprof.c \
	ctl/export/format_speedscope.c \
	ctl/export/format_stacks.c \
	ctl/export/format_table.c \
	ctl/export/names.c \
	ctl/export/out.c \
	ctl/export/protobuf.c \
	ctl/export/slots.c \
	ctl/export/spool.c \
	ctl/export/stacks.c \
	ctl/perfdata/export_images.c \
	ctl/perfdata/export_layout.c ctl/perfdata/export_layout.h \
	ctl/perfdata/export_perfdata.c ctl/perfdata/export_perfdata.h \
	ctl/base/field.c ctl/base/field.h \
	ctl/base/place.c ctl/base/place.h \
	ctl/base/progress.c ctl/base/progress.h \
	ctl/perfdata/import_images.c ctl/perfdata/import_images.h \
	ctl/perfdata/import_kernel.c ctl/perfdata/import_kernel.h \
	ctl/perfdata/import_perfdata.c ctl/perfdata/import_perfdata.h \
	ctl/decode/import_pevents.c \
	ctl/perfdata/import_private.h ctl/perfdata/import_records.c \
	ctl/perfdata/import_traces.c \
	ctl/page/page.c ctl/page/page.h ctl/page/page_pack.c ctl/page/page_private.h \
	ctl/client/join.c \
	ctl/show/histogram.c \
	ctl/show/keep.c \
	ctl/show/list.c ctl/show/list.h ctl/show/list_columns.c \
	ctl/show/name.c \
	ctl/base/nearest.c ctl/base/nearest.h \
	ctl/show/page.c ctl/show/page.h \
	ctl/show/pager.c ctl/show/pager.h \
	ctl/base/option.c ctl/base/option.h \
	ctl/base/file.c ctl/base/file.h \
	ctl/decode/raw.c ctl/decode/raw.h ctl/decode/raw_option.c \
	ctl/base/say.c ctl/base/say.h \
	ctl/show/packages.c ctl/show/show_names.c \
	ctl/show/show.c ctl/show/show.h ctl/show/show_private.h \
	ctl/show/show_events.c \
	ctl/show/show_info.c \
	ctl/show/show_table.c \
	ctl/show/show_turns.c \
	ctl/show/show_skim.c \
	ctl/show/timeline.c ctl/show/timeline.h ctl/show/timeline_picture.c \
	ctl/show/show_suspects.c \
	ctl/show/suspect_words.c \
	ctl/show/suspect_words.h \
	ctl/base/size.c ctl/base/size.h \
	ctl/client/stored.c ctl/client/stored.h \
	ctl/check/walk_layout.h \
	ctl/check/walk_match.c ctl/check/walk_match.h \
	ctl/check/walk_model.c ctl/check/walk_model.h \
	ctl/verb.h

bin_PROGRAMS += ctl/ptsnapctl
ctl_ptsnapctl_CPPFLAGS = $(ctl_libptctl_a_CPPFLAGS)
ctl_ptsnapctl_CFLAGS = $(ctl_libptctl_a_CFLAGS)
ctl_ptsnapctl_SOURCES = ctl/main.c
ctl_ptsnapctl_LDADD = ctl/libptctl.a decoder/run/libptrun.a proto/libptproto.a $(JSONC_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS) -lm

# The program of `ptsnapctl view', in the order in which the page has it.
nodist_ctl_libptctl_a_SOURCES = ctl/page/page_web.c
page_scripts = text.js data.js rows.js stats.js view.js draw.js dom.js timeline.js search.js flame.js functions.js stacks.js \
	suspects.js keys.js pointer.js main.js
page_web = ctl/page/web/page.html ctl/page/web/page.css ctl/page/web/join.sh $(page_scripts:%=ctl/page/web/%)
EXTRA_DIST += $(page_web) ctl/page/web/package.json
BUILT_SOURCES += ctl/page/page_web.c
CLEANFILES += ctl/page/page_web.c
ctl/page/page_web.c: $(page_web)
	$(AM_V_GEN)$(MKDIR_P) ctl/page && $(SHELL) $(srcdir)/ctl/page/web/join.sh $(srcdir)/ctl/page/web $@ $(page_scripts)

# What `ptsnapctl check --trace' traces: no library, fixed addresses, nothing but its own branches.
pkglibexec_PROGRAMS += ctl/ptsnap-walk
ctl_ptsnap_walk_SOURCES = ctl/check/walk_program.S ctl/check/walk_layout.h
ctl_ptsnap_walk_CCASFLAGS =
ctl_ptsnap_walk_CFLAGS =
ctl_ptsnap_walk_LDFLAGS = -nostdlib -static -no-pie -Wl,--build-id -Wl,-T,$(top_srcdir)/ctl/check/walk_program.ld
ctl_ptsnap_walk_LDADD =
ctl_ptsnap_walk_DEPENDENCIES = $(top_srcdir)/ctl/check/walk_program.ld
EXTRA_DIST += ctl/check/walk_program.ld

bashcompdir = $(datadir)/bash-completion/completions
zshcompdir = $(datadir)/zsh/site-functions
EXTRA_DIST += ctl/completion/ptsnapctl.bash ctl/completion/ptsnap-tryhost.bash
dist_zshcomp_DATA = ctl/completion/_ptsnapctl ctl/completion/_ptsnap-tryhost
install-data-local: install-bashcomp
install-bashcomp:
	$(MKDIR_P) '$(DESTDIR)$(bashcompdir)'
	$(INSTALL_DATA) '$(srcdir)/ctl/completion/ptsnapctl.bash' '$(DESTDIR)$(bashcompdir)/ptsnapctl'
	$(INSTALL_DATA) '$(srcdir)/ctl/completion/ptsnap-tryhost.bash' '$(DESTDIR)$(bashcompdir)/ptsnap-tryhost'
uninstall-local: uninstall-bashcomp
uninstall-bashcomp:
	rm -f '$(DESTDIR)$(bashcompdir)/ptsnapctl' '$(DESTDIR)$(bashcompdir)/ptsnap-tryhost'
.PHONY: install-bashcomp uninstall-bashcomp
