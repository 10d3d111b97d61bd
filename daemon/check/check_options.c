/*
 * Whether the files that options name can be used: what is wrong with them must be said at the
 * start, not at the first snapshot. Called by main.c and check_storage.c.
 */
#include "daemon/check/check.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"

static int check_executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return access(path, X_OK) < 0 ? -errno : 0;
}

int check_worker(const char *path, char *why, size_t why_size)
{
	int r = check_executable(path);

	if (r < 0)
		snprintf(why, why_size, "%s: cannot be run: %s; --worker=PATH names ptsnap-decode",
			 path, strerror(-r));
	return r;
}

static bool dir_is_empty(DIR *dir)
{
	for (const struct dirent *d = readdir(dir); d; d = readdir(dir))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			return false;
	return true;
}

static int make_empty_dir(const char *path)
{
	DIR *dir;
	bool empty;

	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return -errno;
	dir = opendir(path);
	if (!dir)
		return -errno;
	empty = dir_is_empty(dir);
	closedir(dir);
	if (!empty)
		return -ENOTEMPTY;
	return access(path, W_OK | X_OK) < 0 ? -errno : 0;
}

int check_empty_dir(const char *option, const char *path, char *why, size_t why_size)
{
	int r = make_empty_dir(path);

	if (r == -ENOTEMPTY)
		snprintf(why, why_size,
			 "%s=%s: holds files of an earlier run or others; valid: a directory that "
			 "is empty or not there",
			 option, path);
	else if (r < 0)
		snprintf(why, why_size, "%s=%s: cannot be written: %s", option, path, strerror(-r));
	return r;
}
