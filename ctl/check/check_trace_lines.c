/*
 * Reads the lines that the worker writes for --view=branches, and gives each branch to the walk
 * that it belongs to. Other lines are skipped.
 */
#include <errno.h>
#include <string.h>

#include "proto/base.h"

#include "ctl/base/say.h"
#include "ctl/check/check_trace_private.h"

/* One thread that runs, or may run, a walk. */
struct thread {
	uint32_t tid;
	struct walk_match match;
};

struct reader {
	struct check *check;
	struct thread *threads[CHECK_WALKS_MAX]; /* owned */
	size_t n_threads;
	/* The lines being read belong to: */
	struct thread *thread; /* NULL: no walk, as far as is known */
	size_t cpu;	       /* index in the manifest; its number of CPUs: unknown */
	uint32_t tid;	       /* 0: unknown */
	bool may_jump;
};

static void reader_done(struct reader *r)
{
	for (size_t i = 0; i < r->n_threads; i++)
		free(r->threads[i]);
}

static const struct manifest *manifest_of(const struct reader *r)
{
	return bundle_manifest(r->check->bundle);
}

static struct thread *find_thread(const struct reader *r, uint32_t tid)
{
	for (size_t i = 0; i < r->n_threads; i++)
		if (r->threads[i]->tid == tid)
			return r->threads[i];
	return NULL;
}

static int add_thread(struct reader *r)
{
	const struct check_walk *walk = check_walks_find(r->check, r->tid);
	struct thread *t;

	if (r->n_threads == CHECK_WALKS_MAX)
		return 0;
	t = malloc(sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->tid = r->tid;
	walk_match_init(&t->match, r->check->seed, walk ? (int)(walk - r->check->walks) : -1);
	t->match.may_jump = r->may_jump;
	r->threads[r->n_threads++] = t;
	r->thread = t;
	return 0;
}

/* Reads a number of BASE, and moves *TEXT behind the number and one blank. */
static bool take_number(const char **text, unsigned base, uint64_t *ret)
{
	const char *p = *text;
	uint64_t v = 0;

	for (;; p++) {
		unsigned digit = *p >= '0' && *p <= '9'	  ? (unsigned)(*p - '0')
				 : *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a') + 10
							  : 16;

		if (digit >= base)
			break;
		v = v * base + digit;
	}
	if (p == *text)
		return false;
	*text = *p == ' ' ? p + 1 : p;
	*ret = v;
	return true;
}

static bool take_word(const char **text, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*text, word, n) != 0)
		return false;
	*text += n;
	return true;
}

/* "# cpu N pid P tid T" */
static void take_owner(struct reader *r, const char *text)
{
	const struct manifest *m = manifest_of(r);
	uint64_t cpu = UINT64_MAX, pid, tid = 0;

	if (!take_number(&text, 10, &cpu))
		take_word(&text, "- ");
	if (!take_word(&text, "pid ") ||
	    (!take_number(&text, 10, &pid) && !take_word(&text, "- ")) ||
	    !take_word(&text, "tid ") || !take_number(&text, 10, &tid))
		tid = 0;
	for (r->cpu = 0; r->cpu < m->n_cpus && m->cpus[r->cpu].cpu != cpu; r->cpu++)
		;
	r->tid = (uint32_t)tid;
	r->thread = find_thread(r, r->tid);
}

static void count_gap(struct check *c, const char *kind)
{
	size_t i;

	for (i = 0; i < c->n_gaps; i++)
		if (strcmp(c->gaps[i].kind, kind) == 0)
			break;
	if (i == CHECK_GAPS_MAX)
		return;
	if (i == c->n_gaps) {
		snprintf(c->gaps[i].kind, sizeof(c->gaps[i].kind), "%.31s", kind);
		c->n_gaps++;
	}
	c->gaps[i].n++;
}

/* A gap whose thread is not known may be in the trace of any thread. */
static void take_gap(struct reader *r, const char *kind)
{
	if (r->thread) {
		walk_match_gap(&r->thread->match);
		count_gap(r->check, kind);
		return;
	}
	for (size_t i = 0; r->tid == 0 && i < r->n_threads; i++)
		walk_match_gap(&r->threads[i]->match);
}

/* Under the running recorder, walks are known by their threads. Under the test's own recorder, only
 * walks have code at the addresses of ptsnap-walk. */
static bool may_be_walk(const struct reader *r, const struct walk_line *line)
{
	if (r->tid == 0)
		return false;
	if (r->check->live)
		return check_walks_find(r->check, r->tid) != NULL;
	return walk_model_has(line->from) || walk_model_has(line->to);
}

static int take_branch(struct reader *r, const struct walk_line *line)
{
	struct check_cpu *cpu;
	bool differed;

	if (r->cpu == manifest_of(r)->n_cpus)
		return 0;
	cpu = &r->check->cpus[r->cpu];
	if (line->lo != 0 && (cpu->tsc_first == 0 || line->lo < cpu->tsc_first))
		cpu->tsc_first = line->lo;
	if (line->hi != UINT64_MAX && line->hi > cpu->tsc_last)
		cpu->tsc_last = line->hi;
	if (!r->thread && (!may_be_walk(r, line) || add_thread(r) < 0 || !r->thread))
		return 0;
	differed = r->thread->match.first.known;
	walk_match_line(&r->thread->match, line, &cpu->tally);
	if (!differed && r->thread->match.first.known && !cpu->difference.known)
		cpu->difference = r->thread->match.first;
	return 0;
}

static int take_line(struct reader *r, char *text)
{
	struct walk_line line;
	const char *p = text;

	text[strcspn(text, "\n")] = '\0';
	if (take_word(&p, "# cpu "))
		take_owner(r, p);
	else if (take_word(&p, "# gap "))
		take_gap(r, p);
	else if (take_number(&p, 16, &line.from) && take_number(&p, 16, &line.to) &&
		 take_number(&p, 16, &line.lo) && take_number(&p, 16, &line.hi) &&
		 take_number(&p, 16, &line.offset))
		return take_branch(r, &line);
	return 0;
}

/* Whether a walk may have executed code that no ring has: it moved between CPUs, and a ring was
 * overwritten. Walks under the running recorder are bound to one CPU. */
static bool may_jump(const struct check *c)
{
	const struct manifest *m = bundle_manifest(c->bundle);
	bool full = false;

	for (size_t i = 0; i < m->n_cpus; i++)
		full |= m->cpus[i].bytes >= m->cpus[i].ring_bytes;
	return full && !c->live;
}

int check_lines_read(struct check *c, FILE *lines)
{
	CLEANUP(reader_done) struct reader r = {.check = c};
	char text[256];
	int error = 0;

	r.may_jump = may_jump(c);
	r.cpu = manifest_of(&r)->n_cpus;
	/* Read to the end, or the worker would wait for us. */
	while (fgets(text, sizeof(text), lines))
		if (error == 0)
			error = take_line(&r, text);
	return error == 0 ? 0 : say_error(EXIT_CODE_FAILURE, "out of memory");
}
