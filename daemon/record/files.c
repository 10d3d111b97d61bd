/*
 * Keeps a descriptor of each file that was mapped executable.
 *
 * A process can hold up the opening of a file (files_open.c) for as long as it likes. In the daemon
 * a thread therefore opens files (aside.h), with copies of all it needs, and this file takes over
 * the results.
 *
 * If a process is gone before its record is read, its file is looked for in other ways: in the root
 * of its parent, which may be the same; as an open file of the same build; through the next process
 * that maps it.
 */
#include "daemon/record/files_private.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "proto/base.h"

#define STUCK_NS    100000000u	/* for one file, then another thread opens the others */
#define AWAIT_NS    200000000u	/* for all files, at a snapshot */
#define PATIENCE_NS 2000000000u /* that the loop may wait in all, from one sweep to the next */
/* Units that a sweep may cost for each new file, and bytes of the log that cost one unit. */
#define NEW_FILE_COST  16u
#define LOG_BYTES_COST 4096u
#define WHY_NOT_YET    "it had not been opened yet"
#define WHY_STUCK      "opening it took too long: a process that maps it kept the recorder waiting"
#define WHY_BUSY       "more files were mapped at once than the recorder could open"
#define WHY_NO_MEMORY  "the recorder had no memory to open it"
#define WHY_TOO_MANY   "more files are mapped than the recorder keeps open"

struct files {
	const char *proc;
	void *context;	      /* of opentask_run(), for files that are opened at once */
	struct aside *opener; /* NULL: all files are opened at once */
	bool taking;	      /* files_take() is running */
	uint64_t patience_ns; /* what is left of it */
	uint32_t last_ticket;
	const struct timeline *timeline;
	const struct procs *procs;
	uint32_t max_open, n_open;
	struct filelist list;
	uint32_t sweep;	    /* number of the last sweep */
	uint64_t cost;	    /* of the last sweep, in about a microsecond */
	uint64_t new_files; /* since the last sweep */
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
	f->patience_ns = PATIENCE_NS;
	r = opentask_ops.context_new(proc, &f->context);
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
	aside_free(f->opener);
	opentask_ops.context_free(f->context);
	free(f);
}

void files_freep(struct files **f)
{
	files_free(*f);
}

/* The key of a record's file; its path is borrowed. */
static struct files_entry key_of(const struct perfrecord *r)
{
	struct files_entry key = {.path = (char *)(uintptr_t)r->u.mmap2.filename};

	if (!opentask_by_build_id(r)) {
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
	p->ticket = 0;
	p->asked = false;
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
	f->patience_ns = PATIENCE_NS;
	f->sweep++;
	if (timeline_foreach_file(f->timeline, mark_named, f) < 0)
		return;
	for (uint32_t i = 0; i < f->list.n_places; i++)
		if (f->list.places[i].entry.path && f->list.places[i].named != f->sweep)
			forget(f, &f->list.places[i]);
}

/* Sweeps, unless there are few new files since the last sweep: a sweep takes as long as the
 * timeline is large, and a new file only some ten microseconds. */
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
	if (p) {
		p->named = f->sweep;
		p->ticket = ++f->last_ticket;
	} else {
		f->dropped++;
	}
	return p;
}

/* --- Opening --- */

/* Duplicates an open file of the same build. */
static int open_copy(struct files *f, const struct files_entry *e, struct opentask_file *ret)
{
	const struct files_entry *copy = e->build_id_size ? filelist_copy(&f->list, e) : NULL;

	if (!copy || f->n_open >= f->max_open)
		return -ENOENT;
	ret->fd = fcntl(copy->fd, F_DUPFD_CLOEXEC, 0);
	ret->size = copy->size;
	ret->ino = 0;
	return ret->fd < 0 ? -errno : 0;
}

/* The place of the same file if it is listed by its inode only; NULL. */
static struct filelist_place *search_twin(const struct files *f, const struct files_entry *key,
					  const struct opentask_file *file)
{
	const struct files_entry inode = {.maj = file->maj, .min = file->min, .ino = file->ino};
	struct filelist_place *p = file->ino && key->build_id_size
					   ? filelist_search(&f->list, &inode, FILELIST_BY_INODE)
					   : NULL;

	return p && p->entry.build_id_size == 0 && strcmp(p->entry.path, key->path) == 0 ? p : NULL;
}

/* Gives P what T found: a file, or the reason why there is none. T was run for P, or for an older
 * file in its place. */
static void settle(struct files *f, struct filelist_place *p, struct opentask *t)
{
	struct filelist_place *twin = search_twin(f, &p->entry, &t->file);

	/* P and TWIN turned out to be the same file: TWIN stays. */
	if (twin) {
		struct files_entry key = p->entry;

		key.path = NULL;
		forget(f, p);
		filelist_learn_build(&f->list, twin, &key);
		p = twin;
	}
	if (p->entry.fd >= 0)
		return;
	if (t->file.fd < 0)
		open_copy(f, &p->entry, &t->file);
	if (t->file.fd < 0 || f->n_open >= f->max_open) {
		p->entry.missing = t->file.fd >= 0 || t->look_only ? WHY_TOO_MANY : t->missing;
		return;
	}
	p->entry.fd = take_fd(&t->file.fd);
	p->entry.size = t->file.size;
	p->entry.missing = NULL;
	f->n_open++;
	filelist_learn_inode(&f->list, p, t->file.maj, t->file.min, t->file.ino);
	free(TAKE_PTR(p->again));
}

/* --- Tasks --- */

/* Whether all open files, and those under way, fill the limit. */
static bool is_full(const struct files *f)
{
	return f->n_open + (f->opener ? aside_pending(f->opener) : 0) >= f->max_open;
}

static struct opentask *new_task(const struct files *f, const struct perfrecord *record)
{
	struct opentask *t = opentask_new(record);
	uint32_t pid = record->u.mmap2.pid;

	/* If the process is gone, its parents may have the same root. */
	while (t && f->procs && t->n_parents < OPENTASK_PARENTS) {
		pid = procs_parent(f->procs, pid);
		if (pid <= 1)
			break;
		t->parents[t->n_parents++] = pid;
	}
	return t;
}

/* Asks the opener. If its queue is full, as in the first look at all processes, waits for it, but
 * not for long in all. */
static int ask_patiently(struct files *f, struct opentask *t)
{
	uint64_t begin = now_ns(CLOCK_MONOTONIC), passed = 0;
	int r;

	while ((r = aside_ask(f->opener, &t->task)) == ASIDE_FULL && !f->taking &&
	       passed < f->patience_ns) {
		aside_wait(f->opener, MIN_OF(STUCK_NS, f->patience_ns - passed));
		files_take(f);
		passed = now_ns(CLOCK_MONOTONIC) - begin;
	}
	f->patience_ns -= MIN_OF(passed, f->patience_ns);
	return r;
}

/* The place that TAG means (its ticket and index); NULL: the file is no longer listed. */
static struct filelist_place *place_of(struct files *f, uint64_t tag)
{
	uint32_t index = (uint32_t)tag;
	struct filelist_place *p = index < f->list.n_places ? &f->list.places[index] : NULL;

	return p && p->entry.path && p->ticket == (uint32_t)(tag >> 32) ? p : NULL;
}

/* Has the opener run T for P. */
static void ask(struct files *f, struct filelist_place *p, struct opentask *t)
{
	uint64_t tag = (uint64_t)p->ticket << 32 | (uint32_t)(p - f->list.places);
	int r;

	t->task.tag = tag;
	p->asked = true;
	if (!p->entry.missing)
		p->entry.missing = WHY_NOT_YET;
	r = ask_patiently(f, t);
	if (r == 0)
		return;
	opentask_free(t);
	p = place_of(f, tag);
	if (p) {
		p->asked = false;
		p->entry.missing = r == ASIDE_FULL ? WHY_BUSY : WHY_STUCK;
	}
}

/* Runs T (taken over) for P, which has no file. */
static void begin(struct files *f, struct filelist_place *p, struct opentask *t)
{
	if (f->opener) {
		ask(f, p, t);
		return;
	}
	opentask_run(f->context, t);
	settle(f, p, t);
	opentask_free(t);
}

/* The last task for P found no file: another process that mapped it may have it. */
static void ask_again(struct files *f, struct filelist_place *p)
{
	struct opentask *t = TAKE_PTR(p->again);

	if (!t)
		return;
	t->look_only = is_full(f);
	begin(f, p, t);
}

void files_take(struct files *f)
{
	struct aside_task *task;

	/* ask_again() may lead back here. */
	if (!f->opener || f->taking)
		return;
	f->taking = true;
	while ((task = aside_take(f->opener))) {
		struct opentask *t = (struct opentask *)(void *)task;
		uint64_t tag = task->tag;
		struct filelist_place *p = place_of(f, tag);

		if (p) {
			p->asked = false;
			settle(f, p, t);
			p = place_of(f, tag); /* unless it was merged */
		}
		opentask_free(t);
		if (p && p->entry.fd < 0 && !p->asked)
			ask_again(f, p);
	}
	while ((task = aside_give_up(f->opener, STUCK_NS))) {
		struct filelist_place *p = place_of(f, task->tag);

		if (!p || p->entry.fd >= 0)
			continue;
		p->asked = false;
		p->entry.missing = WHY_STUCK;
		ask_again(f, p);
	}
	f->taking = false;
}

void files_await(struct files *f)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), until = now + AWAIT_NS;

	files_take(f);
	for (; f->opener && now < until && aside_pending(f->opener) > 0;
	     now = now_ns(CLOCK_MONOTONIC)) {
		if (aside_wait(f->opener, MIN_OF(STUCK_NS, until - now)) < 0)
			break;
		files_take(f);
	}
}

int files_open_aside(struct files *f)
{
	assert(!f->opener);
	return aside_new(&opentask_ops, f->proc, &f->opener);
}

int files_fd(const struct files *f)
{
	return f->opener ? aside_fd(f->opener) : -EBADF;
}

void files_on_fd(struct files *f)
{
	aside_clear(f->opener);
	files_take(f);
}

unsigned int files_stuck(const struct files *f)
{
	return f->opener ? aside_stuck(f->opener) : 0;
}

/* Opens the file of KEY, which has no place yet (P NULL) or no fd. */
static void look_at(struct files *f, struct filelist_place *p, const struct files_entry *key,
		    const struct perfrecord *record)
{
	struct opentask *t;

	f->new_files++;
	if (!p)
		p = add(f, key);
	if (p && is_full(f)) {
		/* The sweep may remove P itself, if the timeline has dropped its record. */
		p->entry.missing = WHY_TOO_MANY;
		make_room(f);
		p = filelist_search_key(&f->list, key);
	}
	t = p ? new_task(f, record) : NULL;
	if (t) {
		t->look_only = is_full(f);
		begin(f, p, t);
	} else if (p) {
		p->entry.missing = WHY_NO_MEMORY;
	}
}

static bool is_excluded(const struct files *f, uint32_t pid)
{
	return f->procs && procs_is_excluded(f->procs, pid);
}

void files_see(struct files *f, const struct perfrecord *record)
{
	struct files_entry key;
	struct filelist_place *p;

	/* Anonymous memory and [vdso] have no inode. */
	if (!(record->u.mmap2.prot & PROT_EXEC) || record->u.mmap2.filename[0] != '/' ||
	    (record->u.mmap2.ino == 0 && !opentask_by_build_id(record)))
		return;
	key = key_of(record);
	key.owner = record->u.mmap2.pid;
	p = filelist_search_key(&f->list, &key);
	if (p && is_excluded(f, p->entry.owner))
		p->entry.owner = key.owner;
	if (p && p->entry.fd >= 0)
		return;
	if (is_excluded(f, key.owner)) {
		/* List the file, but open it only when another process maps it. */
		if (!p)
			p = add(f, &key);
		if (p && !p->entry.missing)
			p->entry.missing = FILES_WHY_EXCLUDED;
		return;
	}
	if (f->opener && aside_pending(f->opener) > 0) {
		files_take(f);
		p = filelist_search_key(&f->list, &key);
	}
	if (p && p->entry.fd >= 0)
		return;
	/* Try a missing file again, ever less often: another process may have a better way to it,
	 * but not each of thousands. */
	if (p) {
		p->entry.seen += p->entry.seen < UINT32_MAX;
		if (p->entry.seen >= 4 && (p->entry.seen & (p->entry.seen - 1)) != 0)
			return;
	}
	if (p && p->asked) {
		/* It is being opened by way of a process that may be gone: try this one next. */
		free(p->again);
		p->again = new_task(f, record);
	} else {
		look_at(f, p, &key, record);
	}
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
