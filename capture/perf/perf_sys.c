/*
 * The system calls of perf events, one function each, so that tests can stand in for the kernel.
 */
#include "capture/perf/perf_event.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int result(long r)
{
	return r < 0 ? -errno : (int)r;
}

int perf_sys_open(const struct perf_event_attr *attr, uint32_t cpu)
{
	return result(syscall(SYS_perf_event_open, attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

int perf_sys_map(int fd, void *at, size_t size, int prot, uint64_t offset)
{
	void *p = mmap(at, size, prot, MAP_SHARED | MAP_FIXED, fd, (off_t)offset);

	return p == MAP_FAILED ? -errno : 0;
}

int perf_sys_ioctl(int fd, unsigned long request)
{
	return result(ioctl(fd, request, 0));
}

ssize_t perf_sys_read(int fd, void *to, size_t size)
{
	return result(read(fd, to, size));
}

int perf_sys_disable_mine(void)
{
	return result(prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0));
}
