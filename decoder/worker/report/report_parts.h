/*
 * The parts of a report: what report.c puts together. Each part is written by one function, lists
 * element by element so that their sizes can be measured.
 */
#pragma once

#include "decoder/worker/report/report.h"
#include "decoder/worker/report/report_values.h"
#include "proto/json.h"

#define REPORT_MAX_STACK   256u	 /* frames a thread, innermost kept */
#define REPORT_MAX_CMDLINE 1024u /* bytes */
#define REPORT_MAX_STRING  4096u /* bytes of any other string of a bundle */
#define REPORT_MAX_TURNS   10000u

enum report_list_id {
	/* From the one that is cut last to the one that is cut first. */
	REPORT_CPUS,
	REPORT_THREADS,
	REPORT_PROCESSES,
	REPORT_IMAGES,
	REPORT_GAPS,
	/* Of what is left after the last branches each an eighth. */
	REPORT_ABORTS,
	REPORT_INTERRUPTS,
	REPORT_POWER,
	REPORT_FREQUENCIES,
	REPORT_PTWRITES,
	REPORT_TURNS, /* with the functions: half of what is left */
	REPORT_FUNCTIONS,
	REPORT_N_LISTS,
};

struct report;

struct report_list {
	const char *key;
	size_t total, kept;
	void (*element)(const struct report *r, struct json_writer *w, size_t i);
	bool newest_first; /* but written oldest first */
};

/* What is known of a thread, in the order of the list. */
enum report_known { REPORT_DECODED, REPORT_LAST_STRETCH, REPORT_UNTRACED };

/* A thread: counters [first, end) of a sorted tally; none where it was not traced. */
struct report_thread {
	enum report_known known;
	const struct tally *tally; /* the decode's, or that of last stretches */
	size_t first, end;
	uint64_t insns, branches, ticks;
	const struct timeline_thread *thread; /* NULL: unknown */
	uint64_t cpu_ns;		      /* of one without counters: how long it had CPUs */
};

/* How long a thread had CPUs. */
struct report_share {
	const struct timeline_thread *thread;
	uint64_t ns;
};

/* From when until when something is known of a CPU, perf ns; empty: nothing is. */
struct report_reach {
	uint64_t begin, end;
};

/* Turn INDEX of the timeline's on CPU (index of the manifest). */
struct report_turn {
	size_t cpu, index;
};

struct report_image {
	uint32_t index; /* of the manifest */
	uint64_t insns;
};

/* What an address is, looked up once. */
struct report_symbol {
	uint64_t address; /* 0: nothing was looked up here */
	uint32_t context;
	uint32_t image;	  /* index of the manifest; UINT32_MAX: none */
	uint64_t offset;  /* from the beginning of the symbol, else of the file */
	uint64_t at;	  /* from the beginning of the file */
	const char *name; /* borrowed; NULL: no symbol */
};
#define REPORT_SYMBOLS (1u << 15)

struct report_source;

struct report {
	struct decode *d; /* borrowed */
	const struct manifest *m;
	const struct decode_options *options;
	const char *version; /* of this program */
	struct report_list lists[REPORT_N_LISTS];
	bool measuring;	      /* sizes are to be upper bounds */
	size_t branches_kept; /* of REPORT_LAST_BRANCHES, a thread */
	uint64_t branches_total, frames_total, frames_kept;
	struct report_thread *threads;
	uint32_t *processes; /* indices into the manifest's that may be named */
	size_t n_processes;
	uint64_t sideband_begin;   /* perf ns; MANIFEST_ABSENT */
	struct report_turn *turns; /* newest first */
	uint64_t turns_total;	   /* with those that have no element */
	struct report_image *images;
	uint32_t *image_places;	       /* manifest index -> place in images */
	uint32_t *functions;	       /* indices, most self instructions first */
	struct report_symbol *symbols; /* by a hash of context and address, REPORT_SYMBOLS */
	struct report_source *source;
};

/* An address, resolved. */
struct report_place {
	char name[REPORT_MAX_STRING + 1]; /* of the function, as the source has it, else of the
					     file; empty: unknown */
	const char *linkage; /* as the symbol table has it; borrowed; NULL: of the file */
	uint32_t image;	     /* index of the manifest; UINT32_MAX: none */
	uint64_t offset;     /* of the address from the beginning of that; MANIFEST_ABSENT */
	uint64_t at;	     /* from the beginning of the file; MANIFEST_ABSENT */
};

void report_place(const struct report *r, uint32_t context, uint64_t address,
		  struct report_place *ret);

/* Whether it is a report for one user alone (permit.h). */
bool report_is_limited(const struct report *r);
/* May what THREAD did at TIME (perf ns) be told? */
bool report_permits(const struct report *r, const struct timeline_thread *thread, uint64_t time);
/* 0 gives null, and so does an address that is not to be told. */
void report_address(const struct report *r, struct json_writer *w, const char *key,
		    uint64_t address);
/* What THREAD was called at TIME, perf ns: never what another one was that has its number now. */
const char *report_comm(const struct report *r, const struct timeline_thread *thread,
			uint64_t time);
/* Perf time NS relative to the trigger; null where either is unknown. */
void report_at(const struct report *r, struct json_writer *w, const char *key, uint64_t ns);
/* "atNSec" and "uncertainNSec" of what happened within [LO, HI] TSC; null where LO is 0, and the
 * latter where HI is UINT64_MAX. */
void report_when(const struct report *r, struct json_writer *w, uint64_t lo, uint64_t hi);
/* The frequency that a core:bus ratio (CBR) means, rounded; null where the bus clock is unknown. */
void report_mhz(const struct report *r, struct json_writer *w, const char *key, uint64_t ratio);
/* TICKS of TSC in ns. */
void report_span(const struct report *r, struct json_writer *w, const char *key, uint64_t ticks);
/* The place of image INDEX (of the manifest) in the report, or null. */
void report_image_ref(const struct report *r, struct json_writer *w, uint32_t index);
/* "NAME" or "NAME+0xOFFSET" of an address, or null. */
void report_name(const struct report *r, struct json_writer *w, const char *key, uint32_t context,
		 uint64_t address);
/* Key "FILE:LINE" of an address, where it is known and may be told: of the instruction itself. */
void report_line(const struct report *r, struct json_writer *w, const char *key, uint32_t context,
		 uint64_t address);

/* 0 or -ENOMEM. */
int report_source_init(struct report *r);
void report_source_done(struct report *r);
/* LINKAGE, a symbol's or DWARF's (NULL: none), as the source has it: valid until the next call. */
const char *report_source_name(const struct report *r, const char *linkage);
/* All of these write nothing where nothing is known. "linkage", where the name is not that. */
void report_linkage(const struct report *r, struct json_writer *w, const char *linkage);
/* KEY: the line of the instruction at OFFSET of IMAGE (of the manifest), whatever was inlined
 * there. */
void report_source_line(const struct report *r, struct json_writer *w, const char *key,
			uint32_t image, uint64_t offset);
/* "source": the line within the function that all is inlined into. */
void report_source_outer(const struct report *r, struct json_writer *w, uint32_t image,
			 uint64_t offset);
/* "inlined": what was inlined there. */
void report_inlined(const struct report *r, struct json_writer *w, uint32_t image, uint64_t offset);
/* "dwarf" of IMAGE. */
void report_dwarf(const struct report *r, struct json_writer *w, uint32_t image);

/* Must come first. */
void report_prepare_reach(struct report *r);
/* The window of CPU (index): of what was decoded, or where it has no trace of the sideband. */
struct report_reach report_reach(const struct report *r, size_t cpu);
/* All that is known of CPU (index) is the sideband. */
bool report_is_untraced(const struct report *r, size_t cpu);
/* Threads that had such CPUs and no counters of the tally, in no order: *ret for the caller to
 * free. 0 or -ENOMEM. */
int report_untraced(const struct report *r, struct report_share **ret, size_t *ret_n);
/* Prepare the lists; 0 or -ENOMEM. */
int report_prepare_threads(struct report *r);
int report_prepare_images(struct report *r);
int report_prepare_functions(struct report *r);
int report_prepare_processes(struct report *r);
int report_prepare_turns(struct report *r);
void report_prepare_marks(struct report *r);
/* Parts. */
void report_host(const struct report *r, struct json_writer *w);
void report_trigger(const struct report *r, struct json_writer *w);
void report_configuration(const struct report *r, struct json_writer *w);
void report_trace(const struct report *r, struct json_writer *w);
void report_errata(const struct report *r, struct json_writer *w);
void report_window(const struct report *r, struct json_writer *w);
/* Where there was a deadline: what was decoded. */
void report_decoded(const struct report *r, struct json_writer *w);
void report_coverage(const struct report *r, struct json_writer *w);
void report_totals(const struct report *r, struct json_writer *w);
void report_event_counts(const struct report *r, struct json_writer *w);
void report_cpu(const struct report *r, struct json_writer *w, size_t i);
/* Part of report_cpu. */
void report_cpu_frequency(const struct report *r, struct json_writer *w, size_t i);
void report_gap(const struct report *r, struct json_writer *w, size_t i);

/* When the trace of CPU (index) begins and ends, perf ns; MANIFEST_ABSENT where unknown. */
uint64_t report_begin_ns(const struct decode *d, size_t cpu);
uint64_t report_end_ns(const struct decode *d, size_t cpu);
/* From when on all CPUs with a trace are decoded, perf ns; MANIFEST_ABSENT where unknown. */
uint64_t report_all_begin_ns(const struct decode *d);
