/*
 * Compares a call stream with the calls that executed.
 *
 *   truth_calls DIR [--cpu=N:FROM:STOP ...] --clock=SHIFT:MULT:ZERO:OFFSET [--list] < STREAM
 *
 * STREAM is the view "calls" of a snapshot. DIR and --cpu are as for truth_window. --clock: time in
 * the stream is OFFSET + ZERO + (TSC * MULT >> SHIFT) ns.
 *
 * Each thread's near calls and returns, as the truth has them (truth_stack.h), must be those of the
 * stream (call_lines.h) in the same order; the time of each must lie within the stream's interval.
 * A frame that a call began and the return to its address ended must be one frame in the stream,
 * within the same frame, with as many instructions of its own. Odd returns may be missing in the
 * stream, and frames that ended by none are counted and not compared. What a call enters must be
 * the begin of the stream's function, or lie in it, with each file at one place of each process. A
 * thread that had no CPU must be off the CPU in the stream, between the same calls, and nowhere
 * else (truth_offs.h).
 *
 * Prints {"threads","calls","returns","odd","skipped","frames","open","left","lost","own","mixed",
 * "around","entries","inside","unnamed","wide","error","off",...}. "frames" were compared. Frames
 * that were not: "open" ones had not ended, "left" ones ended without their return, "lost" ones by
 * a gap of the stream. "own", "around": frames whose instructions, whose caller were compared.
 * "entries", "inside", "unnamed": calls by what they enter. "wide": mean width of the durations of
 * frames, "error": mean difference between true durations and the middle of the stream's, in ns.
 * --list: prints the truth and reads no stream. Exits with 1 after the first mismatch of each
 * thread, which stderr shows.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "tests/support/call_lines.h"
#include "tests/support/truth_offs.h"
#include "tests/support/truth_stack.h"

#define MAX_SPANS 256
#define LOOK	  256 /* steps that decide whether the stream has an odd one */

/* A function of the stream that truth's ADDRESS is in, if its file is at BASE. */
struct place {
	uint32_t pid;
	const char *image;
	uint64_t base;
	uint64_t calls;
};

struct counts {
	uint64_t threads, calls, returns, odd, skipped;
	uint64_t frames, open, left, returned, lost, own, mixed, around;
	uint64_t entries, inside, unnamed;
	double wide, error;
};

struct compare {
	struct truth_span spans[MAX_SPANS];
	size_t n_spans;
	struct truth_clock clock;
	bool list;
	struct truth_stack truth;
	struct call_lines lines;
	struct place *places;
	size_t n_places, places_room;
	struct counts counts;
	struct truth_offs_counts offs;
	/* of the thread at hand */
	const struct truth_life *life;
	const struct call_thread *thread;
	uint32_t *pairs; /* by the truth's step: the stream's step, or CALL_LINES_NONE */
	bool failed;
};

static void show_step(const struct compare *c, const char *what, const struct truth_step *s)
{
	fprintf(stderr, "  truth%s %s %" PRIx64 " %" PRIx64 " at %" PRIu64 "%s, own %" PRIu64 "\n",
		what, s->call ? "call" : "return", s->from, s->to,
		truth_clock_ns(&c->clock, s->tsc), s->odd ? " odd" : "", s->own);
}

static void show_line(const struct compare *c, const char *what, const struct call_step *s)
{
	fprintf(stderr, "  stream%s %s %s %" PRIu64 "..%" PRIu64 ", own %" PRIu64 "\n", what,
		s->call ? "call" : "return", c->lines.functions[s->function].name, s->lo, s->hi,
		s->own);
}

/* Step I of the truth is not as step K of the stream. */
static bool complain(struct compare *c, const char *what, size_t i, size_t k)
{
	fprintf(stderr, "pid %" PRIu32 " tid %" PRIu32 ", step %zu of %zu, %zu of %zu: %s\n",
		c->life->who.pid, c->life->who.tid, i, c->life->n_steps, k, c->thread->n_steps,
		what);
	for (size_t n = i - MIN_OF(i, (size_t)5); n < MIN_OF(i + 4, c->life->n_steps); n++)
		show_step(c, n == i ? " >" : "", &c->life->steps[n]);
	for (size_t n = k - MIN_OF(k, (size_t)5); n < MIN_OF(k + 4, c->thread->n_steps); n++)
		show_line(c, n == k ? " >" : "", &c->thread->steps[n]);
	c->failed = true;
	return false;
}

/* --- Steps --- */

static bool holds(const struct compare *c, size_t i, size_t k)
{
	const struct call_step *s = &c->thread->steps[k];
	uint64_t ns = truth_clock_ns(&c->clock, c->life->steps[i].tsc);

	return s->lo <= ns && ns <= s->hi;
}

/* How many of the steps from I and K on are alike, while none is odd. */
static size_t alike(const struct compare *c, size_t i, size_t k)
{
	size_t n = 0;

	while (n < LOOK && i + n < c->life->n_steps && k + n < c->thread->n_steps &&
	       c->life->steps[i + n].call == c->thread->steps[k + n].call && holds(c, i + n, k + n))
		n++;
	return n;
}

/* The order of steps joins them. */
static bool pair_steps(struct compare *c)
{
	const struct truth_life *l = c->life;
	const struct call_thread *t = c->thread;
	size_t k = 0;

	for (size_t i = 0; i < l->n_steps; i++) {
		const struct truth_step *s = &l->steps[i];

		c->pairs[i] = CALL_LINES_NONE;
		if (s->odd && (k == t->n_steps || alike(c, i, k) <= alike(c, i + 1, k))) {
			c->counts.skipped++;
			continue;
		}
		if (k == t->n_steps)
			return complain(c, "the stream ends", i, k);
		if (s->call != t->steps[k].call)
			return complain(
				c, s->call ? "the stream has no call" : "the stream has no return",
				i, k);
		if (!holds(c, i, k))
			return complain(c, "the time is wrong", i, k);
		c->counts.calls += s->call;
		c->counts.returns += !s->call;
		c->pairs[i] = (uint32_t)k++;
	}
	return k == t->n_steps || complain(c, "the truth ends", l->n_steps, k);
}

/* --- Frames --- */

static void measure(struct compare *c, const struct truth_step *s, const struct call_step *b)
{
	const struct call_step *e = &c->thread->steps[b->other];
	double took = (double)(truth_clock_ns(&c->clock, c->life->steps[s->other].tsc) -
			       truth_clock_ns(&c->clock, s->tsc));
	double middle = ((double)e->lo + (double)e->hi - (double)b->lo - (double)b->hi) / 2;

	c->counts.wide += (double)(e->hi - e->lo) + (double)(b->hi - b->lo);
	c->counts.error += took > middle ? took - middle : middle - took;
}

static bool compare_frame(struct compare *c, size_t i)
{
	const struct truth_life *l = c->life;
	const struct truth_step *s = &l->steps[i];
	const struct call_step *b = &c->thread->steps[c->pairs[i]];
	uint32_t around = s->around;

	if (c->pairs[s->other] != b->other)
		return complain(c, "the frame ends elsewhere", i, c->pairs[i]);
	c->counts.frames++;
	measure(c, s, b);
	if (!s->mixed && s->own != b->own)
		return complain(c, "other instructions", i, c->pairs[i]);
	c->counts.own += !s->mixed;
	c->counts.mixed += s->mixed;
	if (around == TRUTH_STACK_NONE || l->steps[around].other == TRUTH_STACK_NONE)
		return true;
	if (c->pairs[around] != b->around)
		return complain(c, "another caller", i, c->pairs[i]);
	c->counts.around++;
	return true;
}

/* Whether the stream says that the call at step I returned, with a step that is no odd return.
 * (What an exception reached may seem to have been jumped to from the call, if the trace began
 * within the function that caught the exception.) */
static bool returned(const struct compare *c, size_t i)
{
	uint32_t end = c->thread->steps[c->pairs[i]].other;

	if (end == CALL_LINES_NONE)
		return false;
	while (i < c->life->n_steps && c->pairs[i] != end)
		i++;
	return i == c->life->n_steps || !c->life->steps[i].odd;
}

/* The call at step I of the truth, which is in the stream. */
static bool compare_call(struct compare *c, size_t i)
{
	const struct truth_step *s = &c->life->steps[i];
	const struct call_step *b = &c->thread->steps[c->pairs[i]];

	if (s->other == TRUTH_STACK_NONE || c->pairs[s->other] == CALL_LINES_NONE) {
		c->counts.open += s->open;
		c->counts.left += !s->open;
		c->counts.returned += !s->open && returned(c, i);
		return true;
	}
	/* A gap ended it. */
	if (b->other == CALL_LINES_NONE &&
	    c->thread->steps[c->pairs[s->other]].other == CALL_LINES_NONE) {
		c->counts.lost++;
		return true;
	}
	return compare_frame(c, i);
}

/* --- Functions --- */

static struct place *place_of(struct compare *c, const char *image, uint64_t base)
{
	for (size_t i = 0; i < c->n_places; i++)
		if (c->places[i].pid == c->life->who.pid && c->places[i].base == base &&
		    strcmp(c->places[i].image, image) == 0)
			return &c->places[i];
	if (ARRAY_RESERVE(c->places, c->places_room, c->n_places + 1) < 0)
		abort();
	c->places[c->n_places] =
		(struct place){.pid = c->life->who.pid, .image = image, .base = base};
	return &c->places[c->n_places++];
}

/* Where most calls say that IMAGE is. NULL: no call says it. */
static const struct place *usual_place(const struct compare *c, const char *image)
{
	const struct place *best = NULL;

	for (size_t i = 0; i < c->n_places; i++) {
		const struct place *p = &c->places[i];

		if (p->pid == c->life->who.pid && strcmp(p->image, image) == 0 &&
		    (!best || p->calls > best->calls))
			best = p;
	}
	return best;
}

static void note_place(struct compare *c, size_t i)
{
	const struct call_function *f = &c->lines.functions[c->thread->steps[c->pairs[i]].function];
	uint64_t base = c->life->steps[i].to - f->address;

	if (c->life->steps[i].to != 0 && f->image[0] != '\0' && base % 4096 == 0)
		place_of(c, f->image, base)->calls++;
}

static bool compare_target(struct compare *c, size_t i)
{
	const struct truth_step *s = &c->life->steps[i];
	const struct call_function *f = &c->lines.functions[c->thread->steps[c->pairs[i]].function];
	const struct place *p = usual_place(c, f->image);

	if (s->to == 0)
		return true;
	if (!p || f->address == 0) {
		c->counts.unnamed++;
		return true;
	}
	if (s->to - p->base == f->address) {
		c->counts.entries++;
		return true;
	}
	c->counts.inside++;
	return s->to - p->base > f->address ||
	       complain(c, "the call enters another function", i, c->pairs[i]);
}

/* --- Threads --- */

static bool for_calls(struct compare *c, bool (*fn)(struct compare *, size_t))
{
	bool fine = true;

	for (size_t i = 0; i < c->life->n_steps && fine; i++)
		if (c->life->steps[i].call && c->pairs[i] != CALL_LINES_NONE)
			fine = fn(c, i);
	return fine;
}

static bool note(struct compare *c, size_t i)
{
	note_place(c, i);
	return true;
}

static bool compare_offs(struct compare *c, const struct truth_offs *offs)
{
	size_t stretch = 0;
	const char *wrong =
		truth_offs_check(offs, c->life, c->thread, c->pairs, &c->offs, &stretch);

	if (!wrong)
		return true;
	fprintf(stderr,
		"pid %" PRIu32 " tid %" PRIu32 ", stretch %zu of %zu, %" PRIu64 "..%" PRIu64
		": %s\n",
		c->life->who.pid, c->life->who.tid, stretch, c->life->n_stretches,
		truth_clock_ns(&c->clock, c->life->stretches[stretch - 1].end),
		truth_clock_ns(&c->clock, c->life->stretches[stretch].begin), wrong);
	for (size_t i = 0; i < c->thread->n_offs; i++)
		fprintf(stderr, "  %" PRIu64 "..%" PRIu64 "\n", c->thread->offs[i].leave,
			c->thread->offs[i].back);
	c->failed = true;
	return false;
}

static const struct call_thread *find_thread(const struct compare *c, struct truth_thread who)
{
	for (size_t i = 1; i < c->lines.n_threads; i++)
		if (c->lines.threads[i].pid == who.pid && c->lines.threads[i].tid == who.tid)
			return &c->lines.threads[i];
	return &c->lines.threads[0];
}

static void compare_thread(struct compare *c, const struct truth_life *l,
			   const struct truth_offs *offs)
{
	c->life = l;
	c->thread = find_thread(c, l->who);
	c->pairs = calloc(l->n_steps + 1, sizeof(*c->pairs));
	if (!c->pairs)
		abort();
	for (size_t i = 0; i < l->n_steps; i++)
		c->counts.odd += l->steps[i].odd;
	c->counts.threads++;
	if (pair_steps(c) && for_calls(c, compare_call) && for_calls(c, note) &&
	    for_calls(c, compare_target))
		compare_offs(c, offs);
	free(c->pairs);
}

/* --- The program --- */

static void list(const struct compare *c)
{
	for (size_t i = 0; i < c->truth.n; i++) {
		const struct truth_life *l = &c->truth.threads[i];

		printf("# pid %" PRIu32 " tid %" PRIu32 "\n", l->who.pid, l->who.tid);
		for (size_t k = 0; k < l->n_steps; k++) {
			const struct truth_step *s = &l->steps[k];

			printf("%zu %s %" PRIx64 " %" PRIx64 " %" PRIu64, k,
			       s->call ? "call" : "return", s->from, s->to,
			       truth_clock_ns(&c->clock, s->tsc));
			if (s->other != TRUTH_STACK_NONE)
				printf(" %" PRIu32, s->other);
			printf("%s\n", s->odd ? " odd" : "");
		}
	}
}

static void report(const struct compare *c)
{
	const struct counts *n = &c->counts;
	double frames = (double)MAX_OF(n->frames, UINT64_C(1));

	printf("{\"threads\":%" PRIu64 ",\"calls\":%" PRIu64 ",\"returns\":%" PRIu64
	       ",\"odd\":%" PRIu64 ",\"skipped\":%" PRIu64,
	       n->threads, n->calls, n->returns, n->odd, n->skipped);
	printf(",\"frames\":%" PRIu64 ",\"open\":%" PRIu64 ",\"left\":%" PRIu64
	       ",\"returned\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"own\":%" PRIu64
	       ",\"mixed\":%" PRIu64 ",\"around\":%" PRIu64,
	       n->frames, n->open, n->left, n->returned, n->lost, n->own, n->mixed, n->around);
	printf(",\"entries\":%" PRIu64 ",\"inside\":%" PRIu64 ",\"unnamed\":%" PRIu64, n->entries,
	       n->inside, n->unnamed);
	printf(",\"wide\":%.1f,\"error\":%.1f", n->wide / frames, n->error / frames);
	printf(",\"off\":{\"checked\":%" PRIu64 ",\"certain\":%" PRIu64 ",\"moved\":%" PRIu64
	       ",\"ns\":%" PRIu64 "},\"gaps\":%" PRIu64 ",\"again\":%" PRIu64 ",\"cut\":%" PRIu64
	       "}\n",
	       c->offs.checked, c->offs.certain, c->offs.moved, c->offs.ns, c->lines.gaps,
	       c->lines.again, c->lines.cut);
}

static bool parse(struct compare *c, int argc, char **argv)
{
	bool clock = false;

	for (int i = 2; i < argc; i++) {
		const char *a = argv[i];

		if (strncmp(a, "--clock=", 8) == 0)
			clock = sscanf(a + 8, "%u:%" SCNu32 ":%" SCNu64 ":%" SCNu64,
				       &c->clock.shift, &c->clock.mult, &c->clock.zero,
				       &c->clock.offset) == 4 &&
				c->clock.shift < 64;
		else if (strcmp(a, "--list") == 0)
			c->list = true;
		else if (c->n_spans == MAX_SPANS || strncmp(a, "--cpu=", 6) != 0 ||
			 truth_span_parse(a + 6, &c->spans[c->n_spans++]) < 0)
			return false;
	}
	return argc >= 2 && argv[1][0] != '-' && clock;
}

static bool compare_all(struct compare *c)
{
	struct truth_offs offs;
	size_t line;
	bool fine = call_lines_read(stdin, &c->lines, &line);

	if (!fine) {
		fprintf(stderr, "line %zu of the stream is damaged or the last one\n", line);
		call_lines_done(&c->lines);
		return false;
	}
	truth_offs_init(&offs, &c->truth, &c->clock);
	for (size_t i = 0; i < c->truth.n; i++)
		compare_thread(c, &c->truth.threads[i], &offs);
	truth_offs_done(&offs);
	report(c);
	call_lines_done(&c->lines);
	free(c->places);
	return !c->failed;
}

int main(int argc, char **argv)
{
	static struct compare c;
	bool fine = true;
	char *bad;
	int r;

	if (!parse(&c, argc, argv)) {
		fprintf(stderr, "usage: truth_calls DIR [--cpu=N:FROM:STOP ...]"
				" --clock=SHIFT:MULT:ZERO:OFFSET [--list] < STREAM\n");
		return 2;
	}
	r = truth_stack_read(argv[1], c.spans, c.n_spans, &c.truth, &bad);
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", bad ? bad : argv[1], strerror(-r));
		free(bad);
	} else if (c.list) {
		list(&c);
	} else {
		fine = compare_all(&c);
	}
	truth_stack_done(&c.truth);
	return r == 0 && fine ? 0 : 1;
}
