/*
 * The set of images, the code that a process had at an address, and images as ELF files.
 *
 * image_index.c finds the image of a mapping, image_bytes.c brings its bytes.
 */
#include "sideband/symbols/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/elf/elf.h"
#include "sideband/symbols/image_private.h"

#define PAGE_SHIFT IMAGE_PAGE_SHIFT
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
	image_jit_done(s);
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

/* --- Code --- */

/* Memory without a file, as the kernel names it (mm/mmap.c, arch_vma_name(),
 * perf_event_mmap_event()), and files that are only memory. */
static bool is_anonymous(const struct space_file *file)
{
	return !file || file->path[0] != '/' || strncmp(file->path, "//", 2) == 0 ||
	       strncmp(file->path, "/dev/zero", 9) == 0;
}

/* An address, its offset in an image, and the bytes of the mapping before and behind it. */
struct around {
	uint64_t address, offset;
	uint64_t before, behind;
};

static int locate(struct image_set *s, uint32_t image, const struct around *a,
		  struct image_code *ret)
{
	const struct image_source *source = &s->sources[image];
	uint64_t first = source->n_pieces || source->loadable ? 0 : source->offset;
	struct image_range range;
	uint64_t begin, end;
	int r = image_bytes_open(s, image);

	if (r == 0)
		r = image_bytes_around(s, image, a->offset, 0, &range);
	if (r != 0)
		return r;
	begin = a->offset - MIN_OF(a->before, a->offset - range.begin);
	end = a->offset + MIN_OF(a->behind, range.end - a->offset);
	*ret = (struct image_code){
		.bytes = range.bytes + (begin - range.begin),
		.address = a->address - (a->offset - begin),
		.size = end - begin,
		.image = image,
		.offset = begin,
		.map_begin = a->address - MIN_OF(a->before, a->offset - first),
		.map_end = a->address + MIN_OF(a->behind, s->bodies[image].size - a->offset),
	};
	if (!range.touched)
		return 0;
	/* The caller reads at least the page that it asked for. */
	range.touched[(a->offset >> PAGE_SHIFT) - (range.begin >> PAGE_SHIFT)] = 1;
	range.touched += (begin >> PAGE_SHIFT) - (range.begin >> PAGE_SHIFT);
	if ((ret->address & (PAGE_SIZE - 1)) == (begin & (PAGE_SIZE - 1)))
		ret->touched = range.touched;
	else /* pages of addresses are not pages of the file; no kernel makes such a mapping */
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
	/* [vdso] is no file, but an image may have its bytes. */
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

static int find_memory(struct image_set *s, const struct space *space, uint64_t time,
		       const struct space_mapping *m, struct around *a, struct image_code *ret)
{
	uint32_t image = image_index_memory(s, space, m, a->address, &a->offset);

	if (image == UINT32_MAX)
		return IMAGE_ANONYMOUS;
	if (locate(s, image, a, ret) != 0)
		return IMAGE_ANONYMOUS;
	image_jit_clip(s, space, time, a->address, ret);
	return 0;
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
	if (is_anonymous(m->file) && (image_jit_find(s, space, m, time, address, ret) ||
				      find_memory(s, space, time, m, &a, ret) == 0))
		return 0;
	r = find_file(s, m, &a, ret);
	/* Some files are only memory (memfd): the process' memory may be there without the file. */
	if (r != 0 && !is_anonymous(m->file) &&
	    (image_jit_find(s, space, m, time, address, ret) ||
	     find_memory(s, space, time, m, &a, ret) == 0))
		return 0;
	return r;
}

int image_at(struct image_set *s, uint32_t image, uint64_t offset, struct image_code *ret)
{
	const struct around a = {offset, offset, offset, UINT64_MAX - offset};

	return image < s->n ? locate(s, image, &a, ret) : IMAGE_MISSING;
}

/* --- Bytes --- */

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

bool image_was_asked(const struct image_set *s, uint32_t image)
{
	return image < s->n && s->bodies[image].state != IMAGE_NEW;
}

/* A later decode of the same code may want function names, too. The kernel's names come from
 * elsewhere. */
static void need_names(struct image_set *s, uint32_t image)
{
	const struct image_body *b = &s->bodies[image];
	struct elf_file *f;

	if (b->state == IMAGE_OPEN && !b->named && !s->sources[image].apart && b->end > 0 &&
	    memchr(b->touched, 1, (size_t)((b->end - 1) >> PAGE_SHIFT) + 1) &&
	    image_open_elf(s, image, &f) == 0)
		elf_file_free(f);
}

static bool is_touched(const struct image_body *b, uint64_t offset)
{
	uint64_t end = MIN_OF(offset + KEPT_BLOCK, b->end);

	return offset < b->end && memchr(b->touched + (offset >> PAGE_SHIFT), 1,
					 (size_t)((end - offset + PAGE_SIZE - 1) >> PAGE_SHIFT));
}

int image_set_needed(struct image_set *s, bool names,
		     int (*fn)(void *userdata, uint32_t image, uint64_t offset, uint64_t size),
		     void *userdata)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct image_body *b = &s->bodies[i];

		if (!b->touched)
			continue;
		if (names)
			need_names(s, (uint32_t)i);
		for (uint64_t at = 0, begin; at < b->end;) {
			int r = 0;

			for (begin = at; is_touched(b, at);)
				at += KEPT_BLOCK;
			if (at > begin)
				r = fn(userdata, (uint32_t)i, begin, MIN_OF(at, b->end) - begin);
			if (r != 0)
				return r;
			at += KEPT_BLOCK; /* this one is not touched, or lies behind the end */
		}
	}
	return 0;
}

/* --- ELF files --- */

static bool is_there(void *userdata, uint64_t offset, uint64_t size)
{
	const struct image_reading *r = userdata;

	return image_need(r->set, r->image, offset, size);
}

int image_elf_bytes(struct image_set *s, uint32_t image, struct elf_bytes *ret)
{
	const struct image_source *source;
	struct image_body *b;

	if (image >= s->n_all || image_bytes_open(s, image) != 0)
		return ELF_NOT;
	source = &s->sources[image];
	b = &s->bodies[image];
	*ret = (struct elf_bytes){.bytes = source->bytes, .size = source->size, .room = &s->room};
	if (b->region) {
		b->reading = (struct image_reading){s, image};
		ret->bytes = b->region;
		ret->size = (size_t)b->size;
		ret->need = is_there;
		ret->userdata = &b->reading;
	} else if (source->offset != 0) {
		return ELF_NOT;
	}
	return 0;
}

static int open_elf(struct image_set *s, uint32_t image, enum elf_wanted wanted,
		    struct elf_file **ret)
{
	struct elf_bytes bytes;
	int r = image_elf_bytes(s, image, &bytes);

	return r != 0 ? r : elf_file_open(&bytes, wanted, ret);
}

int image_open_elf(struct image_set *s, uint32_t image, struct elf_file **ret)
{
	if (image >= s->n || image_bytes_open(s, image) != 0)
		return ELF_NOT;
	s->bodies[image].named = true;
	return open_elf(s, image, ELF_NAMES, ret);
}

/* The recorder opens files by path and build id without reading them; they are compared here. */
bool image_has_its_build_id(struct image_set *s, uint32_t image)
{
	const struct image_source *source = &s->sources[image];
	struct elf_file *f;
	const uint8_t *id;
	size_t size;
	bool same;

	if (source->build_id_size == 0)
		return true;
	if (open_elf(s, image, ELF_BUILD_ID, &f) != 0)
		return false;
	id = elf_file_build_id(f, &size);
	same = size == source->build_id_size && memcmp(id, source->build_id, size) == 0;
	elf_file_free(f);
	return same;
}

int image_open_debug(struct image_set *s, uint32_t image, const uint8_t *build_id, size_t id_size,
		     uint32_t *ret_image)
{
	uint32_t debug = (uint32_t)s->n + image;
	struct image_body *b;

	if (image >= s->n || !s->loader.debug)
		return ELF_NOT;
	b = &s->bodies[debug];
	if (b->state == IMAGE_NEW) {
		/* The debug file's source is not loadable, so reads of it are not noted. */
		int r = s->loader.debug(s->loader.userdata, image, build_id, id_size, &b->size);

		b->end = b->size;
		if (r == 0)
			r = image_bytes_reserve(s, debug);
		b->state = r == 0 ? IMAGE_OPEN : IMAGE_NONE;
	}
	*ret_image = debug;
	return b->state == IMAGE_OPEN ? 0 : ELF_NOT;
}
