/*
 * The view of calls: a decode written as a call stream (proto/callstream.h).
 *
 * calltree.c writes a line where an instance of a function begins and where it ends. It is the
 * watch of a tally (decoder/worker/count): the tally decides what an instance is, so that the
 * stream and the durations in the report have one definition. calltree_edges.c adds from the
 * sideband when threads got and left the CPU. calltree_lines.c defines threads and functions and
 * composes lines.
 *
 * Decisions that govern the room:
 * - Lines are written while decoding. What is kept is the open frames of each thread, what was
 *   defined, and the turns of the sideband; that does not grow with the trace. A thread has at most
 *   CALLTREE_MAX_DEPTH open frames; those beyond are left out and counted in the last line.
 * - A frame whose begin was not seen begins where it becomes known: at the thread's first
 *   instruction, or behind the return that led to it. A stream cannot go back.
 * - Code whose thread is uncertain gives no frame: a gap `thread-uncertain' of nobody says when it
 *   ran. A gap `excluded' does the same for code that is not to be shown.
 * - Where the kernel is not traced, the time between TIP.PGD and TIP.PGE is a frame without a
 *   function: a system call, or an interrupt.
 * - A gap of a thread is cut where the thread leaves the CPU, and goes on when the thread is back.
 * - A thread executes nothing while it has no CPU, and leaves the CPU only in the kernel: a line of
 *   the sideband that lies within the intervals of branches stands in the last visit to the kernel
 *   that it can belong to.
 * - Times are the trace's intervals, converted with the clock of their CPU. A line is never earlier
 *   than the line before it of the same thread: what order tells, narrows intervals.
 * - Inlined functions (with lines; from DWARF) have frames around the calls that are made in them,
 *   as long as those calls (calltree_inlined.c): their own begins and ends have no branches, and no
 *   time is made up. An inlined function that calls nothing has no frame.
 *
 * A struct calltree borrows everything that it is made with, and belongs to one decode.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/worker/count/decoded.h"
#include "decoder/worker/count/tally.h"
#include "decoder/worker/replay/replay.h"
#include "decoder/worker/view/views.h"
#include "proto/decode_options.h"

#define CALLTREE_MAX_DEPTH 65536u

struct calltree;

/* Becomes the watch of TALLY, and writes the head. 0 or -ENOMEM. */
int calltree_new(const struct decode_options *options, const struct replay *replay,
		 struct tally *tally, struct lines *lines, struct calltree **ret);
void calltree_freep(struct calltree **c);
/* Counts S in the tally and writes its lines; or the gap that it is, if its thread is not known. 0,
 * -ENOMEM, or the sticky error of the lines. */
int calltree_stretch(struct calltree *c, const struct replay_stretch *s);
/* S is not to be shown. 0 or as above. */
int calltree_left_out(struct calltree *c, const struct replay_stretch *s);
/* Behind the last stretch: ends all frames. GAPS from number FIRST on have no place in a trace. 0
 * or as above. */
int calltree_end(struct calltree *c, const struct gaps *gaps, size_t first);
