/*
 * A small synthetic snapshot, made by hand byte by byte: a program of three functions in an ELF
 * file of its own, what a CPU would have traced of it, and the records that the kernel would have
 * written. For tests of the worker that need neither a PMU nor the emulator.
 *
 * The program, at MAKE_BASE:
 *     200 main: call leaf      205 test %eax,%eax
 *     207 tail: je 20b         209 nop               20a nop
 *     20b       syscall        20d jmp main
 *     220 leaf: inc %ecx       222 ret
 * One round is main to syscall: 6 instructions when je is taken, else 8; the jmp back is one more,
 * which the first round does not have. Odd rounds (the second, ...) take je.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/manifest.h"
#include "proto/bytes.h"

#define MAKE_BASE   0x400000ull
#define MAKE_MAIN   (MAKE_BASE + 0x200)
#define MAKE_KERNEL 0xffffffff81000000ull
#define MAKE_LEAF   (MAKE_BASE + 0x220)
#define MAKE_PID    4711u
#define MAKE_TID    4712u
#define MAKE_TSC    1000000ull /* of the PSB */
#define MAKE_PATH   "/usr/bin/loop\xff\"x"
#define MAKE_ROUND  1000u /* TSC ticks, which are ns here */

struct make_bundle {
	unsigned rounds;
	unsigned n_cpus;	 /* all ran the same; 0: 1 */
	unsigned rounds_per_psb; /* 0: one PSB at the beginning */
	bool plain_returns;	 /* returns by TIP instead of compressed */
	bool no_psb;		 /* the trace begins behind its first PSB */
	bool no_sideband;
	bool kernel; /* is in the trace, too, at MAKE_KERNEL: a branch for each system call */
	bool no_image;
	bool elsewhere;	      /* the image is not in the bundle, but can be asked for */
	const char *build_id; /* that the records say of the image, which has none */
	bool overflow;	      /* an OVF in the middle */
	bool in_leaf;	      /* after the rounds interrupted in leaf: 3 instructions more */
	unsigned more_processes;
	/* Another thread (MAKE_TID + 1) and MAKE_TID take turns of so many rounds; between two the
	 * CPU is idle, from 750 to 800 ns after the last round began. 0: MAKE_TID alone. */
	unsigned rounds_per_turn;
	unsigned lost_after; /* a LOST record 600 ns after that round (from 1) began; 0: none */
	const char *note;    /* why, of a note "untraced-exec"; NULL: none */
	uint64_t last_ns;    /* as in the manifest; 0: all */
	uint64_t no_answer;  /* ns after its end at which the CPU did not answer the stop; 0: it did
			      */
	uint64_t stop_late;  /* from the trigger to the stop, ns */
	uint64_t aux_flags;  /* PERF_AUX_FLAG_*, of each CPU */
	/* CPUs from this one on did not trace, and have no bytes; N_CPUS: all did. */
	bool untraced;
	unsigned first_untraced;
	const char *state, *why; /* of those */
	bool kept;		 /* but they have the bytes of before */
	bool monotonic;		 /* no TSC conversion */
	uint32_t wild;		 /* not 0: another program and what it does in those rounds, of this
				  * seed (make_wild.h) */
};

/* The number of instructions in ROUNDS whole rounds. */
uint64_t make_bundle_insns(unsigned rounds);
/* The bytes of one CPU's trace, of the ELF file, of the records. */
void make_trace(const struct make_bundle *how, struct bytes_out *out);
void make_program(struct bytes_out *out);
void make_sideband(const struct make_bundle *how, struct bytes_out *out);
/* The whole bundle to FD, at its position. 0 or -errno. */
int make_bundle(const struct make_bundle *how, int fd);
