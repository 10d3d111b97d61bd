/*
 * The code that a process had at an address: which image is mapped there (image_index.c), and its
 * bytes (image_bytes.c, image_elf.c). Only in the worker; one thread at a time.
 */
#include "sideband/symbols/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/elf/elf.h"
#include "sideband/symbols/image_private.h"

#define PAGE_SHIFT 12
#define PAGE_SIZE  (UINT64_C(1) << PAGE_SHIFT)
#define KEPT_BLOCK (UINT64_C(16) << 10)

int image_set_new(const struct image_source *sources, size_t n, const struct image_loader *loader,
		  struct image_set **ret)
{
	struct image_set *s;

	if (n >= UINT32_MAX / 2)
		return -E2BIG;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->n = n;
	if (loader)
		s->loader = *loader;
	s->n_all = s->loader.debug ? 2 * n : n;
	s->room = s->loader.max_filled ? s->loader.max_filled : IMAGE_MAX_FILLED;
	s->sources = calloc(s->n_all + 1, sizeof(*s->sources));
	s->bodies = calloc(s->n_all + 1, sizeof(*s->bodies));
	for (size_t i = 0; s->sources && i < n; i++) {
		s->sources[i] = sources[i];
		if (!sources[i].path)
			s->sources[i].path = "";
		s->sources[i].build_id_size =
			(uint8_t)MIN_OF(sources[i].build_id_size, sizeof(sources[i].build_id));
	}
	if (!s->sources || !s->bodies || image_index_init(s) < 0) {
		image_set_free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void image_set_free(struct image_set *s)
{
	if (!s)
		return;
	if (s->bodies)
		image_bytes_done(s);
	image_index_done(s);
	free(s->sources);
	free(s->bodies);
	free(s);
}

const struct image_source *image_source(const struct image_set *s, uint32_t image)
{
	return image < s->n ? &s->sources[image] : NULL;
}

bool image_was_asked(const struct image_set *s, uint32_t image)
{
	return image < s->n && s->bodies[image].state != IMAGE_NEW;
}

/* --- Code --- */

/* What the kernel calls memory without a file (mm/mmap.c, arch_vma_name(), perf_event_mmap_event())
 * and files that are only memory. */
static bool is_anonymous(const struct space_file *file)
{
	return !file || file->path[0] != '/' || strncmp(file->path, "//", 2) == 0 ||
	       strncmp(file->path, "/dev/zero", 9) == 0;
}

/* Around an address, that is OFFSET of an image: bytes of the mapping before and behind it. */
struct around {
	uint64_t address, offset;
	uint64_t before, behind;
};

static void set_map(const struct image_set *s, uint32_t image, const struct around *a,
		    struct image_code *ret)
{
	const struct image_source *source = &s->sources[image];
	uint64_t first = source->n_pieces || source->loadable ? 0 : source->offset;

	ret->map_begin = a->address - MIN_OF(a->before, a->offset - first);
	ret->map_end = a->address + MIN_OF(a->behind, s->bodies[image].size - a->offset);
}

static int locate(struct image_set *s, uint32_t image, const struct around *a,
		  struct image_code *ret)
{
	struct image_range range;
	uint64_t begin, end;
	int r = image_bytes_open(s, image);

	if (r == 0)
		r = image_bytes_around(s, image, a->offset, 0, &range);
	if (r != 0)
		return r;
	begin = a->offset - MIN_OF(a->before, a->offset - range.begin);
	end = a->offset + MIN_OF(a->behind, range.end - a->offset);
	ret->image = image;
	ret->address = a->address - (a->offset - begin);
	ret->offset = begin;
	ret->size = end - begin;
	ret->bytes = range.bytes + (begin - range.begin);
	ret->touched = NULL;
	set_map(s, image, a, ret);
	if (!range.touched)
		return 0;
	/* Where it was asked for, something of it is looked at. */
	range.touched[(a->offset >> PAGE_SHIFT) - (range.begin >> PAGE_SHIFT)] = 1;
	range.touched += (begin >> PAGE_SHIFT) - (range.begin >> PAGE_SHIFT);
	if ((ret->address & (PAGE_SIZE - 1)) == (begin & (PAGE_SIZE - 1)))
		ret->touched = range.touched;
	else /* a mapping that no kernel makes: pages of addresses are not those of the file */
		memset(range.touched, 1,
		       (size_t)(((end - 1) >> PAGE_SHIFT) - (begin >> PAGE_SHIFT) + 1));
	return 0;
}

static int find_file(struct image_set *s, const struct space_mapping *m, struct around *a,
		     struct image_code *ret)
{
	uint32_t image;
	int r;

	if (!m->file || strncmp(m->file->path, "//", 2) == 0)
		return IMAGE_ANONYMOUS;
	/* [vdso] is no file, but its bytes may be at hand. */
	image = image_index(s, m->file);
	if (image == UINT32_MAX)
		return is_anonymous(m->file) ? IMAGE_ANONYMOUS : IMAGE_MISSING;
	r = image_bytes_open(s, image);
	if (r == IMAGE_MISSING && is_anonymous(m->file))
		return IMAGE_ANONYMOUS;
	if (r != 0)
		return r;
	if (__builtin_add_overflow(m->pgoff, a->before, &a->offset))
		return IMAGE_SHORT;
	return locate(s, image, a, ret);
}

static int find_memory(struct image_set *s, const struct space *space,
		       const struct space_mapping *m, struct around *a, struct image_code *ret)
{
	uint32_t image = image_index_memory(s, space, m, a->address, &a->offset);

	if (image == UINT32_MAX)
		return IMAGE_ANONYMOUS;
	return locate(s, image, a, ret) == 0 ? 0 : IMAGE_ANONYMOUS;
}

int image_find(struct image_set *s, const struct space *space, uint64_t time, uint64_t address,
	       struct image_code *ret)
{
	const struct space_mapping *m = space_find(space, time, address);
	struct around a = {.address = address};
	int r;

	if (!m)
		return IMAGE_UNMAPPED;
	a.before = address - m->start;
	a.behind = MIN_OF(m->size - a.before, UINT64_MAX - address);
	if (is_anonymous(m->file) && find_memory(s, space, m, &a, ret) == 0)
		return 0;
	r = find_file(s, m, &a, ret);
	/* A file that is only memory, and of which nobody has the file. */
	if (r != 0 && !is_anonymous(m->file) && find_memory(s, space, m, &a, ret) == 0)
		return 0;
	return r;
}

int image_at(struct image_set *s, uint32_t image, uint64_t offset, struct image_code *ret)
{
	const struct around a = {offset, offset, offset, UINT64_MAX - offset};

	return image < s->n ? locate(s, image, &a, ret) : IMAGE_MISSING;
}

/* --- What was needed --- */

const uint8_t *image_need(struct image_set *s, uint32_t image, uint64_t offset, uint64_t size)
{
	const uint8_t *bytes = NULL;
	struct image_range range;

	if (image >= s->n_all || image_bytes_open(s, image) != 0)
		return NULL;
	for (uint64_t at = offset, left = size; left > 0;) {
		uint64_t n;

		if (image_bytes_around(s, image, at, left, &range) != 0)
			return NULL;
		if (!bytes)
			bytes = range.bytes + (at - range.begin);
		n = MIN_OF(left, range.end - at);
		if (range.touched)
			memset(range.touched + (at >> PAGE_SHIFT) - (range.begin >> PAGE_SHIFT), 1,
			       (size_t)(((at + n - 1) >> PAGE_SHIFT) - (at >> PAGE_SHIFT) + 1));
		at += n;
		left -= n;
	}
	return bytes;
}

static bool is_touched(const struct image_body *b, uint64_t offset)
{
	uint64_t end = MIN_OF(offset + KEPT_BLOCK, b->end);

	return offset < b->end && memchr(b->touched + (offset >> PAGE_SHIFT), 1,
					 (size_t)((end - offset + PAGE_SIZE - 1) >> PAGE_SHIFT));
}

/* The next touched piece from *AT on; false: there is none. */
static bool next_needed(const struct image_body *b, uint64_t *at, uint64_t *ret_offset)
{
	while (*at < b->end && !is_touched(b, *at))
		*at += KEPT_BLOCK;
	*ret_offset = *at;
	while (is_touched(b, *at))
		*at += KEPT_BLOCK;
	return *at > *ret_offset;
}

/* Who has the code wants its names, sooner or later; the kernel's are elsewhere. */
static void need_names(struct image_set *s, uint32_t image)
{
	const struct image_body *b = &s->bodies[image];
	struct elf_file *f;

	if (b->state == IMAGE_OPEN && !b->named && !s->sources[image].apart && b->end > 0 &&
	    memchr(b->touched, 1, (size_t)((b->end - 1) >> PAGE_SHIFT) + 1) &&
	    image_open_elf(s, image, &f) == 0)
		elf_file_free(f);
}

int image_set_needed(struct image_set *s, bool names,
		     int (*fn)(void *userdata, uint32_t image, uint64_t offset, uint64_t size),
		     void *userdata)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct image_body *b = &s->bodies[i];
		uint64_t at = 0, offset;

		if (b->touched && names)
			need_names(s, (uint32_t)i);
		while (b->touched && next_needed(b, &at, &offset)) {
			int r = fn(userdata, (uint32_t)i, offset, MIN_OF(at, b->end) - offset);

			if (r != 0)
				return r;
		}
	}
	return 0;
}
