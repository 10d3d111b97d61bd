check_PROGRAMS += \
	tests/unit/capture/test_clock \
	tests/unit/capture/test_freeze \
	tests/unit/capture/test_pmu \
	tests/unit/capture/test_procscan \
	tests/unit/capture/test_ring \
	tests/unit/capture/test_source_perf

TEST_CAPTURE_LIBS = capture/libptcapture.a proto/libptproto.a $(CMOCKA_LIBS) $(JSONC_LIBS)

tests_unit_capture_test_clock_SOURCES = tests/unit/capture/test_clock.c
tests_unit_capture_test_clock_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_test_freeze_SOURCES = tests/unit/capture/test_freeze.c
tests_unit_capture_test_freeze_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_test_pmu_SOURCES = tests/unit/capture/test_pmu.c \
	tests/unit/capture/tree.c tests/unit/capture/tree.h
tests_unit_capture_test_pmu_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_test_procscan_SOURCES = tests/unit/capture/test_procscan.c \
	tests/unit/capture/tree.c tests/unit/capture/tree.h
tests_unit_capture_test_procscan_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_test_ring_SOURCES = tests/unit/capture/test_ring.c
tests_unit_capture_test_ring_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_test_source_perf_SOURCES = tests/unit/capture/test_source_perf.c \
	tests/unit/capture/tree.c tests/unit/capture/tree.h
tests_unit_capture_test_source_perf_LDADD = $(TEST_CAPTURE_LIBS)
