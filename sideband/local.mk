noinst_LIBRARIES += sideband/libptsideband.a sideband/libptimage.a

sideband_libptsideband_a_CFLAGS = $(AM_CFLAGS) -Wconversion
sideband_libptsideband_a_SOURCES = \
	sideband/timeline/pool.c sideband/timeline/pool.h \
	sideband/timeline/space.c sideband/timeline/space.h \
	sideband/timeline/tables.c \
	sideband/timeline/timeline.c sideband/timeline/timeline.h sideband/timeline/timeline_private.h \
	sideband/timeline/timeline_apply.c \
	sideband/timeline/timeline_certainty.c \
	sideband/timeline/timeline_load.c \
	sideband/timeline/timeline_log.c \
	sideband/timeline/timeline_state.c \
	sideband/timeline/timeline_turns.c \
	sideband/timeline/timeline_write.c

# Parses what strangers wrote: for the sandboxed worker alone.
sideband_libptimage_a_CFLAGS = $(AM_CFLAGS) $(ELF_CFLAGS) $(ZSTD_CFLAGS) -Wconversion
sideband_libptimage_a_SOURCES = \
	sideband/dwarf/dwarf.c sideband/dwarf/dwarf.h sideband/dwarf/dwarf_private.h \
	sideband/dwarf/dwarf_limits.c \
	sideband/dwarf/dwarf_line_header.c \
	sideband/dwarf/dwarf_lines.c \
	sideband/dwarf/dwarf_section.c \
	sideband/dwarf/dwarf_unit.c \
	sideband/elf/elf.c sideband/elf/elf.h sideband/elf/elf_private.h \
	sideband/elf/elf_bytes.c \
	sideband/elf/elf_plt.c \
	sideband/elf/elf_symbols.c \
	sideband/elf/elf_unwind.c \
	sideband/kernel/kernel.c sideband/kernel/kernel.h sideband/kernel/kernel_private.h \
	sideband/kernel/kernel_file.c sideband/kernel/kernel_file.h sideband/kernel/kernel_file_private.h \
	sideband/kernel/kernel_file_module.c \
	sideband/kernel/kernel_file_read.c \
	sideband/kernel/kernel_file_sites.c \
	sideband/kernel/kernel_poke.c \
	sideband/kernel/kernel_symbols.c \
	sideband/symbols/demangle.c \
	sideband/symbols/image.c sideband/symbols/image.h sideband/symbols/image_private.h \
	sideband/symbols/image_bytes.c \
	sideband/symbols/image_index.c \
	sideband/symbols/image_jit.c \
	sideband/symbols/jitcode.c sideband/symbols/jitdump.c sideband/symbols/jitdump.h \
	sideband/symbols/perfmap.c \
	sideband/symbols/symbols.c sideband/symbols/symbols.h
