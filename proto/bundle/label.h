/*
 * What a snapshot was labelled with: a few KEY=VALUE, given by who asked for it. Checked by ctl
 * before they are sent and by the daemon when they come; kept in the entry, shown in lists, reports
 * and metrics.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define LABEL_MAX	 8u
#define LABEL_KEY_SIZE	 32u  /* with its NUL */
#define LABEL_VALUE_SIZE 128u /* so, too */

struct label {
	char key[LABEL_KEY_SIZE], value[LABEL_VALUE_SIZE];
};

/* A value: copied freely, owns nothing. Sorted by key, each key once. */
struct labels {
	struct label list[LABEL_MAX];
	size_t n;
};

/* What labels look like, for messages. */
#define LABEL_VALID                                                                               \
	"KEY=VALUE, KEY of up to 31 letters, digits and _, not beginning with a digit, VALUE of " \
	"up to 127 bytes without control characters; at most 8"

/* KEY = VALUE, which the caller knows to be UTF-8, joins L; one of the same key is replaced. 0,
 * -EINVAL: not as LABEL_VALID says, -E2BIG: there are LABEL_MAX already. */
int labels_add(struct labels *l, const char *key, const char *value);
/* TEXT is KEY=VALUE; results as of labels_add. */
int labels_parse(struct labels *l, const char *text);
/* NULL: there is none. */
const char *labels_get(const struct labels *l, const char *key);
