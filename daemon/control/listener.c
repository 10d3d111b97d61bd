/*
 * Where clients knock. Called by main.c before anything is traced, so that a socket in use stops us
 * before COMMAND runs. With socket activation fds are found by their names, "varlink" and "status":
 * there may be others too, which fdstore.c takes, and with them the variables that tell of them.
 */
#include "daemon/control/listener.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <systemd/sd-daemon.h>

#include "daemon/store/store_file.h"
#include "proto/base.h"

#define BACKLOG	    64
#define SOCKET_MODE 0660
#define STATUS_MODE 0666

static int listener_from_systemd(const char *name)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(0, &names);
	int fd = -ENOENT;

	for (int i = 0; i < n; i++) {
		if (fd < 0 && strcmp(names[i], name) == 0 &&
		    sd_is_socket_unix(SD_LISTEN_FDS_START + i, SOCK_STREAM, 1, NULL, 0) > 0)
			fd = SD_LISTEN_FDS_START + i;
		free(names[i]);
	}
	free(names);
	return fd;
}

/* The directories above PATH. */
static int listener_make_parent(const char *path)
{
	CLEANUP_FREE char *parent = strdup(path);
	char *slash;

	if (!parent)
		return -ENOMEM;
	slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return 0;
	*slash = '\0';
	return store_make_dirs(parent, 0755);
}

/* What is at the address already? 0: nothing, or the socket of one that is gone, which is removed;
 * -EADDRINUSE. */
static int listener_clear(const struct sockaddr_un *address, int type, char *why, size_t why_size)
{
	struct stat st;
	CLEANUP_CLOSE int fd = -EBADF;

	if (lstat(address->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(why, why_size, "%s exists and is not a socket", address->sun_path);
		return -EADDRINUSE;
	}
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
	    errno != ECONNREFUSED) {
		snprintf(why, why_size, "%s is in use by another recorder", address->sun_path);
		return -EADDRINUSE;
	}
	return unlink(address->sun_path) < 0 ? -errno : 0;
}

static int listener_bind(struct listener *l, const struct sockaddr_un *address, mode_t mode)
{
	mode_t before = umask(0777 & ~mode);
	int r = bind(l->fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;
	struct stat st;

	umask(before);
	if (r == 0 && stat(address->sun_path, &st) < 0)
		r = -errno;
	if (r < 0)
		return r;
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	l->path = strdup(address->sun_path);
	if (!l->path)
		return -ENOMEM;
	return listen(l->fd, BACKLOG) < 0 ? -errno : 0;
}

static int listener_make(struct listener *l, const char *path, int type, mode_t mode, char *why,
			 size_t why_size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int r;

	if (strlen(path) >= sizeof(address.sun_path)) {
		snprintf(why, why_size, "%s: a socket's path has at most %zu characters", path,
			 sizeof(address.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	strcpy(address.sun_path, path);
	r = listener_make_parent(path);
	if (r == 0)
		r = listener_clear(&address, type, why, why_size);
	if (r < 0)
		return r;
	l->fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return l->fd < 0 ? -errno : listener_bind(l, &address, mode);
}

static int listener_open_here(const char *path, int type, mode_t mode, struct listener *ret,
			      char *why, size_t why_size)
{
	int r = listener_make(ret, path, type, mode, why, why_size);

	if (r == 0)
		return 0;
	if (!*why)
		snprintf(why, why_size, "%s cannot be made: %s", path, strerror(-r));
	listener_done(ret);
	return r;
}

int listener_open(const char *path, struct listener *ret, char *why, size_t why_size)
{
	*ret = (struct listener){.fd = listener_from_systemd("varlink")};
	*why = '\0';
	if (ret->fd >= 0)
		return 0;
	return listener_open_here(path, SOCK_STREAM, SOCKET_MODE, ret, why, why_size);
}

int listener_open_status(const char *path, const struct listener *control, bool wanted,
			 struct listener *ret, char *why, size_t why_size)
{
	CLEANUP_FREE char *status = NULL;

	*ret = (struct listener){.fd = listener_from_systemd("status")};
	*why = '\0';
	if (ret->fd >= 0)
		return 0;
	ret->fd = -EBADF;
	if (!wanted || !control->path)
		return 0;
	if (asprintf(&status, "%s.status", path) < 0) {
		status = NULL;
		return -ENOMEM;
	}
	return listener_open_here(status, SOCK_STREAM, STATUS_MODE, ret, why, why_size);
}

int listener_open_channel(const char *path, struct listener *ret, char *why, size_t why_size)
{
	*ret = (struct listener){.fd = -EBADF};
	*why = '\0';
	return listener_open_here(path, SOCK_SEQPACKET, SOCKET_MODE, ret, why, why_size);
}

void listener_done(struct listener *l)
{
	struct stat st;

	if (l->path && lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
		unlink(l->path);
	free(TAKE_PTR(l->path));
	l->fd = close_fd(l->fd);
}
