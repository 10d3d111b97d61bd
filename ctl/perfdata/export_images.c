/*
 * Writes the images of a bundle as files, or compares them with the files of this host.
 *
 * A bundle's paths come from a stranger. They are walked below the directory one name at a time,
 * without symbolic links, and no existing file is replaced.
 */
#include "ctl/perfdata/export_perfdata.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"
#include "proto/memfd.h"

/* The images may be other users' programs. */
#define DIR_MODE  0700
#define FILE_MODE 0600

#define NOT_A_NAME 1 /* the path cannot be made below a directory */

/* Opens the directory of PATH's last name below ROOT, and makes the directories on the way.
 * *ret_dir is the caller's; NAME is the last name. 0, NOT_A_NAME or -errno. */
static int open_parent(int root, const char *path, int *ret_dir, char name[NAME_MAX + 1])
{
	CLEANUP_CLOSE int dir = fcntl(root, F_DUPFD_CLOEXEC, 0);

	while (dir >= 0) {
		size_t size;
		int below;

		path += strspn(path, "/");
		size = strcspn(path, "/");
		if (size == 0 || size > NAME_MAX)
			return NOT_A_NAME;
		memcpy(name, path, size);
		name[size] = '\0';
		path += size;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			return NOT_A_NAME;
		if (!*path) {
			*ret_dir = take_fd(&dir);
			return 0;
		}
		if (mkdirat(dir, name, DIR_MODE) < 0 && errno != EEXIST)
			return -errno;
		below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close_fd(dir);
		dir = below;
	}
	return -errno;
}

/* Pieces that the bundle lacks become holes. */
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

/* Makes the new file PATH below ROOT with image I. */
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

/* Whether R says that the image cannot have its path because of the path or of another image. */
static bool path_unusable(int r)
{
	return r == -EEXIST || r == -EISDIR || r == -ENOTDIR || r == -ELOOP || r == -ENAMETOOLONG ||
	       r == NOT_A_NAME;
}

/* Makes .debug/.build-id/12/3456.../elf, and a link to it at the image's path. perf takes .debug
 * below --symfs for its build-id cache. */
static int make_cached(const struct bundle *b, size_t i, int root)
{
	const struct manifest_image *image = &bundle_manifest(b)->images[i];
	char path[MANIFEST_MAX_BUILD_ID + 64], name[NAME_MAX + 1];
	CLEANUP_CLOSE int dir = -EBADF;
	int r;

	snprintf(path, sizeof(path), ".debug/.build-id/%.2s/%.38s/elf", image->build_id,
		 image->build_id + 2);
	r = make_file(b, i, root, path);
	/* -EEXIST: the bundle has the same file under another path, too. */
	if (r != 0 && r != -EEXIST)
		return r;
	r = open_parent(root, image->path, &dir, name);
	if (r == 0 && linkat(root, path, dir, name, 0) < 0)
		r = -errno;
	/* perf tells two files of one path apart by their build ids. */
	return path_unusable(r) ? 0 : r;
}

/* "[vdso]" and the like are no files, even if the bundle has their bytes. */
static bool is_file(const struct manifest_image *image)
{
	return !image->missing && !image->elsewhere && !image->kind && image->path[0] == '/';
}

static bool is_empty(int dir)
{
	int copy = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	DIR *entries = copy >= 0 ? fdopendir(copy) : NULL;
	const struct dirent *entry;
	bool empty = entries;

	while (empty && (entry = readdir(entries)) != NULL)
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	if (entries)
		closedir(entries);
	else
		close_fd(copy);
	return empty;
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
	struct stat st;
	int r = 0;

	*ret = (struct images_told){0};
	if (mkdir(dir, DIR_MODE) < 0 && errno != EEXIST)
		return -errno;
	root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || fstat(root, &st) < 0)
		return -errno;
	/* Whoever owns the directory decides what perf reads there. */
	if (st.st_uid != geteuid())
		return IMAGES_NOT_OURS;
	if (!is_empty(root))
		return -ENOTEMPTY;
	for (size_t i = 0; i < m->n_images && r == 0; i++) {
		const struct manifest_image *image = &m->images[i];

		if (!is_file(image))
			continue;
		if (image->build_id && strlen(image->build_id) > 2)
			r = make_cached(b, i, root);
		else
			r = make_file(b, i, root, image->path);
		count(ret, image, r == 0);
		r = path_unusable(r) ? 0 : r;
	}
	return r;
}

/* Whether the file FD has the bytes DATA at OFFSET. */
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

	/* Opening a FIFO or a device can have effects. */
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
