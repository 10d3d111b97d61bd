/*
 * Writing and reading the files of one snapshot. A file is written under a temporary name
 * (".NAME.tmp"), brought to the disk and renamed, so that a reader sees all of it or nothing; what
 * a crash leaves under a temporary name is removed at the next start (store_scan.c).
 */
#include "daemon/store/store_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/varlink.h"

#define ENTRY_MAX_BYTES 8192

static const char *const store_suffixes[STORE_N_PARTS] = {"ptsnap", "json", "images", "entry",
							  "pinned"};

void store_file_name(const char *id, enum store_part part, char ret[STORE_NAME_SIZE])
{
	snprintf(ret, STORE_NAME_SIZE, "%s.%s", id, store_suffixes[part]);
}

static int store_open_temporary(int dir_fd, const char *temporary)
{
	int fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			0640);

	return fd < 0 ? -errno : fd;
}

/* R is how the writing went. Publishes or removes the temporary file. */
static int store_publish(int dir_fd, const char *temporary, const char *name, int fd, int r)
{
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
	char name[STORE_NAME_SIZE], temporary[STORE_NAME_SIZE + 8];

	store_file_name(id, part, name);
	snprintf(temporary, sizeof(temporary), ".%s.tmp", name);
	CLEANUP_CLOSE int fd = store_open_temporary(dir_fd, temporary);
	if (fd < 0)
		return fd;
	return store_publish(dir_fd, temporary, name, fd, memfd_copy(from, 0, size, fd));
}

static int store_put_text(int dir_fd, const char *id, enum store_part part, const void *text,
			  size_t size)
{
	char name[STORE_NAME_SIZE], temporary[STORE_NAME_SIZE + 8];

	store_file_name(id, part, name);
	snprintf(temporary, sizeof(temporary), ".%s.tmp", name);
	CLEANUP_CLOSE int fd = store_open_temporary(dir_fd, temporary);
	if (fd < 0)
		return fd;
	return store_publish(dir_fd, temporary, name, fd, memfd_write_all(fd, text, size));
}

int store_file_put_entry(int dir_fd, const struct entry *e)
{
	struct json_object *o = entry_to_json(e);
	const char *text;
	int r;

	/* Another file says it, as it changes when this one does not. */
	if (o)
		json_object_object_del(o, "pinned");
	text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
	r = o && text ? store_put_text(dir_fd, e->id, STORE_ENTRY, text, strlen(text)) : -ENOMEM;

	json_object_put(o);
	return r;
}

int store_file_put_kept(int dir_fd, const char *id, const struct kept *kept)
{
	CLEANUP(bytes_out_done) struct bytes_out text;
	int r;

	bytes_out_init(&text, KEPT_MAX_TEXT);
	r = kept_write(kept, &text);
	return r < 0 ? r : store_put_text(dir_fd, id, STORE_IMAGES, text.data, text.size);
}

int store_file_get_kept(int dir_fd, const char *id, struct kept *kept)
{
	char name[STORE_NAME_SIZE];
	CLEANUP_FREE char *text = NULL;
	struct stat st;
	ssize_t n;

	store_file_name(id, STORE_IMAGES, name);
	CLEANUP_CLOSE int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > KEPT_MAX_TEXT)
		return -EBADMSG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	n = pread(fd, text, (size_t)st.st_size, 0);
	return n < 0 ? -errno : kept_read(text, (size_t)n, kept);
}

static int store_parse_entry(const char *text, int size, struct entry *ret)
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

int store_file_get_entry(int dir_fd, const char *id, struct entry *ret)
{
	char name[STORE_NAME_SIZE], text[ENTRY_MAX_BYTES];
	ssize_t n;

	store_file_name(id, STORE_ENTRY, name);
	CLEANUP_CLOSE int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text));
	if (n < 0)
		return -errno;
	if (n == 0 || n == sizeof(text))
		return -EBADMSG;
	return store_parse_entry(text, (int)n, ret);
}
