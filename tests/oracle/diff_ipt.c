/*
 * Fuzzes our decoder against libipt: diff_ipt [--seconds=N] [--runs=N] [--seed=N] [--out=DIR]
 * [--strict] [FOLDER...] changes recorded traces and their code, decodes each with both decoders,
 * and compares the addresses of instructions from each PSB where both begin up to the first error
 * of either. Seeds are the corpus (environment PTSNAP_CORPUS) and the given folders (as
 * bundle_pages writes them). Each new kind of difference is reduced, printed, and written to DIR;
 * the exit status says whether one was found. With --strict, a failure of ours where libipt
 * succeeds is a difference, too. diff_ipt FILE.diff... decodes such files again.
 *
 * The same seed gives the same inputs. docs/DIFFERENCES.md lists the known differences and their
 * reasons. A test program: libipt is never linked into installed programs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/base.h"
#include "tests/oracle/diff_decode.h"
#include "tests/oracle/diff_input.h"

#define KINDS_MAX     256u
#define SECONDS_A_RUN 20u

struct fuzzer {
	struct diff_seeds seeds;
	struct diff_result *result, *reduced_result;
	char kinds[KINDS_MAX][160];
	size_t n_kinds;
	const char *out;
	uint64_t runs, left_out, known, instructions, resumed;
	const char *reducing; /* signature of the difference being reduced */
};

static bool is_known(struct fuzzer *f, const char *signature)
{
	for (size_t i = 0; i < f->n_kinds; i++)
		if (strcmp(f->kinds[i], signature) == 0)
			return true;
	if (f->n_kinds < KINDS_MAX)
		snprintf(f->kinds[f->n_kinds++], sizeof(f->kinds[0]), "%s", signature);
	return false;
}

static bool is_same(void *userdata, const struct diff_input *in)
{
	struct fuzzer *f = userdata;
	struct diff_difference d;

	alarm(SECONDS_A_RUN);
	return in->size > 0 && diff_decode(in, f->reduced_result) &&
	       diff_compare(in, f->reduced_result, &d) && d.known == NULL &&
	       strcmp(d.signature, f->reducing) == 0;
}

static void report(struct fuzzer *f, struct diff_input *in, const struct diff_difference *found)
{
	struct diff_difference d = *found;
	char path[4096];

	f->reducing = found->signature;
	diff_reduce(in, is_same, f);
	if (diff_decode(in, f->reduced_result))
		diff_compare(in, f->reduced_result, &d);
	printf("NEW %zu: %s\n", f->n_kinds, d.text);
	printf("  cpu %" PRIu32 "/%" PRIu32 ", %zu bytes of trace:", in->family, in->model,
	       in->size);
	for (size_t i = 0; i < MIN_OF(in->size, (size_t)96); i++)
		printf(" %02x", in->trace[i]);
	printf("\n");
	fflush(stdout);
	if (f->out != NULL) {
		snprintf(path, sizeof(path), "%s/%03zu.diff", f->out, f->n_kinds);
		diff_input_write(in, path, d.text);
	}
}

static void try(struct fuzzer *f, struct diff_input *in)
{
	struct diff_difference d;

	alarm(SECONDS_A_RUN);
	f->runs++;
	if (!diff_decode(in, f->result)) {
		f->left_out++;
		return;
	}
	f->instructions += f->result->ipt.n;
	f->resumed += f->result->ipt.n_segments - 1;
	if (!diff_compare(in, f->result, &d))
		return;
	f->known += d.known != NULL;
	if (d.known == NULL && !is_known(f, d.signature))
		report(f, in, &d);
}

static void fuzz(struct fuzzer *f, uint64_t seed, uint64_t seconds, uint64_t runs)
{
	static struct diff_input in;
	struct timespec begin, now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (uint64_t i = 0; runs == 0 || i < runs; i++) {
		struct diff_random r = {seed * 1000003 + i};

		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
		if (seconds != 0 && (uint64_t)(now.tv_sec - begin.tv_sec) >= seconds)
			break;
		diff_mutate(&f->seeds, &r, &in);
		try(f, &in);
	}
	printf("%" PRIu64 " inputs, %" PRIu64 " of them skipped, %" PRIu64 " instructions, %" PRIu64
	       " resumptions, %" PRIu64
	       " known differences, %zu kinds of unknown differences, %ld CPU seconds\n",
	       f->runs, f->left_out, f->instructions, f->resumed, f->known, f->n_kinds,
	       (long)(now.tv_sec - begin.tv_sec));
}

static void again(struct fuzzer *f, const char *path)
{
	static struct diff_input in;
	struct diff_difference d;

	if (!diff_input_read(&in, path) || !diff_decode(&in, f->result))
		printf("%s: nothing to compare\n", path);
	else if (!diff_compare(&in, f->result, &d))
		printf("%s: equal\n", path);
	else {
		printf("%s: %s%s%s\n", path, d.text, d.known != NULL ? "; known: " : "",
		       d.known != NULL ? d.known : "");
		f->n_kinds += d.known == NULL;
	}
}

/* Parses --NAME=NUMBER. */
static bool take_number(const char *argument, const char *name, uint64_t *ret)
{
	size_t n = strlen(name);

	if (strncmp(argument, name, n) != 0)
		return false;
	*ret = strtoull(argument + n, NULL, 0);
	return true;
}

int main(int argc, char **argv)
{
	static struct fuzzer f;
	uint64_t seconds = 0, runs = 0, seed = 1;
	int i = 1;

	f.result = calloc(1, sizeof(*f.result));
	f.reduced_result = calloc(1, sizeof(*f.reduced_result));
	if (f.result == NULL || f.reduced_result == NULL)
		return 2;
	for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++)
		if (strncmp(argv[i], "--out=", 6) == 0)
			f.out = argv[i] + 6;
		else if (strcmp(argv[i], "--strict") == 0)
			f.result->strict = f.reduced_result->strict = true;
		else if (!take_number(argv[i], "--seconds=", &seconds) &&
			 !take_number(argv[i], "--runs=", &runs) &&
			 !take_number(argv[i], "--seed=", &seed))
			return 2;
	if (i < argc && strstr(argv[i], ".diff") != NULL) {
		for (; i < argc; i++)
			again(&f, argv[i]);
		return f.n_kinds > 0;
	}
	diff_seeds_load(&f.seeds, getenv("PTSNAP_CORPUS"), argv + i, (size_t)(argc - i));
	if (f.seeds.n == 0 || (seconds == 0 && runs == 0)) {
		fprintf(stderr, "usage: PTSNAP_CORPUS=DIR diff_ipt --seconds=N|--runs=N [--seed=N] "
				"[--out=DIR] [FOLDER...] | FILE.diff...\n");
		return 2;
	}
	fuzz(&f, seed, seconds, runs);
	return f.n_kinds > 0;
}
