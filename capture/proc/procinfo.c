/*
 * The facts about one process that no record carries. Every one but its existence may be unknown:
 * the process is going away, or it is not ours to see. Called by the recorder's job for the
 * processes of a snapshot.
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

/* NULL when it cannot be read; "" is unknown as well. */
static char *copy_known(const char *text, size_t size)
{
	return size > 0 ? strndup(text, size) : NULL;
}

static char *read_exe(int dir)
{
	char path[PATH_MAX];
	ssize_t n = readlinkat(dir, "exe", path, sizeof(path));

	return n > 0 ? copy_known(path, (size_t)n) : NULL;
}

/* Arguments end in NUL each, and a process may write what it likes there; the NULs at the end are
 * no arguments. */
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

/* "HIERARCHY:CONTROLLERS:PATH" up to the end of the line; NULL: no such line. */
static const char *cgroup_path(const char *line, size_t length)
{
	const char *first = memchr(line, ':', length);

	if (first == NULL)
		return NULL;
	length -= (size_t)(first + 1 - line);
	return memchr(first + 1, ':', length);
}

/* How much a line of a hierarchy tells: cgroups(7). That in which systemd keeps its units is
 * "0::PATH" or, beside it or alone, "N:name=systemd:PATH"; who has no control group of his own
 * there, "/", may have one where resources are limited. */
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

	if (text == NULL || procfile_read(dir, "cgroup", text, CGROUP_MAX) <= 0)
		return NULL;
	for (const char *line = text; *line != '\0';) {
		size_t length = strcspn(line, "\n");
		const char *colon = cgroup_path(line, length);
		int rank = colon ? cgroup_rank(line, colon + 1, length) : 0;

		if (rank > best) {
			found = colon + 1;
			best = rank;
		}
		line += length + (line[length] == '\n');
	}
	return found != NULL ? copy_known(found, strcspn(found, "\n")) : NULL;
}

/* "Uid:" real, effective, saved, file system. The name in the first line is escaped by the kernel
 * and cannot begin another line. */
static uint64_t take_uid(const char *status)
{
	const char *line = strstr(status, "\nUid:\t");
	uint64_t uid;

	if (line == NULL || !number_parse(line + 6, 10, UINT32_MAX, "\t\n", NULL, &uid))
		return MANIFEST_ABSENT;
	return uid;
}

/* Are all four that stand behind KEY, "\nUid:" or "\nGid:", the same? */
static bool has_one(const char *status, const char *key)
{
	const char *at = strstr(status, key);
	uint64_t first = 0, other;

	if (at == NULL)
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

/* Is it that user alone, of no group that it may leave, and without a right to change that
 * ("CapPrm:", of its own user namespace)? */
static bool has_only_uid(const char *status)
{
	const char *caps = strstr(status, "\nCapPrm:\t");
	uint64_t permitted;

	if (caps == NULL || !has_one(status, "\nUid:") || !has_one(status, "\nGid:"))
		return false;
	return number_parse(caps + 9, 16, UINT64_MAX, "\n", NULL, &permitted) && permitted == 0;
}

/* Nobody's rights come with it, and UID may read it: of others the kernel shows him nothing either
 * (fs/exec.c, would_dump). Of a file system that is somebody's program (FUSE) the kernel tells what
 * it remembers. */
static bool is_plain(int dir, uint64_t uid)
{
	struct statx st;

	if (statx(dir, "exe", AT_STATX_DONT_SYNC, STATX_MODE | STATX_UID, &st) < 0 ||
	    (st.stx_mode & (S_ISUID | S_ISGID)))
		return false;
	return st.stx_mode & (st.stx_uid == uid ? S_IRUSR : S_IROTH);
}

/* "NSpid:" its numbers, the innermost namespace's last. */
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

	if (procfile_read(dir, "status", text, sizeof(text)) < 0)
		return;
	ret->uid = take_uid(text);
	ret->uid_is_only = ret->uid != MANIFEST_ABSENT && has_only_uid(text);
	ret->ns_pid = take_ns_pid(text);
}

/* "mnt:[INODE]" */
static uint64_t read_mount_ns(int dir)
{
	char text[64];
	ssize_t n = readlinkat(dir, "ns/mnt", text, sizeof(text) - 1);
	uint64_t ino;

	text[n > 0 ? n : 0] = '\0';
	if (strncmp(text, "mnt:[", 5) != 0 ||
	    !number_parse(text + 5, 10, UINT64_MAX, "]", NULL, &ino))
		return MANIFEST_ABSENT;
	return ino;
}

static uint64_t ticks_to_ns(uint64_t ticks)
{
	long hz = sysconf(_SC_CLK_TCK);
	uint64_t ns;

	if (hz <= 0 || __builtin_mul_overflow(ticks, NSEC_PER_SEC / (uint64_t)hz, &ns))
		return MANIFEST_ABSENT;
	return ns;
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
	int r = procfile_stat(dir, &stat);

	if (r == -ESRCH)
		return r;
	if (r == 0) {
		ret->ppid = stat.ppid;
		ret->start_ns = ticks_to_ns(stat.start_ticks);
		ret->zombie = stat.zombie;
	}
	read_status(dir, ret);
	ret->mount_ns = read_mount_ns(dir);
	ret->exe = read_exe(dir);
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
