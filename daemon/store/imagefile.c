/*
 * Adds bytes to one file of the image cache: compares what is there and copies what is missing.
 *
 * Bytes are written and synced first, then the new ranges are published by rename. Bytes that a
 * crash leaves half written are in no range.
 */
#include "daemon/store/imagestore.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/store_file.h"
#include "proto/base.h"
#include "proto/memfd.h"

#define MAX_RANGES_TEXT (4u << 20)
#define CHUNK		65536u
#define FILE_MODE	0600

/* Whether the build id is valid: the manifest allows lower-case hex digits only, but a stranger may
 * have written the manifest. */
static bool has_build_id(const struct manifest_image *image)
{
	size_t n = image->build_id ? strlen(image->build_id) : 0;

	return n > 0 && n <= MANIFEST_MAX_BUILD_ID &&
	       strspn(image->build_id, "0123456789abcdef") == n;
}

void imagefile_name(const struct manifest_image *image, uint64_t file_size, unsigned variant,
		    char ret[IMAGEFILE_NAME_SIZE])
{
	size_t n;

	if (has_build_id(image))
		snprintf(ret, IMAGEFILE_NAME_SIZE, "%s", image->build_id);
	else if (!image->kind || image->ino != 0)
		snprintf(ret, IMAGEFILE_NAME_SIZE, "f%" PRIx32 "-%" PRIx32 "-%" PRIx64 "-%" PRIx64,
			 image->maj, image->min, image->ino, file_size);
	/* An image that is no file is named by where, and for memory when, its bytes were read. */
	else if (strcmp(image->kind, MANIFEST_IMAGE_MEMORY) == 0)
		snprintf(ret, IMAGEFILE_NAME_SIZE, "m%" PRIx32 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64,
			 image->pid, image->address, image->read_ns, file_size);
	else if (strcmp(image->kind, MANIFEST_IMAGE_JITDUMP) == 0)
		snprintf(ret, IMAGEFILE_NAME_SIZE, "j%" PRIx32 "-%" PRIx64 "-%" PRIx64, image->pid,
			 image->read_ns, file_size);
	else if (strcmp(image->kind, MANIFEST_IMAGE_VDSO) == 0)
		snprintf(ret, IMAGEFILE_NAME_SIZE, "v-%" PRIx64, file_size);
	else
		snprintf(ret, IMAGEFILE_NAME_SIZE, "k%" PRIx64 "-%" PRIx64, image->address,
			 file_size);
	n = strlen(ret);
	if (variant > 0)
		snprintf(ret + n, IMAGEFILE_NAME_SIZE - n, ".%u", variant);
}

bool imagefile_is_name(const char *name)
{
	size_t n = strspn(name, "0123456789abcdefghijklmnopqrstuvwxyz-");

	if (n == 0 || strlen(name) > KEPT_NAME_MAX)
		return false;
	if (name[n] == '\0')
		return true;
	/* ends in "." and the number of the variant */
	return name[n] == '.' && name[n + 1] != '\0' &&
	       name[n + 1 + strspn(name + n + 1, "0123456789")] == '\0';
}

void imagefile_ranges_name(const char *name, char ret[IMAGEFILE_BESIDE_SIZE])
{
	snprintf(ret, IMAGEFILE_BESIDE_SIZE, "%s" IMAGEFILE_RANGES, name);
}

/* Reads the whole file FD, a C string. 0; -EBADMSG: not one; or -errno. */
static int read_text(int fd, const struct stat *st, char **ret)
{
	CLEANUP_FREE char *text = NULL;
	ssize_t n;

	if (st->st_size == 0 || st->st_size > MAX_RANGES_TEXT)
		return -EBADMSG;
	text = malloc((size_t)st->st_size + 1);
	if (!text)
		return -ENOMEM;
	n = pread(fd, text, (size_t)st->st_size, 0);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	*ret = TAKE_PTR(text);
	return n == st->st_size && strlen(*ret) == (size_t)n ? 0 : -EBADMSG;
}

int imagefile_ranges(int dir_fd, const char *name, struct manifest_piece **ret, size_t *ret_n)
{
	char beside[IMAGEFILE_BESIDE_SIZE];
	CLEANUP_FREE char *text = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	struct stat st;
	int r;

	imagefile_ranges_name(name, beside);
	r = store_file_open(dir_fd, beside, O_RDONLY, &fd, &st);
	if (r == 0)
		r = read_text(fd, &st, &text);
	return r < 0 ? r : manifest_pieces_parse(text, ret, ret_n);
}

static int write_ranges(int dir_fd, const char *name, const struct manifest_piece *pieces, size_t n)
{
	char beside[IMAGEFILE_BESIDE_SIZE], temporary[IMAGEFILE_BESIDE_SIZE];
	CLEANUP_FREE char *text = NULL;
	int r = manifest_pieces_format(pieces, n, &text);

	if (r < 0)
		return r;
	imagefile_ranges_name(name, beside);
	snprintf(temporary, sizeof(temporary), ".%s" IMAGEFILE_RANGES IMAGEFILE_TEMPORARY, name);
	/* A crash may have left a file there. */
	unlinkat(dir_fd, temporary, 0);
	CLEANUP_CLOSE int fd = openat(
		dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	if (fd < 0)
		return -errno;
	r = memfd_write_all(fd, text, strlen(text));
	if (r == 0 && fdatasync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dir_fd, temporary, dir_fd, beside) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir_fd, temporary, 0);
	return r;
}

/* Calls FN for the parts of PIECES in order, each either all in HAVE (THERE) or not at all. PIECES
 * and HAVE are in order. A result of FN other than 0 ends the walk and is returned. */
typedef int (*part_fn)(void *userdata, uint64_t offset, uint64_t size, bool there);

static int foreach_part(const struct manifest_piece *pieces, size_t n,
			const struct manifest_piece *have, size_t n_have, part_fn fn,
			void *userdata)
{
	size_t h = 0;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		uint64_t at = pieces[i].offset, end = at + pieces[i].size;

		while (at < end && r == 0) {
			uint64_t to = end;
			bool there;

			while (h < n_have && have[h].offset + have[h].size <= at)
				h++;
			there = h < n_have && have[h].offset <= at;
			if (there)
				to = MIN_OF(end, have[h].offset + have[h].size);
			else if (h < n_have)
				to = MIN_OF(end, have[h].offset);
			r = fn(userdata, at, to - at, there);
			at = to;
		}
	}
	return r;
}

/* part_fn. */
static int count_missing(void *userdata, uint64_t offset, uint64_t size, bool there)
{
	uint64_t *sum = userdata;

	(void)offset;
	*sum += there ? 0 : size;
	return 0;
}

uint64_t imagefile_missing(int dir_fd, const char *name, const struct manifest_piece *pieces,
			   size_t n)
{
	CLEANUP_FREE struct manifest_piece *have = NULL;
	uint64_t sum = 0;
	size_t n_have = 0;

	if (imagefile_ranges(dir_fd, name, &have, &n_have) < 0)
		n_have = 0;
	foreach_part(pieces, n, have, n_have, count_missing, &sum);
	return sum;
}

struct work {
	struct imagefile_put *put;
	int fd;
	uint64_t end; /* FROM cannot be read from this offset on */
};

/* Reads SIZE bytes, fewer where the file ends or cannot be read. */
static size_t read_some(int fd, uint8_t *to, size_t size, uint64_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, to + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

static int write_some(int fd, const uint8_t *from, size_t size, uint64_t offset)
{
	while (size > 0) {
		ssize_t n = pwrite(fd, from, size, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		from += n;
		offset += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

/* part_fn. */
static int compare_part(void *userdata, uint64_t offset, uint64_t size, bool there)
{
	uint8_t ours[CHUNK], theirs[CHUNK];
	struct work *w = userdata;

	while (there && size > 0 && offset < w->end) {
		size_t part = (size_t)MIN_OF(size, (uint64_t)CHUNK);
		size_t n = read_some(w->put->from, theirs, part, offset);

		if (n < part)
			w->end = MIN_OF(w->end, offset + n);
		if (read_some(w->fd, ours, n, offset) < n || memcmp(ours, theirs, n) != 0)
			return IMAGEFILE_DIFFERS;
		offset += part;
		size -= part;
	}
	return 0;
}

/* part_fn. */
static int copy_part(void *userdata, uint64_t offset, uint64_t size, bool there)
{
	struct work *w = userdata;
	uint8_t bytes[CHUNK];
	int r = 0;

	while (!there && size > 0 && offset < w->end && r == 0) {
		size_t part = (size_t)MIN_OF(size, (uint64_t)CHUNK);
		size_t n = read_some(w->put->from, bytes, part, offset);

		if (n < part)
			w->end = MIN_OF(w->end, offset + n);
		r = write_some(w->fd, bytes, n, offset);
		if (r == 0)
			w->put->added += n;
		offset += part;
		size -= part;
	}
	return r;
}

/* part_fn. Gives back the room of bytes that were written and are in no range, if the file system
 * can do that. */
static int forget_part(void *userdata, uint64_t offset, uint64_t size, bool there)
{
	struct work *w = userdata;

	if (!there)
		(void)!fallocate(w->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
				 (off_t)size);
	return 0;
}

/* Cuts off what lies at END and beyond. */
static void cut_pieces(struct imagefile_put *put, uint64_t end)
{
	size_t kept = 0;

	for (size_t i = 0; i < put->n; i++) {
		struct manifest_piece *p = &put->pieces[i];
		uint64_t left = p->offset < end ? MIN_OF(p->size, end - p->offset) : 0;

		put->cut += p->size - left;
		if (left > 0)
			put->pieces[kept++] = (struct manifest_piece){p->offset, left};
	}
	put->n = kept;
}

/* Writes the ranges of HAVE and the pieces together. */
static int publish(int dir_fd, const char *name, const struct imagefile_put *put,
		   const struct manifest_piece *have, size_t n_have)
{
	CLEANUP_FREE struct manifest_piece *all = calloc(n_have + put->n + 1, sizeof(*all));
	size_t n;

	if (!all)
		return -ENOMEM;
	if (n_have > 0)
		memcpy(all, have, n_have * sizeof(*all));
	if (put->n > 0)
		memcpy(all + n_have, put->pieces, put->n * sizeof(*all));
	n = manifest_pieces_join(all, n_have + put->n);
	return n > MANIFEST_MAX_PIECES ? -E2BIG : write_ranges(dir_fd, name, all, n);
}

/* Compares the pieces with what HAVE says W->fd has, and adds what is missing; results of
 * imagefile_put(). */
static int fill(int dir_fd, const char *name, struct work *w, const struct manifest_piece *have,
		size_t n_have)
{
	struct imagefile_put *put = w->put;
	uint64_t missing = 0;
	int r = foreach_part(put->pieces, put->n, have, n_have, compare_part, w);

	cut_pieces(put, w->end);
	if (r != 0)
		return r;
	foreach_part(put->pieces, put->n, have, n_have, count_missing, &missing);
	if (missing == 0)
		return 0;
	if (missing > put->room)
		return -EDQUOT;
	r = foreach_part(put->pieces, put->n, have, n_have, copy_part, w);
	if (r == 0 && fdatasync(w->fd) < 0)
		r = -errno;
	if (r == 0) {
		cut_pieces(put, w->end);
		r = publish(dir_fd, name, put, have, n_have);
	}
	if (r < 0) {
		put->added = 0;
		foreach_part(put->pieces, put->n, have, n_have, forget_part, w);
	}
	return r;
}

static int put_new(int dir_fd, const char *name, struct imagefile_put *put)
{
	CLEANUP_CLOSE int fd =
		openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	struct work w = {put, fd, UINT64_MAX};
	int r;

	if (fd < 0)
		return -errno;
	r = ftruncate(fd, (off_t)put->file_size) < 0 ? -errno : 0;
	if (r == 0)
		r = fill(dir_fd, name, &w, NULL, 0);
	/* A file without bytes is of no use. */
	if (r < 0 || put->n == 0)
		unlinkat(dir_fd, name, 0);
	return r;
}

int imagefile_put(int dir_fd, const char *name, struct imagefile_put *put)
{
	CLEANUP_FREE struct manifest_piece *have = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	struct stat st;
	size_t n_have = 0;
	int r;

	put->added = put->cut = 0;
	cut_pieces(put, put->file_size);
	if (put->n == 0)
		return 0;
	if (put->file_size > INT64_MAX)
		return -EFBIG;
	r = store_file_open(dir_fd, name, O_RDWR, &fd, &st);
	if (r == -ENOENT)
		return put_new(dir_fd, name, put);
	if (r == -EBADMSG || (r == 0 && (uint64_t)st.st_size != put->file_size))
		return IMAGEFILE_DIFFERS;
	if (r < 0)
		return r;
	r = imagefile_ranges(dir_fd, name, &have, &n_have);
	/* After a crash or on a damaged disk, it is unknown which bytes the file has. */
	if (r == -ENOENT || r == -EBADMSG)
		return IMAGEFILE_DIFFERS;
	if (r < 0)
		return r;
	return fill(dir_fd, name, &(struct work){put, fd, UINT64_MAX}, have, n_have);
}
