/*
 * Splits the input of fuzzers of the walk into options, the choice of a processor, code, and a
 * trace of that code.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/flow/flow.h"
#include "proto/base.h"

/* The first byte is the options; bits 0x20 to 0x80 have a meaning of their own in each fuzzer. */
#define OPTION_MARKS  0x01
#define OPTION_GUESTS 0x02
#define OPTION_PSB    0x04 /* resume_at_psb */
#define OPTION_LIBIPT 0x08 /* retstack_libipt */
#define OPTION_CUT    0x10
/* The second byte chooses the processor, */
#define OPTION_TIP 0x80 /* resume_at_tip */
/* and the next bytes are the size of the code, little-endian. */
#define FLOW_INPUT_HEADER 4u

struct flow_input {
	uint8_t options, choice;
	const uint8_t *code, *trace; /* borrowed; code NULL: no code */
	size_t code_size, size;
};

/* False: the input is too short. */
static inline bool flow_input_read(const uint8_t *data, size_t size, struct flow_input *ret)
{
	size_t n;

	if (size < FLOW_INPUT_HEADER)
		return false;
	size -= FLOW_INPUT_HEADER;
	n = MIN_OF((size_t)data[2] | (size_t)data[3] << 8, size);
	*ret = (struct flow_input){.options = data[0],
				   .choice = data[1],
				   .code = n > 0 ? data + FLOW_INPUT_HEADER : NULL,
				   .code_size = n,
				   .trace = data + FLOW_INPUT_HEADER + n,
				   .size = size - n};
	return true;
}

/* A configuration for a trace of processor NUMBER (any number is valid). The callbacks that give
 * code are not set. */
static inline struct flow_config flow_input_config(const struct flow_input *in, uint8_t number)
{
	static const uint8_t models[] = {0,    0x3d, 0x4f, 0x5e, 0x55, 0x5c,
					 0x5f, 0x7a, 0x8e, 0x97, 0xcf};
	const uint8_t model = models[number % sizeof(models)];

	return (struct flow_config){.trace = in->trace,
				    .size = in->size,
				    .mtc_period = 3,
				    .max_nonturbo_ratio = 32,
				    .tsc_art_num = 266,
				    .tsc_art_den = 2,
				    .cpu_family = model != 0 ? 6 : 0,
				    .cpu_model = model,
				    .marks = in->options & OPTION_MARKS,
				    .guests = in->options & OPTION_GUESTS,
				    .resume_at_psb = in->options & OPTION_PSB,
				    .resume_at_tip = in->choice & OPTION_TIP,
				    .retstack_libipt = in->options & OPTION_LIBIPT,
				    .cut = in->options & OPTION_CUT};
}
