/*
 * A piece of code, as the user of the decoder hands it over.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A piece of code around IP: BYTES[0] lies at ADDRESS. Must stay readable and unchanged until
 * flow_free. */
struct flow_code {
	const uint8_t *bytes;
	uint64_t address;
	uint64_t size;
	/* The mapping that it is a part of, if that has one content, of which BYTES are what is
	 * read so far: what is mapped equally elsewhere has equal BYTES there. map_size 0: the
	 * piece is all that there is. */
	uint64_t map_address, map_size;
	/* Set to 1 where instructions are read: one byte for each 4 KiB page of addresses,
	 * TOUCHED[0] for that of ADDRESS. NULL: nobody wants to know. */
	uint8_t *touched;
	/* A block of code ends where this piece does: what lies behind it changes on its own. */
	bool ends;
	/* It was read from memory later than it ran (anonymous code): where packets contradict it,
	 * it was other code then. */
	bool changing;
};
