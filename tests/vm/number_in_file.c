/*
 * Reads a small text file once, and searches it.
 */
#include "tests/vm/number_in_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t number_in_file(const char *path, const char *key)
{
	char text[2048];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *found;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	found = strstr(text, key);
	return found == NULL ? 0 : strtoull(found + strlen(key), NULL, 0);
}
