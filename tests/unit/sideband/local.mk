check_PROGRAMS += \
	tests/unit/sideband/kernel/test_kernel_file \
	tests/unit/sideband/symbols/test_jitdump \
	tests/unit/sideband/symbols/test_perfmap \
	tests/unit/sideband/timeline/test_pool \
	tests/unit/sideband/timeline/test_space \
	tests/unit/sideband/timeline/test_timeline \
	tests/unit/sideband/timeline/test_timeline_fold \
	tests/unit/sideband/timeline/test_timeline_losses \
	tests/unit/sideband/timeline/test_timeline_storm \
	tests/unit/sideband/timeline/test_timeline_turns \
	tests/unit/sideband/dwarf/test_dwarf \
	tests/unit/sideband/dwarf/test_dwarf_hostile \
	tests/unit/sideband/dwarf/test_dwarf_room \
	tests/unit/sideband/dwarf/test_dwarf_large \
	tests/unit/sideband/dwarf/test_dwarf_steps \
	tests/unit/sideband/elf/test_elf \
	tests/unit/sideband/symbols/test_demangle \
	tests/unit/sideband/elf/test_elf_apart \
	tests/unit/sideband/elf/test_elf_strings \
	tests/unit/sideband/elf/test_elf_unwind \
	tests/unit/sideband/symbols/test_image_debug \
	tests/unit/sideband/symbols/test_symbols_apart \
	tests/unit/sideband/symbols/test_image \
	tests/unit/sideband/kernel/test_kernel \
	tests/unit/sideband/symbols/test_image_bytes \
	tests/unit/sideband/symbols/test_symbols_memory \
	tests/unit/sideband/symbols/test_symbols

tests_unit_sideband_symbols_test_jitdump_SOURCES = tests/unit/sideband/symbols/test_jitdump.c \
	tests/unit/sideband/jitdump_maker.c tests/unit/sideband/jitdump_maker.h
tests_unit_sideband_symbols_test_jitdump_LDADD = sideband/libptimage.a proto/libptproto.a $(CMOCKA_LIBS)

tests_unit_sideband_symbols_test_perfmap_SOURCES = tests/unit/sideband/symbols/test_perfmap.c
tests_unit_sideband_symbols_test_perfmap_LDADD = sideband/libptimage.a $(CMOCKA_LIBS)

tests_unit_sideband_kernel_test_kernel_file_SOURCES = tests/unit/sideband/kernel/test_kernel_file.c \
	tests/unit/sideband/elf_maker.c tests/unit/sideband/elf_maker.h
tests_unit_sideband_kernel_test_kernel_file_LDADD = sideband/libptimage.a proto/libptproto.a \
	$(CMOCKA_LIBS) $(ZSTD_LIBS)

tests_unit_sideband_timeline_test_pool_SOURCES = tests/unit/sideband/timeline/test_pool.c
tests_unit_sideband_timeline_test_pool_LDADD = sideband/libptsideband.a $(CMOCKA_LIBS)

tests_unit_sideband_timeline_test_space_SOURCES = tests/unit/sideband/timeline/test_space.c
tests_unit_sideband_timeline_test_space_LDADD = sideband/libptsideband.a proto/libptproto.a $(CMOCKA_LIBS)

tests_unit_sideband_timeline_test_timeline_SOURCES = \
	tests/unit/sideband/timeline/test_timeline.c \
	tests/unit/sideband/load.h tests/unit/sideband/records.h
tests_unit_sideband_timeline_test_timeline_LDADD = \
	sideband/libptsideband.a proto/libptproto.a $(CMOCKA_LIBS)

tests_unit_sideband_timeline_test_timeline_fold_SOURCES = \
	tests/unit/sideband/timeline/test_timeline_fold.c \
	tests/unit/sideband/load.h tests/unit/sideband/records.h
tests_unit_sideband_timeline_test_timeline_fold_LDADD = \
	sideband/libptsideband.a proto/libptproto.a $(CMOCKA_LIBS)
# Counts what the timeline allocates.
tests_unit_sideband_timeline_test_timeline_fold_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray

tests_unit_sideband_timeline_test_timeline_losses_SOURCES = \
	tests/unit/sideband/timeline/test_timeline_losses.c \
	tests/unit/sideband/load.h tests/unit/sideband/records.h
tests_unit_sideband_timeline_test_timeline_losses_LDADD = \
	sideband/libptsideband.a proto/libptproto.a $(CMOCKA_LIBS)

tests_unit_sideband_timeline_test_timeline_storm_SOURCES = \
	tests/unit/sideband/timeline/test_timeline_storm.c tests/bench/storm.c tests/bench/storm.h
tests_unit_sideband_timeline_test_timeline_storm_LDADD = \
	sideband/libptsideband.a proto/libptproto.a $(CMOCKA_LIBS)

tests_unit_sideband_timeline_test_timeline_turns_SOURCES = \
	tests/unit/sideband/timeline/test_timeline_turns.c \
	tests/unit/sideband/load.h tests/unit/sideband/records.h
tests_unit_sideband_timeline_test_timeline_turns_LDADD = \
	sideband/libptsideband.a proto/libptproto.a $(CMOCKA_LIBS)

tests_unit_sideband_elf_test_elf_SOURCES = \
	tests/unit/sideband/elf/real_files.h tests/unit/sideband/elf/some_file.h \
	tests/unit/sideband/elf/test_elf.c tests/unit/sideband/self.h
tests_unit_sideband_elf_test_elf_LDADD = sideband/libptimage.a $(ELF_LIBS) $(CMOCKA_LIBS)

tests_unit_sideband_symbols_test_image_SOURCES = tests/unit/sideband/symbols/test_image.c
tests_unit_sideband_symbols_test_image_LDADD = \
	sideband/libptimage.a sideband/libptsideband.a proto/libptproto.a $(ELF_LIBS) $(CMOCKA_LIBS)

tests_unit_sideband_symbols_test_image_bytes_SOURCES = tests/unit/sideband/symbols/test_image_bytes.c
tests_unit_sideband_symbols_test_image_bytes_LDADD = \
	sideband/libptimage.a sideband/libptsideband.a proto/libptproto.a $(ELF_LIBS) $(CMOCKA_LIBS)

tests_unit_sideband_symbols_test_image_debug_SOURCES = tests/unit/sideband/symbols/test_image_debug.c
tests_unit_sideband_symbols_test_image_debug_LDADD = \
	sideband/libptimage.a sideband/libptsideband.a proto/libptproto.a $(ELF_LIBS) $(CMOCKA_LIBS)

tests_unit_sideband_elf_test_elf_strings_SOURCES = tests/unit/sideband/elf/test_elf_strings.c \
	tests/unit/sideband/elf_maker.c tests/unit/sideband/elf_maker.h
tests_unit_sideband_elf_test_elf_strings_LDADD = sideband/libptimage.a $(ELF_LIBS) $(CMOCKA_LIBS)

tests_unit_sideband_elf_test_elf_unwind_SOURCES = tests/unit/sideband/elf/test_elf_unwind.c \
	tests/unit/sideband/elf/real_files.h tests/unit/sideband/self.h
tests_unit_sideband_elf_test_elf_unwind_LDADD = sideband/libptimage.a $(ELF_LIBS) $(CMOCKA_LIBS)

tests_unit_sideband_elf_test_elf_apart_SOURCES = tests/unit/sideband/elf/test_elf_apart.c \
	tests/unit/sideband/elf/some_file.h \
	tests/unit/sideband/apart.c tests/unit/sideband/apart.h \
	tests/unit/sideband/elf_maker.c tests/unit/sideband/elf_maker.h tests/unit/sideband/self.h
tests_unit_sideband_elf_test_elf_apart_LDADD = sideband/libptimage.a $(ELF_LIBS) $(CMOCKA_LIBS)
tests_unit_sideband_elf_test_elf_apart_LDFLAGS = $(AM_LDFLAGS) -Wl,--build-id=sha1

tests_unit_sideband_symbols_test_symbols_apart_SOURCES = tests/unit/sideband/symbols/test_symbols_apart.c \
	tests/unit/sideband/apart.c tests/unit/sideband/apart.h tests/unit/sideband/self.h
tests_unit_sideband_symbols_test_symbols_apart_LDADD = \
	sideband/libptimage.a sideband/libptsideband.a proto/libptproto.a $(ELF_LIBS) $(ZSTD_LIBS) $(CMOCKA_LIBS)
# Where addresses are no offsets.
tests_unit_sideband_symbols_test_symbols_apart_LDFLAGS = $(AM_LDFLAGS) -Wl,--build-id=sha1 -no-pie
# Reads its own lines, also where nothing else is built with them.
tests/unit/sideband/symbols/test_symbols_apart.$(OBJEXT): CFLAGS += -g

tests_unit_sideband_symbols_test_demangle_SOURCES = \
	tests/unit/sideband/symbols/test_demangle.c tests/unit/sideband/self.h
tests_unit_sideband_symbols_test_demangle_LDADD = sideband/libptimage.a $(ELF_LIBS) $(CMOCKA_LIBS)

tests_unit_sideband_symbols_test_symbols_memory_SOURCES = tests/unit/sideband/symbols/test_symbols_memory.c
tests_unit_sideband_symbols_test_symbols_memory_LDADD = sideband/libptimage.a sideband/libptsideband.a \
	capture/libptcapture.a proto/libptproto.a $(ELF_LIBS) $(ZSTD_LIBS) $(CMOCKA_LIBS)

tests_unit_sideband_symbols_test_symbols_SOURCES = \
	tests/unit/sideband/symbols/test_symbols.c tests/unit/sideband/self.h
tests_unit_sideband_symbols_test_symbols_LDADD = \
	sideband/libptimage.a sideband/libptsideband.a proto/libptproto.a $(ELF_LIBS) $(ZSTD_LIBS) $(CMOCKA_LIBS)

tests_unit_sideband_kernel_test_kernel_SOURCES = tests/unit/sideband/kernel/test_kernel.c
tests_unit_sideband_kernel_test_kernel_LDADD = \
	sideband/libptimage.a sideband/libptsideband.a proto/libptproto.a $(ELF_LIBS) $(CMOCKA_LIBS)

tests_unit_sideband_dwarf_test_dwarf_SOURCES = \
	tests/unit/sideband/dwarf/test_dwarf.c tests/unit/sideband/self.h \
	tests/unit/sideband/dwarf_maker.c tests/unit/sideband/dwarf_maker.h \
	tests/unit/sideband/elf_maker.c tests/unit/sideband/elf_maker.h
tests_unit_sideband_dwarf_test_dwarf_LDADD = sideband/libptimage.a $(ELF_LIBS) $(ZSTD_LIBS) $(CMOCKA_LIBS)

# As ptsnap-decode, which answers realpath() of libdw itself.
tests_unit_sideband_dwarf_test_dwarf_hostile_SOURCES = \
	tests/unit/sideband/dwarf/test_dwarf_hostile.c decoder/worker/realpath.c \
	tests/unit/sideband/dwarf_maker.c tests/unit/sideband/dwarf_maker.h \
	tests/unit/sideband/elf_maker.c tests/unit/sideband/elf_maker.h
tests_unit_sideband_dwarf_test_dwarf_hostile_LDADD = sideband/libptimage.a $(ELF_LIBS) $(ZSTD_LIBS) \
	$(SECCOMP_LIBS) $(CMOCKA_LIBS)
tests_unit_sideband_dwarf_test_dwarf_room_SOURCES = tests/unit/sideband/dwarf/test_dwarf_room.c \
	tests/unit/sideband/dwarf_maker.c tests/unit/sideband/dwarf_maker.h \
	tests/unit/sideband/elf_maker.c tests/unit/sideband/elf_maker.h
tests_unit_sideband_dwarf_test_dwarf_room_LDADD = sideband/libptimage.a $(ELF_LIBS) $(ZSTD_LIBS) $(CMOCKA_LIBS)
tests_unit_sideband_dwarf_test_dwarf_large_SOURCES = tests/unit/sideband/dwarf/test_dwarf_large.c \
	tests/unit/sideband/dwarf_maker.c tests/unit/sideband/dwarf_maker.h \
	tests/unit/sideband/elf_maker.c tests/unit/sideband/elf_maker.h
tests_unit_sideband_dwarf_test_dwarf_large_CPPFLAGS = $(AM_CPPFLAGS) -DDWARF_MAKER_BYTES=9437184u -DELF_MAKER_BYTES=10485760u
tests_unit_sideband_dwarf_test_dwarf_large_LDADD = sideband/libptimage.a $(ELF_LIBS) $(ZSTD_LIBS) $(CMOCKA_LIBS)
tests_unit_sideband_dwarf_test_dwarf_steps_SOURCES = tests/unit/sideband/dwarf/test_dwarf_steps.c \
	tests/unit/sideband/dwarf_maker.c tests/unit/sideband/dwarf_maker.h \
	tests/unit/sideband/elf_maker.c tests/unit/sideband/elf_maker.h
tests_unit_sideband_dwarf_test_dwarf_steps_LDADD = sideband/libptimage.a $(ELF_LIBS) $(ZSTD_LIBS) $(CMOCKA_LIBS)
