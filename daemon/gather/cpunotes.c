/*
 * source -> notes, one for all CPUs that have the same to say: a host without PT says it once.
 * Called by evidence.c in the loop's thread.
 */
#include "daemon/gather/cpunotes.h"

#include <errno.h>
#include <string.h>

/* Names of decoder/packet/fault.h; NULL: nothing is missing. */
static const char *kind_of(enum source_cpu_state state)
{
	switch (state) {
	case SOURCE_CPU_TRACING: return NULL;
	case SOURCE_CPU_OFFLINE: return "cpu-offline";
	case SOURCE_CPU_BUSY: return "pt-busy";
	case SOURCE_CPU_YIELDED: return "pt-yielded";
	case SOURCE_CPU_FAILED: return "pt-failed";
	case SOURCE_CPU_NO_PT: return "pt-unavailable";
	}
	return NULL;
}

static bool is_same(const struct manifest_note *note, const char *kind, const char *why)
{
	return strcmp(note->kind, kind) == 0 && strcmp(note->why ? note->why : "", why) == 0;
}

/* Counted where the notes from FIRST on have it already. */
static int add_one(struct manifest *m, size_t first, const char *kind, const char *why)
{
	int r;

	for (size_t i = first; i < m->n_notes; i++) {
		if (!is_same(&m->notes[i], kind, why))
			continue;
		m->notes[i].count++;
		return 0;
	}
	r = manifest_add_note(m, kind, 1, *why ? why : NULL);
	/* A manifest full of notes says enough. */
	return r == -ENOSPC ? 0 : r;
}

int cpunotes_add(const struct source *s, struct manifest *m)
{
	size_t first = m->n_notes;
	int r = 0;

	for (size_t i = 0; i < s->n_cpus && r == 0; i++) {
		const char *kind = kind_of(s->cpus[i].state);

		if (kind)
			r = add_one(m, first, kind, s->cpus[i].why);
	}
	return r;
}
