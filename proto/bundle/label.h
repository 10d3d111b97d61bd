/*
 * The labels of a snapshot: a few KEY=VALUE from the user who asked for it.
 *
 * ptsnapctl checks labels before it sends them, and ptsnapd checks those that it gets. Lists,
 * reports and metrics show them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define LABEL_MAX	 8u
#define LABEL_KEY_SIZE	 32u  /* with the NUL */
#define LABEL_VALUE_SIZE 128u /* with the NUL */

struct label {
	char key[LABEL_KEY_SIZE], value[LABEL_VALUE_SIZE];
};

/* Sorted by key, each key once. Owns nothing and may be copied. */
struct labels {
	struct label list[LABEL_MAX];
	size_t n;
};

/* The rules for labels, for messages. */
#define LABEL_VALID                                                                               \
	"KEY=VALUE, KEY of up to 31 letters, digits and _, not beginning with a digit, VALUE of " \
	"up to 127 bytes without control characters; at most 8"

/* Whether TEXT has no control characters. Values of labels and reasons of snapshots have none, so
 * that they are one line, and no client can make a list much longer than it says. */
bool label_is_plain(const char *text);
/* Adds KEY=VALUE to L, or replaces the value of KEY. The caller has checked that both are UTF-8. 0;
 * -EINVAL: against the rules above; -E2BIG: there are LABEL_MAX labels. */
int labels_add(struct labels *l, const char *key, const char *value);
/* Adds TEXT, which is KEY=VALUE; results as labels_add(). */
int labels_parse(struct labels *l, const char *text);
/* Returns the value of KEY, or NULL. */
const char *labels_get(const struct labels *l, const char *key);
