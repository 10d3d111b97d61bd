/*
 * setfilter PID FILTER: sets an address filter on all events of process PID that take one
 * (perf_event_open(2), PERF_EVENT_IOC_SET_FILTER). The recorder itself sets none. Runs in the guest
 * as root. Prints how many events took it; status 1: none.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_event(const char *folder, const char *fd)
{
	char path[4096], target[64] = "";

	snprintf(path, sizeof(path), "%s/%s", folder, fd);
	return readlink(path, target, sizeof(target) - 1) > 0 &&
	       strcmp(target, "anon_inode:[perf_event]") == 0;
}

/* 1: the event took the filter, 0: it takes none, -1: complained. */
static int set_filter(int pidfd, int number, const char *filter)
{
	int fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0), r;

	if (fd < 0) {
		perror("pidfd_getfd");
		return -1;
	}
	r = ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) == 0 ? 1 : 0;
	if (r == 0 && errno != EINVAL) {
		perror(filter);
		r = -1;
	}
	close(fd);
	return r;
}

int main(int argc, char **argv)
{
	char folder[64];
	struct dirent *entry;
	int pidfd, n = 0;
	DIR *dir;

	if (argc != 3)
		return 2;
	snprintf(folder, sizeof(folder), "/proc/%s/fd", argv[1]);
	pidfd = (int)syscall(SYS_pidfd_open, atoi(argv[1]), 0);
	dir = opendir(folder);
	if (pidfd < 0 || !dir) {
		perror(folder);
		return 2;
	}
	while ((entry = readdir(dir)) != NULL) {
		int r = is_event(folder, entry->d_name)
				? set_filter(pidfd, atoi(entry->d_name), argv[2])
				: 0;

		if (r < 0)
			return 1;
		n += r;
	}
	printf("%d events\n", n);
	closedir(dir);
	close(pidfd);
	return n == 0;
}
