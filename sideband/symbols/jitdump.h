/*
 * Dumps of just-in-time compilers: the code that a process made, with its bytes, names, source
 * lines and times (tools/perf/Documentation/jitdump-specification.txt).
 *
 * jitdump.c reads the file, a stranger's. jitcode.c answers which code lay at an address at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- The file (jitdump.c) --- */

struct jitdump;

#define JITDUMP_MAX	 (1u << 17) /* pieces of code; of a longer file the last ones count */
#define JITDUMP_NAME_MAX 1023u	    /* bytes; of a longer name the end counts */
#define JITDUMP_LINES	 4096u	    /* lines of one function that are read at most */

/* A piece of code that the compiler wrote to memory, or moved there. */
struct jitdump_load {
	uint64_t address, size; /* in the process's memory; size is not 0 */
	uint64_t offset;	/* of its bytes in the file */
	uint64_t time;		/* CLOCK_MONOTONIC, ns, or a TSC (jitdump_has_tsc) */
	const char *name;	/* borrowed, ended by NUL */
	uint64_t lines;		/* offset of the record with its source lines; 0: there is none */
};

/* BYTES are borrowed as long as the dump. A file may lack a part between its header and some later
 * record: reading goes on with the first place from which records follow each other. 0, -ENOMEM,
 * or JITDUMP_NOT: BYTES are no such file of this kind of processor. */
#define JITDUMP_NOT 1
int jitdump_new(const uint8_t *bytes, size_t size, struct jitdump **ret);
void jitdump_free(struct jitdump *d);
/* The times are those of the processor's counter. */
bool jitdump_has_tsc(const struct jitdump *d);
/* Nothing is missing between the header and the last whole record. */
bool jitdump_is_whole(const struct jitdump *d);
/* The compiler has said that it makes no more code. */
bool jitdump_is_closed(const struct jitdump *d);
/* The time of the newest record; 0: there is none. */
uint64_t jitdump_last(const struct jitdump *d);
/* Pieces of code that were not taken: beyond JITDUMP_MAX, of another process, or moved from
 * nowhere.
 */
uint64_t jitdump_dropped(const struct jitdump *d);
/* In order of time; of equal times in order of the file. */
const struct jitdump_load *jitdump_loads(const struct jitdump *d, size_t *ret_n);
const uint8_t *jitdump_bytes(const struct jitdump *d, const struct jitdump_load *load);
/* The piece whose bytes lie around OFFSET of the file; NULL: there is none. */
const struct jitdump_load *jitdump_at(const struct jitdump *d, uint64_t offset);
/* The source line of the byte at OFFSET of the file. False: it is not known. *ret_file is borrowed.
 */
bool jitdump_line(const struct jitdump *d, uint64_t offset, const char **ret_file,
		  uint32_t *ret_line);

/* --- Code by time and address (jitcode.c) --- */

struct jitcode;

/* Versions beyond this number: of the older ones nobody says when they were valid. */
#define JITCODE_MAX_VERSIONS 65536u

struct jitcode_clock {
	/* TIME of the dump as perf ns: between *ret_lo and *ret_hi. Must rise with TIME. */
	void (*ns)(void *userdata, uint64_t time, uint64_t *ret_lo, uint64_t *ret_hi);
	void *userdata;
	uint64_t begin; /* perf ns; what was before does not matter */
	bool complete;	/* nothing came behind the last record, neither later nor unseen */
};

/* DUMP is borrowed as long as the code. 0 or -ENOMEM. */
int jitcode_new(const struct jitdump *dump, const struct jitcode_clock *clock,
		struct jitcode **ret);
void jitcode_free(struct jitcode *c);
/* The number of versions, beginning with 0, in which some code replaces other code. */
uint32_t jitcode_versions(const struct jitcode *c);
/* The version that most likely holds at TIME (perf ns). */
uint32_t jitcode_at(const struct jitcode *c, uint64_t time);
/* The first and the last version that may hold at some time within [lo, hi] (perf ns). */
void jitcode_within(const struct jitcode *c, uint64_t lo, uint64_t hi, uint32_t *ret_first,
		    uint32_t *ret_last);

struct jitcode_piece {
	const struct jitdump_load *load;
	uint64_t begin, end;   /* addresses, all alike in what follows */
	uint32_t since, until; /* it holds in versions [since, until) */
	bool newest;	       /* no other code came there behind it */
};
#define JITCODE_FOREVER UINT32_MAX

/* The code at ADDRESS in VERSION. False: the dump has none. */
bool jitcode_find(const struct jitcode *c, uint32_t version, uint64_t address,
		  struct jitcode_piece *ret);
/* The addresses [*ret_begin, *ret_end) around ADDRESS of which jitcode_find() finds no code in
 * VERSION, as at ADDRESS; or some of them around it. */
void jitcode_gap(const struct jitcode *c, uint32_t version, uint64_t address, uint64_t *ret_begin,
		 uint64_t *ret_end);
/* Of code that is the newest at its place, and of which the memory does not say that it still is
 * there: the version up to which that is known, JITCODE_FOREVER in a complete dump. */
uint32_t jitcode_end(const struct jitcode *c);
