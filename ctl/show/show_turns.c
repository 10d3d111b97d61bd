/*
 * Shows which threads had which CPU: adds up the turns of each CPU in a report by thread.
 */
#include "ctl/show/show_private.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "proto/base.h"

#define MAX_SHARES  3
#define MAX_CPU_ID  4096 /* the kernel's NR_CPUS is below it */
#define NAME_COLUMN 22

/* Turns of one thread on one CPU, added up. */
struct share {
	uint64_t tid;
	const char *comm; /* borrowed from the report */
	bool certain;
	double nsec;
	size_t order; /* index of the thread's last turn */
};

/* All shares of a CPU, greatest first. */
struct shares {
	struct share *list;
	size_t n, turns;
	struct share last;
	double nsec; /* the time that the shares are parts of, 0 when unknown */
};

static int by_thread(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->certain != y->certain)
		return x->certain ? 1 : -1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int by_time(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->nsec != y->nsec)
		return x->nsec > y->nsec ? -1 : 1;
	return x->order < y->order ? 1 : -1;
}

/* Joins the turns of each thread to one share, under the thread's last name. */
static void add_up(struct shares *s)
{
	size_t n = 0;

	qsort(s->list, s->n, sizeof(*s->list), by_thread);
	for (size_t i = 0; i < s->n; i++) {
		struct share *to = n > 0 ? &s->list[n - 1] : NULL;

		if (!to || to->tid != s->list[i].tid || to->certain != s->list[i].certain) {
			s->list[n++] = s->list[i];
			continue;
		}
		to->nsec += s->list[i].nsec;
		to->comm = s->list[i].comm;
		to->order = s->list[i].order;
	}
	s->n = n;
	qsort(s->list, s->n, sizeof(*s->list), by_time);
}

static bool turns_are_cut(struct json_object *r, struct json_object **ret_cut)
{
	for (size_t i = 0; i < field_count(r, "cut"); i++) {
		const char *what;

		*ret_cut = field_at(r, "cut", i);
		what = field_text(*ret_cut, "what");
		if (what && strcmp(what, "turns") == 0)
			return true;
	}
	return false;
}

/*
 * Returns the length of the time that the turns of CPU are parts of, or 0 if the report does not
 * say. It is the time that the CPU's trace covers, without what lies before the oldest turn of a
 * cut list. For a CPU without a trace it is the time from the oldest turn to the trigger (time 0).
 */
static double window_of(struct json_object *r, struct json_object *cpu)
{
	struct json_object *cut;
	int64_t begin, end, oldest = 0;
	bool some = field_i64(field_at(r, "turns", 0), "atNSec", &oldest);

	if (!field_i64(cpu, "begin.atNSec", &begin) || !field_i64(cpu, "end.atNSec", &end))
		return some && oldest < 0 && field_text(cpu, "why") ? -(double)oldest : 0;
	if (some && turns_are_cut(r, &cut) && oldest > begin)
		begin = oldest;
	return end > begin ? (double)end - (double)begin : 0;
}

/* Returns false when there is no memory or CPU has no number. The caller frees ret->list always. */
static bool collect(struct json_object *r, struct json_object *cpu, struct shares *ret)
{
	size_t n = field_count(r, "turns");
	uint64_t id, on;

	*ret = (struct shares){.nsec = window_of(r, cpu)};
	ret->list = calloc(n + 1, sizeof(*ret->list));
	if (!ret->list || !field_u64(cpu, "cpu", &id))
		return false;
	for (size_t i = 0; i < n; i++) {
		struct json_object *turn = field_at(r, "turns", i);
		struct share *share = &ret->list[ret->n];
		int64_t from, until;

		if (!field_u64(turn, "cpu", &on) || on != id)
			continue;
		*share = (struct share){.comm = field_text(turn, "comm"), .order = i};
		share->certain = field_true(turn, "certain") && field_u64(turn, "tid", &share->tid);
		if (!share->certain)
			share->tid = 0;
		if (field_i64(turn, "atNSec", &from) && field_i64(turn, "untilNSec", &until) &&
		    from < until)
			share->nsec = (double)until - (double)from;
		ret->last = *share;
		ret->n++;
	}
	ret->turns = ret->n;
	add_up(ret);
	return true;
}

/* Prints "comm/tid" and returns the number of columns. */
static size_t print_thread(FILE *out, const struct share *s)
{
	char number[24];
	size_t used;

	if (!s->certain)
		return text_puts(out, "uncertain", 0);
	used = text_puts(out, s->comm ? s->comm : "", 15);
	snprintf(number, sizeof(number), "/%ju", (uintmax_t)s->tid);
	return used + text_puts(out, number, 0);
}

static void print_shares(FILE *out, const struct shares *s)
{
	for (size_t i = 0; i < s->n && i < MAX_SHARES; i++) {
		double percent = s->nsec > 0 ? s->list[i].nsec * 100 / s->nsec : -1;

		fputs(i > 0 ? ", " : "", out);
		/* Rounded down, as 100.0 % means the whole time. More contradicts the report. */
		if (percent >= 0 && percent <= 100)
			fprintf(out, "%ju.%ju %% ", (uintmax_t)percent,
				(uintmax_t)(percent * 10) % 10);
		else
			fputs("- ", out);
		print_thread(out, &s->list[i]);
	}
	if (s->n > MAX_SHARES)
		fprintf(out, ", and %zu more", s->n - MAX_SHARES);
	fputc('\n', out);
}

void show_turns(FILE *out, struct json_object *r)
{
	size_t n = field_count(r, "cpus");
	struct json_object *cut;

	if (field_count(r, "turns") == 0 || (n <= 1 && field_count(r, "threads") <= 1))
		return;
	fputs("\nCPU   TURNS LAST THREAD            THREADS BY SHARE OF THE TIME", out);
	if (turns_are_cut(r, &cut))
		fprintf(out, " (newest %s of %s turns)", figure_field_count(cut, "kept").text,
			figure_field_count(cut, "total").text);
	fputc('\n', out);
	for (size_t i = 0; i < SHOW_CPUS(n); i++) {
		struct json_object *cpu = field_at(r, "cpus", i);
		struct shares shares;
		size_t used;

		if (collect(r, cpu, &shares)) {
			fprintf(out, "%3s %7zu ", figure_field_id(cpu, "cpu").text, shares.turns);
			if (shares.turns > 0) {
				used = print_thread(out, &shares.last);
				fprintf(out, "%*s ", MAX_OF(NAME_COLUMN - (int)used, 0), "");
				print_shares(out, &shares);
			} else {
				fputs("-\n", out);
			}
		}
		free(shares.list);
	}
	show_more(out, n, SHOW_CPUS(n));
}

/* Appends ",FIRST-LAST" to RET. A range that does not fit is left out, and "~" marks the place. */
static void append_range(char *ret, size_t size, unsigned first, unsigned last)
{
	size_t used = strlen(ret);
	char range[32];

	if (first == last)
		snprintf(range, sizeof(range), "%s%u", used ? "," : "", first);
	else
		snprintf(range, sizeof(range), "%s%u-%u", used ? "," : "", first, last);
	if (used + strlen(range) + 2 < size)
		strcpy(ret + used, range);
	else if (used && ret[used - 1] != '~')
		strcpy(ret + used, "~");
}

void show_turns_cpus_of(struct json_object *r, uint64_t tid, char *ret, size_t size)
{
	bool on[MAX_CPU_ID + 1] = {false};

	*ret = '\0';
	for (size_t i = 0; i < field_count(r, "turns"); i++) {
		struct json_object *turn = field_at(r, "turns", i);
		uint64_t cpu, of;

		if (field_u64(turn, "tid", &of) && of == tid && field_u64(turn, "cpu", &cpu) &&
		    cpu < MAX_CPU_ID)
			on[cpu] = true;
	}
	for (unsigned i = 0, first = 0; i < MAX_CPU_ID; i++) {
		if (on[i] && (i == 0 || !on[i - 1]))
			first = i;
		if (on[i] && !on[i + 1])
			append_range(ret, size, first, i);
	}
}
