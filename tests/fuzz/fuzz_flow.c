/*
 * Bytes as a trace over a small program that branches in every way. Invariants: it ends; what was
 * decoded is not more than there is; offsets do not fall; times are intervals; runs exist.
 */
#include <assert.h>

#include "decoder/flow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* At 1000: jne 1004, nop, nop, ret; call 1000; jmp *rax; call *rax; call +0; pop; syscall; jmp -;
 * mov cr3; iret; nops up to where nothing is mapped. */
static const uint8_t program[] = {
	0x75, 0x02, 0x90, 0x90, 0xc3, 0xe8, 0xf6, 0xff, 0xff, 0xff, 0xff, 0xe0, 0xff,
	0xd0, 0xe8, 0x00, 0x00, 0x00, 0x00, 0x58, 0x0f, 0x05, 0xeb, 0xfe, 0x0f, 0x22,
	0xd8, 0x48, 0xcf, 0xe2, 0xe1, 0xeb, 0x00, 0x90, 0x90, 0x90, 0x06,
};

static int give_code(void *userdata, uint64_t ip, struct flow_code *ret)
{
	(void)userdata;
	*ret = (struct flow_code){program, 0x1000, sizeof(program)};
	return ip - 0x1000 < sizeof(program) ? 0 : FAULT_UNMAPPED;
}

static uint64_t context(void *userdata, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi)
{
	(void)userdata;
	assert(tsc_lo <= tsc_hi);
	return ip & 1;
}

static void check(struct flow *f, const struct flow_batch *b, uint64_t *offset)
{
	uint64_t ips[64];

	for (size_t i = 0; i < b->n_items; i++) {
		const struct flow_item *item = &b->items[i];

		assert(item->tsc_lo <= item->tsc_hi && item->offset >= *offset);
		*offset = item->offset;
		assert(item->kind != FLOW_GAP || item->gap < b->n_gaps);
		if (item->insns > 0 && item->insns <= 64)
			assert(flow_run(f, item->start, item->insns, ips) == item->insns);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct flow_config config = {.trace = data,
				     .size = size,
				     .mtc_period = 3,
				     .max_nonturbo_ratio = 32,
				     .tsc_art_num = 266,
				     .tsc_art_den = 2,
				     .code = give_code,
				     .context = context};
	struct flow_batch batch;
	uint64_t offset = 0;
	struct flow *f;

	assert(flow_new(&config, &f) == 0);
	while (flow_next(f, &batch) == 0)
		check(f, &batch, &offset);
	assert(flow_get_stats(f)->bytes_decoded <= flow_get_stats(f)->bytes);
	flow_free(f);
	return 0;
}
