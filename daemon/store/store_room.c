/*
 * Limits of the store: what is removed to make room, and what is pinned and never removed.
 *
 * The empty file ID.pinned says that a snapshot is pinned. One system call makes or removes the
 * file, so a crash cannot leave it half done, and jobs' threads, which write ID.entry, have no part
 * in it. A recorder that does not know such files leaves them alone.
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

/* New images may replace old snapshots in one part of this many parts of the quota. */
#define IMAGES_PART 4u
/* One part of this many parts of each limit may be pinned. */
#define PINNED_PART 2

static bool may_go(const struct store_item *item)
{
	return entry_ended(&item->entry) && !item->entry.pinned;
}

/* The oldest item that may be removed; s->n: none. */
static size_t oldest(const struct store *s)
{
	size_t i = 0;

	while (i < s->n && !may_go(&s->items[i]))
		i++;
	return i;
}

/* The oldest item that may be removed and has bytes on disk; s->n: none. */
static size_t oldest_on_disk(const struct store *s)
{
	size_t i = 0;

	while (i < s->n && (!may_go(&s->items[i]) || store_item_bytes(&s->items[i]) == 0))
		i++;
	return i;
}

void store_evict(struct store *s, uint64_t bytes, const char *spare)
{
	while (store_use(s) > s->limits.max_use - bytes) {
		size_t i = oldest_on_disk(s);

		if (i == s->n || (spare && strcmp(s->items[i].entry.id, spare) == 0))
			break;
		store_remove(s, i);
		s->stats.evicted++;
	}
}

int store_make_room(struct store *s, const char *id, uint64_t bytes)
{
	struct store_item *item;
	struct store_pins pins;

	store_get_pins(s, &pins);
	if (bytes > pins.left_bytes)
		return -EFBIG;
	store_evict(s, bytes, NULL);
	item = store_item_of(s, id);
	if (item) {
		item->sizes[STORE_BUNDLE] += bytes;
		s->stats.bytes += bytes;
	}
	return 0;
}

static uint64_t left(const struct store *s)
{
	uint64_t use = store_use(s);

	return use < s->limits.max_use ? s->limits.max_use - use : 0;
}

void store_make_room_for_images(struct store *s, const char *id, uint64_t bytes)
{
	uint64_t most = MAX_OF(left(s), s->limits.max_use / IMAGES_PART);

	store_evict(s, MIN_OF(bytes, most), id);
	imagestore_set_room(s->images, left(s));
}

/* The item to remove next so that N more can be listed; s->n: none has to be, or none may be. */
static size_t surplus(const struct store *s, size_t n)
{
	if (s->n + n > s->limits.max_entries)
		return oldest(s);
	return store_use(s) > s->limits.max_use ? oldest_on_disk(s) : s->n;
}

bool store_trim_for(struct store *s, size_t n)
{
	size_t next = surplus(s, n);

	for (unsigned int i = 0; i < STORE_TRIM && next < s->n; i++) {
		store_remove(s, next);
		s->stats.evicted++;
		next = surplus(s, n);
	}
	return next < s->n;
}

bool store_trim(struct store *s)
{
	return store_trim_for(s, 0);
}

bool store_use_limits(struct store *s, const struct store_limits *limits)
{
	s->limits = *limits;
	return store_trim(s);
}

static bool is_pinned(void *userdata, const char *id)
{
	const struct store_item *item = store_item_of(userdata, id);

	return item && item->entry.pinned;
}

void store_get_pins(const struct store *s, struct store_pins *ret)
{
	*ret = (struct store_pins){.max_bytes = s->limits.max_use / PINNED_PART,
				   .max_n = MAX_OF(s->limits.max_entries / PINNED_PART, 1u)};
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

/* Body of a thread. */
static void *sync_and_close(void *fd)
{
	(void)fsync((int)(intptr_t)fd);
	close((int)(intptr_t)fd);
	return NULL;
}

/* Makes or removes the file ID.pinned. 0 or -errno. */
static int mark(int dir_fd, const char *id, bool pinned)
{
	char name[STORE_NAME_SIZE];
	pthread_t thread;
	int fd, r = 0;

	store_file_name(id, STORE_PINNED, name);
	if (pinned) {
		fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
			    0600);
		r = fd < 0 ? -errno : 0;
		close_fd(fd);
	} else if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT) {
		r = -errno;
	}
	if (r < 0)
		return r;
	/* Bring the directory's names to disk in a thread: on a busy disk that takes seconds, which
	 * the loop does not have. */
	fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && pthread_create(&thread, NULL, sync_and_close, (void *)(intptr_t)fd) == 0)
		pthread_detach(thread);
	else
		close_fd(fd);
	return 0;
}

int store_pin(struct store *s, const char *id, bool pinned, struct store_pins *ret_pins)
{
	struct store_item *item = store_item_of(s, id);
	int r = 0;

	if (!item)
		return -ENOENT;
	if (item->entry.pinned == pinned)
		return 0;
	if (pinned && !entry_ended(&item->entry))
		return -EBUSY;
	if (pinned && (item->fds[STORE_BUNDLE] >= 0 || item->fds[STORE_REPORT] >= 0 ||
		       store_item_bytes(item) == 0))
		return -ENODATA;
	if (pinned) {
		/* Count as if it were pinned: images that others have pinned already cost nothing.
		 */
		item->entry.pinned = true;
		store_get_pins(s, ret_pins);
		item->entry.pinned = false;
		if (ret_pins->bytes > ret_pins->max_bytes || ret_pins->n > ret_pins->max_n)
			r = -EDQUOT;
	}
	if (r == 0)
		r = mark(s->dir_fd, id, pinned);
	if (r == 0)
		item->entry.pinned = pinned;
	return r;
}
