/*
 * The execution stream: what a decode of branches or instructions with WORKER_SHOW_STREAM writes
 * and ptsnapctl reads, for `branches' and `insns'.
 *
 * The stream is text, one item a line (proto/fields.h). It begins with EXECSTREAM_HEAD and ends
 * with EXECSTREAM_END; a stream without an end was cut off. What a line is about was said before
 * it, so that most lines are short:
 *
 *   H  version, first time, length, time of the trigger (0: unknown)
 *   C  cpu, pid, tid, name          the next lines are of this thread on this CPU
 *   W  time, width                  the next branch or instructions happened within it
 *   F  function, name, image        a function, before its first use
 *   D  place, address, function, offset, bytes, text, file, line
 *                                   what PLACE means from here on: an address and its function
 *   B  kind, from, to               a taken branch between two places
 *   I  place                        an executed instruction
 *   G  name                         a gap: what happened here is not known
 *   R  name, count                  the recording lacks something without a place in a trace
 *   Z  branches, instructions, gaps the end, and how many lines of each kind there were
 *
 * Times are CLOCK_MONOTONIC in ns, as in the report. Lines are in the order of execution of their
 * thread. Functions are numbered from 1 without a break; 0 means unknown. Places are numbers from 1
 * to EXECSTREAM_PLACES and are used again: neither side keeps more than that many. Place 0 is no
 * code, such as where tracing was off. CPU, pid and tid are EXECSTREAM_UNKNOWN where they are not
 * known. Of instructions, D has the bytes in hex and the disassembly, and of both, where lines were
 * asked for, file and line.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/fields.h"

#define EXECSTREAM_VERSION   1u
#define EXECSTREAM_PLACES    65536u
#define EXECSTREAM_FUNCTIONS (1u << 18) /* numbers are below it */
#define EXECSTREAM_UNKNOWN   UINT32_MAX
#define EXECSTREAM_MAX_LINE  FIELDS_MAX_LINE
#define EXECSTREAM_MAX_BYTES 30u /* digits of the bytes of one instruction */

enum execstream_kind {
	EXECSTREAM_HEAD,
	EXECSTREAM_CONTEXT,
	EXECSTREAM_WHEN,
	EXECSTREAM_FUNCTION,
	EXECSTREAM_PLACE,
	EXECSTREAM_BRANCH,
	EXECSTREAM_INSN,
	EXECSTREAM_GAP,
	EXECSTREAM_RECORDING,
	EXECSTREAM_END,
	EXECSTREAM_KINDS_N
};

/* Kinds of branches. */
enum execstream_branch {
	EXECSTREAM_COND,
	EXECSTREAM_JUMP,
	EXECSTREAM_CALL,
	EXECSTREAM_JUMP_IND,
	EXECSTREAM_CALL_IND,
	EXECSTREAM_RET,
	EXECSTREAM_FAR,	    /* far call, jump or return, to code that is traced */
	EXECSTREAM_SYSCALL, /* to the kernel, which is not traced */
	EXECSTREAM_ASYNC,   /* interrupt, exception or signal, to code that is traced */
	EXECSTREAM_ENABLE,  /* tracing begins: from no place */
	EXECSTREAM_RESUME,  /* decoding begins or goes on: from no place */
	EXECSTREAM_DISABLE, /* a branch to code that is not traced */
	EXECSTREAM_STOP,    /* an interrupt or exception, to code that is not traced */
	EXECSTREAM_BRANCHES_N
};

/* One line. Members that the kind does not have are 0. Texts are never NULL. */
struct execstream_item {
	enum execstream_kind kind;
	enum execstream_branch branch;
	uint32_t version; /* HEAD */
	uint32_t cpu, pid, tid;
	uint32_t place;	   /* PLACE, INSN */
	uint32_t from, to; /* BRANCH: places */
	uint32_t function;
	uint32_t line;			 /* PLACE; 0: unknown */
	uint64_t time, width;		 /* WHEN; HEAD: first time and length */
	uint64_t trigger;		 /* HEAD */
	uint64_t address, offset;	 /* PLACE; the offset in the function */
	uint64_t count;			 /* RECORDING */
	uint64_t branches, insns, gaps;	 /* END */
	const char *name;		 /* CONTEXT, FUNCTION, GAP, RECORDING */
	const char *image;		 /* FUNCTION: path, "[kernel]"; "": unknown */
	const char *bytes, *text, *file; /* PLACE; "": none */
};

/* Writes the line of ITEM with its newline and a terminating 0 to LINE, EXECSTREAM_MAX_LINE bytes.
 * Returns the length without the 0. */
size_t execstream_compose(const struct execstream_item *item, char *line);

/* Reads LINE, which ends with 0 and has no newline; unescapes its texts in place, and *RET points
 * to them. 0; -EBADMSG: not a line of an execution stream of this version, or a number is beyond
 * its limit; *RET is undefined. */
int execstream_parse(char *line, struct execstream_item *ret);

/* A name, as in the stream and in a report: "call", "jump-ind". */
const char *execstream_branch_name(enum execstream_branch branch);
