/*
 * Keeps spans of time with what went wrong in them.
 */
#include "daemon/record/faults.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

void faults_done(struct faults *f)
{
	free(f->list);
	*f = (struct faults){0};
}

static bool is_alike(const struct manifest_note *a, const struct manifest_note *b)
{
	return a->cpu == b->cpu && strcmp(a->kind, b->kind) == 0 && strcmp(a->why, b->why) == 0;
}

/* Joins the two oldest spans like NOTE if there are FAULTS_APART of them. */
static void make_room(struct faults *f, const struct manifest_note *note)
{
	size_t alike[FAULTS_APART], n = 0;
	struct manifest_note *first, *second;

	for (size_t i = 0; i < f->n && n < FAULTS_APART; i++)
		if (is_alike(&f->list[i], note))
			alike[n++] = i;
	if (n < FAULTS_APART)
		return;
	first = &f->list[alike[0]];
	second = &f->list[alike[1]];
	/* An unknown beginning stays unknown. */
	second->since_ns = first->since_ns;
	second->count += first->count;
	memmove(first, first + 1, (size_t)(&f->list[--f->n] - first) * sizeof(*first));
}

void faults_add(struct faults *f, const struct manifest_note *note)
{
	make_room(f, note);
	if (ARRAY_RESERVE(f->list, f->capacity, f->n + 1) < 0)
		f->unlisted += note->count;
	else
		f->list[f->n++] = *note;
}

int faults_tell(const struct faults *f, struct manifest *m)
{
	/* One place is for the last note. */
	size_t room = m->n_notes < MANIFEST_MAX_NOTES ? MANIFEST_MAX_NOTES - m->n_notes - 1 : 0;
	uint64_t unlisted = f->unlisted;
	int r = 0;

	for (size_t i = f->n; i-- > 0 && r == 0;) {
		if (f->n - i <= room)
			r = manifest_add_note_at(m, &f->list[i]);
		else
			unlisted += f->list[i].count;
	}
	if (r == 0 && unlisted > 0)
		r = manifest_add_note(m, "sideband-bad", unlisted,
				      "more faults of the recording than a snapshot lists");
	/* A manifest that is full of notes says enough. */
	return r == -ENOSPC ? 0 : r;
}
