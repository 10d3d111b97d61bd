/*
 * Searches the headers of a ustar file with octal sizes.
 */
#include "tests/vm/bundle_member.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK	    512
#define NAME_SIZE   100
#define SIZE_OFFSET 124
#define SIZE_SIZE   12

int bundle_load(const char *path, const uint8_t **ret, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return -errno;
	*ret = p;
	*ret_size = (size_t)st.st_size;
	return 0;
}

int bundle_member(const uint8_t *bundle, size_t bundle_size, const char *name, const uint8_t **ret,
		  size_t *ret_size)
{
	for (size_t at = 0; at + BLOCK <= bundle_size && bundle[at] != 0;) {
		char text[SIZE_SIZE + 1] = "";
		size_t size;

		memcpy(text, bundle + at + SIZE_OFFSET, SIZE_SIZE);
		size = strtoull(text, NULL, 8);
		if (size > bundle_size - at - BLOCK)
			return -ENOENT;
		if (strncmp((const char *)bundle + at, name, NAME_SIZE) == 0) {
			*ret = bundle + at + BLOCK;
			*ret_size = size;
			return 0;
		}
		at += BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK;
	}
	return -ENOENT;
}
