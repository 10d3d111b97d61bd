/*
 * setfilter PID KIND:FIRST[-LAST]...: sets address filters on all events of process PID that take
 * some (perf_event_open(2), PERF_EVENT_IOC_SET_FILTER). FIRST and LAST are functions of the kernel,
 * from the one's first to the other's last byte; KIND: "filter" or "stop". The recorder itself sets
 * none. Runs in the guest as root. Prints the filter and how many events took it; status 1: none.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_event(const char *folder, const char *fd)
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

/* The addresses of the first byte of FIRST and behind the last one of LAST. The kernel's own
 * symbols are sorted by address. */
static bool find(const char *first, const char *last, unsigned long *from, unsigned long *to)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long address, end = 0;
	char type, name[512];

	*from = *to = 0;
	while (f && *to == 0 && fscanf(f, "%lx %c %511s%*[^\n]", &address, &type, name) == 3) {
		if (end != 0 && address != end)
			*to = address;
		if (*from == 0 && strcmp(name, first) == 0)
			*from = address;
		if (end == 0 && strcmp(name, last) == 0)
			end = address;
	}
	if (f)
		fclose(f);
	return *from != 0 && *to > *from;
}

/* Appends the filter that SPEC says to TEXT. */
static bool append(const char *spec, char *text, size_t size)
{
	char kind[16], first[128], last[128];
	const size_t used = strlen(text);
	unsigned long from, to;
	int n = sscanf(spec, "%15[a-z]:%127[^-]-%127s", kind, first, last);

	if (n < 2 || !find(first, n == 3 ? last : first, &from, &to))
		return false;
	snprintf(text + used, size - used, "%s 0x%lx/%lu ", kind, from, to - from);
	return true;
}

static int set_all(const char *pid, const char *filter)
{
	char folder[64];
	struct dirent *entry;
	int pidfd, n = 0, r = 0;
	DIR *dir;

	snprintf(folder, sizeof(folder), "/proc/%s/fd", pid);
	pidfd = (int)syscall(SYS_pidfd_open, atoi(pid), 0);
	dir = opendir(folder);
	if (pidfd < 0 || !dir) {
		perror(folder);
		return 0;
	}
	while (r >= 0 && (entry = readdir(dir)) != NULL) {
		r = is_event(folder, entry->d_name) ? set_filter(pidfd, atoi(entry->d_name), filter)
						    : 0;
		n += r > 0;
	}
	closedir(dir);
	close(pidfd);
	return r < 0 ? 0 : n;
}

int main(int argc, char **argv)
{
	char filter[1024] = "";
	int n;

	for (int i = 2; i < argc; i++) {
		if (!append(argv[i], filter, sizeof(filter))) {
			fprintf(stderr, "%s: no such functions\n", argv[i]);
			return 1;
		}
	}
	n = argc > 2 ? set_all(argv[1], filter) : 0;
	printf("%s: %d events\n", filter, n);
	return n == 0;
}
