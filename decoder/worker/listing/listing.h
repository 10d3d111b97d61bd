/*
 * The listing: executed branches or instructions with their names, as an execution stream
 * (proto/execstream.h) for `ptsnapctl branches' and `insns'.
 *
 * listing.c writes the lines of stretches: whose they are, when, and what. listing_places.c says
 * what a place of code is: its function, and of an instruction its bytes, its disassembly and its
 * source line. Zydis runs here, in the sandbox, because the bytes are a stranger's.
 *
 * Decisions that govern the room:
 * - Lines are written while decoding. What is kept is the numbers of functions, of which the tally
 *   has a bounded number, and a table of places of a fixed size: memory does not grow with the
 *   trace. A place that is not in the table is defined (again), in the stead of another one.
 * - A place is an address in a context: where a context changes, code is read anew. The bytes are
 *   those that were decoded.
 * - The listing has a line for each item that --view=branches has, or for each instruction that
 *   --view=insns has, and a gap wherever those have one, except before the first PSB.
 * - A branch has the interval of time of its item. The instructions of a run have the interval from
 *   the item before to their own: no packet says more.
 *
 * A struct listing borrows everything that it is made with, and belongs to one decode.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decoder/packet/fault.h"
#include "decoder/worker/count/functions.h"
#include "decoder/worker/replay/replay.h"
#include "decoder/worker/view/views.h"
#include "proto/decode_options.h"

struct listing;

/* Writes the head. 0 or -ENOMEM. */
int listing_new(const struct decode_options *options, const struct replay *replay,
		struct functions *functions, struct lines *lines, struct listing **ret);
void listing_freep(struct listing **l);
/* Writes the lines of S. 0, -ENOMEM, or the sticky error of the lines. */
int listing_stretch(struct listing *l, const struct replay_stretch *s);
/* A stretch of CPU number INDEX was left out. */
void listing_left_out(struct listing *l, size_t index, enum fault fault);
/* Behind the last stretch: COUNT times the recording has FAULT, which is no place in a trace. */
void listing_recording(struct listing *l, enum fault fault, uint64_t count);
/* Behind all lines. 0 or the first error of the lines. */
int listing_end(struct listing *l);
