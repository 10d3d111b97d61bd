/*
 * The headers of an ELF file for x86-64, read with bounds.
 */
#include "capture/probe/elffile.h"

#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"

int elffile_read(const struct elffile *f, void *to, size_t size, uint64_t offset)
{
	if (offset > f->size || size > f->size - offset)
		return -EBADMSG;
	for (size_t done = 0; done < size;) {
		ssize_t n = pread(f->fd, (char *)to + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -EBADMSG;
		if (n > 0)
			done += (size_t)n;
	}
	return 0;
}

static bool is_ours(const Elf64_Ehdr *h)
{
	return memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 && h->e_ident[EI_CLASS] == ELFCLASS64 &&
	       h->e_ident[EI_DATA] == ELFDATA2LSB && h->e_machine == EM_X86_64 &&
	       (h->e_type == ET_EXEC || h->e_type == ET_DYN) &&
	       h->e_phentsize == sizeof(Elf64_Phdr) && h->e_phnum <= ELFFILE_SEGMENTS;
}

/* A file without sections has none; a file that claims too many is malformed. */
static int read_sections(struct elffile *f)
{
	const Elf64_Ehdr *h = &f->header;

	if (!h->e_shoff || !h->e_shnum)
		return 0;
	if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum > ELFFILE_SECTIONS)
		return -EBADMSG;
	f->sections = calloc(h->e_shnum, sizeof(*f->sections));
	if (!f->sections)
		return -ENOMEM;
	f->n_sections = h->e_shnum;
	return elffile_read(f, f->sections, f->n_sections * sizeof(*f->sections), h->e_shoff);
}

int elffile_open(int fd, struct elffile *ret)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = (struct elffile){.fd = fd, .size = (uint64_t)st.st_size};
	r = elffile_read(ret, &ret->header, sizeof(ret->header), 0);
	if (r == 0 && !is_ours(&ret->header))
		r = -EBADMSG;
	if (r == 0) {
		ret->n_segments = ret->header.e_phnum;
		r = elffile_read(ret, ret->segments, ret->n_segments * sizeof(*ret->segments),
				 ret->header.e_phoff);
	}
	if (r == 0)
		r = read_sections(ret);
	if (r < 0)
		elffile_close(ret);
	return r;
}

void elffile_close(struct elffile *f)
{
	free(f->sections);
	f->sections = NULL;
}

bool elffile_section_ok(const struct elffile *f, const Elf64_Shdr *s, uint64_t max)
{
	return s->sh_type != SHT_NOBITS && s->sh_size <= max && s->sh_offset <= f->size &&
	       s->sh_size <= f->size - s->sh_offset;
}

static bool has_name(const struct elffile *f, const Elf64_Shdr *s, const char *name)
{
	size_t size = strlen(name) + 1;
	const Elf64_Shdr *names;
	char have[32];
	uint64_t at;

	if (f->header.e_shstrndx >= f->n_sections || size > sizeof(have))
		return false;
	names = &f->sections[f->header.e_shstrndx];
	if (s->sh_name > names->sh_size || size > names->sh_size - s->sh_name ||
	    __builtin_add_overflow(names->sh_offset, s->sh_name, &at))
		return false;
	return elffile_read(f, have, size, at) == 0 && memcmp(have, name, size) == 0;
}

const Elf64_Shdr *elffile_section(const struct elffile *f, uint32_t type, const char *name)
{
	for (unsigned i = 0; i < f->n_sections; i++)
		if (f->sections[i].sh_type == type && (!name || has_name(f, &f->sections[i], name)))
			return &f->sections[i];
	return NULL;
}

int elffile_offset(const struct elffile *f, uint64_t address, uint32_t flags, uint64_t *ret)
{
	for (unsigned i = 0; i < f->n_segments; i++) {
		const Elf64_Phdr *s = &f->segments[i];
		uint64_t at;

		if (s->p_type != PT_LOAD || (s->p_flags & flags) != flags || address < s->p_vaddr ||
		    address - s->p_vaddr >= s->p_filesz)
			continue;
		if (__builtin_add_overflow(address - s->p_vaddr, s->p_offset, &at) || at >= f->size)
			return -EBADMSG;
		*ret = at;
		return 0;
	}
	return -EBADMSG;
}
