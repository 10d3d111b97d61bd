/*
 * A perf.data of `perf record' with Intel PT -> a bundle in memory, so that everything behind it is
 * the ordinary path.
 */
#pragma once

#include <stdbool.h>

/* Whether the file that FD (borrowed) is open at calls itself a perf.data, of any kind. */
bool import_perfdata_is(int fd);
/* The bundle, in a sealed memfd (the caller's). PATH is what messages name; the files that were
 * mapped are looked for below SYSROOT, NULL: as they are named. QUIET: no remarks. 0, or an exit
 * code after a message.
 */
int import_perfdata(int fd, const char *path, const char *sysroot, bool quiet, int *ret_fd);
