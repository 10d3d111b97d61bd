/*
 * The list of stored snapshots: loaded at start, sorted by id and so by time.
 */
#include "daemon/store/store.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "proto/base.h"
#include "proto/memfd.h"

#include "daemon/store/store_private.h"

/* Pauses between attempts to lock the state directory, each twice as long as the one before: 1.3 s
 * in all. */
#define FIRST_LOCK_PAUSE_MS 10
#define LAST_LOCK_PAUSE_MS  640
#define ID_TIME_DIGITS	    11 /* base32: 55 bits of microseconds, a thousand years */

int store_dir_fd(const struct store *s)
{
	return s->dir_fd;
}

struct imagestore *store_images(const struct store *s)
{
	return s->images;
}

uint64_t store_use(const struct store *s)
{
	return s->stats.bytes + imagestore_bytes(s->images);
}

const struct store_stats *store_get_stats(const struct store *s)
{
	return &s->stats;
}

size_t store_count(const struct store *s)
{
	return s->n;
}

size_t store_index(const struct store *s, const char *id)
{
	return FIRST_WHERE(i, s->n, strcmp(s->items[i].entry.id, id) >= 0);
}

const struct entry *store_at(const struct store *s, size_t index)
{
	return index < s->n ? &s->items[index].entry : NULL;
}

void store_new_id(struct store *s, uint64_t realtime_usec, const char *boot_id,
		  char ret[ENTRY_ID_SIZE])
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuv";
	char time[ID_TIME_DIGITS + 1] = {0};
	uint64_t v;

	s->last_usec = MAX_OF(realtime_usec, s->last_usec + 1);
	v = s->last_usec;
	for (int i = ID_TIME_DIGITS; i--; v >>= 5)
		time[i] = digits[v & 31];
	snprintf(ret, ENTRY_ID_SIZE, "%s-%.4s-%u", time, boot_id, ++s->sequence);
}

/* The microseconds in an id of store_new_id(); 0: any other text. */
static uint64_t store_id_time(const char *id)
{
	uint64_t v = 0;

	for (int i = 0; i < ID_TIME_DIGITS; i++) {
		char c = id[i];

		if (c >= '0' && c <= '9')
			v = v << 5 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'v')
			v = v << 5 | (uint64_t)(c - 'a' + 10);
		else
			return 0;
	}
	return v;
}

uint64_t store_item_bytes(const struct store_item *item)
{
	uint64_t sum = 0;

	for (int part = 0; part < STORE_N_PARTS; part++)
		sum += item->sizes[part];
	return sum;
}

static int compare_ids(const void *id, const void *item)
{
	return strcmp(id, ((const struct store_item *)item)->entry.id);
}

struct store_item *store_item_of(const struct store *s, const char *id)
{
	return s->n > 0 ? bsearch(id, s->items, s->n, sizeof(*s->items), compare_ids) : NULL;
}

static struct store_item *store_insert(struct store *s, const struct entry *e)
{
	size_t at = s->n;

	if (ARRAY_RESERVE(s->items, s->capacity, s->n + 1) < 0)
		return NULL;
	while (at > 0 && strcmp(s->items[at - 1].entry.id, e->id) > 0)
		at--;
	memmove(&s->items[at + 1], &s->items[at], (s->n - at) * sizeof(*s->items));
	s->n++;
	s->items[at] = (struct store_item){.entry = *e};
	for (int part = 0; part < STORE_N_PARTS; part++)
		s->items[at].fds[part] = -EBADF;
	return &s->items[at];
}

/* Body of a thread. */
static void *close_in_thread(void *fd)
{
	close((int)(intptr_t)fd);
	return NULL;
}

/* Removes a name at once, and its bytes in a thread that nobody waits for: giving back a gigabyte
 * on a busy disk takes seconds, which the loop does not have. The bytes go with the last
 * descriptor. */
static void unlink_in_thread(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	pthread_t thread;

	unlinkat(dir_fd, name, 0);
	if (fd < 0)
		return;
	if (pthread_create(&thread, NULL, close_in_thread, (void *)(intptr_t)fd) == 0)
		pthread_detach(thread);
	else
		close(fd);
}

void store_remove(struct store *s, size_t index)
{
	struct store_item *item = &s->items[index];
	char name[STORE_NAME_SIZE];

	s->stats.bytes -= store_item_bytes(item);
	for (int part = 0; part < STORE_N_PARTS; part++) {
		store_file_name(item->entry.id, (enum store_part)part, name);
		unlink_in_thread(s->dir_fd, name);
		close_fd(item->fds[part]);
	}
	imagestore_release(s->images, item->entry.id);
	s->n--;
	memmove(item, item + 1, (s->n - index) * sizeof(*item));
}

int store_add(struct store *s, const struct entry *e)
{
	assert(!store_item_of(s, e->id));
	store_trim_for(s, 1);
	return store_insert(s, e) ? 0 : -ENOMEM;
}

void store_set_state(struct store *s, const char *id, enum entry_state state)
{
	struct store_item *item = store_item_of(s, id);

	if (item)
		item->entry.state = state;
}

void store_measure(struct store *s, struct store_item *item)
{
	s->stats.bytes -= store_item_bytes(item);
	for (int part = 0; part < STORE_N_PARTS; part++) {
		uint64_t size = store_file_size(s->dir_fd, item->entry.id, (enum store_part)part);

		item->sizes[part] = size == ENTRY_ABSENT ? 0 : size;
	}
	s->stats.bytes += store_item_bytes(item);
}

void store_note_lost(struct store_item *item)
{
	struct entry *e = &item->entry;
	bool bundle = e->bundle_bytes != ENTRY_ABSENT && item->sizes[STORE_BUNDLE] == 0;
	bool report = e->report_bytes != ENTRY_ABSENT && item->sizes[STORE_REPORT] == 0;

	if (bundle)
		e->bundle_bytes = ENTRY_ABSENT;
	if (report)
		e->report_bytes = ENTRY_ABSENT;
	if ((bundle || report) && e->state == ENTRY_DONE)
		snprintf(e->error, sizeof(e->error), "the %s was kept in memory only and is gone",
			 bundle && report ? "snapshot"
			 : bundle	  ? "bundle"
					  : "report");
}

/* Closes all but the newest few memory files. A snapshot that then has no bytes is removed. */
static void store_trim_memory(struct store *s)
{
	uint32_t kept = 0;

	for (size_t i = s->n; i--;) {
		struct store_item *item = &s->items[i];

		if (item->fds[STORE_BUNDLE] < 0 && item->fds[STORE_REPORT] < 0)
			continue;
		if (++kept <= s->limits.in_memory)
			continue;
		for (int part = 0; part < STORE_N_PARTS; part++)
			item->fds[part] = close_fd(item->fds[part]);
		s->stats.lost++;
		if (item->sizes[STORE_BUNDLE] == 0 && item->sizes[STORE_REPORT] == 0)
			store_remove(s, i);
		else
			store_note_lost(item);
	}
}

void store_end(struct store *s, const struct entry *e, int bundle_fd, int report_fd)
{
	struct store_item *item = store_item_of(s, e->id);
	bool pinned;

	assert(entry_ended(e));
	if (e->state == ENTRY_DONE)
		s->stats.done++;
	else
		s->stats.failed++;
	if (!item) {
		close_fd(bundle_fd);
		close_fd(report_fd);
		return;
	}
	pinned = item->entry.pinned;
	item->entry = *e;
	item->entry.pinned = pinned;
	item->fds[STORE_BUNDLE] = bundle_fd;
	item->fds[STORE_REPORT] = report_fd;
	store_measure(s, item);
	store_trim_memory(s);
	store_evict(s, 0, e->id);
}

int store_delete(struct store *s, const char *id)
{
	const struct store_item *item = store_item_of(s, id);

	if (!item)
		return -ENOENT;
	if (!entry_ended(&item->entry))
		return -EBUSY;
	if (item->entry.pinned)
		return -EPERM;
	store_remove(s, (size_t)(item - s->items));
	return 0;
}

int store_find(const struct store *s, const char *id, const struct entry **ret)
{
	const struct entry *found = NULL;
	size_t n = strlen(id);

	if (strcmp(id, "latest") == 0) {
		for (size_t i = s->n; i-- && !found;)
			if (entry_ended(&s->items[i].entry))
				found = &s->items[i].entry;
		*ret = found;
		return found ? 0 : -ENOENT;
	}
	for (size_t i = 0; n && i < s->n; i++) {
		const struct entry *e = &s->items[i].entry;

		if (strncmp(e->id, id, n) != 0)
			continue;
		if (e->id[n] == '\0') {
			*ret = e;
			return 0;
		}
		if (found)
			return STORE_AMBIGUOUS;
		found = e;
	}
	*ret = found;
	return found ? 0 : -ENOENT;
}

const struct entry *store_next_unfinished(const struct store *s, size_t *at)
{
	while (*at < s->n) {
		const struct store_item *item = &s->items[(*at)++];

		if (item->unfinished)
			return &item->entry;
	}
	return NULL;
}

int store_open(const struct store *s, const struct entry *e, enum store_part part, int *ret_fd,
	       uint64_t *ret_size)
{
	const struct store_item *item = (const struct store_item *)e;
	char name[STORE_NAME_SIZE];
	CLEANUP_CLOSE int fd = -EBADF;
	struct stat st;
	int r;

	/* Not a copy of an entry. */
	assert(item >= s->items && item < s->items + s->n && part < STORE_N_PARTS);
	if (item->fds[part] >= 0) {
		r = memfd_reopen_readonly(item->fds[part], &fd);
		if (r == 0 && fstat(fd, &st) < 0)
			r = -errno;
	} else {
		store_file_name(e->id, part, name);
		r = store_file_open(s->dir_fd, name, O_RDONLY, &fd, &st);
	}
	if (r < 0)
		return r;
	*ret_fd = take_fd(&fd);
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

int store_open_image(const struct store *s, const struct entry *e, uint32_t index, int *ret_fd,
		     uint64_t *ret_size)
{
	return imagestore_open(s->images, e->id, index, ret_fd, ret_size);
}

/* Lists snapshot ID of a former run. 0 or -ENOMEM. */
static int list_found(void *userdata, const char *id)
{
	struct store *s = userdata;
	CLEANUP(kept_done) struct kept kept;
	char name[STORE_NAME_SIZE];
	enum store_scan_found found;
	struct store_item *item;
	struct entry e;
	int part = 0, r;

	kept_init(&kept);
	if (store_item_of(s, id))
		return 0;
	while (part < STORE_PINNED && !store_file_exists(s->dir_fd, id, (enum store_part)part))
		part++;
	if (part == STORE_PINNED) { /* ID.pinned is the only file */
		store_file_name(id, STORE_PINNED, name);
		unlinkat(s->dir_fd, name, 0);
		return 0;
	}
	found = store_scan_entry(s->dir_fd, id, store_id_time(id), &e);
	s->stats.recovered += found != STORE_SCAN_ENDED;
	item = store_insert(s, &e);
	if (!item)
		return -ENOMEM;
	item->unfinished = found == STORE_SCAN_UNFINISHED;
	item->entry.pinned = store_file_exists(s->dir_fd, id, STORE_PINNED);
	store_measure(s, item);
	store_note_lost(item);
	s->last_usec = MAX_OF(s->last_usec, store_id_time(id));
	r = store_file_get_kept(s->dir_fd, id, &kept);
	if (r == 0)
		return imagestore_load(s->images, id, &kept);
	/* A damaged list is of no use to anybody, so its snapshot needs no images. */
	if (r != -ENOENT && r != -EBADMSG)
		s->images_unknown = true;
	return 0;
}

/* Locks the state directory. A recorder that was killed may still have the lock: until its memory
 * is gone, or until a child that it was about to start has called execve(2), as a lock of flock(2)
 * belongs to the open file, which the child has, too. Such a lock ends by itself. */
static int store_lock(int dir_fd)
{
	for (int ms = FIRST_LOCK_PAUSE_MS; flock(dir_fd, LOCK_EX | LOCK_NB) < 0; ms *= 2) {
		if (errno != EWOULDBLOCK)
			return -errno;
		if (ms > LAST_LOCK_PAUSE_MS)
			return -EBUSY;
		poll(NULL, 0, ms);
	}
	return 0;
}

/* Makes, opens and locks DIR. 0, or -errno with one line in WHY. */
static int store_open_dir(struct store *s, const char *dir, char *why, size_t why_size)
{
	int r = store_make_dirs(dir, 0750);

	if (r == 0) {
		s->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = s->dir_fd < 0 ? -errno : 0;
	}
	if (r == 0)
		r = store_lock(s->dir_fd);
	if (r == -EBUSY)
		snprintf(why, why_size, "%s is in use by another recorder", dir);
	else if (r < 0)
		snprintf(why, why_size, "%s cannot be used as state directory: %s", dir,
			 strerror(-r));
	return r;
}

int store_new(const char *dir, const struct store_limits *limits, struct store **ret, char *why,
	      size_t why_size)
{
	CLEANUP(store_freep) struct store *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->dir_fd = -EBADF;
	s->limits = *limits;
	r = store_open_dir(s, dir, why, why_size);
	if (r < 0)
		return r;
	r = imagestore_new(s->dir_fd, &s->images);
	if (r == 0)
		r = store_scan(s->dir_fd, list_found, s);
	if (r < 0) {
		snprintf(why, why_size, "%s cannot be read: %s", dir, strerror(-r));
		return r;
	}
	if (!s->images_unknown)
		imagestore_collect(s->images);
	store_evict(s, 0, NULL);
	*ret = TAKE_PTR(s);
	return 0;
}

void store_free(struct store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		for (int part = 0; part < STORE_N_PARTS; part++)
			close_fd(s->items[i].fds[part]);
	free(s->items);
	imagestore_free(s->images);
	close_fd(s->dir_fd);
	free(s);
}

void store_freep(struct store **s)
{
	store_free(*s);
}
