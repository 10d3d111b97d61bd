/*
 * Files with names and DWARF from the servers of $DEBUGINFOD_URLS (--debuginfod), by the program
 * debuginfod-find, which keeps what it had (debuginfod-find(1)). Used by cmd_decode.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* So many different build ids are asked for in one decode: who asks may have been taken over, and
 * each question tells the servers 20 bytes. */
#define DEBUGINFOD_MAX_ASKED 1024u

struct debuginfod_answer {
	uint8_t id[20];
	uint8_t id_size;
	char *path; /* owned; NULL: nobody has it */
};

struct debuginfod {
	struct debuginfod_answer *answers;
	size_t n;
	int error; /* -errno of the program, when it could not be started; 0 */
};

void debuginfod_init(struct debuginfod *d);
void debuginfod_done(struct debuginfod *d);
/* The path of a file for build id ID of 1 to 20 bytes, borrowed; NULL: there is none. Waits for the
 * servers. */
const char *debuginfod_find(struct debuginfod *d, const uint8_t *id, size_t id_size);
