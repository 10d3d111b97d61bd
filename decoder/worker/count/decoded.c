/*
 * The life of a decode's results, and their sums.
 */
#include "decoder/worker/count/decoded.h"

#include <math.h>
#include <stdlib.h>

#include "decoder/worker/replay/replay.h"
#include "proto/base.h"

int decode_init(struct decode *d, struct replay *replay)
{
	size_t n = replay->manifest->n_cpus;

	*d = (struct decode){.replay = replay,
			     .window = {.from_ns = MANIFEST_ABSENT, .to_ns = MANIFEST_ABSENT}};
	gaps_init(&d->gaps);
	if (marks_init(&d->marks, n) < 0)
		return -ENOMEM;
	d->cpus = calloc(n + 1, sizeof(*d->cpus));
	if (!d->cpus)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		d->cpus[i].hash = HASH_BASIS;
	return tally_init(&d->tally, replay);
}

void decode_done(struct decode *d)
{
	tally_done(&d->tally);
	tally_done(&d->past);
	gaps_done(&d->gaps);
	marks_done(&d->marks);
	steps_count_done(&d->counts);
	free(d->cpus);
	free(d->window.begins);
	free(d->window.ends);
	*d = (struct decode){0};
}

struct flow_stats decode_total(const struct decode *d)
{
	struct flow_stats sum = {0};

	for (size_t i = 0; i < d->replay->manifest->n_cpus; i++) {
		const struct flow_stats *s = &d->cpus[i].stats;

		sum.bytes += s->bytes;
		sum.bytes_decoded += s->bytes_decoded;
		sum.instructions += s->instructions;
		sum.kernel_instructions += s->kernel_instructions;
		for (int change = 0; change < CODE_CHANGES_N; change++)
			sum.changing[change] += s->changing[change];
		sum.branches += s->branches;
		sum.psbs += s->psbs;
		sum.packets += s->packets;
		sum.returns += s->returns;
		sum.compressed_returns += s->compressed_returns;
		sum.returns_all += s->returns_all;
		sum.returns_compressed += s->returns_compressed;
		sum.returns_undecided += s->returns_undecided;
		sum.branches_undecided += s->branches_undecided;
		if (sum.tsc_first == 0 || (s->tsc_first != 0 && s->tsc_first < sum.tsc_first))
			sum.tsc_first = s->tsc_first;
		sum.tsc_last = MAX_OF(sum.tsc_last, s->tsc_last);
	}
	return sum;
}

uint64_t decode_exact(const struct flow_stats *total)
{
	uint64_t exact = total->instructions;

	for (int change = CODE_SAME + 1; change < CODE_CHANGES_N; change++)
		exact -= MIN_OF(exact, total->changing[change]);
	return exact;
}

const char *decode_change_name(enum code_change change)
{
	static const char *const names[CODE_CHANGES_N] = {
		[CODE_MEMORY] = "memory",
		[CODE_SHARED] = "shared-memory",
		[CODE_MAPPING] = "file-mapping",
		[CODE_FILE] = "file",
		[CODE_UNVERIFIED] = "unverified-file",
	};

	return names[change];
}

double decode_percent(uint64_t decoded, uint64_t bytes)
{
	if (bytes == 0)
		return -1;
	if (decoded >= bytes)
		return 100;
	return floor((double)decoded / (double)bytes * 10000) / 100;
}
