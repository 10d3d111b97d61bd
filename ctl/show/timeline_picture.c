/*
 * A picture of the CPUs: a row for each, columns are time, and a letter is the thread that had the
 * CPU for most of the column's time.
 */
#include "ctl/show/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "proto/base.h"

#define PLAIN "\033[0m"

#define LABEL	  9u /* columns before the row */
#define LEAST	  20u
#define MOST	  400u
#define MAX_ROWS  512u
#define NO_THREAD UINT32_MAX /* a cell in which no thread ran */
#define UNKNOWN	  (UINT32_MAX - 1)
#define A_GAP	  (UINT32_MAX - 2)

static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* A thread, known by pid and tid. */
struct drawn {
	uint64_t pid, tid;
	const char *comm; /* borrowed from the report */
	uint64_t ns;	  /* of all CPUs */
	uint64_t cell_ns; /* in cell number CELL of the row at hand */
	size_t cell;
	char letter;
};

struct picture {
	const struct timeline_events *e;
	const struct show_style *style;
	struct drawn *threads; /* owned */
	size_t n_threads, capacity;
	uint64_t *cpus; /* owned; rising */
	size_t n_cpus, cpus_capacity;
	uint64_t *best;	 /* owned; ns of the thread that has the cell */
	uint32_t *cells; /* owned; of the row at hand */
	size_t columns;
	uint64_t length; /* ns of the window, at least 1 */
};

static int by_id(const void *a, const void *b)
{
	const struct drawn *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The thread of a turn. False: not known. */
static bool thread_of(const struct timeline_event *e, struct drawn *ret)
{
	*ret = (struct drawn){.letter = '*', .cell = SIZE_MAX};
	ret->comm = field_text(e->row, "comm");
	return field_true(e->row, "certain") && field_u64(e->row, "pid", &ret->pid) &&
	       field_u64(e->row, "tid", &ret->tid);
}

static struct drawn *find(const struct picture *p, const struct timeline_event *e)
{
	struct drawn key;

	if (!thread_of(e, &key) || p->n_threads == 0)
		return NULL;
	return bsearch(&key, p->threads, p->n_threads, sizeof(key), by_id);
}

/* The part of E within the window, as ns since the window's begin. */
static bool part_of(const struct picture *p, const struct timeline_event *e, uint64_t *ret_begin,
		    uint64_t *ret_end)
{
	const int64_t from = MAX_OF(e->at, p->e->first), to = MIN_OF(e->until, p->e->last);

	*ret_begin = (uint64_t)from - (uint64_t)p->e->first;
	*ret_end = (uint64_t)to - (uint64_t)p->e->first;
	return from < to;
}

/* Removes equal neighbours of N elements of SIZE bytes. Returns how many are left. */
static size_t unique(void *list, size_t n, size_t size, int (*compare)(const void *, const void *))
{
	char *base = list;
	size_t to = 0;

	for (size_t i = 0; i < n; i++) {
		if (to > 0 && compare(base + (to - 1) * size, base + i * size) == 0)
			continue;
		memmove(base + to++ * size, base + i * size, size);
	}
	return to;
}

static int list_all(struct picture *p)
{
	for (size_t i = 0; i < p->e->n; i++) {
		const struct timeline_event *e = &p->e->list[i];

		if (e->cpu != TIMELINE_NO_CPU &&
		    (e->kind == TIMELINE_RUN || e->kind == TIMELINE_GAP)) {
			if (ARRAY_RESERVE(p->cpus, p->cpus_capacity, p->n_cpus + 1) < 0)
				return -ENOMEM;
			p->cpus[p->n_cpus++] = e->cpu;
		}
		if (e->kind != TIMELINE_RUN)
			continue;
		if (ARRAY_RESERVE(p->threads, p->capacity, p->n_threads + 1) < 0)
			return -ENOMEM;
		p->n_threads += thread_of(e, &p->threads[p->n_threads]);
	}
	if (p->n_cpus > 0)
		qsort(p->cpus, p->n_cpus, sizeof(*p->cpus), by_number);
	p->n_cpus = unique(p->cpus, p->n_cpus, sizeof(*p->cpus), by_number);
	if (p->n_threads > 0)
		qsort(p->threads, p->n_threads, sizeof(*p->threads), by_id);
	p->n_threads = unique(p->threads, p->n_threads, sizeof(*p->threads), by_id);
	return 0;
}

/* The threads that ran longest get letters. */
static void give_letters(struct picture *p)
{
	for (size_t i = 0; i < p->e->n; i++) {
		uint64_t begin, end;
		struct drawn *t = NULL;

		if (p->e->list[i].kind == TIMELINE_RUN)
			t = find(p, &p->e->list[i]);
		if (t && part_of(p, &p->e->list[i], &begin, &end))
			t->ns += end - begin;
	}
	for (size_t i = 0; i < sizeof(LETTERS) - 1; i++) {
		struct drawn *most = NULL;

		for (size_t j = 0; j < p->n_threads; j++)
			if (p->threads[j].letter == '*' && p->threads[j].ns > 0 &&
			    (!most || p->threads[j].ns > most->ns))
				most = &p->threads[j];
		if (!most)
			return;
		most->letter = LETTERS[i];
	}
}

/* When column number I begins, ns since the window's begin. */
static uint64_t begin_of(const struct picture *p, size_t i)
{
	return (uint64_t)((unsigned __int128)p->length * i / p->columns);
}

static size_t column_of(const struct picture *p, uint64_t ns)
{
	size_t i = (size_t)((unsigned __int128)ns * p->columns / p->length);

	return MIN_OF(i, p->columns - 1);
}

/* Adds NS of T (NULL: WHAT, which is no thread) to cell number I. */
static void add(struct picture *p, size_t i, struct drawn *t, uint32_t what, uint64_t ns)
{
	if (t && t->cell != i)
		t->cell_ns = 0;
	if (t) {
		t->cell = i;
		ns = t->cell_ns += ns;
		what = (uint32_t)(t - p->threads);
	}
	if (ns <= p->best[i] && p->best[i] > 0)
		return;
	p->best[i] = ns;
	p->cells[i] = what;
}

static void fill_event(struct picture *p, const struct timeline_event *e)
{
	struct drawn *t = e->kind == TIMELINE_RUN ? find(p, e) : NULL;
	uint64_t begin, end;

	if (!part_of(p, e, &begin, &end))
		return;
	for (size_t i = column_of(p, begin); i < p->columns && begin_of(p, i) < end; i++) {
		uint64_t from = MAX_OF(begin, begin_of(p, i)), to = MIN_OF(end, begin_of(p, i + 1));

		if (to > from)
			add(p, i, t, e->kind == TIMELINE_GAP ? A_GAP : UNKNOWN, to - from);
	}
}

static void put_cell(FILE *out, const struct picture *p, uint32_t cell)
{
	char c = '.';

	if (cell == A_GAP)
		c = '#';
	else if (cell == UNKNOWN)
		c = '?';
	else if (cell != NO_THREAD)
		c = p->threads[cell].letter;
	if (p->style->color && cell != NO_THREAD)
		fprintf(out, "\033[%dm%c" PLAIN, cell == A_GAP ? 31 : 32 + c % 5, c);
	else
		fputc(c, out);
}

static void put_row(FILE *out, struct picture *p, uint64_t cpu)
{
	char label[32];

	for (size_t i = 0; i < p->columns; i++) {
		p->best[i] = 0;
		p->cells[i] = NO_THREAD;
	}
	for (size_t i = 0; i < p->n_threads; i++)
		p->threads[i].cell = SIZE_MAX;
	for (size_t i = 0; i < p->e->n; i++) {
		const struct timeline_event *e = &p->e->list[i];

		if (e->cpu == cpu && (e->kind == TIMELINE_RUN || e->kind == TIMELINE_GAP))
			fill_event(p, e);
	}
	snprintf(label, sizeof(label), "CPU %ju", (uintmax_t)cpu);
	fprintf(out, "%-*s", (int)LABEL, label);
	for (size_t i = 0; i < p->columns; i++)
		put_cell(out, p, p->cells[i]);
	fputc('\n', out);
}

static const char *time_text(int64_t ns, char to[static 48])
{
	snprintf(to, 48, "%s%s", ns < 0 ? "-" : "",
		 figure_nsec(ns < 0 ? -(uint64_t)ns : (uint64_t)ns).text);
	return to;
}

/* The begin and the end of the window, and how much a column is. */
static void put_axis(FILE *out, const struct picture *p)
{
	char begin[48], end[48];
	int used = fprintf(out, "%-*s%s", (int)LABEL, "", time_text(p->e->first, begin));
	int width = (int)(LABEL + p->columns) - used;

	fprintf(out, "%*s\n", MAX_OF(width, 1), time_text(p->e->last, end));
}

static int by_time(const void *a, const void *b)
{
	const struct drawn *x = *(const struct drawn *const *)a;
	const struct drawn *y = *(const struct drawn *const *)b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return by_id(x, y);
}

static int put_legend(FILE *out, const struct picture *p)
{
	CLEANUP_FREE const struct drawn **list = calloc(p->n_threads + 1, sizeof(struct drawn *));
	size_t others = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_threads; i++)
		list[i] = &p->threads[i];
	qsort(list, p->n_threads, sizeof(struct drawn *), by_time);
	fprintf(out, "\na column is %s; . no known thread, # gap, ? unknown thread\n",
		figure_nsec(MAX_OF(p->length / p->columns, 1)).text);
	for (size_t i = 0; i < p->n_threads; i++) {
		if (list[i]->letter == '*') {
			others += list[i]->ns > 0;
			continue;
		}
		fprintf(out, "%c  ", list[i]->letter);
		text_puts(out, list[i]->comm ? list[i]->comm : "-", 16);
		fprintf(out, " (%ju)  %s\n", (uintmax_t)list[i]->tid,
			figure_nsec(list[i]->ns).text);
	}
	if (others > 0)
		fprintf(out, "*  %s other threads\n", figure_count(others).text);
	return 0;
}

static int draw(FILE *out, struct picture *p)
{
	int r = list_all(p);

	p->best = calloc(p->columns, sizeof(*p->best));
	p->cells = calloc(p->columns, sizeof(*p->cells));
	if (r < 0 || !p->best || !p->cells)
		return -ENOMEM;
	give_letters(p);
	put_axis(out, p);
	for (size_t i = 0; i < p->n_cpus && i < MAX_ROWS; i++)
		put_row(out, p, p->cpus[i]);
	if (p->n_cpus > MAX_ROWS)
		fprintf(out, "%s more CPUs are not shown; --cpu=N shows one\n",
			figure_count(p->n_cpus - MAX_ROWS).text);
	return put_legend(out, p);
}

int timeline_draw(FILE *out, const struct timeline_events *e, const struct show_style *style)
{
	struct picture p = {.e = e, .style = style};
	int r;

	p.columns = style->columns > LABEL + LEAST ? style->columns - LABEL : LEAST;
	p.columns = MIN_OF(p.columns, MOST);
	p.length = MAX_OF((uint64_t)e->last - (uint64_t)e->first, UINT64_C(1));
	r = draw(out, &p);
	free(p.threads);
	free(p.cpus);
	free(p.best);
	free(p.cells);
	return r;
}
