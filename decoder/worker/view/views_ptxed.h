/*
 * The view of instructions as libipt's ptxed writes it with --no-inst: each address as 16 digits,
 * and between them a line in brackets for everything that happened there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/code/insn.h"
#include "decoder/worker/replay/replay.h"
#include "decoder/worker/view/lines.h"
#include "decoder/worker/view/pevent.h"
#include "decoder/worker/view/track.h"
#include "proto/decode_options.h"

/* A line that waits. */
struct views_ptxed_disable {
	bool waits, async, has_ip;
	uint64_t at, ip, offset;
};

/* One CPU's. */
struct views_ptxed {
	const struct replay *replay; /* borrowed, as are the lines */
	struct lines *lines;
	uint64_t show; /* WORKER_SHOW_* */
	struct track track;
	struct insn_reader *reader;
	uint8_t mode;	 /* enum insn_mode */
	uint64_t resume; /* where tracing was disabled last; 0: it is not known, or is on */
	bool within;	 /* a block has begun, of code of that file */
	uint32_t image;
	struct track psbs; /* where blocks are told apart: PSBs divide them */
	bool fresh;	   /* nothing was executed since decoding began or went on */
	struct views_ptxed_disable disable;
	struct pevent *pevent; /* NULL: no sideband to be shown */
	uint64_t insns, blocks;
};

/* CPU: index into the manifest's; the first one's lines have the sideband among them. 0 or -ENOMEM;
 * also on failure, views_ptxed_done is to be called. */
int views_ptxed_init(struct views_ptxed *v, const struct replay *r, size_t cpu,
		     const struct decode_options *options, struct lines *l);
void views_ptxed_done(struct views_ptxed *v);
/* What ptxed says before it decodes. */
void views_ptxed_begin(struct views_ptxed *v);
/* The lines of S, whose replay has the options marks, guests and, unless errors are resynchronised
 * from, resume_at_psb. 0 or the sticky error of the lines. */
int views_ptxed_stretch(struct views_ptxed *v, const struct replay_stretch *s);
/* Before other lines than this one's: that tracing went off is said only when what follows shows
 * that nothing else belongs before it. */
void views_ptxed_settle(struct views_ptxed *v);
/* Behind the last stretch: what waits, and the statistics. */
void views_ptxed_end(struct views_ptxed *v);

/* Parts of views_ptxed.c: where execution goes on when the branch at IP disabled tracing: behind
 * it, if it is a call; else 0. */
uint64_t views_ptxed_behind(const struct views_ptxed *v, const struct replay_stretch *s,
			    uint64_t ip);
/* The number of the file that IP is of; whether a block ends there, though execution goes
 * on behind it: at a conditional branch. */
uint32_t views_ptxed_image(const struct views_ptxed *v, const struct replay_stretch *s, uint64_t ip,
			   bool *ret_ends);
/* Whether ptxed says anything of MARK; what it says between the brackets,
 * IP: with the address. */
bool views_ptxed_knows(const struct flow_mark *m);
void views_ptxed_mark(struct lines *l, const struct flow_mark *m, bool ip);
/* libipt's words for a fault; NULL: it says nothing of that one. */
const char *views_ptxed_error(enum fault fault);
