/*
 * Where clients knock. Called by main.c before anything is traced, so that a socket in use stops us
 * before COMMAND runs. With socket activation the fd is found by its name, "varlink": the next
 * start may bring other fds too.
 */
#include "daemon/listener.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <systemd/sd-daemon.h>

#include "daemon/store_scan.h"
#include "proto/base.h"

#define BACKLOG	    64
#define SOCKET_MODE 0660

static int listener_from_systemd(void)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(1, &names);
	int fd = -ENOENT;

	for (int i = 0; i < n; i++) {
		if (fd < 0 && strcmp(names[i], "varlink") == 0 &&
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
static int listener_clear(const struct sockaddr_un *address, char *why, size_t why_size)
{
	struct stat st;
	CLEANUP_CLOSE int fd = -EBADF;

	if (lstat(address->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(why, why_size, "%s exists and is not a socket", address->sun_path);
		return -EADDRINUSE;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
	    errno != ECONNREFUSED) {
		snprintf(why, why_size, "%s is in use by another recorder", address->sun_path);
		return -EADDRINUSE;
	}
	return unlink(address->sun_path) < 0 ? -errno : 0;
}

static int listener_bind(struct listener *l, const struct sockaddr_un *address)
{
	mode_t before = umask(0777 & ~SOCKET_MODE);
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

static int listener_make(struct listener *l, const char *path, char *why, size_t why_size)
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
		r = listener_clear(&address, why, why_size);
	if (r < 0)
		return r;
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return l->fd < 0 ? -errno : listener_bind(l, &address);
}

int listener_open(const char *path, struct listener *ret, char *why, size_t why_size)
{
	int r;

	*ret = (struct listener){.fd = -EBADF};
	*why = '\0';
	r = listener_from_systemd();
	if (r >= 0) {
		ret->fd = r;
		return 0;
	}
	r = listener_make(ret, path, why, why_size);
	if (r == 0)
		return 0;
	if (!*why)
		snprintf(why, why_size, "%s cannot be made: %s", path, strerror(-r));
	listener_done(ret);
	return r;
}

bool listener_group(const struct listener *l, gid_t *ret_gid)
{
	struct sockaddr_un address = {0};
	socklen_t size = sizeof(address) - 1;
	struct stat st;

	if (getsockname(l->fd, (struct sockaddr *)&address, &size) < 0 || !address.sun_path[0] ||
	    stat(address.sun_path, &st) < 0 || !(st.st_mode & S_IWGRP))
		return false;
	*ret_gid = st.st_gid;
	return true;
}

void listener_done(struct listener *l)
{
	struct stat st;

	if (l->path && lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
		unlink(l->path);
	free(TAKE_PTR(l->path));
	l->fd = close_fd(l->fd);
}
