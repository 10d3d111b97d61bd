/*
 * The project's one vtable: where rings come from. A source owns, per CPU, a ring that PT fills and
 * a ring for sideband (the same one where one DATA ring serves both), in the kernel's layout.
 * Everything after ring.c cannot tell one source from another.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/proc/procscan.h"
#include "capture/ring/clock.h"
#include "capture/ring/ring.h"
#include "proto/bundle/manifest.h"

struct source;

/* What a CPU's trace is doing. Rings exist in state TRACING, and in OFFLINE and FAILED where they
 * hold what was traced before; else pt.data and pt.aux are NULL. The sideband ring is independent
 * of all that. */
enum source_cpu_state {
	SOURCE_CPU_TRACING = 0,
	SOURCE_CPU_OFFLINE, /* the CPU is away */
	SOURCE_CPU_BUSY,    /* another user of PT has it; tried again */
	SOURCE_CPU_YIELDED, /* handed back on request */
	SOURCE_CPU_FAILED,  /* cannot be opened, or went to the error state; tried again */
	SOURCE_CPU_NO_PT,   /* the host has none: sideband only */
};
#define SOURCE_WHY_SIZE 256

struct source_cpu {
	uint32_t cpu;
	struct ring pt;	      /* DATA with AUX, ITRACE_START; and AUX */
	struct ring sideband; /* data NULL: pt's DATA ring carries the sideband too */
	enum source_cpu_state state;
	char why[SOURCE_WHY_SIZE]; /* one line for the user when it is not TRACING; else "" */
	int node;		   /* NUMA node; -1: unknown */
	/* Become readable (POLLIN) when a ring fills; 0 or less: nobody wakes for it.
	 * Borrowed. */
	int pt_fd, sideband_fd;
};

/* Who must know which rings there are. Called in the thread that opened the source, at once after a
 * ring is mapped (all that exist, when it is set) and before one is unmapped. */
struct source_watch {
	void *userdata;
	void (*ring_added)(void *userdata, uint32_t index, struct ring *ring, int fd);
	void (*ring_removed)(void *userdata, uint32_t index, struct ring *ring);
};

struct source_ops {
	const char *name; /* "emulated", "intel_pt" */
	/* Stop or start tracing on CPU; when it returns 0 or SOURCE_NO_ANSWER, aux_head is final.
	 * SOURCE_NO_ANSWER: the CPU did not react in time; the ring holds what was written. enable
	 * is called from several threads at once, of each CPU by one. */
	int (*disable)(struct source *s, uint32_t index);
	int (*enable)(struct source *s, uint32_t index);
	/* Correct what /proc says of a process (an emulated one looks like its emulator). NULL:
	 * right as it is. */
	void (*describe)(struct source *s, struct procinfo *info);
	/* What it could not see, as notes. 0 or -errno. */
	int (*add_notes)(struct source *s, struct manifest *m);
	/* Everything: S itself and its cpus too. */
	void (*free)(struct source *s);
	/* The CPU's TSC now, on s->clock. NULL: it is the host's (a virtual clock is not). */
	uint64_t (*read_tsc)(struct source *s, uint32_t index);
	/* Stop all CPUs that trace, as close together as can be, FIRST (index) first; ret[i] is
	 * what disable would have returned. NULL: one disable after the other. */
	void (*disable_all)(struct source *s, uint32_t first, int *ret);
	/* Look after the events: open what came back or became free, mend what is in error. In the
	 * thread that opened the source, never while a job has the events. NULL: nothing to look
	 * after. Returns how many CPUs changed state. */
	size_t (*tend)(struct source *s);
	/* Hand the PMU back (AWAY), or take it again; as tend. NULL: not possible. 0 or -errno. */
	int (*yield)(struct source *s, bool away);
	/* How many records have found no room in the sideband ring of CPU, ever, since that ring
	 * was added: those that no LOST record has told of yet, too. NULL: not known. 0 or -errno.
	 */
	int (*lost)(const struct source *s, uint32_t index, uint64_t *ret);
};
#define SOURCE_NO_ANSWER 1

struct source {
	const struct source_ops *ops;
	struct source_cpu *cpus; /* owned */
	size_t n_cpus;
	struct clock_params clock; /* perf clock <-> TSC */
	/* The trace configuration in use, as it goes into every manifest. */
	uint64_t pt_config;
	const char *pt_terms; /* owned by the source */
	bool trace_user, trace_kernel;
	uint32_t mtc_period; /* UINT32_MAX: no MTC */
	uint32_t max_nonturbo_ratio, tsc_art_num, tsc_art_den;
	bool noretcomp;
	/* clock.valid false: the perf clock is CLOCK_MONOTONIC, or not known. */
	bool clock_is_monotonic;
	/* The attrs in words, "type=8 size=128 config=0x300e601 ..."; owned by the source; NULL:
	 * there is none. */
	const char *pt_attr, *sideband_attr;
	/* Kinds of sideband that this kernel does not tell, "text_poke,cgroup"; NULL: all told. */
	const char *sideband_missing;
	/* Its MMAP2 records hold device and inode, whatever they say: where another event on the
	 * host asks for build ids, kernel/events/core.c, perf_event_mmap_output() leaves the mark
	 * of one on the record that it writes for the next event. */
	bool maps_by_inode;
	const char *preset; /* "light", "std", "precise", "custom"; NULL: none; static text */
	/* What was smaller than asked for, in one line; NULL: nothing. */
	const char *sizes_note;
	const struct source_watch *watch; /* borrowed; NULL: nobody */
};

/* Sets S's watch (NULL: none) and tells it of the rings that there are. */
void source_set_watch(struct source *s, const struct source_watch *watch);
/* "tracing", "offline", "busy", "yielded", "failed", "no-pt". */
const char *source_cpu_state_name(enum source_cpu_state state);

void source_free(struct source *s);
void source_freep(struct source **s);
/* The TSC of CPU INDEX now, the perf clock there, ABSENT where there is no clock. */
uint64_t source_tsc(struct source *s, uint32_t index);
uint64_t source_now_ns(struct source *s, uint32_t index);

enum source_trace { SOURCE_TRACE_USER = 1, SOURCE_TRACE_KERNEL = 2, SOURCE_TRACE_BOTH = 3 };

/* What every source is asked for. */
struct source_config {
	uint64_t data_size, aux_size; /* bytes, powers of two of at least a page */
	const char *pt_terms; /* config terms as perf names them; NULL: those of the preset */
	const char *preset;   /* capture/perf/preset.h; NULL: "std", or "custom" with pt_terms */
	/* These are for intel_pt only. */
	enum source_trace trace; /* 0: user */
	const char *cpus;	 /* a list as the kernel writes it, "0-3,8"; NULL: all */
	uint64_t ring_budget; /* bytes of all rings and one copy area; 0: a sixteenth of memory */
	bool degrade; /* go on with the sideband alone where there is no PT, or none to be had */
};

/* capture/emu/host/source_emu_open.c: COMMAND and what comes of it under QEMU's user-mode emulator
 * with our plugin, on N_CPUS virtual CPUs. */
#define SOURCE_EMU_MAX_CPUS    64u
#define SOURCE_EMU_MAX_OFFLINE 16u

/* A virtual CPU taken away FROM so long after the start, and given back at TO. */
struct source_emu_offline {
	uint32_t cpu;		     /* below n_cpus */
	uint64_t from_usec, to_usec; /* from < to; UINT64_MAX: never given back */
};

/* Numbers are within the ranges given here: the caller checked that. */
struct source_emu_config {
	struct source_config common;
	uint32_t n_cpus;	 /* 1..SOURCE_EMU_MAX_CPUS */
	uint32_t max_tasks;	 /* threads that the machine takes: EMURING_MIN_TASKS.. */
	uint64_t quantum;	 /* instructions that a thread runs before another gets its CPU */
	uint64_t overflow_bytes; /* an internal overflow each so many bytes of a CPU's trace; 0:
				  * none */
	uint32_t lose_every;	 /* each such sideband record finds no room; 0: none */
	bool build_id;		 /* MMAP2 with build ids instead of device and inode */
	/* Those of one CPU do not overlap, and at no time are all CPUs away. Borrowed during the
	 * call. */
	const struct source_emu_offline *offline;
	size_t n_offline; /* up to SOURCE_EMU_MAX_OFFLINE */
	bool virtual_clock;
	const char *truth_path;	 /* of a directory that exists and is empty; NULL: none */
	const char *plugin_path; /* of ptsnap-emupmu.so */
	const char *qemu_path;	 /* NULL: qemu-x86_64 by PATH */
	char *const *argv;	 /* COMMAND ARGS, NULL-terminated */
};
/* Checks QEMU (found, version, plugins), finds COMMAND by PATH, lays out the rings, starts COMMAND
 * with tracing enabled from its first instruction. Stdin, stdout, stderr, working directory,
 * environment and signal mask are COMMAND's as they are ours.
 * 0; -errno, with one line for the user, ending without a newline, in why (WHY_SIZE bytes). */
int source_emu_open(const struct source_emu_config *config, struct source **ret, char *why,
		    size_t why_size);
/* capture/emu/host/source_emu_attach.c: the machine that another process keeps and offers at SOCKET
 * (capture/emu/machine/emuoffer.h). Only root or our own user may offer one, of rings that fit into
 * MAX_SIZE bytes (0: of any size). 0 or -errno, with one line in WHY. */
int source_emu_attach(const char *socket, uint64_t max_size, struct source **ret, char *why,
		      size_t why_size);
/* The channel, borrowed: readable when COMMAND has ended or the other process has gone. */
int source_emu_channel(const struct source *s);
/* COMMAND's name as an argv. */
char *const *source_emu_argv(const struct source *s);
/* What source_emu_attach is to be told of a machine of our own. The fd of its shared memory,
 * borrowed, or -errno. */
struct emuoffer;
int source_emu_offer(const struct source *s, struct emuoffer *ret);
/* Stops all CPUs for good, whatever another process wished. */
void source_emu_stop(struct source *s);
/* The traced command; pid > 0 until source_emu_reaped was told. */
pid_t source_emu_pid(const struct source *s);
/* A pidfd of it, borrowed: readable when it ended. */
int source_emu_pidfd(const struct source *s);
/* The caller has reaped it: from now on disable does not wait for an answer. */
void source_emu_reaped(struct source *s);
/* Pass a signal on to the command (kill(2)). */
int source_emu_kill(const struct source *s, int signal);

/* capture/perf/source_perf.c: intel_pt events of this host. On a host without the PMU, or where
 * they cannot be opened: -errno, and why says why and what to do. */
int source_perf_open(const struct source_config *config, struct source **ret, char *why,
		     size_t why_size);
