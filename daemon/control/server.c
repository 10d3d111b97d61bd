/*
 * accept(2) and its limits. A connection beyond them is closed at once: whoever holds too many gets
 * no more, and nobody else waits for it. A few are kept for administrators, who are not kept out by
 * others' connections. Owned by the manager.
 */
#include "daemon/control/server.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "daemon/base/log.h"
#include "proto/base.h"

/* Without free fds the listening socket stays readable: do not spin on it. And whoever connects
 * again and again must not keep the loop busy, nor, as the kernel lets nobody overtake in the
 * socket's queue, others waiting: an eighth of a second for a full one. */
#define ACCEPT_INTERVAL_USEC 50000
#define ACCEPT_BURST	     100
/* From strangers, who may as well wait. */
#define STATUS_INTERVAL_USEC 250000
#define STATUS_BURST	     50
/* Connections beyond the limit for administrators alone. */
#define ADMIN_PEERS  8
#define STATUS_CALLS 16

struct server {
	sd_event *event;
	struct server_limits limits;
	const struct access *access;
	struct peer_handler handler;
	sd_event_source *io;
	struct peer **peers;
	size_t n;
};

static size_t server_count_uid(const struct server *s, uid_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += peer_credentials(s->peers[i])->uid == uid;
	return n;
}

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

/* Why PEER cannot stay; NULL: it can. */
static const char *server_refusal(const struct server *s, const struct peer *peer)
{
	uid_t uid = peer_credentials(peer)->uid;

	if (s->n >= s->limits.peers && access_rank_of(s->access, peer) < ACCESS_ADMIN)
		return "too many are open";
	if (s->n >= s->limits.peers + s->limits.admins)
		return "too many are open, even for an administrator";
	if (uid != 0 && server_count_uid(s, uid) >= s->limits.peers_per_uid)
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

/* How often connections are looked at. */
static int server_limit_accept(struct server *s)
{
	if (s->limits.calls == 0)
		return sd_event_source_set_ratelimit(s->io, ACCEPT_INTERVAL_USEC, ACCEPT_BURST);
	return sd_event_source_set_ratelimit(s->io, STATUS_INTERVAL_USEC, STATUS_BURST);
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
		r = server_limit_accept(s);
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
