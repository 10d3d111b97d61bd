/*
 * Decodes one CPU's trace with libipt in steps. The caller gives the address space of each step.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/manifest.h"

#define IPT_HASH_BASIS 0xcbf29ce484222325ull

/* Copies up to SIZE bytes of code at ADDRESS in the current step's address space. 0: no code. */
typedef size_t ipt_read_fn(void *userdata, uint64_t address, uint8_t *to, size_t size);

struct ipt_cpu;

/* TRACE is borrowed. BLOCKS: use libipt's block decoder. NULL: no memory, or refused by libipt. */
struct ipt_cpu *ipt_cpu_new(const struct manifest *m, const uint8_t *trace, size_t size,
			    bool blocks, ipt_read_fn *read, void *userdata);
void ipt_cpu_free(struct ipt_cpu *c);

struct ipt_step {
	uint64_t instructions, hash;
	bool entered; /* tracing was enabled before the first instruction */
};
/* Decodes the next N instructions, fewer at the end of the trace. Continues THREAD_HASH. */
void ipt_cpu_step(struct ipt_cpu *c, uint64_t n, struct ipt_step *ret, uint64_t *thread_hash);
/* Number of libipt's errors so far; text and place of the last one. */
uint64_t ipt_cpu_errors(const struct ipt_cpu *c, const char **ret_why, uint64_t *ret_offset);
