# Tests the recorder with a real perf core, in a VM.
LONG_TESTS += tests/vm/vm.tap
EXTRA_DIST += tests/vm/pack_and_boot.sh tests/vm/selftrace tests/vm/self/guest.sh tests/vm/self/matrix.sh \
	tests/vm/self/mutants.sh tests/vm/self/perf.sh tests/vm/self/set_ratio.py tests/vm/self/short.sh \
	tests/vm/tryhost.sh tests/vm/self/workload.sh \
	tests/vm/self/work/bpf.sh tests/vm/self/work/fifty.sh tests/vm/self/work/git.sh \
	tests/vm/self/work/hotplug.sh tests/vm/self/work/keys.sh tests/vm/self/work/kprobes.sh tests/vm/self/work/make.sh \
	tests/vm/self/work/modules.sh tests/vm/self/work/nginx.sh tests/vm/self/work/nspawn.sh \
	tests/vm/self/work/patched.sh tests/vm/self/work/python.sh tests/vm/self/work/sleep.sh \
	tests/vm/self/work/spaces.sh tests/vm/self/work/sqlite.sh \
	tests/vm/guest/run.sh tests/vm/guest/lib.sh \
	tests/vm/guest/10-bytes.sh tests/vm/guest/20-life.sh tests/vm/guest/25-dark.sh \
	tests/vm/guest/30-others.sh tests/vm/guest/40-rights.sh \
	tests/vm/guest/50-sizes.sh tests/vm/guest/55-config.sh tests/vm/guest/57-full.sh tests/vm/guest/60-degraded.sh tests/vm/guest/65-units.sh \
	tests/vm/guest/70-walk.sh tests/vm/guest/75-check.sh tests/vm/guest/fed-walk.sh \
	tests/vm/guest/80-suspend.sh tests/vm/guest/85-kernel.sh \
	tests/vm/guest/90-mutants.sh tests/vm/guest/92-twice.sh tests/vm/guest/95-service.sh

# feeder runs in the guest, which lacks our libraries: static, and therefore without sanitizers.
noinst_PROGRAMS += tests/vm/feeder
tests_vm_feeder_SOURCES = tests/vm/feeder.c \
	tests/vm/bundle_member.c tests/vm/bundle_member.h \
	tests/vm/number_in_file.c tests/vm/number_in_file.h \
	tests/vm/numbers.c tests/vm/numbers.h \
	tests/vm/stranger.c tests/vm/stranger.h \
	tests/vm/walk_packets.c tests/vm/walk_packets.h \
	ctl/check/walk_model.c ctl/check/walk_model.h ctl/check/walk_layout.h
tests_vm_feeder_CFLAGS = -std=gnu11 -O2 -Wall -Wextra $(WARN_CFLAGS)
tests_vm_feeder_LDFLAGS = -static
tests_vm_feeder_LDADD =

# Compares kernel text with the kernel's memory. Contains the worker's code, so that sanitizers help.
noinst_PROGRAMS += tests/vm/kernel_see
tests_vm_kernel_see_SOURCES = tests/vm/kernel_see.c \
	tests/vm/bundle_member.c tests/vm/bundle_member.h
tests_vm_kernel_see_LDADD = sideband/libptimage.a proto/libptproto.a $(ZSTD_LIBS)

# A machine that traces itself: what executed, by a plugin of its own, and the comparison.
LONG_TESTS += tests/vm/selftrace.tap tests/vm/tryhost.tap
noinst_PROGRAMS += tests/vm/self/truth.so tests/vm/self/compare tests/vm/self/mark
tests_vm_self_mark_SOURCES = tests/vm/self/mark.c
tests_vm_self_mark_CFLAGS = $(tests_vm_feeder_CFLAGS)
tests_vm_self_mark_LDFLAGS = -static
tests_vm_self_mark_LDADD =
tests_vm_self_truth_so_CFLAGS = $(capture_emu_ptsnap_emupmu_so_CFLAGS)
tests_vm_self_truth_so_LDFLAGS = -shared
tests_vm_self_truth_so_SOURCES = tests/vm/self/truth.c tests/vm/self/truthlog.h \
	capture/emu/plugin/qemu.c capture/emu/plugin/qemu.h \
	capture/emu/plugin/qemu_api.h \
	capture/emu/system/asleep.c capture/emu/system/asleep.h capture/emu/system/bell.h \
	capture/emu/system/vm.c capture/emu/system/vm.h
# Runs in the guest.
noinst_PROGRAMS += tests/vm/self/setfilter
tests_vm_self_setfilter_SOURCES = tests/vm/self/setfilter.c
tests_vm_self_setfilter_CFLAGS = -std=gnu11 -O2 -Wall -Wextra $(WARN_CFLAGS)
tests_vm_self_setfilter_LDFLAGS = -static
tests_vm_self_setfilter_LDADD =
tests_vm_self_compare_SOURCES = tests/vm/self/compare.c tests/vm/self/intervals.c tests/vm/self/intervals.h \
	tests/vm/self/perf_lines.c tests/vm/self/perf_lines.h tests/vm/self/times.c tests/vm/self/times.h \
	tests/vm/self/truthlog.h
tests_vm_self_compare_LDADD = $(WORKER_LIBS)

.PHONY: check-selftrace
check-selftrace: all
	PTSNAP_BUILDDIR='$(abs_top_builddir)' bash $(srcdir)/tests/vm/self/matrix.sh $(SELFTRACE)

.PHONY: check-mutants
check-mutants: all
	PTSNAP_BUILDDIR='$(abs_top_builddir)' SYSPMU_SOURCES='$(capture_emu_ptsnap_syspmu_so_SOURCES)' \
	SYSPMU_CC='$(CC) $(DEFS) -D_GNU_SOURCE -I$(abs_top_builddir) $(capture_emu_ptsnap_syspmu_so_CFLAGS) $(CFLAGS) -shared' \
	SYSPMU_LIBS='$(capture_emu_ptsnap_syspmu_so_LDADD)' bash $(srcdir)/tests/vm/self/mutants.sh $(MUTANTS)

clean-local: clean-vm-cache
.PHONY: clean-vm-cache
clean-vm-cache:
	rm -rf tests/vm/cache tests/vm/cache-*
