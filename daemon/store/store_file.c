/*
 * The files of one snapshot: written, read, and found again at start.
 *
 * A file is written as ".NAME.tmp", synced and renamed, so that a reader sees all of it or nothing.
 * The scan at start removes what a crash left under a temporary name.
 */
#include "daemon/store/store_file.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/varlink.h"

/* An entry has up to 10 KiB, as JSON writes a control character in six bytes. */
#define ENTRY_MAX_BYTES 16384

static const char *const store_suffixes[STORE_N_PARTS] = {"ptsnap", "json", "images", "entry",
							  "pinned"};

void store_file_name(const char *id, enum store_part part, char ret[STORE_NAME_SIZE])
{
	assert(part < STORE_N_PARTS);
	snprintf(ret, STORE_NAME_SIZE, "%s.%s", id, store_suffixes[part]);
}

int store_file_open(int dir_fd, const char *name, int flags, int *ret_fd, struct stat *ret_st)
{
	CLEANUP_CLOSE int fd =
		openat(dir_fd, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	/* ENXIO: a socket, or a FIFO opened for writing; EISDIR: for writing. */
	if (fd < 0)
		return errno == ENXIO || errno == EISDIR || errno == ELOOP ? -EBADMSG : -errno;
	if (fstat(fd, ret_st) < 0)
		return -errno;
	if (!S_ISREG(ret_st->st_mode))
		return -EBADMSG;
	*ret_fd = take_fd(&fd);
	return 0;
}

bool store_file_exists(int dir_fd, const char *id, enum store_part part)
{
	return store_file_size(dir_fd, id, part) != ENTRY_ABSENT;
}

uint64_t store_file_size(int dir_fd, const char *id, enum store_part part)
{
	char name[STORE_NAME_SIZE];
	struct stat st;

	store_file_name(id, part, name);
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return ENTRY_ABSENT;
	return (uint64_t)st.st_size;
}

/* Publishes PART of ID: SIZE bytes of the file FROM, or of TEXT if FROM is -1. */
static int put(int dir_fd, const char *id, enum store_part part, const void *text, int from,
	       uint64_t size)
{
	char name[STORE_NAME_SIZE], temporary[STORE_NAME_SIZE + 8];
	int r;

	store_file_name(id, part, name);
	snprintf(temporary, sizeof(temporary), ".%s.tmp", name);
	CLEANUP_CLOSE int fd = openat(dir_fd, temporary,
				      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r = from < 0 ? memfd_write_all(fd, text, (size_t)size) : memfd_copy(from, 0, size, fd);
	if (r == 0 && fdatasync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dir_fd, temporary, 0);
	return r;
}

int store_file_put(int dir_fd, const char *id, enum store_part part, int from, uint64_t size)
{
	assert(from >= 0);
	return put(dir_fd, id, part, NULL, from, size);
}

int store_file_put_entry(int dir_fd, const struct entry *e)
{
	struct json_object *o = entry_to_json(e);
	const char *text;
	int r;

	/* The file ID.pinned says so, and may change when this file does not. */
	if (o)
		json_object_object_del(o, "pinned");
	text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
	r = o && text ? put(dir_fd, e->id, STORE_ENTRY, text, -1, strlen(text)) : -ENOMEM;

	json_object_put(o);
	return r;
}

int store_file_sync(int dir_fd)
{
	return fsync(dir_fd) < 0 ? -errno : 0;
}

int store_file_put_kept(int dir_fd, const char *id, const struct kept *kept)
{
	CLEANUP(bytes_out_done) struct bytes_out text;
	int r;

	bytes_out_init(&text, KEPT_MAX_TEXT);
	r = kept_write(kept, &text);
	if (r < 0)
		return r;
	return put(dir_fd, id, STORE_IMAGES, text.data, -1, text.size);
}

int store_file_get_kept(int dir_fd, const char *id, struct kept *kept)
{
	char name[STORE_NAME_SIZE];
	CLEANUP_FREE char *text = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	struct stat st;
	ssize_t n;
	int r;

	store_file_name(id, STORE_IMAGES, name);
	r = store_file_open(dir_fd, name, O_RDONLY, &fd, &st);
	if (r < 0)
		return r;
	if ((uint64_t)st.st_size > KEPT_MAX_TEXT)
		return -EBADMSG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	n = pread(fd, text, (size_t)st.st_size, 0);
	return n < 0 ? -errno : kept_read(text, (size_t)n, kept);
}

static int parse_entry(const char *text, int size, struct entry *ret)
{
	struct json_tokener *t = json_tokener_new_ex(VARLINK_MAX_DEPTH);
	struct json_object *o;
	int r = -EBADMSG;

	if (!t)
		return -ENOMEM;
	json_tokener_set_flags(t, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	o = json_tokener_parse_ex(t, text, size);
	if (json_object_is_type(o, json_type_object))
		r = entry_from_json(o, ret);
	json_object_put(o);
	json_tokener_free(t);
	return r;
}

/* Reads ID.entry. 0, -EBADMSG or -errno. */
static int get_entry(int dir_fd, const char *id, struct entry *ret)
{
	char name[STORE_NAME_SIZE], text[ENTRY_MAX_BYTES];
	CLEANUP_CLOSE int fd = -EBADF;
	struct stat st;
	ssize_t n;
	int r;

	store_file_name(id, STORE_ENTRY, name);
	r = store_file_open(dir_fd, name, O_RDONLY, &fd, &st);
	if (r < 0)
		return r;
	n = read(fd, text, sizeof(text));
	if (n < 0)
		return -errno;
	if (n == 0 || n == sizeof(text))
		return -EBADMSG;
	return parse_entry(text, (int)n, ret);
}

int store_make_dirs(const char *dir, mode_t mode)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s", dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

/* The length of MIN to MAX characters of SET at NAME and of END behind them; 0: something else. */
static size_t field_length(const char *name, const char *set, size_t min, size_t max, char end)
{
	size_t n = strspn(name, set);

	return n >= min && n <= max && name[n] == end ? n + 1 : 0;
}

/* The length of an id at NAME and of END behind it; 0: something else. */
static size_t id_length(const char *name, char end)
{
	size_t time = field_length(name, "0123456789abcdefghijklmnopqrstuv", 11, 11, '-');
	size_t boot = time ? field_length(name + time, "0123456789abcdef", 4, 4, '-') : 0;
	size_t sequence = boot ? field_length(name + time + boot, "0123456789", 1, 10, end) : 0;

	return sequence ? time + boot + sequence : 0;
}

bool store_scan_is_id(const char *id)
{
	return id_length(id, '\0') > 0;
}

/* "ID.ptsnap" -> "ID". False: not one of our files. */
static bool id_of_file(const char *name, char ret[ENTRY_ID_SIZE])
{
	size_t n = id_length(name, '.');
	char expected[STORE_NAME_SIZE];

	if (n == 0)
		return false;
	memcpy(ret, name, n - 1);
	ret[n - 1] = '\0';
	for (int part = 0; part < STORE_N_PARTS; part++) {
		store_file_name(ret, (enum store_part)part, expected);
		if (strcmp(name, expected) == 0)
			return true;
	}
	return false;
}

static bool is_temporary(const char *name)
{
	char bare[NAME_MAX + 1], id[ENTRY_ID_SIZE];
	size_t n = strlen(name);

	if (name[0] != '.' || n < 6 || n > NAME_MAX || strcmp(name + n - 4, ".tmp") != 0)
		return false;
	memcpy(bare, name + 1, n - 5);
	bare[n - 5] = '\0';
	return id_of_file(bare, id);
}

int store_scan(int dir_fd, int (*fn)(void *userdata, const char *id), void *userdata)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char id[ENTRY_ID_SIZE];
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
		if (is_temporary(d->d_name))
			unlinkat(dir_fd, d->d_name, 0);
		else if (id_of_file(d->d_name, id))
			r = fn(userdata, id);
	}
	closedir(dir);
	return r;
}

enum store_scan_found store_scan_entry(int dir_fd, const char *id, uint64_t id_time_usec,
				       struct entry *ret)
{
	int r = get_entry(dir_fd, id, ret);
	bool known = r == 0 && strcmp(ret->id, id) == 0, has_images, unfinished;

	if (known && entry_ended(ret))
		return STORE_SCAN_ENDED;
	if (!known) {
		entry_init(ret);
		strcpy(ret->id, id);
		strcpy(ret->trigger, STORE_SCAN_NO_TRIGGER);
		ret->realtime_usec = id_time_usec;
	}
	ret->bundle_bytes = store_file_size(dir_fd, id, STORE_BUNDLE);
	ret->report_bytes = store_file_size(dir_fd, id, STORE_REPORT);
	ret->state = ret->report_bytes != ENTRY_ABSENT ? ENTRY_DONE : ENTRY_FAILED;
	has_images = store_file_size(dir_fd, id, STORE_IMAGES) != ENTRY_ABSENT;
	/* A snapshot is taken up once: decoding it may be what ended the recorder. */
	unfinished = ret->bundle_bytes != ENTRY_ABSENT && ret->report_bytes == ENTRY_ABSENT &&
		     !has_images && !(known && strstr(ret->error, ENTRY_TAKEN_UP));
	strcpy(ret->error, ret->state == ENTRY_DONE
				   ? "the recorder ended before all that is known of it was stored"
				   : "the recorder ended before this snapshot did");
	if (ret->bundle_bytes != ENTRY_ABSENT && !has_images)
		strcat(ret->error, ", and before it kept what its bundle needs of programs");
	if (ret->state == ENTRY_DONE)
		return STORE_SCAN_ENDED;
	return unfinished ? STORE_SCAN_UNFINISHED : STORE_SCAN_FAILED;
}
