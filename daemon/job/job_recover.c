/*
 * Takes up snapshots that the last run of the recorder left undecoded, and has systemd keep those
 * of this run.
 *
 * recover_all() finds them in the loop's thread: those that systemd kept, which come with the
 * images that they need, and then those whose bundle is on the disk. job_recover() makes a job's
 * evidence from a bundle, in the job's thread.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/log.h"
#include "daemon/job/job_private.h"
#include "daemon/job/jobs.h"
#include "daemon/store/fdstore.h"
#include "daemon/store/store_file.h"
#include "proto/base.h"
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
	assert(!job->started && !job->recovers);
	job->found = *found;
	job->recovers = true;
	job->bundle_fd = take_fd(&job->found.bundle_fd);
	job->bundle_stored = found->stored;
	found->bundle_fd = -EBADF;
	found->images = NULL;
	found->n_images = 0;
}

/* Copies the manifest out of the archive; the decoder reads the rest. */
static int read_manifest(int bundle_fd, struct manifest *ret)
{
	CLEANUP(bytes_out_done) struct bytes_out text;
	CLEANUP(bundle_freep) struct bundle *bundle = NULL;
	int r;

	bytes_out_init(&text, MANIFEST_MAX_TEXT);
	r = bundle_open(bundle_fd, &bundle);
	if (r == 0)
		r = manifest_write(bundle_manifest(bundle), &text);
	return r < 0 ? r : manifest_read(text.data, text.size, ret);
}

/* Makes evidence without bytes: the bundle has all bytes but those of images. M is taken over on
 * success. */
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

/* The manifest of the bundle, and the images that were kept with it. */
static int read_evidence(struct job *job)
{
	struct evidence *e;
	struct manifest m;
	int r;

	manifest_init(&m);
	r = read_manifest(job->bundle_fd, &m);
	if (r == 0)
		r = make_evidence(&m, &job->evidence);
	if (r < 0) {
		manifest_done(&m);
		return r;
	}
	e = job->evidence;
	for (size_t i = 0; i < job->found.n_images; i++) {
		struct job_found_image *image = &job->found.images[i];

		if (image->index >= e->manifest.n_images || e->images[image->index].fd >= 0)
			continue;
		e->images[image->index].fd = take_fd(&image->fd);
		e->images[image->index].size = image->size;
	}
	return 0;
}

static void take_text(char *ret, size_t size, const char *text)
{
	if (text && strlen(text) < size)
		strcpy(ret, text);
}

/* Fills an entry from the bundle, where no entry reached the disk. */
static void describe_trigger(struct entry *e, const struct manifest *m)
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

int job_recover(struct job *job)
{
	struct entry *e = &job->entry;
	const struct manifest *m;
	struct stat st;
	size_t lost = 0;
	int r = fstat(job->bundle_fd, &st) < 0 ? -errno : 0;

	if (r == 0)
		r = read_evidence(job);
	if (r < 0)
		return job_fail(job, r, "the bundle of the last recorder cannot be read: %s",
				strerror(-r));
	m = &job->evidence->manifest;
	e->bundle_bytes = (uint64_t)st.st_size;
	if (!*e->trigger || strcmp(e->trigger, STORE_SCAN_NO_TRIGGER) == 0)
		describe_trigger(e, m);
	e->raw_bytes = 0;
	for (size_t i = 0; i < m->n_cpus; i++)
		e->raw_bytes += m->cpus[i].bytes;
	/* The item that systemd keeps and the entry on the disk both say that this is the second
	 * try. If decoding ends this recorder, too, nobody tries a third time. */
	if (!job->found.again)
		job_keep_for_next(job);
	fdstore_drop(e->id, false);
	*e->error = '\0';
	job_remark(job, ENTRY_TAKEN_UP);
	e->state = ENTRY_DECODING;
	store_file_put_entry(job->setup.store_fd, e);
	for (size_t i = 0; i < m->n_images; i++)
		lost += m->images[i].elsewhere && job->evidence->images[i].fd < 0;
	if (lost > 0)
		job_remark(job,
			   "%zu images were lost with the last recorder before it kept what its "
			   "bundle needs of programs",
			   lost);
	r = job->bundle_stored ? 0 : job_store_bundle(job);
	if (r < 0 || !job->found.again)
		return r;
	/* The user can still decode the bundle. */
	r = job_fail(job, -EIO, "decoding it has ended the recorder twice");
	job_keep_images(job);
	return r;
}

/* Starts a job for snapshot E. Returns 1, or 0 if there is no job. */
static size_t take_up(struct jobs *jobs, const struct entry *e, struct job_found *found)
{
	bool stored = found->stored;
	int r = jobs_take_up(jobs, e, found);

	job_found_done(found);
	if (r == 0)
		log_line(LOG_NOTICE, e->id,
			 "snapshot %s was not decoded when the recorder ended: decoding it now",
			 e->id);
	else
		log_line(LOG_WARNING, e->id,
			 "snapshot %s was not decoded, and is not decoded now: %s", e->id,
			 r != -EBUSY ? strerror(-r)
			 : stored    ? "there are too many; `ptsnapctl decode' can decode it"
				     : "there are too many, and its bundle is not on the disk");
	return r == 0;
}

/* Takes up one snapshot that systemd kept. Returns 1, or 0 if there is no job. */
static size_t take_kept(struct jobs *jobs, struct store *store, struct fdstore_item *item)
{
	struct job_found found = {.again = item->again};
	const struct entry *listed = NULL;
	struct entry e;

	/* The id becomes the name of files. */
	if (!store_scan_is_id(item->id)) {
		fdstore_drop(item->id, item->again);
		return 0;
	}
	entry_init(&e);
	strcpy(e.id, item->id);
	if (store_find(store, item->id, &listed) == 0 && strcmp(listed->id, item->id) == 0)
		e = *listed;
	else
		listed = NULL;
	/* The last recorder finished the snapshot and ended before it told systemd. */
	if (listed && e.report_bytes != ENTRY_ABSENT) {
		fdstore_drop(item->id, item->again);
		return 0;
	}
	found.stored = listed && e.bundle_bytes != ENTRY_ABSENT;
	found.images = calloc(item->n_images + 1, sizeof(*found.images));
	if (!found.images)
		return 0;
	for (size_t i = 0; i < item->n_images; i++)
		found.images[found.n_images++] = (struct job_found_image){
			item->images[i].index, take_fd(&item->images[i].fd), item->images[i].size};
	found.bundle_fd = take_fd(&item->bundle_fd);
	if (take_up(jobs, &e, &found))
		return 1;
	/* The socket that systemd keeps is empty now. */
	fdstore_drop(item->id, item->again);
	return 0;
}

size_t recover_all(struct jobs *jobs, struct store *store, struct fdstore_item *found, size_t n)
{
	const struct entry *e;
	size_t at = 0, taken = 0;

	for (size_t i = 0; i < n; i++)
		taken += take_kept(jobs, store, &found[i]);
	while ((e = store_next_unfinished(store, &at))) {
		struct job_found on_disk = {.bundle_fd = -EBADF, .stored = true};
		const struct entry copy = *e;
		uint64_t size;
		size_t i = 0;

		/* The snapshots that systemd kept have been taken up already. */
		while (i < n && strcmp(found[i].id, copy.id) != 0)
			i++;
		if (i < n || store_open(store, e, STORE_BUNDLE, &on_disk.bundle_fd, &size) < 0)
			continue;
		taken += take_up(jobs, &copy, &on_disk);
	}
	return taken;
}
