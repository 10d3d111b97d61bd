/*
 * Finds ptsnap-decode. A ptsnapctl that runs from a build tree, before anything is installed, uses
 * the worker beside it. Called by cmd_decode.c.
 */
#include "ctl/worker_path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"

#define INSTALLED  PTSNAP_LIBEXECDIR "/ptsnap-decode"
#define BUILD_TREE "../decoder/worker/ptsnap-decode"

/* The build tree's worker, or NULL. */
static char *find_in_build_tree(void)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash, *path;

	if (n < 0)
		return NULL;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return NULL;
	*slash = '\0';
	if (asprintf(&path, "%s/%s", self, BUILD_TREE) < 0)
		return NULL;
	if (access(path, X_OK) == 0)
		return path;
	free(path);
	return NULL;
}

int worker_path_find(const char *option, char **ret)
{
	const char *environment = getenv("PTSNAP_DECODE");
	char *found = NULL;

	if (!option && environment && *environment)
		option = environment;
	if (!option && access(INSTALLED, X_OK) < 0)
		found = find_in_build_tree();
	if (!found)
		found = strdup(option ? option : INSTALLED);
	if (!found)
		return -ENOMEM;
	*ret = found;
	return 0;
}
