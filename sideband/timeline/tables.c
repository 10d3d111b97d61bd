/*
 * Hash tables of the timeline: processes and threads by number, mapped files by identity.
 */
#include "sideband/timeline/timeline_private.h"

#include <limits.h>
#include <string.h>

#include "proto/base.h"

/* --- Processes and threads by their number --- */

#define FIRST_BITS 6u
#define MAX_BITS   26u

/* Fibonacci hashing spreads neighbouring pids over the table. */
static size_t id_bucket(uint32_t id, unsigned bits)
{
	return (uint32_t)(id * 2654435769u) >> (32 - bits);
}

struct idnode *idmap_find(const struct idmap *map, uint32_t id)
{
	struct idnode *node;

	if (!map->buckets)
		return NULL;
	for (node = map->buckets[id_bucket(id, map->bits)]; node; node = node->next)
		if (node->id == id)
			return node;
	return NULL;
}

/* Doubles the number of buckets. False: no memory and no table. */
static bool grow(struct idmap *map, struct pool *pool)
{
	unsigned bits = map->buckets ? map->bits + 1 : FIRST_BITS;
	size_t old = map->buckets ? (size_t)1 << map->bits : 0;
	struct idnode **buckets;

	if (bits > MAX_BITS)
		return true;
	buckets = pool_get(pool, ((size_t)1 << bits) * sizeof(struct idnode *));
	if (!buckets)
		return map->buckets;
	for (size_t i = 0; i < old; i++)
		for (struct idnode *node = map->buckets[i], *next; node; node = next) {
			struct idnode **to = &buckets[id_bucket(node->id, bits)];

			next = node->next;
			node->next = *to;
			*to = node;
		}
	pool_put(pool, map->buckets, old * sizeof(struct idnode *));
	map->buckets = buckets;
	map->bits = bits;
	return true;
}

bool idmap_add(struct idmap *map, struct pool *pool, struct idnode *node)
{
	struct idnode **to;

	if ((!map->buckets || map->n >> map->bits) && !grow(map, pool))
		return false;
	to = &map->buckets[id_bucket(node->id, map->bits)];
	node->next = *to;
	*to = node;
	map->n++;
	return true;
}

void idmap_remove(struct idmap *map, struct idnode *node)
{
	struct idnode **at = &map->buckets[id_bucket(node->id, map->bits)];

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	map->n--;
}

/* --- Files --- */

#define FIRST_BUCKETS 256u

struct file_entry {
	struct space_file file; /* first: filetable_mark() gets its address */
	struct file_entry *next;
	size_t size; /* bytes of this entry with the path behind it */
	uint64_t hash;
	bool used;
};

void filetable_init(struct filetable *t, struct pool *pool)
{
	*t = (struct filetable){.pool = pool};
}

/* The identity of the file that R names; the path is borrowed from the record. */
static struct space_file describe(const struct perfrecord *r)
{
	struct space_file file = {.path = r->u.mmap2.filename};

	if (r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		file.build_id_size =
			(uint8_t)MIN_OF(r->u.mmap2.build_id_size, sizeof(file.build_id));
		memcpy(file.build_id, r->u.mmap2.build_id, file.build_id_size);
		return file;
	}
	file.maj = r->u.mmap2.maj;
	file.min = r->u.mmap2.min;
	file.ino = r->u.mmap2.ino;
	file.ino_generation = r->u.mmap2.ino_generation;
	return file;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
	const uint8_t *p = data;
	uint64_t word = 0;

	for (; size >= sizeof(word); p += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		hash = mix(hash, word);
	}
	word = 0;
	memcpy(&word, p, size);
	return mix(hash, word);
}

static bool same_identity(const struct space_file *a, const struct space_file *b, size_t path_size)
{
	return a->maj == b->maj && a->min == b->min && a->ino == b->ino &&
	       a->ino_generation == b->ino_generation && a->build_id_size == b->build_id_size &&
	       memcmp(a->build_id, b->build_id, sizeof(a->build_id)) == 0 &&
	       strncmp(a->path, b->path, path_size) == 0 && a->path[path_size] == 0;
}

static struct file_entry **file_bucket(const struct filetable *t, uint64_t hash)
{
	return &t->buckets[(hash ^ hash >> 32) & (t->n_buckets - 1)];
}

static void link_entry(struct filetable *t, struct file_entry *e)
{
	struct file_entry **to = file_bucket(t, e->hash);

	e->next = *to;
	*to = e;
}

/* Numbers all files anew and fills the buckets. */
static void relink(struct filetable *t)
{
	memset(t->buckets, 0, t->n_buckets * sizeof(*t->buckets));
	for (size_t i = 0; i < t->n; i++) {
		t->list[i]->file.index = (uint32_t)i;
		link_entry(t, t->list[i]);
	}
}

static bool make_room(struct filetable *t)
{
	size_t n = t->capacity ? 2 * t->capacity : FIRST_BUCKETS;
	struct file_entry **list, **buckets;

	if (t->n < t->capacity)
		return true;
	buckets = pool_get(t->pool, n * sizeof(*buckets));
	if (!buckets)
		return false;
	list = pool_grow(t->pool, t->list, t->capacity * sizeof(*list), n * sizeof(*list));
	if (!list) {
		pool_put(t->pool, buckets, n * sizeof(*buckets));
		return false;
	}
	pool_put(t->pool, t->buckets, t->n_buckets * sizeof(*buckets));
	t->buckets = buckets;
	t->n_buckets = t->capacity = n;
	t->list = list;
	relink(t);
	return true;
}

static struct file_entry *add(struct filetable *t, const struct space_file *file, uint64_t hash,
			      size_t path_size)
{
	size_t size = sizeof(struct file_entry) + path_size + 1;
	struct file_entry *e;
	char *path;

	if (t->n >= UINT32_MAX || !make_room(t))
		return NULL;
	e = pool_get(t->pool, size);
	if (!e)
		return NULL;
	path = (char *)(e + 1);
	memcpy(path, file->path, path_size);
	e->file = *file;
	e->file.path = path;
	e->file.index = (uint32_t)t->n;
	e->size = size;
	e->hash = hash;
	t->list[t->n++] = e;
	link_entry(t, e);
	return e;
}

const struct space_file *filetable_intern(struct filetable *t, const struct perfrecord *r)
{
	struct space_file file = describe(r);
	size_t path_size = strnlen(file.path, PATH_MAX - 1);
	uint64_t hash = hash_bytes(path_size, file.path, path_size);
	struct file_entry *e;

	hash = mix(hash, (uint64_t)file.maj << 32 | file.min);
	hash = mix(hash, file.ino);
	hash = mix(hash, file.ino_generation);
	hash = hash_bytes(hash, file.build_id, file.build_id_size);
	e = t->buckets ? *file_bucket(t, hash) : NULL;
	while (e && (e->hash != hash || !same_identity(&e->file, &file, path_size)))
		e = e->next;
	if (!e)
		e = add(t, &file, hash, path_size);
	return e ? &e->file : NULL;
}

const struct space_file *filetable_at(const struct filetable *t, size_t index)
{
	return index < t->n ? &t->list[index]->file : NULL;
}

void filetable_mark(const struct space_file *file)
{
	/* Every file of the timeline's spaces was allocated by add() and is writable. */
	struct file_entry *e = (struct file_entry *)(uintptr_t)file;

	e->used = true;
}

void filetable_sweep(struct filetable *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->n; i++) {
		struct file_entry *e = t->list[i];

		if (e->used)
			t->list[kept++] = e;
		else
			pool_put(t->pool, e, e->size);
		e->used = false;
	}
	t->n = kept;
	if (t->buckets)
		relink(t);
}
