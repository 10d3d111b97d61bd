/*
 * Converts a perf.data file of `perf record' with Intel PT to a bundle in memory.
 */
#pragma once

#include <stdbool.h>

/* Whether the file FD (borrowed) begins as a perf.data of any kind. */
bool import_perfdata_is(int fd);
/* Composes the bundle in a sealed memfd, *ret_fd, the caller's. PATH stands in messages. Mapped
 * files are looked for below SYSROOT, or, if that is NULL, on this host. QUIET: print only errors.
 * 0, or an exit code after a message. */
int import_perfdata(int fd, const char *path, const char *sysroot, bool quiet, int *ret_fd);
