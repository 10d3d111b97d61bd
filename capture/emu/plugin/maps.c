/*
 * The guest's executable mappings, from /proc/self/maps and QEMU's page flags.
 */
#include "capture/emu/plugin/maps.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/emu/plugin/guest.h"
#include "proto/base.h"

#define PAGE	    4096ull
#define HEADER_SIZE 4096u /* what the kernel searches for a build ID */

static bool read_header(const char *path, uint64_t ino, uint8_t *header)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	memset(header, 0, HEADER_SIZE);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == ino &&
	       pread(fd, header, HEADER_SIZE, 0) > 0;
}

/* Returns the size of the build ID that it copies to RET, or 0. */
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

/* Build ID of file PATH if its inode is still INO, by the kernel's rules (lib/buildid.c,
 * build_id_parse, 6.1): a 64-bit ELF file whose program headers and notes lie in its first page.
 * Returns the number of bytes, at most 20. 0: no build ID, or not where the kernel looks. */
static uint8_t read_build_id(const char *path, uint64_t ino, uint8_t ret[20])
{
	uint8_t header[HEADER_SIZE], size = 0;
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;

	if (!read_header(path, ino, header))
		return 0;
	memcpy(&ehdr, header, sizeof(ehdr));
	if (memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_phoff != sizeof(ehdr) ||
	    ehdr.e_phnum > (HEADER_SIZE - sizeof(ehdr)) / sizeof(phdr))
		return 0;
	for (uint16_t i = 0; size == 0 && i < ehdr.e_phnum; i++) {
		memcpy(&phdr, header + sizeof(ehdr) + i * sizeof(phdr), sizeof(phdr));
		if (phdr.p_type == PT_NOTE && phdr.p_offset < HEADER_SIZE &&
		    phdr.p_filesz <= HEADER_SIZE - phdr.p_offset)
			size = search_notes(header + phdr.p_offset, phdr.p_filesz, ret);
	}
	return size;
}

struct line {
	uint64_t begin, end, pgoff, ino;
	unsigned int maj, min;
	char perms[5];
	char *path; /* points into the line's buffer */
};

/* The kernel escapes only newlines in the paths of maps (fs/proc/task_mmu.c, seq_file_path). */
static void unescape(char *path)
{
	char *to = path;

	for (const char *from = path; *from != '\0'; to++) {
		if (strncmp(from, "\\012", 4) == 0) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* One line of /proc/self/maps. *RET points into TEXT, which is changed. */
static bool parse(char *text, struct line *ret)
{
	int path = 0;

	text[strcspn(text, "\n")] = '\0';
	if (sscanf(text, "%lx-%lx %4s %lx %x:%x %lu %n", &ret->begin, &ret->end, ret->perms,
		   &ret->pgoff, &ret->maj, &ret->min, &ret->ino, &path) < 7 ||
	    path == 0)
		return false;
	ret->path = text + path;
	unescape(ret->path);
	return true;
}

static const char *name_of(const struct line *l)
{
	/* With a guest_base, the memory lies at another address for the host, and the recorder must
	 * not read it at the guest's address. */
	if (l->ino == 0 && guest_to_host(0) != 0)
		return "[guest]";
	/* For the kernel, the stack that QEMU made is plain anonymous memory. */
	return l->path[0] != '\0' ? l->path : "//anon";
}

struct scan {
	uint64_t begin, end;
	bool build_ids;
	maps_fn fn;
	void *userdata;
};

#define PERMISSIONS (GUEST_PAGE_READ | GUEST_PAGE_WRITE | GUEST_PAGE_EXEC)

static int permissions(uint64_t host)
{
	return guest_page_flags(guest_from_host(host)) & PERMISSIONS;
}

/* Reports the pages [BEGIN, END), host addresses, which have the same permissions FLAGS. */
static void give_range(const struct scan *s, const struct line *l, uint64_t begin, uint64_t end,
		       int flags)
{
	_Static_assert(GUEST_PAGE_READ == PROT_READ && GUEST_PAGE_WRITE == PROT_WRITE &&
			       GUEST_PAGE_EXEC == PROT_EXEC,
		       "QEMU's page flags are PROT_*");
	struct sideband_mapping m = {.addr = guest_from_host(begin),
				     .len = end - begin,
				     .pgoff = l->ino != 0 ? l->pgoff + begin - l->begin
							  : guest_from_host(begin),
				     .maj = l->maj,
				     .min = l->min,
				     .ino = l->ino,
				     .prot = (uint32_t)flags,
				     .flags = l->perms[3] == 's' ? MAP_SHARED : MAP_PRIVATE,
				     .name = name_of(l)};

	if (s->build_ids && l->ino != 0)
		m.build_id_size = read_build_id(l->path, l->ino, m.build_id);
	s->fn(s->userdata, &m);
}

static void give_ranges(const struct scan *s, const struct line *l)
{
	uint64_t at = MAX_OF(l->begin, guest_to_host(s->begin));
	uint64_t end = s->end == UINT64_MAX ? l->end : MIN_OF(l->end, guest_to_host(s->end));

	while (at < end) {
		int flags = permissions(at);
		uint64_t begin = at;

		while (at < end && permissions(at) == flags)
			at += PAGE;
		if (!(flags & GUEST_PAGE_EXEC))
			continue;
		give_range(s, l, begin, at, flags);
	}
}

/* Whether the mapping can have guest pages. Nothing executes in the vsyscall page, and the kernel
 * writes no MMAP2 record for it. QEMU reserves large ranges without guest pages, which are not
 * readable; looking at each of their pages would take too long. */
static bool may_be_guest(const struct line *l)
{
	if (strcmp(l->path, "[vsyscall]") == 0)
		return false;
	return l->perms[0] == 'r' || l->end - l->begin < (1ull << 30);
}

int maps_executable(uint64_t begin, uint64_t end, uint32_t flags, maps_fn fn, void *userdata)
{
	struct scan s = {begin, end, (flags & EMURING_BUILD_ID) != 0, fn, userdata};
	char *text = NULL;
	size_t capacity = 0;
	struct line l;
	FILE *f = fopen("/proc/self/maps", "re");

	if (!f)
		return -errno;
	while (getline(&text, &capacity, f) > 0)
		if (parse(text, &l) && l.begin < guest_to_host(end) && may_be_guest(&l))
			give_ranges(&s, &l);
	free(text);
	fclose(f);
	return 0;
}
