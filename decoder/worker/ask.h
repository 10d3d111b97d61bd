/*
 * The worker's questions to the program that started it: for images that lie elsewhere, and for
 * separate files with the names and the DWARF of an image (proto/worker.h).
 *
 * sideband/symbols/image.h says what is asked when. A separate debug file has the number of its
 * image plus the number of all images.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sideband/symbols/image.h"

/* At most this many files are open. A file beyond is asked for again when it is needed again. */
#define ASK_MAX_OPEN 32u

struct ask_file {
	uint32_t image; /* from n_images on: a debug file */
	int fd;		/* -1: free */
	uint64_t size;
	uint64_t used; /* when it was used last, counted in questions */
};

/* The build id by which a debug file is asked for again. */
struct ask_build_id {
	uint8_t size; /* 0: the file was never asked for */
	uint8_t bytes[20];
};

struct ask {
	int channel; /* borrowed */
	uint32_t n_images;
	bool debug; /* debug files may be asked for */
	uint64_t now;
	uint32_t n_debug; /* questions for debug files so far */
	struct ask_file files[ASK_MAX_OPEN];
	struct ask_build_id *build_ids; /* by image; NULL: no debug file was asked for */
};

/* N_IMAGES: of the manifest. WITH_DEBUG: the other end of CHANNEL answers WORKER_DEBUG. */
void ask_init(struct ask *a, int channel, uint32_t n_images, bool with_debug);
void ask_done(struct ask *a);
/* A loader that asks through A, which is borrowed. MAX_FILLED as in struct image_loader. */
struct image_loader ask_loader(struct ask *a, uint64_t max_filled);
/* Says that these bytes of an image were needed; says nothing of debug files. 0 or -errno. */
int ask_keep(struct ask *a, uint32_t image, uint64_t offset, uint64_t size);
