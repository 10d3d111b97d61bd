/*
 * Trace sources: the project's one vtable, behind which rings are filled by hardware or by
 * software.
 *
 * This room reads ring buffers in the kernel's layout, and knows neither system calls of perf nor
 * the emulator. A source owns, for each CPU, a ring that PT fills (AUX, with its own DATA ring) and
 * a ring for the sideband (or one DATA ring serves both). Nothing above ring.c can tell one source
 * from another.
 *
 * source.c has what all sources share. ring.c reads one DATA or AUX ring. clock.c converts between
 * the TSC and the perf clock. dark.c lists the times in which a CPU was not traced, and pulse.c
 * sees whether a trace unit writes. drain.c is the thread that empties DATA rings, and recqueue.c
 * the queue between that thread and the recorder's loop. freeze.c stops all CPUs and copies their
 * AUX rings at a snapshot, with the threads of copiers.c. realtime.c gives threads priority.
 *
 * Decisions that govern the room:
 * - Three kinds of threads: the drain's thread moves records from DATA rings to the queue in
 *   memory and does nothing else; the loop takes records from the queue and answers requests; a
 *   job's thread freezes, copies, writes and decodes. They share no other mutable state. Whatever
 *   takes long in the loop or in a job costs room in the queue, and no record is lost.
 * - The drain's thread takes no lock that another thread holds. It sleeps until a ring fills, or
 *   for a quarter of a second, and has real-time priority where that is permitted.
 * - At a snapshot all CPUs stop at once, the requested CPU first. A few threads on each memory node
 *   copy in that order, into memory on the CPU's node, and restart each CPU behind its own copy.
 *   These threads, and the job's while CPUs are stopped, have real-time priority where permitted.
 *   The memory was touched long before, and so were the rings; it is made anew when rings come or
 *   go, never at a trigger. The
 *   kernel's AUX record of the stop says when each CPU stopped.
 * - Every CPU has a state with a reason (enum source_cpu_state). tend() tries CPUs again that do
 *   not trace: on news of CPUs, after sleep, and as time passes. Rings come and go with the CPU
 *   (struct source_watch). A ring stays while its CPU is offline, but not over a sleep that took
 *   the CPUs' power: the clock changes then, and a CPU that stayed online no longer traces.
 * - A CPU runs when it was seen to run, not when a call returned 0. Each span in which a CPU was
 * not traced is kept with its reason, begin and end (struct dark).
 * - Without PT all CPUs have the state no-pt: only the sideband is recorded, with
 *   CLOCK_MONOTONIC.
 *
 * The daemon's manager owns the source; a source owns its CPUs and rings; drain and freezer borrow
 * the rings.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/proc/procscan.h"
#include "capture/ring/clock.h"
#include "capture/ring/dark.h"
#include "capture/ring/pulse.h"
#include "capture/ring/ring.h"
#include "proto/bundle/manifest.h"

struct source;

/* The state of a CPU's trace. The PT rings exist in state TRACING, and in OFFLINE and FAILED if
 * they hold an earlier trace; else pt.data and pt.aux are NULL. The sideband ring is independent of
 * the state. */
enum source_cpu_state {
	SOURCE_CPU_TRACING = 0,
	SOURCE_CPU_OFFLINE, /* the CPU is offline */
	SOURCE_CPU_BUSY,    /* another program uses the CPU's PT; tried again */
	SOURCE_CPU_YIELDED, /* the recorder gave PT up on request */
	SOURCE_CPU_FAILED,  /* the event cannot be opened, or is in error; tried again */
	SOURCE_CPU_NO_PT,   /* the host has no PT: sideband only */
};
#define SOURCE_WHY_SIZE 256

struct source_cpu {
	uint32_t cpu;
	struct ring pt;	      /* AUX, and DATA with the records AUX and ITRACE_START */
	struct ring sideband; /* data NULL: pt's DATA ring carries the sideband too */
	enum source_cpu_state state;
	char why[SOURCE_WHY_SIZE]; /* one line for the user if the state is not TRACING; else "" */
	int node;		   /* NUMA node; -1: unknown */
	/* Borrowed. Become readable (POLLIN) when the ring fills. 0 or less: the ring has no
	 * wakeup. */
	int pt_fd, sideband_fd;
	struct dark dark; /* when the CPU was not traced */
	/* Perf clock when the last snapshot stopped the CPU or, if the CPU was not to be stopped,
	 * the last CPU; ABSENT: unknown. A dark time from then on is no part of that snapshot. */
	uint64_t frozen_ns;
	struct pulse pulse; /* of the PT ring; all zero when the ring is new */
	/* Perf clock of the newest AUX record that was taken in: the kernel had stopped the event
	 * then. 0: none. Written and read by the loop only. */
	uint64_t aux_ns;
};

/* Callbacks for a user of the rings. Called in the thread that opened the source: right after a
 * ring is mapped, and before a ring is unmapped. source_set_watch() calls ring_added for all rings.
 */
struct source_watch {
	void *userdata;
	void (*ring_added)(void *userdata, uint32_t index, struct ring *ring, int fd);
	void (*ring_removed)(void *userdata, uint32_t index, struct ring *ring);
};

/* The DATA rings of a CPU. */
enum source_ring { SOURCE_RING_PT, SOURCE_RING_SIDEBAND, SOURCE_N_RINGS };

struct source_ops {
	const char *name; /* "emulated", "intel_pt" */
	/* Stops or starts tracing on a CPU. After 0 or SOURCE_NO_ANSWER, aux_head is final.
	 * SOURCE_NO_ANSWER: the CPU did not react in time; the ring holds what was written. 0 of
	 * enable: the CPU was seen to trace again. Several threads call enable at once, each for
	 * another CPU. */
	int (*disable)(struct source *s, uint32_t index);
	int (*enable)(struct source *s, uint32_t index);
	/* Corrects what /proc says about a process (an emulated process looks like its emulator).
	 * NULL: /proc is right. */
	void (*describe)(struct source *s, struct procinfo *info);
	/* Adds notes about what the source could not see. 0 or -errno. */
	int (*add_notes)(struct source *s, struct manifest *m);
	/* How many CPUs run threads now whose switches are not recorded; MANIFEST_ABSENT: unknown.
	 * NULL: none. */
	uint64_t (*unrecorded)(const struct source *s);
	/* Frees everything, including S and its cpus. */
	void (*free)(struct source *s);
	/* The CPU's TSC now, on s->clock. NULL: the host's TSC. */
	uint64_t (*read_tsc)(struct source *s, uint32_t index);
	/* Stops all CPUs that trace, as close together as possible, beginning with the CPU of index
	 * FIRST; ret[i] is what disable would have returned. NULL: disable is called for one CPU
	 * after the other. */
	void (*disable_all)(struct source *s, uint32_t first, int *ret);
	/* Opens events of CPUs that came back or became free, and repairs events in error. Called
	 * in the thread that opened the source, never while a job uses the events. NULL: nothing to
	 * do. Returns the number of CPUs whose state changed. */
	size_t (*tend)(struct source *s);
	/* Gives the PMU up (AWAY), or takes it again. Called as tend is. NULL: not possible. 0 or
	 * -errno. */
	int (*yield)(struct source *s, bool away);
	/* Returns in *ret how many records found no room in a DATA ring of the CPU since the ring
	 * was added, including those that no LOST record has reported yet. NULL: not known. 0 or
	 * -errno. */
	int (*lost)(const struct source *s, uint32_t index, enum source_ring ring, uint64_t *ret);
	/* Returns in RET[i], for each CPU, for how many ns user code has run on it so far, in steps
	 * of at most *ret_step_ns; UINT64_MAX: not known. Called by jobs. NULL: not known. 0 or
	 * -errno. */
	int (*ran)(const struct source *s, uint64_t *ret, uint64_t *ret_step_ns);
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
	/* If clock.valid is false: whether the perf clock is CLOCK_MONOTONIC; else it is unknown.
	 */
	bool clock_is_monotonic;
	/* The perf_event_attrs as text, "type=8 size=128 config=0x300e601 ..."; owned by the
	 * source; NULL: none. */
	const char *pt_attr, *sideband_attr;
	/* Kinds of sideband records that this kernel does not write, "text_poke,cgroup"; NULL: the
	 * kernel writes all kinds. */
	const char *sideband_missing;
	/* MMAP2 records hold device and inode even if they are marked as having a build id: if
	 * another event on the host asks for build ids, perf_event_mmap_output()
	 * (kernel/events/core.c) leaves the mark on the record that it writes for the next event.
	 */
	bool maps_by_inode;
	const char *preset; /* "light", "std", "precise", "custom"; NULL: none; static text */
	/* One line that says which rings are smaller than asked for; NULL: none. */
	const char *sizes_note;
	const struct source_watch *watch; /* borrowed; NULL: none */
};

/* Sets S's watch (NULL: none), and calls ring_added for every ring that exists. */
void source_set_watch(struct source *s, const struct source_watch *watch);
/* "tracing", "offline", "busy", "yielded", "failed", "no-pt". */
const char *source_cpu_state_name(enum source_cpu_state state);
/* The name of the fault (decoder/packet/fault.h) that a CPU in this state is; NULL: none. */
const char *source_cpu_state_fault(enum source_cpu_state state);

void source_free(struct source *s);
void source_freep(struct source **s);
/* The TSC of CPU INDEX now; its perf clock now, or MANIFEST_ABSENT without a clock. */
uint64_t source_tsc(struct source *s, uint32_t index);
uint64_t source_now_ns(struct source *s, uint32_t index);

/* No kernel has more nodes (CONFIG_NODES_SHIFT is at most 10). */
#define SOURCE_MAX_NODES 1024u
/* The NUMA node of CPU as SYSFS ("/sys") names it (Documentation/ABI/stable/sysfs-devices-node).
 * -1: unknown, or the host has only one node and placement does not matter. */
int source_node_of_cpu(const char *sysfs, uint32_t cpu);

enum source_trace { SOURCE_TRACE_USER = 1, SOURCE_TRACE_KERNEL = 2, SOURCE_TRACE_BOTH = 3 };

/* The wishes that all sources understand. */
struct source_config {
	uint64_t data_size, aux_size; /* bytes, powers of two of at least a page */
	const char *pt_terms; /* config terms as perf names them; NULL: those of the preset */
	const char *preset;   /* capture/perf/preset.c; NULL: "std", or "custom" with pt_terms */
	/* For intel_pt only. */
	enum source_trace trace; /* 0: user */
	const char *cpus;	 /* a list as the kernel writes it ("0-3,8"); NULL: all */
	uint64_t ring_budget; /* bytes of all rings and one copy area; 0: a sixteenth of memory */
	bool degrade;	      /* record the sideband alone if PT is missing or cannot be used */
};

/* capture/emu/host/source_emu_open.c: COMMAND and its descendants under QEMU's user-mode emulator
 * with our plugin, on N_CPUS virtual CPUs. */
#define SOURCE_EMU_MAX_CPUS    64u
#define SOURCE_EMU_MAX_OFFLINE 16u

/* A virtual CPU that goes offline FROM after the start and comes back at TO. */
struct source_emu_offline {
	uint32_t cpu;		     /* below n_cpus */
	uint64_t from_usec, to_usec; /* from < to; to UINT64_MAX: never comes back */
};

/* The caller has checked that numbers are within the ranges given here. */
struct source_emu_config {
	struct source_config common;
	uint32_t n_cpus;	 /* 1..SOURCE_EMU_MAX_CPUS */
	uint32_t max_tasks;	 /* threads that the machine takes: EMURING_MIN_TASKS.. */
	uint64_t quantum;	 /* instructions that a thread runs before another gets its CPU */
	uint64_t overflow_bytes; /* bytes of a CPU's trace between internal overflows; 0: none */
	uint32_t lose_every;	 /* every Nth sideband record finds no room; 0: none */
	bool build_id;		 /* MMAP2 with build ids instead of device and inode */
	/* Borrowed during the call. The times of one CPU do not overlap, and at least one CPU is
	 * always online. */
	const struct source_emu_offline *offline;
	size_t n_offline; /* up to SOURCE_EMU_MAX_OFFLINE */
	bool virtual_clock;
	const char *truth_path;	 /* an existing, empty directory; NULL: none */
	const char *plugin_path; /* of ptsnap-emupmu.so */
	const char *qemu_path;	 /* NULL: qemu-x86_64 by PATH */
	char *const *argv;	 /* COMMAND ARGS, NULL-terminated */
};
/* Checks QEMU (found, version, plugins), finds COMMAND by PATH, lays out the rings, and starts
 * COMMAND with tracing enabled from its first instruction. COMMAND inherits our stdin, stdout,
 * stderr, working directory, environment and signal mask. 0; or -errno, with one line for the user,
 * without a newline, in WHY (WHY_SIZE bytes). */
int source_emu_open(const struct source_emu_config *config, struct source **ret, char *why,
		    size_t why_size);
/* capture/emu/host/source_emu_attach.c: attaches to the machine that another process keeps and
 * offers at SOCKET (capture/emu/machine/emuring.h). Accepts only offers by root or our own user,
 * of rings that fit into MAX_SIZE bytes (0: any size). 0 or -errno, with one line in WHY. */
int source_emu_attach(const char *socket, uint64_t max_size, struct source **ret, char *why,
		      size_t why_size);
/* The channel to the other process, borrowed: readable when COMMAND has ended or that process has
 * exited. */
int source_emu_channel(const struct source *s);
/* COMMAND's name as an argv. */
char *const *source_emu_argv(const struct source *s);
struct emuoffer;
/* Fills *ret with the offer of our own machine that source_emu_attach() takes. Returns the fd of
 * its shared memory, borrowed, or -errno. */
int source_emu_offer(const struct source *s, struct emuoffer *ret);
/* Stops all CPUs for good, even if another process wants them to run. */
void source_emu_stop(struct source *s);
/* The pid of COMMAND; > 0 until source_emu_reaped(). */
pid_t source_emu_pid(const struct source *s);
/* The pidfd of COMMAND, borrowed: readable when COMMAND has ended. */
int source_emu_pidfd(const struct source *s);
/* Says that the caller has reaped COMMAND: from now on disable does not wait for an answer. */
void source_emu_reaped(struct source *s);
/* Sends SIGNAL to COMMAND (kill(2)). */
int source_emu_kill(const struct source *s, int signal);
