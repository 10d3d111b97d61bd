/*
 * The view of instructions as libipt's ptxed writes it with --no-inst: each address as 16 digits,
 * and between them lines in brackets for everything else that happens.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/code/insn.h"
#include "decoder/packet/errata.h"
#include "decoder/packet/packet.h"
#include "decoder/time/estimate.h"
#include "decoder/worker/replay/replay.h"
#include "decoder/worker/view/pevent.h"
#include "decoder/worker/view/views.h"
#include "proto/decode_options.h"

/* --- A second reader of one CPU's packets, which follows the items: track.c ---
 *
 * An item names the packet that decided it by its offset alone. This view also needs to know which
 * packet that was, what else the packet says, and which time libipt's tools would give it. */

struct track {
	const uint8_t *trace; /* borrowed */
	struct packet_cursor cursor;
	uint64_t last_ip;
	bool timed;
	struct estimate estimate; /* if timed: the time at the cursor */
};

/* A packet that says where execution is: PSB, OVF, FUP, TIP, TIP.PGE or TIP.PGD. */
struct track_packet {
	uint8_t type; /* enum packet_type; PACKET_PAD: there is no such packet */
	bool has_ip;
	uint64_t ip, offset;
};

/* The first such packet at or behind an offset, and the next one. */
struct track_pair {
	struct track_packet first, second;
};

/* ESTIMATE: how to estimate the time; NULL: no time is needed. */
void track_init(struct track *t, const uint8_t *trace, size_t size, const struct errata *errata,
		const struct estimate_config *estimate);
/* From call to call of this function and of track_time(), offsets must not fall: the packets before
 * OFFSET are passed. */
void track_look(struct track *t, uint64_t offset, struct track_pair *ret);
/* Passes the next PSB up to UNTIL that says where execution is: *ret_ip. False: there is none. */
bool track_psb(struct track *t, uint64_t until, uint64_t *ret_ip);
/* The time when the packet at OFFSET was written. False: unknown. */
bool track_time(struct track *t, uint64_t offset, uint64_t *ret);

/* --- The view --- */

/* The line about the end of tracing, which is written when the next item is known. */
struct views_ptxed_disable {
	bool waits, async, has_ip;
	uint64_t at, ip, offset;
};

/* The view of one CPU. */
struct views_ptxed {
	const struct replay *replay; /* borrowed, as are the lines */
	struct lines *lines;
	uint64_t show; /* WORKER_SHOW_* */
	struct track track;
	struct insn_reader *reader;
	uint8_t mode;	 /* enum insn_mode */
	uint64_t resume; /* where tracing would resume; 0: unknown, or tracing is on */
	bool within;	 /* a block has begun, of code of IMAGE */
	uint32_t image;
	struct track psbs; /* if blocks are wanted: PSBs divide them */
	bool fresh;	   /* no instruction was executed since decoding began or went on */
	struct views_ptxed_disable disable;
	struct pevent *pevent; /* NULL: there is no sideband to show */
	uint64_t insns, blocks;
};

/* CPU: index into the manifest's CPUs; the lines of the first CPU have the sideband among them. 0
 * or -ENOMEM; views_ptxed_done is to be called in both cases. */
int views_ptxed_init(struct views_ptxed *v, const struct replay *r, size_t cpu,
		     const struct decode_options *options, struct lines *l);
void views_ptxed_done(struct views_ptxed *v);
/* Writes what ptxed says before it decodes. */
void views_ptxed_begin(struct views_ptxed *v);
/* Writes the lines of S. Its replay has the options of views_configure(), and guests. 0 or the
 * sticky error of the lines. */
int views_ptxed_stretch(struct views_ptxed *v, const struct replay_stretch *s);
/* Writes the line about the end of tracing, if it waits. To be called before lines of another CPU
 * or thread. */
void views_ptxed_settle(struct views_ptxed *v);
/* Behind the last stretch: writes the line that waits, and the statistics. */
void views_ptxed_end(struct views_ptxed *v);

/* --- Inside of the view: views_ptxed_text.c --- */

/* Where execution goes on if the branch at IP disabled tracing: behind the branch, if it is a call;
 * else 0. */
uint64_t views_ptxed_behind(const struct views_ptxed *v, const struct replay_stretch *s,
			    uint64_t ip);
/* The number of the file that IP belongs to. *ret_ends: a block ends there, though execution goes
 * on behind IP: at a conditional branch. */
uint32_t views_ptxed_image(const struct views_ptxed *v, const struct replay_stretch *s, uint64_t ip,
			   bool *ret_ends);
/* Whether ptxed says anything of the mark. */
bool views_ptxed_knows(const struct flow_mark *m);
/* Writes what ptxed says of the mark between the brackets. IP: with the address. */
void views_ptxed_mark(struct lines *l, const struct flow_mark *m, bool ip);
/* libipt's words for a fault; NULL: libipt says nothing of the fault. */
const char *views_ptxed_error(enum fault fault);
