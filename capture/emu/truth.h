/*
 * What was really executed, for tests: the truth file. Written through a shared mapping, so that it
 * is whole even when the process is killed.
 *
 * Layout, little-endian: 8 bytes TRUTH_MAGIC, then items. An item begins with a varint (7 bits a
 * byte, lowest first, bit 7: more follow) V:
 *   V >= TRUTH_FIRST_ID: block V was executed, whole
 *   TRUTH_END      the file ends here (it is padded with zeros)
 *   TRUTH_BLOCK    varint id, u64 ip, u16 n, n bytes: lengths of its instructions; before its use
 *   TRUTH_AGAIN    varint count: the block before was executed COUNT more times
 *   TRUTH_PARTIAL  varint id, u16 n: only the first N instructions of that block
 *   TRUTH_PSB      u64 tsc, u64 aux_pos, u8 user: a PSB begins at that byte of the trace; user 1:
 *                  it has a FUP with the IP of the next instruction executed
 *   TRUTH_STOP     u64 tsc, u64 aux_pos, u32 generation: tracing was stopped
 *   TRUTH_START    the same: tracing was started
 *   TRUTH_TIME     u64 tsc: the time now
 *   TRUTH_JUMP     u64 ip: the PMU could not explain how execution came here
 * Instructions that were executed while tracing was stopped are not in it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/code.h"

#define TRUTH_MAGIC "PTTRUTH1"

enum truth_item {
	TRUTH_END = 0,
	TRUTH_BLOCK = 1,
	TRUTH_AGAIN = 2,
	TRUTH_PARTIAL = 3,
	TRUTH_PSB = 4,
	TRUTH_STOP = 5,
	TRUTH_START = 6,
	TRUTH_TIME = 7,
	TRUTH_JUMP = 8,
	TRUTH_FIRST_ID = 16,
};

struct truth;

/* Creates PATH. 0 or -errno. */
int truth_open(const char *path, struct truth **ret);
/* NULL is allowed as T in all the others. Cuts the file to what was written. */
void truth_close(struct truth *t);

/* The first N instructions of B were executed. */
void truth_block(struct truth *t, struct block *b, unsigned int n);
void truth_psb(struct truth *t, uint64_t tsc, uint64_t pos, bool user);
void truth_switch(struct truth *t, bool on, uint64_t tsc, uint64_t pos, uint32_t generation);
void truth_time(struct truth *t, uint64_t tsc);
void truth_jump(struct truth *t, uint64_t ip);
