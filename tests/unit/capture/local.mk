check_PROGRAMS += \
	tests/unit/capture/proc/test_budget \
	tests/unit/capture/ring/test_clock \
	tests/unit/capture/perf/test_cpuid \
	tests/unit/capture/proc/test_cpulist \
	tests/unit/capture/proc/test_cpustat \
	tests/unit/capture/ring/test_dark \
	tests/unit/capture/ring/test_drain \
	tests/unit/capture/ring/test_freeze \
	tests/unit/capture/kernel/test_kernel \
	tests/unit/capture/proc/test_mapquery \
	tests/unit/capture/proc/test_mounts \
	tests/unit/capture/ring/test_numa \
	tests/unit/capture/perf/test_pmu \
	tests/unit/capture/perf/test_preset \
	tests/unit/capture/proc/test_procscan \
	tests/unit/capture/ring/test_pulse \
	tests/unit/capture/ring/test_recqueue \
	tests/unit/capture/ring/test_ring \
	tests/unit/capture/emu/host/test_source_emu_attach \
	tests/unit/capture/perf/test_source_perf \
	tests/unit/capture/perf/test_source_perf_dark \
	tests/unit/capture/perf/test_source_perf_life

TEST_CAPTURE_LIBS = capture/libptcapture.a proto/libptproto.a $(CMOCKA_LIBS) $(JSONC_LIBS)

tests_unit_capture_emu_host_test_source_emu_attach_SOURCES = tests/unit/capture/emu/host/test_source_emu_attach.c
tests_unit_capture_emu_host_test_source_emu_attach_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_proc_test_budget_SOURCES = tests/unit/capture/proc/test_budget.c \
	tests/unit/capture/tree.c tests/unit/capture/tree.h
tests_unit_capture_proc_test_budget_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_proc_test_cpulist_SOURCES = tests/unit/capture/proc/test_cpulist.c \
	tests/unit/capture/tree.c tests/unit/capture/tree.h
tests_unit_capture_proc_test_cpulist_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_kernel_test_kernel_SOURCES = tests/unit/capture/kernel/test_kernel.c \
	tests/unit/capture/tree.c tests/unit/capture/tree.h
tests_unit_capture_kernel_test_kernel_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_ring_test_clock_SOURCES = tests/unit/capture/ring/test_clock.c
tests_unit_capture_ring_test_clock_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_proc_test_cpustat_SOURCES = tests/unit/capture/proc/test_cpustat.c \
	tests/unit/capture/tree.c tests/unit/capture/tree.h
tests_unit_capture_proc_test_cpustat_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_ring_test_pulse_SOURCES = tests/unit/capture/ring/test_pulse.c
tests_unit_capture_ring_test_pulse_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_ring_test_dark_SOURCES = tests/unit/capture/ring/test_dark.c
tests_unit_capture_ring_test_dark_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_ring_test_drain_SOURCES = tests/unit/capture/ring/test_drain.c \
	tests/unit/capture/data_ring.c tests/unit/capture/data_ring.h
tests_unit_capture_ring_test_drain_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_ring_test_freeze_SOURCES = tests/unit/capture/ring/test_freeze.c
tests_unit_capture_ring_test_freeze_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_proc_test_mapquery_SOURCES = tests/unit/capture/proc/test_mapquery.c \
	tests/unit/capture/tree.c tests/unit/capture/tree.h
tests_unit_capture_proc_test_mapquery_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_proc_test_mounts_SOURCES = tests/unit/capture/proc/test_mounts.c \
	tests/unit/capture/tree.c tests/unit/capture/tree.h
tests_unit_capture_proc_test_mounts_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_ring_test_numa_SOURCES = tests/unit/capture/ring/test_numa.c \
	tests/unit/capture/tree.c tests/unit/capture/tree.h
tests_unit_capture_ring_test_numa_LDADD = $(TEST_CAPTURE_LIBS)
# The machines of tests/sysfs.
TEST_SYSFS = tests/unit/capture/sysfs.c tests/unit/capture/sysfs.h
TEST_KERNEL_VALID = tests/unit/capture/kernel_valid.c tests/unit/capture/kernel_valid.h
tests_unit_capture_perf_test_cpuid_SOURCES = tests/unit/capture/perf/test_cpuid.c $(TEST_SYSFS)
tests_unit_capture_perf_test_cpuid_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_perf_test_pmu_SOURCES = tests/unit/capture/perf/test_pmu.c \
	tests/unit/capture/tree.c tests/unit/capture/tree.h $(TEST_SYSFS) $(TEST_KERNEL_VALID)
tests_unit_capture_perf_test_pmu_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_perf_test_preset_SOURCES = tests/unit/capture/perf/test_preset.c $(TEST_SYSFS) \
	$(TEST_KERNEL_VALID)
tests_unit_capture_perf_test_preset_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_proc_test_procscan_SOURCES = tests/unit/capture/proc/test_procscan.c \
	tests/unit/capture/tree.c tests/unit/capture/tree.h
tests_unit_capture_proc_test_procscan_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_ring_test_recqueue_SOURCES = tests/unit/capture/ring/test_recqueue.c
tests_unit_capture_ring_test_recqueue_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_ring_test_ring_SOURCES = tests/unit/capture/ring/test_ring.c
tests_unit_capture_ring_test_ring_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_perf_test_source_perf_SOURCES = tests/unit/capture/perf/test_source_perf.c \
	tests/unit/capture/tree.c tests/unit/capture/tree.h
tests_unit_capture_perf_test_source_perf_LDADD = $(TEST_CAPTURE_LIBS)
TEST_PERF_HOST = tests/unit/capture/perf_host.c tests/unit/capture/perf_host.h \
	tests/unit/capture/fake_perf.c tests/unit/capture/fake_perf.h \
	tests/unit/capture/tree.c tests/unit/capture/tree.h
tests_unit_capture_perf_test_source_perf_dark_SOURCES = \
	tests/unit/capture/perf/test_source_perf_dark.c $(TEST_PERF_HOST)
tests_unit_capture_perf_test_source_perf_dark_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_perf_test_source_perf_life_SOURCES = \
	tests/unit/capture/perf/test_source_perf_life.c $(TEST_PERF_HOST)
tests_unit_capture_perf_test_source_perf_life_LDADD = $(TEST_CAPTURE_LIBS)

# The software PMU without an emulator. What only the plugin has is compiled in: there it is not PIE.
check_PROGRAMS += \
	tests/unit/capture/emu/host/test_emu_command \
	tests/unit/capture/emu/host/test_emu_keeper \
	tests/unit/capture/emu/host/test_emu_tasks \
	tests/unit/capture/emu/machine/test_emu_pmu \
	tests/unit/capture/emu/machine/test_emu_sched \
	tests/unit/capture/emu/plugin/test_retire \
	tests/unit/capture/emu/system/test_system \
	tests/unit/capture/emu/machine/test_encode
TEST_EMU_RING = tests/unit/capture/emu_ring.c tests/unit/capture/emu_ring.h

tests_unit_capture_emu_host_test_emu_command_SOURCES = tests/unit/capture/emu/host/test_emu_command.c \
	tests/unit/capture/exec_files.c tests/unit/capture/exec_files.h
tests_unit_capture_emu_host_test_emu_command_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_emu_machine_test_encode_SOURCES = tests/unit/capture/emu/machine/test_encode.c
tests_unit_capture_emu_machine_test_encode_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_emu_host_test_emu_keeper_SOURCES = tests/unit/capture/emu/host/test_emu_keeper.c $(TEST_EMU_RING)
tests_unit_capture_emu_host_test_emu_keeper_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_emu_host_test_emu_tasks_SOURCES = tests/unit/capture/emu/host/test_emu_tasks.c
tests_unit_capture_emu_host_test_emu_tasks_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ptrace
tests_unit_capture_emu_host_test_emu_tasks_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_emu_machine_test_emu_sched_SOURCES = tests/unit/capture/emu/machine/test_emu_sched.c $(TEST_EMU_RING)
tests_unit_capture_emu_machine_test_emu_sched_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_emu_machine_test_emu_pmu_SOURCES = tests/unit/capture/emu/machine/test_emu_pmu.c $(TEST_EMU_RING)
tests_unit_capture_emu_machine_test_emu_pmu_LDADD = $(TEST_CAPTURE_LIBS)
tests_unit_capture_emu_plugin_test_retire_SOURCES = tests/unit/capture/emu/plugin/test_retire.c $(TEST_EMU_RING) \
	capture/emu/plugin/code.c capture/emu/plugin/truth.c capture/emu/plugin/retire.c
tests_unit_capture_emu_plugin_test_retire_LDADD = $(TEST_CAPTURE_LIBS) $(ZYDIS_LIBS)

tests_unit_capture_emu_system_test_system_SOURCES = tests/unit/capture/emu/system/test_system.c $(TEST_EMU_RING) \
	capture/emu/plugin/code.c capture/emu/plugin/truth.c capture/emu/plugin/retire.c \
	capture/emu/machine/pmu_system.c capture/emu/system/models.c capture/emu/system/system.c
tests_unit_capture_emu_system_test_system_LDADD = $(TEST_CAPTURE_LIBS) $(ZYDIS_LIBS)

# exec under the emulator, with this host's kernel as the oracle.
check_PROGRAMS += tests/unit/capture/emu/plugin/test_follow
tests_unit_capture_emu_plugin_test_follow_SOURCES = tests/unit/capture/emu/plugin/test_follow.c \
	tests/unit/capture/exec_files.c tests/unit/capture/exec_files.h \
	tests/unit/capture/exec_oracle.c tests/unit/capture/exec_oracle.h \
	capture/emu/plugin/follow.c
tests_unit_capture_emu_plugin_test_follow_LDADD = $(TEST_CAPTURE_LIBS)

check_PROGRAMS += tests/unit/capture/proc/test_holders
tests_unit_capture_proc_test_holders_SOURCES = tests/unit/capture/proc/test_holders.c \
	tests/unit/capture/tree.c tests/unit/capture/tree.h
tests_unit_capture_proc_test_holders_LDADD = $(TEST_CAPTURE_LIBS)

# Probes on the running kernel; skipped where this process may not load BPF.
check_PROGRAMS += \
	tests/unit/capture/probe/test_probe_life \
	tests/unit/capture/probe/test_probe_filter \
	tests/unit/capture/probe/test_probe_kernel \
	tests/unit/capture/probe/test_probe_place \
	tests/unit/capture/probe/test_probe_user \
	tests/unit/capture/probe/test_probe_process \
	tests/unit/capture/probe/test_probe_check \
	tests/unit/capture/probe/test_probe_signal
TEST_PROBING = tests/unit/capture/probe/probing.c tests/unit/capture/probe/probing.h
TEST_PROBE_LIBS = capture/libptprobe.a $(TEST_CAPTURE_LIBS) $(BPF_LIBS)
tests_unit_capture_probe_test_probe_signal_SOURCES = tests/unit/capture/probe/test_probe_signal.c $(TEST_PROBING)
tests_unit_capture_probe_test_probe_signal_LDADD = $(TEST_PROBE_LIBS)
tests_unit_capture_probe_test_probe_check_SOURCES = tests/unit/capture/probe/test_probe_check.c $(TEST_PROBING)
tests_unit_capture_probe_test_probe_check_LDADD = $(TEST_PROBE_LIBS)
tests_unit_capture_probe_test_probe_process_SOURCES = tests/unit/capture/probe/test_probe_process.c $(TEST_PROBING)
tests_unit_capture_probe_test_probe_process_LDADD = $(TEST_PROBE_LIBS)
tests_unit_capture_probe_test_probe_user_SOURCES = tests/unit/capture/probe/test_probe_user.c $(TEST_PROBING)
tests_unit_capture_probe_test_probe_user_LDADD = $(TEST_PROBE_LIBS)
tests_unit_capture_probe_test_probe_place_SOURCES = tests/unit/capture/probe/test_probe_place.c $(TEST_PROBING)
tests_unit_capture_probe_test_probe_place_LDADD = $(TEST_PROBE_LIBS)
tests_unit_capture_probe_test_probe_kernel_SOURCES = tests/unit/capture/probe/test_probe_kernel.c $(TEST_PROBING)
tests_unit_capture_probe_test_probe_kernel_LDADD = $(TEST_PROBE_LIBS)
tests_unit_capture_probe_test_probe_filter_SOURCES = tests/unit/capture/probe/test_probe_filter.c $(TEST_PROBING)
tests_unit_capture_probe_test_probe_filter_LDADD = $(TEST_PROBE_LIBS)
tests_unit_capture_probe_test_probe_life_SOURCES = tests/unit/capture/probe/test_probe_life.c $(TEST_PROBING)
tests_unit_capture_probe_test_probe_life_LDADD = $(TEST_PROBE_LIBS)
