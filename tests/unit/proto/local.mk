check_PROGRAMS += \
	tests/unit/proto/test_base \
	tests/unit/proto/bundle/test_bundle \
	tests/unit/proto/bundle/test_bundle_tar \
	tests/unit/proto/test_bytes \
	tests/unit/proto/test_callstream \
	tests/unit/proto/test_channel \
	tests/unit/proto/test_execstream \
	tests/unit/capture/emu/machine/test_emuoffer \
	tests/unit/capture/emu/machine/test_emuring \
	tests/unit/proto/test_json \
	tests/unit/proto/bundle/test_kept \
	tests/unit/proto/bundle/test_label \
	tests/unit/proto/bundle/test_manifest \
	tests/unit/proto/test_memfd \
	tests/unit/proto/perf/test_perfdata \
	tests/unit/proto/perf/test_perfrecord \
	tests/unit/decoder/run/test_debug_files \
	tests/unit/decoder/run/test_worker \
	tests/unit/decoder/run/test_worker_socket
# Run by test_worker, which finds it beside itself.
noinst_PROGRAMS += tests/unit/decoder/run/fake_worker

TEST_MAKE_PERFDATA = tests/support/make_perfdata.c tests/support/make_perfdata.h \
	tests/support/make_bundle.c tests/support/make_bundle.h \
	tests/support/make_wild.c tests/support/make_wild.h

TEST_RUN_LIBS = decoder/run/libptrun.a $(TEST_PROTO_LIBS)
TEST_PROTO_LIBS = proto/libptproto.a $(CMOCKA_LIBS) $(JSONC_LIBS)

tests_unit_decoder_run_fake_worker_SOURCES = tests/unit/decoder/run/fake_worker.c tests/unit/decoder/run/fake_worker.h
tests_unit_decoder_run_fake_worker_LDADD = proto/libptproto.a
tests_unit_proto_test_base_SOURCES = tests/unit/proto/test_base.c
tests_unit_proto_test_base_LDADD = $(TEST_PROTO_LIBS)
tests_unit_proto_bundle_test_bundle_SOURCES = tests/unit/proto/bundle/test_bundle.c
tests_unit_proto_bundle_test_bundle_LDADD = $(TEST_PROTO_LIBS)
tests_unit_proto_bundle_test_bundle_tar_SOURCES = tests/unit/proto/bundle/test_bundle_tar.c
tests_unit_proto_bundle_test_bundle_tar_LDADD = $(TEST_PROTO_LIBS)
tests_unit_proto_test_bytes_SOURCES = tests/unit/proto/test_bytes.c
tests_unit_proto_test_bytes_LDADD = $(TEST_PROTO_LIBS)
tests_unit_proto_test_callstream_SOURCES = tests/unit/proto/test_callstream.c
tests_unit_proto_test_callstream_LDADD = $(TEST_PROTO_LIBS)
tests_unit_proto_test_execstream_SOURCES = tests/unit/proto/test_execstream.c
tests_unit_proto_test_execstream_LDADD = $(TEST_PROTO_LIBS)
tests_unit_proto_test_channel_SOURCES = tests/unit/proto/test_channel.c
tests_unit_proto_test_channel_LDADD = $(TEST_PROTO_LIBS)
tests_unit_capture_emu_machine_test_emuoffer_SOURCES = tests/unit/capture/emu/machine/test_emuoffer.c
tests_unit_capture_emu_machine_test_emuoffer_LDADD = capture/libptcapture.a $(TEST_PROTO_LIBS)
tests_unit_capture_emu_machine_test_emuring_SOURCES = tests/unit/capture/emu/machine/test_emuring.c
tests_unit_capture_emu_machine_test_emuring_LDADD = capture/libptcapture.a $(TEST_PROTO_LIBS)
tests_unit_proto_test_json_SOURCES = tests/unit/proto/test_json.c
tests_unit_proto_test_json_LDADD = $(TEST_PROTO_LIBS)
tests_unit_proto_bundle_test_kept_SOURCES = tests/unit/proto/bundle/test_kept.c
tests_unit_proto_bundle_test_kept_LDADD = $(TEST_PROTO_LIBS)
tests_unit_proto_bundle_test_label_SOURCES = tests/unit/proto/bundle/test_label.c
tests_unit_proto_bundle_test_label_LDADD = $(TEST_PROTO_LIBS)
tests_unit_proto_bundle_test_manifest_SOURCES = tests/unit/proto/bundle/test_manifest.c
tests_unit_proto_bundle_test_manifest_LDADD = $(TEST_PROTO_LIBS)
tests_unit_proto_test_memfd_SOURCES = tests/unit/proto/test_memfd.c
tests_unit_proto_test_memfd_LDADD = $(TEST_PROTO_LIBS)
tests_unit_proto_perf_test_perfdata_SOURCES = tests/unit/proto/perf/test_perfdata.c $(TEST_MAKE_PERFDATA)
tests_unit_proto_perf_test_perfdata_LDADD = $(TEST_PROTO_LIBS) $(ZSTD_LIBS)
tests_unit_proto_perf_test_perfrecord_SOURCES = tests/unit/proto/perf/test_perfrecord.c
tests_unit_proto_perf_test_perfrecord_LDADD = $(TEST_PROTO_LIBS)
tests_unit_decoder_run_test_debug_files_SOURCES = tests/unit/decoder/run/test_debug_files.c
tests_unit_decoder_run_test_debug_files_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=syscall
tests_unit_decoder_run_test_debug_files_LDADD = $(TEST_RUN_LIBS)
tests_unit_decoder_run_test_worker_SOURCES = tests/unit/decoder/run/test_worker.c \
	tests/unit/decoder/run/fake_worker.h
tests_unit_decoder_run_test_worker_LDADD = $(TEST_RUN_LIBS)
tests_unit_decoder_run_test_worker_socket_SOURCES = tests/unit/decoder/run/test_worker_socket.c \
	tests/unit/decoder/run/fake_worker.h
tests_unit_decoder_run_test_worker_socket_LDADD = $(TEST_RUN_LIBS)

check_PROGRAMS += tests/unit/proto/test_varlink
tests_unit_proto_test_varlink_SOURCES = tests/unit/proto/test_varlink.c
tests_unit_proto_test_varlink_LDADD = $(TEST_PROTO_LIBS)
