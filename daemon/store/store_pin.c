/*
 * Snapshots that stay until somebody says otherwise. Called by control_store.c in the loop's
 * thread, and by store.c.
 *
 * That one is pinned is an empty file beside it, "ID.pinned": made and removed by one system call,
 * so it is there or not, whatever happens meanwhile, and jobs' threads, which write ID.entry, have
 * no part in it. Recorders that know nothing of it leave it alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/store_private.h"
#include "proto/base.h"

/* The part of the limits that may be pinned. */
#define SHARE 2

static bool part_is_there(int dir_fd, const char *id, enum store_part part)
{
	char name[STORE_NAME_SIZE];
	struct stat st;

	store_file_name(id, part, name);
	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

bool store_pin_is_there(int dir_fd, const char *id)
{
	return part_is_there(dir_fd, id, STORE_PINNED);
}

bool store_pin_is_orphan(int dir_fd, const char *id)
{
	char name[STORE_NAME_SIZE];

	for (int part = 0; part < STORE_PINNED; part++)
		if (part_is_there(dir_fd, id, (enum store_part)part))
			return false;
	store_file_name(id, STORE_PINNED, name);
	unlinkat(dir_fd, name, 0);
	return true;
}

static bool is_pinned(void *userdata, const char *id)
{
	const struct store_item *item = store_item_of(userdata, id);

	return item && item->entry.pinned;
}

void store_get_pins(const struct store *s, struct store_pins *ret)
{
	*ret = (struct store_pins){.max_bytes = s->limits.max_use / SHARE,
				   .max_n = MAX_OF(s->limits.max_entries / SHARE, 1u)};
	for (size_t i = 0; i < s->n; i++) {
		if (!s->items[i].entry.pinned)
			continue;
		ret->n++;
		ret->bytes += store_item_bytes(&s->items[i]);
	}
	if (ret->n > 0)
		ret->bytes += imagestore_bytes_of(s->images, is_pinned, (void *)(uintptr_t)s);
	ret->left_bytes = s->limits.max_use - MIN_OF(ret->bytes, s->limits.max_use);
}

static void *sync_later(void *fd)
{
	(void)fsync((int)(intptr_t)fd);
	close((int)(intptr_t)fd);
	return NULL;
}

/* The name's way to a busy disk may take seconds, which the loop does not have. */
static void sync_directory(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pthread_t thread;

	if (fd < 0)
		return;
	if (pthread_create(&thread, NULL, sync_later, (void *)(intptr_t)fd) == 0)
		pthread_detach(thread);
	else
		close(fd);
}

static int mark(int dir_fd, const char *id, bool pinned)
{
	char name[STORE_NAME_SIZE];
	int fd, r = 0;

	store_file_name(id, STORE_PINNED, name);
	if (pinned) {
		fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
			    0640);
		r = fd < 0 ? -errno : 0;
		close_fd(fd);
	} else if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT) {
		r = -errno;
	}
	if (r == 0)
		sync_directory(dir_fd);
	return r;
}

/* Whether ITEM, not pinned yet, may be. */
static int check(struct store *s, struct store_item *item, struct store_pins *ret_pins)
{
	if (!entry_ended(&item->entry))
		return -EBUSY;
	if (item->fds[STORE_BUNDLE] >= 0 || item->fds[STORE_REPORT] >= 0 ||
	    store_item_bytes(item) == 0)
		return -ENODATA;
	/* As if it were: images that others have pinned already cost nothing. */
	item->entry.pinned = true;
	store_get_pins(s, ret_pins);
	item->entry.pinned = false;
	return ret_pins->bytes > ret_pins->max_bytes || ret_pins->n > ret_pins->max_n ? -EDQUOT : 0;
}

int store_pin(struct store *s, const char *id, bool pinned, struct store_pins *ret_pins)
{
	struct store_item *item = store_item_of(s, id);
	int r = 0;

	if (!item)
		return -ENOENT;
	if (item->entry.pinned == pinned)
		return 0;
	if (pinned)
		r = check(s, item, ret_pins);
	if (r == 0)
		r = mark(s->dir_fd, id, pinned);
	if (r == 0)
		item->entry.pinned = pinned;
	return r;
}
