/*
 * make_bundle KIND FILE: writes one of several synthetic bundles, for shell tests and for the fuzz
 * corpus.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"
#include "tests/support/make_bundle.h"

static const struct {
	const char *name;
	struct make_bundle how;
} kinds[] = {
	{"plain", {.rounds = 100}},
	{"tips", {.rounds = 100, .plain_returns = true}},
	{"long", {.rounds = 20000, .rounds_per_psb = 64}},
	{"huge", {.rounds = 250000, .rounds_per_psb = 64}},
	{"small", {.rounds = 3}},
	{"cpus", {.rounds = 10, .n_cpus = 3}},
	{"psbs", {.rounds = 200, .n_cpus = 2, .rounds_per_psb = 10, .rounds_per_turn = 20}},
	{"empty", {.rounds = 0}},
	{"nopsb", {.rounds = 5, .no_psb = true}},
	{"nosideband", {.rounds = 5, .no_sideband = true}},
	{"noimage", {.rounds = 5, .no_image = true}},
	{"elsewhere", {.rounds = 5, .elsewhere = true}},
	{"overflow", {.rounds = 10, .overflow = true}},
	{"leaf", {.rounds = 10, .in_leaf = true}},
	{"many", {.rounds = 100, .more_processes = 3000}},
	{"turns",
	 {.rounds = 100,
	  .n_cpus = 3,
	  .rounds_per_turn = 2,
	  .lost_after = 40,
	  .note = "/x\x1b: why"}},
	{"degraded",
	 {.rounds = 20,
	  .n_cpus = 2,
	  .rounds_per_turn = 5,
	  .untraced = true,
	  .state = "no-pt",
	  .why = "no Intel PT",
	  .monotonic = true}},
	{"busy",
	 {.rounds = 20,
	  .n_cpus = 2,
	  .untraced = true,
	  .first_untraced = 1,
	  .state = "busy",
	  .why = "perf has it"}},
	{"last", {.rounds = 100, .rounds_per_psb = 10, .last_ns = 15 * MAKE_ROUND}},
	{"beyond", {.rounds = 5, .second_at = 68 << 10}},
	{"crew", {.rounds = 60, .n_cpus = 2, .rounds_per_psb = 5}},
	{"halves", {.rounds = 8000, .rounds_per_psb = 40, .rounds_per_turn = 4000}},
};

static int usage(void)
{
	size_t i;

	fprintf(stderr, "usage: make_bundle KIND FILE; kinds:");
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		fprintf(stderr, " %s", kinds[i].name);
	fprintf(stderr, "\n");
	return 2;
}

int main(int argc, char **argv)
{
	CLEANUP_CLOSE int fd = -EBADF;
	size_t i;

	for (i = 0; argc == 3 && i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].name, argv[1]) == 0)
			break;
	if (argc != 3 || i == ARRAY_SIZE(kinds))
		return usage();
	fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0 || make_bundle(&kinds[i].how, fd) != 0) {
		perror(argv[2]);
		return 1;
	}
	return 0;
}
