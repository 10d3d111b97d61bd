# ctl: what ptsnapctl is made of, without a recorder.

ctl_test_libs = ctl/libptctl.a decoder/run/libptrun.a proto/libptproto.a $(CMOCKA_LIBS) $(JSONC_LIBS) $(ZLIB_LIBS) -lm

check_PROGRAMS += tests/unit/ctl/calls/test_calls_read
tests_unit_ctl_calls_test_calls_read_SOURCES = tests/unit/ctl/calls/test_calls_read.c
tests_unit_ctl_calls_test_calls_read_LDADD = $(ctl_test_libs) $(ZSTD_LIBS)


check_PROGRAMS += tests/unit/ctl/decode/test_debuginfod
tests_unit_ctl_decode_test_debuginfod_SOURCES = tests/unit/ctl/decode/test_debuginfod.c
tests_unit_ctl_decode_test_debuginfod_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/perfdata/test_export_perfdata
tests_unit_ctl_perfdata_test_export_perfdata_SOURCES = tests/unit/ctl/perfdata/test_export_perfdata.c
tests_unit_ctl_perfdata_test_export_perfdata_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/decode/test_import_pevents
tests_unit_ctl_decode_test_import_pevents_SOURCES = tests/unit/ctl/decode/test_import_pevents.c
tests_unit_ctl_decode_test_import_pevents_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/client/test_join
tests_unit_ctl_client_test_join_SOURCES = tests/unit/ctl/client/test_join.c
tests_unit_ctl_client_test_join_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/show/test_list
tests_unit_ctl_show_test_list_SOURCES = tests/unit/ctl/show/test_list.c
tests_unit_ctl_show_test_list_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/show/test_name
tests_unit_ctl_show_test_name_SOURCES = tests/unit/ctl/show/test_name.c
tests_unit_ctl_show_test_name_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/decode/test_raw
tests_unit_ctl_decode_test_raw_SOURCES = tests/unit/ctl/decode/test_raw.c
tests_unit_ctl_decode_test_raw_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/show/test_pager
tests_unit_ctl_show_test_pager_SOURCES = tests/unit/ctl/show/test_pager.c
tests_unit_ctl_show_test_pager_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/show/test_show_info
tests_unit_ctl_show_test_show_info_SOURCES = tests/unit/ctl/show/test_show_info.c
tests_unit_ctl_show_test_show_info_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/show/test_show
tests_unit_ctl_show_test_show_SOURCES = tests/unit/ctl/show/test_show.c
tests_unit_ctl_show_test_show_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/decode/test_show_option
tests_unit_ctl_decode_test_show_option_SOURCES = tests/unit/ctl/decode/test_show_option.c
tests_unit_ctl_decode_test_show_option_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/show/test_show_skim
tests_unit_ctl_show_test_show_skim_SOURCES = tests/unit/ctl/show/test_show_skim.c
tests_unit_ctl_show_test_show_skim_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/base/test_size
tests_unit_ctl_base_test_size_SOURCES = tests/unit/ctl/base/test_size.c
tests_unit_ctl_base_test_size_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/perfdata/test_import
tests_unit_ctl_perfdata_test_import_SOURCES = tests/unit/ctl/perfdata/test_import.c $(TEST_MAKE_PERFDATA)
tests_unit_ctl_perfdata_test_import_LDADD = $(ctl_test_libs) $(ZSTD_LIBS)

check_PROGRAMS += tests/unit/ctl/perfdata/test_import_kernel
tests_unit_ctl_perfdata_test_import_kernel_SOURCES = tests/unit/ctl/perfdata/test_import_kernel.c
tests_unit_ctl_perfdata_test_import_kernel_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/check/test_walk_match
tests_unit_ctl_check_test_walk_match_SOURCES = tests/unit/ctl/check/test_walk_match.c
tests_unit_ctl_check_test_walk_match_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/check/test_walk_model
tests_unit_ctl_check_test_walk_model_SOURCES = tests/unit/ctl/check/test_walk_model.c
tests_unit_ctl_check_test_walk_model_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/base/test_file
tests_unit_ctl_base_test_file_SOURCES = tests/unit/ctl/base/test_file.c
tests_unit_ctl_base_test_file_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/base/test_say
tests_unit_ctl_base_test_say_SOURCES = tests/unit/ctl/base/test_say.c
tests_unit_ctl_base_test_say_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/base/test_nearest
tests_unit_ctl_base_test_nearest_SOURCES = tests/unit/ctl/base/test_nearest.c
tests_unit_ctl_base_test_nearest_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/base/test_progress
tests_unit_ctl_base_test_progress_SOURCES = tests/unit/ctl/base/test_progress.c
tests_unit_ctl_base_test_progress_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/export/test_export
tests_unit_ctl_export_test_export_SOURCES = tests/unit/ctl/export/test_export.c
tests_unit_ctl_export_test_export_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/page/test_page
tests_unit_ctl_page_test_page_SOURCES = tests/unit/ctl/page/test_page.c
tests_unit_ctl_page_test_page_LDADD = $(ctl_test_libs) $(ZLIB_LIBS)

# The page's JavaScript, in node.
SYSTEM_TESTS += tests/unit/ctl/page/web.tap
EXTRA_DIST += tests/unit/ctl/page/web/records.mjs tests/unit/ctl/page/web/test_data.mjs tests/unit/ctl/page/web/test_join.mjs \
	tests/unit/ctl/page/web/test_rows.mjs tests/unit/ctl/page/web/test_search.mjs tests/unit/ctl/page/web/test_stats.mjs tests/unit/ctl/page/web/test_suspects.mjs

check_PROGRAMS += tests/unit/ctl/calls/test_gaps
tests_unit_ctl_calls_test_gaps_SOURCES = tests/unit/ctl/calls/test_gaps.c
tests_unit_ctl_calls_test_gaps_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/calls/test_order
tests_unit_ctl_calls_test_order_SOURCES = tests/unit/ctl/calls/test_order.c
tests_unit_ctl_calls_test_order_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/calls/test_slice
tests_unit_ctl_calls_test_slice_SOURCES = tests/unit/ctl/calls/test_slice.c
tests_unit_ctl_calls_test_slice_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/diff/test_diff
tests_unit_ctl_diff_test_diff_SOURCES = tests/unit/ctl/diff/test_diff.c
tests_unit_ctl_diff_test_diff_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/calls/test_source
tests_unit_ctl_calls_test_source_SOURCES = tests/unit/ctl/calls/test_source.c
tests_unit_ctl_calls_test_source_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/listing/test_listing
tests_unit_ctl_listing_test_listing_SOURCES = tests/unit/ctl/listing/test_listing.c
tests_unit_ctl_listing_test_listing_LDADD = $(ctl_test_libs)

check_PROGRAMS += tests/unit/ctl/show/test_timeline
tests_unit_ctl_show_test_timeline_SOURCES = tests/unit/ctl/show/test_timeline.c
tests_unit_ctl_show_test_timeline_LDADD = $(ctl_test_libs)
