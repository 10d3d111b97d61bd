/*
 * A piece of code, as the user of the decoder gives it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Why the code that ran may have been other code than the bytes at hand. */
enum code_change {
	CODE_SAME,	 /* the bytes are the code that ran */
	CODE_MEMORY,	 /* memory of no file: its process could write to it after the code ran */
	CODE_SHARED,	 /* memory that other mappings and processes may share and write to */
	CODE_MAPPING,	 /* a file's bytes, where the process could write to its own copy of them */
	CODE_FILE,	 /* a file that changed after the trace began */
	CODE_UNVERIFIED, /* a file of that name, which nothing shows to be the one that ran */
	CODE_CHANGES_N,	 /* the number of values */
};

/* Whether packets that contradict such code say that other code ran. A file that is not verified is
 * most often the right one, so the fault is named as it is. */
static inline bool code_is_doubted(uint8_t change)
{
	return change != CODE_SAME && change != CODE_UNVERIFIED;
}

/* A piece of code around IP: BYTES[0] lies at ADDRESS. The bytes must stay readable and unchanged
 * until flow_free. */
struct flow_code {
	const uint8_t *bytes;
	uint64_t address;
	uint64_t size;
	/* The mapping that the piece is a part of, if the mapping has one content. BYTES are the
	 * part of that content that is read so far; where the same content is mapped elsewhere, its
	 * BYTES are the same memory. map_size 0: the piece is all that there is. */
	uint64_t map_address, map_size;
	/* One byte for each 4 KiB page of addresses, TOUCHED[0] for the page of ADDRESS. The
	 * decoder sets a byte to 1 when it reads instructions in that page. NULL: nobody wants to
	 * know. */
	uint8_t *touched;
	/* A block of code ends where this piece ends: the code behind the piece changes on its
	 * own. */
	bool ends;
	/* enum code_change. Unless CODE_SAME, other code may have run there. */
	uint8_t changing;
};
