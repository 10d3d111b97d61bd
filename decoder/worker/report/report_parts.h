/*
 * The parts of a report, which report.c puts together. One function writes each part; lists are
 * written element by element, so that their sizes can be measured.
 */
#pragma once

#include "decoder/worker/report/report.h"
#include "proto/json.h"

#define REPORT_MAX_STACK   256u	 /* frames of a thread; the innermost are kept */
#define REPORT_MAX_CMDLINE 1024u /* bytes */
#define REPORT_MAX_STRING  4096u /* bytes of any other string of a bundle */
#define REPORT_MAX_TURNS   10000u

enum report_list_id {
	/* The most important list first. */
	REPORT_SUSPECTS,
	REPORT_CPUS,
	REPORT_THREADS,
	REPORT_PROCESSES,
	REPORT_IMAGES,
	REPORT_GAPS,
	REPORT_FUNCTIONS,
	REPORT_ABORTS,
	REPORT_INTERRUPTS,
	REPORT_POWER,
	REPORT_FREQUENCIES,
	REPORT_PTWRITES,
	REPORT_TURNS,
	REPORT_N_LISTS,
};

struct report;

struct report_list {
	const char *key;
	size_t total, kept;
	void (*element)(const struct report *r, struct json_writer *w, size_t i);
	bool newest_first; /* elements are counted from the newest, and written oldest first */
	uint64_t bytes;	   /* of the kept elements, once they are measured */
};

/* How much is known of a thread. The list of threads is in this order. */
enum report_known {
	REPORT_DECODED,
	REPORT_LAST_STRETCH,
	REPORT_UNTRACED, /* it ran on CPUs without a trace */
	REPORT_WAITED,	 /* it did not run within the window, and nothing is known of its code */
};

/* So many threads without code are listed at most, those of processes with code first, then those
 * that ran last. */
#define REPORT_MAX_WAITED 256u

/* What a thread was doing at the trigger. */
enum report_state_kind {
	REPORT_STATE_UNKNOWN,
	REPORT_STATE_RUNNING,  /* on a CPU, in user code or in the kernel */
	REPORT_STATE_RUNNABLE, /* it lost its CPU and could have gone on */
	REPORT_STATE_BLOCKED,  /* it gave its CPU away itself */
	REPORT_STATE_EXITED,
};

struct report_state {
	const struct timeline_thread *thread;
	enum report_state_kind kind;
	bool seen;	    /* it had a turn: ran, left and cpu are known */
	bool certain;	    /* no records were lost since that could say otherwise */
	bool listed;	    /* the list of threads has it */
	bool again;	    /* it had a CPU behind the trigger */
	uint64_t ran, left; /* its newest turn, perf ns; 0: before what is known */
	size_t cpu;	    /* of that turn; index into the manifest */
};

/* Not the number of a system call. */
#define REPORT_NO_CALL UINT64_MAX

/* A thread that slept behind the trigger. */
struct report_asleep {
	uint32_t pid, tid, ns_tid; /* ns_tid: in its own pid namespace */
	bool uninterruptible;
	uint64_t call;	/* the number of the system call, or REPORT_NO_CALL */
	uint64_t futex; /* the address that it waits for; 0: none */
	uint32_t owner; /* if that is a mutex of glibc: an ns_tid, or 0 */
};

/* A thread: counters [first, end) of a sorted tally; no counters if it was not traced. */
struct report_thread {
	enum report_known known;
	const struct tally *tally; /* of the window, or of last stretches before it */
	size_t first, end;
	uint64_t insns, branches, ticks;
	uint64_t last_branches;		      /* known of it, REPORT_LAST_BRANCHES at most */
	size_t frames;			      /* of its stack */
	const struct timeline_thread *thread; /* NULL: unknown */
	uint64_t cpu_ns;		      /* without counters: how long the thread had CPUs */
	uint64_t rank;			      /* of REPORT_WAITED: the greatest comes first */
};

/* How long a thread had CPUs. */
struct report_share {
	const struct timeline_thread *thread;
	uint64_t ns;
};

/* From when until when something is known of a CPU, perf ns; empty if nothing is known. */
struct report_reach {
	uint64_t begin, end;
};

/* Turn number INDEX of the timeline on the CPU with index CPU in the manifest. */
struct report_turn {
	size_t cpu, index;
};

struct report_image {
	uint32_t index; /* of the manifest */
	uint64_t insns;
	uint64_t unnamed; /* of them in functions without a name */
};

struct report_source;
struct report_places;

struct report {
	struct decode *d; /* borrowed */
	const struct manifest *m;
	const struct decode_options *options;
	const char *version; /* of this program */
	/* The trigger, perf ns: the last moment of all. MANIFEST_ABSENT: there is none, or the
	 * report ends before. */
	uint64_t now;
	struct report_asleep *asleep; /* by process and thread; owned */
	size_t n_asleep;
	bool doubt_behind;  /* records were lost behind the trigger: any thread may have run */
	double tick_cycles; /* core cycles in a tick of the TSC; 0: not known, or not the same */
	struct report_list lists[REPORT_N_LISTS];
	bool measuring; /* write what is at least as long as the final text */
	/* Last branches of each of the first branches_threads threads, REPORT_LAST_BRANCHES at
	 * most; the other threads keep none. */
	size_t branches_kept, branches_threads;
	uint64_t branches_total, frames_total;
	struct report_thread *threads;
	uint64_t waited_total; /* threads that are REPORT_WAITED, also those that are not listed */
	struct report_state *states; /* of all threads of the timeline, by address */
	size_t n_states;
	struct insn_reader *reader;
	struct report_suspect *suspects;
	size_t n_suspects, max_suspects;
	uint32_t *gaps;	     /* indices, in the order in which they are kept */
	uint32_t *processes; /* of the manifest that may be named: indices */
	size_t n_processes;
	uint64_t sideband_begin;   /* perf ns; MANIFEST_ABSENT */
	struct report_turn *turns; /* newest first */
	uint64_t turns_total;	   /* including turns without an element */
	struct report_image *images;
	uint32_t *image_places;	   /* manifest index -> place in images */
	uint32_t *functions;	   /* indices, most self instructions first */
	uint32_t *function_places; /* number in the tally -> place in functions; UINT32_MAX */
	struct report_source *source;
	struct report_places *places;
};

/* --- Places: report_places.c --- */

/* 0 or -ENOMEM. */
int report_places_init(struct report *r);
void report_places_done(struct report *r);
/* KEY: the index of the place of ADDRESS in CONTEXT; null for 0 and for an address that the report
 * may not tell. */
void report_place(const struct report *r, struct json_writer *w, const char *key, uint32_t context,
		  uint64_t address);
/* The same for an address of an unknown context, of which nothing more is known; 0 is an address,
 * and MANIFEST_ABSENT is none. */
void report_bare_place(const struct report *r, struct json_writer *w, const char *key,
		       uint64_t address);
/* The same for the first instruction of the function with this number in the tally. */
void report_function_place(const struct report *r, struct json_writer *w, const char *key,
			   uint32_t number);
/* "places": all that were mentioned. */
void report_places(const struct report *r, struct json_writer *w);
/* The name in the symbol table of the function at ADDRESS; borrowed; NULL: unknown. */
const char *report_linkage_at(const struct report *r, uint32_t context, uint64_t address);

/* How many places there are, and the bytes that they are measured to take. */
struct report_places_mark {
	size_t n;
	uint64_t bytes;
};
/* From now on new places are measured, while r->measuring. 0 or -ENOMEM. */
int report_places_measure(struct report *r);
struct report_places_mark report_places_mark(const struct report *r);
/* Forgets the places that were added since report_places_mark() gave TO; {0}: all places. */
void report_places_forget(const struct report *r, struct report_places_mark to);
/* 0; -ENOMEM: some place could not be added. */
int report_places_error(const struct report *r);

/* --- Values: report_values.c --- */

/* Whether the report is for one user alone (permit.h). */
bool report_is_limited(const struct report *r);
/* Whether the report may tell what THREAD did at TIME (perf ns). */
bool report_permits(const struct report *r, const struct timeline_thread *thread, uint64_t time);
/* The name of THREAD at TIME, perf ns; never the name of another thread with the same number. */
const char *report_comm(const struct report *r, const struct timeline_thread *thread,
			uint64_t time);
/* Perf time NS relative to the trigger; null if either is unknown. */
void report_at(const struct report *r, struct json_writer *w, const char *key, uint64_t ns);
/* "atNSec" and "uncertainNSec" of what happened within [LO, HI] TSC. Both are null if LO is 0; the
 * latter is null if HI is UINT64_MAX. */
void report_when(const struct report *r, struct json_writer *w, uint64_t lo, uint64_t hi);
/* The frequency that a core:bus ratio (CBR) means, rounded; null if the bus clock is unknown. */
void report_mhz(const struct report *r, struct json_writer *w, const char *key, uint64_t ratio);
/* TICKS of TSC in ns. */
void report_span(const struct report *r, struct json_writer *w, const char *key, uint64_t ticks);
/* "image": where image INDEX (of the manifest) is in the report; nothing if it is not there. */
void report_image_ref(const struct report *r, struct json_writer *w, uint32_t index);

/* --- Source: report_source.c --- */

/* 0 or -ENOMEM. */
int report_source_init(struct report *r);
void report_source_done(struct report *r);
/* The name that the source has for LINKAGE, a name of a symbol or of DWARF (NULL: none). Valid
 * until the next call. */
const char *report_source_name(const struct report *r, const char *linkage);
/* The following functions write nothing if nothing is known. */
/* "linkage", if the name differs from LINKAGE. */
void report_linkage(const struct report *r, struct json_writer *w, const char *linkage);
/* "file" and "line" of the instruction at OFFSET of IMAGE (of the manifest), within the outermost
 * function, into which others were inlined. */
void report_source(const struct report *r, struct json_writer *w, uint32_t image, uint64_t offset);
/* "inlined": the functions that were inlined there. */
void report_inlined(const struct report *r, struct json_writer *w, uint32_t image, uint64_t offset);
/* "dwarf" of IMAGE. */
void report_dwarf(const struct report *r, struct json_writer *w, uint32_t image);

/* --- Where threads slept: report_asleep.c --- */

/* 0 or -ENOMEM. */
int report_prepare_asleep(struct report *r);
/* Where the thread of S (may be NULL), whose last code calls system call CALL (or REPORT_NO_CALL),
 * sleeps since before the trigger; NULL: not known. */
const struct report_asleep *report_asleep(const struct report *r, const struct report_state *s,
					  uint64_t call);
/* The thread that holds the mutex of glibc that A waits for, and that sleeps, too; NULL: not
 * known. */
const struct report_state *report_lock_owner(const struct report *r, const struct report_asleep *a);

/* --- States of threads at the trigger: report_states.c --- */

/* 0 or -ENOMEM. */
int report_prepare_states(struct report *r);
/* NULL: nothing is known of THREAD, or there was no trigger. */
const struct report_state *report_state(const struct report *r,
					const struct timeline_thread *thread);
/* The list of threads has THREAD (may be NULL). */
void report_state_mark(struct report *r, const struct timeline_thread *thread);
/* Whether COUNTERS have code of the thread's last turn, which S (may be NULL) knows. */
bool report_code_is_known(const struct report *r, const struct report_state *s,
			  const struct tally_counters *counters);
/* The number of the system call that COUNTERS of THREAD end with, as the executed code sets it;
 * REPORT_NO_CALL: they end with none or before its last turn, or the number is not known. COUNTERS
 * may be NULL. */
uint64_t report_system_call(const struct report *r, const struct timeline_thread *thread,
			    const struct tally_counters *counters);
/* The number of the system call that C made BACK branches before their last one, as the executed
 * code sets it; REPORT_NO_CALL: there is none, or its number is not known. */
uint64_t report_call_at(const struct report *r, const struct tally_counters *c, uint64_t back);
/* "systemCall" with this number. */
void report_write_call(struct json_writer *w, uint64_t number);
/* "state" of THREAD, whose newest counters are LAST; both may be NULL. */
void report_write_state(const struct report *r, struct json_writer *w,
			const struct timeline_thread *thread, const struct tally_counters *last);

/* --- The lists; report.c calls these in this order. 0 or -ENOMEM. --- */

/* Finds out since when switch records are known; the other functions need that. */
void report_prepare_reach(struct report *r);
/* Finds out for how long each CPU was not traced. */
int report_prepare_untraced(struct report *r);
int report_prepare_threads(struct report *r);
int report_prepare_images(struct report *r);
int report_prepare_functions(struct report *r);
int report_prepare_processes(struct report *r);
int report_prepare_turns(struct report *r);
void report_prepare_marks(struct report *r);
/* The first gaps of each kind come first, so that many of one kind do not hide the others. */
int report_prepare_gaps(struct report *r);
/* Puts the gaps that are kept in the order of their numbers. */
void report_sort_gaps(struct report *r);

/* Finds what stands out, behind all others: report_suspects.c. */
int report_prepare_suspects(struct report *r);

/* --- The parts --- */

/* "name" of a function, and "linkage". The values are those of struct function. */
void report_name(const struct report *r, struct json_writer *w, const char *name, uint32_t image,
		 uint64_t file_address, uint64_t offset);

/* How many last branches of thread I are kept. */
uint64_t report_branches_kept(const struct report *r, size_t i);

void report_host(const struct report *r, struct json_writer *w);
/* The part of the snapshot that the report is about; nothing if that is all of it. */
void report_slice(const struct report *r, struct json_writer *w);
void report_trigger(const struct report *r, struct json_writer *w);
void report_configuration(const struct report *r, struct json_writer *w);
void report_trace(const struct report *r, struct json_writer *w);
void report_errata(const struct report *r, struct json_writer *w);
void report_window(const struct report *r, struct json_writer *w);
/* The part of the traces that was decoded; only if there was a deadline. */
void report_decoded(const struct report *r, struct json_writer *w);
void report_coverage(const struct report *r, struct json_writer *w);
void report_totals(const struct report *r, struct json_writer *w);
void report_event_counts(const struct report *r, struct json_writer *w);
void report_cpu(const struct report *r, struct json_writer *w, size_t i);
/* "instructionsPerCycle" of INSNS that took TICKS; nothing if that is not known. */
void report_ipc(const struct report *r, struct json_writer *w, uint64_t insns, uint64_t ticks);
/* Part of report_cpu. */
void report_cpu_frequency(const struct report *r, struct json_writer *w, size_t i);
void report_gap(const struct report *r, struct json_writer *w, size_t i);

/* --- Windows of CPUs: report_cpus.c. Times are perf ns; MANIFEST_ABSENT where unknown. --- */

/* When the trace of CPU (index) begins and ends. */
uint64_t report_begin_ns(const struct decode *d, size_t cpu);
uint64_t report_end_ns(const struct decode *d, size_t cpu);
/* From when on the traces of all CPUs that have one are decoded. */
uint64_t report_all_begin_ns(const struct decode *d);
/* The window of CPU (index): of its decoded trace, or of the sideband if it has no trace. */
struct report_reach report_reach(const struct report *r, size_t cpu);
/* Only the sideband tells something of CPU (index). */
bool report_is_untraced(const struct report *r, size_t cpu);

/* --- Threads without a trace: report_turns.c --- */

/* Threads that had such CPUs and have no counters in the tally, in no order: *ret for the caller to
 * free. 0 or -ENOMEM. */
int report_untraced(const struct report *r, struct report_share **ret, size_t *ret_n);

/* --- Control groups: report_processes.c --- */

#define CGROUP_CONTAINER_MAX 255 /* NAME_MAX */

/* The names that the path of a control group tells about its process. UNIT points into the path and
 * is not terminated; size 0: none. UNIT is the innermost component that is a systemd unit: a
 * service, scope, mount, swap or socket. CONTAINER is the id of the innermost container, 64
 * hexadecimal digits, or the name of a container of LXC or systemd-nspawn; "": none. */
struct cgroup_names {
	const char *unit;
	size_t unit_size;
	char container[CGROUP_CONTAINER_MAX + 1];
};

/* PATH may be NULL. */
struct cgroup_names cgroup_parse(const char *path);
