/*
 * Kinds of file systems, from the mounts in /proc/PID/mountinfo.
 *
 * mountinfo lists only mounts that a process can see. A file on another mount is known by its
 * device, if process 1 or the recorder sees that mounted, or by being a memory file.
 */
#include "capture/proc/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "proto/base.h"

#define MOUNTINFO_MAX (8u << 20) /* bytes */

struct mount {
	uint64_t id;
	uint32_t maj, min;
	enum mounts_kind kind;
	bool overlay;
	char *path; /* NULL for local ones */
};

/* The mounts of one process. */
struct table {
	struct mount *list;
	size_t n, capacity;
	int fd; /* mountinfo, kept open to be told of changes; -EBADF */
	bool good;
};

struct mounts {
	const char *proc;
	struct table own, first, other;
	uint64_t own_ns, first_ns; /* inodes of mount namespaces; 0: unknown */
	uint64_t own_users;	   /* inode of the user namespace; 0: unknown */
	const struct table *now;   /* of the process that questions are about */
	uint32_t memfd_maj, memfd_min;
};

static enum mounts_kind kind_of(const char *type)
{
	static const char *const aliased[] = {"overlay", "btrfs", "bcachefs"};
	/* As prefixes: "fuse" also stands for "fuse.*" and "fuseblk", "nfs" for "nfs4". */
	static const char *const blocking[] = {
		"fuse",	  "nfs",    "9p",     "cifs",	  "smb",   "ceph",   "afs",  "coda",
		"autofs", "ncpfs",  "lustre", "orangefs", "pvfs2", "beegfs", "gpfs", "glusterfs",
		"vboxsf", "prl_fs", "panfs",  "wekafs",	  "ocfs2", "gfs2"};

	for (size_t i = 0; i < ARRAY_SIZE(aliased); i++)
		if (strcmp(type, aliased[i]) == 0)
			return MOUNTS_ALIASED;
	for (size_t i = 0; i < ARRAY_SIZE(blocking); i++)
		if (strncmp(type, blocking[i], strlen(blocking[i])) == 0)
			return MOUNTS_BLOCKING;
	return MOUNTS_LOCAL;
}

/* mountinfo writes blank, tab, newline and backslash as three octal digits. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++)
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	*to = '\0';
}

/* Whether PATH lies at or below a mount of T that can block. */
static bool path_blocks(const struct table *t, const char *path)
{
	for (size_t i = 0; i < t->n; i++) {
		const char *mount = t->list[i].path;
		size_t size = mount ? strlen(mount) : 0;

		if (t->list[i].kind != MOUNTS_BLOCKING || !mount)
			continue;
		if (strcmp(mount, "/") == 0 ||
		    (strncmp(path, mount, size) == 0 && (path[size] == '/' || path[size] == '\0')))
			return true;
	}
	return false;
}

static void table_clear(struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->list[i].path);
	t->n = 0;
	t->good = false;
}

static void table_done(struct table *t)
{
	table_clear(t);
	free(TAKE_PTR(t->list));
	t->fd = close_fd(t->fd);
}

/* Whether a layer of an overlay can block, which makes the overlay block:
 * "lowerdir=A:B,upperdir=C". The paths are those of the process that mounted it; relative ones tell
 * nothing. */
static bool layers_block(const struct table *t, const struct table *own, char *options)
{
	char *save = NULL, *rest;

	for (char *o = strtok_r(options, ",", &save); o; o = strtok_r(NULL, ",", &save)) {
		char *value = strchr(o, '='), *path;

		if (!value || !strstr(o, "dir"))
			continue;
		rest = value + 1;
		while ((path = strsep(&rest, ":")))
			if (*path == '/' && (path_blocks(t, path) || path_blocks(own, path)))
				return true;
	}
	return false;
}

/* Takes a line "36 35 98:0 /root /mount options [optional...] - type source options" (proc(5)) and
 * leaves out other lines. 0 or -ENOMEM. */
static int table_take_line(struct table *t, const struct table *own, char *line)
{
	char *dash = strstr(line, " - "), *path = NULL, *save = NULL, *options;
	unsigned long long id;
	unsigned maj, min;
	char type[64];
	struct mount *m;

	if (!dash || sscanf(line, "%llu %*u %u:%u", &id, &maj, &min) != 3 ||
	    sscanf(dash, " - %63s", type) != 1)
		return 0;
	options = strrchr(dash, ' ') + 1;
	*dash = '\0';
	for (int i = 0; i < 5; i++)
		path = strtok_r(i ? NULL : line, " ", &save);
	if (!path)
		return 0;
	if (ARRAY_RESERVE(t->list, t->capacity, t->n + 1) < 0)
		return -ENOMEM;
	m = &t->list[t->n++];
	*m = (struct mount){.id = id,
			    .maj = maj,
			    .min = min,
			    .kind = kind_of(type),
			    .overlay = strcmp(type, "overlay") == 0};
	unescape(options);
	if (m->overlay && layers_block(t, own, options))
		m->kind = MOUNTS_BLOCKING;
	unescape(path);
	if (m->kind != MOUNTS_LOCAL && !(m->path = strdup(path)))
		return -ENOMEM;
	return 0;
}

/* Reads the table from FD (borrowed). 0; -ESRCH: it is empty; -E2BIG: larger than any serious
 * table; -ENOMEM. */
static int table_read(struct table *t, const struct table *own, int fd)
{
	CLEANUP_FREE char *line = NULL;
	size_t size = 0, total = 0;
	int copy = dup(fd), r = 0;
	FILE *in = copy < 0 ? NULL : fdopen(copy, "r");
	ssize_t n;

	table_clear(t);
	if (!in) {
		close_fd(copy);
		return -ENOMEM;
	}
	rewind(in);
	while (r == 0 && (n = getline(&line, &size, in)) > 0) {
		line[strcspn(line, "\n")] = '\0';
		total += (size_t)n;
		r = total > MOUNTINFO_MAX ? -E2BIG : table_take_line(t, own, line);
	}
	fclose(in);
	t->good = r == 0 && total > 0;
	return r == 0 && total == 0 ? -ESRCH : r;
}

static int open_at(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

/* The inode of a namespace; NAME is "ns/mnt" or the like. 0: unknown. */
static uint64_t namespace_of(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, 0) == 0 ? st.st_ino : 0;
}

/* Reads T again if it has changed: POLLPRI comes once after a change. */
static int table_refresh(struct table *t, const struct table *own)
{
	struct pollfd p = {.fd = t->fd, .events = POLLPRI};

	if (t->fd < 0)
		return -ESRCH;
	if (poll(&p, 1, 0) > 0 && (p.revents & (POLLPRI | POLLERR)))
		t->good = false;
	return t->good ? 0 : table_read(t, own, t->fd);
}

/* Opens the mountinfo of PID for T. Returns the inode of its mount namespace, 0: unknown. */
static uint64_t watch(struct table *t, const char *proc, const char *pid)
{
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%s/%s", proc, pid);
	CLEANUP_CLOSE int dir = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return 0;
	t->fd = open_at(dir, "mountinfo");
	return t->fd >= 0 ? namespace_of(dir, "ns/mnt") : 0;
}

int mounts_new(const char *proc, struct mounts **ret)
{
	CLEANUP_CLOSE int memfd = memfd_create("ptsnap-device", MFD_CLOEXEC);
	struct mounts *m = calloc(1, sizeof(*m));
	char name[PATH_MAX];
	struct stat st;

	if (!m)
		return -ENOMEM;
	m->proc = proc;
	m->own.fd = m->first.fd = m->other.fd = -EBADF;
	m->own_ns = watch(&m->own, proc, "self");
	m->first_ns = watch(&m->first, proc, "1");
	snprintf(name, sizeof(name), "%s/self/ns/user", proc);
	m->own_users = namespace_of(AT_FDCWD, name);
	m->now = &m->other;
	/* Memory files are on a mount of the kernel's own that nobody sees. */
	if (memfd >= 0 && fstat(memfd, &st) == 0) {
		m->memfd_maj = major(st.st_dev);
		m->memfd_min = minor(st.st_dev);
	}
	*ret = m;
	return 0;
}

void mounts_free(struct mounts *m)
{
	if (!m)
		return;
	table_done(&m->own);
	table_done(&m->first);
	table_done(&m->other);
	free(m);
}

int mounts_look_self(struct mounts *m)
{
	m->now = &m->own;
	return table_refresh(&m->own, &m->own);
}

static enum mounts_kind device_in(const struct table *t, uint32_t maj, uint32_t min)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->list[i].maj == maj && t->list[i].min == min)
			return t->list[i].kind;
	return MOUNTS_UNKNOWN;
}

/* Users may, in a user namespace of their own, mount an overlay over FUSE layers and then unmount
 * the layers. After that nothing shows what the overlay touches. Overlays of other user namespaces
 * therefore count as blocking, unless the host sees them: then root mounted them. */
static void distrust_overlays(struct mounts *m, int dir)
{
	if (namespace_of(dir, "ns/user") == m->own_users)
		return;
	table_refresh(&m->first, &m->own);
	for (size_t i = 0; i < m->other.n; i++) {
		struct mount *at = &m->other.list[i];

		if (at->overlay && device_in(&m->own, at->maj, at->min) == MOUNTS_UNKNOWN &&
		    device_in(&m->first, at->maj, at->min) == MOUNTS_UNKNOWN)
			at->kind = MOUNTS_BLOCKING;
	}
}

int mounts_look(struct mounts *m, int dir)
{
	uint64_t ns = namespace_of(dir, "ns/mnt");
	int r;

	table_refresh(&m->own, &m->own);
	if (ns && ns == m->own_ns && m->own.good) {
		m->now = &m->own;
		return 0;
	}
	if (ns && ns == m->first_ns && table_refresh(&m->first, &m->own) == 0) {
		m->now = &m->first;
		return 0;
	}
	m->now = &m->other;
	table_clear(&m->other);
	CLEANUP_CLOSE int fd = open_at(dir, "mountinfo");
	r = fd < 0 ? fd : table_read(&m->other, &m->own, fd);
	if (r == 0)
		distrust_overlays(m, dir);
	return r;
}

enum mounts_kind mounts_device(struct mounts *m, uint32_t maj, uint32_t min)
{
	enum mounts_kind kind = device_in(m->now, maj, min);

	if (kind == MOUNTS_UNKNOWN && m->now != &m->own && table_refresh(&m->own, &m->own) == 0)
		kind = device_in(&m->own, maj, min);
	if (kind == MOUNTS_UNKNOWN && m->now != &m->first && table_refresh(&m->first, &m->own) == 0)
		kind = device_in(&m->first, maj, min);
	if (kind == MOUNTS_UNKNOWN && maj == m->memfd_maj && min == m->memfd_min)
		kind = MOUNTS_LOCAL;
	return kind;
}

enum mounts_kind mounts_fd(struct mounts *m, int fd, struct statx *ret)
{
	/* AT_STATX_DONT_SYNC: the kernel answers from memory, also for FUSE and NFS. */
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
		  STATX_TYPE | STATX_MODE | STATX_INO | STATX_MNT_ID, ret) < 0)
		return MOUNTS_UNKNOWN;
	for (size_t i = 0; (ret->stx_mask & STATX_MNT_ID) && i < m->now->n; i++)
		if (m->now->list[i].id == ret->stx_mnt_id)
			return m->now->list[i].kind;
	return mounts_device(m, ret->stx_dev_major, ret->stx_dev_minor);
}

enum mounts_kind mounts_path(struct mounts *m, const char *path)
{
	return path_blocks(m->now, path) ? MOUNTS_BLOCKING : MOUNTS_UNKNOWN;
}
