/*
 * (device, inode), (build id, path) -> fd, fed by intake.c with MMAP2 records, read out by
 * evidence.c; in the loop's thread. How a file is opened: fileopen.c.
 *
 * A process that is gone before its record is read leaves its file to others: to one that has the
 * same root, as its parent may; to a copy of the same build; to the next one that maps it.
 */
#include "daemon/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/mounts.h"
#include "daemon/filelist.h"
#include "daemon/fileopen.h"
#include "proto/base.h"

#define BUCKETS	    16384u /* power of two */
#define MAX_PARENTS 3u	   /* generations that are asked */
#define MAX_COPIES  64u	   /* of one build that are looked at */
/* What a sweep may cost for each new file, and how much of a log is walked in that unit. */
#define NEW_FILE_COST  16u
#define LOG_BYTES_COST 4096u
#define WHY_TOO_MANY   "more files are mapped than the recorder keeps open"

struct files {
	const char *proc;
	struct mounts *mounts;
	const struct timeline *timeline;
	const struct procs *procs;
	uint32_t max_open, n_open;
	struct filelist list;
	uint32_t sweep;	    /* number of the last one */
	uint64_t cost;	    /* of it, in microseconds or so */
	uint64_t new_files; /* since then */
	uint64_t dropped;
};

int files_new(const char *proc, uint32_t max_open, struct files **ret)
{
	struct files *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->proc = proc;
	f->max_open = max_open;
	r = mounts_new(proc, &f->mounts);
	if (r < 0) {
		free(f);
		return r;
	}
	*ret = f;
	return 0;
}

void files_use(struct files *f, const struct timeline *timeline, const struct procs *procs)
{
	f->timeline = timeline;
	f->procs = procs;
}

void files_free(struct files *f)
{
	if (!f)
		return;
	filelist_done(&f->list);
	mounts_free(f->mounts);
	free(f);
}

void files_freep(struct files **f)
{
	files_free(*f);
}

/* The path is borrowed. */
static struct files_entry key_of(const struct perfrecord *r)
{
	struct files_entry key = {.path = (char *)(uintptr_t)r->u.mmap2.filename};

	if (!fileopen_by_build_id(r)) {
		key.maj = r->u.mmap2.maj;
		key.min = r->u.mmap2.min;
		key.ino = r->u.mmap2.ino;
		key.ino_generation = r->u.mmap2.ino_generation;
		return key;
	}
	key.build_id_size = (uint8_t)MIN_OF(r->u.mmap2.build_id_size, sizeof(key.build_id));
	memcpy(key.build_id, r->u.mmap2.build_id, key.build_id_size);
	return key;
}

const struct files_entry *files_find(const struct files *f, const struct space_file *file,
				     size_t *ret_index)
{
	struct files_entry key = {
		.path = (char *)(uintptr_t)file->path,
		.maj = file->maj,
		.min = file->min,
		.ino = file->ino,
		.ino_generation = file->ino_generation,
		.build_id_size = (uint8_t)MIN_OF(file->build_id_size, sizeof(key.build_id)),
	};
	const struct filelist_place *p;

	memcpy(key.build_id, file->build_id, key.build_id_size);
	if (key.build_id_size == 0 && key.ino == 0)
		return NULL;
	p = filelist_search_key(&f->list, &key);
	if (p)
		*ret_index = (size_t)(p - f->list.places);
	return p ? &p->entry : NULL;
}

/* --- Room --- */

static void forget(struct files *f, struct filelist_place *p)
{
	f->n_open -= p->entry.fd >= 0;
	filelist_remove(&f->list, p);
}

static int mark_named(void *userdata, const struct space_file *file)
{
	struct files *f = userdata;
	size_t index;

	if (files_find(f, file, &index))
		f->list.places[index].named = f->sweep;
	f->cost++;
	return 0;
}

void files_tidy(struct files *f)
{
	struct timeline_stats stats;

	if (!f->timeline || f->list.n == 0)
		return;
	timeline_get_stats(f->timeline, &stats);
	f->cost = f->list.n_places / 16 + stats.log_bytes_used / LOG_BYTES_COST;
	f->new_files = 0;
	f->sweep++;
	if (timeline_foreach_file(f->timeline, mark_named, f) < 0)
		return;
	for (uint32_t i = 0; i < f->list.n_places; i++)
		if (f->list.places[i].entry.path && f->list.places[i].named != f->sweep)
			forget(f, &f->list.places[i]);
}

/* That takes as long as the timeline is large, so it is not done for a few new files, each of which
 * costs some ten microseconds anyway. */
static void make_room(struct files *f)
{
	if (f->new_files * NEW_FILE_COST >= f->cost)
		files_tidy(f);
}

static struct filelist_place *add(struct files *f, const struct files_entry *key)
{
	struct filelist_place *p;

	if (f->list.n == FILES_MAX)
		make_room(f);
	p = filelist_add(&f->list, key);
	if (p)
		p->named = f->sweep;
	else
		f->dropped++;
	return p;
}

/* --- Opening --- */

/* Those who had the same root, perhaps: parents of a process that is gone. */
static size_t parents_of(const struct files *f, uint32_t pid, uint32_t ret[MAX_PARENTS])
{
	size_t n = 0;

	while (f->procs && n < MAX_PARENTS) {
		pid = procs_parent(f->procs, pid);
		if (pid <= 1)
			break;
		ret[n++] = pid;
	}
	return n;
}

/* The same build elsewhere, which is open. */
static int open_copy(struct files *f, const struct files_entry *e, struct fileopen_file *ret)
{
	const struct files_entry *copy = e->build_id_size ? filelist_copy(&f->list, e) : NULL;

	if (!copy)
		return -ENOENT;
	ret->fd = fcntl(copy->fd, F_DUPFD_CLOEXEC, 0);
	ret->size = copy->size;
	ret->ino = 0;
	return ret->fd < 0 ? -errno : 0;
}

/* The place of the same file that is known by its inode only. */
static struct filelist_place *search_twin(const struct files *f, const struct files_entry *key,
					  uint32_t maj, uint32_t min, uint64_t ino)
{
	const struct files_entry inode = {.maj = maj, .min = min, .ino = ino};
	struct filelist_place *p = ino && key->build_id_size
					   ? filelist_search(&f->list, &inode, FILELIST_BY_INODE)
					   : NULL;

	return p && p->entry.build_id_size == 0 && strcmp(p->entry.path, key->path) == 0 ? p : NULL;
}

static void keep(struct files *f, struct filelist_place *p, const struct fileopen_file *file)
{
	p->entry.fd = file->fd;
	p->entry.size = file->size;
	p->entry.missing = NULL;
	f->n_open++;
	filelist_learn_inode(&f->list, p, file->maj, file->min, file->ino);
}

/* P was made for this record; another place turned out to be of the same file. */
static void merge(struct files *f, struct filelist_place *p, struct filelist_place *twin,
		  struct fileopen_file *file)
{
	struct files_entry key = p->entry;

	key.path = NULL;
	forget(f, p);
	filelist_learn_build(&f->list, twin, &key);
	if (twin->entry.fd >= 0)
		close_fd(file->fd);
	else
		keep(f, twin, file);
}

static void open_place(struct files *f, struct filelist_place *p, struct fileopen *look)
{
	struct fileopen_file file = {.fd = -EBADF};
	uint32_t parents[MAX_PARENTS];
	size_t n = look->dir < 0 ? parents_of(f, look->record->u.mmap2.pid, parents) : 0;
	struct filelist_place *twin;

	if (fileopen_open(look, parents, n, &file) < 0 && open_copy(f, &p->entry, &file) < 0) {
		p->entry.missing = look->missing;
		return;
	}
	twin = search_twin(f, &p->entry, file.maj, file.min, file.ino);
	if (twin)
		merge(f, p, twin, &file);
	else
		keep(f, p, &file);
}

/* Found by what the mapping says, or new. */
static struct filelist_place *place_for(struct files *f, const struct files_entry *key,
					const struct fileopen *look)
{
	struct filelist_place *p =
		look->mapped ? search_twin(f, key, look->map.maj, look->map.min, look->map.ino)
			     : NULL;

	if (p)
		filelist_learn_build(&f->list, p, key);
	else
		p = add(f, key);
	return p;
}

/* A file that is not known, or of which there is no fd (P, else NULL). */
static void look_at(struct files *f, struct filelist_place *p, const struct files_entry *key,
		    const struct perfrecord *record)
{
	struct fileopen look;

	f->new_files++;
	fileopen_look(f->mounts, f->proc, record, &look);
	if (!p)
		p = place_for(f, key, &look);
	if (p && p->entry.fd < 0 && f->n_open >= f->max_open) {
		/* It may be swept away itself, when the timeline has dropped its record. */
		p->entry.missing = WHY_TOO_MANY;
		make_room(f);
		p = filelist_search_key(&f->list, key);
	}
	if (p && p->entry.fd < 0 && f->n_open < f->max_open)
		open_place(f, p, &look);
	fileopen_done(&look);
}

/* Another process may have a better way to a file that could not be opened, but not each of
 * thousands. */
static bool is_due(struct files_entry *e)
{
	e->seen += e->seen < UINT32_MAX;
	return e->seen < 4 || (e->seen & (e->seen - 1)) == 0;
}

void files_see(struct files *f, const struct perfrecord *record)
{
	struct files_entry key;
	struct filelist_place *p;

	/* Anonymous memory and [vdso] have no inode. */
	if (!(record->u.mmap2.prot & PROT_EXEC) || record->u.mmap2.filename[0] != '/' ||
	    (record->u.mmap2.ino == 0 && !fileopen_by_build_id(record)))
		return;
	key = key_of(record);
	p = filelist_search_key(&f->list, &key);
	if (p && (p->entry.fd >= 0 || !is_due(&p->entry)))
		return;
	look_at(f, p, &key, record);
}

const struct files_entry *files_at(const struct files *f, size_t index)
{
	return index < f->list.n_places && f->list.places[index].entry.path
		       ? &f->list.places[index].entry
		       : NULL;
}

size_t files_places(const struct files *f)
{
	return f->list.n_places;
}

size_t files_count(const struct files *f)
{
	return f->list.n;
}

uint64_t files_dropped(const struct files *f)
{
	return f->dropped;
}
