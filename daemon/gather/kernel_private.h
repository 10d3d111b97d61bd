/*
 * Inside of kernel.c (what is remembered between snapshots), kernel_look.c (one look at the kernel)
 * and kernel_add.c (into the manifest).
 */
#pragma once

#include <pthread.h>

#include "capture/kernel/kernel_text.h"
#include "daemon/gather/kernel.h"

struct kernel {
	struct kernel_paths paths;
	char release[65];
	pthread_mutex_t lock; /* two jobs may be at it */
	struct kernel_modules known;
};

struct kernel_look {
	struct kernel_modules modules;
	struct kernel_symbols symbols;
	int symbols_error, kcore_error; /* 0 or -errno */
	struct kernel_region *regions;	/* owned */
	struct kernel_copy *copies;	/* owned, one a region; fd -EBADF: see ERRORS */
	int *errors;
	size_t n;
};

/* kernel_look.c: 0, -ENOMEM, -E2BIG. */
int kernel_look_modules(const struct kernel *k, struct kernel_modules *ret);
/* SIDEBAND: records, for the code that they tell of. */
int kernel_look_take(const struct kernel *k, struct source *source,
		     const struct bytes_out *sideband, struct kernel_look *ret);
void kernel_look_done(struct kernel_look *l);
/* kernel_add.c: all but the modules' list of L, whose text is taken over, too. 0, -ENOMEM, -E2BIG.
 */
int kernel_add_look(struct evidence *e, const struct kernel *k, struct kernel_look *l);
