/*
 * Compares the hot loop with the stepping walk: both decode random traces, valid and damaged ones,
 * and must give the same items, gaps, marks and counts. Run by nodes_diff.tap. Run by hand with
 * other seeds, or with --one=SEED to print a difference, reduced.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/packet/packet.h"
#include "proto/base.h"
#include "tests/oracle/nodes_compare.h"
#include "tests/oracle/nodes_world.h"

#define CHANGES_MAX 4u
#define TRACES	    4u /* of one world: its own trace, and changed ones */

static const struct nodes_way right = {.stepping = true};
static const struct nodes_way ways[] = {
	{.own = true},
	{.own = true, .steps = true},
	{0},
	{.steps = true},
	{.batch_items = 32},
	{.batch_items = 100},
	{.steps = true, .batch_items = 40, .portion = FLOW_EXPAND_MIN},
	{.steps = true, .portion = FLOW_EXPAND_MIN + 7},
	{.stepping = true, .batch_items = 32},
	{.steps = true, .threads = 3, .thread_bytes = 64},
	{.steps = true, .threads = 2, .thread_bytes = 1},
	{.steps = true, .threads = 2, .thread_bytes = 1, .settle = true, .batch_items = 1},
	{.steps = true,
	 .threads = 3,
	 .thread_bytes = 1,
	 .settle = true,
	 .batch_items = 1,
	 .own = true},
	{.steps = true, .threads = 3, .thread_bytes = 300, .settle = true, .batch_items = 40},
	{.steps = true, .threads = 8, .thread_bytes = 100, .portion = FLOW_EXPAND_MIN},
};

static struct nodes_world world, spare;
static struct nodes_stream *first, *second;
static uint64_t n_items, n_ahead;

static size_t only = SIZE_MAX; /* index of the only way to try */

static const struct nodes_way *some_way(struct diff_random *r)
{
	size_t i = diff_below(r, ARRAY_SIZE(ways));

	return &ways[only < ARRAY_SIZE(ways) ? only : i];
}

static struct nodes_compare compare_of(const struct nodes_world *w)
{
	struct nodes_compare c = {.config = w->config, .reset = nodes_world_reset};

	c.config.trace = w->trace;
	c.config.size = w->size;
	return c;
}

static struct flow *new_share(const struct flow_config *config)
{
	struct flow *f;

	if (flow_new(config, &f) != 0)
		abort();
	return f;
}

static bool differs(struct nodes_compare *c, const struct nodes_way *way, char *why, size_t size)
{
	nodes_decode(c, &right, first);
	nodes_decode(c, way, second);
	n_items += nodes_stream_items(first);
	return !nodes_equal(first, second, why, size);
}

/* --- Reducing --- */

static bool still(struct nodes_world *w, const struct nodes_way *way, bool warm, char *why,
		  size_t size)
{
	struct nodes_compare c = compare_of(w);
	bool found;

	w->config.userdata = w;
	c.config.userdata = w;
	if (!warm)
		return differs(&c, way, why, size);
	c.share = new_share(&w->config);
	found = differs(&c, way, why, size);
	/* Decode again, over existing nodes. */
	if (!found)
		found = differs(&c, way, why, size);
	flow_free(c.share);
	return found;
}

static void reduce(struct nodes_world *w, const struct nodes_way *way, bool warm)
{
	char why[1024];

	for (size_t n = w->size / 2; n > 0; n = n == 1 ? 0 : (n + 1) / 2) {
		for (size_t at = 0; at + n <= w->size;) {
			spare = *w;
			nodes_world_cut(&spare, at, n);
			if (spare.size > 0 && still(&spare, way, warm, why, sizeof(why)))
				*w = spare;
			else
				at += n;
		}
	}
}

static void print_packets(const struct nodes_world *w)
{
	struct packet_cursor c = {.pos = w->trace, .end = w->trace + w->size};
	struct packet p;
	char text[256];

	while (packet_next(&c, &p) == 0) {
		packet_format(&p, (uint64_t)(c.pos - w->trace) - p.size, text, sizeof(text));
		puts(text);
	}
}

static void show(struct nodes_world *w, const struct nodes_way *way)
{
	bool warm = !way->own;
	struct nodes_way cold = *way;
	char why[1024];

	cold.own = true;
	if (still(w, &cold, false, why, sizeof(why))) {
		warm = false;
		way = &cold;
	} else if (!still(w, way, warm, why, sizeof(why))) {
		puts("the difference needs the decodings before");
		return;
	}
	reduce(w, way, warm);
	still(w, way, warm, why, sizeof(why));
	nodes_world_print(w);
	print_packets(w);
	printf("%s: %s\n", warm ? "warm" : "cold", why);
}

/* --- Seeds --- */

/* True: all ways give the same. */
static bool try_trace(struct nodes_world *w, struct flow *share, uint64_t seed,
		      struct diff_random *r, bool one)
{
	struct nodes_compare c = compare_of(w);
	char why[1024];

	c.share = share;
	nodes_decode(&c, &right, first);
	n_items += nodes_stream_items(first);
	for (size_t i = 0; i < 2; i++) {
		const struct nodes_way *way = some_way(r);

		nodes_decode(&c, way, second);
		n_ahead += nodes_stream_ahead(second);
		if (nodes_equal(first, second, why, sizeof(why)))
			continue;
		printf("seed %" PRIu64 " way %zu: %s\n", seed, (size_t)(way - ways), why);
		if (one)
			show(w, way);
		return false;
	}
	return true;
}

static void change(struct nodes_world *w, struct diff_random *r)
{
	for (size_t n = 1 + diff_below(r, CHANGES_MAX); n > 0; n--)
		nodes_world_change(w, r);
}

/* Code may change only before the first decoding; traces may change at any time. */
static bool try_seed(uint64_t seed, bool one)
{
	struct diff_random r = {seed};
	static struct nodes_world sound;
	struct flow *share;
	bool same = true;

	nodes_world_make(&world, &r);
	if (nodes_once(&r, 2))
		change(&world, &r);
	share = new_share(&world.config);
	nodes_world_reset(&world, share);
	sound = world;
	for (size_t i = 0; i < TRACES && same; i++) {
		same = world.size == 0 || try_trace(&world, share, seed, &r, one);
		memcpy(world.trace, sound.trace, sound.size);
		world.size = sound.size;
		memcpy(world.enables, sound.enables, sizeof(world.enables));
		for (size_t n = 1 + diff_below(&r, CHANGES_MAX); n > 0 && world.size > 0; n--)
			nodes_world_change_trace(&world, &r);
	}
	flow_free(share);
	return same;
}

/* --- Rules of the return stack --- */

static struct {
	uint64_t worlds, sdm, ask, worse, unsaid;
	uint64_t told, wrongly, undecided;
} returns;

/* Decodes a sound trace without gaps by the rule that its processor had, by the SDM's rule, and
 * without knowing the rule. */
static void try_returns(uint64_t seed)
{
	struct diff_random r = {seed};
	const struct flow_stats *stats;
	struct nodes_compare c;
	char why[1024];

	nodes_world_make(&world, &r);
	nodes_world_reset(&world, NULL);
	c = compare_of(&world);
	c.config.retstack_libipt = false;
	c.config.retstack = world.keep ? RETSTACK_COMPRESSED : RETSTACK_ALL;
	nodes_decode(&c, &right, first);
	if (nodes_stream_gaps(first) > 0)
		return;
	c.config.retstack = RETSTACK_ALL;
	nodes_decode(&c, &right, second);
	returns.worlds++;
	returns.sdm += !nodes_equal_items(first, second, why, sizeof(why));
	c.config.retstack = RETSTACK_ASK;
	nodes_decode(&c, &right, second);
	stats = nodes_stream_stats(second);
	returns.undecided += stats->returns_undecided;
	returns.told += world.keep ? stats->returns_compressed : stats->returns_all;
	returns.wrongly += world.keep ? stats->returns_all : stats->returns_compressed;
	if (nodes_equal_items(first, second, why, sizeof(why)))
		return;
	returns.ask++;
	returns.worse += !world.keep;
	returns.unsaid += stats->returns_undecided == 0;
	if (stats->returns_undecided == 0)
		printf("seed %" PRIu64 " keep %d: %s\n", seed, world.keep, why);
}

static int returns_main(uint64_t seed, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		try_returns(seed + i);
	printf("%" PRIu64 " worlds: %" PRIu64 " decode wrongly by the SDM's rule alone, %" PRIu64
	       " without knowing the rule (%" PRIu64 " rightly by the SDM's, %" PRIu64
	       " without saying so); %" PRIu64 " returns told the rule, %" PRIu64
	       " told another one, %" PRIu64 " did not decide\n",
	       returns.worlds, returns.sdm, returns.ask, returns.worse, returns.unsaid,
	       returns.told, returns.wrongly, returns.undecided);
	return returns.unsaid > 0 || returns.worse > 0 || returns.wrongly > 0 ||
	       2 * returns.ask > returns.sdm + 4;
}

/* --- Traces from elsewhere --- */

static struct diff_input input;

static int give_code(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	const struct diff_piece *p = diff_input_find(userdata, ip);

	(void)context;
	if (p == NULL)
		return FAULT_UNMAPPED;
	*ret = (struct flow_code){.bytes = p->bytes, .address = p->address, .size = p->size};
	return 0;
}

/* True: all ways give the same. */
static bool try_input(const struct diff_seeds *seeds, uint64_t seed)
{
	struct diff_random r = {seed};
	struct nodes_compare c = {.config = {.code = give_code, .userdata = &input, .threads = 1}};
	bool same = true;
	char why[1024];

	diff_mutate(seeds, &r, &input);
	c.config.trace = input.trace;
	c.config.size = input.size;
	c.config.mtc_period = 3;
	c.config.max_nonturbo_ratio = 32;
	c.config.tsc_art_num = 266;
	c.config.tsc_art_den = 2;
	c.config.cpu_family = input.family;
	c.config.cpu_model = input.model;
	c.config.marks = nodes_once(&r, 2);
	c.config.retstack_libipt = nodes_once(&r, 6);
	c.config.cut = nodes_once(&r, 6);
	c.share = new_share(&c.config);
	nodes_decode(&c, &right, first);
	n_items += nodes_stream_items(first);
	for (size_t i = 0; i < 2 && same; i++) {
		const struct nodes_way *way = some_way(&r);

		nodes_decode(&c, way, second);
		n_ahead += nodes_stream_ahead(second);
		same = nodes_equal(first, second, why, sizeof(why));
		if (!same)
			printf("seed %" PRIu64 " way %zu: %s\n", seed, (size_t)(way - ways), why);
	}
	flow_free(c.share);
	return same;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, n = 1000, bad = 0, one = 0;
	const char *corpus = NULL;
	bool rules = false;
	/* readable to the end */
	static struct diff_seeds seeds;

	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--corpus=", 9) == 0) {
			corpus = argv[i] + 9;
			continue;
		}
		if (strcmp(argv[i], "--returns") == 0) {
			rules = true;
			continue;
		}
		if (sscanf(argv[i], "--seed=%" SCNu64, &seed) != 1 &&
		    sscanf(argv[i], "--runs=%" SCNu64, &n) != 1 &&
		    sscanf(argv[i], "--way=%zu", &only) != 1 &&
		    sscanf(argv[i], "--one=%" SCNu64, &one) != 1) {
			fprintf(stderr,
				"usage: nodes_diff [--seed=N] [--runs=N] [--way=N] [--one=SEED]\n"
				"                  [--corpus=FOLDER] [--returns]\n");
			return 2;
		}
	}
	first = nodes_stream_new();
	second = nodes_stream_new();
	if (corpus != NULL)
		diff_seeds_load(&seeds, corpus, NULL, 0);
	if (one != 0)
		return try_seed(one, true) ? 0 : 1;
	if (rules)
		return returns_main(seed, n);
	for (uint64_t i = 0; i < n && bad < 20; i++)
		bad += corpus != NULL ? !try_input(&seeds, seed + i) : !try_seed(seed + i, false);
	printf("%" PRIu64 " %s, %" PRIu64 " items, %" PRIu64 " steps of other threads, %" PRIu64
	       " differences\n",
	       n, corpus != NULL ? "inputs" : "worlds", n_items, n_ahead, bad);
	nodes_stream_free(first);
	nodes_stream_free(second);
	return bad != 0;
}
