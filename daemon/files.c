/*
 * (device, inode) or (build id, path) -> fd, fed by intake.c with MMAP2 records, read out by
 * evidence.c; in the loop's thread. A file is only ever opened, never mapped and never parsed here.
 *
 * The path comes from strangers, so it is only a hint: the file counts only when it is regular and
 * has the record's device and inode. It is looked up in the process's own root, without following
 * any symlink (the kernel names files without them), and not at all below a mount that a stranger
 * or a network can block (an open on a hostile FUSE mount never returns). When the process is gone
 * already, our own root is tried: device and inode say whether it is the same file. Deleted files
 * can be had through /proc/PID/map_files, which names the mapping itself.
 *
 * A record with a build id (attr.build_id) names neither device nor inode. Then the mapping itself
 * is asked first, and what its path leads to is taken unseen: the build id is in the file, and is
 * compared by the decoder, which has the walls to read what a stranger wrote.
 */
#include "daemon/files.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <linux/openat2.h>

#include "proto/base.h"
#include "proto/manifest.h"

#define BUCKETS		  4096u /* power of two */
#define NONE		  UINT32_MAX
#define OPEN_FLAGS	  (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
#define MAX_TRIES	  4 /* another process may have a better way to the same file */
#define MOUNTINFO_MAX	  (8u << 20)
#define WHY_TOO_MANY	  "more files are mapped than the recorder keeps open"
#define WHY_BLOCKING	  "it lies on a FUSE or network file system, which is not touched"
#define WHY_OTHER_FILE	  "the path names another file by now"
#define WHY_NOT_REGULAR	  "it is not a regular file"
#define WHY_NOT_PERMITTED "the recorder was not permitted to open it"
#define WHY_GONE	  "it was gone before it could be opened"

struct files {
	const char *proc;
	uint32_t max_open, n_open;
	struct files_entry *entries;
	uint32_t *next; /* in the bucket, by entry */
	size_t n, capacity;
	uint32_t buckets[BUCKETS];
	uint64_t dropped;
};

int files_new(const char *proc, uint32_t max_open, struct files **ret)
{
	struct files *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->proc = proc;
	f->max_open = max_open;
	memset(f->buckets, 0xff, sizeof(f->buckets));
	*ret = f;
	return 0;
}

void files_free(struct files *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++) {
		close_fd(f->entries[i].fd);
		free(f->entries[i].path);
	}
	free(f->entries);
	free(f->next);
	free(f);
}

void files_freep(struct files **f)
{
	files_free(*f);
}

/* File systems whose server may be a stranger or far away. "fuse" also stands for "fuse.*",
 * "fuseblk"; "nfs" for "nfs4". */
static bool fs_may_block(const char *type)
{
	static const char *const blocking[] = {"fuse",	 "nfs",	  "9p",	    "cifs",
					       "smb3",	 "ceph",  "afs",    "coda",
					       "autofs", "ncpfs", "lustre", "orangefs"};

	for (size_t i = 0; i < ARRAY_SIZE(blocking); i++)
		if (strncmp(type, blocking[i], strlen(blocking[i])) == 0)
			return true;
	return false;
}

/* mountinfo writes blank, tab, newline and backslash as three octal digits. */
static void mount_unescape(char *s)
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

static bool path_is_below(const char *path, const char *mount)
{
	size_t n = strlen(mount);

	if (strcmp(mount, "/") == 0)
		return true;
	return strncmp(path, mount, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* One line: "36 35 98:0 /root /mount options [optional...] - type source options" (proc(5)). */
static bool mount_line_blocks(char *line, const char *path)
{
	char *dash = strstr(line, " - "), *save = NULL, *field = NULL;
	char type[64];

	if (!dash || sscanf(dash, " - %63s", type) != 1 || !fs_may_block(type))
		return false;
	for (int i = 0; i < 5; i++)
		field = strtok_r(i ? NULL : line, " ", &save);
	if (!field)
		return false;
	mount_unescape(field);
	return path_is_below(path, field);
}

/* Is PATH, as process PID ("self" or a number) sees it, on or below a mount that may block? 1 or 0;
 * -errno: the process is gone, or its mounts cannot be seen. */
static int path_may_block(const struct files *f, const char *pid, const char *path)
{
	CLEANUP_FREE char *line = NULL;
	char name[PATH_MAX];
	size_t size = 0, total = 0;
	bool blocks = false;
	ssize_t n;
	FILE *in;

	snprintf(name, sizeof(name), "%s/%s/mountinfo", f->proc, pid);
	in = fopen(name, "re");
	if (!in)
		return -errno;
	while (!blocks && (n = getline(&line, &size, in)) > 0) {
		total += (size_t)n;
		blocks = total > MOUNTINFO_MAX || mount_line_blocks(line, path);
	}
	fclose(in);
	return total == 0 ? -ENOENT : blocks;
}

static bool files_is_meant(const struct files_entry *e, const struct stat *st)
{
	return e->build_id_size > 0 ||
	       (st->st_ino == e->ino && major(st->st_dev) == e->maj && minor(st->st_dev) == e->min);
}

/* Keeps FD when it is the file that the record means. 0 or -errno; FD is taken over. */
static int files_accept(struct files_entry *e, int fd)
{
	struct stat st = {0};

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && files_is_meant(e, &st)) {
		e->fd = fd;
		e->size = (uint64_t)st.st_size;
		e->maj = major(st.st_dev);
		e->min = minor(st.st_dev);
		e->ino = st.st_ino;
		e->missing = NULL;
		return 0;
	}
	e->missing = S_ISREG(st.st_mode) ? WHY_OTHER_FILE : WHY_NOT_REGULAR;
	close(fd);
	return -ESTALE;
}

static int files_open_beneath(const struct files *f, const char *pid, const char *path)
{
	struct open_how how = {
		.flags = OPEN_FLAGS,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS,
	};
	char name[PATH_MAX];
	int fd;

	snprintf(name, sizeof(name), "%s/%s/root", f->proc, pid);
	CLEANUP_CLOSE int root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

/* 0, FILES_BLOCKED or -errno: so for all that follow. */
#define FILES_BLOCKED 1
static int files_check_mount(const struct files *f, struct files_entry *e, const char *pid)
{
	int blocks = path_may_block(f, pid, e->path);

	if (blocks <= 0)
		return blocks;
	e->missing = WHY_BLOCKING;
	return FILES_BLOCKED;
}

/* By path, in the root of PID. */
static int files_try_root(const struct files *f, struct files_entry *e, const char *pid)
{
	int r = files_check_mount(f, e, pid);

	return r == 0 ? files_accept(e, files_open_beneath(f, pid, e->path)) : r;
}

/* By mapping: /proc/PID/map_files/START-END. The link leads to the mapped inode itself, so no path
 * is walked; but opening it may still block on FUSE, hence only after files_check_mount. */
static int files_try_mapping(const struct files *f, struct files_entry *e, const char *pid,
			     const struct perfrecord *r)
{
	char name[PATH_MAX];
	int fd;

	snprintf(name, sizeof(name), "%s/%s/map_files/%" PRIx64 "-%" PRIx64, f->proc, pid,
		 r->u.mmap2.addr, r->u.mmap2.addr + r->u.mmap2.len);
	fd = open(name, OPEN_FLAGS);
	return files_accept(e, fd < 0 ? -errno : fd);
}

/* By what the process has. */
static int files_try_process(const struct files *f, struct files_entry *e, const char *pid,
			     const struct perfrecord *record)
{
	int r;

	if (e->build_id_size > 0) {
		r = files_check_mount(f, e, pid);
		if (r == 0)
			r = files_try_mapping(f, e, pid, record);
		return r < 0 ? files_try_root(f, e, pid) : r;
	}
	r = files_try_root(f, e, pid);
	return r < 0 ? files_try_mapping(f, e, pid, record) : r;
}

static void files_open(struct files *f, struct files_entry *e, const struct perfrecord *record)
{
	char pid[16];
	int r;

	if (f->n_open >= f->max_open) {
		e->missing = WHY_TOO_MANY;
		return;
	}
	snprintf(pid, sizeof(pid), "%u", record->u.mmap2.pid);
	e->missing = NULL;
	r = files_try_process(f, e, pid, record);
	if (r < 0)
		r = files_try_root(f, e, "self");
	f->n_open += r == 0;
	if (r < 0 && !e->missing)
		e->missing = r == -EACCES || r == -EPERM ? WHY_NOT_PERMITTED : WHY_GONE;
}

static bool has_build_id(const struct perfrecord *r)
{
	return (r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) && r->u.mmap2.build_id_size > 0;
}

static uint32_t *files_bucket(struct files *f, const struct perfrecord *r)
{
	uint64_t h = r->u.mmap2.ino ^ r->u.mmap2.min;

	if (has_build_id(r))
		memcpy(&h, r->u.mmap2.build_id, sizeof(h));
	h *= 0x9e3779b97f4a7c15ull;
	return &f->buckets[h >> 40 & (BUCKETS - 1)];
}

/* Of one build id there may be copies, but those have other paths. */
static bool files_match(const struct files_entry *e, const struct perfrecord *r)
{
	if (!has_build_id(r))
		return e->build_id_size == 0 && e->ino == r->u.mmap2.ino &&
		       e->maj == r->u.mmap2.maj && e->min == r->u.mmap2.min &&
		       e->ino_generation == r->u.mmap2.ino_generation;
	return e->build_id_size == r->u.mmap2.build_id_size &&
	       memcmp(e->build_id, r->u.mmap2.build_id, e->build_id_size) == 0 &&
	       strcmp(e->path, r->u.mmap2.filename) == 0;
}

static struct files_entry *files_find(struct files *f, const struct perfrecord *r)
{
	uint32_t at = *files_bucket(f, r);

	while (at != NONE && !files_match(&f->entries[at], r))
		at = f->next[at];
	return at == NONE ? NULL : &f->entries[at];
}

static int files_grow(struct files *f)
{
	size_t capacity = f->capacity ? 2 * f->capacity : 64;
	struct files_entry *entries;
	uint32_t *next;

	if (f->n < f->capacity)
		return 0;
	if (capacity > MANIFEST_MAX_IMAGES)
		return -E2BIG;
	entries = reallocarray(f->entries, capacity, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	f->entries = entries;
	next = reallocarray(f->next, capacity, sizeof(*next));
	if (!next)
		return -ENOMEM;
	f->next = next;
	f->capacity = capacity;
	return 0;
}

static struct files_entry *files_add(struct files *f, const struct perfrecord *r)
{
	uint32_t *bucket = files_bucket(f, r);
	char *path = strdup(r->u.mmap2.filename);
	struct files_entry *e;

	if (!path || files_grow(f) < 0) {
		free(path);
		f->dropped++;
		return NULL;
	}
	e = &f->entries[f->n];
	*e = (struct files_entry){
		.maj = r->u.mmap2.maj,
		.min = r->u.mmap2.min,
		.ino = r->u.mmap2.ino,
		.ino_generation = r->u.mmap2.ino_generation,
		.path = path,
		.fd = -EBADF,
	};
	if (has_build_id(r)) {
		e->build_id_size = r->u.mmap2.build_id_size;
		memcpy(e->build_id, r->u.mmap2.build_id, e->build_id_size);
	}
	f->next[f->n] = *bucket;
	*bucket = (uint32_t)f->n++;
	return e;
}

void files_see(struct files *f, const struct perfrecord *record)
{
	struct files_entry *e;

	/* Anonymous memory and [vdso] have no inode. */
	if (!(record->u.mmap2.prot & PROT_EXEC) || record->u.mmap2.filename[0] != '/' ||
	    (record->u.mmap2.ino == 0 && !has_build_id(record)))
		return;
	e = files_find(f, record);
	if (!e)
		e = files_add(f, record);
	if (e && e->fd < 0 && e->tries < MAX_TRIES) {
		e->tries++;
		files_open(f, e, record);
	}
}

const struct files_entry *files_at(const struct files *f, size_t index)
{
	return index < f->n ? &f->entries[index] : NULL;
}

size_t files_count(const struct files *f)
{
	return f->n;
}

uint64_t files_dropped(const struct files *f)
{
	return f->dropped;
}
