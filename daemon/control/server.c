/*
 * Makes the control sockets, or takes them from systemd, and accepts and limits connections.
 *
 * Descriptors from systemd are found by their names, "varlink" and "status". There may be others,
 * which fdstore.c takes, together with the environment variables that name descriptors.
 *
 * A connection beyond the limits is closed at once: a client with too many connections gets no
 * more, and no other client waits. Some connections are kept for administrators, whom users cannot
 * keep out.
 */
#include "daemon/control/server.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <systemd/sd-daemon.h>

#include "daemon/base/log.h"
#include "daemon/store/store_file.h"
#include "proto/base.h"

#define BACKLOG	    64
#define SOCKET_MODE 0660
#define STATUS_MODE 0666

/* How many connections are accepted in an interval. Without a limit the loop would spin while no
 * descriptor is free, or while a client connects again and again. The limit is high enough to empty
 * a full queue of the socket in an eighth of a second, as the kernel lets nobody overtake there. */
#define ACCEPT_INTERVAL_USEC 50000
#define ACCEPT_BURST	     100
/* The same for the socket for everybody, whose clients can wait. */
#define STATUS_INTERVAL_USEC 250000
#define STATUS_BURST	     50

/* How long a recorder that was killed may take to end. */
#define END_PATIENCE_MS 1000

/* Connections for administrators alone. */
#define ADMIN_PEERS 8
/* Calls of a connection to the socket for everybody. */
#define STATUS_CALLS 16

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

/* Makes the directories above PATH. */
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

int listener_process(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	int process;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	/* The kernel gives 0 for a process in a pid namespace that we cannot see. */
	if (peer.pid <= 0)
		return -EPERM;
	process = pidfd_open(peer.pid, 0);
	return process < 0 ? -errno : process;
}

/* Whether the process that called listen(2) on the socket to which FD is connected is alive. If the
 * process is dead, a child has the socket, and has it until the child's execve(2). A process that
 * was just killed has some time to end. */
static bool listener_is_alive(int fd)
{
	int process = listener_process(fd);
	struct pollfd end = {.fd = process, .events = POLLIN};
	bool alive = process >= 0 ? poll(&end, 1, END_PATIENCE_MS) == 0 : process != -ESRCH;

	close_fd(process);
	return alive;
}

/* Removes a socket at ADDRESS to which nobody listens, or whose listener has died. 0; -EADDRINUSE:
 * another recorder listens, or there is another file; -errno. */
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
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0
		    ? listener_is_alive(fd)
		    : errno != ECONNREFUSED) {
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

struct server {
	sd_event *event;
	struct server_limits limits;
	const struct access *access;
	struct peer_handler handler;
	sd_event_source *io;
	struct peer **peers;
	size_t n;
};

static void server_on_gone(void *userdata, struct peer *peer)
{
	struct server *s = userdata;
	size_t i = 0;

	s->handler.on_gone(s->handler.userdata, peer);
	while (i < s->n && s->peers[i] != peer)
		i++;
	if (i < s->n)
		s->peers[i] = s->peers[--s->n];
	peer_free(peer);
}

static void server_on_call(void *userdata, struct peer *peer, const struct varlink_call *call)
{
	struct server *s = userdata;

	s->handler.on_call(s->handler.userdata, peer, call);
}

/* Returns why PEER cannot stay; NULL: it can. */
static const char *server_refusal(const struct server *s, const struct peer *peer)
{
	uid_t uid = peer_credentials(peer)->uid;
	size_t same = 0;

	for (size_t i = 0; i < s->n; i++)
		same += peer_credentials(s->peers[i])->uid == uid;
	if (s->n >= s->limits.peers && access_rank_of(s->access, peer) < ACCESS_ADMIN)
		return "too many are open";
	if (s->n >= s->limits.peers + s->limits.admins)
		return "too many are open, even for an administrator";
	if (uid != 0 && same >= s->limits.peers_per_uid)
		return "its user has too many";
	return NULL;
}

static void server_welcome(struct server *s, int fd)
{
	const struct peer_handler handler = {
		.userdata = s, .on_call = server_on_call, .on_gone = server_on_gone};
	struct peer *peer;
	const char *why;

	if (peer_new(s->event, fd, s->limits.idle_usec, &handler, &peer) < 0)
		return;
	why = server_refusal(s, peer);
	if (why) {
		log_debug("a connection of uid %u was refused: %s",
			  (unsigned)peer_credentials(peer)->uid, why);
		peer_free(peer);
		return;
	}
	if (s->limits.calls > 0)
		peer_restrict(peer, s->limits.calls);
	s->peers[s->n++] = peer;
}

static int server_on_io(sd_event_source *source, int listening, uint32_t revents, void *userdata)
{
	int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)source;
	(void)revents;
	if (fd >= 0)
		server_welcome(userdata, fd);
	else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
		log_debug("accept: %s", strerror(errno));
	return 0;
}

void server_limits_of(const struct config *config, struct server_limits *ret)
{
	*ret = (struct server_limits){
		.peers = config->max_peers,
		.peers_per_uid = config->max_peers_per_uid,
		.admins = ADMIN_PEERS,
		.idle_usec = config->peer_idle_usec,
	};
}

void server_limits_of_status(const struct config *config, struct server_limits *ret)
{
	*ret = (struct server_limits){
		.peers = config->max_status_peers,
		.peers_per_uid = config->max_status_peers_per_uid,
		.idle_usec = config->status_peer_idle_usec,
		.calls = STATUS_CALLS,
	};
}

static void server_freep(struct server **s)
{
	server_free(*s);
}

int server_new(sd_event *event, const struct server_limits *limits, const struct access *access,
	       const struct listener *listener, const struct peer_handler *handler,
	       struct server **ret)
{
	CLEANUP(server_freep) struct server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->event = event;
	s->limits = *limits;
	s->access = access;
	s->handler = *handler;
	s->peers = calloc(limits->peers + limits->admins, sizeof(struct peer *));
	if (!s->peers)
		return -ENOMEM;
	r = sd_event_add_io(event, &s->io, listener->fd, EPOLLIN, server_on_io, s);
	if (r >= 0)
		r = limits->calls == 0 ? sd_event_source_set_ratelimit(s->io, ACCEPT_INTERVAL_USEC,
								       ACCEPT_BURST)
				       : sd_event_source_set_ratelimit(s->io, STATUS_INTERVAL_USEC,
								       STATUS_BURST);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

void server_free(struct server *s)
{
	if (!s)
		return;
	sd_event_source_disable_unref(s->io);
	for (size_t i = 0; i < s->n; i++) {
		s->handler.on_gone(s->handler.userdata, s->peers[i]);
		peer_free(s->peers[i]);
	}
	free(s->peers);
	free(s);
}

void server_flush(struct server *s)
{
	for (size_t i = 0; i < s->n; i++)
		peer_flush(s->peers[i]);
}
