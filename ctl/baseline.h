/*
 * What differs in a report from that of a baseline: for `info' and `snapshot'.
 */
#pragma once

#include <json-c/json.h>

#include "ctl/verb.h"

/* Shows the report in FD (borrowed), and at its end what differs from the report that OPERAND names
 * (an operand as of info). If there is no such report, ANYWAY shows the report in FD alone; the
 * result is not 0 in either case. PAGER as for deliver_info(). Returns an exit code. */
int baseline_deliver(struct settings *s, int fd, const char *operand, bool anyway, bool pager);
/* Reads the report that OPERAND names, which must show code, with room for LISTS as of
 * struct report_wanted (NULL: as it is); *ret is the caller's. Returns an exit code. */
int baseline_read(struct settings *s, const char *operand, const char *const *lists,
		  struct json_object **ret);
