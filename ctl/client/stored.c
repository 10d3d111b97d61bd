/*
 * Finds the parts of a stored bundle. The recorder hands them out as descriptors. In its state
 * directory DIR they are DIR/ID.ptsnap, DIR/ID.images (the list) and DIR/images/NAME.
 */
#include "ctl/client/stored.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/base/file.h"
#include "ctl/base/say.h"
#include "ctl/client/client.h"
#include "proto/base.h"
#include "proto/bundle/bundle.h"
#include "proto/bundle/kept.h"
#include "proto/memfd.h"

#define BUNDLE_SUFFIX ".ptsnap"
#define LIST_SUFFIX   ".images"
#define IMAGES_DIR    "images"

struct stored {
	char *name;	       /* for messages */
	int fd;		       /* of the bundle */
	struct bundle *bundle; /* NULL: nothing to join, or the file is no bundle */
	struct kept kept;
	bool have_list;
	const struct settings *settings; /* of the recorder, borrowed; NULL: from a directory */
	int images_fd;			 /* the directory of images, or -errno */
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

/* Takes FD over, also on failure. NULL: no memory. */
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
	return say_error(
		EXIT_CODE_FAILURE,
		"%s: the list of the bundle's images is damaged, or belongs to another bundle",
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
	return r < 0 ? say_error(EXIT_CODE_FAILURE,
				 "%s: cannot read the list of the bundle's images: %s", s->name,
				 strerror(-r))
		     : 0;
}

/* Opens the bundle; s->bundle stays NULL if it has nothing to join. 0 or a result of bundle_open().
 */
static int open_bundle(struct stored *s)
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
	/* A damaged bundle is reported by the function that reads the bundle. */
	if (open_bundle(s) == 0 && s->bundle) {
		/* "latest" may mean another snapshot by now. */
		r = client_get_image(c, bundle_manifest(s->bundle)->id, "images", &list);
		if (r == 0)
			r = read_list(s, list);
		if (r > 0)
			return r;
	}
	*ret = TAKE_PTR(s);
	return 0;
}

/* Opens the list beside PATH, and the directory of images there. -ENOENT: there is no list. */
static int open_beside(const char *path, int *ret_list, int *ret_images)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	CLEANUP_FREE char *directory =
		slash ? strndup(path, (size_t)(slash - path + 1)) : strdup(".");
	CLEANUP_FREE char *list = NULL;
	CLEANUP_CLOSE int dir = -EBADF;
	size_t stem = strlen(name);

	if (directory)
		dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
		return say_error(EXIT_CODE_FAILURE,
				 "%s: cannot read the list of the bundle's images: %s", path,
				 strerror(-r));
	if (r == 0 && open_bundle(s) == 0 && s->bundle) {
		r = read_list(s, list);
		if (r != 0)
			return r;
	}
	*ret = TAKE_PTR(s);
	return 0;
}

int stored_check(const struct stored *s)
{
	struct bundle *b = NULL;
	int r;

	assert(s->fd >= 0); /* not after stored_open() */
	r = s->bundle ? 0 : bundle_open(s->fd, &b);
	bundle_free(b);
	if (r == -EBADMSG)
		return say_error(EXIT_CODE_FAILURE,
				 "%s: not a ptsnap bundle, or a truncated or damaged one", s->name);
	if (r == -EPROTONOSUPPORT)
		return say_error(EXIT_CODE_FAILURE, "%s: made by a newer version of ptsnap",
				 s->name);
	return r < 0 ? say_error(EXIT_CODE_FAILURE, "%s: %s", s->name, strerror(-r)) : 0;
}

/* Opens an image for struct join_source. */
static int open_image(void *userdata, const struct kept_image *image, int *ret_fd)
{
	CLEANUP(client_freep) struct client *c = NULL;
	const struct stored *s = userdata;
	char format[32];
	int r;

	if (s->settings) {
		/* One connection for each image: the recorder closes a connection on which a slow
		 * reader of ours leaves too much time between two calls. */
		r = client_open(s->settings, CLIENT_TIMEOUT_USEC, &c);
		snprintf(format, sizeof(format), "image:%u", image->index);
		return r != 0 ? r
			      : client_get_image(c, bundle_manifest(s->bundle)->id, format, ret_fd);
	}
	/* -ENOENT without a directory, as then no image was kept; another error if the directory
	 * cannot be read. */
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
	struct join_counts counts;
	int r = join_write(s->bundle, s->have_list ? &s->kept : NULL, &source, to, &counts);

	if (r == -EPIPE)
		return EXIT_CODE_FAILURE;
	if (r == -EBADMSG)
		return say_damaged(s);
	if (r < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: cannot join the bundle and its images: %s",
				 s->name, strerror(-r));
	if (r == 0 && counts.lost > 0 && !quiet)
		say("%s: the code of %ju images is missing, as the recorder could not keep it",
		    s->name, (uintmax_t)counts.lost);
	return r;
}

static int copy(const struct stored *s, int to)
{
	struct stat st;
	int r = fstat(s->fd, &st) < 0 ? -errno : 0;

	if (r == 0)
		r = memfd_copy(s->fd, 0, (uint64_t)st.st_size, to);
	/* A reader that has closed the pipe needs no message. */
	if (r == -EPIPE)
		return EXIT_CODE_FAILURE;
	return r < 0 ? say_error(EXIT_CODE_FAILURE, "%s: cannot copy the bundle: %s", s->name,
				 strerror(-r))
		     : 0;
}

int stored_write(struct stored *s, bool quiet, int to)
{
	assert(s->fd >= 0); /* not after stored_open() */
	return s->bundle ? join(s, quiet, to) : copy(s, to);
}

int stored_open(struct stored *s, bool quiet, int *ret_fd)
{
	const char *places[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
	CLEANUP_CLOSE int fd = -EBADF;
	int r, readonly;

	assert(s->fd >= 0); /* not after stored_open() */
	if (!s->bundle) {
		*ret_fd = take_fd(&s->fd);
		return 0;
	}
	/* A file without a name in a directory for temporary files, or else in memory. */
	for (size_t i = 0; i < ARRAY_SIZE(places) && fd < 0; i++)
		if (places[i] && *places[i])
			fd = open(places[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 && memfd_new("ptsnap-bundle", 0, &fd) < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot make a temporary file: %m");
	r = join(s, quiet, fd);
	if (r != 0)
		return r;
	/* The decoder needs no write access. Without /proc the fd cannot be reopened. */
	*ret_fd = memfd_reopen_readonly(fd, &readonly) == 0 ? readonly : take_fd(&fd);
	return 0;
}
