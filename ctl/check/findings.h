/*
 * Findings (type Finding of io.ptsnap.recorder) on standard output; and those of `ptsnapd --check',
 * for a host without a recorder.
 */
#pragma once

#include <json-c/json.h>

#include "ctl/base/option.h"

/* Prints FINDINGS, an array, as the settings say. EXIT_CODE_OK; EXIT_CODE_NOT_TRACING: there is a
 * failure among them; EXIT_CODE_FAILURE, which was said: it is no array. */
int findings_print(const struct settings *s, struct json_object *findings);
/* What `PTSNAPD --check' finds (NULL: the installed one, or the build tree's). *ret is the
 * caller's, an array. 0 or an exit code; what is wrong was said. */
int findings_of_host(const char *ptsnapd, struct json_object **ret);
/* One more, before the others. */
void findings_put_first(struct json_object **findings, const char *level, const char *what,
			const char *text, const char *fix);
