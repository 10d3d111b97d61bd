/*
 * Truth files, for tests: what was really executed, one file a thread.
 *
 * The directory has one file a thread, named PID.TID. The plugin writes through a shared mapping,
 * so that the file is complete even when the thread is killed. When a thread execs, its file
 * continues. A thread that is not the first one of its process takes over the first thread's number
 * when it execs, and thereby the name of the file; the first thread's own file is renamed to
 * PID.PID.N, with N from 1.
 *
 * Layout, little-endian: 8 bytes TRUTH_MAGIC, then items. An item begins with a varint (7 bits a
 * byte, lowest first, bit 7: more follow) V:
 *   V >= TRUTH_FIRST_ID: block V executed completely
 *   TRUTH_END      the file ends here (zeros fill the rest)
 *   TRUTH_BLOCK    varint id, u64 ip, u16 n, n bytes: lengths of the instructions, u8 m, m bytes:
 *                  the last instruction (m 0: not known; then it is no branch). Precedes the first
 *                  use of the id; an id that is in use gets a new meaning (after an exec)
 *   TRUTH_AGAIN    varint count: the last block executed COUNT more times
 *   TRUTH_PARTIAL  varint id, u16 n: only the first N instructions of that block executed
 *   TRUTH_PSB      u64 tsc, u64 aux_pos, u8 1: a PSB with a FUP begins at this byte of the CPU's
 *                  trace; the next instruction to execute is the FUP's
 *   TRUTH_STOP     u64 tsc, u64 aux_pos, u32 generation: tracing was stopped while this thread ran
 *                  user code; the file has nothing of what executes up to the next TRUTH_ENTER
 *   TRUTH_TIME     u64 tsc: the time from here on. An execution ended, and its last branch
 *                  happened, at the time that precedes it in the file
 *   TRUTH_JUMP     u64 ip: the PMU could not explain how execution came here
 *   TRUTH_ENTER    u32 cpu, u64 tsc, u64 aux_pos: tracing of user code begins (TIP.PGE);
 *                  everything up to the next TRUTH_ENTER executed on that CPU
 *   TRUTH_OVERFLOW u64 tsc, u64 aux_pos, u8 resolved: 0: packets are lost from here on; 1: an OVF
 *                  was written, and packets are complete again
 * The file has no instructions that executed while tracing was stopped. It has the instructions
 * whose packets an overflow lost.
 *
 * The window of a snapshot on a CPU begins at the TSC of its first PSB, and ends when tracing
 * stopped. If the CPU was in user code at that PSB, a TRUTH_PSB has the same TSC. Everything that a
 * TRUTH_ENTER up to the stop begins belongs to the window.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/plugin/code.h"

#define TRUTH_MAGIC "PTTRUTH3"

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

/* Opens the file of thread PID.TID in directory DIR for appending, or creates it. *RET is freed by
 * truth_close() or truth_abandon(). 0 or -errno. */
int truth_open(const char *dir, uint32_t pid, uint32_t tid, struct truth **ret);
/* All functions below accept NULL as T, and then do nothing. Truncates the file to what was
 * written, and frees T. */
void truth_close(struct truth *t);
/* A thread of process PID that is not its first thread is about to exec, and will then have the
 * first thread's number. Renames the first thread's file. */
void truth_inherit(const char *dir, uint32_t pid);
/* Call in a forked child, because the file belongs to the parent. Frees T and leaves the file. */
void truth_abandon(struct truth *t);

/* The first N instructions of B executed, the last one at time TSC. */
void truth_block(struct truth *t, uint64_t tsc, const struct block *b, unsigned int n);
void truth_enter(struct truth *t, uint32_t cpu, uint64_t tsc, uint64_t pos);
void truth_psb(struct truth *t, uint64_t tsc, uint64_t pos);
void truth_stop(struct truth *t, uint64_t tsc, uint64_t pos, uint32_t generation);
void truth_jump(struct truth *t, uint64_t ip);
void truth_overflow(struct truth *t, uint64_t tsc, uint64_t pos, bool resolved);
