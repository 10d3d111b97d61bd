/*
 * Files by (device, inode, generation, build id, path). Used by the timeline in the daemon and in
 * the worker.
 */
#include "sideband/timeline/filetable.h"

#include <limits.h>
#include <string.h>

#include "proto/base.h"

#define FIRST_BUCKETS 256u

struct file_entry {
	struct space_file file; /* first: filetable_mark() gets this */
	struct file_entry *next;
	size_t size; /* of this entry, path included */
	uint64_t hash;
	bool used;
};

void filetable_init(struct filetable *t, struct pool *pool)
{
	*t = (struct filetable){.pool = pool};
}

/* The identity alone; path borrowed from the record. */
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

static uint64_t hash_file(const struct space_file *f, size_t path_size)
{
	uint64_t hash = hash_bytes(path_size, f->path, path_size);

	hash = mix(hash, (uint64_t)f->maj << 32 | f->min);
	hash = mix(hash, f->ino);
	hash = mix(hash, f->ino_generation);
	return hash_bytes(hash, f->build_id, f->build_id_size);
}

static bool is_file(const struct space_file *a, const struct space_file *b, size_t path_size)
{
	return a->maj == b->maj && a->min == b->min && a->ino == b->ino &&
	       a->ino_generation == b->ino_generation && a->build_id_size == b->build_id_size &&
	       memcmp(a->build_id, b->build_id, sizeof(a->build_id)) == 0 &&
	       strncmp(a->path, b->path, path_size) == 0 && a->path[path_size] == 0;
}

static struct file_entry **bucket_of(const struct filetable *t, uint64_t hash)
{
	return &t->buckets[(hash ^ hash >> 32) & (t->n_buckets - 1)];
}

static void link_entry(struct filetable *t, struct file_entry *e)
{
	struct file_entry **to = bucket_of(t, e->hash);

	e->next = *to;
	*to = e;
}

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
	uint64_t hash = hash_file(&file, path_size);
	struct file_entry *e = t->buckets ? *bucket_of(t, hash) : NULL;

	while (e && (e->hash != hash || !is_file(&e->file, &file, path_size)))
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
	/* Every file that the timeline's spaces refer to came out of add(), as a writable entry. */
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
