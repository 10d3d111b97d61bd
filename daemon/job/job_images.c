/*
 * What a job has to do with the programs that its trace went through: it gives their files to the
 * decoder, which asks by number; remembers what the decoder says it needed; and keeps that in the
 * host's image cache, with the list ID.images beside the bundle. Where nobody knows what is needed
 * (no decoding was wanted, or the decoder died), all of them are kept whole. Called by job.c, and
 * by worker_run in job_decode.
 *
 * All numbers that the decoder says may be anything: it has read what strangers wrote.
 */
#include "daemon/job/job_private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/store/store_file.h"
#include "proto/base.h"
#include "proto/memfd.h"

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

/* Room for one more; lists of pieces that do not join do not grow for ever. */
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

/* What a decoder that died may have said is nothing to go by. */
void job_forget_needed(struct job *job)
{
	for (size_t i = 0; i < job->evidence->manifest.n_images; i++) {
		free(job->needed[i].pieces);
		job->needed[i] = (struct job_needed){0};
	}
	job->needed_capacity = 0;
}

/* All there is of image INDEX. */
static void need_whole(struct job *job, size_t index)
{
	struct job_needed *n = &job->needed[index];

	if (job_image_size(job, index) > 0 && make_room(job, n))
		n->pieces[n->n++] = (struct manifest_piece){0, job_image_size(job, index)};
}

/* What is needed, in the form that the cache takes. */
static int prepare(struct job *job)
{
	size_t n = job->evidence->manifest.n_images;

	if (!job->needed)
		job->needed = calloc(n + 1, sizeof(*job->needed));
	if (!job->needed)
		return -ENOMEM;
	if (!job->needed_known)
		job_forget_needed(job);
	for (size_t i = 0; i < n; i++)
		if (!job->needed_known)
			need_whole(job, i);
		else if (job->needed[i].n > 0)
			job->needed[i].n =
				manifest_pieces_join(job->needed[i].pieces, job->needed[i].n);
	return 0;
}

/* What is kept, while it becomes so. */
struct keeping {
	struct job *job;
	struct imagestore_wish *wishes; /* of images that have bytes, by index */
	size_t n;
	size_t *order; /* of wishes: the smallest first, so that as many as can be are kept */
	int *results;  /* of each wish */
	uint64_t cut;  /* bytes that were gone */
	uint64_t failed;
	int error; /* of the first that failed */
};

static void keeping_done(struct keeping *k)
{
	free(k->wishes);
	free(k->order);
	free(k->results);
}

static uint64_t wanted_bytes(const struct imagestore_wish *w)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < w->n_pieces; i++)
		sum += w->pieces[i].size;
	return sum;
}

static int compare_wishes(const void *a, const void *b, void *userdata)
{
	const struct keeping *k = userdata;
	uint64_t x = wanted_bytes(&k->wishes[*(const size_t *)a]);
	uint64_t y = wanted_bytes(&k->wishes[*(const size_t *)b]);

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

/* What nobody knows to be needed is kept within limits, however much room there is. */
static void leave_out(struct keeping *k)
{
	const struct config *c = k->job->setup.config;
	uint64_t left = c->max_images_bytes;

	for (size_t i = 0; i < k->n && !k->job->needed_known; i++) {
		uint64_t size = k->wishes[k->order[i]].file_size;

		if (size > c->max_image_bytes || size > left)
			k->results[k->order[i]] = -EOVERFLOW;
		else
			left -= size;
	}
}

/* The loop removes old snapshots for what is new to the cache. */
static void ask_for_room(struct keeping *k)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < k->n; i++)
		if (k->results[i] == 0)
			sum += imagestore_missing(k->job->setup.images, &k->wishes[i]);
	job_tell(k->job, JOB_KEEPING, sum);
	/* Without a loop there is the room of before. */
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

		/* One that is not listed could not be kept. */
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
	case -EOVERFLOW: return "they are too large to be kept when it is not known what is needed";
	case -EMLINK: return "too many different files claim to be the same";
	default: return strerror(-error);
	}
}

static void keep_on_disk(struct job *job)
{
	CLEANUP(keeping_done) struct keeping k;
	int r = keeping_init(&k, job);

	if (r == 0) {
		leave_out(&k);
		ask_for_room(&k);
		keep_all(&k);
		r = write_list(&k);
	}
	if (r < 0) {
		imagestore_release(job->setup.images, job->entry.id);
		job_remark(job, "what its bundle needs of programs was not kept: %s", strerror(-r));
		return;
	}
	if (k.failed > 0)
		job_remark(job, "%" PRIu64 " of %zu images were not kept: %s", k.failed, k.n,
			   keep_error(k.error));
	if (k.cut > 0)
		job_remark(job, "%" PRIu64 " bytes of images were gone before they were kept",
			   k.cut);
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
	r = prepare(job);
	if (r == 0 && job->bundle_stored)
		keep_on_disk(job);
	else if (r == 0)
		r = job->recovers ? -ENOTSUP : job_make_whole(job);
	if (r < 0)
		job_remark(job, "its bundle is without what it needs of programs: %s",
			   strerror(-r));
	if (job->needed_refused > 0)
		job_remark(job, "the decoder asked for %" PRIu64 " pieces that no image has",
			   job->needed_refused);
}
