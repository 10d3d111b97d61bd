/*
 * Lists of units and users -> is this process excluded? Made at the start, asked by procs.c about
 * each process whose facts were read.
 */
#include "daemon/exclude.h"

#include <errno.h>
#include <fnmatch.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "proto/base.h"
#include "proto/manifest.h"

#define SEPARATORS    ", \t"
#define PASSWD_BUFFER (1u << 16)
#define MAX_UNIT_NAME 256u

struct exclude {
	char *text; /* owned; what the globs point into */
	char **units;
	size_t n_units;
	uint64_t *uids;
	size_t n_uids;
};

static size_t count_words(const char *text)
{
	size_t n = 0;

	for (text += strspn(text, SEPARATORS); *text; text += strspn(text, SEPARATORS)) {
		text += strcspn(text, SEPARATORS);
		n++;
	}
	return n;
}

/* MANIFEST_ABSENT: this host has no such user. */
static uint64_t find_user(const char *name)
{
	CLEANUP_FREE char *buffer = malloc(PASSWD_BUFFER);
	struct passwd user, *found = NULL;
	unsigned long uid;

	if (name[strspn(name, "0123456789")] == '\0') {
		uid = strtoul(name, NULL, 10);
		return strlen(name) <= 10 && uid < UINT32_MAX ? uid : MANIFEST_ABSENT;
	}
	if (!buffer || getpwnam_r(name, &user, buffer, PASSWD_BUFFER, &found) != 0 || !found)
		return MANIFEST_ABSENT;
	return found->pw_uid;
}

static int take_units(struct exclude *x, const char *units)
{
	char *save = NULL;

	x->text = strdup(units);
	x->units = calloc(count_words(units) + 1, sizeof(*x->units));
	if (!x->text || !x->units)
		return -ENOMEM;
	for (char *word = strtok_r(x->text, SEPARATORS, &save); word;
	     word = strtok_r(NULL, SEPARATORS, &save))
		x->units[x->n_units++] = word;
	return 0;
}

static int take_users(struct exclude *x, const char *users)
{
	CLEANUP_FREE char *text = strdup(users);
	char *save = NULL;

	x->uids = calloc(count_words(users) + 1, sizeof(*x->uids));
	if (!text || !x->uids)
		return -ENOMEM;
	for (char *word = strtok_r(text, SEPARATORS, &save); word;
	     word = strtok_r(NULL, SEPARATORS, &save)) {
		uint64_t uid = find_user(word);

		if (uid == MANIFEST_ABSENT)
			log_warning("ExcludeUsers=%s: this host has no such user", word);
		else
			x->uids[x->n_uids++] = uid;
	}
	return 0;
}

int exclude_new(const char *units, const char *users, struct exclude **ret)
{
	struct exclude *x;
	int r;

	*ret = NULL;
	units = units ? units : "";
	users = users ? users : "";
	if (count_words(units) + count_words(users) == 0)
		return 0;
	x = calloc(1, sizeof(*x));
	if (!x)
		return -ENOMEM;
	r = take_units(x, units);
	if (r == 0)
		r = take_users(x, users);
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
	free(x->text);
	free(x->units);
	free(x->uids);
	free(x);
}

static bool has_unit(const struct exclude *x, const char *name, size_t size)
{
	char text[MAX_UNIT_NAME];

	if (size == 0 || size >= sizeof(text))
		return false;
	memcpy(text, name, size);
	text[size] = '\0';
	for (size_t i = 0; i < x->n_units; i++)
		if (fnmatch(x->units[i], text, 0) == 0)
			return true;
	return false;
}

/* Each part of the path may be a unit: slices have services and scopes in them, and a user's
 * manager is a service that has more. */
bool exclude_has_cgroup(const struct exclude *x, const char *cgroup)
{
	if (!x || !cgroup)
		return false;
	for (cgroup += strspn(cgroup, "/"); *cgroup; cgroup += strspn(cgroup, "/")) {
		size_t size = strcspn(cgroup, "/");

		if (has_unit(x, cgroup, size))
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
