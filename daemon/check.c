/*
 * Whether this host has Intel PT, and when it has not, whose fault that is. Called once at the
 * start to resolve --source=auto. And whether the files that options name can be used: what is
 * wrong with them must be said now, not at the first snapshot.
 */
#include "daemon/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"

struct check_cpu {
	bool intel, pt, virtual;
};

static bool flags_hold(const char *line, const char *flag)
{
	size_t n = strlen(flag);

	for (const char *at = line; (at = strstr(at, flag)); at += n)
		if (at > line && at[-1] == ' ' && (at[n] == ' ' || at[n] == '\n' || !at[n]))
			return true;
	return false;
}

static void check_read_cpu(const char *cpuinfo, struct check_cpu *ret)
{
	FILE *f = fopen(cpuinfo, "re");
	CLEANUP_FREE char *line = NULL;
	size_t size = 0;

	*ret = (struct check_cpu){0};
	if (!f)
		return;
	while (getline(&line, &size, f) > 1) {
		if (strncmp(line, "vendor_id", 9) == 0)
			ret->intel = strstr(line, "GenuineIntel");
		if (strncmp(line, "flags", 5) != 0)
			continue;
		ret->pt = flags_hold(line, "intel_pt");
		ret->virtual = flags_hold(line, "hypervisor");
	}
	fclose(f);
}

int check_intel_pt(const char *sysfs, const char *cpuinfo, char *why, size_t why_size)
{
	char path[PATH_MAX];
	struct check_cpu cpu;
	const char *reason;

	snprintf(path, sizeof(path), "%s/intel_pt/type", sysfs);
	if (access(path, F_OK) == 0)
		return 0;
	check_read_cpu(cpuinfo, &cpu);
	if (cpu.virtual)
		reason =
			"this virtual machine is not given Intel PT (its host would have to pass it "
			"through: KVM pt_mode=1)";
	else if (cpu.pt)
		reason =
			"the CPU has Intel PT but the kernel offers no intel_pt PMU (PT off in the "
			"firmware, or in use by a hypervisor)";
	else if (cpu.intel)
		reason = "this CPU has no Intel PT (Broadwell and newer have it)";
	else
		reason = "this is not an Intel CPU";
	snprintf(why, why_size, "no intel_pt PMU: %s", reason);
	return -ENODEV;
}

static int check_executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return access(path, X_OK) < 0 ? -errno : 0;
}

int check_worker(const char *path, char *why, size_t why_size)
{
	int r = check_executable(path);

	if (r < 0)
		snprintf(why, why_size, "%s: cannot be run: %s; --worker=PATH names ptsnap-decode",
			 path, strerror(-r));
	return r;
}

static bool dir_is_empty(DIR *dir)
{
	for (const struct dirent *d = readdir(dir); d; d = readdir(dir))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			return false;
	return true;
}

static int make_empty_dir(const char *path)
{
	DIR *dir;
	bool empty;

	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return -errno;
	dir = opendir(path);
	if (!dir)
		return -errno;
	empty = dir_is_empty(dir);
	closedir(dir);
	if (!empty)
		return -ENOTEMPTY;
	return access(path, W_OK | X_OK) < 0 ? -errno : 0;
}

int check_empty_dir(const char *option, const char *path, char *why, size_t why_size)
{
	int r = make_empty_dir(path);

	if (r == -ENOTEMPTY)
		snprintf(why, why_size,
			 "%s=%s: holds files of an earlier run or others; valid: a directory that "
			 "is empty or not there",
			 option, path);
	else if (r < 0)
		snprintf(why, why_size, "%s=%s: cannot be written: %s", option, path, strerror(-r));
	return r;
}
