check_PROGRAMS += \
	tests/unit/daemon/config/test_conffile \
	tests/unit/daemon/config/test_config \
	tests/unit/daemon/job/test_attempt \
	tests/unit/daemon/base/test_aside \
	tests/unit/daemon/base/test_bucket \
	tests/unit/daemon/base/test_metric \
	tests/unit/daemon/condition/test_condition \
	tests/unit/daemon/condition/test_kernel_text \
	tests/unit/daemon/trigger/test_conditions \
	tests/unit/daemon/trigger/test_gate \
	tests/unit/daemon/config/test_config_reload \
	tests/unit/daemon/gather/test_cpunotes \
	tests/unit/daemon/record/test_files \
	tests/unit/daemon/record/test_files_aside \
	tests/unit/daemon/record/test_files_mapped \
	tests/unit/daemon/store/test_imagestore \
	tests/unit/daemon/record/test_intake \
	tests/unit/daemon/record/test_silence \
	tests/unit/daemon/job/test_job_decode \
	tests/unit/daemon/job/test_job_entry \
	tests/unit/daemon/job/test_job_images \
	tests/unit/daemon/gather/test_kernel \
	tests/unit/daemon/control/test_control_list \
	tests/unit/daemon/control/test_listener \
	tests/unit/daemon/control/test_peer \
	tests/unit/daemon/record/test_memory \
	tests/unit/daemon/gather/test_memory_copy \
	tests/unit/daemon/gather/test_asleep \
	tests/unit/daemon/gather/test_memory_read \
	tests/unit/daemon/record/test_procreader \
	tests/unit/daemon/record/test_reread \
	tests/unit/daemon/record/test_procs \
	tests/unit/daemon/record/test_procs_uid \
	tests/unit/daemon/job/test_remake \
	tests/unit/daemon/trigger/test_sender \
	tests/unit/daemon/store/test_store \
	tests/unit/daemon/store/test_store_pin \
	tests/unit/daemon/base/test_unitname \
	tests/unit/daemon/trigger/test_unitwatch \
	tests/unit/daemon/config/test_trigger_file \
	tests/unit/daemon/trigger/test_trigger \
	tests/unit/daemon/config/test_unit_limits

TEST_DAEMON_LIBS = daemon/libptdaemon.a capture/libptcapture.a sideband/libptsideband.a \
	decoder/run/libptrun.a proto/libptproto.a $(CMOCKA_LIBS) $(SYSTEMD_LIBS) $(JSONC_LIBS)
TEST_DAEMON_DIR = tests/unit/daemon/scratch_dir.c tests/unit/daemon/scratch_dir.h
TEST_DAEMON_RING = tests/unit/daemon/ring_source.c tests/unit/daemon/ring_source.h

tests_unit_daemon_config_test_conffile_SOURCES = tests/unit/daemon/config/test_conffile.c $(TEST_DAEMON_DIR)
tests_unit_daemon_config_test_conffile_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_config_test_config_reload_SOURCES = tests/unit/daemon/config/test_config_reload.c $(TEST_DAEMON_DIR)
tests_unit_daemon_config_test_config_reload_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_trigger_test_gate_SOURCES = tests/unit/daemon/trigger/test_gate.c
tests_unit_daemon_trigger_test_gate_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_job_test_attempt_SOURCES = tests/unit/daemon/job/test_attempt.c
tests_unit_daemon_job_test_attempt_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_base_test_aside_SOURCES = tests/unit/daemon/base/test_aside.c
tests_unit_daemon_base_test_aside_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_base_test_metric_SOURCES = tests/unit/daemon/base/test_metric.c
tests_unit_daemon_base_test_metric_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_condition_test_condition_SOURCES = tests/unit/daemon/condition/test_condition.c $(TEST_DAEMON_DIR)
tests_unit_daemon_condition_test_condition_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_condition_test_kernel_text_SOURCES = tests/unit/daemon/condition/test_kernel_text.c
tests_unit_daemon_condition_test_kernel_text_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_trigger_test_conditions_SOURCES = tests/unit/daemon/trigger/test_conditions.c $(TEST_DAEMON_DIR) $(TEST_DAEMON_RING)
tests_unit_daemon_trigger_test_conditions_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_base_test_bucket_SOURCES = tests/unit/daemon/base/test_bucket.c
tests_unit_daemon_base_test_bucket_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_config_test_config_SOURCES = tests/unit/daemon/config/test_config.c $(TEST_DAEMON_DIR)
tests_unit_daemon_config_test_config_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_gather_test_cpunotes_SOURCES = tests/unit/daemon/gather/test_cpunotes.c
tests_unit_daemon_gather_test_cpunotes_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_record_test_files_SOURCES = tests/unit/daemon/record/test_files.c \
	tests/unit/daemon/small_elf.c tests/unit/daemon/small_elf.h $(TEST_DAEMON_DIR)
tests_unit_daemon_record_test_files_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_record_test_files_aside_SOURCES = tests/unit/daemon/record/test_files_aside.c $(TEST_DAEMON_DIR)
tests_unit_daemon_record_test_files_aside_LDADD = $(TEST_DAEMON_LIBS)
# Runs tests/support/fuse_file.
tests_unit_daemon_record_test_files_mapped_SOURCES = tests/unit/daemon/record/test_files_mapped.c \
	tests/unit/daemon/small_elf.c tests/unit/daemon/small_elf.h $(TEST_DAEMON_DIR)
tests_unit_daemon_record_test_files_mapped_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_store_test_imagestore_SOURCES = tests/unit/daemon/store/test_imagestore.c $(TEST_DAEMON_DIR)
tests_unit_daemon_store_test_imagestore_LDADD = $(TEST_DAEMON_LIBS)
# Counts what the steady state allocates.
tests_unit_daemon_record_test_silence_SOURCES = tests/unit/daemon/record/test_silence.c
tests_unit_daemon_record_test_silence_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_record_test_intake_SOURCES = tests/unit/daemon/record/test_intake.c $(TEST_DAEMON_RING)
tests_unit_daemon_record_test_intake_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=procs_lost
tests_unit_daemon_record_test_intake_LDADD = $(TEST_DAEMON_LIBS)
# Run fake_decoder, which they find beside themselves.
noinst_PROGRAMS += tests/unit/daemon/job/fake_decoder
tests_unit_daemon_job_fake_decoder_SOURCES = tests/unit/daemon/job/fake_decoder.c
tests_unit_daemon_job_fake_decoder_LDADD = proto/libptproto.a
tests_unit_daemon_job_test_remake_SOURCES = tests/unit/daemon/job/test_remake.c \
	tests/unit/daemon/job/debug_directory.h $(TEST_DAEMON_DIR)
tests_unit_daemon_job_test_remake_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_job_test_job_decode_SOURCES = tests/unit/daemon/job/test_job_decode.c \
	tests/unit/daemon/job/debug_directory.h
tests_unit_daemon_job_test_job_decode_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_job_test_job_entry_SOURCES = tests/unit/daemon/job/test_job_entry.c $(TEST_DAEMON_DIR)
tests_unit_daemon_job_test_job_entry_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_job_test_job_images_SOURCES = tests/unit/daemon/job/test_job_images.c
tests_unit_daemon_job_test_job_images_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_gather_test_kernel_SOURCES = tests/unit/daemon/gather/test_kernel.c \
	tests/unit/capture/tree.c tests/unit/capture/tree.h
tests_unit_daemon_gather_test_kernel_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_control_test_control_list_SOURCES = tests/unit/daemon/control/test_control_list.c \
	tests/unit/daemon/store/store_fixture.h $(TEST_DAEMON_DIR)
tests_unit_daemon_control_test_control_list_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_control_test_listener_SOURCES = tests/unit/daemon/control/test_listener.c
tests_unit_daemon_control_test_listener_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_control_test_peer_SOURCES = tests/unit/daemon/control/test_peer.c
tests_unit_daemon_control_test_peer_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_record_test_memory_SOURCES = tests/unit/daemon/record/test_memory.c
tests_unit_daemon_record_test_memory_LDADD = $(TEST_DAEMON_LIBS)

tests_unit_daemon_gather_test_memory_copy_SOURCES = tests/unit/daemon/gather/test_memory_copy.c
tests_unit_daemon_gather_test_memory_copy_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_gather_test_asleep_SOURCES = tests/unit/daemon/gather/test_asleep.c
tests_unit_daemon_gather_test_asleep_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_gather_test_memory_read_SOURCES = tests/unit/daemon/gather/test_memory_read.c $(TEST_DAEMON_DIR)
tests_unit_daemon_gather_test_memory_read_LDADD = $(TEST_DAEMON_LIBS)

tests_unit_daemon_record_test_procreader_SOURCES = tests/unit/daemon/record/test_procreader.c $(TEST_DAEMON_DIR)
tests_unit_daemon_record_test_procreader_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_record_test_reread_SOURCES = tests/unit/daemon/record/test_reread.c \
	tests/unit/capture/tree.c tests/unit/capture/tree.h
tests_unit_daemon_record_test_reread_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_record_test_procs_uid_SOURCES = tests/unit/daemon/record/test_procs_uid.c $(TEST_DAEMON_DIR)
tests_unit_daemon_record_test_procs_uid_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_record_test_procs_SOURCES = tests/unit/daemon/record/test_procs.c $(TEST_DAEMON_DIR)
tests_unit_daemon_record_test_procs_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_trigger_test_sender_SOURCES = tests/unit/daemon/trigger/test_sender.c $(TEST_DAEMON_DIR)
tests_unit_daemon_trigger_test_sender_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_config_test_trigger_file_SOURCES = tests/unit/daemon/config/test_trigger_file.c $(TEST_DAEMON_DIR)
tests_unit_daemon_config_test_trigger_file_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_trigger_test_unitwatch_SOURCES = tests/unit/daemon/trigger/test_unitwatch.c
tests_unit_daemon_trigger_test_unitwatch_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_base_test_unitname_SOURCES = tests/unit/daemon/base/test_unitname.c $(TEST_DAEMON_DIR)
tests_unit_daemon_base_test_unitname_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_store_test_store_SOURCES = tests/unit/daemon/store/test_store.c $(TEST_DAEMON_DIR) \
	tests/unit/daemon/store/store_fixture.h
tests_unit_daemon_store_test_store_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_store_test_store_pin_SOURCES = tests/unit/daemon/store/test_store_pin.c $(TEST_DAEMON_DIR) \
	tests/unit/daemon/store/store_fixture.h
tests_unit_daemon_store_test_store_pin_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_trigger_test_trigger_SOURCES = tests/unit/daemon/trigger/test_trigger.c $(TEST_DAEMON_DIR) \
	$(TEST_DAEMON_RING)
tests_unit_daemon_trigger_test_trigger_LDADD = $(TEST_DAEMON_LIBS)

# The check, over hosts that are made up; perf events and CPUID are capture's.
check_PROGRAMS += \
	tests/unit/daemon/check/test_check_host \
	tests/unit/daemon/check/test_check_live \
	tests/unit/daemon/check/test_check_pmu \
	tests/unit/daemon/test_hotplug \
	tests/unit/daemon/gather/test_coredump \
	tests/unit/daemon/store/test_fdstore \
	tests/unit/daemon/check/test_selfstat \
	tests/unit/daemon/config/test_names \
	tests/unit/daemon/check/test_metrics_writer \
	tests/unit/daemon/job/test_lease
TEST_DAEMON_CHECK = tests/unit/daemon/check_fixture.c tests/unit/daemon/check_fixture.h \
	tests/unit/capture/fake_perf.c tests/unit/capture/fake_perf.h \
	tests/unit/capture/sysfs.c tests/unit/capture/sysfs.h \
	tests/unit/capture/tree.c tests/unit/capture/tree.h
tests_unit_daemon_check_test_check_host_SOURCES = tests/unit/daemon/check/test_check_host.c $(TEST_DAEMON_CHECK)
tests_unit_daemon_check_test_check_host_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_check_test_check_live_SOURCES = tests/unit/daemon/check/test_check_live.c $(TEST_DAEMON_RING) \
	$(TEST_DAEMON_DIR)
tests_unit_daemon_check_test_check_live_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_check_test_check_pmu_SOURCES = tests/unit/daemon/check/test_check_pmu.c $(TEST_DAEMON_CHECK)
tests_unit_daemon_check_test_check_pmu_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_test_hotplug_SOURCES = tests/unit/daemon/test_hotplug.c
tests_unit_daemon_test_hotplug_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_gather_test_coredump_SOURCES = tests/unit/daemon/gather/test_coredump.c $(TEST_DAEMON_DIR)
tests_unit_daemon_gather_test_coredump_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_check_test_selfstat_SOURCES = tests/unit/daemon/check/test_selfstat.c $(TEST_DAEMON_DIR)
tests_unit_daemon_check_test_selfstat_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_config_test_names_SOURCES = tests/unit/daemon/config/test_names.c
tests_unit_daemon_config_test_names_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_check_test_metrics_writer_SOURCES = tests/unit/daemon/check/test_metrics_writer.c $(TEST_DAEMON_DIR)
tests_unit_daemon_check_test_metrics_writer_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=metrics_write,--wrap=metrics_make \
	-Wl,--wrap=status_look,--wrap=clock_gettime
tests_unit_daemon_check_test_metrics_writer_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_store_test_fdstore_SOURCES = tests/unit/daemon/store/test_fdstore.c
tests_unit_daemon_store_test_fdstore_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_job_test_lease_SOURCES = tests/unit/daemon/job/test_lease.c
tests_unit_daemon_job_test_lease_LDADD = $(TEST_DAEMON_LIBS)
tests_unit_daemon_config_test_unit_limits_SOURCES = tests/unit/daemon/config/test_unit_limits.c $(TEST_DAEMON_DIR)
tests_unit_daemon_config_test_unit_limits_LDADD = $(TEST_DAEMON_LIBS)
