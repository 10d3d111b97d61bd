/*
 * What a trace of the kernel needs besides: the kernel's text as images, its symbols and modules as
 * texts.
 */
#pragma once

#include "capture/ring/source.h"
#include "daemon/gather/evidence.h"

struct kernel;

/* Where to look; tests have trees of their own. */
struct kernel_paths {
	const char *proc, *sys; /* "/proc", "/sys" */
	const char *root;	/* before the folders with files of kernels; "" */
	const char *release;	/* NULL: that of the running kernel */
};

/* Remembers which modules are loaded, so that a later snapshot can say which are gone. PATHS is
 * borrowed; NULL: the host's. 0 or -ENOMEM. */
int kernel_new(const struct kernel_paths *paths, struct kernel **ret);
void kernel_free(struct kernel *k);
/* Adds images, texts and notes to E. Call in a job's thread, when the CPUs run again; two jobs may
 * call at once. Does nothing if E was not traced, SOURCE does not trace the kernel, or K is NULL.
 * The manifest says what could not be had. 0, -ENOMEM, or -E2BIG: the manifest's limits. */
int kernel_gather(struct kernel *k, struct source *source, struct evidence *e);
