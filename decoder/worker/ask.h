/*
 * The worker's questions to whoever started it: for images that lie elsewhere (proto/worker.h).
 * Used by main.c; image.h says what is asked when.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sideband/image.h"

/* So many files are open at a time; those beyond are asked for again when they are needed again. */
#define ASK_MAX_OPEN 32u

struct ask_file {
	uint32_t image;
	int fd; /* -1: free */
	uint64_t size;
	uint64_t used; /* when, counted in questions */
};

struct ask {
	int channel; /* borrowed */
	uint64_t now;
	struct ask_file files[ASK_MAX_OPEN];
};

void ask_init(struct ask *a, int channel);
void ask_done(struct ask *a);
/* The loader that asks A; borrows it. */
struct image_loader ask_loader(struct ask *a, uint64_t max_filled);
/* These bytes of an image were needed. 0 or -errno. */
int ask_keep(struct ask *a, uint32_t image, uint64_t offset, uint64_t size);
