/*
 * Build ids, by the kernel's own rules (lib/buildid.c, build_id_parse, 6.1): a 64-bit ELF file
 * whose program headers and notes lie in its first page. Called by maps.c in the emulator's
 * process.
 */
#include "capture/emu/plugin/buildid.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096u

static bool read_page(const char *path, uint64_t ino, uint8_t *page)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	bool good;

	if (fd < 0)
		return false;
	memset(page, 0, PAGE);
	good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == ino &&
	       pread(fd, page, PAGE, 0) > 0;
	close(fd);
	return good;
}

static uint8_t search_notes(const uint8_t *notes, uint64_t size, uint8_t ret[20])
{
	Elf64_Nhdr note;
	uint64_t at = 0;

	while (at + sizeof(note) < size) {
		memcpy(&note, notes + at, sizeof(note));
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
		    note.n_descsz > 0 && note.n_descsz <= 20 &&
		    at + sizeof(note) + 4 + note.n_descsz <= size &&
		    memcmp(notes + at + sizeof(note), "GNU", 4) == 0) {
			memcpy(ret, notes + at + sizeof(note) + 4, note.n_descsz);
			return (uint8_t)note.n_descsz;
		}
		at += sizeof(note) + ((note.n_namesz + 3ull) & ~3ull) +
		      ((note.n_descsz + 3ull) & ~3ull);
	}
	return 0;
}

uint8_t buildid_read(const char *path, uint64_t ino, uint8_t ret[20])
{
	uint8_t page[PAGE], size = 0;
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;

	if (!read_page(path, ino, page))
		return 0;
	memcpy(&ehdr, page, sizeof(ehdr));
	if (memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_phoff != sizeof(ehdr) || ehdr.e_phnum > (PAGE - sizeof(ehdr)) / sizeof(phdr))
		return 0;
	for (uint16_t i = 0; size == 0 && i < ehdr.e_phnum; i++) {
		memcpy(&phdr, page + sizeof(ehdr) + i * sizeof(phdr), sizeof(phdr));
		if (phdr.p_type == PT_NOTE && phdr.p_offset < PAGE &&
		    phdr.p_filesz <= PAGE - phdr.p_offset)
			size = search_notes(page + phdr.p_offset, phdr.p_filesz, ret);
	}
	return size;
}
