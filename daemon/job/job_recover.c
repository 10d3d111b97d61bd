/*
 * A snapshot whose recorder ended before it was decoded: its bundle and what was kept open of
 * programs, taken up again in the place of what job_gather() makes. Called by job.c.
 */
#include "daemon/job/job_private.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/fdstore.h"
#include "daemon/store/store_file.h"
#include "proto/bundle/bundle.h"

void job_found_done(struct job_found *found)
{
	found->bundle_fd = close_fd(found->bundle_fd);
	for (size_t i = 0; i < found->n_images; i++)
		close_fd(found->images[i].fd);
	free(found->images);
	found->images = NULL;
	found->n_images = 0;
}

void job_take_over(struct job *job, struct job_found *found)
{
	job->found = *found;
	job->recovers = true;
	job->bundle_fd = take_fd(&job->found.bundle_fd);
	job->bundle_stored = found->stored;
	found->bundle_fd = -EBADF;
	found->images = NULL;
	found->n_images = 0;
}

/* A copy, as the archive that it was read from goes. */
static int copy_manifest(const struct manifest *from, struct manifest *ret)
{
	CLEANUP(bytes_out_done) struct bytes_out text;
	int r;

	bytes_out_init(&text, MANIFEST_MAX_TEXT);
	r = manifest_write(from, &text);
	return r < 0 ? r : manifest_read(text.data, text.size, ret);
}

/* Nothing of the archive is used but its manifest; the decoder reads the rest. */
static int read_manifest(int bundle_fd, struct manifest *ret)
{
	CLEANUP(bundle_freep) struct bundle *bundle = NULL;
	int r = bundle_open(bundle_fd, &bundle);

	return r < 0 ? r : copy_manifest(bundle_manifest(bundle), ret);
}

/* What a bundle says, without bytes: those of images come from elsewhere, all others are in it. */
static int make_evidence(const struct manifest *m, struct evidence **ret)
{
	struct evidence *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->images = calloc(m->n_images + 1, sizeof(*e->images));
	e->texts = calloc(m->n_texts + 1, sizeof(*e->texts));
	if (!e->images || !e->texts) {
		evidence_free(e);
		return -ENOMEM;
	}
	e->manifest = *m;
	e->images_capacity = m->n_images;
	e->texts_capacity = m->n_texts;
	for (size_t i = 0; i < m->n_images; i++)
		e->images[i].fd = -EBADF;
	*ret = e;
	return 0;
}

static int read_evidence(struct job *job)
{
	struct manifest m;
	int r;

	manifest_init(&m);
	r = read_manifest(job->bundle_fd, &m);
	if (r == 0)
		r = make_evidence(&m, &job->evidence);
	if (r < 0)
		manifest_done(&m);
	return r;
}

static void take_images(struct job *job)
{
	struct evidence *e = job->evidence;

	for (size_t i = 0; i < job->found.n_images; i++) {
		struct job_found_image *image = &job->found.images[i];

		if (image->index >= e->manifest.n_images || e->images[image->index].fd >= 0)
			continue;
		e->images[image->index].fd = take_fd(&image->fd);
		e->images[image->index].size = image->size;
	}
}

static void take_text(char *ret, size_t size, const char *text)
{
	if (text && strlen(text) < size)
		strcpy(ret, text);
}

/* What only the bundle knows, as its entry did not reach the disk. */
static void describe_asker(struct entry *e, const struct manifest *m)
{
	take_text(e->trigger, sizeof(e->trigger), m->trigger_kind);
	take_text(e->name, sizeof(e->name), m->trigger_name);
	take_text(e->reason, sizeof(e->reason), m->reason);
	take_text(e->unit, sizeof(e->unit), m->unit);
	take_text(e->sender_unit, sizeof(e->sender_unit), m->sender_unit);
	take_text(e->coredump, sizeof(e->coredump), m->coredump);
	take_text(e->boot_id, sizeof(e->boot_id), m->boot_id);
	for (size_t i = 0; i < m->n_labels; i++)
		(void)labels_add(&e->labels, m->labels[i].key, m->labels[i].value);
	e->pid = m->sender_pid;
	e->uid = m->sender_uid;
	if (m->realtime_ns != MANIFEST_ABSENT)
		e->realtime_usec = m->realtime_ns / 1000;
}

static void describe(struct job *job)
{
	const struct manifest *m = &job->evidence->manifest;
	struct entry *e = &job->entry;

	if (!*e->trigger || strcmp(e->trigger, STORE_SCAN_NO_TRIGGER) == 0)
		describe_asker(e, m);
	e->raw_bytes = 0;
	for (size_t i = 0; i < m->n_cpus; i++)
		e->raw_bytes += m->cpus[i].bytes;
}

/* The next run is to know that this is the second time. */
static void keep_again(struct job *job)
{
	if (!job->found.again)
		job_keep_for_next(job);
	fdstore_drop(job->entry.id, false);
}

/* What the last run had open, and nobody kept. */
static void tell_lost_images(struct job *job)
{
	const struct manifest *m = &job->evidence->manifest;
	size_t lost = 0;

	for (size_t i = 0; i < m->n_images; i++)
		lost += m->images[i].elsewhere && job->evidence->images[i].fd < 0;
	if (lost > 0)
		job_remark(job,
			   "%zu images went with the recorder before it kept what its bundle "
			   "needs of programs",
			   lost);
}

/* Said on the disk before it is decoded: should that end us as well, it is not tried once more. */
static void say_so(struct job *job)
{
	*job->entry.error = '\0';
	job_remark(job, ENTRY_TAKEN_UP);
	job->entry.state = ENTRY_DECODING;
	job_store_entry(job);
}

int job_recover(struct job *job)
{
	struct stat st;
	int r = fstat(job->bundle_fd, &st) < 0 ? -errno : 0;

	if (r == 0)
		r = read_evidence(job);
	if (r < 0)
		return job_fail(job, r, "what the last recorder left of it cannot be read: %s",
				strerror(-r));
	take_images(job);
	job->entry.bundle_bytes = (uint64_t)st.st_size;
	describe(job);
	keep_again(job);
	say_so(job);
	tell_lost_images(job);
	r = job->bundle_stored ? 0 : job_store_bundle(job);
	if (r < 0 || !job->found.again)
		return r;
	/* By hand it can be decoded still. */
	r = job_fail(job, -EIO, "decoding it has ended the recorder twice");
	job_keep_images(job);
	return r;
}

void job_keep_for_next(struct job *job)
{
	const struct evidence *e = job->evidence;
	struct fdstore_item item = {.again = job->recovers, .bundle_fd = job->bundle_fd};

	strcpy(item.id, job->entry.id);
	item.images = calloc(e->manifest.n_images + 1, sizeof(*item.images));
	if (!item.images)
		return;
	for (uint32_t i = 0; i < e->manifest.n_images; i++)
		if (job_image_size(job, i) > 0)
			item.images[item.n_images++] =
				(struct fdstore_image){i, e->images[i].fd, job_image_size(job, i)};
	fdstore_keep(&item);
	free(item.images);
}
