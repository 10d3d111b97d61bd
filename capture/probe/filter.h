/*
 * The fields of a tracepoint, and comparisons with them.
 */
#pragma once

#include <stddef.h>

#include "capture/probe/shared.h"

/*
 * Parses FILTER (probe_spec.filter, or NULL: no comparison) into at most SHARED_TESTS comparisons.
 * FORMAT is the text of the tracepoint's file "format" in tracefs. Returns their number, or -EINVAL
 * with a sentence in *ret_error, which the caller frees (NULL if memory is short).
 */
int filter_parse(const char *format, const char *filter, struct shared_test ret[SHARED_TESTS],
		 char **ret_error);

/* Reads the format of tracepoint CATEGORY:NAME; *ret is the caller's. 0, or with a sentence
 * -EINVAL: no such form; -ENOENT: no such tracepoint; -EOPNOTSUPP: tracefs is not mounted; -errno.
 */
int filter_read_format(const char *tracepoint, char **ret, char **ret_error);
