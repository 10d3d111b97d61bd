/*
 * A directory of a test's own; flat, so removing it is one loop.
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

static int each(const char *dir, int remove)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		n++;
		if (remove)
			unlinkat(dirfd(d), e->d_name, 0);
	}
	closedir(d);
	return n;
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
