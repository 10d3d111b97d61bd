/*
 * Finds the image that a mapping shows.
 *
 * Images are searched in three sorted lists: files by device and inode, files by path, and memory
 * by process and address. The decoder asks for the same few files again and again, so a small cache
 * has the answers for the latest ones.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/symbols/image_private.h"

/* An address is searched in so many memory images that begin before it; memory images may overlap.
 */
#define MAX_OVERLAPS 16u
/* 32-bit programs have their vDSO, another one, below this address. */
#define END_OF_32_BIT (UINT64_C(1) << 32)

static bool has_key(const struct image_source *s)
{
	return s->maj || s->min || s->ino || s->ino_generation;
}

/* Leaves out the generation, which /proc/PID/maps does not tell. */
static int compare_keys(const struct image_source *a, const struct image_source *b)
{
	if (a->ino != b->ino)
		return a->ino < b->ino ? -1 : 1;
	if (a->maj != b->maj)
		return a->maj < b->maj ? -1 : 1;
	return a->min < b->min ? -1 : a->min > b->min;
}

static int compare_memory(const struct image_source *a, const struct image_source *b)
{
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->address < b->address ? -1 : a->address > b->address;
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

static int by_memory(const void *a, const void *b, void *sources)
{
	const struct image_source *s = sources;
	const uint32_t *x = a, *y = b;
	int r = compare_memory(&s[*x], &s[*y]);

	return r ? r : by_index(x, y);
}

int image_index_init(struct image_set *s)
{
	s->by_key = calloc(s->n + 1, sizeof(*s->by_key));
	s->by_path = calloc(s->n + 1, sizeof(*s->by_path));
	s->by_memory = calloc(s->n + 1, sizeof(*s->by_memory));
	if (!s->by_key || !s->by_path || !s->by_memory)
		return -ENOMEM;
	for (size_t i = 0; i < s->n; i++) {
		const struct image_source *source = &s->sources[i];

		if (source->apart)
			continue;
		if (source->memory || source->vdso)
			s->by_memory[s->n_by_memory++] = (uint32_t)i;
		else if (has_key(source))
			s->by_key[s->n_by_key++] = (uint32_t)i;
		else
			s->by_path[s->n_by_path++] = (uint32_t)i;
	}
	qsort_r(s->by_key, s->n_by_key, sizeof(uint32_t), by_key, s->sources);
	qsort_r(s->by_path, s->n_by_path, sizeof(uint32_t), by_path, s->sources);
	qsort_r(s->by_memory, s->n_by_memory, sizeof(uint32_t), by_memory, s->sources);
	return 0;
}

void image_index_done(struct image_set *s)
{
	free(s->by_key);
	free(s->by_path);
	free(s->by_memory);
}

/* --- Files --- */

/* The first image of LIST, which is by_key or by_path, that is not before KEY. */
static size_t lower_bound(const struct image_set *s, const uint32_t *list, size_t n,
			  const struct image_source *key)
{
	bool keys = list == s->by_key;

	return FIRST_WHERE(i, n,
			   (keys ? compare_keys(&s->sources[list[i]], key)
				 : strcmp(s->sources[list[i]].path, key->path)) >= 0);
}

/* An image with KEY's device and inode and the same generation; else one where the generation of
 * either side is unknown. */
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

/* Whether image SOURCE is a file at KEY's path. One path may have meant several files, one after
 * the other, so build ids must be equal where both are known. */
static bool may_be(const struct image_source *source, const struct image_source *key)
{
	return !source->apart && !source->memory && !source->vdso &&
	       strcmp(source->path, key->path) == 0 &&
	       (!source->build_id_size || !key->build_id_size || same_build_id(source, key));
}

/* By path alone, where KEY or the image has no device and inode: first the images without, then, if
 * KEY has none, all images. */
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
	bool has = has_key(&key);
	uint32_t found;

	memcpy(key.build_id, file->build_id, sizeof(key.build_id));
	found = has ? find_by_key(s, &key) : UINT32_MAX;
	for (uint32_t i = 0; !has && key.build_id_size && i < s->n && found == UINT32_MAX; i++)
		if (same_build_id(&s->sources[i], &key) && may_be(&s->sources[i], &key))
			found = i;
	return found != UINT32_MAX ? found : find_by_path(s, &key);
}

uint32_t image_index(struct image_set *s, const struct space_file *file)
{
	struct image_cached *c = &s->cache[((uintptr_t)file >> 5) & (IMAGE_CACHE_SIZE - 1)];

	if (c->file == file && c->ino == file->ino && c->ino_generation == file->ino_generation &&
	    c->maj == file->maj && c->min == file->min && c->build_id_size == file->build_id_size &&
	    memcmp(c->build_id, file->build_id, sizeof(c->build_id)) == 0)
		return c->image;
	*c = (struct image_cached){.file = file,
				   .ino = file->ino,
				   .ino_generation = file->ino_generation,
				   .maj = file->maj,
				   .min = file->min,
				   .build_id_size = file->build_id_size,
				   .image = find(s, file)};
	memcpy(c->build_id, file->build_id, sizeof(c->build_id));
	return c->image;
}

/* --- Memory --- */

static uint64_t size_of(const struct image_source *s)
{
	return s->file_size ? s->file_size : s->size;
}

/* An image of SPACE's own process. */
static uint32_t find_memory(const struct image_set *s, const struct space *space, uint64_t address)
{
	const struct image_source key = {.pid = space_pid(space), .address = address};
	size_t n = FIRST_WHERE(i, s->n_by_memory,
			       compare_memory(&s->sources[s->by_memory[i]], &key) > 0);

	for (size_t i = n; i-- > 0 && n - i <= MAX_OVERLAPS;) {
		const struct image_source *at = &s->sources[s->by_memory[i]];

		if (at->pid != key.pid)
			break;
		if (address - at->address < size_of(at) && (!at->space || at->space == space))
			return s->by_memory[i];
	}
	return UINT32_MAX;
}

uint32_t image_index_memory(const struct image_set *s, const struct space *space,
			    const struct space_mapping *m, uint64_t address, uint64_t *ret_offset)
{
	uint32_t image = find_memory(s, space, address);

	if (image != UINT32_MAX) {
		*ret_offset = address - s->sources[image].address;
		return image;
	}
	*ret_offset = address - m->start;
	if (!m->file || strcmp(m->file->path, "[vdso]") != 0 || m->start < END_OF_32_BIT)
		return UINT32_MAX;
	/* The vDSO that all processes share: IMAGE_ANY_PID sorts last. */
	for (size_t i = s->n_by_memory; i-- > 0;) {
		const struct image_source *at = &s->sources[s->by_memory[i]];

		if (at->pid != IMAGE_ANY_PID)
			break;
		if (at->vdso && size_of(at) == m->size)
			return s->by_memory[i];
	}
	return UINT32_MAX;
}
