/*
 * Helpers that find the programs that tests start, and count descriptors left open.
 */
#pragma once

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Puts the path of program NAME, in the directory of the running program, into RET (PATH_MAX
 * bytes). False: no such program. */
static inline bool find_beside(const char *name, char *ret)
{
	ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);
	char *slash;

	if (n <= 0)
		return false;
	ret[n] = '\0';
	slash = strrchr(ret, '/') + 1;
	snprintf(slash, (size_t)(ret + PATH_MAX - slash), "%s", name);
	return access(ret, X_OK) == 0;
}

/* The number of open descriptors. */
static inline int count_open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}
