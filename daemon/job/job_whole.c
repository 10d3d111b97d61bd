/*
 * A snapshot that lies in memory only has no list beside it: when it has been decoded, what is
 * needed of programs goes into its bundle, which then needs nothing else. Called by job_images.c.
 *
 * Bytes of strangers' files are first copied into a memory file, as a file may shrink meanwhile and
 * a member's size stands before its bytes.
 */
#include "daemon/job/job_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/bundle/bundle.h"
#include "proto/memfd.h"

#define UNTOUCHED "no code of it was needed"
#define LEFT_OUT  "left out: the snapshot is in memory only, and its limit for images is used up"

static int set_text(char **to, const char *text)
{
	free(*to);
	*to = strdup(text);
	return *to ? 0 : -ENOMEM;
}

/* The pieces of image INDEX, one behind the other, in a new memory file; cut to what is left. */
static int gather(struct job *job, size_t index, int *ret_fd, uint64_t *ret_bytes)
{
	struct job_needed *needed = &job->needed[index];
	int from = job->evidence->images[index].fd;
	CLEANUP_CLOSE int fd = -EBADF;
	size_t kept = 0;
	int r = memfd_new("ptsnap-image", 0, &fd);

	*ret_bytes = 0;
	for (size_t i = 0; i < needed->n && r == 0; i++) {
		struct manifest_piece p = needed->pieces[i];
		struct memfd_copied copied;

		r = memfd_copy_readable(from, p.offset, p.size, fd, &copied);
		*ret_bytes += copied.bytes;
		if (copied.bytes > 0)
			needed->pieces[kept++] = (struct manifest_piece){p.offset, copied.bytes};
	}
	needed->n = kept;
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

/* The manifest of an image whose bytes are in the bundle. */
static int describe(struct job *job, size_t index, uint64_t bytes)
{
	struct manifest_image *image = &job->evidence->manifest.images[index];
	const struct job_needed *needed = &job->needed[index];
	bool whole = needed->n == 1 && needed->pieces[0].offset == 0 && bytes == image->file_size;

	image->elsewhere = false;
	image->size = bytes;
	image->offset = 0;
	free(TAKE_PTR(image->pieces));
	return whole ? 0 : manifest_pieces_format(needed->pieces, needed->n, &image->pieces);
}

static uint64_t wanted(const struct job_needed *n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n->n; i++)
		sum += n->pieces[i].size;
	return sum;
}

static int add_image(struct job *job, struct bundle_writer *w, size_t index, uint64_t *room)
{
	struct manifest_image *image = &job->evidence->manifest.images[index];
	CLEANUP_CLOSE int fd = -EBADF;
	uint64_t bytes = 0, copied;
	char name[32];
	int r = 0;

	if (!image->elsewhere)
		return 0;
	if (wanted(&job->needed[index]) > *room) {
		image->elsewhere = false;
		return set_text(&image->missing, LEFT_OUT);
	}
	if (job->needed[index].n > 0)
		r = gather(job, index, &fd, &bytes);
	if (r == 0 && bytes == 0) {
		image->elsewhere = false;
		return set_text(&image->missing, UNTOUCHED);
	}
	*room -= bytes;
	snprintf(name, sizeof(name), "images/%zu", index);
	if (r == 0)
		r = describe(job, index, bytes);
	return r < 0 ? r : bundle_write_file(w, name, fd, 0, bytes, &copied);
}

int job_make_whole(struct job *job)
{
	struct manifest *m = &job->evidence->manifest;
	uint64_t room = job->setup.config->max_images_bytes;
	CLEANUP_CLOSE int fd = -EBADF;
	struct bundle_writer w;
	int r = memfd_new("ptsnap-bundle", 0, &fd);

	if (r == 0)
		r = memfd_copy(job->bundle_fd, 0, job->members_bytes, fd);
	bundle_writer_init(&w, fd);
	w.bytes = job->members_bytes;
	for (size_t i = 0; i < m->n_images && r == 0; i++)
		r = add_image(job, &w, i, &room);
	if (r == 0)
		r = bundle_write_end(&w, m);
	if (r == 0)
		r = memfd_seal(fd);
	if (r < 0)
		return r;
	close_fd(job->bundle_fd);
	job->bundle_fd = take_fd(&fd);
	job->entry.bundle_bytes = w.bytes;
	return 0;
}
