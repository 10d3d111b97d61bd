/*
 * Assembles the program section of a script with GNU as and links it with ld. Gives its labels, and
 * its bytes as they lie in memory.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/support/ptscript.h"

#define PTSCRIPT_MAX_PIECES 16u

/* An executable section of the linked program. */
struct ptscript_piece {
	char name[32];
	uint64_t address, size;
	uint64_t offset; /* in the linked file */
};

struct ptscript_program {
	char file[512]; /* path of the linked file; "": no program */
	struct ptscript_piece pieces[PTSCRIPT_MAX_PIECES];
	size_t n_pieces;
};

/* Assembles and links in the existing directory DIRECTORY; adds the labels to S. The words of the
 * section's header are the address of .text (default 0x100000), and SECTION=ADDRESS for other
 * sections. 0; -EINVAL and s->error; another -errno if a tool cannot be run. */
int ptscript_assemble(struct ptscript *s, const char *directory, struct ptscript_program *ret);
