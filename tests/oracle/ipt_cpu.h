/*
 * Decodes one CPU's trace with libipt, instruction by instruction. The caller gives the address
 * space of each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/manifest.h"

/* Copies up to SIZE bytes of code at ADDRESS in the current address space. 0: no code. */
typedef size_t ipt_read_fn(void *userdata, uint64_t address, uint8_t *to, size_t size);

struct ipt_cpu;

/* TRACE is borrowed. BLOCKS: use libipt's block decoder. NULL: no memory, or refused by libipt. */
struct ipt_cpu *ipt_cpu_new(const struct manifest *m, const uint8_t *trace, size_t size,
			    bool blocks, ipt_read_fn *read, void *userdata);
void ipt_cpu_free(struct ipt_cpu *c);

/* Goes to the next PSB, at first the first one. False: there is none. */
bool ipt_cpu_begin(struct ipt_cpu *c, uint64_t *ret_psb);
/* Goes on to the next PSB at or behind offset FROM at which tracing is on: its offset, and the
 * address of the next instruction. False: there is none. */
bool ipt_cpu_sync(struct ipt_cpu *c, uint64_t from, uint64_t *ret_psb, uint64_t *ret_ip);
/* The next instruction's address; *ret_entered: tracing was enabled in front of it. 1; 0: the trace
 * ends; -1: an error, behind which only ipt_cpu_sync() helps. */
int ipt_cpu_next(struct ipt_cpu *c, uint64_t *ret_ip, bool *ret_entered);
/* Number of libipt's errors so far; text and place of the last one. */
uint64_t ipt_cpu_errors(const struct ipt_cpu *c, const char **ret_why, uint64_t *ret_offset);
