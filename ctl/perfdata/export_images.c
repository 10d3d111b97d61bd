/*
 * The images of a bundle as files. Paths come from whoever made the bundle: they are walked below
 * the directory one name at a time, without symbolic links, and nothing that is there is replaced.
 * Called by cmd_export.c.
 */
#include "ctl/perfdata/export_images.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"
#include "proto/memfd.h"

/* Other users' programs may be among them. */
#define DIR_MODE  0700
#define FILE_MODE 0600

#define NOT_A_NAME 1 /* the path cannot be made below a directory */

/* The directory NAME in DIR, made if it is not there. */
static int open_below(int dir, const char *name, int *ret)
{
	int fd;

	if (mkdirat(dir, name, DIR_MODE) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

/* The next name of a path into NAME; *PATH moves behind it. False: it has none that we make. */
static bool take_name(const char **path, char name[NAME_MAX + 1])
{
	const char *at = *path + strspn(*path, "/");
	size_t size = strcspn(at, "/");

	if (size == 0 || size > NAME_MAX)
		return false;
	memcpy(name, at, size);
	name[size] = '\0';
	*path = at + size;
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* The directory that PATH's last name belongs into, opened, and that name. */
static int open_parent(int root, const char *path, int *ret_dir, char name[NAME_MAX + 1])
{
	CLEANUP_CLOSE int dir = fcntl(root, F_DUPFD_CLOEXEC, 0);
	int r = 0;

	if (dir < 0)
		return -errno;
	while (r == 0) {
		int below = -EBADF;

		if (!take_name(&path, name))
			return NOT_A_NAME;
		if (*path == '\0')
			break;
		r = open_below(dir, name, &below);
		close_fd(dir);
		dir = below;
	}
	if (r == 0)
		*ret_dir = take_fd(&dir);
	return r;
}

/* What the bundle left out is a hole. */
static int write_image(const struct bundle *b, size_t i, int fd)
{
	uint64_t size = bundle_manifest(b)->images[i].file_size;
	size_t n_pieces, n;
	const struct manifest_piece *pieces = bundle_image_pieces(b, i, &n_pieces);
	const uint8_t *data = bundle_image(b, i, &n);
	int r = 0;

	for (size_t k = 0; k < n_pieces && r == 0; k++) {
		if (pieces[k].offset > INT64_MAX ||
		    lseek(fd, (off_t)pieces[k].offset, SEEK_SET) < 0)
			return -EFBIG;
		r = memfd_write_all(fd, data, (size_t)pieces[k].size);
		data += pieces[k].size;
	}
	if (r == 0 && size != MANIFEST_ABSENT && ftruncate(fd, (off_t)size) < 0)
		r = -errno;
	return r;
}

/* PATH below ROOT, new, with image I in it. */
static int make_file(const struct bundle *b, size_t i, int root, const char *path)
{
	CLEANUP_CLOSE int dir = -EBADF, fd = -EBADF;
	char name[NAME_MAX + 1];
	int r = open_parent(root, path, &dir, name);

	if (r != 0)
		return r;
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
	return fd < 0 ? -errno : write_image(b, i, fd);
}

/* FROM below ROOT under the name TO as well. */
static int link_file(int root, const char *from, const char *to)
{
	CLEANUP_CLOSE int dir = -EBADF;
	char name[NAME_MAX + 1];
	int r = open_parent(root, to, &dir, name);

	if (r == 0 && linkat(root, from, dir, name, 0) < 0)
		r = -errno;
	return r;
}

/* Names that another image or directory has. */
static bool taken(int r)
{
	return r == -EEXIST || r == -EISDIR || r == -ENOTDIR || r == -ELOOP || r == -ENAMETOOLONG ||
	       r == NOT_A_NAME;
}

/* .debug/.build-id/12/3456.../elf: perf takes .debug below --symfs for its build-id cache. */
static int make_cached(const struct bundle *b, size_t i, int root)
{
	const struct manifest_image *image = &bundle_manifest(b)->images[i];
	char path[MANIFEST_MAX_BUILD_ID + 64];
	int r;

	snprintf(path, sizeof(path), ".debug/.build-id/%.2s/%.38s/elf", image->build_id,
		 image->build_id + 2);
	r = make_file(b, i, root, path);
	/* There already: the same file under another path. */
	if (r != 0 && r != -EEXIST)
		return r;
	/* Two files of one path: perf tells them apart by their build ids. */
	r = link_file(root, path, image->path);
	return taken(r) ? 0 : r;
}

static int make_image(const struct bundle *b, size_t i, int root)
{
	const struct manifest_image *image = &bundle_manifest(b)->images[i];

	if (image->build_id && strlen(image->build_id) > 2)
		return make_cached(b, i, root);
	return make_file(b, i, root, image->path);
}

/* "[vdso]" and the like are no files, whatever the bundle has of them. */
static bool is_file(const struct manifest_image *image)
{
	return !image->missing && !image->elsewhere && !image->kind && image->path[0] == '/';
}

static bool is_empty(int dir)
{
	int copy = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	DIR *entries = copy >= 0 ? fdopendir(copy) : NULL;
	const struct dirent *entry;
	bool empty = entries != NULL;

	while (empty && (entry = readdir(entries)) != NULL)
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	if (entries)
		closedir(entries);
	else
		close_fd(copy);
	return empty;
}

static int open_root(const char *path, int *ret)
{
	CLEANUP_CLOSE int dir = -EBADF;

	if (mkdir(path, DIR_MODE) < 0 && errno != EEXIST)
		return -errno;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	if (!is_empty(dir))
		return -ENOTEMPTY;
	*ret = take_fd(&dir);
	return 0;
}

static void count(struct images_told *told, const struct manifest_image *image, bool good)
{
	told->n++;
	told->good += good;
	if (!good && !told->first_other)
		told->first_other = image->path;
}

int images_write(const struct bundle *b, const char *dir, struct images_told *ret)
{
	const struct manifest *m = bundle_manifest(b);
	CLEANUP_CLOSE int root = -EBADF;
	int r = open_root(dir, &root);

	*ret = (struct images_told){0};
	for (size_t i = 0; i < m->n_images && r == 0; i++) {
		if (!is_file(&m->images[i]))
			continue;
		r = make_image(b, i, root);
		count(ret, &m->images[i], r == 0);
		r = taken(r) ? 0 : r;
	}
	return r;
}

/* The file's bytes from OFFSET on are DATA. */
static bool same_bytes(int fd, uint64_t offset, const uint8_t *data, size_t size)
{
	char chunk[65536];

	while (size > 0) {
		size_t part = MIN_OF(size, sizeof(chunk));
		ssize_t n = pread(fd, chunk, part, (off_t)offset);

		if (n <= 0 || memcmp(chunk, data, (size_t)n) != 0)
			return false;
		offset += (uint64_t)n;
		data += n;
		size -= (size_t)n;
	}
	return true;
}

static bool same_file(const struct bundle *b, size_t i)
{
	const struct manifest_image *image = &bundle_manifest(b)->images[i];
	CLEANUP_CLOSE int fd = -EBADF;
	struct stat st;
	size_t n_pieces, size;
	const struct manifest_piece *pieces = bundle_image_pieces(b, i, &n_pieces);
	const uint8_t *data = bundle_image(b, i, &size);
	bool same = true;

	/* A FIFO or device of that name is not opened for what it does when it is. */
	if (stat(image->path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	fd = open(image->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return false;
	for (size_t k = 0; k < n_pieces && same; k++) {
		same = pieces[k].offset <= INT64_MAX &&
		       same_bytes(fd, pieces[k].offset, data, (size_t)pieces[k].size);
		data += pieces[k].size;
	}
	return same;
}

void images_compare(const struct bundle *b, struct images_told *ret)
{
	const struct manifest *m = bundle_manifest(b);

	*ret = (struct images_told){0};
	for (size_t i = 0; i < m->n_images; i++)
		if (is_file(&m->images[i]))
			count(ret, &m->images[i], same_file(b, i));
}
