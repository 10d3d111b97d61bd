/*
 * The facts about one process that no record carries. Every fact may be unknown: the process is
 * about to end, or may not be looked at.
 */
#include "capture/proc/procscan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/proc/number.h"
#include "capture/proc/procfile.h"
#include "proto/base.h"
#include "proto/bundle/manifest.h"

#define NSEC_PER_SEC 1000000000ull
/* Lines for some ten hierarchies, each with a path. */
#define CGROUP_MAX (16 * 1024)
#define STATUS_MAX 8192

void procinfo_done(struct procinfo *info)
{
	free(info->exe);
	free(info->cmdline);
	free(info->cgroup);
	*info = (struct procinfo){0};
}

/* NULL: unknown, which "" is, too; or no memory. */
static char *copy_known(const char *text, size_t size)
{
	return size > 0 ? strndup(text, size) : NULL;
}

/* Each argument ends with a NUL, which becomes a blank; NULs at the end are dropped. The process
 * may have written anything there. */
static char *read_cmdline(int dir, bool *ret_cut)
{
	char text[PROCSCAN_CMDLINE_MAX + 2];
	ssize_t n = procfile_read(dir, "cmdline", text, sizeof(text));

	while (n > 0 && text[n - 1] == '\0')
		n--;
	if (n <= 0)
		return NULL;
	*ret_cut = n > PROCSCAN_CMDLINE_MAX;
	n = MIN_OF(n, PROCSCAN_CMDLINE_MAX);
	for (ssize_t i = 0; i < n; i++)
		if (text[i] == '\0')
			text[i] = ' ';
	return copy_known(text, (size_t)n);
}

/* Ranks LINE, "HIERARCHY:CONTROLLERS:PATH" (cgroups(7)), whose PATH is at PATH, by how much it
 * tells. systemd keeps its units in "0::PATH" or, beside that or alone, in "N:name=systemd:PATH". A
 * process in the root "/" there may have a control group in a hierarchy that limits resources. */
static int cgroup_rank(const char *line, const char *path, size_t length)
{
	size_t before = (size_t)(path - line);

	if (length - before <= 1)
		return 1;
	if (strncmp(line, "0::", 3) == 0)
		return 4;
	return memmem(line, before, ":name=systemd:", 14) ? 3 : 2;
}

static char *read_cgroup(int dir)
{
	CLEANUP_FREE char *text = malloc(CGROUP_MAX);
	const char *found = NULL;
	int best = 0;

	if (!text || procfile_read(dir, "cgroup", text, CGROUP_MAX) <= 0)
		return NULL;
	for (const char *line = text; *line != '\0';) {
		size_t length = strcspn(line, "\n");
		const char *end = line + length, *path = memchr(line, ':', length);
		int rank = 0;

		if (path)
			path = memchr(path + 1, ':', (size_t)(end - path) - 1);
		if (path)
			rank = cgroup_rank(line, ++path, length);
		if (rank > best) {
			found = path;
			best = rank;
		}
		line = end + (*end == '\n');
	}
	return found ? copy_known(found, strcspn(found, "\n")) : NULL;
}

/* Whether the four ids behind KEY, "\nUid:" or "\nGid:" (real, effective, saved, file system), are
 * equal. The kernel escapes the name in the first line, so no name can begin such a line. */
static bool has_one(const char *status, const char *key)
{
	const char *at = strstr(status, key);
	uint64_t first = 0, other;

	if (!at)
		return false;
	at += strlen(key);
	for (int i = 0; i < 4; i++) {
		if (*at != '\t' || !number_parse(at + 1, 10, UINT32_MAX, "\t\n", &at, &other) ||
		    (i > 0 && other != first))
			return false;
		first = other;
	}
	return true;
}

/* Whether the program gives no rights to whoever executes it, and UID may read it: the kernel hides
 * processes with other programs from UID (fs/exec.c, would_dump). For a file on FUSE the kernel
 * answers from memory. */
static bool is_plain(int dir, uint64_t uid)
{
	struct statx st;

	if (statx(dir, "exe", AT_STATX_DONT_SYNC, STATX_MODE | STATX_UID, &st) < 0 ||
	    (st.stx_mode & (S_ISUID | S_ISGID)))
		return false;
	return st.stx_mode & (st.stx_uid == uid ? S_IRUSR : S_IROTH);
}

/* "NSpid:" has the numbers of a process, that in the innermost namespace last. */
static uint64_t take_ns_pid(const char *status)
{
	const char *at = strstr(status, "\nNSpid:\t");
	uint64_t pid = MANIFEST_ABSENT;

	for (at = at ? at + 7 : ""; *at == '\t';)
		if (!number_parse(at + 1, 10, INT32_MAX, "\t\n", &at, &pid))
			return MANIFEST_ABSENT;
	return pid;
}

static void read_status(int dir, struct procinfo *ret)
{
	char text[STATUS_MAX];
	const char *uid, *caps;
	uint64_t permitted;

	if (procfile_read(dir, "status", text, sizeof(text)) < 0)
		return;
	ret->ns_pid = take_ns_pid(text);
	uid = strstr(text, "\nUid:\t");
	if (!uid || !number_parse(uid + 6, 10, UINT32_MAX, "\t\n", NULL, &ret->uid))
		return;
	/* Permitted capabilities, those in its own user namespace. */
	caps = strstr(text, "\nCapPrm:\t");
	ret->uid_is_only = caps && has_one(text, "\nUid:") && has_one(text, "\nGid:") &&
			   number_parse(caps + 9, 16, UINT64_MAX, "\n", NULL, &permitted) &&
			   permitted == 0;
}

static struct procinfo unknown(uint32_t pid)
{
	return (struct procinfo){
		.pid = pid,
		.ppid = MANIFEST_ABSENT,
		.start_ns = MANIFEST_ABSENT,
		.uid = MANIFEST_ABSENT,
		.mount_ns = MANIFEST_ABSENT,
		.ns_pid = MANIFEST_ABSENT,
	};
}

static int read_facts(int dir, struct procinfo *ret)
{
	struct procfile_stat stat;
	char text[PATH_MAX];
	long hz = sysconf(_SC_CLK_TCK);
	ssize_t n;
	int r = procfile_stat(dir, &stat);

	if (r == -ESRCH)
		return r;
	if (r == 0) {
		ret->ppid = stat.ppid;
		ret->zombie = stat.zombie;
		if (hz <= 0 || __builtin_mul_overflow(stat.start_ticks, NSEC_PER_SEC / (uint64_t)hz,
						      &ret->start_ns))
			ret->start_ns = MANIFEST_ABSENT;
	}
	read_status(dir, ret);
	n = readlinkat(dir, "ns/mnt", text, sizeof(text) - 1); /* "mnt:[INODE]" */
	text[n > 0 ? n : 0] = '\0';
	if (strncmp(text, "mnt:[", 5) == 0)
		(void)number_parse(text + 5, 10, UINT64_MAX, "]", NULL, &ret->mount_ns);
	n = readlinkat(dir, "exe", text, sizeof(text));
	ret->exe = n > 0 ? copy_known(text, (size_t)n) : NULL;
	ret->program_is_plain = is_plain(dir, ret->uid);
	ret->cgroup = read_cgroup(dir);
	return 0;
}

int procscan_facts(const char *proc, uint32_t pid, struct procinfo *ret)
{
	CLEANUP_CLOSE int dir = -EBADF;
	int r = procfile_process(proc, pid, &dir);

	*ret = unknown(pid);
	return r < 0 ? r : read_facts(dir, ret);
}

int procscan_info(const char *proc, uint32_t pid, struct procinfo *ret)
{
	CLEANUP_CLOSE int dir = -EBADF;
	int r = procfile_process(proc, pid, &dir);

	*ret = unknown(pid);
	if (r == 0)
		r = read_facts(dir, ret);
	if (r == 0)
		ret->cmdline = read_cmdline(dir, &ret->cmdline_cut);
	return r;
}
