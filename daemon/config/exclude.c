/*
 * The lists of units and users to exclude. Made at start, and grown by reloads.
 */
#include "daemon/config/exclude.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "proto/bundle/manifest.h"

#define SEPARATORS    ", \t"
#define MAX_UNIT_NAME 256u

struct words {
	char **list; /* owned, with its texts */
	size_t n;
};

struct exclude {
	struct words units, users; /* as the configuration has them, each once */
	uint64_t *uids;		   /* that users ever had */
	size_t n_uids;
};

/* Adds the words of TEXT (NULL: none) that are new. 0 or -ENOMEM. */
static int add_words(struct words *w, const char *text)
{
	text = text ? text : "";
	for (text += strspn(text, SEPARATORS); *text; text += strspn(text, SEPARATORS)) {
		size_t size = strcspn(text, SEPARATORS), i = 0;

		while (i < w->n &&
		       (strlen(w->list[i]) != size || memcmp(w->list[i], text, size) != 0))
			i++;
		if (i == w->n) {
			if (ARRAY_EXTEND(w->list, w->n) < 0)
				return -ENOMEM;
			w->list[w->n] = strndup(text, size);
			if (!w->list[w->n])
				return -ENOMEM;
			w->n++;
		}
		text += size;
	}
	return 0;
}

static void words_done(struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->list[i]);
	free(w->list);
}

int exclude_add(struct exclude *x, const char *units, const char *users)
{
	int r = add_words(&x->units, units);

	return r == 0 ? add_words(&x->users, users) : r;
}

int exclude_new(const char *units, const char *users, struct exclude **ret)
{
	struct exclude *x = calloc(1, sizeof(*x));
	int r;

	*ret = NULL;
	if (!x)
		return -ENOMEM;
	r = exclude_add(x, units, users);
	if (r < 0 || x->units.n + x->users.n == 0) {
		exclude_free(x);
		return r;
	}
	r = exclude_look_up(x, NULL); /* finds numbers */
	if (r < 0) {
		exclude_free(x);
		return r;
	}
	*ret = x;
	return 0;
}

void exclude_free(struct exclude *x)
{
	if (!x)
		return;
	words_done(&x->units);
	words_done(&x->users);
	free(x->uids);
	free(x);
}

int exclude_look_up(struct exclude *x, const struct names *names)
{
	int result = 0;

	for (size_t i = 0; x && i < x->users.n; i++) {
		uint32_t uid;
		int r = names_find(names, NAMES_USER, x->users.list[i], &uid);

		if (r == -EAGAIN)
			result = EXCLUDE_UNKNOWN;
		if (r < 0 || exclude_has_uid(x, uid))
			continue;
		if (ARRAY_EXTEND(x->uids, x->n_uids) < 0)
			return -ENOMEM;
		x->uids[x->n_uids++] = uid;
	}
	return result;
}

size_t exclude_size(const struct exclude *x)
{
	return x ? x->units.n + x->users.n + x->n_uids : 0;
}

/* Each part of the path may be a unit: a slice contains services and scopes, and the service of a
 * user's manager contains more units. */
bool exclude_has_cgroup(const struct exclude *x, const char *cgroup)
{
	char unit[MAX_UNIT_NAME];

	if (!x || !cgroup)
		return false;
	for (cgroup += strspn(cgroup, "/"); *cgroup; cgroup += strspn(cgroup, "/")) {
		size_t size = strcspn(cgroup, "/");

		snprintf(unit, sizeof(unit), "%.*s", (int)MIN_OF(size, sizeof(unit)), cgroup);
		for (size_t i = 0; size < sizeof(unit) && i < x->units.n; i++)
			if (fnmatch(x->units.list[i], unit, 0) == 0)
				return true;
		cgroup += size;
	}
	return false;
}

bool exclude_has_uid(const struct exclude *x, uint64_t uid)
{
	for (size_t i = 0; x && uid != MANIFEST_ABSENT && i < x->n_uids; i++)
		if (x->uids[i] == uid)
			return true;
	return false;
}
