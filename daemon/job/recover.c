/*
 * Snapshots of the last run -> jobs. Those that systemd kept come first: with them are the programs
 * that they need. Called by the manager.
 */
#include "daemon/job/recover.h"

#include <string.h>

#include "daemon/base/log.h"
#include "daemon/store/store_file.h"
#include "proto/base.h"

static size_t take_up(struct jobs *jobs, const struct entry *e, struct job_found *found)
{
	bool stored = found->stored;
	int r = jobs_take_up(jobs, e, found);

	job_found_done(found);
	if (r == 0)
		log_line(LOG_NOTICE, e->id,
			 "snapshot %s was not decoded when the recorder ended: taken up", e->id);
	else
		log_line(LOG_WARNING, e->id, "snapshot %s was not decoded and is not taken up: %s",
			 e->id,
			 r != -EBUSY ? strerror(-r)
			 : stored    ? "there are too many; `ptsnapctl decode' does it"
				     : "there are too many, and the disk has not got it");
	return r == 0;
}

/* The images change hands. */
static int move_images(struct fdstore_item *from, struct job_found *to)
{
	to->images = calloc(from->n_images + 1, sizeof(*to->images));
	if (!to->images)
		return -ENOMEM;
	for (size_t i = 0; i < from->n_images; i++)
		to->images[to->n_images++] = (struct job_found_image){
			from->images[i].index, take_fd(&from->images[i].fd), from->images[i].size};
	return 0;
}

static size_t take_kept(struct jobs *jobs, struct store *store, struct fdstore_item *item)
{
	struct job_found found = {.again = item->again};
	const struct entry *listed = NULL;
	struct entry e;

	/* It becomes the name of files. */
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
	/* It was done, and only not dropped any more. */
	if (listed && e.report_bytes != ENTRY_ABSENT) {
		fdstore_drop(item->id, item->again);
		return 0;
	}
	found.stored = listed && e.bundle_bytes != ENTRY_ABSENT;
	if (move_images(item, &found) < 0)
		return 0;
	found.bundle_fd = take_fd(&item->bundle_fd);
	if (take_up(jobs, &e, &found))
		return 1;
	/* What systemd has of it is empty now. */
	fdstore_drop(item->id, item->again);
	return 0;
}

static bool is_kept(const struct fdstore_item *found, size_t n, const char *id)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(found[i].id, id) == 0)
			return true;
	return false;
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

		if (is_kept(found, n, copy.id) ||
		    store_open(store, e, STORE_BUNDLE, &on_disk.bundle_fd, &size) < 0)
			continue;
		taken += take_up(jobs, &copy, &on_disk);
	}
	return taken;
}
