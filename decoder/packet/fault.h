/*
 * Everything that can be wrong with a trace, by name.
 *
 * A fault is a result: it becomes a gap with a name, a place and a count, and decoding goes on at
 * the next PSB or sooner.
 */
#pragma once

#include <stdbool.h>

enum fault {
	FAULT_NONE = 0,
	/* Bytes. */
	FAULT_EMPTY,	      /* no trace bytes at all */
	FAULT_NO_PSB,	      /* bytes, but no PSB */
	FAULT_HEAD,	      /* bytes before the first PSB (the ring's oldest end); expected */
	FAULT_BAD_PACKET,     /* an unknown opcode or an invalid payload */
	FAULT_TRUNCATED,      /* the trace ends within a packet */
	FAULT_OVERFLOW,	      /* OVF: the hardware lost packets */
	FAULT_TRACESTOP,      /* TraceSTOP: an address filter ended tracing */
	FAULT_TIME_BACKWARDS, /* a TSC earlier than one before: bytes twice, or old ones */
	FAULT_TRACE_MISSING,  /* bytes of the trace are missing between two pieces */
	/* Code. */
	FAULT_UNMAPPED,	      /* nothing was mapped at the address at that time */
	FAULT_ANONYMOUS,      /* code without a file (JIT) */
	FAULT_IMAGE_MISSING,  /* the bytes of the mapped file are not available */
	FAULT_IMAGE_SHORT,    /* beyond the end of the file */
	FAULT_IMAGE_MISMATCH, /* the available file is not the file that was mapped */
	FAULT_IMAGE_GONE,     /* process and file disappeared before the file could be opened */
	FAULT_KERNEL_TEXT,    /* the kernel patches this code; its bytes at that time are unknown */
	FAULT_CODE_CHANGED,   /* code read from memory after it ran contradicts the packets */
	FAULT_BAD_INSN,	      /* bytes that are no instruction */
	FAULT_NO_SPACE,	      /* it is unknown which process ran */
	/* Packets against code. */
	FAULT_TNT_UNEXPECTED,	 /* a TNT where the code needs a TIP or no packet */
	FAULT_TIP_UNEXPECTED,	 /* a TIP where the code needs a TNT or no packet */
	FAULT_TIP_NO_IP,	 /* a TIP without IP where an IP is needed */
	FAULT_RET_EMPTY,	 /* a compressed return with an empty return stack */
	FAULT_RET_NOT_TAKEN,	 /* a compressed return said "not taken" */
	FAULT_EVENT_UNREACHABLE, /* the code does not lead to the IP of a FUP or PSB */
	FAULT_PACKET_UNEXPECTED, /* another packet at a place where it is not valid */
	FAULT_STATUS,		 /* a PSB+ that contradicts what was decoded */
	FAULT_LOOP,		 /* endless direct branches without a packet */
	FAULT_UNSUPPORTED,	 /* something that this decoder does not follow */
	FAULT_GUEST,		 /* a virtual machine ran, whose code is unknown */
	/* Recording and sideband: found in the manifest and the timeline, not by the decoder. */
	FAULT_STOP_TIMEOUT,	/* a CPU did not answer the freeze */
	FAULT_SIDEBAND_LOST,	/* LOST records: images and threads are uncertain from here on */
	FAULT_SIDEBAND_BAD,	/* records that do not parse */
	FAULT_IMAGE_UNCERTAIN,	/* before the timeline's horizon */
	FAULT_AUX_TRUNCATED,	/* PERF_AUX_FLAG_TRUNCATED */
	FAULT_AUX_PARTIAL,	/* PERF_AUX_FLAG_PARTIAL: PT off while in VMX operation */
	FAULT_AUX_COLLISION,	/* PERF_AUX_FLAG_COLLISION */
	FAULT_AUX_LOST,		/* AUX records lost: such flags and stops may be unknown */
	FAULT_CPU_OFFLINE,	/* a CPU was offline: its trace and its records pause */
	FAULT_PT_UNAVAILABLE,	/* CPUs that cannot trace: only their sideband is known */
	FAULT_PT_BUSY,		/* another program used PT */
	FAULT_PT_YIELDED,	/* the recorder gave PT up on request */
	FAULT_PT_FAILED,	/* the event could not be opened, or did not run */
	FAULT_PT_STARTING,	/* the recorder had not yet begun to trace the CPU */
	FAULT_PT_SILENT,	/* user code ran, and the trace unit wrote nothing */
	FAULT_SNAPSHOT_COPY,	/* an earlier snapshot copied the CPU's ring */
	FAULT_DARK_UNLISTED,	/* more times without a trace than the recorder lists */
	FAULT_THREAD_UNCERTAIN, /* unknown thread: time is too coarse, or switch records were lost
				 */
	FAULT_UNTRACED_THREAD,	/* threads that the source cannot follow */
	FAULT_UNTRACED_CHILD,	/* processes that the source cannot follow */
	FAULT_UNTRACED_EXEC,	/* an exec of a program that the source cannot follow */
	FAULT_EXCLUDED,		/* a process that is not to be decoded (ExcludeUnits=) */
	FAULT_NO_TNT,	     /* recorded without TNT packets: only targets and events are known */
	FAULT_NO_BRANCHES,   /* recorded without branches: only events are known */
	FAULT_FILTERED,	     /* recorded with a filter: only a part of what ran is in the trace */
	FAULT_NOT_PERMITTED, /* everything that does not belong to the user who gets the report */
	FAULT_N_,
};

/* "overflow", "tnt-unexpected", ...: the name in reports; stable. */
const char *fault_name(enum fault fault);
/* One sentence for people. */
const char *fault_why(enum fault fault);
/* Whether the fault is that a CPU was not traced for a time. */
bool fault_is_dark(enum fault fault);
/* The fault called NAME, or FAULT_NONE. */
enum fault fault_by_name(const char *name);
