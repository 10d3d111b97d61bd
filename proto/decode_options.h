/*
 * The options of one decode: the view, its format, and the limits.
 *
 * `ptsnapctl decode' and ptsnapd fill the struct, which goes to ptsnap-decode within struct
 * worker_request (proto/worker.h). The struct has a fixed size and no padding, and is valid on one
 * host between programs of one version (WORKER_REQUEST_VERSION).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum worker_view {
	WORKER_VIEW_REPORT = 0,	  /* JSON, docs/ptsnap-report-2.schema.json */
	WORKER_VIEW_SUMMARY = 1,  /* one flat JSON object */
	WORKER_VIEW_PACKETS = 2,  /* one line for each packet */
	WORKER_VIEW_BRANCHES = 3, /* FROM TO, one line for each taken branch */
	WORKER_VIEW_INSNS = 4,	  /* one address on each line */
	WORKER_VIEW_EVENTS = 5,	  /* one line for each event: all but branches and instructions */
	WORKER_VIEW_CALLS = 6,	  /* a call stream (proto/callstream.h) */
};

/* The format of views that are lines: decode_options.show. The options of ptdump and ptxed have the
 * names that libipt's tools give them (man ptdump, man ptxed). */
#define WORKER_SHOW_NO_PAD	    (UINT64_C(1) << 0) /* ptdump: this and the next ones */
#define WORKER_SHOW_NO_TIMING	    (UINT64_C(1) << 1)
#define WORKER_SHOW_NO_CYC	    (UINT64_C(1) << 2)
#define WORKER_SHOW_NO_OFFSET	    (UINT64_C(1) << 3)
#define WORKER_SHOW_NO_SYNC	    (UINT64_C(1) << 4) /* from the first byte, not the first PSB */
#define WORKER_SHOW_RAW		    (UINT64_C(1) << 5)
#define WORKER_SHOW_LASTIP	    (UINT64_C(1) << 6)
#define WORKER_SHOW_EXEC_MODE	    (UINT64_C(1) << 7)
#define WORKER_SHOW_TIME	    (UINT64_C(1) << 8)
#define WORKER_SHOW_TIME_DELTA	    (UINT64_C(1) << 9)
#define WORKER_SHOW_TCAL	    (UINT64_C(1) << 10)
#define WORKER_SHOW_NO_TCAL	    (UINT64_C(1) << 11)
#define WORKER_SHOW_NO_WALL_CLOCK   (UINT64_C(1) << 12)
#define WORKER_SHOW_KEEP_TCAL	    (UINT64_C(1) << 13) /* --keep-tcal-on-ovf, ptxed's too */
#define WORKER_SHOW_SB_COMPACT	    (UINT64_C(1) << 16) /* --sb:..., of ptdump and ptxed */
#define WORKER_SHOW_SB_VERBOSE	    (UINT64_C(1) << 17)
#define WORKER_SHOW_SB_FILENAME	    (UINT64_C(1) << 18)
#define WORKER_SHOW_SB_OFFSET	    (UINT64_C(1) << 19)
#define WORKER_SHOW_SB_TIME	    (UINT64_C(1) << 20)
#define WORKER_SHOW_SB_SWITCH	    (UINT64_C(1) << 21)
#define WORKER_SHOW_SB_WARN	    (UINT64_C(1) << 22)
#define WORKER_SHOW_PTXED	    (UINT64_C(1) << 32) /* --ptxed: this and the next ones */
#define WORKER_SHOW_EVENT_TIME	    (UINT64_C(1) << 33)
#define WORKER_SHOW_EVENT_IP	    (UINT64_C(1) << 34)
#define WORKER_SHOW_EVENT_TICK	    (UINT64_C(1) << 35)
#define WORKER_SHOW_EVENT_IFLAGS    (UINT64_C(1) << 36)
#define WORKER_SHOW_RESYNC_ON_ERROR (UINT64_C(1) << 37)
#define WORKER_SHOW_QUIET	    (UINT64_C(1) << 38)
#define WORKER_SHOW_STAT	    (UINT64_C(1) << 39)
#define WORKER_SHOW_STAT_INSN	    (UINT64_C(1) << 40)
#define WORKER_SHOW_STAT_BLOCKS	    (UINT64_C(1) << 41)
#define WORKER_SHOW_BLOCKS	    (UINT64_C(1) << 42) /* --block:show-blocks */
#define WORKER_SHOW_INSN_DECODER    (UINT64_C(1) << 43) /* blocks are not counted */
#define WORKER_SHOW_END_ON_CALL	    (UINT64_C(1) << 44)
#define WORKER_SHOW_END_ON_JUMP	    (UINT64_C(1) << 45)
/* --view=branches with WORKER_SHOW_TIME: FROM TO LO HI OFFSET, all in hexadecimal, where OFFSET is
 * of the packet that decided the branch. Lines also name their thread, and gaps, even if the trace
 * has a single thread. */
#define WORKER_SHOW_PLACES (UINT64_C(1) << 46)
/* --view=branches and --view=insns as an execution stream (proto/execstream.h). */
#define WORKER_SHOW_STREAM (UINT64_C(1) << 47)
#define WORKER_SHOW_INTEL  (UINT64_C(1) << 48) /* its instructions in Intel's syntax, not AT&T's */

/* A skim, instead of a decode: a map of the trace from packets alone. */
enum worker_skim {
	WORKER_SKIM_NONE = 0,
	WORKER_SKIM_PSB = 1, /* address and time of each PSB */
	WORKER_SKIM_TIP = 2, /* and of each packet with an address */
};

/* Which returns pop the return stack. */
enum worker_retstack {
	WORKER_RETSTACK_AUTO = 0,   /* where it matters, the packets decide */
	WORKER_RETSTACK_SDM = 1,    /* each near return */
	WORKER_RETSTACK_LIBIPT = 2, /* compressed returns, also over a PSB, as in libipt */
};

/* From where a time of a slice counts. */
enum worker_time {
	WORKER_TIME_NONE = 0,	 /* nowhere: there is no limit */
	WORKER_TIME_BEGIN = 1,	 /* on from the begin of the traces */
	WORKER_TIME_TRIGGER = 2, /* back from the trigger */
};

/* A part of what a bundle has. Zeros: everything. Flags are 0 or 1. */
struct decode_slice {
	/* Decodes only this span of time, and with it the rest of the PSB segments in which the
	 * span begins and ends: ns. */
	uint64_t from_ns, to_ns;
	uint32_t from, to; /* enum worker_time */
	/* Report: counts only what ran on this CPU, in this process or thread, or in threads of
	 * such a name. */
	uint32_t has_cpu, has_pid, has_tid; /* flags */
	uint32_t cpu, pid, tid;
	char comm[64]; /* a pattern of fnmatch(3), ends in 0; "": any name */
};
_Static_assert(sizeof(struct decode_slice) == 112, "has no padding");

/* Whether S leaves out threads or CPUs. */
static inline bool decode_slice_selects(const struct decode_slice *s)
{
	return s->has_cpu || s->has_pid || s->has_tid || s->comm[0];
}

#define WORKER_MAX_REPEAT  1000u
#define WORKER_MAX_THREADS 1024u

/* A struct of zeros asks for the whole report without limits. Flags are 0 or 1. */
struct decode_options {
	uint32_t view; /* enum worker_view */
	uint32_t skim; /* enum worker_skim; for report, summary and branches */
	uint64_t show; /* WORKER_SHOW_* */

	uint64_t report_limit; /* bytes of a report, which says what was cut; 0: no limit */
	uint64_t memory_limit; /* bytes of writable memory (RLIMIT_DATA); 0: no limit */
	uint64_t deadline_ns;  /* with has_deadline */
	/* With lines: CPU time for looking up source lines. The report lacks the lines that are
	 * left then. 0: no limit, and the report is the same each time. */
	uint64_t lines_ns;
	/* Packets: show only the 16 KiB of packets before gap number GAP of the report, which
	 * counts from 1; 0: show all packets. */
	uint64_t gap;
	uint64_t kernel_start; /* --pevent:kernel-start; 0: the begin of the upper canonical half */

	uint32_t hash;	   /* flag; summary: add ipHash */
	uint32_t pretty;   /* flag; JSON: indent */
	uint32_t repeat;   /* summary: decode so often and add "passes"; 0: once, no "passes" */
	uint32_t threads;  /* number of decoding threads; 0: one for each usable CPU */
	uint32_t retstack; /* enum worker_retstack */
	/* Flag; report, summary: decode the newest part that takes at most deadline_ns, counted
	 * from the moment when ptsnap-decode has the request. */
	uint32_t has_deadline;
	/* Flag: say which bytes of images that are not in the bundle were needed. */
	uint32_t keep;
	/* Flag: read no symbol tables and perf maps, which are most of what strangers can write. */
	uint32_t no_symbols;
	uint32_t lines; /* flag; report, calls, streams: add source lines, by DWARF */
	uint32_t debug; /* flag: somebody answers WORKER_DEBUG */
	/* Flag; report: show only processes that certainly belong to user only_uid
	 * (decoder/worker/replay). */
	uint32_t has_only_uid;
	uint32_t only_uid;
	struct decode_slice slice; /* report, calls, streams */
};
_Static_assert(sizeof(struct decode_options) == 224, "has no padding");

/* Whether the view that O asks for is an execution stream. */
static inline bool decode_is_listing(const struct decode_options *o)
{
	return (o->view == WORKER_VIEW_BRANCHES || o->view == WORKER_VIEW_INSNS) &&
	       (o->show & WORKER_SHOW_STREAM) != 0;
}

/* Whether the view that O asks for has names of functions. */
static inline bool decode_has_names(const struct decode_options *o)
{
	return o->view == WORKER_VIEW_REPORT || o->view == WORKER_VIEW_CALLS ||
	       o->skim != WORKER_SKIM_NONE || decode_is_listing(o);
}

/* Whether all values are valid and go together. To be called before options of another process are
 * used. */
bool decode_options_are_sound(const struct decode_options *o);
