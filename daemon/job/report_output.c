/*
 * A report's memory file. What a decoder fills counts to its own control group while that lives,
 * and then to ours, so its size is set and sealed before it is given away. Called by job_decode.c
 * and remake.c.
 */
#include "daemon/job/report_output.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/report.h"

/* What the decoder may write beyond the report's limit, for one that is too long to say so itself
 * (decoder/worker/main.c). */
#define SLACK (1u << 20)

int report_output_new(int *ret_fd)
{
	CLEANUP_CLOSE int fd = -EBADF;
	int r = memfd_new("ptsnap-report", (uint64_t)REPORT_DEFAULT_LIMIT + SLACK, &fd);

	if (r < 0)
		return r;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) < 0)
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* The decoder wrote through the same open file: the report ends where that stands. Behind that may
 * be anything. */
int report_output_end(int fd)
{
	off_t end = lseek(fd, 0, SEEK_CUR);

	if (end < 0)
		return -errno;
	/* It was told the limit. */
	if (end == 0 || (uint64_t)end > REPORT_DEFAULT_LIMIT)
		return end == 0 ? -ENODATA : -EFBIG;
	return ftruncate(fd, end) < 0 ? -errno : 0;
}
