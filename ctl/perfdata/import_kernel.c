/*
 * Adds the kernel's memory and symbols that perf record copied to a bundle. Of the content, only
 * the program headers of the core file are read here.
 */
#include "ctl/perfdata/import_kernel.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base.h"

#include "ctl/perfdata/import_images.h"

/* perf copies a segment for the kernel, one for its modules, and some for entry trampolines. */
#define MAX_SEGMENTS 64u
#define MAX_MEMORY   (1ull << 30)
#define MAX_SYMBOLS  (256ull << 20)
#define KERNEL	     (UINT64_C(1) << 63) /* the kernel's addresses are not below */

static int open_copy(const char *path, const char *name, uint64_t max, uint64_t *ret_size)
{
	const char *slash = strrchr(path, '/');
	CLEANUP_FREE char *whole = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	struct stat st;

	if (asprintf(&whole, "%.*skcore_dir/%s", slash ? (int)(slash - path) + 1 : 0, path, name) <
	    0) {
		whole = NULL;
		return -ENOMEM;
	}
	fd = open(whole, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || (uint64_t)st.st_size > max)
		return -EINVAL;
	*ret_size = (uint64_t)st.st_size;
	return take_fd(&fd);
}

/* The number of program headers, at most MAX_SEGMENTS; 0: not a core file as perf writes it
 * (tools/perf/util/symbol-elf.c, kcore__init()). */
static size_t read_segments(int fd, Elf64_Phdr *ret)
{
	Elf64_Ehdr h;
	size_t size;

	if (pread(fd, &h, sizeof(h), 0) != sizeof(h) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 ||
	    h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB ||
	    h.e_phentsize != sizeof(*ret) || h.e_phnum > MAX_SEGMENTS || h.e_phoff > MAX_MEMORY)
		return 0;
	size = h.e_phnum * sizeof(*ret);
	return pread(fd, ret, size, (off_t)h.e_phoff) == (ssize_t)size ? h.e_phnum : 0;
}

static int add_segment(int fd, const Elf64_Phdr *p, struct manifest *m, struct bundle_writer *w)
{
	struct manifest_image *image = manifest_add_image(m);
	uint64_t copied;
	char name[32];

	if (!image)
		return import_no_memory();
	image->path = strdup("[kernel]");
	image->kind = strdup(MANIFEST_IMAGE_KERNEL);
	if (!image->path || !image->kind)
		return import_no_memory();
	image->address = p->p_vaddr;
	image->size = p->p_filesz;
	/* Before all records: perf copies before it starts the events. */
	image->read_ns = 0;
	snprintf(name, sizeof(name), "images/%zu", m->n_images - 1);
	return import_written(bundle_write_file(w, name, fd, p->p_offset, p->p_filesz, &copied));
}

static int add_memory(const char *path, struct manifest *m, struct bundle_writer *w)
{
	Elf64_Phdr segments[MAX_SEGMENTS];
	uint64_t size;
	CLEANUP_CLOSE int fd = open_copy(path, "kcore", MAX_MEMORY, &size);
	size_t n = fd >= 0 ? read_segments(fd, segments) : 0;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		const Elf64_Phdr *p = &segments[i];

		if (p->p_type == PT_LOAD && p->p_vaddr >= KERNEL && p->p_filesz > 0 &&
		    p->p_offset <= size && p->p_filesz <= size - p->p_offset &&
		    m->n_images < MANIFEST_MAX_IMAGES)
			r = add_segment(fd, p, m, w);
	}
	return r;
}

static int add_symbols(const char *path, struct manifest *m, struct bundle_writer *w)
{
	uint64_t size, copied;
	CLEANUP_CLOSE int fd = open_copy(path, "kallsyms", MAX_SYMBOLS, &size);
	struct manifest_text *text;
	char name[32];

	if (fd < 0)
		return fd == -ENOMEM ? import_no_memory() : 0;
	text = manifest_add_text(m);
	if (!text)
		return import_no_memory();
	text->kind = strdup(MANIFEST_TEXT_KALLSYMS);
	if (!text->kind)
		return import_no_memory();
	text->size = size;
	snprintf(name, sizeof(name), "texts/%zu", m->n_texts - 1);
	return import_written(bundle_write_file(w, name, fd, 0, size, &copied));
}

int import_kernel_write(const char *path, struct manifest *m, struct bundle_writer *w)
{
	int r;

	if (!m->trace_kernel)
		return 0;
	r = add_memory(path, m, w);
	return r == 0 ? add_symbols(path, m, w) : r;
}
