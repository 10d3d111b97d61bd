/*
 * Walks over a truth directory and finds the stretches of each thread that a snapshot must show.
 */
#include "tests/support/truth_walk.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/emu/plugin/truth.h"
#include "proto/base.h"

#define FNV_PRIME 0x100000001b3ull

struct walk {
	const struct truth_span *spans;
	size_t n;
	const struct truth_visitor *v;
	const struct truth_span *open; /* the span that may still begin within this stretch */
	bool inside;
};

int truth_span_parse(const char *text, struct truth_span *ret)
{
	int end = 0;

	if (sscanf(text, "%" SCNu32 ":%" SCNx64 ":%" SCNx64 "%n", &ret->cpu, &ret->from, &ret->stop,
		   &end) != 3)
		return -EINVAL;
	return text[end] == '\0' ? 0 : -EINVAL;
}

uint64_t truth_hash(uint64_t hash, const struct truth_event *e)
{
	for (uint64_t t = 0; t < e->times; t++) {
		uint64_t ip = e->block->ip;

		for (unsigned int i = 0; i < e->n; i++) {
			for (int shift = 0; shift < 64; shift += 8)
				hash = (hash ^ (ip >> shift & 0xff)) * FNV_PRIME;
			ip += e->block->length[i];
		}
	}
	return hash;
}

static void begin(struct walk *w, uint32_t cpu, uint64_t tsc)
{
	w->inside = true;
	w->open = NULL;
	if (w->v->stretch != NULL)
		w->v->stretch(w->v->userdata, cpu, tsc);
}

/* A stretch that began before the span enters the span at its first PSB. */
static void enter(struct walk *w, const struct truth_event *e)
{
	const struct truth_span *all = NULL;

	w->inside = false;
	w->open = NULL;
	for (size_t i = 0; i < w->n; i++) {
		const struct truth_span *s = &w->spans[i];

		if (s->cpu != e->cpu || e->tsc > s->stop)
			continue;
		if (e->tsc >= s->from)
			all = s;
		else
			w->open = s;
	}
	if (all != NULL || w->n == 0)
		begin(w, e->cpu, e->tsc);
}

static void take(struct walk *w, const struct truth_event *e)
{
	const struct truth_visitor *v = w->v;

	if (e->item == TRUTH_FIRST_ID) {
		if (w->inside && v->run != NULL)
			v->run(v->userdata, e);
		return;
	}
	if (v->mark != NULL)
		v->mark(v->userdata, e);
	if (e->item == TRUTH_ENTER)
		enter(w, e);
	else if (e->item == TRUTH_PSB && w->open != NULL && e->tsc == w->open->from && e->flag)
		begin(w, w->open->cpu, e->tsc);
}

static int walk_file(struct walk *w, const char *path)
{
	struct truth_reader r;
	struct truth_event e;
	int result = truth_reader_open(&r, path);

	w->open = NULL;
	w->inside = false;
	while (result >= 0 && (result = truth_reader_next(&r, &e)) > 0)
		take(w, &e);
	truth_reader_done(&r);
	return result;
}

/* Parses "PID.TID", or "PID.TID.N" for its Nth life, which ended when another thread took its
 * number. */
static bool parse_name(const char *name, struct truth_thread *ret, uint32_t *ret_life)
{
	int end = 0;

	*ret_life = UINT32_MAX;
	if (sscanf(name, "%" SCNu32 ".%" SCNu32 "%n", &ret->pid, &ret->tid, &end) != 2)
		return false;
	if (name[end] == '\0')
		return true;
	name += end;
	return sscanf(name, ".%" SCNu32 "%n", ret_life, &end) == 1 && name[end] == '\0';
}

static int is_thread(const struct dirent *d)
{
	struct truth_thread t;
	uint32_t life;

	return parse_name(d->d_name, &t, &life);
}

static int by_tid(const struct dirent **a, const struct dirent **b)
{
	struct truth_thread x = {0}, y = {0};
	uint32_t m, n;

	parse_name((*a)->d_name, &x, &m);
	parse_name((*b)->d_name, &y, &n);
	if (x.tid != y.tid)
		return x.tid < y.tid ? -1 : 1;
	if (x.pid != y.pid)
		return x.pid < y.pid ? -1 : 1;
	return m < n ? -1 : m > n;
}

static int walk_thread(struct walk *w, const char *dir, const char *name, char **ret_bad)
{
	const struct truth_visitor *v = w->v;
	struct truth_thread who = {0};
	char *path = NULL;
	uint32_t life;
	int r;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	parse_name(name, &who, &life);
	if (v->begin != NULL)
		v->begin(v->userdata, who);
	r = walk_file(w, path);
	if (v->end != NULL)
		v->end(v->userdata);
	if (r < 0)
		*ret_bad = path;
	else
		free(path);
	return r;
}

int truth_walk(const char *dir, const struct truth_span *spans, size_t n,
	       const struct truth_visitor *v, char **ret_bad)
{
	struct walk w = {.spans = spans, .n = n, .v = v};
	struct dirent **names = NULL;
	int count = scandir(dir, &names, is_thread, by_tid), r = 0;

	*ret_bad = NULL;
	if (count < 0) {
		r = -errno;
		*ret_bad = strdup(dir);
		return r;
	}
	for (int i = 0; i < count && r >= 0; i++)
		r = walk_thread(&w, dir, names[i]->d_name, ret_bad);
	for (int i = 0; i < count; i++)
		free(names[i]);
	free(names);
	return r;
}
