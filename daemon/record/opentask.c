/*
 * A record's copy -> fileopen.c, with mounts that nobody else reads. Called by files.c, and by
 * aside.c in its thread: nothing here knows of the list of files.
 */
#include "daemon/record/opentask.h"

#include <stdlib.h>
#include <string.h>

#include "capture/proc/mounts.h"
#include "proto/base.h"

struct context {
	struct mounts *mounts;
	char proc[];
};

static void context_free(void *context)
{
	struct context *c = context;

	mounts_free(c->mounts);
	free(c);
}

static int context_new(const char *proc, void **ret)
{
	size_t size = strlen(proc) + 1;
	struct context *c = calloc(1, sizeof(*c) + size);
	int r;

	if (!c)
		return -ENOMEM;
	memcpy(c->proc, proc, size);
	r = mounts_new(c->proc, &c->mounts);
	if (r < 0) {
		free(c);
		return r;
	}
	*ret = c;
	return 0;
}

struct opentask *opentask_new(const struct perfrecord *record)
{
	size_t size = strlen(record->u.mmap2.filename) + 1;
	struct opentask *t = calloc(1, sizeof(*t) + size);

	if (!t)
		return NULL;
	memcpy(t->path, record->u.mmap2.filename, size);
	t->record = *record;
	t->record.u.mmap2.filename = t->path;
	t->file.fd = -EBADF;
	return t;
}

void opentask_free(struct opentask *t)
{
	if (!t)
		return;
	close_fd(t->file.fd);
	free(t);
}

void opentask_run(void *context, struct opentask *t)
{
	struct context *c = context;
	struct fileopen look;

	fileopen_look(c->mounts, c->proc, &t->record, &look);
	if (t->look_only || fileopen_open(&look, t->parents, t->n_parents, &t->file) < 0) {
		t->file = (struct fileopen_file){.fd = -EBADF};
		if (look.mapped) {
			t->file.maj = look.map.maj;
			t->file.min = look.map.min;
			t->file.ino = look.map.ino;
		}
	}
	t->missing = look.missing;
	fileopen_done(&look);
}

static void run(void *context, struct aside_task *task)
{
	opentask_run(context, (struct opentask *)(void *)task);
}

static void task_free(struct aside_task *task)
{
	opentask_free((struct opentask *)(void *)task);
}

const struct aside_ops opentask_ops = {
	.context_new = context_new,
	.context_free = context_free,
	.run = run,
	.task_free = task_free,
};
