/*
 * The call stream: what a decode of calls (WORKER_VIEW_CALLS) writes and ptsnapctl reads, for
 * indented calls, exports and the page.
 *
 * The stream is text, one item a line (proto/fields.h). It begins with CALLSTREAM_HEAD and
 * ends with CALLSTREAM_END; a stream without an end was cut off. Neither side keeps more than open
 * frames and definitions: memory does not grow with the length of the trace.
 *
 *   H  version, first time, length, time of the trigger (0: unknown)
 *   T  thread, pid, tid, name                    before its first use
 *   F  function, address, name, image, file, line  before its first use
 *   B  thread, time, width, cpu, function, kind  a frame begins
 *   E  thread, time, width, cpu, end, insns      the innermost frame of the thread ends
 *   R  thread, time, cpu                         the thread gets the CPU
 *   S  thread, time, cpu, why                    the thread leaves the CPU
 *   G  thread, time, length, cpu, name           a gap: what happened meanwhile is not known
 *   M  thread, time, cpu, value, name            an instant: PTWRITE, change of frequency, ...
 *   Z  frames, truncated                         the end
 *
 * Times are CLOCK_MONOTONIC in ns, as in the report. An event happened within [time, time + width].
 * The times of one thread do not decrease; lines of different threads are only roughly in the order
 * of time. Numbers are decimal, addresses hex with 0x; threads and functions are numbered from 1,
 * and 0 means none or unknown. Texts are a stranger's: a byte that is not printable ASCII, a tab
 * and a backslash are written as \xNN.
 *
 * Frames of a thread nest. A frame that was there before its begin was seen (FOUND) begins at the
 * first time at which it is known; a frame that was there at the end is closed with the end OPEN.
 * Behind a gap nobody knows the frames: they end with LOST at the gap's begin.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CALLSTREAM_VERSION  1u
#define CALLSTREAM_MAX_TEXT 4096u /* bytes of one text, unescaped; longer ones are cut */
#define CALLSTREAM_MAX_LINE (4u * 4u * CALLSTREAM_MAX_TEXT)

enum callstream_kind {
	CALLSTREAM_HEAD,
	CALLSTREAM_THREAD,
	CALLSTREAM_FUNCTION,
	CALLSTREAM_BEGIN,
	CALLSTREAM_FINISH,
	CALLSTREAM_ON,
	CALLSTREAM_OFF,
	CALLSTREAM_GAP,
	CALLSTREAM_MARK,
	CALLSTREAM_END,
	CALLSTREAM_KINDS_N
};

/* How a frame began. */
enum callstream_begin {
	CALLSTREAM_CALL,      /* a call instruction */
	CALLSTREAM_JUMP,      /* a jump between functions: a tail call, a PLT entry, a cold part */
	CALLSTREAM_SIGNAL,    /* a signal handler */
	CALLSTREAM_INTERRUPT, /* an interrupt or exception; the function is the kernel's or 0 */
	CALLSTREAM_SYSCALL,   /* a system call; the function is the kernel's entry or 0 */
	CALLSTREAM_INLINED,   /* the compiler inlined the function here */
	CALLSTREAM_FOUND,     /* the frame began before it was seen */
	CALLSTREAM_BEGINS_N
};

/* How a frame ended. */
enum callstream_end {
	CALLSTREAM_RETURN,  /* a return, or for a kernel frame the return to user code */
	CALLSTREAM_LEFT,    /* by a jump back, or together with a frame around it (a tail call) */
	CALLSTREAM_UNWOUND, /* longjmp, an exception, an aborted transaction, an exec */
	CALLSTREAM_SWAPPED, /* the thread went to another stack (coroutines); the frame was dropped
			     */
	CALLSTREAM_LOST,    /* at a gap, or in a turn before a CPU's trace begins */
	CALLSTREAM_OPEN,    /* it was still there at the end */
	CALLSTREAM_ENDS_N
};

/* Why a thread left the CPU. */
enum callstream_why {
	CALLSTREAM_PREEMPTED,
	CALLSTREAM_BLOCKED,
	CALLSTREAM_EXITED,
	CALLSTREAM_WHY_UNKNOWN,
	CALLSTREAM_WHYS_N
};

/* One line. Members that the kind does not have are 0. Texts are never NULL. */
struct callstream_item {
	enum callstream_kind kind;
	uint32_t thread, function, cpu;
	uint64_t time, width; /* GAP: width is its length; HEAD: first time and length */
	uint64_t insns;	      /* FINISH: executed in the frame itself */
	enum callstream_begin begin;
	enum callstream_end end;
	enum callstream_why why;
	uint64_t value;	   /* MARK; HEAD: time of the trigger; END: frames */
	uint64_t cut;	   /* END: frames that were left out because of a limit */
	uint32_t version;  /* HEAD */
	uint32_t pid, tid; /* THREAD */
	uint64_t address;  /* FUNCTION: in its file, or in memory where there is no file */
	uint32_t line;	   /* FUNCTION; 0: unknown */
	const char *name;  /* THREAD, FUNCTION, GAP, MARK */
	const char *image; /* FUNCTION: path, "[kernel]", "[jit]"; "": unknown */
	const char *file;  /* FUNCTION: source; "": unknown */
};

/* Writes the line of ITEM with its newline and a terminating 0 to LINE, CALLSTREAM_MAX_LINE bytes.
 * Returns the length without the 0. */
size_t callstream_compose(const struct callstream_item *item, char *line);

/* Reads LINE, which ends with 0 and has no newline; unescapes its texts in place, and *RET points
 * to them. 0; -EBADMSG: not a line of a call stream of this version, *RET is undefined. */
int callstream_parse(char *line, struct callstream_item *ret);

/* Names, as in the stream: "call", "return", "blocked". */
const char *callstream_begin_name(enum callstream_begin begin);
const char *callstream_end_name(enum callstream_end end);
const char *callstream_why_name(enum callstream_why why);
