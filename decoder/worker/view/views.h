/*
 * Views: a decode written as lines of text, instead of a report.
 *
 * A request asks for one view (WORKER_VIEW_*): branches, instructions, events, packets, or a
 * report. This room writes all views but the report. Some compare byte for byte with the tools of
 * libipt (docs/DIFFERENCES.md): packets are lines of ptdump, and instructions with
 * WORKER_SHOW_PTXED are lines of ptxed.
 *
 * views.c writes branches and instructions and chooses the view; views_events.c events;
 * views_packets.c packets; views_ptxed.c and views_ptxed_text.c ptxed's lines. pevent.c shows
 * sideband records as libipt's tools do, pevent_record.c reads one of them. track.c reads packets
 * beside the items. stream_time.c has the times of streams for ptsnapctl. lines.c is the buffered
 * output of all views, and of skim.
 *
 * Decisions that govern the room:
 * - Views write while they decode. They keep no lines and no list that grows with the trace.
 * - A line "# cpu N pid P tid T" precedes the lines of another thread or CPU, unless there is a
 *   single thread on a single CPU.
 * - Two pieces are never joined silently. Lines "# gap KIND" stand where something is missing, and
 *   behind all lines "# recording KIND COUNT" what the recording lacks without a place in a trace.
 *   Whoever compares lines with those of another tool leaves out lines that begin with "#".
 * - libipt is no part of the program. The views say again what its tools say about time, packets
 *   and errors, including their mistakes where the comparison needs them.
 * - Names and texts from a bundle are a stranger's: only printable ASCII is written as it is.
 * - The error of a write is sticky: lines_flush() returns the first one.
 *
 * A struct views belongs to one decode and borrows its options and its replay.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/hot/crew.h"
#include "decoder/packet/fault.h"
#include "decoder/worker/replay/replay.h"
#include "proto/bundle/bundle.h"
#include "proto/decode_options.h"
#include "proto/worker.h"
#include "sideband/symbols/image.h"

/* Where the output of a request goes, and who hears of its progress. */
struct decode_sink {
	int fd; /* of the output; borrowed */
	const char *version;
	/* May be NULL. */
	void (*progress)(void *userdata, enum worker_phase phase, unsigned percent);
	/* These bytes of an image that lies elsewhere were needed: 0 or -errno. May be NULL. */
	int (*keep)(void *userdata, uint32_t image, uint64_t offset, uint64_t size);
	/* How long ago the request came, ns; NULL: there is no deadline. */
	uint64_t (*elapsed)(void *userdata);
	void *userdata;
	const struct image_loader *loader; /* of images that lie elsewhere; may be NULL */
	struct crew *crew;		   /* threads; NULL: threads are started on demand */
};

/* --- Buffered text output, fast enough for hundreds of millions of short lines: lines.c --- */

#define LINES_BUFFER (1u << 18)

struct lines {
	int fd;	   /* borrowed */
	int error; /* the first error of write: -errno */
	size_t used;
	char *buffer;
};

/* 0 or -ENOMEM. */
int lines_init(struct lines *l, int fd);
void lines_done(struct lines *l);
/* V in lower-case hex without a prefix, then AFTER. */
void lines_hex(struct lines *l, uint64_t v, char after);
void lines_text(struct lines *l, const char *text, size_t size);
/* As printf, but slower than the others; text beyond 255 bytes is cut. */
__attribute__((format(printf, 2, 3))) void lines_print(struct lines *l, const char *format, ...);
/* 0 or the first error. */
int lines_flush(struct lines *l);

/* --- Branches, instructions, events --- */

#define VIEWS_HASH_BASIS HASH_BASIS

struct views_ptxed;

/* The thread and the CPU that the last lines were of. */
struct views_origin {
	bool known;
	size_t cpu;
	const struct timeline_thread *thread, *process;
};

/* A decode that is written as lines. */
struct views {
	const struct decode_options *options; /* borrowed */
	const struct replay *replay;	      /* borrowed */
	struct lines lines;
	bool plain; /* no lines that say which thread and CPU the next ones are of */
	struct views_origin origin;
	struct views_ptxed *ptxed; /* one for each of N_PTXED CPUs; NULL: another view */
	size_t n_ptxed;
};

/* Lines go to FD (borrowed). 0 or -ENOMEM; in both cases views_done is to be called. */
int views_init(struct views *v, const struct decode_options *options, int fd);
void views_done(struct views *v);
/* Before a replay. PLAIN: there is only one thread on one CPU. 0 or -ENOMEM. */
int views_begin(struct views *v, const struct replay *r, bool plain);
/* Sets in FLOW what the lines need besides branches, and how libipt's tools decode. */
void views_configure(const struct views *v, struct flow_config *flow);
/* Writes the lines of S, in every view but that of packets. 0 or the sticky error of the lines. */
int views_stretch(struct views *v, const struct replay_stretch *s);
/* Behind the last stretch. 0 or the first error of the lines. */
int views_end(struct views *v);

/* Where a stretch was left out: the lines before and behind do not continue one another. */
void views_left_out(struct views *v, enum fault fault);
/* Behind the last stretch: COUNT times the recording has FAULT, which is no place in a trace. */
void views_recording(struct views *v, enum fault fault, uint64_t count);

/* Calls FN with the addresses of the run of ITEM, some at a time. False: not all of them are known
 * any more, for want of memory. */
bool views_each_run(const struct replay_stretch *s, const struct flow_item *item,
		    void (*fn)(void *userdata, const uint64_t *ips, size_t n), void *userdata);
/* Writes one line for each executed instruction, and "# gap KIND" at each gap. 0 or the sticky
 * error of L; -ENOMEM: not all instructions of a run could be found again. */
int views_insns(struct lines *l, const struct replay_stretch *s);
/* Carries on the hashes of a CPU and of a thread over the addresses of all executed instructions. 0
 * or -ENOMEM. */
int views_hash_two(uint64_t *cpu, uint64_t *thread, const struct replay_stretch *s);
/* Carries on one hash. */
uint64_t views_hash(uint64_t hash, const struct replay_stretch *s);

/*
 * Writes one line for everything that the trace says besides instructions and branches: "OFFSET
 * TIME KIND NAME=VALUE...". OFFSET is that of the packet in the CPU's trace. TIME is the TSC at
 * which the event happened, LO-HI or one number if they are equal, with "?" for an end that is
 * unknown. All numbers but vectors and C-states are hex with 0x. "ip" is the address at which the
 * event happened, if there is one. A gap is a line "# gap KIND", behind its event if it has one.
 *
 * Kinds: enable; disable (how=branch, async, unknown); async (from, to); overflow; stop; end; mode
 * (bits); interrupts (on=0, 1); transaction (begin, commit, abort); paging (cr3, guest=1); vmcs
 * (base); ptwrite (value, bytes); frequency (ratio); exstop; mwait (hints, extensions); pwre
 * (state, sub, hardware=1); pwrx (last, deepest, reason); mnt (value); trigger (hits, multiple=1,
 * count); pebs (type, id, value, bytes); and those of control flow events by their names in the
 * SDM: intr, iret, smi, rsm, sipi, init, vmentry, vmexit, vmexit-intr, shutdown, uintr, uiret,
 * swintr, syscall, cfe-N (vector, cr2, qualification, reason).
 *
 * A mark that a PSB only repeats is left out. 0 or the sticky error of L.
 */
int views_events(struct lines *l, const struct replay_stretch *s);

/* --- Packets, as libipt's ptdump writes them --- */

#define VIEWS_PACKETS_BEFORE (16u << 10) /* bytes before a gap */

/* Writes all packets of all CPUs; with more than one CPU, "# cpu N" before each. Bytes that are no
 * packet give a line and are skipped up to the next PSB. For a raw trace, nothing else is written;
 * for another trace, the bytes before the first PSB and a packet that the end cut off give lines
 * beginning with "#". Uses OPTIONS->show and ->kernel_start. 0 or -errno. */
int views_packets(const struct bundle *b, const struct decode_options *options, struct lines *l);
/* Writes the packets within the last VIEWS_PACKETS_BEFORE bytes before OFFSET of trace number
 * INDEX, then "# gap KIND" and the packet at OFFSET. Where the trace cannot be read from a PSB
 * before those bytes on, it is read from the next PSB on. 0 or -errno. */
int views_packets_before(const struct bundle *b, const struct decode_options *options, size_t index,
			 uint64_t offset, enum fault kind, struct lines *l);
