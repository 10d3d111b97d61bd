/*
 * The results of one decode: the counts, the gaps and the marks of all CPUs; and how gaps are kept.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/flow/flow.h"
#include "decoder/packet/fault.h"
#include "decoder/worker/count/marks.h"
#include "decoder/worker/count/steps.h"
#include "decoder/worker/count/tally.h"
#include "decoder/worker/replay/replay.h"

/* --- Gaps: what is missing, counted by kind and kept in a bounded list: gaps.c --- */

#define GAPS_MAX     10000u /* in the list; all gaps are counted */
#define GAPS_OF_KIND 16u    /* the first of each kind are listed even beyond GAPS_MAX */
#define GAPS_NO_CPU  UINT32_MAX

/* A uint64_t that is not known is MANIFEST_ABSENT. */
struct gap {
	enum fault kind;
	uint32_t cpu; /* GAPS_NO_CPU: the gap concerns no single CPU */
	size_t trace; /* whose trace has the gap: index into the manifest's CPUs; SIZE_MAX: none */
	uint64_t time_ns, until_ns, tsc, offset, bytes, address, count;
	char *why; /* owned; NULL: fault_why */
};

struct gaps {
	struct gap *list; /* in the order in which gaps were found */
	size_t n, capacity;
	uint64_t counts[FAULT_N_];
	uint64_t total;
	/* Not gaps of this report: what the recording states of times outside the window. */
	uint64_t outside[FAULT_N_];
	uint64_t head_bytes; /* before the first PSBs: not a gap, the ring's oldest end */
};

void gaps_init(struct gaps *g);
void gaps_done(struct gaps *g);
/* A gap of KIND with all other fields absent, and count 1. */
struct gap gaps_blank(enum fault kind);
/* Counts GAP and, while there is room, lists it with a copy of WHY (may be NULL). 0 or -ENOMEM. */
int gaps_add(struct gaps *g, const struct gap *gap, const char *why);

/* Adds what the flow of a CPU could not decode. 0 or -ENOMEM. */
int gaps_add_flow(struct gaps *g, const struct replay *r, uint32_t cpu, const struct flow_gap *gap);
/* Says of the listed gaps from number FIRST on whose thread is uncertain which threads are
 * possible, unless one of them may not be named. 0 or -ENOMEM. */
int gaps_name(struct gaps *g, size_t first, const struct replay *r,
	      const struct replay_candidates *candidates);
/* Adds a gap in which INSNS instructions were decoded whose thread is not known. 0 or -ENOMEM. */
int gaps_add_unowned(struct gaps *g, const struct replay *r, uint32_t cpu,
		     const struct flow_gap *gap, uint64_t insns);
/* Adds gaps that the trace itself does not show: the recorder's notes, the kernel's LOST and AUX
 * records, and sideband that cannot be read or does not reach back far enough. BEGIN_NS: for each
 * CPU of the manifest when its trace begins, MANIFEST_ABSENT where unknown. A span that lies wholly
 * outside the window of its CPU, or of all traces if it concerns them all, is counted in outside,
 * and the rest is cut to the window. END_NS, which may be NULL: when decoding of each CPU ended
 * before its trace does, MANIFEST_ABSENT where it does not. PARTIAL: older parts of the traces were
 * not decoded. 0 or -ENOMEM. */
int gaps_add_recording(struct gaps *g, const struct replay *r, const uint64_t *begin_ns,
		       const uint64_t *end_ns, bool partial);

/* Returns in *ret for how many ns between BEGIN and END CPU was not traced, as the recorder's notes
 * say. 0 or -ENOMEM. */
int gaps_dark_ns(const struct manifest *m, uint32_t cpu, uint64_t begin, uint64_t end,
		 uint64_t *ret);

/* --- The results: decoded.c --- */

/* The numbers of one CPU that the tally does not have. */
struct decode_cpu {
	struct flow_stats stats;
	uint64_t head_bytes; /* before its first PSB */
	uint64_t hash;	     /* of the addresses of all instructions, if asked for */
	unsigned percent;    /* decoded so far */
	/* For how long the CPU was not traced within its window; set by the report. */
	uint64_t untraced_ns;
};

/* The part of the traces that was decoded, if there was a deadline, or for a slice. */
struct decode_window {
	bool limited;  /* there was a deadline */
	bool complete; /* all that was asked for was decoded */
	uint64_t deadline_ns;
	uint64_t rounds; /* decodes, each of a part that begins earlier */
	uint64_t bytes;	 /* of the traces that were asked for */
	/* For each CPU the time (perf ns) since when its trace tells something, within what was
	 * asked for; MANIFEST_ABSENT: the trace tells nothing, or no time. Owned. */
	uint64_t *begins;
	bool searched;	       /* threads outside the window were looked for */
	uint64_t threads_left; /* threads outside the window that were not looked for */
	/* Since when the traces of all CPUs tell something, whatever was asked for, perf ns; 0: not
	 * known. Only if searched. */
	uint64_t whole_since;
	/* The span of a slice, perf ns; MANIFEST_ABSENT: from the begin, or to the end. */
	uint64_t from_ns, to_ns;
	/* Until when each CPU was decoded for a slice, perf ns; MANIFEST_ABSENT: to the end of its
	 * trace. Owned; NULL: there is no slice. */
	uint64_t *ends;
};

/* Code of a process whose thread is not known; it becomes a gap when its end is seen. */
struct decode_unowned {
	bool open;
	bool found; /* ITEM is the first item; else the last item seen */
	size_t cpu; /* index into the manifest's CPUs */
	uint64_t insns;
	struct flow_item item;
	struct replay_candidates candidates;
};

/* The results of a decode, from which the report and the summary are written. */
struct decode {
	struct replay *replay; /* borrowed */
	struct tally tally;
	struct tally
		past; /* the last stretches of threads that have no stretch within the window */
	struct decode_window window;
	struct gaps gaps;
	struct decode_unowned unowned;
	bool withheld;		   /* something was left out because it is not permitted */
	struct marks marks;	   /* only for the report */
	struct steps_count counts; /* only for the summary */
	struct decode_cpu *cpus;   /* in the manifest's order */
	uint64_t percents;	   /* the sum over all CPUs */
	/* How long each of several replays took. The results are those of the last replay. */
	const struct stopwatch *passes; /* borrowed */
	size_t n_passes;
};

/* D may be passed to decode_done even after a failure. REPLAY is borrowed. 0 or -ENOMEM. */
int decode_init(struct decode *d, struct replay *replay);
void decode_done(struct decode *d);

/* The sums over all CPUs. */
struct flow_stats decode_total(const struct decode *d);
/* How many instructions of TOTAL certainly ran as they were decoded. */
uint64_t decode_exact(const struct flow_stats *total);
/* The stable name in reports, e.g. "shared-memory"; CHANGE is not CODE_SAME. */
const char *decode_change_name(enum code_change change);
/* DECODED in percent of BYTES, rounded down so that 100 means all; negative if BYTES is 0. */
double decode_percent(uint64_t decoded, uint64_t bytes);
