/*
 * Finds ptsnap-decode and our other programs. A ptsnapctl that runs from a build tree, before
 * anything is installed, uses the worker beside it. Called by cmd_decode.c and check_trace.c.
 */
#include "ctl/base/worker_path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"

#define INSTALLED  PTSNAP_LIBEXECDIR "/ptsnap-decode"
#define BUILD_TREE "../decoder/worker/ptsnap-decode"

/* PATH from the folder of the program that we are, or NULL when it is not there. */
static char *find_in_build_tree(const char *relative)
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
	if (asprintf(&path, "%s/%s", self, relative) < 0)
		return NULL;
	if (access(path, X_OK) == 0)
		return path;
	free(path);
	return NULL;
}

int program_path_find(const char *option, const char *installed, const char *build_tree, char **ret)
{
	char *found = NULL;

	if (!option && access(installed, X_OK) < 0)
		found = find_in_build_tree(build_tree);
	if (!found)
		found = strdup(option ? option : installed);
	if (!found)
		return -ENOMEM;
	*ret = found;
	return 0;
}

int worker_path_find(const char *option, char **ret)
{
	const char *environment = getenv("PTSNAP_DECODE");

	if (!option && environment && *environment)
		option = environment;
	return program_path_find(option, INSTALLED, BUILD_TREE, ret);
}
