/*
 * What a former run left behind: whole snapshots are listed, those whose end nobody wrote down are
 * listed as failed (their bundle may be all that is left of an incident), and half-written files
 * go. Called by store_new.
 */
#include "daemon/store/store_scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/store_file.h"
#include "proto/base.h"

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

/* Digits of SET at NAME, then END: how many characters both are; 0: something else. */
static size_t scan_field(const char *name, const char *set, size_t min, size_t max, char end)
{
	size_t n = strspn(name, set);

	return n >= min && n <= max && name[n] == end ? n + 1 : 0;
}

/* An id at NAME, then END: how many characters both are; 0: something else. */
static size_t scan_whole_id(const char *name, char end)
{
	size_t time = scan_field(name, "0123456789abcdefghijklmnopqrstuv", 11, 11, '-');
	size_t boot = time ? scan_field(name + time, "0123456789abcdef", 4, 4, '-') : 0;
	size_t sequence = boot ? scan_field(name + time + boot, "0123456789", 1, 10, end) : 0;

	return sequence ? time + boot + sequence : 0;
}

bool store_scan_is_id(const char *id)
{
	return scan_whole_id(id, '\0') > 0;
}

/* "ID.ptsnap" -> "ID"; other people's files that may lie here are none of our business. */
static bool scan_id(const char *name, char ret[ENTRY_ID_SIZE])
{
	size_t n = scan_whole_id(name, '.');
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

static bool scan_is_temporary(const char *name)
{
	char bare[NAME_MAX + 1], id[ENTRY_ID_SIZE];
	size_t n = strlen(name);

	if (name[0] != '.' || n < 6 || n > NAME_MAX || strcmp(name + n - 4, ".tmp") != 0)
		return false;
	memcpy(bare, name + 1, n - 5);
	bare[n - 5] = '\0';
	return scan_id(bare, id);
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
		if (scan_is_temporary(d->d_name))
			unlinkat(dir_fd, d->d_name, 0);
		else if (scan_id(d->d_name, id))
			r = fn(userdata, id);
	}
	closedir(dir);
	return r;
}

static uint64_t scan_size(int dir_fd, const char *id, enum store_part part)
{
	char name[STORE_NAME_SIZE];
	struct stat st;

	store_file_name(id, part, name);
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return ENTRY_ABSENT;
	return (uint64_t)st.st_size;
}

/* It may be taken up again, once. */
static bool scan_is_unfinished(int dir_fd, const struct entry *e, bool known)
{
	return e->bundle_bytes != ENTRY_ABSENT && e->report_bytes == ENTRY_ABSENT &&
	       scan_size(dir_fd, e->id, STORE_IMAGES) == ENTRY_ABSENT &&
	       !(known && strstr(e->error, ENTRY_TAKEN_UP));
}

enum store_scan_found store_scan_entry(int dir_fd, const char *id, uint64_t id_time_usec,
				       struct entry *ret)
{
	int r = store_file_get_entry(dir_fd, id, ret);
	bool known = r == 0 && strcmp(ret->id, id) == 0, unfinished;

	if (known && entry_ended(ret))
		return STORE_SCAN_ENDED;
	if (!known) {
		entry_init(ret);
		strcpy(ret->id, id);
		strcpy(ret->trigger, STORE_SCAN_NO_TRIGGER);
		ret->realtime_usec = id_time_usec;
	}
	ret->state = ENTRY_FAILED;
	ret->bundle_bytes = scan_size(dir_fd, id, STORE_BUNDLE);
	ret->report_bytes = scan_size(dir_fd, id, STORE_REPORT);
	unfinished = scan_is_unfinished(dir_fd, ret, known);
	strcpy(ret->error, "the recorder ended before this snapshot did");
	if (ret->bundle_bytes != ENTRY_ABSENT &&
	    scan_size(dir_fd, id, STORE_IMAGES) == ENTRY_ABSENT)
		strcat(ret->error, ", and before it kept what its bundle needs of programs");
	return unfinished ? STORE_SCAN_UNFINISHED : STORE_SCAN_FAILED;
}
