/*
 * Makes a small synthetic snapshot byte by byte: an ELF file with a program of three functions, the
 * trace that a CPU would have written, and the records that the kernel would have written. For
 * tests of the worker that need neither a PMU nor the emulator.
 * The program, at MAKE_BASE:
 *     200 main: call leaf      205 test %eax,%eax
 *     207 tail: je 20b         209 nop               20a nop
 *     20b       syscall        20d jmp main
 *     220 leaf: inc %ecx       222 ret
 * One round is main to syscall: 6 instructions when je is taken, else 8. Each round but the first
 * also has the jmp back: one instruction more. Odd rounds (the second, ...) take je.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/manifest.h"
#include "proto/bytes.h"
#include "proto/perf/perfrecord.h"

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
	unsigned n_cpus;	 /* all have the same trace; 0: 1 */
	unsigned rounds_per_psb; /* 0: one PSB at the beginning */
	bool plain_returns;	 /* returns by TIP instead of compressed */
	bool no_psb;		 /* the trace begins behind its first PSB */
	unsigned empty_bytes;	 /* of the ring, which is not full: zeros in front of the trace */
	bool no_sideband;
	bool kernel; /* the trace includes the kernel, at MAKE_KERNEL: one branch for each system
			call */
	bool no_image;
	bool elsewhere; /* the image is not in the bundle, but can be requested */
	/* The image has a second copy of the program, from this offset on, a multiple of the page
	 * size; the process maps the second copy, and the headers of the first lead to it. */
	unsigned second_at;
	const char *build_id; /* which records give for the image; the image itself has none */
	bool overflow;	      /* an OVF in the middle */
	bool in_leaf;	      /* interrupted in leaf after the rounds: 3 more instructions */
	unsigned more_processes;
	/* MAKE_TID and another thread (MAKE_TID + 1) take turns of this many rounds. In between the
	 * CPU is idle, from 750 to 800 ns after the last round began. 0: MAKE_TID alone. */
	unsigned rounds_per_turn;
	unsigned quiet_psbs; /* PSBs at the end of each turn, behind its last user code; up to 20 */
	unsigned lost_after; /* a LOST record 600 ns after this round (from 1) began; 0: none */
	const char *note;    /* the reason in a note "untraced-exec"; NULL: no note */
	uint64_t last_ns;    /* as in the manifest; 0: everything */
	uint64_t no_answer;  /* how long the CPU did not answer the stop, ns after the trace's end;
			      * 0: the CPU did */
	uint64_t stop_late;  /* from the trigger to the stop, ns */
	uint64_t aux_flags;  /* PERF_AUX_FLAG_* of each CPU */
	const struct perfrecord *records; /* more records of the sideband, N_RECORDS of them */
	size_t n_records;
	/* CPUs from this one on were not traced and have no bytes; N_CPUS: all were. */
	bool untraced;
	unsigned first_untraced;
	const char *state, *why; /* of untraced CPUs */
	bool kept;		 /* untraced CPUs have bytes from before */
	bool monotonic;		 /* no TSC conversion */
	uint32_t wild; /* not 0: another program and another trace in those rounds, made from
			* this seed (make_wild.h) */
};

/* The number of instructions in ROUNDS whole rounds. */
uint64_t make_bundle_insns(unsigned rounds);
/* The bytes of one CPU's trace; of the ELF file; of the records. */
void make_trace(const struct make_bundle *how, struct bytes_out *out);
void make_program(struct bytes_out *out);
void make_sideband(const struct make_bundle *how, struct bytes_out *out);
/* Writes the whole bundle to FD at its position. 0 or -errno. */
int make_bundle(const struct make_bundle *how, int fd);
