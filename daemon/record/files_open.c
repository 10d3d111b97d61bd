/*
 * Opens the file that a MMAP2 record means.
 *
 * The mapping is asked first (procmaps.h): it says which file it is and on which device. A file on
 * a file system that another user or a network can block is never touched, not even for its build
 * id or its attributes: an open there may never return. Then /proc/PID/map_files leads to the
 * mapped file itself, whatever became of its name.
 *
 * If the mapping is gone, the path in the record is only a hint, which the process may have chosen.
 * The path is looked up in the process's own root, then in ours, then in that of process 1, without
 * following symlinks (the kernel's names of files have none) and without asking a file system for a
 * name that the kernel does not remember. A file found by path counts only if it is regular and has
 * the record's device and inode, or its build id as the kernel reads it. Before Linux 6.11 the
 * kernel cannot read it, and the file is taken unseen: the decoder compares, in its sandbox.
 *
 * Every file is first got with O_PATH, which opens nothing, and is opened when it is known where it
 * is. A mount between the question and the answer therefore gains nothing.
 */
#include "daemon/record/files_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <linux/fs.h>

#include "capture/proc/mounts.h"
#include "capture/proc/procfile.h"
#include "capture/proc/procmaps.h"
#include "proto/base.h"

#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
#define WHY_BLOCKING \
	"it lies on a FUSE or network file system, or another user's overlay, which is not touched"
#define WHY_NO_MOUNT "it lies on a file system that is mounted nowhere, which is not touched"
/* Reasons that begin with it mean that process and file were gone (struct files_entry). */
#define GONE		  "gone:"
#define WHY_OTHER_FILE	  GONE " its path names another file by now"
#define WHY_NOT_REGULAR	  "it is not a regular file"
#define WHY_NOT_PERMITTED "the recorder was not permitted to open it"
#define WHY_TOO_MANY	  "the recorder has no more file descriptors"
#define WHY_NOT_CACHED	  GONE " its path is not at hand, and to search for it could block"
/* systemd's RestrictSUIDSGID=yes, and profiles of containers, make openat2(2) fail like that. */
#define WHY_NO_LOOKUP "its process was gone, and openat2(2) is denied to the recorder, or unknown"
#define WHY_GONE      GONE " process and file were gone before it could be opened"

/* A record's file, as far as it is known before it is opened. */
struct look {
	struct mounts *mounts; /* borrowed */
	const char *proc;      /* borrowed */
	const struct perfrecord *record;
	int dir;     /* /proc/PID, of this process even if its pid is reused; -errno: gone */
	bool mapped; /* MAP is still the record's mapping, and may be touched */
	struct mapquery map;
	struct opentask_file file; /* opened to look at it; fd -EBADF: none, or taken */
	const char *missing;	   /* the best reason so far; static text */
};

bool opentask_by_build_id(const struct perfrecord *r)
{
	return (r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) && r->u.mmap2.build_id_size > 0;
}

/* Notes why a way to the file failed, and returns R. The first reason stands, as later ways are
 * worse ones; only refuse() replaces it. */
static int fail(struct look *look, int r)
{
	if (look->missing)
		return r;
	if (r == -EACCES || r == -EPERM)
		look->missing = WHY_NOT_PERMITTED;
	else if (r == -EMFILE || r == -ENFILE)
		look->missing = WHY_TOO_MANY;
	else if (r == -EAGAIN)
		look->missing = WHY_NOT_CACHED;
	else if (r == -ENOSYS)
		look->missing = WHY_NO_LOOKUP;
	return r;
}

/* Sets the reason WHY. Returns -ESTALE. */
static int refuse(struct look *look, const char *why)
{
	look->missing = why;
	return -ESTALE;
}

static bool same_build_id(const struct perfrecord *r, const uint8_t *id, int size)
{
	return size == r->u.mmap2.build_id_size &&
	       memcmp(id, r->u.mmap2.build_id, (size_t)size) == 0;
}

/* Whether inode INO of device MAJ:MIN is the file of a record with device and inode. On overlayfs
 * the record has the device of the overlay or of the layer, depending on the kernel, and stat(2)
 * either of them or a third one; on btrfs stat(2) has that of the subvolume. The inode's number is
 * the same. */
static bool same_inode(const struct perfrecord *r, enum mounts_kind kind, uint32_t maj,
		       uint32_t min, uint64_t ino)
{
	return r->u.mmap2.ino == ino &&
	       (kind == MOUNTS_ALIASED || (r->u.mmap2.maj == maj && r->u.mmap2.min == min));
}

/* Whether the mapping looks like the record's; for kernels that do not read build ids. From
 * Linux 6.7 until it was fixed in 6.18, the record of an overlay's file has the path within the
 * layer (kernel/events/core.c, perf_event_mmap_event): for such files the offset is compared. */
static bool is_alike(const struct look *look, enum mounts_kind kind)
{
	const struct perfrecord *r = look->record;
	const struct mapquery *map = &look->map;

	return strcmp(map->path, r->u.mmap2.filename) == 0 ||
	       (kind == MOUNTS_ALIASED &&
		map->pgoff + (r->u.mmap2.addr - map->begin) == r->u.mmap2.pgoff);
}

/* 0 if a file on a mount of KIND may be touched, else -errno. A device that is not mounted where
 * the process sees it (on older kernels, that of an overlay's layer) is judged by the path. */
static int check_kind(struct look *look, enum mounts_kind kind, const char *path)
{
	if (kind == MOUNTS_UNKNOWN)
		kind = mounts_path(look->mounts, path);
	return kind == MOUNTS_BLOCKING ? refuse(look, WHY_BLOCKING) : 0;
}

/* Opens PATH, a descriptor with O_PATH (taken over) or -errno, if that cannot block. *ret_kind is
 * where the file is. */
static int open_checked(struct look *look, int path, enum mounts_kind *ret_kind,
			struct opentask_file *ret)
{
	CLEANUP_CLOSE int at = path;
	struct statx stx = {0};
	struct stat st;
	char name[64];

	if (at < 0)
		return fail(look, at);
	*ret_kind = mounts_fd(look->mounts, at, &stx);
	if (*ret_kind == MOUNTS_BLOCKING)
		return refuse(look, WHY_BLOCKING);
	if (*ret_kind == MOUNTS_UNKNOWN)
		return refuse(look, WHY_NO_MOUNT);
	if (!S_ISREG(stx.stx_mode))
		return refuse(look, WHY_NOT_REGULAR);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", at);
	ret->fd = open(name, OPEN_FLAGS);
	if (ret->fd < 0)
		return fail(look, -errno);
	if (fstat(ret->fd, &st) < 0) {
		ret->fd = close_fd(ret->fd);
		return -ESTALE;
	}
	ret->size = (uint64_t)st.st_size;
	ret->maj = major(st.st_dev);
	ret->min = minor(st.st_dev);
	ret->ino = st.st_ino;
	return 0;
}

/* --- By mapping --- */

/* Opens the mapped inode itself: no path is walked. */
static int open_mapped(struct look *look, struct opentask_file *ret)
{
	enum mounts_kind kind;
	char name[64];
	int path, r;

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, look->map.begin,
		 look->map.end);
	path = openat(look->dir, name, O_PATH | O_CLOEXEC);
	if (path < 0)
		return fail(look, -errno);
	r = mounts_look(look->mounts, look->dir);
	if (r < 0) {
		close(path);
		return r;
	}
	return open_checked(look, path, &kind, ret);
}

/* Whether the mapping at the record's address is still the record's. The build id is read from the
 * opened file, as the mapping may change at any moment. */
static bool is_same_mapping(struct look *look, enum mounts_kind kind)
{
	const struct perfrecord *r = look->record;
	const struct mapquery *map = &look->map;
	uint8_t id[MAPQUERY_BUILD_ID];
	int size;

	if (!opentask_by_build_id(r))
		return same_inode(r, kind, map->maj, map->min, map->ino);
	if (open_mapped(look, &look->file) < 0)
		return false;
	size = mapquery_file_build_id(look->file.fd, id);
	if (size == -EOPNOTSUPP)
		return is_alike(look, kind);
	return size > 0 && same_build_id(r, id, size);
}

/* Asks the process for its mapping. RECORD must live as long as RET. */
static void look_at(struct mounts *mounts, const char *proc, const struct perfrecord *record,
		    struct look *ret)
{
	enum mounts_kind kind;
	int r;

	ret->mounts = mounts;
	ret->proc = proc;
	ret->record = record;
	ret->mapped = false;
	ret->missing = NULL;
	ret->dir = -EBADF;
	ret->file.fd = -EBADF;
	r = procfile_process(proc, record->u.mmap2.pid, &ret->dir);
	if (r < 0)
		ret->dir = r;
	if (r == 0)
		r = fail(ret, mounts_look(mounts, ret->dir));
	if (r == 0)
		r = mapquery_at(ret->dir, record->u.mmap2.addr, &ret->map);
	if (r < 0)
		return;
	kind = mounts_device(mounts, ret->map.maj, ret->map.min);
	if (check_kind(ret, kind, ret->map.path) == 0)
		ret->mapped = is_same_mapping(ret, kind);
	/* A reason of another mapping, at another path, says nothing of this file. */
	if (!ret->mapped && strcmp(ret->map.path, record->u.mmap2.filename) != 0)
		ret->missing = NULL;
}

static bool same_map(const struct mapquery *a, const struct mapquery *b)
{
	return a->begin == b->begin && a->end == b->end && a->maj == b->maj && a->min == b->min &&
	       a->ino == b->ino && strcmp(a->path, b->path) == 0;
}

/* Opens the mapped file. It is the right one if the mapping is the same before and after. */
static int try_mapping(struct look *look, struct opentask_file *ret)
{
	struct mapquery after;
	int r = 0;

	if (look->file.fd >= 0)
		*ret = look->file;
	else
		r = open_mapped(look, ret);
	look->file.fd = -EBADF;
	if (r < 0)
		return r;
	if (mapquery_at(look->dir, look->map.begin, &after) < 0 || !same_map(&look->map, &after)) {
		ret->fd = close_fd(ret->fd);
		return -ESTALE;
	}
	ret->maj = look->map.maj;
	ret->min = look->map.min;
	ret->ino = look->map.ino;
	return 0;
}

/* --- By path --- */

/* Whether FD is of the record's generation: an inode's number may have been reused. Not every file
 * system has generations. */
static bool same_generation(const struct perfrecord *r, int fd)
{
	/* The request is defined with long, but the kernel writes an int (fs/ext4/ioctl.c). */
	uint64_t version = 0;

	if (r->u.mmap2.ino_generation == 0 || ioctl(fd, FS_IOC_GETVERSION, &version) < 0)
		return true;
	return (uint32_t)version == (uint32_t)r->u.mmap2.ino_generation;
}

static bool is_meant(const struct perfrecord *r, enum mounts_kind kind,
		     const struct opentask_file *file)
{
	uint8_t id[MAPQUERY_BUILD_ID];
	int size;

	if (!opentask_by_build_id(r))
		return same_inode(r, kind, file->maj, file->min, file->ino) &&
		       same_generation(r, file->fd);
	size = mapquery_file_build_id(file->fd, id);
	/* A file whose build id the kernel cannot find is not the one; see the top of the file for
	 * kernels that cannot look. */
	return size == -EOPNOTSUPP || same_build_id(r, id, size);
}

/* Looks the path up in the root of process DIR, whose mounts have been read. */
static int try_path(struct look *look, int dir, struct opentask_file *ret)
{
	const char *path = look->record->u.mmap2.filename;
	enum mounts_kind kind;
	int r;

	if (mounts_path(look->mounts, path) == MOUNTS_BLOCKING)
		return refuse(look, WHY_BLOCKING);
	r = open_checked(look, procfile_beneath(dir, path, 0), &kind, ret);
	if (r < 0)
		return r;
	if (!is_meant(look->record, kind, ret)) {
		ret->fd = close_fd(ret->fd);
		return refuse(look, WHY_OTHER_FILE);
	}
	if (kind != MOUNTS_ALIASED)
		return 0;
	/* Records have another device here than stat(2). */
	ret->maj = look->record->u.mmap2.maj;
	ret->min = look->record->u.mmap2.min;
	ret->ino = opentask_by_build_id(look->record) ? 0 : look->record->u.mmap2.ino;
	return 0;
}

static int try_own_root(struct look *look, struct opentask_file *ret)
{
	char name[256];
	int r = mounts_look_self(look->mounts);

	if (r < 0)
		return fail(look, r);
	snprintf(name, sizeof(name), "%s/self", look->proc);
	CLEANUP_CLOSE int dir = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -errno : try_path(look, dir, ret);
}

static int try_root_of(struct look *look, uint32_t pid, struct opentask_file *ret)
{
	CLEANUP_CLOSE int dir = -EBADF;
	int r = procfile_process(look->proc, pid, &dir);

	if (r == 0)
		r = mounts_look(look->mounts, dir);
	return r < 0 ? r : try_path(look, dir, ret);
}

/* Looks the path up in the root of process 1, which sees what is hidden from a service
 * (ProtectHome=, PrivateTmp=). If the recorder may not, that is no reason why the file is missing.
 */
static int try_first_root(struct look *look, struct opentask_file *ret)
{
	const char *missing = look->missing;
	int r = try_root_of(look, 1, ret);

	if (r < 0)
		look->missing = missing;
	return r;
}

static bool is_blocked(const struct look *look)
{
	return look->missing && strcmp(look->missing, WHY_BLOCKING) == 0;
}

/* Opens the file: by the mapping, else in the root of the process; if the process is gone, in the
 * roots of the N processes OTHERS, which may have the same; else in our own and in that of
 * process 1. 0, or -errno with the reason in look->missing. */
static int open_file(struct look *look, const uint32_t *others, size_t n, struct opentask_file *ret)
{
	int r = -ESRCH;

	if (is_blocked(look))
		return -ESTALE;
	if (look->dir >= 0)
		r = look->mapped ? try_mapping(look, ret) : -ESTALE;
	if (look->dir >= 0 && r < 0 && !is_blocked(look)) {
		r = mounts_look(look->mounts, look->dir);
		r = r < 0 ? fail(look, r) : try_path(look, look->dir, ret);
	}
	for (size_t i = 0; i < n && look->dir < 0 && r < 0 && !is_blocked(look); i++)
		r = try_root_of(look, others[i], ret);
	if (r < 0 && !is_blocked(look))
		r = try_own_root(look, ret);
	if (r < 0 && !is_blocked(look))
		r = try_first_root(look, ret);
	if (r < 0 && !look->missing)
		look->missing = WHY_GONE;
	return r;
}

/* --- As a task --- */

struct context {
	struct mounts *mounts;
	char proc[];
};

static void context_free(void *context)
{
	struct context *c = context;

	mounts_free(c->mounts);
	free(c);
}

static int context_new(const char *proc, void **ret)
{
	size_t size = strlen(proc) + 1;
	struct context *c = calloc(1, sizeof(*c) + size);
	int r;

	if (!c)
		return -ENOMEM;
	memcpy(c->proc, proc, size);
	r = mounts_new(c->proc, &c->mounts);
	if (r < 0) {
		free(c);
		return r;
	}
	*ret = c;
	return 0;
}

struct opentask *opentask_new(const struct perfrecord *record)
{
	size_t size = strlen(record->u.mmap2.filename) + 1;
	struct opentask *t = calloc(1, sizeof(*t) + size);

	if (!t)
		return NULL;
	memcpy(t->path, record->u.mmap2.filename, size);
	t->record = *record;
	t->record.u.mmap2.filename = t->path;
	t->file.fd = -EBADF;
	return t;
}

void opentask_free(struct opentask *t)
{
	if (!t)
		return;
	close_fd(t->file.fd);
	free(t);
}

void opentask_run(void *context, struct opentask *t)
{
	struct context *c = context;
	struct look look;

	look_at(c->mounts, c->proc, &t->record, &look);
	if (t->look_only || open_file(&look, t->parents, t->n_parents, &t->file) < 0) {
		t->file = (struct opentask_file){.fd = -EBADF};
		if (look.mapped) {
			t->file.maj = look.map.maj;
			t->file.min = look.map.min;
			t->file.ino = look.map.ino;
		}
	}
	t->missing = look.missing;
	close_fd(look.dir);
	close_fd(look.file.fd);
}

static void run(void *context, struct aside_task *task)
{
	opentask_run(context, (struct opentask *)(void *)task);
}

static void task_free(struct aside_task *task)
{
	opentask_free((struct opentask *)(void *)task);
}

const struct aside_ops opentask_ops = {
	.context_new = context_new,
	.context_free = context_free,
	.run = run,
	.task_free = task_free,
};
