noinst_LIBRARIES += sideband/libptsideband.a sideband/libptimage.a

sideband_libptsideband_a_CFLAGS = $(AM_CFLAGS) -Wconversion
sideband_libptsideband_a_SOURCES = \
	sideband/filetable.c sideband/filetable.h \
	sideband/idmap.c sideband/idmap.h \
	sideband/pool.c sideband/pool.h \
	sideband/space.c sideband/space.h sideband/space_private.h \
	sideband/timeline.c sideband/timeline.h sideband/timeline_private.h \
	sideband/timeline_apply.c \
	sideband/timeline_fork.c \
	sideband/timeline_load.c \
	sideband/timeline_log.c \
	sideband/timeline_pending.c \
	sideband/timeline_query.c \
	sideband/timeline_state.c \
	sideband/timeline_trust.c \
	sideband/timeline_turns.c \
	sideband/timeline_walk.c \
	sideband/timeline_write.c

# Parses what strangers wrote: for the sandboxed worker alone.
sideband_libptimage_a_CFLAGS = $(AM_CFLAGS) $(ELF_CFLAGS) $(ZSTD_CFLAGS) -Wconversion
sideband_libptimage_a_SOURCES = \
	sideband/demangle.c sideband/demangle.h \
	sideband/demangle_rust.c sideband/demangle_rust.h \
	sideband/dwarf.c sideband/dwarf.h sideband/dwarf_private.h \
	sideband/dwarf_abbrev.c \
	sideband/dwarf_chain.c \
	sideband/dwarf_line_header.c sideband/dwarf_line.h \
	sideband/dwarf_lines.c \
	sideband/dwarf_section.c \
	sideband/dwarf_show.c \
	sideband/dwarf_room.c \
	sideband/dwarf_span.c \
	sideband/dwarf_unit.c \
	sideband/elf.c sideband/elf.h sideband/elf_private.h \
	sideband/elf_header.c \
	sideband/elf_mini.c \
	sideband/elf_plt.c \
	sideband/elf_strings.c \
	sideband/elf_symbols.c \
	sideband/image.c sideband/image.h sideband/image_private.h \
	sideband/image_bytes.c \
	sideband/image_elf.c \
	sideband/image_index.c \
	sideband/kernel.c sideband/kernel.h sideband/kernel_private.h \
	sideband/kernel_elf.c sideband/kernel_elf.h \
	sideband/kernel_file.c sideband/kernel_file.h sideband/kernel_file_private.h \
	sideband/kernel_file_module.c \
	sideband/kernel_file_sites.c \
	sideband/kernel_file_unpack.c \
	sideband/kernel_links.c sideband/kernel_links.h \
	sideband/kernel_place.c \
	sideband/kernel_poke.c \
	sideband/kernel_symbols.c \
	sideband/perfmap.c sideband/perfmap.h \
	sideband/symbols.c sideband/symbols.h sideband/symbols_private.h \
	sideband/symbols_lines.c
