#include "ctl/show/suspect_words.h"

#include <stdbool.h>
#include <string.h>

#include "ctl/base/field.h"
#include "ctl/base/place.h"
#include "ctl/base/say.h"
#include "ctl/show/show_private.h"
#include "proto/base.h"

#define FEW_CALLERS	3 /* of each of several threads */
#define MAX_INSIDE	3
#define MAX_INSIDE_RARE 2
#define NAME_COLUMNS	60
#define MAX_DEADLOCK	4

/* The name of the function of O, a suspect or a part of one. */
const char *suspect_function(const struct page *p, struct json_object *o)
{
	return field_text(place_at(p->report, o, "place"), "name");
}

/* "NAME()", but a name of C++ has its parameters already. */
void suspect_put_function(const struct page *p, FILE *out, struct json_object *o)
{
	const char *name = suspect_function(p, o);

	name_puts(out, name, NAME_COLUMNS);
	if (!name || !strchr(name, '('))
		fputs("()", out);
}

/* The duration at PATH of S; 0 is shorter than a step of the trace's time. */
static void put_duration(FILE *out, struct json_object *s, const char *path)
{
	uint64_t ns;

	if (field_u64(s, path, &ns) && ns == 0)
		fputs("no measurable time", out);
	else
		fputs(figure_field_nsec(s, path).text, out);
}

/* PART in percent of WHOLE, rounded down. */
static void put_share(FILE *out, uint64_t part, uint64_t whole)
{
	if (whole == 0 || part > whole)
		fputs("- %", out);
	else
		fprintf(out, "%ju %%", (uintmax_t)((double)part * 100 / (double)whole));
}

/* ", called from A <- B", for the frame behind frame AT of thread T. */
static void put_callers(const struct page *p, FILE *out, struct json_object *t, size_t at)
{
	if (field_count(t, "stack") <= at + 1)
		return;
	fputs(", called from ", out);
	page_stack(p, out, t, at + 1, SUSPECT_CALLERS);
}

struct json_object *suspect_thread(const struct page *p, struct json_object *s)
{
	uint64_t tid;

	return field_u64(s, "tid", &tid) ? page_thread(p, tid) : NULL;
}

/* The number of the innermost frame of T in the function of S; 0 if there is none. */
static size_t frame_of(const struct page *p, struct json_object *t, struct json_object *s)
{
	const char *name = suspect_function(p, s), *other;
	const size_t n = field_count(t, "stack");

	for (size_t i = 0; name && i < n; i++) {
		other = field_text(place_of_frame(p->report, t, i), "name");
		if (other && strcmp(name, other) == 0)
			return i;
	}
	return 0;
}

/* The functions that the last branches of T entered by calls, each once, newest first. */
static void put_last_calls(const struct page *p, FILE *out, struct json_object *t, const char *but)
{
	const char *seen[3] = {NULL};
	size_t n = 0;

	for (size_t i = field_count(t, "lastBranches"); i-- > 0 && n < ARRAY_SIZE(seen);) {
		struct json_object *b = field_at(t, "lastBranches", i);
		const char *kind = field_text(b, "kind");
		const char *to = field_text(place_at(p->report, b, "to"), "name");
		bool known = !kind || !to || strncmp(kind, "call", 4) != 0 ||
			     (but && strcmp(but, to) == 0);

		for (size_t k = 0; k < n && !known; k++)
			known = strcmp(seen[k], to) == 0;
		if (known)
			continue;
		fputs(n == 0 ? "; it called last " : ", ", out);
		name_puts(out, to, NAME_COLUMNS);
		seen[n++] = to;
	}
}

static void put_crash(const struct page *p, FILE *out, struct json_object *s)
{
	const bool outside = field_true(s, "fromOutside");

	fprintf(out, "crash: process %s was %s", figure_field_id(s, "pid").text,
		outside ? "killed by a signal from outside" : "ended by a signal");
	page_before(out, s, "sinceNSec");
	fputs(": ", out);
	page_who(p, out, s, "tid");
	fputs(outside ? " was at " : " got no further than ", out);
	name_puts_place(out, place_at(p->report, s, "place"), NAME_COLUMNS);
	put_callers(p, out, suspect_thread(p, s), 0);
}

/* The thread that holds the lock of number I of the tids of S. */
static void put_holder(FILE *out, struct json_object *s, size_t i, size_t n)
{
	if (field_true(s, "cycle"))
		fprintf(out, ", for a lock of thread %s,",
			figure_field_id(field_at(s, "tids", (i + 1) % n), "").text);
}

static void put_deadlock(const struct page *p, FILE *out, struct json_object *s)
{
	const size_t n = field_count(s, "tids");
	uint64_t ns;

	if (field_true(s, "cycle"))
		fprintf(out, "deadlock: %zu threads of process %s wait for each other's locks", n,
			figure_field_id(s, "pid").text);
	else
		fprintf(out, "deadlock: each thread of process %s waits, %s for a lock",
			figure_field_id(s, "pid").text, figure_field_count(s, "waiting").text);
	if (page_age(s, "sinceNSec", &ns))
		fprintf(out, ", for %s", figure_nsec(ns).text);
	for (size_t i = 0; i < n && i < MAX_DEADLOCK; i++) {
		struct json_object *tid = field_at(s, "tids", i);
		uint64_t v;

		if (!field_u64(tid, "", &v))
			continue;
		fprintf(out, "; thread %ju", (uintmax_t)v);
		put_holder(out, s, i, n);
		fputs(" in ", out);
		page_stack(p, out, page_thread(p, v), 0, n > 2 ? FEW_CALLERS : SUSPECT_CALLERS + 1);
	}
}

static void put_long(const struct page *p, FILE *out, struct json_object *s)
{
	struct json_object *t = suspect_thread(p, s);
	uint64_t ns = 0, ended, cpu;

	suspect_put_function(p, out, s);
	page_age(s, "sinceNSec", &ns);
	fprintf(out, " has not returned for %s in ", figure_nsec(ns).text);
	page_who(p, out, s, "tid");
	if (field_u64(s, "cpuNSec", &cpu)) {
		fputs(", ", out);
		put_share(out, cpu, ns);
		fputs(" of it executing", out);
	}
	if (field_u64(s, "ended", &ended) && ended > 0) {
		fprintf(out, "; its %s before took ", figure_things(ended, "call").text);
		put_duration(out, s, "maxNSec");
		fputs(" at most", out);
	}
	put_callers(p, out, t, frame_of(p, t, s));
	put_last_calls(p, out, t, suspect_function(p, s));
}

static void put_stuck(const struct page *p, FILE *out, struct json_object *s)
{
	struct json_object *t = suspect_thread(p, s);
	const char *call = field_text(s, "systemCall.name");
	uint64_t ns = 0;

	suspect_put_function(p, out, s);
	page_age(s, "sinceNSec", &ns);
	fprintf(out, " has not returned for %s in ", figure_nsec(ns).text);
	page_who(p, out, s, "tid");
	fputs(": it sent something and waits for the answer in ", out);
	text_puts(out, call ? call : "a system call", 24);
	fprintf(out, "; its %s calls before took ", figure_field_count(s, "ended").text);
	put_duration(out, s, "maxNSec");
	fputs(" at most", out);
	put_callers(p, out, t, frame_of(p, t, s));
}

static void put_step(const struct page *p, FILE *out, const char *name)
{
	fputs(p->style->utf8 ? " \u2192 " : " -> ", out);
	name_puts(out, name, NAME_COLUMNS);
}

/* The functions in which the slowest call was, but not the steps of the linker between them. If
 * there are many, the outermost and the innermost one. */
static void put_inside(const struct page *p, FILE *out, struct json_object *s)
{
	const size_t inside = field_count(s, "inside");
	/* The function that is as rare needs room, too. */
	const size_t max = field_count(s, "rare") > 0 ? MAX_INSIDE_RARE : MAX_INSIDE;
	const char *names[MAX_INSIDE] = {NULL};
	uint64_t part = 0, whole = 0;
	size_t n = 0;

	field_u64(field_at(s, "inside", 0), "maxNSec", &part);
	field_u64(s, "maxNSec", &whole);
	for (size_t i = 0; i < inside; i++) {
		const char *name = suspect_function(p, field_at(s, "inside", i));

		if (!name || strstr(name, "@plt"))
			continue;
		names[MIN_OF(n, max - 1)] = name;
		n++;
	}
	if (n == 0)
		return;
	fputs(", ", out);
	put_share(out, part, whole);
	fputs(" of it in ", out);
	name_puts(out, names[0], NAME_COLUMNS);
	if (n > max)
		put_step(p, out, p->style->utf8 ? "\u2026" : "...");
	for (size_t i = n > max ? max - 1 : 1; i < MIN_OF(n, max); i++)
		put_step(p, out, names[i]);
}

/* The first function whose slow calls are as rare, and take as long. */
static void put_rare(const struct page *p, FILE *out, struct json_object *s)
{
	struct json_object *f = field_at(s, "rare", 0);

	if (!f)
		return;
	fputs("; as rare and as slow: ", out);
	suspect_put_function(p, out, f);
	fprintf(out, ", %s of up to %s", figure_field_things(f, "ended", "call").text,
		figure_field_nsec(f, "maxNSec").text);
}

static void put_slow(const struct page *p, FILE *out, struct json_object *s)
{
	uint64_t off = 0, max = 0;

	suspect_put_function(p, out, s);
	fprintf(out, ": %s calls, median ", figure_field_count(s, "ended").text);
	put_duration(out, s, "p50NSec");
	fprintf(out, "; %s took over %s, the last ended", figure_field_count(s, "slow").text,
		figure_field_nsec(s, "slowNSec").text);
	page_before(out, s, "lastEndNSec");
	fprintf(out, "; the slowest took %s in ", figure_field_nsec(s, "maxNSec").text);
	page_who(p, out, s, "tid");
	if (field_u64(s, "untracedNSec", &off) && field_u64(s, "maxNSec", &max) && off > max / 2) {
		fputs(", ", out);
		put_share(out, MIN_OF(off, max), max);
		fputs(" of it in the kernel or blocked", out);
	}
	put_inside(p, out, s);
	put_rare(p, out, s);
}

/* " <- A <- B": the callers of the longest call, but not the steps of the linker between them. */
static void put_lock_callers(const struct page *p, FILE *out, struct json_object *s)
{
	const size_t n = field_count(s, "callers");
	size_t shown = 0;

	for (size_t i = 0; i < n && shown < MAX_INSIDE; i++) {
		const char *name = suspect_function(p, field_at(s, "callers", i));

		if (!name || strstr(name, "@plt"))
			continue;
		fputs(shown++ == 0 ? ", called by " : p->style->utf8 ? " \u2190 " : " <- ", out);
		name_puts(out, name, NAME_COLUMNS);
	}
}

static void put_contention(const struct page *p, FILE *out, struct json_object *s)
{
	fprintf(out, "contention: %s calls waited for a lock in ",
		figure_field_count(s, "slow").text);
	suspect_put_function(p, out, s);
	fprintf(out, ", for %s or more together", figure_field_nsec(s, "waitedNSec").text);
	fprintf(out, ", while all code executed for %s", figure_field_nsec(s, "executedNSec").text);
	fprintf(out, "; the longest took %s in ", figure_field_nsec(s, "maxNSec").text);
	page_who(p, out, s, "tid");
	put_lock_callers(p, out, s);
}

/* For what thread S waits in a system call; "": not known. */
const char *suspect_waited_for(struct json_object *s)
{
	static const struct {
		const char *call, *what;
	} whats[] = {
		{"write", "a full pipe or socket"}, {"writev", "a full pipe or socket"},
		{"flock", "the lock of a file"},    {"semop", "a semaphore"},
		{"semtimedop", "a semaphore"},
	};
	const char *call = field_text(s, "systemCall.name");

	for (size_t i = 0; call && i < ARRAY_SIZE(whats); i++)
		if (strcmp(call, whats[i].call) == 0)
			return whats[i].what;
	return "";
}

static void put_wait(const struct page *p, FILE *out, struct json_object *s)
{
	uint64_t ns = 0;

	page_age(s, "sinceNSec", &ns);
	page_who(p, out, s, "tid");
	fprintf(out, " has waited %s for %s, in ", figure_nsec(ns).text, suspect_waited_for(s));
	page_stack(p, out, suspect_thread(p, s), 0, SUSPECT_CALLERS + 1);
}

/* "; thread 8 (web) holds it, and is in A <- B". */
void suspect_put_owner(const struct page *p, FILE *out, struct json_object *s)
{
	uint64_t owner;

	if (!field_u64(s, "ownerTid", &owner))
		return;
	fputs("; ", out);
	page_who(p, out, s, "ownerTid");
	fputs(" holds it", out);
	if (field_count(page_thread(p, owner), "stack") == 0)
		return;
	fputs(", and is in ", out);
	page_stack(p, out, page_thread(p, owner), 0, SUSPECT_CALLERS);
}

static void put_lock(const struct page *p, FILE *out, struct json_object *s)
{
	uint64_t ns = 0;

	page_age(s, "sinceNSec", &ns);
	page_who(p, out, s, "tid");
	fprintf(out, " has waited %s for a lock, in ", figure_nsec(ns).text);
	page_stack(p, out, suspect_thread(p, s), 0, SUSPECT_CALLERS + 1);
	suspect_put_owner(p, out, s);
}

/* ", last seen in A <- B", of the thread that has the CPU. */
static void put_place(const struct page *p, FILE *out, struct json_object *s)
{
	uint64_t tid;
	struct json_object *t = field_u64(s, "byTid", &tid) ? page_thread(p, tid) : NULL;

	if (field_count(t, "stack") == 0)
		return;
	fputs(", last seen in ", out);
	page_stack(p, out, t, 0, SUSPECT_CALLERS);
}

static void put_runnable(const struct page *p, FILE *out, struct json_object *s)
{
	page_who(p, out, s, "tid");
	fprintf(out, " lost CPU %s", figure_field_id(s, "cpu").text);
	page_before(out, s, "sinceNSec");
	fputs(", could have gone on, and got no CPU again", out);
	if (field_get(s, "byTid")) {
		fputs("; the CPU has ", out);
		page_who(p, out, s, "byTid");
		put_place(p, out, s);
	}
}

static void put_cpu_wait(const struct page *p, FILE *out, struct json_object *s)
{
	uint64_t ns = 0, waited = 0, by = 0;

	page_age(s, "sinceNSec", &ns);
	field_u64(s, "waitedNSec", &waited);
	field_u64(s, "byNSec", &by);
	page_who(p, out, s, "tid");
	fprintf(out, " could have run, and waited for a CPU for %s of the last %s; ",
		figure_nsec(waited).text, figure_nsec(ns).text);
	put_share(out, MIN_OF(by, waited), waited);
	fprintf(out, " of it process %s had the CPU: ", figure_field_id(s, "byPid").text);
	page_who(p, out, s, "byTid");
	put_place(p, out, s);
}

static void put_ran(const struct page *p, FILE *out, struct json_object *s)
{
	uint64_t ns = 0;

	page_age(s, "sinceNSec", &ns);
	page_who(p, out, s, "tid");
	fprintf(out, " had CPU %s, where the trigger was sent, without a break for the last %s",
		figure_field_id(s, "cpu").text, figure_nsec(ns).text);
}

static void put_late(const struct page *p, FILE *out, struct json_object *s)
{
	uint64_t insns = 0, all = 0;

	field_u64(s, "selfInstructions", &insns);
	field_u64(p->report, "totals.instructions", &all);
	suspect_put_function(p, out, s);
	fputs(" ran for the first time", out);
	page_before(out, s, "sinceNSec");
	fprintf(out, ", in the last 5 %% of the window: %s, %s, ",
		figure_field_things(s, "calls", "call").text,
		figure_things(insns, "instruction").text);
	put_share(out, insns, all);
	fputs(" of all", out);
}

static void put_frequency(const struct page *p, FILE *out, struct json_object *s)
{
	uint64_t mhz;

	(void)p;
	fprintf(out, "CPU %s has been slow since", figure_field_id(s, "cpu").text);
	page_before(out, s, "sinceNSec");
	if (field_u64(s, "mhz", &mhz))
		fprintf(out, ": %ju MHz, and %s MHz before", (uintmax_t)mhz,
			figure_field_count(s, "highestMhz").text);
	else
		fprintf(out, ": ratio %s, and %s before", figure_field_count(s, "ratio").text,
			figure_field_count(s, "highestRatio").text);
}

static void put_gap(const struct page *p, FILE *out, struct json_object *s)
{
	uint64_t ns;

	(void)p;
	fprintf(out, "gap %s (", figure_field_id(s, "n").text);
	text_puts(out, field_text(s, "gap"), 24);
	fputs(")", out);
	if (field_get(s, "cpu"))
		fprintf(out, " on CPU %s", figure_field_id(s, "cpu").text);
	fputs(": what happened from", out);
	page_before(out, s, "sinceNSec");
	if (page_age(s, "untilNSec", &ns))
		fprintf(out, " until %s before it", figure_nsec(ns).text);
	else
		fputs(" until then", out);
	fputs(" is not known", out);
}

/* Writes S in words to OUT. */
void suspect_put(const struct page *p, FILE *out, struct json_object *s)
{
	static const struct {
		const char *kind;
		void (*put)(const struct page *p, FILE *out, struct json_object *s);
	} kinds[] = {
		{"crash", put_crash},		{"deadlock", put_deadlock},
		{"long-call", put_long},	{"stuck-call", put_stuck},
		{"slow-calls", put_slow},	{"contention", put_contention},
		{"lock-wait", put_lock},	{"wait", put_wait},
		{"runnable", put_runnable},	{"cpu-wait", put_cpu_wait},
		{"ran-until-trigger", put_ran}, {"late-function", put_late},
		{"frequency", put_frequency},	{"gap", put_gap},
	};
	const char *kind = field_text(s, "kind");

	for (size_t i = 0; kind && i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kind, kinds[i].kind) == 0) {
			kinds[i].put(p, out, s);
			return;
		}
	/* A newer report may have other kinds. */
	text_puts(out, kind ? kind : "unknown", 40);
}
