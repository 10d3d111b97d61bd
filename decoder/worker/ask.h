/*
 * The worker's questions to whoever started it: for images that lie elsewhere, and for files apart
 * that have the names and the DWARF of one (proto/worker.h). Used by main.c; image.h says what is
 * asked when, and that such a file has the number of its image plus that of all images.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sideband/symbols/image.h"

/* So many files are open at a time; those beyond are asked for again when they are needed again. */
#define ASK_MAX_OPEN 32u

struct ask_file {
	uint32_t image; /* from n_images on: of a file apart */
	int fd;		/* -1: free */
	uint64_t size;
	uint64_t used; /* when, counted in questions */
};

/* The build id by which a file apart is asked for again. */
struct ask_build_id {
	uint8_t size; /* 0: it was never asked for */
	uint8_t bytes[20];
};

struct ask {
	int channel; /* borrowed */
	uint32_t n_images;
	bool debug; /* files apart may be asked for */
	uint64_t now;
	uint32_t n_debug; /* questions for them so far */
	struct ask_file files[ASK_MAX_OPEN];
	struct ask_build_id *build_ids; /* by image; NULL: no file apart was asked for */
};

/* N_IMAGES are in the manifest; WITH_DEBUG: who started us answers WORKER_DEBUG. */
void ask_init(struct ask *a, int channel, uint32_t n_images, bool with_debug);
void ask_done(struct ask *a);
/* The loader that asks A; borrows it. */
struct image_loader ask_loader(struct ask *a, uint64_t max_filled);
/* These bytes of an image were needed; of files apart nobody is told. 0 or -errno. */
int ask_keep(struct ask *a, uint32_t image, uint64_t offset, uint64_t size);
