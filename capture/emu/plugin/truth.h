/*
 * What was really executed, for tests: a directory with one truth file a thread, named PID.TID.
 * Written through a shared mapping, so that it is whole even when the thread is killed. A program
 * that is exec'ed goes on in its thread's file. A thread that execs gets its process' first
 * thread's number and with it the name of its file; that one's own is renamed PID.PID.N, N from 1
 * on.
 *
 * Layout, little-endian: 8 bytes TRUTH_MAGIC, then items. An item begins with a varint (7 bits a
 * byte, lowest first, bit 7: more follow) V:
 *   V >= TRUTH_FIRST_ID: block V was executed, whole
 *   TRUTH_END      the file ends here (it is padded with zeros)
 *   TRUTH_BLOCK    varint id, u64 ip, u16 n, n bytes: lengths of its instructions; before its use;
 *                  an id that was used already gets a new meaning (after an exec)
 *   TRUTH_AGAIN    varint count: the block before was executed COUNT more times
 *   TRUTH_PARTIAL  varint id, u16 n: only the first N instructions of that block
 *   TRUTH_PSB      u64 tsc, u64 aux_pos, u8 1: a PSB with a FUP begins at that byte of the CPU's
 *                  trace; the next instruction executed is the FUP's
 *   TRUTH_STOP     u64 tsc, u64 aux_pos, u32 generation: tracing was stopped while this thread ran
 *                  user code; what it executes from here on is not in the file, up to the next
 *                  TRUTH_ENTER
 *   TRUTH_TIME     u64 tsc: the clock, from here on; an execution ended, and its last branch
 *                  happened, at the time before it
 *   TRUTH_JUMP     u64 ip: the PMU could not explain how execution came here
 *   TRUTH_ENTER    u32 cpu, u64 tsc, u64 aux_pos: user code begins to be traced (TIP.PGE); all up
 *                  to the next TRUTH_ENTER was executed on that CPU
 *   TRUTH_OVERFLOW u64 tsc, u64 aux_pos, u8 resolved: packets begin to be lost (0); an OVF was
 *                  written, they are complete again (1)
 * Instructions that were executed while tracing was stopped are not in it; those whose packets an
 * overflow lost are.
 *
 * The window of a snapshot on a CPU begins at the TSC of its first PSB (in the middle of a stretch
 * there is a TRUTH_PSB of that TSC, else the CPU was not in user code then) and ends when it was
 * stopped: stretches entered up to then belong to it, whole.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/plugin/code.h"

#define TRUTH_MAGIC "PTTRUTH2"

enum truth_item {
	TRUTH_END = 0,
	TRUTH_BLOCK = 1,
	TRUTH_AGAIN = 2,
	TRUTH_PARTIAL = 3,
	TRUTH_PSB = 4,
	TRUTH_STOP = 5,
	TRUTH_TIME = 7,
	TRUTH_JUMP = 8,
	TRUTH_ENTER = 9,
	TRUTH_OVERFLOW = 10,
	TRUTH_FIRST_ID = 16,
};

struct truth;

/* Goes on with thread PID.TID's file in directory DIR, or begins it. 0 or -errno. */
int truth_open(const char *dir, uint32_t pid, uint32_t tid, struct truth **ret);
/* NULL is allowed as T in all the others. Cuts the file to what was written. */
void truth_close(struct truth *t);
/* A thread of PID, not the first one, is about to exec and to get the first one's number. */
void truth_inherit(const char *dir, uint32_t pid);
/* In a forked child: the file is the parent's. */
void truth_abandon(struct truth *t);

/* The first N instructions of B were executed, the last of them at TSC. */
void truth_block(struct truth *t, uint64_t tsc, const struct block *b, unsigned int n);
void truth_enter(struct truth *t, uint32_t cpu, uint64_t tsc, uint64_t pos);
void truth_psb(struct truth *t, uint64_t tsc, uint64_t pos);
void truth_stop(struct truth *t, uint64_t tsc, uint64_t pos, uint32_t generation);
void truth_jump(struct truth *t, uint64_t ip);
void truth_overflow(struct truth *t, uint64_t tsc, uint64_t pos, bool resolved);
