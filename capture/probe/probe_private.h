/*
 * Errors and the table of kinds, for all files of this room.
 */
#pragma once

#include "capture/probe/probe.h"
#include "capture/probe/shared.h"
#include "proto/base.h"

/* Sets *ret_error to a formatted sentence (NULL if memory is short) and returns ERROR. */
int probe_fail(char **ret_error, int error, const char *format, ...) PRINTF_LIKE(3, 4);

/* What a kind needs, in one place. */
struct probe_kind_info {
	const char *name;
	bool file, symbol, limit; /* spec.file and spec.symbol, spec.limit_ns must be given */
};
/* NULL: no such kind. */
const struct probe_kind_info *probe_kind_info(enum probe_kind kind);
