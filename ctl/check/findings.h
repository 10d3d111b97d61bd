/*
 * Findings (type Finding of io.ptsnap.recorder(7)) about this host, of the recorder or of
 * `ptsnapd --check'.
 */
#pragma once

#include <json-c/json.h>

#include "ctl/base/option.h"

/* Prints FINDINGS, an array, as text or JSON. Returns EXIT_CODE_OK, EXIT_CODE_NOT_TRACING if a
 * finding is a failure, or EXIT_CODE_FAILURE, after a message, if FINDINGS is no array. */
int findings_print(const struct settings *s, struct json_object *findings);
/* Runs `PTSNAPD --check' (NULL: the installed program, or that of the build tree). *ret is an
 * array, the caller's. Returns 0, or an exit code after a message. */
int findings_of_host(const char *ptsnapd, struct json_object **ret);
/* Puts a finding in front of the others. FIX may be NULL. */
void findings_put_first(struct json_object **findings, const char *level, const char *what,
			const char *text, const char *fix);
