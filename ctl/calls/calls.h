/*
 * Reads the call stream of a decode (proto/callstream.h): for `ptsnapctl calls', for exports and
 * for the page.
 *
 * calls.c runs ptsnap-decode and hands its lines, parsed, to a function. It does the same with the
 * lines of other views, as they are. source.c has the options about the decode. slice.c lets a part
 * of the items pass: of some threads, of a span of time, of some functions. order.c makes whole
 * calls of begins and ends; gaps.c makes one gap of several in a row.
 *
 * Decisions that govern the room:
 * - The decoder writes into a pipe and waits for the reader. Neither side keeps the stream: memory
 *   does not grow with the trace.
 * - The decoder parsed what strangers wrote, and it may have been taken over. The order of its
 * lines is checked before a reader sees them, so a reader may rely on it.
 * - Texts are a stranger's. Whoever prints them escapes them (ctl/base/say.h).
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/callstream.h"

#include "ctl/decode/decode_option.h"

/* Which calls are to be read. Zero: of this host's defaults. All pointers are borrowed. */
struct calls_source {
	struct settings *settings;
	const char *operand; /* an ID, `latest', or a file: a bundle or a perf.data */
	const char *worker;  /* path of ptsnap-decode; NULL: the usual one */
	const char *sysroot; /* of a perf.data's files; NULL: none */
	const char *symbols[DECODE_MAX_SYMBOLS]; /* directories with debug files */
	size_t n_symbols;
	bool debuginfod;
	bool no_names;	  /* read no symbol tables */
	bool lines;	  /* with source lines; of calls: with frames of inlined functions */
	uint64_t memory;  /* of the decoder; 0: the usual limit */
	uint32_t threads; /* of the decoder; 0: one for each CPU */
	uint64_t show;	  /* WORKER_SHOW_*, of a view that is lines */
	struct decode_slice span; /* what is decoded; only its times */
	/* Is handed the bundle (borrowed) before the decode; NULL: not needed. 0; another value is
	 * the result of the reading. */
	int (*opened)(void *userdata, int bundle_fd);
};

/* --- Options: --worker, --sysroot, --symbols, --debuginfod, --no-names, --lines --- */

#define SOURCE_OPTIONS 6u

/* Writes the options for getopt_long(3) to TO; they have the values FIRST, FIRST + 1, ... */
void source_option_table(struct option to[static SOURCE_OPTIONS], int first);
/* Takes option INDEX with its value (NULL: the option has none). 0, or an exit code after a
 * message. */
int source_option_take(struct calls_source *s, size_t index, const char *value);

/* --- Reading --- */

/* Takes one item, whose texts are borrowed for the call. 0; another value ends the reading. */
typedef int (*calls_fn)(void *userdata, const struct callstream_item *item);

/*
 * Decodes SOURCE and calls FN with each item in the order of the stream. FN may rely on this: the
 * first item is the head and the last one is the end; threads and functions are numbered from 1
 * without a break, and defined once before they are used; an item ends a frame only if its thread
 * has one; times of a thread do not decrease.
 *
 * 0; the result of FN if that was not 0; or an exit code after a message (then FN may have seen no
 * end).
 */
int calls_read(const struct calls_source *source, calls_fn fn, void *userdata);

/* The same for a stream that lies in FD (borrowed). 0; the result of FN if that was not 0;
 * -EBADMSG: no call stream, or a line breaks the rules; -ENODATA: it was cut off; -ENOMEM; or
 * -errno of the reading. */
int calls_read_fd(int fd, calls_fn fn, void *userdata);

/* Decodes BUNDLE_FD (borrowed), which `opened' of SOURCE was handed, into a report in memory;
 * *ret_fd is the caller's. An exit code after a message. */
int calls_report(const struct calls_source *source, int bundle_fd, int *ret_fd);

/* Takes one line, without its newline, which it may change. 0; another value ends the reading. */
typedef int (*calls_line_fn)(void *userdata, char *line);

/* Decodes SOURCE as VIEW, a view that is lines, and calls FN with each. As calls_read(), but
 * nothing is checked except that a line is text and not longer than one of a call stream. */
int calls_read_lines(const struct calls_source *source, enum worker_view view, calls_line_fn fn,
		     void *userdata);
