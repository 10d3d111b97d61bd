/*
 * The bell: how a guest's kernel module tells the software PMU of its virtual machine to start and
 * stop tracing. Compiled into the plugin and into the module.
 *
 * The module executes a long NOP with a chosen displacement, 0f 1f 84 00 and four bytes, in front
 * of which a jump lies, so that the NOP begins a translated block. RDI has the physical address of
 * a struct bell. The plugin answers before the next instruction executes. On a machine without the
 * plugin, the NOP does nothing, and RESULT stays as it was.
 */
#pragma once

#include <linux/types.h>

#define BELL_MAGIC 0x6c6c6562u /* the displacement of a NOP that hands a struct bell over */
#define BELL_SIZE  8	       /* bytes of the NOP */

/* Writes the NOP; the address of the struct bell is in RDI. */
#define BELL_RING "jmp 1f; 1: .byte 0x0f, 0x1f, 0x84, 0x00; .long 0x6c6c6562"

enum bell_op {
	BELL_HELLO = 1, /* nothing else: is there a software PMU? */
	BELL_START = 2,
	BELL_STOP = 3,
};

enum bell_result {
	BELL_NONE = 0, /* the module sets this before it rings */
	BELL_OK = 1,
	BELL_REFUSED = 2, /* the plugin said why on standard error */
};

#define BELL_RANGES  4u
#define BELL_STOPPED (1u << 5) /* IA32_RTIT_STATUS.Stopped */

struct bell_range {
	__u64 from, to; /* IA32_RTIT_ADDRn_A and _B */
};

struct bell {
	__u32 op;     /* enum bell_op */
	__u32 result; /* enum bell_result, from the plugin */
	__u64 ctl;    /* IA32_RTIT_CTL as the kernel would write it, with the ADDRn_CFG */
	/* The AUX buffer: the physical address of an array of N_PAGES physical addresses of pages,
	 * and a number that no other buffer has had. */
	__u64 pages, n_pages, buffer;
	__u64 offset;		/* output offset in the buffer: START reads it, STOP writes it */
	__u64 total;		/* bytes written since the first START, from the plugin */
	__u64 idt;		/* linear address of the interrupt descriptor table */
	__u32 ratio;		/* TSC frequency in units of 100 MHz */
	__u32 art_num, art_den; /* TSC = ART * num / den */
	__u32 first;		/* START: the event starts for the first time */
	/* For whoever wants to know which thread executes: the linear address of this CPU's pointer
	 * to its struct task_struct, and where the thread's ID is in there. Both lie in the
	 * kernel's direct mapping, whose linear addresses are the physical ones and DIRECT_MAP
	 * more. */
	__u64 current_task, direct_map;
	__u32 tid_offset;
	__u32 status; /* STOP: IA32_RTIT_STATUS, from the plugin; START clears it */
	/* The processor, by CPUID leaf 1. */
	__u32 family, model;
	struct bell_range ranges[BELL_RANGES];
};
