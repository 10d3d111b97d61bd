/*
 * Compares the threads that a decode names with those that executed, stretch by stretch: reads
 * --view=insns of a snapshot, and finds the same instructions of each CPU in a truth directory by
 * their number.
 *
 *   truth_owners DIR [--cpu=N:FROM:STOP ...] < INSNS
 *
 * Stretches whose thread is uncertain within a known process ("tid -") have their code, so the
 * numbers stay right. Behind any other gap of a CPU they do not: the rest of that CPU is not
 * compared. Prints {"stretches","wrong","uncertain","unchecked"}: a stretch is wrong if the decode
 * names another thread for an instruction of the stretch. Exits with 1 if one is wrong.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "tests/support/truth_walk.h"

#define MAX_CPUS 256u

struct stretch {
	uint64_t tsc, insns;
	uint32_t pid, tid;
	bool wrong, uncertain;
};

struct lane {
	struct stretch *list;
	size_t n, capacity;
	size_t at;     /* the stretch of the next instruction */
	uint64_t done; /* instructions of that stretch so far */
	bool lost;     /* a gap: the numbers are not comparable any more */
};

struct owners {
	struct lane lanes[MAX_CPUS];
	struct truth_thread who;
	struct lane *lane;
	/* Results of the decode. */
	struct lane *now;
	long pid, tid; /* -1: not known */
};

static void on_begin(void *userdata, struct truth_thread who)
{
	struct owners *o = userdata;

	o->who = who;
	o->lane = NULL;
}

static void on_stretch(void *userdata, uint32_t cpu, uint64_t tsc)
{
	struct owners *o = userdata;
	struct lane *l = &o->lanes[cpu % MAX_CPUS];

	if (ARRAY_RESERVE(l->list, l->capacity, l->n + 1) < 0)
		abort();
	l->list[l->n++] = (struct stretch){.tsc = tsc, .pid = o->who.pid, .tid = o->who.tid};
	o->lane = l;
}

static void on_run(void *userdata, const struct truth_event *e)
{
	struct owners *o = userdata;

	o->lane->list[o->lane->n - 1].insns += e->n * e->times;
}

static int by_time(const void *a, const void *b)
{
	const struct stretch *x = a, *y = b;

	return x->tsc < y->tsc ? -1 : x->tsc > y->tsc;
}

/* One decoded instruction. False: more were decoded than executed. */
static bool count(struct owners *o)
{
	struct lane *l = o->now;
	struct stretch *s;

	if (!l || l->lost)
		return true;
	while (l->at < l->n && l->done == l->list[l->at].insns) {
		l->at++;
		l->done = 0;
	}
	if (l->at == l->n)
		return false;
	s = &l->list[l->at];
	l->done++;
	if (o->tid < 0)
		s->uncertain = true;
	if ((o->tid >= 0 && s->tid != (uint32_t)o->tid) ||
	    (o->pid >= 0 && s->pid != (uint32_t)o->pid))
		s->wrong = true;
	return true;
}

static void read_comment(struct owners *o, const char *line)
{
	char pid[16], tid[16];
	uint32_t cpu;

	if (sscanf(line, "# cpu %" SCNu32 " pid %15s tid %15s", &cpu, pid, tid) == 3) {
		o->now = &o->lanes[cpu % MAX_CPUS];
		o->pid = pid[0] == '-' ? -1 : strtol(pid, NULL, 10);
		o->tid = tid[0] == '-' ? -1 : strtol(tid, NULL, 10);
	} else if (strncmp(line, "# gap ", 6) == 0 && strcmp(line, "# gap head\n") != 0 && o->now &&
		   (o->tid >= 0 || o->pid < 0 || strcmp(line + 6, "thread-uncertain\n") != 0)) {
		o->now->lost = true;
	}
}

static bool read_insns(struct owners *o)
{
	char *line = NULL;
	size_t room = 0;
	bool fine = true;

	while (fine && getline(&line, &room, stdin) > 0) {
		if (*line == '#')
			read_comment(o, line);
		else
			fine = count(o);
	}
	free(line);
	return fine;
}

static bool report(const struct owners *o)
{
	uint64_t n = 0, wrong = 0, uncertain = 0, unchecked = 0;

	for (size_t i = 0; i < MAX_CPUS; i++)
		for (size_t k = 0; k < o->lanes[i].n; k++) {
			const struct lane *l = &o->lanes[i];

			if (l->list[k].insns == 0)
				continue;
			n++;
			wrong += l->list[k].wrong;
			uncertain += l->list[k].uncertain;
			unchecked += k > l->at;
		}
	printf("{\"stretches\":%" PRIu64 ",\"wrong\":%" PRIu64 ",\"uncertain\":%" PRIu64
	       ",\"unchecked\":%" PRIu64 "}\n",
	       n, wrong, uncertain, unchecked);
	return wrong == 0;
}

int main(int argc, char **argv)
{
	static struct owners o;
	static struct truth_span spans[MAX_CPUS];
	const struct truth_visitor v = {
		.begin = on_begin, .stretch = on_stretch, .run = on_run, .userdata = &o};
	size_t n = 0;
	char *bad;
	bool fine;
	int r;

	for (int i = 2; i < argc; i++)
		if (n == MAX_CPUS || strncmp(argv[i], "--cpu=", 6) != 0 ||
		    truth_span_parse(argv[i] + 6, &spans[n++]) < 0)
			return 2;
	if (argc < 2)
		return 2;
	r = truth_walk(argv[1], spans, n, &v, &bad);
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", bad ? bad : argv[1], strerror(-r));
		free(bad);
		return 1;
	}
	for (size_t i = 0; i < MAX_CPUS; i++)
		if (o.lanes[i].n > 0)
			qsort(o.lanes[i].list, o.lanes[i].n, sizeof(struct stretch), by_time);
	fine = read_insns(&o);
	if (!fine)
		fprintf(stderr, "more was decoded than executed\n");
	fine = report(&o) && fine;
	for (size_t i = 0; i < MAX_CPUS; i++)
		free(o.lanes[i].list);
	return fine ? 0 : 1;
}
