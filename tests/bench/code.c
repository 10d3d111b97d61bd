/*
 * The code of a bundle's only process: images as memory files, and the addresses where they were
 * mapped.
 */
#include "tests/bench/code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proto/base.h"
#include "proto/perf/perfrecord.h"

#define MAX_SECTIONS 4096u

static int copy_pieces(int fd, const struct bundle *b, size_t index)
{
	const struct manifest_image *m = &bundle_manifest(b)->images[index];
	size_t size, n;
	const uint8_t *bytes = bundle_image(b, index, &size);
	const struct manifest_piece *pieces = bundle_image_pieces(b, index, &n);

	for (size_t i = 0; i < n; i++) {
		if (pwrite(fd, bytes, pieces[i].size, (off_t)(m->offset + pieces[i].offset)) !=
		    (ssize_t)pieces[i].size)
			return -EIO;
		bytes += pieces[i].size;
	}
	return 0;
}

static int copy_image(const struct bundle *b, size_t index, int *ret_fd)
{
	const struct manifest_image *m = &bundle_manifest(b)->images[index];
	size_t size;
	int r;

	*ret_fd = -EBADF;
	if (bundle_image(b, index, &size) == NULL)
		return 0;
	*ret_fd = memfd_create("image", MFD_CLOEXEC);
	if (*ret_fd < 0)
		return -errno;
	r = copy_pieces(*ret_fd, b, index);
	if (r == 0 && m->file_size != MANIFEST_ABSENT &&
	    ftruncate(*ret_fd, (off_t)m->file_size) < 0)
		r = -errno;
	return r;
}

static bool is_mapped(const struct manifest_image *m, const struct perfrecord *r)
{
	if (strcmp(m->path, r->u.mmap2.filename) != 0)
		return false;
	return (r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) ||
	       (m->maj == r->u.mmap2.maj && m->min == r->u.mmap2.min && m->ino == r->u.mmap2.ino);
}

static int add_section(struct code *c, const struct bundle *b, const struct perfrecord *r)
{
	const struct manifest *m = bundle_manifest(b);
	struct code_section *s = &c->sections[c->n];
	void *bytes;
	size_t i;

	for (i = 0; i < c->n_files; i++)
		if (c->files[i] >= 0 && is_mapped(&m->images[i], r))
			break;
	if (i == c->n_files)
		return 0;
	if (c->n == MAX_SECTIONS)
		return -E2BIG;
	bytes = mmap(NULL, r->u.mmap2.len, PROT_READ, MAP_SHARED, c->files[i],
		     (off_t)r->u.mmap2.pgoff);
	if (bytes == MAP_FAILED)
		return -errno;
	*s = (struct code_section){.address = r->u.mmap2.addr,
				   .size = r->u.mmap2.len,
				   .offset = r->u.mmap2.pgoff,
				   .fd = c->files[i],
				   .bytes = bytes};
	c->n++;
	return 0;
}

static int add_sections(struct code *c, const struct bundle *b)
{
	struct perfrecord record;
	size_t size;
	const uint8_t *at = bundle_sideband(b, &size), *end = at + size;
	int r = 0;

	for (; at < end && r == 0; at += record.size) {
		int p = perfrecord_parse(at, (size_t)(end - at), &record);

		if (record.size == 0)
			return -EBADMSG;
		if (p == 0 && record.type == PERF_RECORD_MMAP2 && (record.u.mmap2.prot & PROT_EXEC))
			r = add_section(c, b, &record);
	}
	return r;
}

int code_open(const struct bundle *b, struct code *ret)
{
	size_t n = bundle_manifest(b)->n_images;
	int r = 0;

	*ret = (struct code){.files = calloc(n + 1, sizeof(int)),
			     .sections = calloc(MAX_SECTIONS, sizeof(struct code_section))};
	if (ret->files == NULL || ret->sections == NULL)
		return -ENOMEM;
	while (r == 0 && ret->n_files < n) {
		r = copy_image(b, ret->n_files, &ret->files[ret->n_files]);
		ret->n_files++;
	}
	return r == 0 ? add_sections(ret, b) : r;
}

void code_close(struct code *c)
{
	for (size_t i = 0; i < c->n; i++)
		munmap((void *)(uintptr_t)c->sections[i].bytes, c->sections[i].size);
	for (size_t i = 0; i < c->n_files; i++)
		if (c->files[i] >= 0)
			close(c->files[i]);
	free(c->files);
	free(c->sections);
}

const uint8_t *code_at(const struct code *c, uint64_t address, size_t *ret_left)
{
	for (size_t i = c->n; i > 0; i--) {
		const struct code_section *s = &c->sections[i - 1];

		if (address >= s->address && address - s->address < s->size) {
			*ret_left = (size_t)(s->size - (address - s->address));
			return s->bytes + (address - s->address);
		}
	}
	return NULL;
}
