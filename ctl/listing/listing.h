/*
 * Branches, instructions and events, line by line: for `ptsnapctl branches', `insns' and
 * `timeline'.
 *
 * listing.c reads an execution stream (proto/execstream.h), checks it, and lets a slice of it pass;
 * listing_print.c prints the lines.
 *
 * Decisions that govern the room:
 * - Lines are printed while the decoder writes. What is kept is the names of functions, the places
 *   that the stream can name at one time, and with --last the last lines: memory does not grow with
 *   the trace.
 * - The decoder parsed what strangers wrote, and it may have been taken over: every number is
 *   checked before it is an index, and its counts must be those of its lines. Texts are escaped
 *   where they are printed.
 * - Gaps stand where they are. Several of one kind and thread with nothing shown between them are
 *   one line with their number.
 * - Lines on a terminal are as wide as it is; long names are cut there, and only there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/calls/calls.h"
#include "ctl/calls/slice.h"
#include "ctl/show/show.h"
#include "proto/execstream.h"

/* A function; owned by the listing. */
struct listing_function {
	char *name, *image;
	bool wanted; /* by --function and --image */
};

/* A place of code, kept as long as somebody refers to it. */
struct listing_place {
	unsigned refs;
	uint32_t function, line;
	uint64_t address, offset;
	const char *bytes, *text, *file; /* in the place's own memory */
};

/* A thread on a CPU. */
struct listing_origin {
	unsigned refs;
	uint32_t cpu, pid, tid; /* EXECSTREAM_UNKNOWN: not known */
	const char *comm;
};

/* One line. */
struct listing_line {
	enum execstream_kind kind; /* BRANCH, INSN or GAP */
	enum execstream_branch branch;
	uint64_t time, width;		 /* ns, as in the stream */
	uint64_t number;		 /* of the lines of the whole trace, without a slice; of
					  * a gap: 0 */
	struct listing_origin *origin;	 /* never NULL */
	struct listing_place *from, *to; /* of a branch, NULL: no code; an instruction is FROM */
	const char *gap;		 /* its kind */
	uint64_t gaps;			 /* as one line */
};

struct listing;

/* Takes a line, borrowed. 0; another value ends the reading. */
typedef int (*listing_fn)(void *userdata, const struct listing_line *line);

/* What a stream had. */
struct listing_told {
	uint64_t first, trigger;	/* ns; 0: not known */
	uint64_t branches, insns, gaps; /* of the whole trace */
	uint64_t lines;			/* handed on, gaps as one counted once */
	uint64_t recording;		/* what the recording lacks without a place */
};

/* SLICE is borrowed. LAST: only the last so many lines, handed on by listing_finish(); 0: all. 0 or
 * -ENOMEM. */
int listing_new(const struct slice *slice, uint64_t last, listing_fn fn, void *userdata,
		struct listing **ret);
void listing_freep(struct listing **l);
/* Takes a line of the stream, as calls_read_lines() hands it out; LISTING is a struct listing. 0;
 * the result of FN if that was not 0; -EBADMSG: not a line of an execution stream, or it breaks the
 * rules; -EINVAL: nothing lies between the begin and the end of the slice; -ENOMEM. */
int listing_take(void *listing, char *line);
/* No line follows, or none is wanted. CUT: the stream may have more. 0; the result of FN; -EBADMSG:
 * the stream has no end. */
int listing_finish(struct listing *l, bool cut);
const struct listing_told *listing_told(const struct listing *l);
/* The function of PLACE; NULL: not known. */
const struct listing_function *listing_function(const struct listing *l,
						const struct listing_place *place);

/* --- Printing: listing_print.c --- */

struct listing_printer {
	const struct listing *listing;
	const struct settings *settings;
	struct show_style style;
	bool insns;    /* instructions, not branches */
	bool terminal; /* long names are cut */
	bool lines;    /* source lines were asked for */
	uint64_t n;    /* printed */
};

void listing_print(struct listing_printer *p, const struct listing_line *line);
/* Behind the last line. */
void listing_print_end(struct listing_printer *p);
