/*
 * The list of mapped files: places in hash chains.
 *
 * While a file is open, its inode's number cannot be another file's. If the file is not open, the
 * number may have been reused, and the newest place is meant.
 */
#include "daemon/record/files_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define MAX_COPIES 64u /* of one build; more are not looked at */

void filelist_done(struct filelist *l)
{
	for (uint32_t i = 0; i < l->n_places; i++) {
		close_fd(l->places[i].entry.fd);
		free(l->places[i].entry.path);
		free(l->places[i].again);
	}
	free(TAKE_PTR(l->places));
	l->n_places = l->capacity = l->n = 0;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 32;
}

static uint64_t hash_of(const struct files_entry *e, enum filelist_index kind)
{
	size_t size = kind == FILELIST_BY_PATH ? strlen(e->path) : 0;
	uint64_t hash = 0, word;

	if (kind == FILELIST_BY_INODE)
		return mix(mix(e->maj, e->min), e->ino);
	memcpy(&word, e->build_id, sizeof(word));
	hash = mix(hash, word);
	for (size_t at = 0; at < size; at += sizeof(word)) {
		word = 0;
		memcpy(&word, e->path + at, MIN_OF(sizeof(word), size - at));
		hash = mix(hash, word);
	}
	return hash;
}

static uint32_t *bucket_of(struct filelist *l, const struct files_entry *e,
			   enum filelist_index kind)
{
	return &l->buckets[kind][hash_of(e, kind) & (FILELIST_BUCKETS - 1)];
}

static bool is_indexed(const struct files_entry *e, enum filelist_index kind)
{
	return kind == FILELIST_BY_INODE ? e->ino != 0 : e->build_id_size > 0;
}

static void link_place(struct filelist *l, struct filelist_place *p, enum filelist_index kind)
{
	uint32_t *bucket = bucket_of(l, &p->entry, kind);

	p->next[kind] = *bucket;
	*bucket = (uint32_t)(p - l->places) + 1;
}

static bool same_build(const struct files_entry *a, const struct files_entry *b)
{
	return a->build_id_size == b->build_id_size &&
	       memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
}

static bool is_match(const struct files_entry *a, const struct files_entry *b,
		     enum filelist_index kind)
{
	if (kind == FILELIST_BY_INODE)
		return a->ino == b->ino && a->maj == b->maj && a->min == b->min &&
		       (a->ino_generation == b->ino_generation || a->ino_generation == 0 ||
			b->ino_generation == 0);
	return same_build(a, b) && (kind == FILELIST_BY_BUILD || strcmp(a->path, b->path) == 0);
}

struct filelist_place *filelist_search(const struct filelist *l, const struct files_entry *key,
				       enum filelist_index kind)
{
	uint32_t at = l->buckets[kind][hash_of(key, kind) & (FILELIST_BUCKETS - 1)];

	while (at && !is_match(&l->places[at - 1].entry, key, kind))
		at = l->places[at - 1].next[kind];
	return at ? &l->places[at - 1] : NULL;
}

struct filelist_place *filelist_search_key(const struct filelist *l, const struct files_entry *key)
{
	return filelist_search(l, key, key->build_id_size ? FILELIST_BY_PATH : FILELIST_BY_INODE);
}

void filelist_remove(struct filelist *l, struct filelist_place *p)
{
	uint32_t index = (uint32_t)(p - l->places) + 1;

	for (int kind = 0; kind < FILELIST_N_INDEXES; kind++) {
		uint32_t *at = is_indexed(&p->entry, kind) ? bucket_of(l, &p->entry, kind) : NULL;

		while (at && *at != index)
			at = &l->places[*at - 1].next[kind];
		if (at)
			*at = p->next[kind];
	}
	close_fd(p->entry.fd);
	free(p->entry.path);
	free(TAKE_PTR(p->again));
	p->entry = (struct files_entry){.fd = -EBADF};
	p->next[FILELIST_BY_INODE] = l->free;
	l->free = index;
	l->n--;
}

/* A free place, or a new one. NULL: no memory, or FILES_MAX. */
static struct filelist_place *take_place(struct filelist *l)
{
	uint32_t at = l->free;

	if (at) {
		l->free = l->places[at - 1].next[FILELIST_BY_INODE];
		return &l->places[at - 1];
	}
	if (l->n_places == FILES_MAX)
		return NULL;
	if (l->n_places == l->capacity) {
		uint32_t capacity = MIN_OF(MAX_OF(2 * l->capacity, 64u), FILES_MAX);

		if (ARRAY_FIT(l->places, capacity) < 0)
			return NULL;
		l->capacity = capacity;
	}
	return &l->places[l->n_places++];
}

struct filelist_place *filelist_add(struct filelist *l, const struct files_entry *key)
{
	char *path = strdup(key->path);
	struct filelist_place *p = path ? take_place(l) : NULL;

	if (!p) {
		free(path);
		return NULL;
	}
	*p = (struct filelist_place){.entry = *key};
	p->entry.path = path;
	p->entry.fd = -EBADF;
	for (int kind = 0; kind < FILELIST_N_INDEXES; kind++)
		if (is_indexed(&p->entry, kind))
			link_place(l, p, kind);
	l->n++;
	return p;
}

void filelist_learn_inode(struct filelist *l, struct filelist_place *p, uint32_t maj, uint32_t min,
			  uint64_t ino)
{
	struct files_entry *e = &p->entry;

	if (e->ino != 0 || ino == 0)
		return;
	e->maj = maj;
	e->min = min;
	e->ino = ino;
	link_place(l, p, FILELIST_BY_INODE);
}

void filelist_learn_build(struct filelist *l, struct filelist_place *p,
			  const struct files_entry *key)
{
	p->entry.build_id_size = key->build_id_size;
	memcpy(p->entry.build_id, key->build_id, key->build_id_size);
	link_place(l, p, FILELIST_BY_PATH);
	link_place(l, p, FILELIST_BY_BUILD);
}

const struct files_entry *filelist_copy(const struct filelist *l, const struct files_entry *key)
{
	uint32_t at = l->buckets[FILELIST_BY_BUILD]
				[hash_of(key, FILELIST_BY_BUILD) & (FILELIST_BUCKETS - 1)];

	for (uint32_t i = 0; at && i < MAX_COPIES; i++) {
		const struct filelist_place *p = &l->places[at - 1];

		if (p->entry.fd >= 0 && same_build(&p->entry, key))
			return &p->entry;
		at = p->next[FILELIST_BY_BUILD];
	}
	return NULL;
}
