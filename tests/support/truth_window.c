/*
 * What a decoder must find in a window of a trace, from the truth file:
 *
 *   truth_window TRUTHFILE [--from-tsc=0xTSC] [--stop=N|last] [--hash] [--insns] [--marks]
 *
 * Prints {"instructions":N,"ipHash":"..."}: everything executed from the PSB with that TSC
 * (default: the first) up to the Nth time that the recorder stopped tracing (counted from 1; one
 * before the first instruction counts too), the last stop there was, or the end of the file.
 * --insns: before it one hexadecimal address a line. --marks: all marks, and nothing else.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/emu/truth.h"
#include "tests/support/truth.h"

#define FNV_BASIS 0xcbf29ce484222325ull
#define FNV_PRIME 0x100000001b3ull

struct window {
	const char *path;
	bool from_given, hash, insns, marks;
	uint64_t from;
	long stop; /* 0: end of file; -1: last */
	/* results */
	bool inside;
	uint64_t instructions, fnv;
	uint64_t stops;
};

static void hash_ip(struct window *w, uint64_t ip)
{
	for (int i = 0; i < 8; i++) {
		w->fnv ^= ip & 0xff;
		w->fnv *= FNV_PRIME;
		ip >>= 8;
	}
}

static void add(struct window *w, const struct truth_event *e)
{
	w->instructions += e->n * e->times;
	if (!w->hash && !w->insns)
		return;
	for (uint64_t t = 0; t < e->times; t++) {
		uint64_t ip = e->block->ip;

		for (unsigned int i = 0; i < e->n; i++) {
			if (w->hash)
				hash_ip(w, ip);
			if (w->insns)
				printf("%" PRIx64 "\n", ip);
			ip += e->block->length[i];
		}
	}
}

static void show(const struct truth_event *e)
{
	static const char *const names[] = {[TRUTH_PSB] = "psb",
					    [TRUTH_STOP] = "stop",
					    [TRUTH_START] = "start",
					    [TRUTH_TIME] = "time",
					    [TRUTH_JUMP] = "jump"};

	if (e->item == TRUTH_FIRST_ID || e->item == TRUTH_TIME)
		return;
	printf("%s tsc %" PRIx64 " pos %" PRIu64 " ip %" PRIx64 " user %d generation %u\n",
	       names[e->item], e->tsc, e->pos, e->ip, e->user, e->generation);
}

/* True when the window ends here. */
static bool take(struct window *w, const struct truth_event *e, uint64_t last_stop)
{
	if (w->marks)
		show(e);
	if (e->item == TRUTH_FIRST_ID && w->inside)
		add(w, e);
	if (e->item == TRUTH_PSB && (!w->from_given || e->tsc == w->from))
		w->inside = true;
	if (e->item == TRUTH_STOP)
		w->stops++;
	/* The recorder counts on for each start and each stop: emuring_cpu.want. */
	return e->item == TRUTH_STOP && (w->stop < 0	? w->stops == last_stop
					 : w->stop == 0 ? false
							: e->generation / 2 >= (uint64_t)w->stop);
}

static int walk(struct window *w, uint64_t last_stop, uint64_t *ret_stops)
{
	struct truth_reader r;
	struct truth_event e;
	int result = truth_reader_open(&r, w->path);

	*ret_stops = 0;
	while (result >= 0 && (result = truth_reader_next(&r, &e)) > 0) {
		if (e.item == TRUTH_STOP)
			++*ret_stops;
		if (last_stop != UINT64_MAX && take(w, &e, last_stop))
			break;
	}
	truth_reader_done(&r);
	return result < 0 ? result : 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: truth_window TRUTHFILE [--from-tsc=TSC] [--stop=N|last] [--hash] "
			"[--insns] [--marks]\n");
	return 2;
}

static bool parse(struct window *w, int argc, char **argv)
{
	static const struct option options[] = {
		{"from-tsc", required_argument, NULL, 'f'}, {"stop", required_argument, NULL, 's'},
		{"hash", no_argument, NULL, 'h'},	    {"insns", no_argument, NULL, 'i'},
		{"marks", no_argument, NULL, 'm'},	    {0}};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'f':
			w->from = strtoull(optarg, NULL, 0);
			w->from_given = true;
			break;
		case 's': w->stop = strcmp(optarg, "last") == 0 ? -1 : atol(optarg); break;
		case 'h': w->hash = true; break;
		case 'i': w->insns = true; break;
		case 'm': w->marks = true; break;
		default: return false;
		}
	}
	if (optind != argc - 1)
		return false;
	w->path = argv[optind];
	return true;
}

int main(int argc, char **argv)
{
	struct window w = {.fnv = FNV_BASIS};
	uint64_t stops = 0;
	int r = 0;

	if (!parse(&w, argc, argv))
		return usage();
	if (w.stop < 0)
		r = walk(&w, UINT64_MAX, &stops);
	if (r == 0)
		r = walk(&w, stops, &(uint64_t){0});
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", w.path, strerror(-r));
		return 1;
	}
	if (!w.inside) {
		fprintf(stderr, "%s: no such PSB\n", w.path);
		return 1;
	}
	if (!w.marks)
		printf("{\"instructions\":%" PRIu64 ",\"ipHash\":\"%016" PRIx64 "\"}\n",
		       w.instructions, w.fnv);
	return 0;
}
