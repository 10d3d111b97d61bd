/*
 * Looks for the files that the records of a recording map, and adds their bytes to a bundle.
 *
 * A file is one identity in the records: path and inode, or path and build id. The copy that perf
 * keeps by build id (~/.debug/.build-id) comes first, as in perf; then the file at the path. This
 * file does not check build ids, because it reads no file's content: ptsnap-decode compares them.
 *
 * The paths are untrusted. Only a regular file is opened for reading, as opening a device can have
 * effects; and with --sysroot no path leads out of that directory.
 */
#include "ctl/perfdata/import_images.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "proto/base.h"

#include "ctl/base/say.h"

/* Limit of a file that is taken whole, because its symbols may lie outside of the mapped range. */
#define WHOLE_FILE (64ull << 20)
/* The same for a file with a known build id, which ptsnap-decode looks for in the file. */
#define WHOLE_FILE_OF_BUILD_ID (1ull << 30)
/* The same for a jitdump: all of it is needed. */
#define WHOLE_DUMP (1ull << 30)
/* Limit of all files: they lie in memory, and a small perf.data can name large files many times. */
#define MAX_BYTES (4ull << 30)
/* No device has this major number: majors have 12 bits. */
#define MADE_UP_MAJOR 0x1000u

struct import_file {
	const char *path; /* in the same allocation, behind the struct */
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint64_t first, last; /* the mapped range: offset of the first byte, and behind the last */
	uint8_t id[20];
	uint8_t id_size;
	bool dump;    /* what a just-in-time compiler wrote down, */
	uint32_t pid; /* in this process */
	size_t index;
};

struct import_build_id {
	const char *path;
	uint8_t id[20];
	uint8_t size; /* 0: the path has several build ids */
};

int import_no_memory(void)
{
	return say_error(EXIT_CODE_FAILURE, "out of memory");
}

int import_written(int r)
{
	if (r < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot compose the bundle in memory: %s",
				 strerror(-r));
	return 0;
}

void import_images_init(struct import_images *i)
{
	*i = (struct import_images){0};
}

void import_images_done(struct import_images *i)
{
	tdestroy(i->files, free);
	tdestroy(i->build_ids, free);
	free(i->list);
	import_images_init(i);
}

#define ORDER(a, b)                                \
	do {                                       \
		if ((a) != (b))                    \
			return (a) < (b) ? -1 : 1; \
	} while (0)

static int by_identity(const void *a, const void *b)
{
	const struct import_file *x = a, *y = b;

	ORDER(x->ino, y->ino);
	ORDER(x->maj, y->maj);
	ORDER(x->min, y->min);
	ORDER(x->ino_generation, y->ino_generation);
	ORDER(x->id_size, y->id_size);
	if (memcmp(x->id, y->id, sizeof(x->id)) != 0)
		return memcmp(x->id, y->id, sizeof(x->id));
	return strcmp(x->path, y->path);
}

static int by_path(const void *a, const void *b)
{
	const struct import_build_id *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* Copies SIZE bytes at FROM and, behind them, PATH; *ret_path points to the latter. */
static void *copy_with_path(const void *from, size_t size, const char *path, const char **ret_path)
{
	size_t length = strlen(path) + 1;
	char *copy = malloc(size + length);

	if (!copy)
		return NULL;
	memcpy(copy, from, size);
	*ret_path = memcpy(copy + size, path, length);
	return copy;
}

static struct import_file *add_file(struct import_images *i, const struct import_file *key)
{
	struct import_file *file;
	const char *path;

	if (ARRAY_EXTEND(i->list, i->n) < 0)
		return NULL;
	file = copy_with_path(key, sizeof(*key), key->path, &path);
	if (!file)
		return NULL;
	file->path = path;
	file->index = i->n;
	if (!tsearch(file, &i->files, by_identity)) {
		free(file);
		return NULL;
	}
	i->list[i->n++] = file;
	return file;
}

static struct import_file identity_of(const struct perfrecord *r)
{
	struct import_file file = {.path = r->u.mmap2.filename, .first = UINT64_MAX};

	if (r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		file.id_size = r->u.mmap2.build_id_size;
		memcpy(file.id, r->u.mmap2.build_id, file.id_size);
		return file;
	}
	file.maj = r->u.mmap2.maj;
	file.min = r->u.mmap2.min;
	file.ino = r->u.mmap2.ino;
	file.ino_generation = r->u.mmap2.ino_generation;
	return file;
}

/* Whether the kernel uses the name for memory without a file (mm/mmap.c, arch_vma_name(),
 * perf_event_mmap_event()). */
static bool is_memory(const char *path)
{
	return path[0] != '/' || strncmp(path, "//", 2) == 0 || strncmp(path, "/dev/zero", 9) == 0;
}

static bool has_inode(const struct import_file *file)
{
	return file->maj || file->min || file->ino || file->ino_generation;
}

/* For files without an inode in the records: the sideband and the manifest get the same inode, so
 * that ptsnap-decode finds the image by inode, whatever the path contains. */
static void make_up_inode(const struct import_file *file, uint32_t *ret_maj, uint64_t *ret_ino)
{
	*ret_maj = MADE_UP_MAJOR;
	*ret_ino = file->index + 1;
}

/* Whether the name is that of a jitdump, jit-PID.dump (tools/perf/util/jitdump.c, jit_detect()).
 * PID may be a number in a namespace, so each number will do. */
static bool is_dump(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t digits;

	if (!slash || strncmp(slash + 1, "jit-", 4) != 0)
		return false;
	digits = strspn(slash + 5, "0123456789");
	return digits > 0 && strcmp(slash + 5 + digits, ".dump") == 0;
}

int import_images_add(struct import_images *i, struct perfrecord *r)
{
	struct import_file key = identity_of(r), *file;
	struct import_file **found = tfind(&key, &i->files, by_identity);
	const struct import_build_id build_id = {.path = key.path};
	uint64_t last;

	/* perf keeps copies of the vDSO, which then has a build id. */
	if (!found && is_memory(key.path) && key.id_size == 0 &&
	    !tfind(&build_id, &i->build_ids, by_path))
		return 0;
	if (!found && i->n == MANIFEST_MAX_IMAGES) {
		i->dropped++;
		return 0;
	}
	file = found ? *found : add_file(i, &key);
	if (!file)
		return -ENOMEM;
	if (__builtin_add_overflow(r->u.mmap2.pgoff, r->u.mmap2.len, &last))
		last = UINT64_MAX;
	file->dump = is_dump(file->path);
	file->pid = r->u.mmap2.pid;
	file->first = MIN_OF(file->first, r->u.mmap2.pgoff);
	file->last = MAX_OF(file->last, last);
	if (!has_inode(file)) {
		r->misc &= (uint16_t)~PERF_RECORD_MISC_MMAP_BUILD_ID;
		make_up_inode(file, &r->u.mmap2.maj, &r->u.mmap2.ino);
	}
	return 0;
}

int import_images_add_build_id(struct import_images *i, const char *path, const uint8_t *id,
			       uint8_t size)
{
	struct import_build_id key = {.path = path, .size = size}, *copy;
	struct import_build_id **found = tfind(&key, &i->build_ids, by_path);

	memcpy(key.id, id, size);
	if (found) {
		if ((*found)->size != size || memcmp((*found)->id, id, size) != 0)
			(*found)->size = 0;
		return 0;
	}
	copy = copy_with_path(&key, sizeof(key), path, &key.path);
	if (!copy)
		return -ENOMEM;
	copy->path = key.path;
	if (tsearch(copy, &i->build_ids, by_path))
		return 0;
	free(copy);
	return -ENOMEM;
}

/* Opens for reading what PATH_FD (O_PATH) is, if it is a regular file; else *ret_why says why not.
 */
static int open_for_reading(int path_fd, uint64_t *ret_size, const char **ret_why)
{
	char name[64];
	struct stat st;
	int fd;

	if (fstat(path_fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		*ret_why = "not a regular file";
		return -EINVAL;
	}
	if (st.st_size == 0) {
		*ret_why = "the file is empty";
		return -EINVAL;
	}
	snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	*ret_size = (uint64_t)st.st_size;
	*ret_why = fd < 0 ? strerrordesc_np(errno) : NULL;
	return fd;
}

static int open_path(const char *sysroot, const char *path, uint64_t *ret_size,
		     const char **ret_why)
{
	static const struct open_how within = {.flags = O_PATH | O_CLOEXEC,
					       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	CLEANUP_CLOSE int root = -EBADF, fd = -EBADF;

	if (sysroot) {
		root = open(sysroot, O_PATH | O_DIRECTORY | O_CLOEXEC);
		fd = root < 0 ? -1 : (int)syscall(SYS_openat2, root, path, &within, sizeof(within));
	} else {
		fd = open(path, O_PATH | O_CLOEXEC);
	}
	if (fd < 0) {
		*ret_why = strerrordesc_np(errno);
		return -errno;
	}
	return open_for_reading(fd, ret_size, ret_why);
}

static void put_hex(char *to, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		sprintf(to + 2 * i, "%02x", bytes[i]);
	to[2 * size] = '\0';
}

/* Opens perf's copy of a file. The name of the build id is a link to a directory with the copy or,
 * before Linux 4.7, to the copy (tools/perf/util/build-id.c, build_id_cache__linkname()). */
static int open_copy(const char *build_id, uint64_t *ret_size)
{
	static const char *const names[] = {"/elf", "/vdso", ""};
	const char *home = getenv("HOME"), *why;
	int fd = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(names) && home && *build_id && fd < 0; i++) {
		CLEANUP_FREE char *path = NULL;

		if (asprintf(&path, "%s/.debug/.build-id/%.2s/%s%s", home, build_id, build_id + 2,
			     names[i]) < 0) {
			path = NULL;
			return -ENOMEM;
		}
		fd = open_path(NULL, path, ret_size, &why);
	}
	return fd;
}

/* Opens the file or perf's copy, of *ret_size bytes. On failure *ret_why says why. */
static int open_file(const struct import_file *file, const char *build_id, const char *sysroot,
		     uint64_t *ret_size, const char **ret_why)
{
	int fd = open_copy(build_id, ret_size);
	const char *path = file->path;

	if (fd >= 0)
		return fd;
	/* Memory, or memory that looks like a file. */
	if (is_memory(path) || strncmp(path, "/memfd:", 7) == 0 || strncmp(path, "/SYSV", 5) == 0 ||
	    strncmp(path, "/anon_hugepage", 14) == 0) {
		*ret_why = "no file";
		return -ENOENT;
	}
	return open_path(sysroot, path, ret_size, ret_why);
}

/* Writes the build id in hexadecimal to RET, or "" if it is unknown. Records with an inode have
 * none, but the file's list of build ids may have one for the path. */
static void find_build_id(const struct import_images *i, const struct import_file *file, char *ret)
{
	const struct import_build_id key = {.path = file->path};
	struct import_build_id **found = tfind(&key, &i->build_ids, by_path);

	*ret = '\0';
	if (file->id_size > 0)
		put_hex(ret, file->id, file->id_size);
	else if (found)
		put_hex(ret, (*found)->id, (*found)->size);
}

static int describe(const struct import_file *file, const char *build_id, const char *why,
		    struct manifest_image *image)
{
	image->maj = file->maj;
	image->min = file->min;
	image->ino = file->ino;
	image->ino_generation = file->ino_generation;
	if (!has_inode(file))
		make_up_inode(file, &image->maj, &image->ino);
	image->path = strdup(file->path);
	if (*build_id)
		image->build_id = strdup(build_id);
	if (why)
		image->missing = strdup(why);
	if (file->dump) {
		image->kind = strdup(MANIFEST_IMAGE_JITDUMP);
		image->pid = file->pid;
	}
	return image->path && !image->kind == !file->dump && !image->build_id == !*build_id &&
			       !image->missing == !why
		       ? 0
		       : import_no_memory();
}

/* The source and the destination of images. */
struct target {
	const char *sysroot;
	struct manifest *manifest;
	struct bundle_writer *writer;
	uint64_t left; /* bytes that may still be added */
};

static int put_bytes(struct target *to, const struct import_file *file, int fd,
		     const struct manifest_image *image)
{
	uint64_t copied = 0;
	char name[32];
	int r;

	snprintf(name, sizeof(name), "images/%zu", file->index);
	r = import_written(
		bundle_write_file(to->writer, name, fd, image->offset, image->size, &copied));
	if (r != 0)
		return r;
	if (copied < image->size)
		return say_error(EXIT_CODE_FAILURE, "%s: cannot be read to the end", file->path);
	to->left -= image->size;
	return 0;
}

static uint64_t largest_whole(const struct import_file *file, bool has_build_id)
{
	if (file->dump)
		return WHOLE_DUMP;
	return has_build_id ? WHOLE_FILE_OF_BUILD_ID : WHOLE_FILE;
}

/* Returns why the jitdump FILE is not taken from FD, which has SIZE bytes. A later process may have
 * had the same number: its jitdump has the same name. */
static const char *refuse_dump(const struct import_file *file, int fd, uint64_t size,
			       const char *sysroot)
{
	struct stat st;

	if (!file->dump)
		return NULL;
	if (size > WHOLE_DUMP)
		return "the jitdump is larger than 1 GiB";
	if (sysroot || file->ino == 0)
		return NULL;
	return fstat(fd, &st) == 0 && st.st_ino == file->ino ? NULL
							     : "another file has its name now";
}

static int write_image(const struct import_images *i, const struct import_file *file,
		       struct target *to)
{
	struct manifest_image *image = manifest_add_image(to->manifest);
	char build_id[MANIFEST_MAX_BUILD_ID + 1];
	CLEANUP_CLOSE int fd = -EBADF;
	uint64_t size = 0, offset = 0;
	const char *why = NULL, *refused;
	int r;

	if (!image)
		return import_no_memory();
	find_build_id(i, file, build_id);
	fd = open_file(file, build_id, to->sysroot, &size, &why);
	refused = fd >= 0 ? refuse_dump(file, fd, size, to->sysroot) : NULL;
	if (refused) {
		fd = close_fd(fd);
		why = refused;
	}
	if (fd >= 0 && size > largest_whole(file, *build_id != '\0') &&
	    file->first < MIN_OF(file->last, size)) {
		offset = file->first;
		size = MIN_OF(file->last, size) - offset;
	}
	if (fd >= 0 && size > to->left) {
		fd = close_fd(fd);
		why = "the limit for the bytes of all files is reached";
	}
	r = describe(file, build_id, fd < 0 ? why : NULL, image);
	if (r != 0 || fd < 0)
		return r;
	image->offset = offset;
	image->size = size;
	image->unverified = !*build_id && !file->dump;
	return put_bytes(to, file, fd, image);
}

int import_images_write(const struct import_images *i, const char *sysroot, struct manifest *m,
			struct bundle_writer *w)
{
	struct target to = {sysroot, m, w, MAX_BYTES};

	for (size_t index = 0; index < i->n; index++) {
		int r = write_image(i, i->list[index], &to);

		if (r != 0)
			return r;
	}
	return 0;
}
