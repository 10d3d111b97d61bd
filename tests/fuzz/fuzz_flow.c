/*
 * Fuzzes the flow: bytes as options, code and a trace of that code; without code in the input, a
 * small program with every kind of branch is used. Invariants: decoding ends; results do not exceed
 * the trace; offsets never fall; times are intervals; runs, gaps and marks exist; trial walks have
 * no visible effect.
 */
#include <assert.h>
#include <string.h>

#include "decoder/flow/flow.h"
#include "decoder/packet/event.h"
#include "decoder/time/timing.h"
#include "proto/base.h"
#include "tests/fuzz/flow_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte. OPTION_MARKS also gives ticks. */
#define OPTION_TRIALS  0x20
#define OPTION_PIECES  0x40 /* code in pieces of a few bytes */
#define OPTION_BATCHES 0x80 /* small batches */
/* The second byte. */
#define OPTION_KERNEL 0x40 /* code from KERNEL on belongs to the kernel */
#define PIECE_BYTES   11u
#define ADDRESS	      0x1000u
#define KERNEL	      (ADDRESS + 16)
#define SWITCH	      (ADDRESS + 22)
/* Two bytes at this address change twice. */
#define PLACE	   (ADDRESS + 20)
#define PLACE_SIZE 2u

/* At 1000: jne 1004, nop, nop, ret; call 1000; jmp *rax; call *rax; call +0; pop; syscall; jmp -;
 * mov cr3; iret; nops up to where nothing is mapped. */
static const uint8_t program[] = {
	0x75, 0x02, 0x90, 0x90, 0xc3, 0xe8, 0xf6, 0xff, 0xff, 0xff, 0xff, 0xe0, 0xff,
	0xd0, 0xe8, 0x00, 0x00, 0x00, 0x00, 0x58, 0x0f, 0x05, 0xeb, 0xfe, 0x0f, 0x22,
	0xd8, 0x48, 0xcf, 0xe2, 0xe1, 0xeb, 0x00, 0x90, 0x90, 0x90, 0x06,
};

struct input {
	const uint8_t *code;
	size_t code_size;
	uint8_t options;
	bool later;
	struct flow *flow;
};

static int give_code(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	const struct input *in = userdata;
	uint64_t at = ip - ADDRESS;

	(void)context;
	if (at >= in->code_size)
		return ip & 0x10000 ? FAULT_ANONYMOUS : FAULT_UNMAPPED;
	*ret = (struct flow_code){.bytes = in->code, .address = ADDRESS, .size = in->code_size};
	if (in->options & OPTION_PIECES) {
		at -= at % PIECE_BYTES;
		*ret = (struct flow_code){
			.bytes = in->code + at,
			.address = ADDRESS + at,
			.size = MIN_OF((size_t)PIECE_BYTES, in->code_size - at),
			.changing = at / PIECE_BYTES % 2,
		};
	}
	return 0;
}

static int give_kernel_code(void *userdata, uint64_t ip, uint32_t version, struct flow_code *ret)
{
	static const uint8_t versions[][PLACE_SIZE] = {{0x90, 0x90}, {0xeb, 0x00}, {0x74, 0x01}};
	const struct input *in = userdata;
	uint64_t at = ip - ADDRESS;

	assert(ip >= KERNEL);
	if (at >= in->code_size)
		return FAULT_UNMAPPED;
	if (ip - PLACE < PLACE_SIZE && version == 0)
		return FAULT_KERNEL_TEXT;
	*ret = (struct flow_code){.bytes = in->code, .address = ADDRESS, .size = in->code_size};
	if (ip < PLACE)
		ret->size = MIN_OF((size_t)(PLACE - ADDRESS), in->code_size);
	if (ip - PLACE < PLACE_SIZE)
		*ret = (struct flow_code){
			.bytes = versions[version - 1], .address = PLACE, .size = PLACE_SIZE};
	else if (ip > PLACE)
		*ret = (struct flow_code){.bytes = in->code + (PLACE + PLACE_SIZE - ADDRESS),
					  .address = PLACE + PLACE_SIZE,
					  .size = in->code_size - (PLACE + PLACE_SIZE - ADDRESS)};
	ret->ends = ip < PLACE + PLACE_SIZE;
	return 0;
}

static uint32_t version_at(uint64_t time)
{
	return 1 + (time >= 0x100) + (time >= 0x10000);
}

static uint32_t give_version(void *userdata, uint64_t ip, uint64_t lo, uint64_t hi,
			     uint32_t *ret_last)
{
	(void)userdata;
	assert(ip >= KERNEL && lo <= hi);
	*ret_last = ip - PLACE < PLACE_SIZE ? version_at(hi) : 0;
	return ip - PLACE < PLACE_SIZE ? version_at(lo) : 0;
}

static void try(struct input *in, uint64_t ip)
{
	static struct event_reader reader;
	static struct timing timing;
	struct flow_trial trial;

	flow_readers(in->flow, &reader, &timing);
	assert(flow_try(in->flow, &reader, ip, 2, &trial) == 0);
	assert(trial.fault < FAULT_N_);
}

static uint64_t context(void *userdata, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi)
{
	struct input *in = userdata;

	assert(tsc_lo <= tsc_hi);
	if ((in->options & OPTION_TRIALS) && !flow_asked_switch(in->flow))
		try(in, ip);
	if (flow_asked_return(in->flow)) {
		assert(ip < KERNEL);
		flow_split(in->flow);
		/* Some requests are answered later. */
		in->later = !in->later;
		if (in->later)
			return FLOW_CONTEXT_LATER;
	}
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
		assert(item->kind != FLOW_MARK || item->mark < b->n_marks);
		if (item->insns > 0 && item->insns <= 64)
			assert(flow_run(f, item->start, item->insns, ips) == item->insns);
	}
	for (size_t i = 0; i < b->n_gaps; i++)
		assert(b->gaps[i].fault > FAULT_NONE && b->gaps[i].fault < FAULT_N_);
	for (size_t i = 0; i < b->n_marks; i++)
		assert(b->marks[i].kind < FLOW_MARK_N_ && b->marks[i].tsc_lo <= b->marks[i].tsc_hi);
}

static void decode(struct input *in, const struct flow_input *from)
{
	struct flow_config config = flow_input_config(from, from->choice);
	struct flow_batch batch;
	uint64_t offset = 0;
	int r;

	config.code = give_code;
	config.context = context;
	config.userdata = in;
	config.batch_items = from->options & OPTION_BATCHES ? 16 : 0;
	config.ticks = from->options & OPTION_MARKS;
	if (from->choice & OPTION_KERNEL) {
		config.kernel_start = KERNEL;
		config.kernel_code = give_kernel_code;
		config.kernel_version = give_version;
		config.switch_ip = SWITCH;
	}
	assert(flow_new(&config, &in->flow) == 0);
	while ((r = flow_next(in->flow, &batch)) == 0 || r == FLOW_LATER)
		check(in->flow, &batch, &offset);
	assert(flow_get_stats(in->flow)->bytes_decoded <= flow_get_stats(in->flow)->bytes);
	flow_free(in->flow);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {.code = program, .code_size = sizeof(program)};
	struct flow_input from;

	if (!flow_input_read(data, size, &from))
		return 0;
	in.options = from.options;
	if (from.code != NULL) {
		in.code = from.code;
		in.code_size = from.code_size;
	}
	decode(&in, &from);
	return 0;
}
