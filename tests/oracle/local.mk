# Compare with libipt, and with traces that others recorded on real hardware (PTSNAP_CORPUS).
ORACLE_TESTS += tests/oracle/corpus.tap tests/oracle/diff.tap tests/oracle/ptt.tap
EXTRA_DIST += tests/oracle/known tests/oracle/corpus.py tests/oracle/ptt.py

# perf reads the files that `ptsnapctl export' writes.
ORACLE_TESTS += tests/oracle/perf_branches.tap
EXTRA_DIST += tests/oracle/perf_branches.py

# perf.data files: recorded by others, synthetic, and recorded here where perf is installed.
ORACLE_TESTS += tests/oracle/perfdata.tap
EXTRA_DIST += tests/oracle/perfdata.py
noinst_PROGRAMS += tests/oracle/perfdata_dump
tests_oracle_perfdata_dump_SOURCES = tests/oracle/perfdata_dump.c
tests_oracle_perfdata_dump_LDADD = ctl/libptctl.a decoder/run/libptrun.a proto/libptproto.a $(JSONC_LIBS) $(ZSTD_LIBS)

# What ptsnapctl makes of a perf.data, as a file.
noinst_PROGRAMS += tests/oracle/perfdata_bundle
tests_oracle_perfdata_bundle_SOURCES = tests/oracle/perfdata_bundle.c
tests_oracle_perfdata_bundle_LDADD = ctl/libptctl.a decoder/run/libptrun.a proto/libptproto.a $(JSONC_LIBS) $(ZSTD_LIBS)

if HAVE_LIBIPT
if HAVE_CMOCKA
check_PROGRAMS += tests/oracle/flow_check
endif
noinst_PROGRAMS += tests/oracle/bundle_ipt tests/oracle/libipt_insns tests/oracle/diff_ipt \
	tests/oracle/bundle_pages
endif
# Decodes a whole bundle, and one with only the needed pieces of images.
noinst_PROGRAMS += tests/oracle/bundle_keep
tests_oracle_bundle_keep_SOURCES = tests/oracle/bundle_keep.c
tests_oracle_bundle_keep_LDADD = ctl/libptctl.a decoder/run/libptrun.a proto/libptproto.a $(JSONC_LIBS) $(ZSTD_LIBS)

tests_oracle_flow_check_SOURCES = tests/oracle/flow_check.c
tests_oracle_flow_check_LDADD = decoder/libptdecoder.a $(ZYDIS_LIBS) $(LIBIPT_LIBS)
tests_oracle_bundle_ipt_SOURCES = tests/oracle/bundle_ipt.c tests/oracle/ipt_cpu.c \
	tests/oracle/ipt_cpu.h
tests_oracle_bundle_ipt_LDADD = $(WORKER_LIBS) $(LIBIPT_LIBS)
tests_oracle_libipt_insns_SOURCES = tests/oracle/libipt_insns.c
tests_oracle_libipt_insns_LDADD = $(LIBIPT_LIBS)
tests_oracle_diff_ipt_SOURCES = tests/oracle/diff_ipt.c tests/oracle/diff_decode.c \
	tests/oracle/diff_decode.h tests/oracle/diff_input.c tests/oracle/diff_input.h \
	tests/oracle/diff_known.c tests/oracle/diff_mutate.c tests/oracle/diff_reduce.c \
	tests/oracle/diff_seeds.c
tests_oracle_diff_ipt_LDADD = decoder/libptdecoder.a $(ZYDIS_LIBS) $(LIBIPT_LIBS)
tests_oracle_bundle_pages_SOURCES = tests/oracle/bundle_pages.c
tests_oracle_bundle_pages_LDADD = $(WORKER_LIBS)

# Decodes a walk through a kernel's code, which is patched meanwhile.
ORACLE_TESTS += tests/oracle/kernel_walk.tap
# vm.tap fetches the kernel.
tests/oracle/kernel_walk.log: tests/vm/vm.log
noinst_PROGRAMS += tests/oracle/kernel_walk
tests_oracle_kernel_walk_SOURCES = tests/oracle/kernel_walk.c tests/oracle/kernel_world.c \
	tests/oracle/kernel_world.h
tests_oracle_kernel_walk_LDADD = decoder/libptdecoder.a sideband/libptimage.a \
	sideband/libptsideband.a capture/libptcapture.a proto/libptproto.a $(ELF_LIBS) $(ZYDIS_LIBS)

# Compares functions of stripped files with the symbol tables that the files had.
EXTRA_DIST += tests/oracle/function_bounds.py
noinst_PROGRAMS += tests/oracle/elf_functions
tests_oracle_elf_functions_SOURCES = tests/oracle/elf_functions.c
tests_oracle_elf_functions_LDADD = sideband/libptimage.a sideband/libptsideband.a \
	proto/libptproto.a $(ELF_LIBS)

# Compares the decoder's hot loop with its stepping walk.
ORACLE_TESTS += tests/oracle/nodes_diff.tap
noinst_PROGRAMS += tests/oracle/nodes_diff
tests_oracle_nodes_diff_SOURCES = tests/oracle/nodes_diff.c tests/oracle/nodes_compare.c \
	tests/oracle/nodes_compare.h tests/oracle/nodes_world.c tests/oracle/nodes_world.h \
	tests/oracle/nodes_run.c tests/oracle/diff_input.c tests/oracle/diff_input.h \
	tests/oracle/diff_seeds.c tests/oracle/diff_mutate.c
tests_oracle_nodes_diff_LDADD = decoder/libptdecoder.a $(ZYDIS_LIBS)

# Compares lines and inlined functions with addr2line. libdw's realpath() is wrapped as in
# ptsnap-decode.
ORACLE_TESTS += tests/oracle/dwarf.tap
EXTRA_DIST += tests/oracle/dwarf.py
noinst_PROGRAMS += tests/oracle/dwarf_lines
tests_oracle_dwarf_lines_SOURCES = tests/oracle/dwarf_lines.c decoder/worker/realpath.c
tests_oracle_dwarf_lines_LDADD = sideband/libptimage.a sideband/libptsideband.a proto/libptproto.a \
	$(ELF_LIBS) $(ZSTD_LIBS) $(SECCOMP_LIBS)
