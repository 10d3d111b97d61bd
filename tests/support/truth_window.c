/*
 * Prints what a decoder must find in a snapshot, thread by thread, from a truth directory:
 *
 *   truth_window DIR [--cpu=N:FROM:STOP ...] [--stretches] [--insns] [--marks] [--no-hash]
 *
 * FROM is the TSC of the first PSB of that CPU's trace, STOP the time when it was stopped
 * (hexadecimal); without --cpu: everything. Prints one line for each thread that executed anything
 * there, in order of tid, {"pid":P,"tid":T,"instructions":N,"ipHash":"..."}, and at the end
 * {"threads":N,"instructions":N}. --stretches: before a thread's line, one line per stretch, with
 * the CPU and the TSC of its begin. --insns: before a thread's line its addresses, one per line,
 * with "# cpu N pid P tid T" above each stretch. --marks: prints all marks, and nothing else.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/emu/plugin/truth.h"
#include "tests/support/truth_walk.h"

#define MAX_SPANS 256

struct sum {
	uint64_t instructions, hash;
};

struct window {
	const char *dir;
	struct truth_span spans[MAX_SPANS];
	size_t n_spans;
	bool stretches, insns, marks, no_hash;
	/* results */
	struct truth_thread who;
	uint32_t cpu;
	uint64_t tsc;
	struct sum stretch, thread;
	uint64_t n_threads, total;
};

static void show_stretch(const struct window *w)
{
	if (w->stretches && w->stretch.instructions > 0)
		printf("{\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"cpu\":%" PRIu32
		       ",\"tsc\":\"0x%" PRIx64 "\",\"instructions\":%" PRIu64
		       ",\"ipHash\":\"%016" PRIx64 "\"}\n",
		       w->who.pid, w->who.tid, w->cpu, w->tsc, w->stretch.instructions,
		       w->stretch.hash);
}

static void on_begin(void *userdata, struct truth_thread who)
{
	struct window *w = userdata;

	w->who = who;
	w->thread = w->stretch = (struct sum){.hash = TRUTH_FNV_BASIS};
}

static void on_stretch(void *userdata, uint32_t cpu, uint64_t tsc)
{
	struct window *w = userdata;

	show_stretch(w);
	w->stretch = (struct sum){.hash = TRUTH_FNV_BASIS};
	w->cpu = cpu;
	w->tsc = tsc;
	if (w->insns)
		printf("# cpu %" PRIu32 " pid %" PRIu32 " tid %" PRIu32 "\n", cpu, w->who.pid,
		       w->who.tid);
}

static void print_ips(const struct truth_event *e)
{
	for (uint64_t t = 0; t < e->times; t++) {
		uint64_t ip = e->block->ip;

		for (unsigned int i = 0; i < e->n; i++) {
			printf("%" PRIx64 "\n", ip);
			ip += e->block->length[i];
		}
	}
}

static void on_run(void *userdata, const struct truth_event *e)
{
	struct window *w = userdata;

	w->stretch.instructions += e->n * e->times;
	w->thread.instructions += e->n * e->times;
	if (!w->no_hash)
		w->thread.hash = truth_hash(w->thread.hash, e);
	if (w->stretches)
		w->stretch.hash = truth_hash(w->stretch.hash, e);
	if (w->insns)
		print_ips(e);
}

static void on_end(void *userdata)
{
	struct window *w = userdata;

	if (w->thread.instructions == 0)
		return;
	show_stretch(w);
	printf("{\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"instructions\":%" PRIu64
	       ",\"ipHash\":\"%016" PRIx64 "\"}\n",
	       w->who.pid, w->who.tid, w->thread.instructions, w->thread.hash);
	w->n_threads++;
	w->total += w->thread.instructions;
}

static void on_mark(void *userdata, const struct truth_event *e)
{
	static const char *const names[] = {
		[TRUTH_PSB] = "psb",   [TRUTH_STOP] = "stop",	[TRUTH_TIME] = "time",
		[TRUTH_JUMP] = "jump", [TRUTH_ENTER] = "enter", [TRUTH_OVERFLOW] = "overflow"};
	const struct window *w = userdata;

	if (e->item != TRUTH_TIME)
		printf("%" PRIu32 ".%" PRIu32 " %s tsc %" PRIx64 " pos %" PRIu64 " ip %" PRIx64
		       " flag %d generation %" PRIu32 " cpu %" PRIu32 "\n",
		       w->who.pid, w->who.tid, names[e->item], e->tsc, e->pos, e->ip, e->flag,
		       e->generation, e->cpu);
}

static int usage(void)
{
	fprintf(stderr, "usage: truth_window DIR [--cpu=N:FROM:STOP ...] [--stretches] [--insns] "
			"[--marks] [--no-hash]\n");
	return 2;
}

static bool parse(struct window *w, int argc, char **argv)
{
	static const struct option options[] = {
		{"cpu", required_argument, NULL, 'c'}, {"stretches", no_argument, NULL, 's'},
		{"insns", no_argument, NULL, 'i'},     {"marks", no_argument, NULL, 'm'},
		{"no-hash", no_argument, NULL, 'n'},   {0}};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			if (w->n_spans == MAX_SPANS ||
			    truth_span_parse(optarg, &w->spans[w->n_spans++]) < 0)
				return false;
			break;
		case 's': w->stretches = true; break;
		case 'i': w->insns = true; break;
		case 'm': w->marks = true; break;
		case 'n': w->no_hash = true; break;
		default: return false;
		}
	}
	w->dir = argv[optind];
	return optind == argc - 1;
}

int main(int argc, char **argv)
{
	static struct window w;
	struct truth_visitor v = {.begin = on_begin, .userdata = &w};
	char *bad;
	int r;

	if (!parse(&w, argc, argv))
		return usage();
	if (w.marks) {
		v.mark = on_mark;
	} else {
		v.stretch = on_stretch;
		v.run = on_run;
		v.end = on_end;
	}
	r = truth_walk(w.dir, w.spans, w.n_spans, &v, &bad);
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", bad ? bad : w.dir, strerror(-r));
		free(bad);
		return 1;
	}
	if (!w.marks)
		printf("{\"threads\":%" PRIu64 ",\"instructions\":%" PRIu64 "}\n", w.n_threads,
		       w.total);
	return 0;
}
