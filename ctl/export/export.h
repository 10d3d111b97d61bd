/*
 * Writes a call stream in the formats of other tools.
 *
 * This room turns the items of proto/callstream.h into one file, while the decoder still writes the
 * stream: `ptsnapctl export' hands each item to exporter_take(). export.c has the table of formats
 * and keeps what all formats need: names, threads, and the open frames of each thread with the
 * time and the instructions that belong to each. A file format_*.c writes one format or a family,
 * and is told of definitions, begins, ends, turns, gaps and marks (export_private.h).
 *
 * Decisions that govern the room:
 * - Memory does not grow with the length of a trace. Kept are: names, threads, open frames, and for
 *   formats that add up (collapsed, callgrind, pprof) one node for each different stack (stacks.c).
 *   A format that wants its events thread by thread, although the stream has them mixed, sorts them
 *   in a temporary file (spool.c).
 * - Names and stacks are found by a hash with a random key (slots.c), and compared: a stranger
 * cannot choose names that make an export slow, or that become one.
 * - Limits end the export with -E2BIG, with one exception: if there are too many different stacks,
 *   or a stack is too deep for a format that adds up, a call is booked to its caller, and counted
 *   (exporter_told.folded).
 * - Every name is a stranger's. names.c makes it safe once, as for a terminal: valid UTF-8 without
 *   control characters and without characters that reorder their neighbours, at most
 *   EXPORT_MAX_NAME bytes. A format adds its own quoting. No name can end a string, a line, a field
 *   or a statement.
 * - The stream comes from a decoder that a trace may have taken over. ctl/calls has checked the
 * order of its lines; what would lead out of an array makes the export fail here, too.
 * - No outside library but zlib: protobuf.c writes the five encodings that Perfetto and pprof need,
 * in a hundred lines (libprotobuf-c would build each message as a tree first); SQL is text for
 *   sqlite3(1), because a database can be written neither to a pipe nor under another name.
 * - Time on a CPU is what lies between the thread's switches; a thread of which no switch is known
 *   has the CPU all the time. Time between the frames of a thread belongs to no function.
 *
 * brstack.c is apart: branch stacks come from the lines of `ptsnapctl decode --view=branches', not
 * from the call stream.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/callstream.h"

#define EXPORT_MAX_NAME	  4096u			/* bytes of a name as it is written */
#define EXPORT_MAX_NAMES  (UINT64_C(512) << 20) /* bytes of all names */
#define EXPORT_MAX_NUMBER (1u << 22)		/* of a thread or a function */
#define EXPORT_MAX_FRAMES (1u << 22)		/* open at one time, in all threads */
#define EXPORT_MAX_STACKS (1u << 20)		/* different ones, of formats that add up */
#define EXPORT_MAX_DEPTH  1024u			/* frames of one stack, of these formats */
#define EXPORT_MAX_CPUS	  65536u

/* What a line of the format "collapsed" counts. */
enum export_weight { EXPORT_CPU, EXPORT_WALL, EXPORT_INSNS };

/* A format that is made from the call stream. */
struct export_format {
	const char *name;   /* as --format= has it */
	const char *suffix; /* of a file's name */
	const char *help;   /* a few words: who reads it */
	bool binary;	    /* not for a terminal */
	const struct export_ops *ops;
};

/* All formats; the last has no name. */
extern const struct export_format export_formats[];
/* NULL: there is no such format. */
const struct export_format *export_format_find(const char *name);

/* What is worth a remark. */
struct exporter_told {
	uint64_t calls;	 /* frames that ended */
	uint64_t cut;	 /* frames that the decoder left out because of a limit */
	uint64_t folded; /* frames booked to their callers, because of EXPORT_MAX_STACKS and _DEPTH
			  */
};

struct exporter;

/* Writes to FD (borrowed), at its position; FD need not be seekable. WEIGHT is for "collapsed".
 * 0, -ENOMEM, or -errno: of a temporary file. */
int exporter_new(const struct export_format *format, enum export_weight weight, int fd,
		 struct exporter **ret);
void exporter_freep(struct exporter **e);
/* Takes the next item. EXPORTER is a struct exporter. 0; -EBADMSG: the item has no place in a call
 * stream; -E2BIG: a limit above; -ENOMEM; -errno: of write(2). After a failure, E may only be
 * freed. */
int exporter_take(void *exporter, const struct callstream_item *item);
/* Writes what is left. 0; -ENODATA: the stream was cut off before its end; or as exporter_take().
 */
int exporter_finish(struct exporter *e, struct exporter_told *ret);

/* --- brstack.c: branch stacks, as `perf script -F ip,brstack --show-mmap-events' prints them ---
 */

struct brstack;

/* Branches in one line: as many as the processors have that record such stacks. */
#define BRSTACK_DEPTH 32u

int brstack_new(int fd, struct brstack **ret);
void brstack_freep(struct brstack **b);
struct bundle;
/* Writes what was mapped where, executable mappings only, as `perf script --show-mmap-events' does;
 * readers need these lines before the branches. 0 or -errno of write(2). */
int brstack_maps(struct brstack *b, const struct bundle *bundle);
/* Takes a line of --view=branches, without its newline. 0; -EBADMSG: not such a line; -ENOMEM; or
 * -errno of write(2). */
int brstack_take(struct brstack *b, const char *line);
/* The same as numbers: a branch (an address of 0: tracing began or ended); or that the next branch
 * does not follow the last one. 0 or -errno of write(2). */
int brstack_branch(struct brstack *b, uint64_t from, uint64_t to);
int brstack_break(struct brstack *b);
/* Writes what is left; *RET_BRANCHES is the number of all branches written. 0 or -errno. */
int brstack_finish(struct brstack *b, uint64_t *ret_branches);
