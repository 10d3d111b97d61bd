/*
 * The ways to a mapped file, tried by files.c in the loop's thread when a file is seen for the
 * first time.
 *
 * The mapping is asked first (mapquery.h): it says which file it is and on which device. What lies
 * on a file system that a stranger or a network can block is never touched, as an open there may
 * never return: not for its build id, not for its attributes. Then /proc/PID/map_files leads to the
 * mapped file itself, whatever became of its name.
 *
 * Where the mapping is gone, the path of the record is only a hint of strangers: it is looked up in
 * the process's own root, then in ours, without following any symlink (the kernel names files
 * without them) and without asking a file system for a name that the kernel does not remember. What
 * is found counts when it is regular and has the record's device and inode, or its build id by the
 * kernel's own reading; before Linux 6.11 the latter is taken unseen: who decodes compares, and has
 * the walls to read what a stranger wrote.
 *
 * Every file is had with O_PATH first, which opens nothing, and opened when it is known where it
 * is: a mount that comes between the question and the answer gains nothing.
 */
#include "daemon/record/fileopen.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <linux/fs.h>

#include "capture/proc/mounts.h"
#include "capture/proc/procfile.h"
#include "proto/base.h"

#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
#define WHY_BLOCKING \
	"it lies on a FUSE or network file system, or another user's overlay, which is not touched"
#define WHY_NO_MOUNT	  "it lies on a file system that is mounted nowhere, which is not touched"
#define WHY_OTHER_FILE	  FILEOPEN_GONE " its path names another file by now"
#define WHY_NOT_REGULAR	  "it is not a regular file"
#define WHY_NOT_PERMITTED "the recorder was not permitted to open it"
#define WHY_TOO_MANY	  "the recorder has no more file descriptors"
#define WHY_NOT_CACHED	  FILEOPEN_GONE " its path is not at hand, and to search for it could block"
#define WHY_GONE	  FILEOPEN_GONE " process and file were gone before it could be opened"

bool fileopen_by_build_id(const struct perfrecord *r)
{
	return (r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) && r->u.mmap2.build_id_size > 0;
}

/* The first reason stands: later ways are worse ones. But that something is gone may be told by any
 * of them. */
static int fail(struct fileopen *look, int r)
{
	if (look->missing)
		return r;
	if (r == -EACCES || r == -EPERM)
		look->missing = WHY_NOT_PERMITTED;
	else if (r == -EMFILE || r == -ENFILE)
		look->missing = WHY_TOO_MANY;
	else if (r == -EAGAIN)
		look->missing = WHY_NOT_CACHED;
	return r;
}

static int refuse(struct fileopen *look, const char *why)
{
	look->missing = why;
	return -ESTALE;
}

static bool same_build_id(const struct perfrecord *r, const uint8_t *id, int size)
{
	return size == r->u.mmap2.build_id_size &&
	       memcmp(id, r->u.mmap2.build_id, (size_t)size) == 0;
}

static bool same_device(const struct perfrecord *r, uint32_t maj, uint32_t min)
{
	return r->u.mmap2.maj == maj && r->u.mmap2.min == min;
}

/* Is the file at hand, INO of MAJ:MIN, the one of a record with device and inode? On overlayfs
 * different kernels tell the overlay's device or that of the layer, stat(2) either or a third one;
 * on btrfs stat(2) tells that of the subvolume. The inode's number is the same. */
static bool same_inode(const struct perfrecord *r, enum mounts_kind kind, uint32_t maj,
		       uint32_t min, uint64_t ino)
{
	return r->u.mmap2.ino == ino && (kind == MOUNTS_ALIASED || same_device(r, maj, min));
}

/* Where the kernel does not read the build id. From Linux 6.7 on, until it was mended in 6.18, the
 * record of an overlay's file has the path within its layer (kernel/events/core.c,
 * perf_event_mmap_event): there the place in the file has to do. */
static bool is_alike(const struct fileopen *look, enum mounts_kind kind)
{
	const struct perfrecord *r = look->record;
	const struct mapquery *map = &look->map;

	return strcmp(map->path, r->u.mmap2.filename) == 0 ||
	       (kind == MOUNTS_ALIASED &&
		map->pgoff + (r->u.mmap2.addr - map->begin) == r->u.mmap2.pgoff);
}

/* May be touched? 0 or -errno. A device that is not mounted where the process sees it (that of a
 * layer of an overlay, to older kernels) is judged by the path. */
static int check_kind(struct fileopen *look, enum mounts_kind kind, const char *path)
{
	if (kind == MOUNTS_UNKNOWN)
		kind = mounts_path(look->mounts, path);
	return kind == MOUNTS_BLOCKING ? refuse(look, WHY_BLOCKING) : 0;
}

/* From O_PATH to an fd that can be read; both are FD's owner's. */
static int reopen(int fd)
{
	char name[64];
	int r;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	r = open(name, OPEN_FLAGS);
	return r < 0 ? -errno : r;
}

/* PATH (O_PATH, taken over; or -errno), opened where that cannot block. *ret_kind: where it is. */
static int open_checked(struct fileopen *look, int path, enum mounts_kind *ret_kind,
			struct fileopen_file *ret)
{
	CLEANUP_CLOSE int at = path;
	struct statx stx = {0};
	struct stat st;

	if (at < 0)
		return fail(look, at);
	*ret_kind = mounts_fd(look->mounts, at, &stx);
	if (*ret_kind == MOUNTS_BLOCKING)
		return refuse(look, WHY_BLOCKING);
	if (*ret_kind == MOUNTS_UNKNOWN)
		return refuse(look, WHY_NO_MOUNT);
	if (!S_ISREG(stx.stx_mode))
		return refuse(look, WHY_NOT_REGULAR);
	ret->fd = reopen(at);
	if (ret->fd < 0)
		return fail(look, ret->fd);
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

/* The link leads to the mapped inode itself, no path is walked. */
static int open_mapped(struct fileopen *look, struct fileopen_file *ret)
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

/* Is that which is mapped at the record's address now what was mapped then? The build id is read
 * from the file that was opened: what is mapped there may be another one any moment. */
static bool is_same_mapping(struct fileopen *look, enum mounts_kind kind)
{
	const struct perfrecord *r = look->record;
	const struct mapquery *map = &look->map;
	uint8_t id[MAPQUERY_BUILD_ID];
	int size;

	if (!fileopen_by_build_id(r))
		return same_inode(r, kind, map->maj, map->min, map->ino);
	if (open_mapped(look, &look->file) < 0)
		return false;
	size = mapquery_file_build_id(look->file.fd, id);
	if (size == -EOPNOTSUPP)
		return is_alike(look, kind);
	return size > 0 && same_build_id(r, id, size);
}

void fileopen_look(struct mounts *mounts, const char *proc, const struct perfrecord *record,
		   struct fileopen *ret)
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
	/* Another mapping by now may block and not be meant. */
	if (!ret->mapped && strcmp(ret->map.path, record->u.mmap2.filename) != 0)
		ret->missing = NULL;
}

void fileopen_done(struct fileopen *look)
{
	look->dir = close_fd(look->dir);
	look->file.fd = close_fd(look->file.fd);
}

static bool same_map(const struct mapquery *a, const struct mapquery *b)
{
	return a->begin == b->begin && a->end == b->end && a->maj == b->maj && a->min == b->min &&
	       a->ino == b->ino && strcmp(a->path, b->path) == 0;
}

/* That the mapping is the same before and after says that it was this one. */
static int try_mapping(struct fileopen *look, struct fileopen_file *ret)
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

/* The inode's number may have been used again; not every file system knows of generations. */
static bool same_generation(const struct perfrecord *r, int fd)
{
	/* The request's number says long; the kernel writes an int (fs/ext4/ioctl.c and others). */
	uint64_t version = 0;

	if (r->u.mmap2.ino_generation == 0 || ioctl(fd, FS_IOC_GETVERSION, &version) < 0)
		return true;
	return (uint32_t)version == (uint32_t)r->u.mmap2.ino_generation;
}

static bool is_meant(const struct perfrecord *r, enum mounts_kind kind,
		     const struct fileopen_file *file)
{
	uint8_t id[MAPQUERY_BUILD_ID];
	int size;

	if (!fileopen_by_build_id(r))
		return same_inode(r, kind, file->maj, file->min, file->ino) &&
		       same_generation(r, file->fd);
	size = mapquery_file_build_id(file->fd, id);
	/* One that the kernel cannot say anything of is not taken for it. */
	return size == -EOPNOTSUPP || same_build_id(r, id, size);
}

/* The mounts have been looked at by who calls. DIR: whose root. */
static int try_path(struct fileopen *look, int dir, struct fileopen_file *ret)
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
	/* stat(2) does not say it as records do. */
	ret->maj = look->record->u.mmap2.maj;
	ret->min = look->record->u.mmap2.min;
	ret->ino = fileopen_by_build_id(look->record) ? 0 : look->record->u.mmap2.ino;
	return 0;
}

static int try_own_root(struct fileopen *look, struct fileopen_file *ret)
{
	char name[256];
	int r = mounts_look_self(look->mounts);

	if (r < 0)
		return fail(look, r);
	snprintf(name, sizeof(name), "%s/self", look->proc);
	CLEANUP_CLOSE int dir = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -errno : try_path(look, dir, ret);
}

static int try_root_of(struct fileopen *look, uint32_t pid, struct fileopen_file *ret)
{
	CLEANUP_CLOSE int dir = -EBADF;
	int r = procfile_process(look->proc, pid, &dir);

	if (r == 0)
		r = mounts_look(look->mounts, dir);
	return r < 0 ? r : try_path(look, dir, ret);
}

static bool is_blocked(const struct fileopen *look)
{
	return look->missing && strcmp(look->missing, WHY_BLOCKING) == 0;
}

static int try_process(struct fileopen *look, struct fileopen_file *ret)
{
	int r = look->mapped ? try_mapping(look, ret) : -ESTALE;

	if (r == 0 || is_blocked(look))
		return r;
	r = mounts_look(look->mounts, look->dir);
	return r < 0 ? fail(look, r) : try_path(look, look->dir, ret);
}

int fileopen_open(struct fileopen *look, const uint32_t *others, size_t n,
		  struct fileopen_file *ret)
{
	int r = -ESRCH;

	if (is_blocked(look))
		return -ESTALE;
	if (look->dir >= 0)
		r = try_process(look, ret);
	for (size_t i = 0; i < n && look->dir < 0 && r < 0 && !is_blocked(look); i++)
		r = try_root_of(look, others[i], ret);
	if (r < 0 && !is_blocked(look))
		r = try_own_root(look, ret);
	if (r < 0 && !look->missing)
		look->missing = WHY_GONE;
	return r;
}
