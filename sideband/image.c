/*
 * Which image a mapped file is, and where its code lies. Images are searched in two sorted lists,
 * by device and inode and by path, and as the same few files are asked for again and again, the
 * answers for the latest files are kept. Only in the worker; one thread at a time.
 */
#include "sideband/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define CACHE_SIZE 64u /* a power of two */

/* The answer for a file of the timeline, which may have died since: its identity counts. */
struct cached {
	const struct space_file *file;
	uint64_t ino, ino_generation;
	uint32_t maj, min;
	uint8_t build_id_size;
	uint8_t build_id[20];
	uint32_t image;
};

struct image_set {
	struct image_source *sources;
	size_t n;
	uint32_t *by_key;  /* those with a device or inode */
	uint32_t *by_path; /* those without */
	size_t n_by_key, n_by_path;
	struct cached cache[CACHE_SIZE];
};

static bool has_key(const struct image_source *s)
{
	return s->maj || s->min || s->ino || s->ino_generation;
}

/* Without the generation, which /proc/PID/maps does not know. */
static int compare_keys(const struct image_source *a, const struct image_source *b)
{
	if (a->ino != b->ino)
		return a->ino < b->ino ? -1 : 1;
	if (a->maj != b->maj)
		return a->maj < b->maj ? -1 : 1;
	return a->min < b->min ? -1 : a->min > b->min;
}

static int by_index(const uint32_t *a, const uint32_t *b)
{
	return *a < *b ? -1 : *a > *b;
}

static int by_key(const void *a, const void *b, void *sources)
{
	const struct image_source *s = sources;
	const uint32_t *x = a, *y = b;
	int r = compare_keys(&s[*x], &s[*y]);

	return r ? r : by_index(x, y);
}

static int by_path(const void *a, const void *b, void *sources)
{
	const struct image_source *s = sources;
	const uint32_t *x = a, *y = b;
	int r = strcmp(s[*x].path, s[*y].path);

	return r ? r : by_index(x, y);
}

static void sort_sources(struct image_set *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (has_key(&s->sources[i]))
			s->by_key[s->n_by_key++] = (uint32_t)i;
		else
			s->by_path[s->n_by_path++] = (uint32_t)i;
	qsort_r(s->by_key, s->n_by_key, sizeof(uint32_t), by_key, s->sources);
	qsort_r(s->by_path, s->n_by_path, sizeof(uint32_t), by_path, s->sources);
}

int image_set_new(const struct image_source *sources, size_t n, struct image_set **ret)
{
	struct image_set *s;

	if (n >= UINT32_MAX)
		return -E2BIG;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->n = n;
	s->sources = calloc(n + 1, sizeof(*s->sources));
	s->by_key = calloc(n + 1, sizeof(*s->by_key));
	s->by_path = calloc(n + 1, sizeof(*s->by_path));
	if (!s->sources || !s->by_key || !s->by_path) {
		image_set_free(s);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		s->sources[i] = sources[i];
		if (!sources[i].path)
			s->sources[i].path = "";
		s->sources[i].build_id_size =
			(uint8_t)MIN_OF(sources[i].build_id_size, sizeof(sources[i].build_id));
	}
	sort_sources(s);
	*ret = s;
	return 0;
}

void image_set_free(struct image_set *s)
{
	if (!s)
		return;
	free(s->sources);
	free(s->by_key);
	free(s->by_path);
	free(s);
}

const struct image_source *image_source(const struct image_set *s, uint32_t image)
{
	return image < s->n ? &s->sources[image] : NULL;
}

/* The first of the sorted list LIST that is not before KEY. */
static size_t lower_bound(const struct image_set *s, const uint32_t *list, size_t n,
			  const struct image_source *key)
{
	bool keys = list == s->by_key;
	size_t lo = 0;

	while (lo < n) {
		size_t mid = lo + (n - lo) / 2;
		const struct image_source *at = &s->sources[list[mid]];

		if ((keys ? compare_keys(at, key) : strcmp(at->path, key->path)) < 0)
			lo = mid + 1;
		else
			n = mid;
	}
	return lo;
}

/* Among those of one device and inode, the same generation is best, an unknown one will do. */
static uint32_t find_by_key(const struct image_set *s, const struct image_source *key)
{
	uint32_t found = UINT32_MAX;

	for (size_t i = lower_bound(s, s->by_key, s->n_by_key, key); i < s->n_by_key; i++) {
		const struct image_source *at = &s->sources[s->by_key[i]];

		if (compare_keys(at, key) != 0)
			break;
		if (at->ino_generation == key->ino_generation)
			return s->by_key[i];
		if (found == UINT32_MAX && (!at->ino_generation || !key->ino_generation))
			found = s->by_key[i];
	}
	return found;
}

static bool same_build_id(const struct image_source *a, const struct image_source *b)
{
	return a->build_id_size == b->build_id_size &&
	       memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
}

/* One path may have meant several files, one after the other. */
static bool may_be(const struct image_source *a, const struct image_source *b)
{
	return strcmp(a->path, b->path) == 0 &&
	       (!a->build_id_size || !b->build_id_size || same_build_id(a, b));
}

static uint32_t find_by_build_id(const struct image_set *s, const struct image_source *key)
{
	for (size_t i = 0; key->build_id_size && i < s->n; i++)
		if (same_build_id(&s->sources[i], key) && may_be(&s->sources[i], key))
			return (uint32_t)i;
	return UINT32_MAX;
}

/* By path alone, when either side knows no more: first those without a key, then all. */
static uint32_t find_by_path(const struct image_set *s, const struct image_source *key)
{
	size_t i = lower_bound(s, s->by_path, s->n_by_path, key);

	for (; i < s->n_by_path; i++) {
		const struct image_source *at = &s->sources[s->by_path[i]];

		if (strcmp(at->path, key->path) != 0)
			break;
		if (may_be(at, key))
			return s->by_path[i];
	}
	for (i = 0; !has_key(key) && i < s->n; i++)
		if (may_be(&s->sources[i], key))
			return (uint32_t)i;
	return UINT32_MAX;
}

static uint32_t find(const struct image_set *s, const struct space_file *file)
{
	struct image_source key = {.path = file->path,
				   .maj = file->maj,
				   .min = file->min,
				   .ino = file->ino,
				   .ino_generation = file->ino_generation,
				   .build_id_size = file->build_id_size};
	uint32_t found;

	memcpy(key.build_id, file->build_id, sizeof(key.build_id));
	found = has_key(&key) ? find_by_key(s, &key) : find_by_build_id(s, &key);
	return found != UINT32_MAX ? found : find_by_path(s, &key);
}

uint32_t image_index(struct image_set *s, const struct space_file *file)
{
	struct cached *c = &s->cache[((uintptr_t)file >> 5) & (CACHE_SIZE - 1)];

	if (c->file == file && c->ino == file->ino && c->ino_generation == file->ino_generation &&
	    c->maj == file->maj && c->min == file->min && c->build_id_size == file->build_id_size &&
	    memcmp(c->build_id, file->build_id, sizeof(c->build_id)) == 0)
		return c->image;
	*c = (struct cached){.file = file,
			     .ino = file->ino,
			     .ino_generation = file->ino_generation,
			     .maj = file->maj,
			     .min = file->min,
			     .build_id_size = file->build_id_size,
			     .image = find(s, file)};
	memcpy(c->build_id, file->build_id, sizeof(c->build_id));
	return c->image;
}

/* What the kernel calls memory without a file (mm/mmap.c, arch_vma_name(), perf_event_mmap_event())
 * and files that are only memory. */
static bool is_anonymous(const struct space_file *file)
{
	return !file || file->path[0] != '/' || strncmp(file->path, "//", 2) == 0 ||
	       strncmp(file->path, "/dev/zero", 9) == 0;
}

/* [BEGIN, BEGIN + SIZE) of the file, which S has, as mapped by M. */
static int locate(const struct image_source *s, const struct space_mapping *m, uint64_t address,
		  struct image_code *ret)
{
	uint64_t offset, begin, end, last;

	if (__builtin_add_overflow(m->pgoff, address - m->start, &offset) ||
	    __builtin_add_overflow(s->offset, s->size, &end))
		return IMAGE_SHORT;
	if (offset < s->offset)
		return IMAGE_MISSING;
	if (offset >= end)
		return IMAGE_SHORT;
	begin = MAX_OF(m->pgoff, s->offset);
	if (!__builtin_add_overflow(m->pgoff, m->size, &last))
		end = MIN_OF(end, last);
	ret->address = m->start + (begin - m->pgoff);
	ret->offset = begin;
	ret->size = end - begin;
	ret->bytes = s->bytes + (begin - s->offset);
	return 0;
}

int image_find(struct image_set *s, const struct space *space, uint64_t time, uint64_t address,
	       struct image_code *ret)
{
	const struct space_mapping *m = space_find(space, time, address);
	const struct image_source *source;
	uint32_t image;

	if (!m)
		return IMAGE_UNMAPPED;
	if (!m->file || strncmp(m->file->path, "//", 2) == 0)
		return IMAGE_ANONYMOUS;
	/* [vdso] is no file, but its bytes may be at hand. */
	image = image_index(s, m->file);
	if (image == UINT32_MAX)
		return is_anonymous(m->file) ? IMAGE_ANONYMOUS : IMAGE_MISSING;
	source = &s->sources[image];
	if (!source->bytes && source->mismatch)
		return IMAGE_MISMATCH;
	if (!source->bytes)
		return is_anonymous(m->file) ? IMAGE_ANONYMOUS : IMAGE_MISSING;
	ret->image = image;
	return locate(source, m, address, ret);
}
