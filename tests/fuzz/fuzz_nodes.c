/*
 * Fuzzes the hot loop against the stepping walk: a trace, and its code at several places in two
 * address spaces. Both walks must give the same.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "decoder/flow/flow.h"
#include "proto/base.h"
#include "tests/fuzz/flow_input.h"
#include "tests/oracle/nodes_compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte. */
#define OPTION_PIECES  0x20 /* code in pieces, every second one of which changes */
#define OPTION_KERNEL  0x40 /* code from KERNEL on belongs to the kernel */
#define OPTION_BATCHES 0x80 /* small batches */
/* The second byte. */
#define OPTION_MAPPING 0x40 /* pieces belong to a mapping */
#define PIECE_BYTES    24u
#define KERNEL	       0x1080u

/* At 1000: jne 1004, nop, nop, ret; call 1000; jmp *rax; call *rax; call +0; pop; syscall; jmp -;
 * loop; jmp; nops up to where nothing is mapped. */
static const uint8_t program[] = {
	0x75, 0x02, 0x90, 0x90, 0xc3, 0xe8, 0xf6, 0xff, 0xff, 0xff, 0xff, 0xe0,
	0xff, 0xd0, 0xe8, 0x00, 0x00, 0x00, 0x00, 0x58, 0x0f, 0x05, 0xeb, 0xfe,
	0xe2, 0xe6, 0xeb, 0x00, 0xeb, 0xe4, 0x90, 0x90, 0x75, 0xea, 0xff, 0xe3,
};

/* The places of the code, by bit of the context. */
static const struct {
	uint64_t address;
	uint32_t skip; /* this many bytes at the beginning are missing */
	bool contexts[2];
} places[] = {
	{0x1000, 0, {true, false}},	   {0x1000, 1, {false, true}},
	{0x555500001000, 0, {true, true}}, {0x7ffffffffff8, 0, {true, false}},
	{0x200000, 0, {false, true}},	   {0x1fffe0, 4, {true, false}},
};

struct input {
	const uint8_t *code;
	size_t code_size;
	uint8_t options, choice;
	struct flow *flow;
};

static int give_piece(const struct input *in, size_t place, uint64_t ip, struct flow_code *ret)
{
	uint64_t size = in->code_size - places[place].skip, at = ip - places[place].address;

	*ret = (struct flow_code){.bytes = in->code + places[place].skip,
				  .address = places[place].address,
				  .size = size};
	if (in->choice & OPTION_MAPPING) {
		ret->map_address = ret->address;
		ret->map_size = ret->size;
	}
	if (in->options & OPTION_PIECES) {
		at -= at % PIECE_BYTES;
		ret->bytes += at;
		ret->address += at;
		ret->size = MIN_OF((uint64_t)PIECE_BYTES, size - at);
		ret->changing = at / PIECE_BYTES % 2;
	}
	return 0;
}

static int find_code(const struct input *in, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (places[i].contexts[context] && in->code_size > places[i].skip &&
		    ip - places[i].address < in->code_size - places[i].skip)
			return give_piece(in, i, ip, ret);
	}
	return ip & 0x10000 ? FAULT_ANONYMOUS : FAULT_UNMAPPED;
}

static int give_code(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	return find_code(userdata, context, ip, ret);
}

static int give_kernel_code(void *userdata, uint64_t ip, uint32_t version, struct flow_code *ret)
{
	(void)version;
	return find_code(userdata, 0, ip, ret);
}

static uint32_t give_version(void *userdata, uint64_t ip, uint64_t lo, uint64_t hi,
			     uint32_t *ret_last)
{
	(void)userdata;
	(void)ip;
	(void)lo;
	(void)hi;
	*ret_last = 0;
	return 0;
}

static uint64_t give_context(void *userdata, uint64_t ip, uint64_t tsc_lo, uint64_t tsc_hi)
{
	(void)userdata;
	(void)tsc_lo;
	(void)tsc_hi;
	return ip & 1;
}

static void reset(void *userdata, struct flow *f)
{
	(void)userdata;
	(void)f;
}

static struct flow_config config_of(struct input *in, const struct flow_input *from)
{
	struct flow_config config = flow_input_config(from, from->choice & 31);

	config.code = give_code;
	config.context = give_context;
	config.userdata = in;
	config.threads = 1;
	if (in->options & OPTION_KERNEL) {
		config.kernel_start = KERNEL;
		config.kernel_code = give_kernel_code;
		config.kernel_version = give_version;
	}
	return config;
}

static void compare(const struct nodes_compare *c, const struct nodes_way *way,
		    const struct nodes_stream *right)
{
	struct nodes_stream *s = nodes_stream_new();
	char why[1024];

	nodes_decode(c, way, s);
	if (!nodes_equal(right, s, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	nodes_stream_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct nodes_way ways[] = {{.stepping = true},
						{.steps = true},
						{.batch_items = 32},
						{.steps = true, .batch_items = 32, .portion = 64}};
	struct input in = {.code = program, .code_size = sizeof(program)};
	struct flow_input from;
	struct nodes_stream *right;
	struct nodes_compare c = {.reset = reset};

	if (!flow_input_read(data, size, &from))
		return 0;
	in.options = from.options;
	in.choice = from.choice;
	if (from.code != NULL) {
		in.code = from.code;
		in.code_size = from.code_size;
	}
	c.config = config_of(&in, &from);
	if (flow_new(&c.config, &c.share) != 0)
		abort();
	right = nodes_stream_new();
	nodes_decode(&c, &ways[0], right);
	for (size_t i = 1; i < ARRAY_SIZE(ways); i++) {
		if (i < 2 || in.options & OPTION_BATCHES)
			compare(&c, &ways[i], right);
	}
	/* Decode again, over the existing nodes. */
	compare(&c, &(struct nodes_way){0}, right);
	nodes_stream_free(right);
	flow_free(c.share);
	return 0;
}
