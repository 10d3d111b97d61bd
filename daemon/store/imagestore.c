/*
 * The index of the image cache: its files, and which snapshots need each of them.
 *
 * Jobs' threads write bytes, one thread at a time, and a thread of the cache removes files; the
 * loop only ever waits for the index.
 *
 * Crashes: in memory, a file counts as needed before its first byte is written. On disk, a
 * snapshot's list is written after the bytes and removed before them. No list names bytes that are
 * not there, and a file that no list names at the start is of no use.
 */
#include "daemon/store/imagestore.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/store_file.h"
#include "proto/base.h"

/* Files that have one name and different content: a build id was forged, or a file was overwritten
 * in place. */
#define MAX_VARIANTS 64u

struct image_file {
	char name[IMAGEFILE_NAME_SIZE];
	uint64_t bytes;	 /* in its ranges */
	uint32_t needed; /* by this many images of snapshots */
	bool doomed;	 /* will be removed unless it is needed again first */
	bool going;	 /* is being removed, cannot be needed any more */
	bool counted;	 /* by imagestore_bytes_of() */
};

struct image_use {
	uint32_t index;
	struct image_file *file; /* borrowed; listed as long as it is needed */
};

/* A snapshot and the files that it needs. */
struct image_user {
	char id[ENTRY_ID_SIZE];
	struct image_use *uses;
	size_t n, capacity;
};

struct imagestore {
	int state_fd;		   /* borrowed */
	pthread_mutex_t writing;   /* held while bytes are added; taken before LOCK */
	pthread_mutex_t lock;	   /* guards all below */
	uint64_t room;		   /* bytes that may be added */
	int dir_fd;		   /* -EBADF: not made yet */
	struct image_file **files; /* by name */
	size_t n, capacity;
	struct image_user *users;
	size_t n_users, users_capacity;
	uint64_t bytes;	     /* of files that are needed */
	pthread_t collector; /* the thread that removes files */
	bool have_collector, closing;
	pthread_cond_t work; /* for the collector */
};

/* Opens the directory and makes it if missing. LOCK is held, or no other thread knows S. */
static int open_dir(struct imagestore *s)
{
	if (s->dir_fd >= 0)
		return 0;
	if (mkdirat(s->state_fd, IMAGESTORE_DIR, 0750) < 0 && errno != EEXIST)
		return -errno;
	s->dir_fd = openat(s->state_fd, IMAGESTORE_DIR,
			   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return s->dir_fd < 0 ? -errno : 0;
}

/* The index at which NAME is or belongs. */
static size_t place_of(const struct imagestore *s, const char *name)
{
	return FIRST_WHERE(i, s->n, strcmp(s->files[i]->name, name) >= 0);
}

static struct image_file *find_file(const struct imagestore *s, const char *name)
{
	size_t at = place_of(s, name);

	return at < s->n && strcmp(s->files[at]->name, name) == 0 ? s->files[at] : NULL;
}

/* Lists a file that is not listed yet. NULL: no memory. */
static struct image_file *add_file(struct imagestore *s, const char *name, uint64_t bytes)
{
	size_t at = place_of(s, name);
	struct image_file *f;

	if (ARRAY_RESERVE(s->files, s->capacity, s->n + 1) < 0)
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	strcpy(f->name, name);
	f->bytes = bytes;
	memmove(&s->files[at + 1], &s->files[at], (s->n - at) * sizeof(struct image_file *));
	s->files[at] = f;
	s->n++;
	return f;
}

static void need(struct imagestore *s, struct image_file *f)
{
	if (f->needed++ == 0)
		s->bytes += f->bytes;
	f->doomed = false;
}

static void need_no_more(struct imagestore *s, struct image_file *f)
{
	if (--f->needed > 0)
		return;
	s->bytes -= f->bytes;
	f->doomed = true;
	pthread_cond_signal(&s->work);
}

static struct image_user *find_user(const struct imagestore *s, const char *id)
{
	for (size_t i = s->n_users; i--;)
		if (strcmp(s->users[i].id, id) == 0)
			return &s->users[i];
	return NULL;
}

/* Notes that snapshot ID needs FILE, which need() has counted, for image INDEX. */
static int add_use(struct imagestore *s, const char *id, uint32_t index, struct image_file *file)
{
	struct image_user *u = find_user(s, id);

	if (!u) {
		if (ARRAY_RESERVE(s->users, s->users_capacity, s->n_users + 1) < 0)
			return -ENOMEM;
		u = &s->users[s->n_users++];
		*u = (struct image_user){0};
		snprintf(u->id, sizeof(u->id), "%s", id);
	}
	if (ARRAY_RESERVE(u->uses, u->capacity, u->n + 1) < 0)
		return -ENOMEM;
	u->uses[u->n++] = (struct image_use){index, file};
	return 0;
}

/* The thread that removes files. It does so without the lock, as giving back much on a busy disk
 * takes seconds. */
static void *collector_main(void *userdata)
{
	struct imagestore *s = userdata;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		char beside[IMAGEFILE_BESIDE_SIZE];
		struct image_file *f;
		size_t at = 0;

		while (at < s->n && !s->files[at]->doomed)
			at++;
		if (at == s->n && s->closing)
			break;
		if (at == s->n) {
			pthread_cond_wait(&s->work, &s->lock);
			continue;
		}
		f = s->files[at];
		f->going = true;
		pthread_mutex_unlock(&s->lock);
		imagefile_ranges_name(f->name, beside);
		unlinkat(s->dir_fd, f->name, 0);
		unlinkat(s->dir_fd, beside, 0);
		pthread_mutex_lock(&s->lock);
		at = place_of(s, f->name);
		free(f);
		s->n--;
		memmove(&s->files[at], &s->files[at + 1], (s->n - at) * sizeof(*s->files));
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* The sum of NAME's ranges; if they are unknown or impossible, what the file takes on disk. */
static uint64_t measure(const struct imagestore *s, const char *name)
{
	CLEANUP_FREE struct manifest_piece *pieces = NULL;
	uint64_t sum = 0;
	struct stat st;
	size_t n = 0;
	int r = imagefile_ranges(s->dir_fd, name, &pieces, &n);

	if (fstatat(s->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	/* Ranges do not overlap, so their sum cannot exceed the size of the file. */
	for (size_t i = 0; i < n; i++)
		sum += pieces[i].size;
	return r < 0 || sum > (uint64_t)st.st_size ? (uint64_t)st.st_blocks * 512 : sum;
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcmp(name + n - m, end) == 0;
}

/* Whether NAME is a ".ranges" file whose image file is missing. */
static bool is_orphan(const struct imagestore *s, const char *name)
{
	char file[IMAGEFILE_NAME_SIZE];
	size_t n = strlen(name) - strlen(IMAGEFILE_RANGES);

	if (!ends_with(name, IMAGEFILE_RANGES) || n >= sizeof(file))
		return false;
	memcpy(file, name, n);
	file[n] = '\0';
	return imagefile_is_name(file) && faccessat(s->dir_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

/* Lists the files of the directory and removes what a crash left. 0 or -errno. */
static int scan(struct imagestore *s)
{
	int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *d;
	DIR *dir;
	int r = 0;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while (r == 0 && (d = readdir(dir))) {
		const char *name = d->d_name;
		struct stat st;

		if ((*name == '.' && ends_with(name, IMAGEFILE_RANGES IMAGEFILE_TEMPORARY)) ||
		    is_orphan(s, name))
			unlinkat(s->dir_fd, name, 0);
		else if (imagefile_is_name(name) &&
			 fstatat(s->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			 S_ISREG(st.st_mode) && !add_file(s, name, measure(s, name)))
			r = -ENOMEM;
	}
	closedir(dir);
	return r;
}

int imagestore_new(int state_fd, struct imagestore **ret)
{
	struct imagestore *s = calloc(1, sizeof(*s));
	sigset_t all, before;
	int r;

	if (!s)
		return -ENOMEM;
	s->state_fd = state_fd;
	s->dir_fd = -EBADF;
	pthread_mutex_init(&s->writing, NULL);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->work, NULL);
	r = open_dir(s);
	/* If the disk has no room for a directory, snapshots stay in memory. */
	if (r < 0 && r != -ENOSPC && r != -EDQUOT) {
		imagestore_free(s);
		return r;
	}
	r = s->dir_fd >= 0 ? scan(s) : 0;
	if (r == 0) {
		/* The loop handles all signals. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &before);
		r = -pthread_create(&s->collector, NULL, collector_main, s);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		s->have_collector = r == 0;
	}
	if (r < 0) {
		imagestore_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void imagestore_free(struct imagestore *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->closing = true;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
	if (s->have_collector)
		pthread_join(s->collector, NULL);
	for (size_t i = 0; i < s->n; i++)
		free(s->files[i]);
	for (size_t i = 0; i < s->n_users; i++)
		free(s->users[i].uses);
	free(s->files);
	free(s->users);
	close_fd(s->dir_fd);
	pthread_mutex_destroy(&s->writing);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->work);
	free(s);
}

int imagestore_load(struct imagestore *s, const char *id, const struct kept *kept)
{
	int r = 0;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < kept->n && r == 0; i++) {
		const struct kept_image *k = &kept->images[i];
		struct image_file *f = k->n_pieces > 0 ? find_file(s, k->name) : NULL;

		if (!f)
			continue;
		r = add_use(s, id, k->index, f);
		if (r == 0)
			need(s, f);
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

void imagestore_collect(struct imagestore *s)
{
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->n; i++)
		s->files[i]->doomed = s->files[i]->needed == 0;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
}

void imagestore_release(struct imagestore *s, const char *id)
{
	struct image_user *u;

	pthread_mutex_lock(&s->lock);
	u = find_user(s, id);
	if (u) {
		for (size_t i = 0; i < u->n; i++)
			need_no_more(s, u->uses[i].file);
		free(u->uses);
		*u = s->users[--s->n_users];
	}
	pthread_mutex_unlock(&s->lock);
}

uint64_t imagestore_bytes(struct imagestore *s)
{
	uint64_t bytes;

	pthread_mutex_lock(&s->lock);
	bytes = s->bytes;
	pthread_mutex_unlock(&s->lock);
	return bytes;
}

uint64_t imagestore_bytes_of(struct imagestore *s, bool (*is_one)(void *userdata, const char *id),
			     void *userdata)
{
	uint64_t bytes = 0;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->n; i++)
		s->files[i]->counted = false;
	for (size_t i = 0; i < s->n_users; i++) {
		const struct image_user *u = &s->users[i];

		if (!is_one(userdata, u->id))
			continue;
		for (size_t j = 0; j < u->n; j++) {
			struct image_file *f = u->uses[j].file;

			bytes += f->counted ? 0 : f->bytes;
			f->counted = true;
		}
	}
	pthread_mutex_unlock(&s->lock);
	return bytes;
}

void imagestore_set_room(struct imagestore *s, uint64_t bytes)
{
	pthread_mutex_lock(&s->lock);
	s->room = bytes;
	pthread_mutex_unlock(&s->lock);
}

/* Gets the name of the file that snapshot ID needs for image INDEX. False: none. */
static bool name_of(struct imagestore *s, const char *id, uint32_t index,
		    char ret[IMAGEFILE_NAME_SIZE])
{
	const struct image_user *u;
	bool found = false;

	pthread_mutex_lock(&s->lock);
	u = find_user(s, id);
	for (size_t i = 0; u && i < u->n && !found; i++) {
		found = u->uses[i].index == index;
		if (found)
			strcpy(ret, u->uses[i].file->name);
	}
	pthread_mutex_unlock(&s->lock);
	return found;
}

int imagestore_open(struct imagestore *s, const char *id, uint32_t index, int *ret_fd,
		    uint64_t *ret_size)
{
	CLEANUP_CLOSE int fd = -EBADF;
	char name[IMAGEFILE_NAME_SIZE];
	struct stat st;
	int r;

	if (!name_of(s, id, index, name))
		return -ENOENT;
	r = store_file_open(s->dir_fd, name, O_RDONLY, &fd, &st);
	if (r < 0)
		return r;
	*ret_fd = take_fd(&fd);
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

uint64_t imagestore_missing(struct imagestore *s, const struct imagestore_wish *wish)
{
	char name[IMAGEFILE_NAME_SIZE];
	int dir_fd;

	imagefile_name(wish->image, wish->file_size, 0, name);
	pthread_mutex_lock(&s->lock);
	dir_fd = s->dir_fd;
	pthread_mutex_unlock(&s->lock);
	return imagefile_missing(dir_fd, name, wish->pieces, wish->n_pieces);
}

/* Lists the file NAME and counts it as needed once more. 0; IMAGEFILE_DIFFERS: it is being removed;
 * or -errno. Takes LOCK. */
static int begin_file(struct imagestore *s, const char *name, struct image_file **ret,
		      uint64_t *ret_room)
{
	struct image_file *f = NULL;
	int r;

	pthread_mutex_lock(&s->lock);
	r = open_dir(s);
	if (r == 0) {
		f = find_file(s, name);
		if (!f)
			f = add_file(s, name, 0);
		if (!f)
			r = -ENOMEM;
		else if (f->going)
			r = IMAGEFILE_DIFFERS;
		else
			need(s, f);
	}
	*ret_room = s->room;
	pthread_mutex_unlock(&s->lock);
	*ret = f;
	return r;
}

/* Keeps the pieces in the file WISH->name; results of imagefile_put(). */
static int keep_as(struct imagestore *s, struct imagestore_wish *wish)
{
	struct imagefile_put put = {
		.from = wish->fd,
		.file_size = wish->file_size,
		.pieces = wish->pieces,
		.n = wish->n_pieces,
	};
	struct image_file *f;
	int r = begin_file(s, wish->name, &f, &put.room);

	if (r != 0)
		return r;
	r = imagefile_put(s->dir_fd, wish->name, &put);
	wish->n_pieces = put.n;
	wish->cut += put.cut;
	pthread_mutex_lock(&s->lock);
	f->bytes += put.added;
	s->bytes += put.added;
	s->room -= MIN_OF(put.added, s->room);
	if (r == 0 && put.n > 0)
		r = add_use(s, wish->id, wish->index, f);
	if (r != 0 || put.n == 0)
		need_no_more(s, f);
	pthread_mutex_unlock(&s->lock);
	return r;
}

int imagestore_keep(struct imagestore *s, struct imagestore_wish *wish)
{
	int r = IMAGEFILE_DIFFERS;

	wish->cut = 0;
	pthread_mutex_lock(&s->writing);
	for (unsigned i = 0; i < MAX_VARIANTS && (r == IMAGEFILE_DIFFERS || r == -E2BIG); i++) {
		imagefile_name(wish->image, wish->file_size, i, wish->name);
		r = keep_as(s, wish);
	}
	pthread_mutex_unlock(&s->writing);
	return r == IMAGEFILE_DIFFERS ? -EMLINK : r;
}

int imagestore_sync(struct imagestore *s)
{
	return s->dir_fd >= 0 && fsync(s->dir_fd) < 0 ? -errno : 0;
}
