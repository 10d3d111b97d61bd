/*
 * Checks that only executed instructions were decoded, and that nothing is missing without a gap:
 *
 *   truth_subset DIR [--cpu=N:FROM:STOP ...] < INSNS
 *
 * INSNS is the view "insns" of a snapshot: addresses, "# cpu N pid P tid T" before another thread
 * or CPU, and "# gap KIND" where something is missing on the last named CPU. DIR and --cpu are the
 * same as for truth_window.
 *
 * A piece is everything decoded of one thread on one CPU between two gaps of that CPU. A thread's
 * pieces on a CPU must occur, in order and each without a hole, in what the thread executed there.
 * The piece before the CPU's first gap begins where the truth begins; the piece behind the last gap
 * ends where the truth ends. Without gaps, decoded and executed instructions are therefore equal.
 *
 * Prints {"pid","tid","cpu","decoded","executed","pieces"} for each thread and CPU, and at the end
 * {"decoded","executed","unattributed","pieces","gaps":{KIND:N}}. Exits with 1 on a mismatch, after
 * printing the first wrong piece of each thread and CPU on stderr.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "tests/support/subset.h"
#include "tests/support/truth_walk.h"

#define MAX_SPANS 256
#define MAX_KINDS 64

struct kind {
	char name[48];
	uint64_t count;
};

struct check {
	struct truth_span spans[MAX_SPANS];
	size_t n_spans;
	struct subset subset;
	struct truth_thread who; /* owner of the truth file being read */
	struct subset_lane *lane;
	uint32_t cpu; /* named last in INSNS */
	uint64_t unattributed;
	struct kind kinds[MAX_KINDS];
	size_t n_kinds;
};

static void on_begin(void *userdata, struct truth_thread who)
{
	struct check *c = userdata;

	c->who = who;
	c->lane = NULL;
}

static void on_stretch(void *userdata, uint32_t cpu, uint64_t tsc)
{
	struct check *c = userdata;

	(void)tsc;
	c->lane = subset_lane(&c->subset, c->who.pid, c->who.tid, cpu);
}

static void on_run(void *userdata, const struct truth_event *e)
{
	struct check *c = userdata;

	for (uint64_t t = 0; t < e->times; t++) {
		uint64_t ip = e->block->ip;

		for (unsigned int i = 0; i < e->n; i++) {
			subset_executed(&c->subset, c->lane, ip);
			ip += e->block->length[i];
		}
	}
}

static void count_gap(struct check *c, const char *name)
{
	size_t i = 0;

	while (i < c->n_kinds && strcmp(c->kinds[i].name, name) != 0)
		i++;
	if (i == MAX_KINDS)
		return;
	if (i == c->n_kinds)
		snprintf(c->kinds[c->n_kinds++].name, sizeof(c->kinds[0].name), "%s", name);
	c->kinds[i].count++;
}

/* False: unknown kind of line. */
static bool read_comment(struct check *c, const char *line)
{
	char kind[48];
	uint32_t cpu, pid, tid;

	if (sscanf(line, "# gap %47[a-z0-9-]", kind) == 1) {
		count_gap(c, kind);
		subset_gap(&c->subset, c->cpu);
		return true;
	}
	if (strncmp(line, "# recording ", 12) == 0)
		return true;
	if (sscanf(line, "# cpu %" SCNu32, &cpu) != 1)
		return false;
	c->cpu = cpu;
	c->lane = NULL;
	if (sscanf(line, "# cpu %" SCNu32 " pid %" SCNu32 " tid %" SCNu32, &cpu, &pid, &tid) == 3)
		c->lane = subset_lane(&c->subset, pid, tid, cpu);
	return true;
}

static bool read_insns(struct check *c, FILE *f)
{
	char *line = NULL;
	size_t room = 0;
	bool fine = true;

	c->lane = NULL;
	while (fine && getline(&line, &room, f) > 0) {
		char *end;
		uint64_t ip = strtoull(line, &end, 16);

		if (*line == '#')
			fine = read_comment(c, line);
		else if (end == line || *end != '\n')
			fine = false;
		else if (c->lane != NULL)
			subset_decoded(&c->subset, c->lane, ip);
		else
			c->unattributed++;
	}
	if (!fine)
		fprintf(stderr, "invalid line: %s", line);
	free(line);
	return fine;
}

static bool report(struct check *c)
{
	uint64_t decoded = 0, executed = 0, pieces = 0;
	const struct subset *s = &c->subset;
	bool fine = true;

	for (size_t i = 0; i < s->n_lanes; i++) {
		const struct subset_lane *l = s->lanes[i];

		printf("{\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"cpu\":%" PRIu32
		       ",\"decoded\":%" PRIu64 ",\"executed\":%zu,\"pieces\":%" PRIu64 "}\n",
		       l->pid, l->tid, l->cpu, l->total, l->truth.n, l->pieces);
		if (l->wrong[0] != '\0')
			fprintf(stderr, "pid %" PRIu32 " tid %" PRIu32 " cpu %" PRIu32 ": %s\n",
				l->pid, l->tid, l->cpu, l->wrong);
		fine = fine && l->wrong[0] == '\0';
		decoded += l->total;
		executed += l->truth.n;
		pieces += l->pieces;
	}
	printf("{\"decoded\":%" PRIu64 ",\"executed\":%" PRIu64 ",\"unattributed\":%" PRIu64
	       ",\"pieces\":%" PRIu64 ",\"gaps\":{",
	       decoded, executed, c->unattributed, pieces);
	for (size_t i = 0; i < c->n_kinds; i++)
		printf("%s\"%s\":%" PRIu64, i > 0 ? "," : "", c->kinds[i].name, c->kinds[i].count);
	printf("}}\n");
	return fine;
}

static int usage(void)
{
	fprintf(stderr, "usage: truth_subset DIR [--cpu=N:FROM:STOP ...] < INSNS\n");
	return 2;
}

static bool parse(struct check *c, int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		if (c->n_spans == MAX_SPANS || strncmp(argv[i], "--cpu=", 6) != 0 ||
		    truth_span_parse(argv[i] + 6, &c->spans[c->n_spans++]) < 0)
			return false;
	}
	return argc >= 2 && argv[1][0] != '-';
}

int main(int argc, char **argv)
{
	static struct check c;
	const struct truth_visitor v = {
		.begin = on_begin, .stretch = on_stretch, .run = on_run, .userdata = &c};
	char *bad;
	bool fine;
	int r;

	if (!parse(&c, argc, argv))
		return usage();
	r = truth_walk(argv[1], c.spans, c.n_spans, &v, &bad);
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", bad ? bad : argv[1], strerror(-r));
		free(bad);
		return 1;
	}
	fine = read_insns(&c, stdin);
	subset_end(&c.subset);
	fine = report(&c) && fine;
	subset_done(&c.subset);
	return fine ? 0 : 1;
}
