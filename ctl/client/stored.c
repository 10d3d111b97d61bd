/*
 * Where the parts of a stored bundle come from: the recorder hands them out as descriptors; in its
 * state directory DIR they are DIR/ID.ptsnap, DIR/ID.images and DIR/images/NAME. Called by fetch,
 * export, decode and check --trace.
 */
#include "ctl/client/stored.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"
#include "proto/bundle/bundle.h"
#include "proto/bundle/kept.h"
#include "proto/memfd.h"

#include "ctl/base/file.h"
#include "ctl/base/say.h"
#include "ctl/client/client.h"
#include "ctl/client/join.h"

#define BUNDLE_SUFFIX ".ptsnap"
#define LIST_SUFFIX   ".images"
#define IMAGES_DIR    "images"

struct stored {
	char *name;	       /* for messages */
	int fd;		       /* of the bundle */
	struct bundle *bundle; /* NULL: it is whole, or none of ours */
	struct kept kept;
	bool have_list;
	const struct settings *settings; /* borrowed; NULL: from a directory */
	int images_fd;			 /* that directory's; -errno */
};

void stored_freep(struct stored **s)
{
	if (!*s)
		return;
	free((*s)->name);
	close_fd((*s)->fd);
	close_fd((*s)->images_fd);
	bundle_free((*s)->bundle);
	kept_done(&(*s)->kept);
	free(*s);
	*s = NULL;
}

/* FD is taken over, also on failure. NULL: no memory. */
static struct stored *make(const char *name, int fd)
{
	struct stored *s = calloc(1, sizeof(*s));

	if (!s) {
		close_fd(fd);
		return NULL;
	}
	s->fd = fd;
	s->images_fd = -EBADF;
	kept_init(&s->kept);
	s->name = strdup(name);
	if (!s->name)
		stored_freep(&s);
	return s;
}

static int say_damaged(const struct stored *s)
{
	return say_error(EXIT_CODE_FAILURE,
			 "%s: the list of what it needs of images is damaged, or another bundle's",
			 s->name);
}

static int read_list(struct stored *s, int fd)
{
	CLEANUP_FREE char *text = NULL;
	size_t size = 0;
	int r = file_read_whole(fd, KEPT_MAX_TEXT, &text, &size);

	if (r == 0)
		r = kept_read(text, size, &s->kept);
	s->have_list = r == 0;
	if (r == -EBADMSG || r == -EFBIG)
		return say_damaged(s);
	return r < 0 ? say_error(EXIT_CODE_FAILURE, "%s: the list of its images: %s", s->name,
				 strerror(-r))
		     : 0;
}

/* Whether there is something to join. */
static int look(struct stored *s)
{
	int r = bundle_open(s->fd, &s->bundle);

	if (r == 0 && !join_needed(bundle_manifest(s->bundle))) {
		bundle_free(s->bundle);
		s->bundle = NULL;
	}
	return r;
}

int stored_from_recorder(const struct settings *settings, const char *id, struct stored **ret)
{
	CLEANUP(client_freep) struct client *c = NULL;
	CLEANUP(stored_freep) struct stored *s = NULL;
	CLEANUP_CLOSE int list = -EBADF;
	int fd = -EBADF;
	int r = client_open(settings, CLIENT_TIMEOUT_USEC, &c);

	if (r == 0)
		r = client_get(c, id, "bundle", &fd);
	if (r != 0)
		return r;
	s = make(id, fd);
	if (!s)
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	s->settings = settings;
	/* What is wrong with the bundle says who reads it. */
	if (look(s) == 0 && s->bundle) {
		/* "latest" may be another one by now. */
		r = client_get_image(c, bundle_manifest(s->bundle)->id, "images", &list);
		if (r == 0)
			r = read_list(s, list);
		if (r > 0)
			return r;
	}
	*ret = TAKE_PTR(s);
	return 0;
}

/* PATH's directory; its name to *RET_NAME, within PATH. */
static int open_directory(const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	CLEANUP_FREE char *dir = slash ? strndup(path, (size_t)(slash - path + 1)) : strdup(".");

	*ret_name = slash ? slash + 1 : path;
	return dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

/* The list beside PATH, and the directory of images there. -ENOENT: there is none. */
static int open_beside(const char *path, int *ret_list, int *ret_images)
{
	const char *name;
	CLEANUP_CLOSE int dir = open_directory(path, &name);
	CLEANUP_FREE char *list = NULL;
	size_t stem = strlen(name);

	if (dir < 0 || stem <= strlen(BUNDLE_SUFFIX) ||
	    strcmp(name + stem - strlen(BUNDLE_SUFFIX), BUNDLE_SUFFIX) != 0)
		return -ENOENT;
	stem -= strlen(BUNDLE_SUFFIX);
	if (asprintf(&list, "%.*s" LIST_SUFFIX, (int)stem, name) < 0) {
		list = NULL;
		return -ENOMEM;
	}
	*ret_list = openat(dir, list, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*ret_list < 0)
		return -errno;
	*ret_images = openat(dir, IMAGES_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_images < 0)
		*ret_images = -errno;
	return 0;
}

int stored_from_file(const char *path, int fd, struct stored **ret)
{
	CLEANUP(stored_freep) struct stored *s = make(path, fd);
	CLEANUP_CLOSE int list = -EBADF;
	int r;

	if (!s)
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	r = open_beside(path, &list, &s->images_fd);
	if (r < 0 && r != -ENOENT)
		return say_error(EXIT_CODE_FAILURE, "%s: the list of its images: %s", path,
				 strerror(-r));
	if (r == 0 && look(s) == 0 && s->bundle) {
		r = read_list(s, list);
		if (r != 0)
			return r;
	}
	*ret = TAKE_PTR(s);
	return 0;
}

/* A connection each: between two a slow reader may take longer than the recorder keeps one. */
static int get_image(const struct stored *s, uint32_t index, int *ret_fd)
{
	CLEANUP(client_freep) struct client *c = NULL;
	char format[32];
	int r = client_open(s->settings, CLIENT_TIMEOUT_USEC, &c);

	snprintf(format, sizeof(format), "image:%u", index);
	return r != 0 ? r : client_get_image(c, bundle_manifest(s->bundle)->id, format, ret_fd);
}

int stored_check(const struct stored *s)
{
	struct bundle *b = NULL;
	int r = s->bundle ? 0 : bundle_open(s->fd, &b);

	bundle_free(b);
	if (r == -EBADMSG)
		return say_error(EXIT_CODE_FAILURE,
				 "%s: not a ptsnap bundle, or truncated or damaged", s->name);
	if (r == -EPROTONOSUPPORT)
		return say_error(EXIT_CODE_FAILURE, "%s: made by a newer ptsnap", s->name);
	return r < 0 ? say_error(EXIT_CODE_FAILURE, "%s: %s", s->name, strerror(-r)) : 0;
}

/* For struct join_source. */
static int open_image(void *userdata, const struct kept_image *image, int *ret_fd)
{
	const struct stored *s = userdata;

	if (s->settings)
		return get_image(s, image->index, ret_fd);
	/* Where there is no such directory nothing was kept; one that is not ours to read is
	 * another matter. */
	if (s->images_fd < 0)
		return s->images_fd;
	/* The name has no slash (kept.h). */
	*ret_fd = openat(s->images_fd, image->name,
			 O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	return *ret_fd < 0 ? -errno : 0;
}

static int join(struct stored *s, bool quiet, int to)
{
	const struct join_source source = {open_image, s};
	struct join_told told;
	int r = join_write(s->bundle, s->have_list ? &s->kept : NULL, &source, to, &told);

	if (r == -EPIPE)
		return EXIT_CODE_FAILURE;
	if (r == -EBADMSG)
		return say_damaged(s);
	if (r < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: its images cannot be joined to it: %s",
				 s->name, strerror(-r));
	if (r == 0 && told.lost > 0 && !quiet)
		say("%s: %ju of its images could not be kept by the recorder: their code is missing",
		    s->name, (uintmax_t)told.lost);
	return r;
}

static int copy(const struct stored *s, int to)
{
	struct stat st;
	int r = fstat(s->fd, &st) < 0 ? -errno : 0;

	if (r == 0)
		r = memfd_copy(s->fd, 0, (uint64_t)st.st_size, to);
	/* A reader that has seen enough is no failure to speak of. */
	if (r == -EPIPE)
		return EXIT_CODE_FAILURE;
	return r < 0 ? say_error(EXIT_CODE_FAILURE, "%s: the bundle cannot be copied: %s", s->name,
				 strerror(-r))
		     : 0;
}

int stored_write(struct stored *s, bool quiet, int to)
{
	return s->bundle ? join(s, quiet, to) : copy(s, to);
}

/* A file without a name on a disk that is meant for such, else in memory. */
static int open_nameless(void)
{
	const char *places[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
	int fd = -EBADF;

	for (size_t i = 0; i < ARRAY_SIZE(places) && fd < 0; i++)
		if (places[i] && *places[i])
			fd = open(places[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 && memfd_new("ptsnap-bundle", 0, &fd) < 0)
		return -EBADF;
	return fd;
}

int stored_open(struct stored *s, bool quiet, int *ret_fd)
{
	CLEANUP_CLOSE int fd = -EBADF;
	int r, readonly;

	if (!s->bundle) {
		*ret_fd = take_fd(&s->fd);
		return 0;
	}
	fd = open_nameless();
	if (fd < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot make a temporary file: %m");
	r = join(s, quiet, fd);
	if (r != 0)
		return r;
	/* Who decodes need not write to it; where there is no /proc he could. */
	*ret_fd = memfd_reopen_readonly(fd, &readonly) == 0 ? readonly : take_fd(&fd);
	return 0;
}
