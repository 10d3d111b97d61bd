/*
 * One CPU's trace, decoded by libipt in steps, each of them in an address space that is told.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/manifest.h"

#define IPT_HASH_BASIS 0xcbf29ce484222325ull

/* Up to SIZE bytes of code at ADDRESS where the current step is; 0: none there. */
typedef size_t ipt_read_fn(void *userdata, uint64_t address, uint8_t *to, size_t size);

struct ipt_cpu;

/* TRACE is borrowed. BLOCKS: by libipt's block decoder. NULL: no memory, or libipt refuses it. */
struct ipt_cpu *ipt_cpu_new(const struct manifest *m, const uint8_t *trace, size_t size,
			    bool blocks, ipt_read_fn *read, void *userdata);
void ipt_cpu_free(struct ipt_cpu *c);

struct ipt_step {
	uint64_t instructions, hash;
	bool entered; /* tracing was enabled before the first instruction */
};
/* The next N instructions, fewer at the end of the trace. THREAD_HASH is carried on. */
void ipt_cpu_step(struct ipt_cpu *c, uint64_t n, struct ipt_step *ret, uint64_t *thread_hash);
/* Errors that libipt found so far; the last one's text and place. */
uint64_t ipt_cpu_errors(const struct ipt_cpu *c, const char **ret_why, uint64_t *ret_offset);
