/*
 * Gives the decoder the files of programs, remembers which pieces it needed, and keeps those: in
 * the host's image cache with the list ID.images beside the bundle, or in the bundle itself.
 *
 * Where nobody knows what is needed (no decoding was wanted, or the decoder failed), files are kept
 * whole. Any number that the decoder sends may be wrong, as the decoder reads what strangers wrote.
 * A snapshot that stays in memory has no list beside it, so its bundle is written again with all
 * that it needs.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/job/job_private.h"
#include "daemon/store/store_file.h"
#include "proto/base.h"
#include "proto/bundle/bundle.h"
#include "proto/memfd.h"

#define UNTOUCHED "no code of it was needed"
#define LEFT_OUT  "left out: the snapshot is in memory only, and its limit for images is used up"

uint64_t job_image_size(const struct job *job, size_t index)
{
	const struct evidence *e = job->evidence;

	return e->images[index].fd >= 0 && !e->manifest.images[index].missing
		       ? e->images[index].size
		       : 0;
}

int job_begin_images(struct job *job)
{
	size_t n = job->evidence->manifest.n_images;
	int r = 0;

	job->needed = calloc(n + 1, sizeof(*job->needed));
	if (!job->needed)
		return -ENOMEM;
	for (size_t i = 0; i < n && r == 0; i++) {
		int *fd = &job->evidence->images[i].fd, reopened;

		if (*fd < 0 || (fcntl(*fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
			continue;
		r = memfd_reopen_readonly(*fd, &reopened);
		if (r == 0) {
			close_fd(*fd);
			*fd = reopened;
		}
	}
	return r;
}

int job_on_image(void *userdata, uint32_t image, int *ret_fd, uint64_t *ret_size)
{
	const struct job *job = userdata;

	if (image >= job->evidence->manifest.n_images || job_image_size(job, image) == 0)
		return -ENOENT;
	*ret_fd = job->evidence->images[image].fd;
	*ret_size = job_image_size(job, image);
	return 0;
}

int job_on_debug(void *userdata, uint32_t image, const uint8_t *build_id, size_t id_size,
		 int *ret_fd, uint64_t *ret_size)
{
	struct job *job = userdata;
	const struct manifest *m = &job->evidence->manifest;
	const char *path = image < m->n_images ? m->images[image].path : NULL;

	return debug_files_find(&job->debug_files, build_id, id_size, path, ret_fd, ret_size);
}

/* Makes room for one more piece; false: the limits do not allow it. */
static bool make_room(struct job *job, struct job_needed *n)
{
	size_t more = n->capacity ? 2 * n->capacity : 16;

	if (n->n < n->capacity)
		return true;
	if (n->n > 0)
		n->n = manifest_pieces_join(n->pieces, n->n);
	if (n->n < n->capacity / 2)
		return true;
	if (more > MANIFEST_MAX_PIECES ||
	    job->needed_capacity + more - n->capacity > JOB_MAX_NEEDED)
		return n->n < n->capacity;
	if (ARRAY_FIT(n->pieces, more) < 0)
		return n->n < n->capacity;
	job->needed_capacity += more - n->capacity;
	n->capacity = more;
	return true;
}

void job_on_keep(void *userdata, uint32_t image, uint64_t offset, uint64_t size)
{
	struct job *job = userdata;
	struct job_needed *needed;
	uint64_t end;

	if (!job->needed || image >= job->evidence->manifest.n_images || size == 0 ||
	    offset >= job_image_size(job, image)) {
		job->needed_refused++;
		return;
	}
	end = job_image_size(job, image);
	needed = &job->needed[image];
	if (needed->n >= MANIFEST_MAX_PIECES || !make_room(job, needed))
		job->needed_refused++;
	else
		needed->pieces[needed->n++] =
			(struct manifest_piece){offset, MIN_OF(size, end - offset)};
}

void job_forget_needed(struct job *job)
{
	for (size_t i = 0; i < job->evidence->manifest.n_images; i++) {
		free(job->needed[i].pieces);
		job->needed[i] = (struct job_needed){0};
	}
	job->needed_capacity = 0;
}

/* Joins the pieces of each image, or makes one piece of the whole file if nobody knows what is
 * needed. */
static int join_needed(struct job *job)
{
	size_t n = job->evidence->manifest.n_images;

	if (!job->needed)
		job->needed = calloc(n + 1, sizeof(*job->needed));
	if (!job->needed)
		return -ENOMEM;
	if (!job->needed_known)
		job_forget_needed(job);
	for (size_t i = 0; i < n; i++) {
		struct job_needed *needed = &job->needed[i];

		if (job->needed_known && needed->n > 0)
			needed->n = manifest_pieces_join(needed->pieces, needed->n);
		else if (!job->needed_known && job_image_size(job, i) > 0 && make_room(job, needed))
			needed->pieces[needed->n++] =
				(struct manifest_piece){0, job_image_size(job, i)};
	}
	return 0;
}

/* The images of one job on their way into the cache. */
struct keeping {
	struct job *job;
	struct imagestore_wish *wishes; /* of images that have bytes, by index */
	size_t n;
	size_t *order; /* indexes of wishes, the smallest wish first: so most wishes fit */
	int *results;  /* of each wish: 0 or -errno */
	uint64_t cut;  /* bytes that were gone */
	uint64_t failed;
	int error; /* of the first wish that failed */
};

static void keeping_done(struct keeping *k)
{
	free(k->wishes);
	free(k->order);
	free(k->results);
}

static uint64_t pieces_bytes(const struct manifest_piece *pieces, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += pieces[i].size;
	return sum;
}

static int compare_wishes(const void *a, const void *b, void *userdata)
{
	const struct keeping *k = userdata;
	const struct imagestore_wish *w = &k->wishes[*(const size_t *)a];
	const struct imagestore_wish *v = &k->wishes[*(const size_t *)b];
	uint64_t x = pieces_bytes(w->pieces, w->n_pieces), y = pieces_bytes(v->pieces, v->n_pieces);

	return x < y ? -1 : x > y;
}

static int keeping_init(struct keeping *k, struct job *job)
{
	const struct manifest *m = &job->evidence->manifest;

	*k = (struct keeping){.job = job};
	k->wishes = calloc(m->n_images + 1, sizeof(*k->wishes));
	k->order = calloc(m->n_images + 1, sizeof(*k->order));
	k->results = calloc(m->n_images + 1, sizeof(*k->results));
	if (!k->wishes || !k->order || !k->results)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->n_images; i++) {
		if (job_image_size(job, i) == 0)
			continue;
		k->order[k->n] = k->n;
		k->wishes[k->n++] = (struct imagestore_wish){
			.id = job->entry.id,
			.image = &m->images[i],
			.index = i,
			.fd = job->evidence->images[i].fd,
			.file_size = job_image_size(job, i),
			.pieces = job->needed[i].pieces,
			.n_pieces = job->needed[i].n,
		};
	}
	qsort_r(k->order, k->n, sizeof(*k->order), compare_wishes, k);
	return 0;
}

/* Decides which images are kept, and has the loop remove old snapshots to make room for them. */
static void choose_images(struct keeping *k)
{
	const struct config *c = k->job->setup.config;
	uint64_t left = c->max_images_bytes, sum = 0;

	/* Files that may not be needed are kept within limits, however much room there is. */
	for (size_t i = 0; i < k->n && !k->job->needed_known; i++) {
		uint64_t size = k->wishes[k->order[i]].file_size;

		if (size > c->max_image_bytes || size > left)
			k->results[k->order[i]] = -EOVERFLOW;
		else
			left -= size;
	}
	for (size_t i = 0; i < k->n; i++)
		if (k->results[i] == 0)
			sum += imagestore_missing(k->job->setup.images, &k->wishes[i]);
	job_tell(k->job, JOB_KEEPING, sum);
	/* Without a loop there is still the room that was free before. */
	(void)job_wait(k->job, false);
}

static void keep_all(struct keeping *k)
{
	for (size_t i = 0; i < k->n; i++) {
		struct imagestore_wish *w = &k->wishes[k->order[i]];
		int r = k->results[k->order[i]];

		if (r == 0 && w->n_pieces > 0)
			r = imagestore_keep(k->job->setup.images, w);
		else if (r == 0)
			imagefile_name(w->image, w->file_size, 0, w->name);
		if (r == 0 && w->n_pieces == 0 && w->cut > 0)
			r = -ENODATA;
		k->results[k->order[i]] = r;
		k->cut += w->cut;
		k->failed += r < 0;
		if (r < 0 && !k->error)
			k->error = r;
	}
}

static int write_list(const struct keeping *k)
{
	CLEANUP(kept_done) struct kept kept;
	struct job *job = k->job;
	int r = 0;

	kept_init(&kept);
	for (size_t i = 0; i < k->n && r == 0; i++) {
		const struct imagestore_wish *w = &k->wishes[i];

		if (k->results[i] == 0)
			r = kept_add(&kept, w->index, w->name, w->file_size, w->pieces,
				     w->n_pieces);
	}
	if (r == 0)
		r = imagestore_sync(job->setup.images);
	return r < 0 ? r : store_file_put_kept(job->setup.store_fd, job->entry.id, &kept);
}

static const char *keep_error(int error)
{
	switch (error) {
	case -EDQUOT: return "no room is left for them (MaxUse=)";
	case -ENODATA: return "their bytes are gone";
	case -EOVERFLOW: return "they are too large to keep whole, and what is needed is unknown";
	case -EMLINK: return "too many different files claim to be the same";
	default: return strerror(-error);
	}
}

static void keep_on_disk(struct job *job)
{
	CLEANUP(keeping_done) struct keeping k;
	int r = keeping_init(&k, job);

	if (r == 0) {
		choose_images(&k);
		keep_all(&k);
		r = write_list(&k);
	}
	if (r < 0) {
		imagestore_release(job->setup.images, job->entry.id);
		job_remark(job, "the images that its bundle needs were not kept: %s", strerror(-r));
		return;
	}
	if (k.failed > 0)
		job_remark(job, "%" PRIu64 " of %zu images were not kept: %s", k.failed, k.n,
			   keep_error(k.error));
	if (k.cut > 0)
		job_remark(job, "%" PRIu64 " bytes of images were gone before they were kept",
			   k.cut);
}

/* The image has no bytes in the bundle, for the reason WHY. */
static int set_missing(struct manifest_image *image, const char *why)
{
	image->elsewhere = false;
	free(image->missing);
	image->missing = strdup(why);
	return image->missing ? 0 : -ENOMEM;
}

/* Copies the pieces of image INDEX, one behind the other, into a new memory file, and cuts them to
 * what could be read. The copy is needed because a file can shrink, and the size of a bundle's
 * member stands before its bytes. */
static int copy_pieces(struct job *job, size_t index, int *ret_fd, uint64_t *ret_bytes)
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

/* Adds what is needed of image INDEX to the bundle, within *ROOM bytes. */
static int add_image(struct job *job, struct bundle_writer *w, size_t index, uint64_t *room)
{
	struct manifest_image *image = &job->evidence->manifest.images[index];
	const struct job_needed *needed = &job->needed[index];
	CLEANUP_CLOSE int fd = -EBADF;
	uint64_t bytes = 0, copied;
	char name[32];
	int r = 0;

	if (!image->elsewhere)
		return 0;
	if (pieces_bytes(needed->pieces, needed->n) > *room)
		return set_missing(image, LEFT_OUT);
	if (needed->n > 0)
		r = copy_pieces(job, index, &fd, &bytes);
	if (r < 0)
		return r;
	if (bytes == 0)
		return set_missing(image, UNTOUCHED);
	*room -= bytes;
	image->elsewhere = false;
	image->size = bytes;
	image->offset = 0;
	free(TAKE_PTR(image->pieces));
	if (needed->n != 1 || needed->pieces[0].offset != 0 || bytes != image->file_size)
		r = manifest_pieces_format(needed->pieces, needed->n, &image->pieces);
	snprintf(name, sizeof(name), "images/%zu", index);
	return r < 0 ? r : bundle_write_file(w, name, fd, 0, bytes, &copied);
}

/* Writes the bundle again, with what is needed of images in it. */
static int make_whole(struct job *job)
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

void job_keep_images(struct job *job)
{
	size_t with_bytes = 0;
	int r;

	for (size_t i = 0; i < job->evidence->manifest.n_images; i++)
		with_bytes += job_image_size(job, i) > 0;
	if (with_bytes == 0)
		return;
	job_tell_progress(job, JOB_WRITE, JOB_NO_PERCENT);
	r = join_needed(job);
	if (r == 0 && job->bundle_stored)
		keep_on_disk(job);
	else if (r == 0)
		r = job->recovers ? -ENOTSUP : make_whole(job);
	if (r < 0)
		job_remark(job, "its bundle lacks the images that it needs: %s", strerror(-r));
	if (job->needed_refused > 0)
		job_remark(job, "the decoder asked for %" PRIu64 " pieces that no image has",
			   job->needed_refused);
}
