/*
 * The kernel's code beside a perf.data file, for its bundle.
 */
#pragma once

#include "proto/bundle/bundle.h"
#include "proto/bundle/manifest.h"

/* perf record --kcore makes a directory of the file: DIR/data, and in DIR/kcore_dir copies of
 * /proc/kcore and /proc/kallsyms from before the recording (tools/perf/builtin-record.c,
 * record__kcore_copy()). If PATH has such a neighbour and the kernel was traced, each segment of
 * the kernel's memory becomes an image of M and the symbols a text. Copies that cannot be read are
 * left out: the kernel's code is then missing. 0, or an exit code after a message. */
int import_kernel_write(const char *path, struct manifest *m, struct bundle_writer *w);
