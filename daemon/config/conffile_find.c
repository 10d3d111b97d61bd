/*
 * Which configuration files there are, and what is in them. Called by config_file.c and
 * trigger_file.c, before the daemon opens anything else, and in its loop when it reloads; so
 * nothing here may wait for a writer or a device.
 */
#include "daemon/config/conffile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "proto/base.h"

#define SUFFIX ".conf"

/* A drop-in: its name, and the index of the directory that it is in. */
struct drop_in {
	char *name;
	size_t directory;
};

struct drop_ins {
	struct drop_in all[CONFFILE_MAX_DROP_INS];
	size_t n;
	bool full;
};

static void find_warn(const struct conffile_handler *h, const char *path, const char *text,
		      const char *why)
{
	char say[256];
	const struct conffile_warning warning = {path, 0, say, true};

	snprintf(say, sizeof(say), "%s%s", text, why);
	h->warning(h->userdata, &warning);
}

static bool is_missing(int error)
{
	return error == ENOENT || error == ENOTDIR;
}

/* At most SIZE bytes of FD; their number or -errno. */
static ssize_t read_bytes(int fd, char *bytes, size_t size)
{
	size_t used = 0;

	while (used < size) {
		ssize_t n = read(fd, bytes + used, size - used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	return (ssize_t)used;
}

static void parse_fd(int fd, const char *path, const struct conffile_handler *h)
{
	CLEANUP_FREE char *bytes = malloc(CONFFILE_MAX_FILE + 1);
	ssize_t n = bytes ? read_bytes(fd, bytes, CONFFILE_MAX_FILE + 1) : -ENOMEM;

	if (n < 0)
		find_warn(h, path, "cannot be read, ignored: ", strerror((int)-n));
	else if (n > (ssize_t)CONFFILE_MAX_FILE)
		find_warn(h, path, "is larger than 1 MiB, ignored", "");
	else
		conffile_parse(path, bytes, (size_t)n, h);
}

int conffile_read(const char *path, const struct conffile_handler *h)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 && is_missing(errno))
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st) < 0) {
		find_warn(h, path, "cannot be read, ignored: ", strerror(errno));
		return 0;
	}
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) /* /dev/null: masked */
		return 0;
	if (!S_ISREG(st.st_mode)) {
		find_warn(h, path, "is not a regular file, ignored", "");
		return 0;
	}
	if (h->file)
		h->file(h->userdata, path);
	parse_fd(fd, path, h);
	return 0;
}

/* Hidden files are no drop-ins: an editor's copy, a package manager's, half written. */
static bool is_drop_in(const char *name)
{
	size_t n = strlen(name);

	return name[0] != '.' && n > strlen(SUFFIX) &&
	       strcmp(name + n - strlen(SUFFIX), SUFFIX) == 0;
}

static void drop_ins_add(struct drop_ins *d, const char *name, size_t directory)
{
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->all[i].name, name) == 0)
			return;
	char *copy = d->n < CONFFILE_MAX_DROP_INS ? strdup(name) : NULL;
	if (copy)
		d->all[d->n++] = (struct drop_in){copy, directory};
	else
		d->full = true;
}

static void drop_ins_scan(struct drop_ins *d, const char *path, size_t directory,
			  const struct conffile_handler *h)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	if (!dir) {
		if (!is_missing(errno))
			find_warn(h, path, "cannot be read, ignored: ", strerror(errno));
		return;
	}
	while ((e = readdir(dir)))
		if (is_drop_in(e->d_name))
			drop_ins_add(d, e->d_name, directory);
	closedir(dir);
	if (d->full)
		find_warn(h, path, "too many drop-ins, not all are read", "");
	d->full = false;
}

static int drop_in_compare(const void *a, const void *b)
{
	return strcmp(((const struct drop_in *)a)->name, ((const struct drop_in *)b)->name);
}

/* The drop-ins of DIR/NAME, NAME "": of DIR, into RET. False: that is longer than a path can be. */
static bool drop_ins_path(const char *dir, const char *name, char ret[PATH_MAX])
{
	return snprintf(ret, PATH_MAX, "%s%s%s", dir, *name ? "/" : "", name) < PATH_MAX;
}

static void drop_ins_read(struct drop_ins *d, const char *const *directories, const char *name,
			  const struct conffile_handler *h)
{
	char path[PATH_MAX], dir[PATH_MAX];

	qsort(d->all, d->n, sizeof(d->all[0]), drop_in_compare);
	for (size_t i = 0; i < d->n; i++) {
		bool fits = drop_ins_path(directories[d->all[i].directory], name, dir) &&
			    snprintf(path, sizeof(path), "%s/%s", dir, d->all[i].name) <
				    (int)sizeof(path);

		if (fits && conffile_read(path, h) == -ENOENT)
			find_warn(h, path, "leads to a file that is not there, ignored", "");
		free(d->all[i].name);
	}
}

void conffile_read_drop_ins(const char *const *directories, const char *name,
			    const struct conffile_handler *h)
{
	struct drop_ins drop_ins = {.n = 0};
	char path[PATH_MAX];

	for (size_t i = 0; directories[i]; i++)
		if (drop_ins_path(directories[i], name, path))
			drop_ins_scan(&drop_ins, path, i, h);
	drop_ins_read(&drop_ins, directories, name, h);
}

void conffile_read_all(const char *const *directories, const char *name,
		       const struct conffile_handler *h)
{
	char path[PATH_MAX], drop_ins[NAME_MAX + 1];
	bool found = false;

	for (size_t i = 0; directories[i] && !found; i++)
		if (snprintf(path, sizeof(path), "%s/%s", directories[i], name) < (int)sizeof(path))
			found = conffile_read(path, h) == 0;
	snprintf(drop_ins, sizeof(drop_ins), "%s.d", name);
	conffile_read_drop_ins(directories, drop_ins, h);
}
