/*
 * A directory of a test's own, with at most one level of directories in it.
 */
#include "tests/unit/daemon/scratch_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

void scratch_dir_make(char ret[SCRATCH_DIR_SIZE])
{
	const char *tmp = getenv("TMPDIR");

	if (!tmp || strlen(tmp) > SCRATCH_DIR_SIZE - 20)
		tmp = "/tmp";
	snprintf(ret, SCRATCH_DIR_SIZE, "%s/ptsnap-XXXXXX", tmp);
	assert_non_null(mkdtemp(ret));
}

static int each_in(int fd, int remove)
{
	DIR *d = fdopendir(fd);
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		n++;
		if (remove && unlinkat(dirfd(d), e->d_name, 0) < 0) {
			int below = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY);

			if (below >= 0)
				each_in(below, 1);
			unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
		}
	}
	closedir(d);
	return n;
}

static int each(const char *dir, int remove)
{
	return each_in(open(dir, O_RDONLY | O_DIRECTORY), remove);
}

void scratch_dir_remove(const char *dir)
{
	each(dir, 1);
	rmdir(dir);
}

int scratch_dir_count(const char *dir)
{
	return each(dir, 0);
}
