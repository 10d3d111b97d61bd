/*
 * All that tracing depends on, part by part, each told as a finding with its fix. Called by --check
 * and for the method Check, there in a thread of its own: files of /proc and a slow state directory
 * may take their time.
 */
#include "daemon/check/check.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "daemon/check/check_private.h"

/* include/uapi/linux/landlock.h; the headers may be older than the kernel. */
#define LANDLOCK_VERSION 1u

static int call_landlock(void)
{
	long r = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION);

	return r < 0 ? -errno : (int)r;
}

static int call_free_bytes(const char *path, uint64_t *ret)
{
	struct statvfs st;
	CLEANUP_CLOSE int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0 || access(path, W_OK | X_OK) < 0)
		return -errno;
	if (statvfs(path, &st) < 0)
		return -errno;
	*ret = (uint64_t)st.f_bavail * st.f_frsize;
	return 0;
}

void check_paths_init(struct check_paths *ret)
{
	*ret = (struct check_paths){
		.proc = "/proc",
		.sys = "/sys",
		.dev = "/dev",
		.boot = "/boot",
		.root = "",
		.calls = {cpuid_host, call_landlock, call_free_bytes},
	};
}

int check_host(const struct check_paths *paths, const struct config *config, finding_fn fn,
	       void *userdata)
{
	struct check c = {
		.paths = paths,
		.config = config,
		.fn = fn,
		.userdata = userdata,
	};

	check_look(&c);
	check_pmu(&c);
	check_rights(&c);
	check_kernel(&c);
	check_events(&c);
	check_memory(&c);
	check_cpus(&c);
	check_clock(&c);
	check_storage(&c);
	free(c.cpuids);
	return c.failures;
}
