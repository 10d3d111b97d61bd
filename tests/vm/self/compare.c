/*
 * Compares a bundle that was recorded in a self-traced virtual machine with what its CPUs executed:
 * compare BUNDLE TRUTH-DIRECTORY [EVENT]. Or compares what perf script prints (perf_lines.h), from
 * standard input: compare --perf TRUTH-DIRECTORY. For each CPU, the instructions that the decoder
 * claims must be those of the log (truthlog.h), one by one, from the stop of the snapshot back to
 * the first PSB. An instruction of the log that the decoder does not claim must lie in a gap, or
 * have begun without being completed. Then, with EVENT, the times of stops (times.h).
 *
 * Prints one line a CPU, and one for all with the share of each gap. Exits with 1 if anything
 * differs, 2 if the files cannot be used.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/packet/fault.h"
#include "decoder/worker/replay/replay.h"
#include "decoder/worker/view/views.h"
#include "proto/base.h"
#include "tests/vm/self/intervals.h"
#include "tests/vm/self/perf_lines.h"
#include "tests/vm/self/times.h"
#include "tests/vm/self/truthlog.h"

/* Entries of a decoded stream that are no addresses: no instruction has these. An interrupt or
 * fault in front of the instruction with these lowest 48 bits (0: another begin or end of a
 * stretch), and a gap with the fault's number. */
#define BOUNDARY	0x8002000000000000ull
#define IS_BOUNDARY(v)	((v) >> 48 == 0x8002)
#define GAP		0x8003000000000000ull
#define IS_GAP(v)	((v) >> 48 == 0x8003)
#define LOW_48(address) ((address)&0xffffffffffffull)

/* Behind a difference, so many instructions must be equal to find the place again. */
#define KEY 4000u
/* One stop differs from another within so many instructions. */
#define MOST 1000000u
/* Instructions of the log that are read besides twice as many as the decoder claims: gaps. */
#define GAPS_MOST 40000000u
/* Differences that are printed. */
#define MAX_SAID 5u

/* The user code from entry number AT on is of thread TID. */
struct mark {
	size_t at;
	uint32_t tid; /* 0: the decoder does not know */
};

struct stream {
	uint64_t *v;
	size_t n, capacity;
	struct mark *marks;
	size_t n_marks, marks_capacity;
	struct intervals times;
	uint32_t
		*tried; /* as cpu.match, of the place in the log that was tried last; may be NULL */
};

struct cpu {
	struct stream decoded, truth;
	bool perf;   /* decoded by perf: gaps are numbers of its errors */
	uint64_t lo; /* of the last item */
	uint32_t number;
	int stop; /* the snapshot's among all stops of this CPU; -1: not found */
	uint64_t instructions, equal, missing, attempts, restarts, differences;
	uint64_t gaps[256];
	uint32_t *match; /* of each decoded entry: its number in the log, and 1 more; 0: none */
	uint64_t stretches, wrong, unknown, unknown_insns;
	struct intervals_result times;
	uint64_t nobodys; /* user instructions whose thread the log does not say */
};

static void stream_done(struct stream *s)
{
	free(s->v);
	free(s->marks);
	free(s->tried);
	intervals_done(&s->times);
}

static void append(struct stream *s, uint64_t v)
{
	if (ARRAY_RESERVE(s->v, s->capacity, s->n + 1) < 0)
		abort();
	s->v[s->n++] = v;
}

static void append_mark(struct stream *s, uint32_t tid)
{
	if (s->n_marks > 0 && s->marks[s->n_marks - 1].tid == tid)
		return;
	if (ARRAY_RESERVE(s->marks, s->marks_capacity, s->n_marks + 1) < 0)
		abort();
	s->marks[s->n_marks++] = (struct mark){s->n, tid};
}

/* --- What the decoder claims --- */

static void take_ips(void *userdata, const uint64_t *ips, size_t n)
{
	for (size_t i = 0; i < n; i++)
		append(userdata, ips[i]);
}

static int on_stretch(void *userdata, const struct replay_stretch *s)
{
	struct cpu *c = &((struct cpu *)userdata)[s->cpu];
	struct stream *to = &c->decoded;

	append_mark(to, s->thread ? s->thread->tid : 0);
	for (size_t i = 0; i < s->n_items; i++) {
		const struct flow_item *item = &s->items[i];

		intervals_append(&to->times, to->n, c->lo, item->tsc_hi, false);
		/* A later packet may have ended the batch or made the mark. */
		if (item->kind != FLOW_END && item->kind != FLOW_MARK)
			c->lo = item->tsc_lo;
		if (!views_each_run(s, item, take_ips, to))
			return -ENOMEM;
		switch (item->kind) {
		case FLOW_GAP:
			append(to, GAP + (s->gaps[item->gap - s->first_gap].fault & 0xff));
			break;
		case FLOW_ASYNC: append(to, BOUNDARY | LOW_48(item->from)); break;
		case FLOW_DISABLE:
			if (item->flags & FLOW_ASYNC_STOP)
				append(to, BOUNDARY | LOW_48(item->from));
			break;
		case FLOW_FAR:
		case FLOW_SYSCALL:
		case FLOW_ENABLE: append(to, BOUNDARY); break;
		default: break;
		}
	}
	return 0;
}

/* --- What perf claims --- */

#define PERF_CPUS 64u

static void on_perf_line(void *userdata, const struct perf_line *line)
{
	struct cpu *c = &((struct cpu *)userdata)[MIN_OF(line->cpu, PERF_CPUS - 1)];

	c->number = line->cpu;
	switch (line->kind) {
	case PERF_LINE_INSTRUCTION:
		append_mark(&c->decoded, line->tid);
		append(&c->decoded, line->ip);
		break;
	case PERF_LINE_BRANCH:
		if (line->interrupt || line->edge)
			append(&c->decoded, BOUNDARY | LOW_48(line->ip));
		break;
	case PERF_LINE_ERROR: append(&c->decoded, GAP + line->error); break;
	}
}

/* --- What executed --- */

static void read_chunk(const uint8_t *bytes, struct stream *to)
{
	const struct truthlog_chunk *head = (const void *)bytes;
	uint64_t ip = 0;

	for (size_t at = sizeof(*head); at < head->used;) {
		if (bytes[at] != 0) {
			ip += bytes[at++];
		} else {
			memcpy(&ip, bytes + at + 1, 8);
			at += TRUTHLOG_ITEM;
		}
		if (TRUTHLOG_IS_THREAD(ip))
			append_mark(to, (uint32_t)ip);
		else if (TRUTHLOG_IS_TIME(ip) || TRUTHLOG_IS_ENTRY(ip))
			intervals_append(&to->times, to->n, LOW_48(ip), LOW_48(ip),
					 TRUTHLOG_IS_ENTRY(ip));
		else
			append(to, ip);
	}
}

/* How many instructions a chunk has. */
static size_t count_chunk(const uint8_t *bytes)
{
	const struct truthlog_chunk *head = (const void *)bytes;
	size_t n = 0;

	for (size_t at = sizeof(*head); at < head->used; n++)
		at += bytes[at] != 0 ? 1 : TRUTHLOG_ITEM;
	return n;
}

static int by_number(const void *a, const void *b)
{
	const struct truthlog_chunk *x = *(const void *const *)a, *y = *(const void *const *)b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* Appends the last MAX instructions, or some more, of file FILE of CPU. 0; -ENOENT: there is no
 * such file. */
static int read_truth(const char *dir, uint32_t cpu, unsigned int file, size_t max,
		      struct stream *to)
{
	const size_t size = (size_t)TRUTHLOG_CHUNK * TRUTHLOG_CHUNKS;
	const uint8_t *chunks[TRUTHLOG_CHUNKS], *bytes;
	char path[4096];
	size_t n = 0, first, some = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/cpu%" PRIu32 ".%u", dir, cpu, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return -errno;
	for (size_t i = 0; i < TRUTHLOG_CHUNKS; i++) {
		const struct truthlog_chunk *head = (const void *)(bytes + i * TRUTHLOG_CHUNK);

		if (head->magic == TRUTHLOG_MAGIC && head->used <= TRUTHLOG_CHUNK)
			chunks[n++] = bytes + i * TRUTHLOG_CHUNK;
	}
	qsort(chunks, n, sizeof(*chunks), by_number);
	for (first = n; first > 0 && some < max; first--)
		some += count_chunk(chunks[first - 1]);
	for (size_t i = first; i < n; i++)
		read_chunk(chunks[i], to);
	munmap((void *)bytes, size);
	return 0;
}

/* --- The comparison, from the end to the beginning --- */

static bool is_address(uint64_t v)
{
	return !IS_BOUNDARY(v) && !IS_GAP(v);
}

/* Whether IP began and was interrupted: BOUNDARY is that of IP, or 0. */
static bool is_begun(uint64_t ip, uint64_t boundary)
{
	return boundary != 0 && LOW_48(ip) == LOW_48(boundary);
}

/* How many instructions, N at most, that end the first *AT entries of D also end the first *POS of
 * T; *AT and *POS go back to where they begin. Attempts do not count. *RET_END: all of D, up to a
 * gap or its beginning, is among them. */
static size_t equal_back(const struct stream *d, size_t *inout_at, const struct stream *t,
			 size_t *inout_pos, size_t n, bool *ret_end)
{
	uint64_t begun = 0; /* the boundary behind which no instruction was equal yet */
	size_t equal = 0, at = *inout_at, pos = *inout_pos;

	*ret_end = false;
	while (equal < n && pos > 1) {
		uint64_t v = at > 0 ? d->v[at - 1] : GAP;

		if (IS_GAP(v)) {
			*ret_end = true;
			break;
		}
		if (!is_address(v)) {
			begun = LOW_48(v) != 0 ? v : begun;
			at--;
		} else if (t->v[pos - 1] == v) {
			if (d->tried)
				d->tried[at - 1] = (uint32_t)pos;
			begun = 0;
			at--;
			pos--;
			equal++;
		} else if (is_begun(t->v[pos - 1], begun) ||
			   (pos < t->n && t->v[pos - 1] == t->v[pos])) {
			pos--;
		} else {
			break;
		}
	}
	*inout_at = at;
	*inout_pos = pos;
	return equal;
}

static void differs(struct cpu *c, size_t at, size_t pos)
{
	const struct stream *d = &c->decoded, *t = &c->truth;

	if (c->differences++ >= MAX_SAID)
		return;
	fprintf(stderr, "CPU %" PRIu32 ", instruction %zu of %zu (log %zu of %zu):\n  decoded",
		c->number, at, d->n, pos, t->n);
	for (size_t i = at > 6 ? at - 6 : 0; i < d->n && i < at + 3; i++)
		fprintf(stderr, "%s%" PRIx64, i + 1 == at ? " *" : " ", d->v[i]);
	fputs("\n  executed", stderr);
	for (size_t i = pos > 6 ? pos - 6 : 0; i < t->n && i < pos + 3; i++)
		fprintf(stderr, "%s%" PRIx64, i + 1 == pos ? " *" : " ", t->v[i]);
	fputc('\n', stderr);
}

/* Whether N instructions before POS in T are equal to those before AT, or all up to a gap, and each
 * executed when the decoder claims. */
static bool fits(const struct stream *d, size_t at, const struct stream *t, size_t pos, size_t n)
{
	size_t from = at;
	bool end, equal = equal_back(d, &from, t, &pos, n, &end) == n;

	return (equal || end) &&
	       (!d->tried ||
		intervals_compare(&d->times, &t->times, d->tried, from, at, false).wrong == 0);
}

/* The last place in T, at or before POS, that fits. 0: none. */
static size_t find_equal(const struct stream *d, size_t at, const struct stream *t, size_t pos,
			 size_t n)
{
	size_t p = pos;

	while (p > 0 && !fits(d, at, t, p, n))
		p--;
	return p;
}

/* The place in T, at or before POS, where D goes on before a gap or a difference. Loops, and the
 * kernel's ways in and out, are the same many times: as much as possible must be equal, and a place
 * that executed long after the time that the decoder claims is another repetition. */
static size_t find_again(const struct stream *d, size_t at, const struct stream *t, size_t pos)
{
	size_t p;

	pos = at > 0 ? intervals_not_after(&d->times, at - 1, &t->times, pos) : pos;
	p = find_equal(d, at, t, pos, MOST);

	return p > 0 ? p : find_equal(d, at, t, pos, KEY);
}

/* Compares D, whose end is before the first POS entries of T. */
static void compare_back(struct cpu *c, size_t pos)
{
	const struct stream *d = &c->decoded, *t = &c->truth;
	uint64_t begun = 0;

	for (size_t at = d->n; at > 0;) {
		uint64_t v = d->v[at - 1];

		if (IS_GAP(v)) {
			size_t p = find_again(d, at - 1, t, pos);

			c->missing += pos - p;
			c->gaps[v - GAP] += pos - p;
			pos = p;
			begun = 0;
			at--;
		} else if (!is_address(v)) {
			begun = LOW_48(v) != 0 ? v : begun;
			at--;
		} else if (pos > 0 && t->v[pos - 1] == v) {
			c->equal++;
			c->match[at - 1] = (uint32_t)pos;
			at--;
			pos--;
			begun = 0;
		} else if (pos > 1 && is_begun(t->v[pos - 1], begun)) {
			c->attempts++;
			pos--;
		} else if (pos > 1 && pos < t->n && t->v[pos - 1] == t->v[pos]) {
			c->restarts++;
			pos--;
		} else if (pos == 0) {
			differs(c, at, pos);
			return;
		} else {
			size_t p = find_again(d, at, t, pos);

			differs(c, at, pos);
			c->missing += pos - p;
			if (p == 0)
				return;
			pos = p;
		}
	}
}

/* --- Threads, from the beginning to the end --- */

/* The tid of S at entry AT; *MARK goes on. */
static uint32_t tid_at(const struct stream *s, size_t at, size_t *mark)
{
	while (*mark + 1 < s->n_marks && s->marks[*mark + 1].at <= at)
		++*mark;
	return s->n_marks > 0 && s->marks[*mark].at <= at ? s->marks[*mark].tid : 0;
}

/* Compares the thread of each user instruction that is equal. A stretch: user code without a
 * boundary in it. */
static void compare_threads(struct cpu *c)
{
	const struct stream *d = &c->decoded, *t = &c->truth;
	size_t dmark = 0, tmark = 0;
	bool begins = true;

	for (size_t i = 0; i < d->n; i++) {
		uint32_t claimed, real;

		if (!is_address(d->v[i]))
			begins = true;
		if (!is_address(d->v[i]) || d->v[i] >> 63 || c->match[i] == 0)
			continue;
		claimed = tid_at(d, i, &dmark);
		real = tid_at(t, c->match[i] - 1u, &tmark);
		c->nobodys += real == 0;
		if (real == 0)
			continue;
		c->stretches += begins;
		c->unknown += begins && claimed == 0;
		c->unknown_insns += claimed == 0;
		if (claimed != 0 && claimed != real && c->wrong++ < MAX_SAID)
			fprintf(stderr,
				"CPU %" PRIu32 ": %" PRIx64 " is of thread %" PRIu32
				", decoded as of %" PRIu32 "\n",
				c->number, d->v[i], real, claimed);
		begins = false;
	}
	if (c->stretches == 0 && c->nobodys > 0) {
		fprintf(stderr, "CPU %" PRIu32 ": the log names no thread\n", c->number);
		c->differences++;
	}
}

/* How many instructions of D are equal from the end of T back, across gaps, until there are MOST.
 */
static size_t equal_from_end(const struct stream *d, const struct stream *t)
{
	size_t at = d->n, pos = t->n, sum = 0;
	bool end = true;

	while (end && at > 0 && pos > 0 && sum < MOST) {
		sum += equal_back(d, &at, t, &pos, MOST, &end);
		while (at > 0 && !IS_GAP(d->v[at - 1]))
			at--;
		at -= at > 0;
		pos = find_equal(d, at, t, pos, MOST);
	}
	return sum;
}

/* The stop of the snapshot ends the file before whose end most is equal: all stops end alike, in
 * the kernel's own code that stops tracing. Returns its number, or -1. */
static int find_stop(const struct cpu *c, const char *dir)
{
	size_t most = 0;
	int best = -1;

	for (unsigned int i = 0;; i++) {
		struct stream t = {0};
		size_t equal;

		if (read_truth(dir, c->number, i, MOST, &t) < 0)
			return best;
		equal = equal_from_end(&c->decoded, &t);
		if (equal >= most && equal > 0) {
			most = equal;
			best = (int)i;
		}
		stream_done(&t);
	}
}

/* Returns the number of the snapshot's stop, or -1: not found, or nothing was decoded. */
static int compare_cpu(struct cpu *c, const char *dir)
{
	int stop;

	for (size_t i = 0; i < c->decoded.n; i++)
		c->instructions += is_address(c->decoded.v[i]);
	if (c->instructions == 0)
		return -1;
	c->decoded.tried = calloc(c->decoded.n, sizeof(*c->decoded.tried));
	if (!c->decoded.tried)
		abort();
	stop = find_stop(c, dir);
	/* The trace may begin before the last start. */
	for (int i = MAX_OF(stop - 1, 0); i <= stop; i++)
		read_truth(dir, c->number, (unsigned int)i, c->instructions * 2 + GAPS_MOST,
			   &c->truth);
	c->match = calloc(c->decoded.n, sizeof(*c->match));
	if (!c->match)
		abort();
	if (stop >= 0) {
		compare_back(c, c->truth.n);
		compare_threads(c);
		c->times = intervals_compare(&c->decoded.times, &c->truth.times, c->match, 0,
					     c->decoded.n, true);
		return stop;
	}
	fprintf(stderr, "CPU %" PRIu32 ": no stop of the log is the snapshot's\n", c->number);
	c->differences++;
	return -1;
}

static void report(const struct cpu *c)
{
	printf("CPU %" PRIu32 ": %" PRIu64 " instructions, %" PRIu64 " equal, %" PRIu64
	       " not claimed, %" PRIu64 " begun only, %" PRIu64 " restarted, %" PRIu64
	       " differences",
	       c->number, c->instructions, c->equal, c->missing, c->attempts, c->restarts,
	       c->differences);
	for (size_t i = 0; i < ARRAY_SIZE(c->gaps); i++)
		if (c->gaps[i] > 0 && c->perf)
			printf(", %" PRIu64 " in perf's error %zu", c->gaps[i], i);
		else if (c->gaps[i] > 0)
			printf(", %" PRIu64 " in %s", c->gaps[i], fault_name((enum fault)i));
	if (c->stretches > 0)
		printf("; %" PRIu64 " stretches of user code, %" PRIu64
		       " instructions in a wrong thread, "
		       "%" PRIu64 " stretches with %" PRIu64 " instructions without a thread",
		       c->stretches, c->wrong, c->unknown, c->unknown_insns);
	if (!c->perf)
		printf("; of %" PRIu64 " times, %" PRIu64 " wrong, %" PRIu64
		       " behind the interval, which is %" PRIu64 " ticks wide",
		       c->times.within + c->times.behind + c->times.wrong, c->times.wrong,
		       c->times.behind, c->times.known > 0 ? c->times.wide / c->times.known : 0);
	putchar('\n');
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

/* Prints the share of the executed instructions that lie in gaps, for each kind of gap. */
static void report_shares(const struct cpu *cpus, size_t n)
{
	uint64_t executed = 0, missing = 0, stretches = 0, unknown = 0;
	uint64_t gaps[ARRAY_SIZE(cpus->gaps)] = {0};

	for (size_t i = 0; i < n; i++) {
		executed += cpus[i].equal + cpus[i].missing;
		missing += cpus[i].missing;
		stretches += cpus[i].stretches;
		unknown += cpus[i].unknown;
		for (size_t k = 0; k < ARRAY_SIZE(gaps); k++)
			gaps[k] += cpus[i].gaps[k];
	}
	printf("all: %" PRIu64 " instructions executed, %.4f %% not claimed", executed,
	       percent(missing, executed));
	for (size_t k = 0; k < ARRAY_SIZE(gaps); k++)
		if (gaps[k] > 0)
			printf(", %.4f %% in %s", percent(gaps[k], executed),
			       fault_name((enum fault)k));
	printf("; %" PRIu64 " stretches, %.4f %% without a thread\n", stretches,
	       percent(unknown, stretches));
}

/* Compares and prints each CPU. 0; 1: something differs. */
static int compare_all(struct cpu *cpus, size_t n, const char *dir)
{
	uint64_t differences = 0, instructions = 0;

	for (size_t i = 0; i < n; i++) {
		cpus[i].stop = compare_cpu(&cpus[i], dir);
		report(&cpus[i]);
		differences += cpus[i].differences + cpus[i].wrong + cpus[i].times.wrong;
		instructions += cpus[i].instructions;
		stream_done(&cpus[i].truth);
		stream_done(&cpus[i].decoded);
		free(cpus[i].match);
	}
	report_shares(cpus, n);
	if (instructions == 0)
		fprintf(stderr, "nothing was decoded\n");
	return differences > 0 || instructions == 0;
}

/* 0; 1: something differs; -errno. */
static int compare(const struct bundle *b, const char *dir, const char *event)
{
	const struct manifest *m = bundle_manifest(b);
	struct cpu *cpus = calloc(m->n_cpus + 1, sizeof(*cpus));
	int *stops = calloc(m->n_cpus + 1, sizeof(*stops));
	const struct replay_consumer consumer = {.stretch = on_stretch, .userdata = cpus};
	struct replay *replay = NULL;
	int unequal = 0, r = cpus && stops ? replay_new(b, NULL, &replay) : -ENOMEM;

	if (r == 0)
		r = replay_all(replay, &consumer);
	for (size_t i = 0; i < m->n_cpus && cpus; i++)
		cpus[i].number = m->cpus[i].cpu;
	if (r == 0)
		unequal = compare_all(cpus, m->n_cpus, dir);
	for (size_t i = 0; i < m->n_cpus && r == 0; i++)
		stops[i] = cpus[i].stop;
	if (r == 0 && event)
		r = times_compare(m, dir, event, stops);
	replay_free(replay);
	free(cpus);
	free(stops);
	return r < 0 ? r : unequal || r > 0;
}

static int compare_perf(const char *dir)
{
	struct cpu *cpus = calloc(PERF_CPUS, sizeof(*cpus));
	int r = cpus ? perf_lines_read(stdin, on_perf_line, cpus) : -ENOMEM;
	size_t n = PERF_CPUS;

	while (r == 0 && n > 0 && cpus[n - 1].decoded.n == 0)
		n--;
	for (size_t i = 0; i < n && r == 0; i++)
		cpus[i].perf = true;
	if (r == 0)
		r = compare_all(cpus, n, dir);
	free(cpus);
	return r < 0 ? 2 : r;
}

int main(int argc, char **argv)
{
	struct bundle *b = NULL;
	int fd = argc == 3 || argc == 4 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, r;

	if (argc == 3 && strcmp(argv[1], "--perf") == 0)
		return compare_perf(argv[2]);
	if (fd < 0 || bundle_open(fd, &b) != 0) {
		fprintf(stderr, "usage: compare BUNDLE TRUTH-DIRECTORY [EVENT]\n"
				"       compare --perf TRUTH-DIRECTORY\n");
		return 2;
	}
	r = compare(b, argv[2], argv[3]);
	if (r < 0)
		fprintf(stderr, "%s\n", strerror(-r));
	bundle_free(b);
	close(fd);
	return r < 0 ? 2 : r;
}
