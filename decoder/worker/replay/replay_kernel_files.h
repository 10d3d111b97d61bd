/*
 * The kernel's code out of files, for a replay of a bundle whose recorder could not read it from
 * memory.
 */
#pragma once

#include "decoder/worker/replay/replay.h"

/* Adds to r->kernel what the manifest's images of kind "kernel-file" give: text, and what of it is
 * not to be believed. Files that are not what ran, or that nobody can make sense of, are left out.
 * 0 or -ENOMEM. */
int replay_kernel_files(struct replay *r);
