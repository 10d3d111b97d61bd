/*
 * Reads a file as a whole: a report to be shown (deliver.c), the list beside a bundle (stored.c).
 */
#include "ctl/base/whole_file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base.h"

/* One that becomes shorter meanwhile ends there. */
static int read_all(int fd, char *to, size_t size, size_t *ret_size)
{
	ssize_t n = 1;
	size_t done = 0;

	while (n > 0 && done < size) {
		n = pread(fd, to + done, size - done, (off_t)done);
		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
		n = n < 0 ? 1 : n;
	}
	*ret_size = done;
	return 0;
}

int whole_file_read(int fd, uint64_t max, char **ret, size_t *ret_size)
{
	CLEANUP_FREE char *text = NULL;
	struct stat st;
	size_t size = 0;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	if ((uint64_t)st.st_size > max)
		return -EFBIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	r = read_all(fd, text, (size_t)st.st_size, &size);
	if (r != 0)
		return r;
	*ret = TAKE_PTR(text);
	*ret_size = size;
	return 0;
}
