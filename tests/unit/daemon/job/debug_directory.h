/*
 * A directory with a separate file of symbols, for the tests of jobs and of remakes.
 */
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base.h"

/* A directory with one file of symbols: of the build id that is four times 0xab. */
static inline void make_debug_directory(char dir[static 64])
{
	char path[128];
	int fd;

	snprintf(dir, 64, "/tmp/ptsnap-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/.build-id", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/.build-id/ab", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/.build-id/ab/ababab.debug", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "names", 5), 5);
	close(fd);
}

static inline void remove_debug_directory(const char *dir)
{
	static const char *const parts[] = {"/.build-id/ab/ababab.debug", "/.build-id/ab",
					    "/.build-id", ""};
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		snprintf(path, sizeof(path), "%s%s", dir, parts[i]);
		assert_int_equal(remove(path), 0);
	}
}
