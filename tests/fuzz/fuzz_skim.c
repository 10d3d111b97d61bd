/*
 * Fuzzes the skim with bytes as a trace of some processor. Invariants: the skim ends; samples lie
 * within the bytes, in order; packets are counted once; a skim of PSBs alone finds the same PSBs.
 */
#include <assert.h>

#include "decoder/worker/skim/skim_read.h"
#include "proto/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One processor for each erratum. */
static const uint8_t models[] = {0, 0x3d, 0x4f, 0x5e, 0x55, 0x5c, 0x5f, 0x7a, 0x8e, 0x97, 0xcf};

static void check(const struct skim_sample *s, size_t size, uint64_t *from)
{
	assert(s->kind < SKIM_N_);
	assert(s->offset >= *from && s->offset < size);
	assert(s->tsc_lo <= s->tsc_hi);
	assert(s->has_ip || s->kind == SKIM_PSB);
	*from = s->offset + 1;
}

/* Returns the number of samples, after checking each one. */
static uint64_t skim(const struct skim_config *config, struct skim_counts *ret)
{
	struct skim_reader r;
	struct skim_sample s;
	uint64_t from = 0, n = 0, with_ip = 0;

	skim_reader_init(&r, config);
	while (skim_reader_next(&r, &s)) {
		check(&s, config->size, &from);
		with_ip += s.has_ip;
		n++;
	}
	assert(!skim_reader_next(&r, &s));
	assert(with_ip == r.counts.samples);
	assert(r.counts.bad_bytes <= config->size && r.counts.head <= config->size);
	*ret = r.counts;
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t model = size > 0 ? models[data[0] % sizeof(models)] : 0;
	struct skim_config config = {
		.trace = data + 1,
		.size = size - 1,
		.errata = errata_for(model != 0 ? 6 : 0, model),
		.timing = {.mtc_period = 3,
			   .max_nonturbo_ratio = 20,
			   .tsc_art_num = 80,
			   .tsc_art_den = 1},
	};
	struct skim_counts all, psbs;
	uint64_t first, last, n;

	if (size == 0)
		return 0;
	skim(&config, &all);
	config.psb_only = true;
	/* A PSB+ that cannot be read or is doubted is no sample. */
	n = skim(&config, &psbs);
	assert(n <= psbs.psbs && psbs.psbs <= n + psbs.bad_packets + psbs.backwards);
	/* Where a packet overlaps a PSB, only one of the two skims finds the PSB. */
	assert(psbs.head == all.head);
	if (skim_span(config.trace, config.size, 0, &first, &last))
		assert(psbs.psbs > 0);
	return 0;
}
