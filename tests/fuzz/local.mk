# One fuzz target per parser: linked with libFuzzer under --enable-fuzzers, else with a main() that
# replays the corpus (make check does that).
fuzz_targets = tests/fuzz/fuzz_perfrecord tests/fuzz/fuzz_manifest tests/fuzz/fuzz_bundle \
	tests/fuzz/fuzz_varlink tests/fuzz/fuzz_ring tests/fuzz/fuzz_procmaps \
	tests/fuzz/fuzz_timeline tests/fuzz/fuzz_elf tests/fuzz/fuzz_demangle tests/fuzz/fuzz_dwarf tests/fuzz/fuzz_packet tests/fuzz/fuzz_flow \
	tests/fuzz/fuzz_event \
	tests/fuzz/fuzz_insn tests/fuzz/fuzz_worker tests/fuzz/fuzz_execfile tests/fuzz/fuzz_emustart \
	tests/fuzz/fuzz_emuoffer \
	tests/fuzz/fuzz_export tests/fuzz/fuzz_perfdata tests/fuzz/fuzz_conffile \
	tests/fuzz/fuzz_kept tests/fuzz/fuzz_kernel tests/fuzz/fuzz_perfmap tests/fuzz/fuzz_jitdump \
	tests/fuzz/fuzz_setting tests/fuzz/fuzz_metric tests/fuzz/fuzz_kernel_text tests/fuzz/fuzz_trigger tests/fuzz/fuzz_unit tests/fuzz/fuzz_kernel_file tests/fuzz/fuzz_skim tests/fuzz/fuzz_nodes \
	tests/fuzz/fuzz_calls \
	tests/fuzz/fuzz_listing
noinst_PROGRAMS += $(fuzz_targets)
FUZZ_TESTS += tests/fuzz/replay.tap
EXTRA_DIST += tests/fuzz/corpus tests/fuzz/standalone.c tests/fuzz/some_bytes.h tests/fuzz/replay.h \
	tests/fuzz/bundle_mutator.c tests/fuzz/bundle_mutator.h tests/fuzz/request_mutator.c

if ENABLE_FUZZERS
fuzz_main =
fuzz_bundle_main = tests/fuzz/bundle_mutator.c
fuzz_worker_main = $(fuzz_bundle_main) tests/fuzz/request_mutator.c
fuzz_ldflags = $(AM_LDFLAGS) -fsanitize=fuzzer
else
fuzz_main = tests/fuzz/standalone.c
fuzz_bundle_main = $(fuzz_main)
fuzz_worker_main = $(fuzz_main)
fuzz_ldflags = $(AM_LDFLAGS)
endif

tests_fuzz_fuzz_perfrecord_SOURCES = tests/fuzz/fuzz_perfrecord.c $(fuzz_main)
tests_fuzz_fuzz_perfrecord_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_perfrecord_LDADD = proto/libptproto.a
tests_fuzz_fuzz_manifest_SOURCES = tests/fuzz/fuzz_manifest.c $(fuzz_main)
tests_fuzz_fuzz_manifest_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_manifest_LDADD = proto/libptproto.a $(JSONC_LIBS)
tests_fuzz_fuzz_bundle_SOURCES = tests/fuzz/fuzz_bundle.c $(fuzz_bundle_main)
tests_fuzz_fuzz_bundle_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_bundle_LDADD = proto/libptproto.a $(JSONC_LIBS)
tests_fuzz_fuzz_varlink_SOURCES = tests/fuzz/fuzz_varlink.c $(fuzz_main)
tests_fuzz_fuzz_varlink_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_varlink_LDADD = proto/libptproto.a $(JSONC_LIBS)
tests_fuzz_fuzz_ring_SOURCES = tests/fuzz/fuzz_ring.c $(fuzz_main)
tests_fuzz_fuzz_ring_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_ring_LDADD = capture/libptcapture.a proto/libptproto.a
tests_fuzz_fuzz_procmaps_SOURCES = tests/fuzz/fuzz_procmaps.c $(fuzz_main)
tests_fuzz_fuzz_procmaps_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_procmaps_LDADD = capture/libptcapture.a proto/libptproto.a
tests_fuzz_fuzz_timeline_SOURCES = tests/fuzz/fuzz_timeline.c $(fuzz_main)
tests_fuzz_fuzz_timeline_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_timeline_LDADD = sideband/libptsideband.a proto/libptproto.a
tests_fuzz_fuzz_demangle_SOURCES = tests/fuzz/fuzz_demangle.c $(fuzz_main)
tests_fuzz_fuzz_demangle_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_demangle_LDADD = sideband/libptimage.a $(ELF_LIBS)
tests_fuzz_fuzz_dwarf_SOURCES = tests/fuzz/fuzz_dwarf.c $(fuzz_main)
tests_fuzz_fuzz_dwarf_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_dwarf_LDADD = sideband/libptimage.a sideband/libptsideband.a proto/libptproto.a $(ELF_LIBS) $(ZSTD_LIBS)
tests_fuzz_fuzz_elf_SOURCES = tests/fuzz/fuzz_elf.c \
	tests/unit/sideband/elf_maker.c tests/unit/sideband/elf_maker.h $(fuzz_main)
tests_fuzz_fuzz_elf_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_elf_LDADD = sideband/libptimage.a sideband/libptsideband.a proto/libptproto.a $(ELF_LIBS)
tests_fuzz_fuzz_kernel_SOURCES = tests/fuzz/fuzz_kernel.c $(fuzz_main)
tests_fuzz_fuzz_kernel_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_kernel_LDADD = sideband/libptimage.a sideband/libptsideband.a proto/libptproto.a $(ELF_LIBS)
tests_fuzz_fuzz_kernel_file_SOURCES = tests/fuzz/fuzz_kernel_file.c $(fuzz_main)
tests_fuzz_fuzz_kernel_file_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_kernel_file_LDADD = sideband/libptimage.a proto/libptproto.a $(ZSTD_LIBS)
tests_fuzz_fuzz_packet_SOURCES = tests/fuzz/fuzz_packet.c $(fuzz_main)
tests_fuzz_fuzz_packet_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_packet_LDADD = decoder/libptdecoder.a proto/libptproto.a $(ZYDIS_LIBS)
tests_fuzz_fuzz_event_SOURCES = tests/fuzz/fuzz_event.c $(fuzz_main)
tests_fuzz_fuzz_event_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_event_LDADD = decoder/libptdecoder.a proto/libptproto.a $(ZYDIS_LIBS)
tests_fuzz_fuzz_flow_SOURCES = tests/fuzz/fuzz_flow.c tests/fuzz/flow_input.h $(fuzz_main)
tests_fuzz_fuzz_flow_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_flow_LDADD = decoder/libptdecoder.a proto/libptproto.a $(ZYDIS_LIBS)
tests_fuzz_fuzz_nodes_SOURCES = tests/fuzz/fuzz_nodes.c tests/fuzz/flow_input.h \
	tests/oracle/nodes_compare.c tests/oracle/nodes_compare.h $(fuzz_main)
tests_fuzz_fuzz_nodes_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_nodes_LDADD = decoder/libptdecoder.a proto/libptproto.a $(ZYDIS_LIBS)
tests_fuzz_fuzz_insn_SOURCES = tests/fuzz/fuzz_insn.c $(fuzz_main)
tests_fuzz_fuzz_insn_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_insn_LDADD = decoder/libptdecoder.a proto/libptproto.a $(ZYDIS_LIBS)
tests_fuzz_fuzz_skim_SOURCES = tests/fuzz/fuzz_skim.c $(fuzz_main)
tests_fuzz_fuzz_skim_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_skim_LDADD = $(WORKER_LIBS)
tests_fuzz_fuzz_worker_SOURCES = tests/fuzz/fuzz_worker.c $(fuzz_worker_main)
tests_fuzz_fuzz_worker_LDFLAGS = $(fuzz_ldflags) \
	-Wl,--wrap=flow_new,--wrap=flow_free,--wrap=ahead_take
tests_fuzz_fuzz_worker_LDADD = decoder/worker/libptworker.a decoder/libptdecoder.a \
	sideband/libptimage.a sideband/libptsideband.a proto/libptproto.a \
	$(ZYDIS_LIBS) $(ELF_LIBS) $(SECCOMP_LIBS) $(JSONC_LIBS) $(ZSTD_LIBS)
tests_fuzz_fuzz_execfile_SOURCES = tests/fuzz/fuzz_execfile.c $(fuzz_main)
tests_fuzz_fuzz_execfile_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_execfile_LDADD = capture/libptcapture.a proto/libptproto.a
tests_fuzz_fuzz_emuoffer_SOURCES = tests/fuzz/fuzz_emuoffer.c $(fuzz_main)
tests_fuzz_fuzz_emuoffer_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_emuoffer_LDADD = capture/libptcapture.a proto/libptproto.a
tests_fuzz_fuzz_emustart_SOURCES = tests/fuzz/fuzz_emustart.c $(fuzz_main)
tests_fuzz_fuzz_emustart_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_emustart_LDADD = capture/libptcapture.a proto/libptproto.a
tests_fuzz_fuzz_listing_SOURCES = tests/fuzz/fuzz_listing.c $(fuzz_main)
tests_fuzz_fuzz_listing_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_listing_LDADD = ctl/libptctl.a decoder/run/libptrun.a proto/libptproto.a $(JSONC_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS)
tests_fuzz_fuzz_calls_SOURCES = tests/fuzz/fuzz_calls.c $(fuzz_main)
tests_fuzz_fuzz_calls_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_calls_LDADD = ctl/libptctl.a decoder/run/libptrun.a proto/libptproto.a $(JSONC_LIBS) $(ZSTD_LIBS) $(ZLIB_LIBS)

tests_fuzz_fuzz_export_SOURCES = tests/fuzz/fuzz_export.c $(fuzz_bundle_main)
tests_fuzz_fuzz_export_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_export_LDADD = ctl/libptctl.a decoder/run/libptrun.a proto/libptproto.a $(JSONC_LIBS)
tests_fuzz_fuzz_perfdata_SOURCES = tests/fuzz/fuzz_perfdata.c $(fuzz_main)
tests_fuzz_fuzz_perfdata_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_perfdata_LDADD = ctl/libptctl.a decoder/run/libptrun.a proto/libptproto.a $(JSONC_LIBS) $(ZSTD_LIBS)
tests_fuzz_fuzz_kept_SOURCES = tests/fuzz/fuzz_kept.c $(fuzz_main)
tests_fuzz_fuzz_kept_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_kept_LDADD = proto/libptproto.a
tests_fuzz_fuzz_perfmap_SOURCES = tests/fuzz/fuzz_perfmap.c $(fuzz_main)
tests_fuzz_fuzz_perfmap_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_perfmap_LDADD = sideband/libptimage.a
tests_fuzz_fuzz_jitdump_SOURCES = tests/fuzz/fuzz_jitdump.c $(fuzz_main)
tests_fuzz_fuzz_jitdump_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_jitdump_LDADD = sideband/libptimage.a
tests_fuzz_fuzz_conffile_SOURCES = tests/fuzz/fuzz_conffile.c $(fuzz_main)
tests_fuzz_fuzz_conffile_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_conffile_LDADD = daemon/libptdaemon.a
tests_fuzz_fuzz_setting_SOURCES = tests/fuzz/fuzz_setting.c $(fuzz_main)
tests_fuzz_fuzz_setting_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_setting_LDADD = daemon/libptdaemon.a capture/libptcapture.a decoder/run/libptrun.a proto/libptproto.a
tests_fuzz_fuzz_metric_SOURCES = tests/fuzz/fuzz_metric.c $(fuzz_main)
tests_fuzz_fuzz_metric_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_metric_LDADD = daemon/libptdaemon.a proto/libptproto.a
tests_fuzz_fuzz_kernel_text_SOURCES = tests/fuzz/fuzz_kernel_text.c $(fuzz_main)
tests_fuzz_fuzz_kernel_text_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_kernel_text_LDADD = daemon/libptdaemon.a proto/libptproto.a
tests_fuzz_fuzz_trigger_SOURCES = tests/fuzz/fuzz_trigger.c $(fuzz_main)
tests_fuzz_fuzz_trigger_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_trigger_LDADD = daemon/libptdaemon.a capture/libptcapture.a decoder/run/libptrun.a proto/libptproto.a
tests_fuzz_fuzz_unit_SOURCES = tests/fuzz/fuzz_unit.c $(fuzz_main)
tests_fuzz_fuzz_unit_LDFLAGS = $(fuzz_ldflags)
tests_fuzz_fuzz_unit_LDADD = daemon/libptdaemon.a capture/libptcapture.a decoder/run/libptrun.a proto/libptproto.a
