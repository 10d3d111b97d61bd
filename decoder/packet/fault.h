/*
 * Everything that can be wrong with a trace, and its names. A fault is data: it becomes a gap with
 * a name, a place and a count; decoding goes on at the next PSB or sooner.
 */
#pragma once

enum fault {
	FAULT_NONE = 0,
	/* Bytes. */
	FAULT_EMPTY,	  /* no trace bytes at all */
	FAULT_NO_PSB,	  /* bytes, but no PSB among them */
	FAULT_HEAD,	  /* bytes before the first PSB (the ring's oldest end); expected */
	FAULT_BAD_PACKET, /* an opcode that no packet has, or a payload that none may have */
	FAULT_TRUNCATED,  /* the trace ends within a packet */
	FAULT_OVERFLOW,	  /* OVF: the hardware lost packets */
	FAULT_TRACESTOP,  /* TraceSTOP: an address filter ended tracing */
	/* Code. */
	FAULT_UNMAPPED,	      /* nothing was mapped there at that time */
	FAULT_ANONYMOUS,      /* code without a file (JIT) */
	FAULT_IMAGE_MISSING,  /* the mapped file's bytes are not at hand */
	FAULT_IMAGE_SHORT,    /* beyond the end of the file */
	FAULT_IMAGE_MISMATCH, /* the file at hand is another than the one that was mapped */
	FAULT_IMAGE_GONE,     /* process and file were gone before anybody could open it */
	FAULT_KERNEL_TEXT,    /* the kernel patches its code there, and how it was is not known */
	FAULT_CODE_CHANGED,   /* code read from memory later than it ran contradicts the packets */
	FAULT_BAD_INSN,	      /* bytes that are no instruction */
	FAULT_NO_SPACE,	      /* it is not known which process ran */
	/* Packets against code. */
	FAULT_TNT_UNEXPECTED,	 /* TNT where the code needs a TIP, or nothing */
	FAULT_TIP_UNEXPECTED,	 /* TIP where the code needs a TNT, or nothing */
	FAULT_TIP_NO_IP,	 /* a TIP without IP where one is needed */
	FAULT_RET_EMPTY,	 /* a compressed return, and nothing on the return stack */
	FAULT_RET_NOT_TAKEN,	 /* a compressed return said "not taken" */
	FAULT_EVENT_UNREACHABLE, /* the code does not lead to the IP of a FUP or PSB */
	FAULT_PACKET_UNEXPECTED, /* another packet that cannot stand there */
	FAULT_STATUS,		 /* a PSB+ that says something else than what was decoded */
	FAULT_LOOP,		 /* endless direct branches without a packet */
	FAULT_UNSUPPORTED,	 /* something that this decoder does not follow */
	FAULT_GUEST,		 /* a virtual machine ran, whose code is not known */
	/* Recording and sideband: from the manifest and the timeline, not from the decoder. */
	FAULT_STOP_TIMEOUT,	/* a CPU did not answer the freeze */
	FAULT_SIDEBAND_LOST,	/* LOST records: images and threads are uncertain from then on */
	FAULT_SIDEBAND_BAD,	/* records that do not parse */
	FAULT_IMAGE_UNCERTAIN,	/* before the timeline's horizon */
	FAULT_AUX_TRUNCATED,	/* PERF_AUX_FLAG_TRUNCATED */
	FAULT_AUX_PARTIAL,	/* PERF_AUX_FLAG_PARTIAL: PT off while in VMX operation */
	FAULT_AUX_COLLISION,	/* PERF_AUX_FLAG_COLLISION */
	FAULT_CPU_OFFLINE,	/* a CPU was taken away: its trace and its records pause */
	FAULT_PT_UNAVAILABLE,	/* CPUs that cannot trace: of them there is only the sideband */
	FAULT_PT_BUSY,		/* so, as another user of the trace unit had it */
	FAULT_PT_YIELDED,	/* so, as it was handed back on request */
	FAULT_PT_FAILED,	/* so, as the event could not be opened or went to an error */
	FAULT_THREAD_UNCERTAIN, /* time is too coarse, or switch records were lost: who ran? */
	FAULT_UNTRACED_THREAD,	/* threads that the source cannot follow */
	FAULT_UNTRACED_CHILD,	/* processes that the source cannot follow */
	FAULT_UNTRACED_EXEC,	/* a program that was exec'ed and not followed */
	FAULT_EXCLUDED,		/* a process that is not to be decoded (ExcludeUnits=) */
	FAULT_NOT_PERMITTED,	/* all that is not the user's for whom it was decoded */
	FAULT_N_,
};

/* "overflow", "tnt-unexpected", ...: the name in reports; stable. */
const char *fault_name(enum fault fault);
/* One sentence for people. */
const char *fault_why(enum fault fault);
/* The fault of that name; FAULT_NONE: none. */
enum fault fault_by_name(const char *name);
