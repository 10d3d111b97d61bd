/*
 * Makes fake /proc and /sys below $TMPDIR.
 */
#include "tests/unit/capture/tree.h"

#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

char *tree_new(void)
{
	const char *base = getenv("TMPDIR");
	char path[PATH_MAX];
	char *root;

	snprintf(path, sizeof(path), "%s/ptsnap-tree-XXXXXX", base != NULL ? base : "/tmp");
	assert_non_null(mkdtemp(path));
	root = strdup(path);
	assert_non_null(root);
	return root;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void tree_free(char *root)
{
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(root);
}

static void full_path(const char *root, const char *path, char *ret)
{
	int n = snprintf(ret, PATH_MAX, "%s/%s", root, path);

	assert_in_range(n, 1, PATH_MAX - 1);
	for (char *p = ret + strlen(root) + 1; *p != '\0'; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(ret, 0777);
		*p = '/';
	}
}

void tree_write_bytes(const char *root, const char *path, const void *data, size_t size)
{
	char full[PATH_MAX];
	FILE *file;

	full_path(root, path, full);
	file = fopen(full, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

void tree_write(const char *root, const char *path, const char *text)
{
	tree_write_bytes(root, path, text, strlen(text));
}

void tree_symlink(const char *root, const char *path, const char *target)
{
	char full[PATH_MAX];

	full_path(root, path, full);
	assert_int_equal(symlink(target, full), 0);
}
