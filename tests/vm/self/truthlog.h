/*
 * What each virtual CPU of a machine executed while it was traced, of user code, kernel code or
 * both as the guest's kernel asked for: the log that the plugin truth.c writes, instruction by
 * instruction, and that compare.c reads. It is a second source: it shares no code with the software
 * PMU, which sees blocks, and knows neither branches nor packets.
 *
 * A file for each time that a CPU was traced, from the start to the stop: DIR/cpuN.M, M from 0. It
 * has TRUTHLOG_CHUNKS chunks that are used again: chunk K of all that was written lies at position
 * K modulo TRUTHLOG_CHUNKS. A chunk begins with struct truthlog_chunk; items follow, one byte or
 * nine:
 *
 *   1 to 15    the address of this instruction, less that of the one before
 *   0, u64     the address of this instruction; or TRUTHLOG_THREAD and a thread's ID: the user code
 *              from here on is this thread's; or TRUTHLOG_TIME and the guest's TSC: the time of the
 *              next instruction, for one of each TRUTHLOG_STEP instructions; or TRUTHLOG_ENTRY and
 *              the TSC: the same, where tracing of user code begins behind the kernel's
 *
 * The first item of a chunk has nine bytes. An instruction is in the log when it begins: one that
 * faults is there, and once more when it is repeated. A repeated string instruction is there once.
 *
 * The file DIR/bells has a line for each time that tracing of a CPU starts or stops, in order:
 * TRUTHLOG_BELL, with the CPU, the word TRUTHLOG_START or TRUTHLOG_STOP, and the guest's TSC. The
 * CPU executes nothing while that TSC is read.
 */
#pragma once

#include <inttypes.h>
#include <stdint.h>

#define TRUTHLOG_MAGIC	0x3274757274737470ull
#define TRUTHLOG_CHUNK	65536u
#define TRUTHLOG_CHUNKS 32768u /* 2 GiB */
#define TRUTHLOG_ITEM	9u     /* bytes of the largest item */

/* No instruction has such an address. */
#define TRUTHLOG_THREAD	      0x8001000000000000ull
#define TRUTHLOG_IS_THREAD(v) ((v) >> 48 == 0x8001)

#define TRUTHLOG_TIME	     0x8004000000000000ull
#define TRUTHLOG_IS_TIME(v)  ((v) >> 48 == 0x8004)
#define TRUTHLOG_ENTRY	     0x8005000000000000ull
#define TRUTHLOG_IS_ENTRY(v) ((v) >> 48 == 0x8005)
#define TRUTHLOG_STEP	     256u
#define TRUTHLOG_BELL	     "%u %s %" PRIu64
#define TRUTHLOG_START	     "start"
#define TRUTHLOG_STOP	     "stop"

struct truthlog_chunk {
	uint64_t magic;
	uint64_t number; /* of all chunks of the file */
	uint64_t used;	 /* bytes, with this struct */
};
