/*
 * The input of the differential fuzzer: a trace, its code, and the processor.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIFF_TRACE_MAX	65536u
#define DIFF_PIECES_MAX 2048u

struct diff_piece {
	const uint8_t *bytes; /* borrowed from a seed, or in the input's own_bytes */
	uint64_t address;
	size_t size;
};

struct diff_input {
	uint8_t trace[DIFF_TRACE_MAX];
	size_t size;
	/* in order of address, not overlapping */
	struct diff_piece pieces[DIFF_PIECES_MAX];
	size_t n_pieces;
	uint32_t family, model;
	/* patched copies of pieces */
	uint8_t own_bytes[8][65536];
	size_t n_own;
};

/* A recorded trace with its code. */
struct diff_seed {
	char name[128];
	uint8_t *trace;
	size_t size;
	struct diff_piece *pieces;
	size_t n_pieces;
	uint32_t family, model;
};

struct diff_seeds {
	struct diff_seed *list;
	size_t n;
};

/* Reads every trace of the corpus at PATH that has code, and the folders in ARGV (pt.bin,
 * pages.addr, pages.dump). Exits if something cannot be read. */
void diff_seeds_load(struct diff_seeds *s, const char *corpus, char **folders, size_t n);
/* Reads a file that diff_input_write or a person wrote; false: not such a file. */
bool diff_input_read(struct diff_input *in, const char *path);
void diff_input_write(const struct diff_input *in, const char *path, const char *comment);
/* Sorts the pieces and cuts overlaps. */
void diff_input_order(struct diff_input *in);
/* The piece at ADDRESS; NULL: no piece. */
const struct diff_piece *diff_input_find(const struct diff_input *in, uint64_t address);

/* Random numbers that depend on the seed alone. */
struct diff_random {
	uint64_t state;
};
uint64_t diff_random(struct diff_random *r);
/* A number below N, which must not be 0. */
size_t diff_below(struct diff_random *r, size_t n);

/* Makes an input from a part of one seed, with a few changes. */
void diff_mutate(const struct diff_seeds *seeds, struct diff_random *r, struct diff_input *ret);
/* Makes the input smaller as long as SAME returns true. */
void diff_reduce(struct diff_input *in, bool (*same)(void *userdata, const struct diff_input *in),
		 void *userdata);
