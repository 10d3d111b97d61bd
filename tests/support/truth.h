/*
 * Reads one thread's truth file (capture/emu/plugin/truth.h) item by item.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct truth_block_def {
	uint64_t ip;
	uint16_t n;
	const uint8_t *length; /* NULL: not defined */
	const uint8_t *last;   /* bytes of the last instruction */
	uint8_t last_size;     /* 0: they are not known */
};

struct truth_reader {
	const uint8_t *bytes, *pos, *end; /* the mapped file */
	struct truth_block_def *blocks;	  /* by id; a later definition may replace an id */
	size_t n_blocks;
	uint64_t last_id;
};

struct truth_event {
	int item; /* enum truth_item; TRUTH_FIRST_ID for any execution */
	/* execution: the first n instructions of a block, TIMES times; the block is valid until the
	 * next event */
	const struct truth_block_def *block;
	unsigned int n;
	uint64_t times;
	/* marks */
	uint64_t tsc, pos, ip;
	bool flag; /* PSB: in user code; OVERFLOW: resolved */
	uint32_t generation, cpu;
};

/* 0; -EBADMSG: not a truth file; -errno. Call truth_reader_done in every case. */
int truth_reader_open(struct truth_reader *r, const char *path);
void truth_reader_done(struct truth_reader *r);
/* 1: *ret is the next item; 0: end of the file; -EBADMSG: damaged; -ENOMEM. */
int truth_reader_next(struct truth_reader *r, struct truth_event *ret);
