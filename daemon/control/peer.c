/*
 * One connection, and the rank of who connected.
 *
 * A deferred event source does what a callback must not do in place: read the next call while one
 * is being answered, and free the peer while a caller still uses it.
 */
#include "daemon/control/peer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/unitname.h"
#include "proto/base.h"

#define MAX_GROUPS 1024
/* After so many calls other connections have their turn: a mebibyte of calls may come at once. */
#define CALLS_AT_ONCE 16
#define NO_LIMIT      UINT_MAX
#define TOO_LONG      "io.ptsnap.recorder.TooLong"
/* Bytes of a call of a restricted peer. */
#define MAX_RESTRICTED 4096u
/* include/uapi/asm-generic/socket.h, Linux 6.5. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

struct peer {
	int fd;
	struct varlink *varlink;
	struct peer_handler handler;
	struct ucred credentials;
	int pidfd; /* of the process that connected; -EBADF: the kernel is too old */
	uint64_t idle_usec;
	sd_event_source *io, *idle, *later;
	bool open;	   /* a call waits for its (last) reply */
	bool more, oneway; /* flags of the call */
	bool dead;
	unsigned calls_left; /* NO_LIMIT */
	/* Makes further replies to the call from STATE (owned); NULL: others make them. */
	void (*next)(void *state, struct peer *p);
	void *state;
};

static void peer_defer(struct peer *p)
{
	sd_event_source_set_enabled(p->later, SD_EVENT_ONESHOT);
}

static void peer_die(struct peer *p, const char *why)
{
	if (p->dead)
		return;
	log_debug("connection of pid %d closed: %s", (int)p->credentials.pid, why);
	p->dead = true;
	sd_event_source_set_enabled(p->io, SD_EVENT_OFF);
	sd_event_source_set_enabled(p->idle, SD_EVENT_OFF);
	peer_defer(p);
}

/* Answers one call, if its message is complete. 0, VARLINK_AGAIN: there is none, or -errno. */
static int peer_call(struct peer *p)
{
	struct json_object *message = NULL;
	struct varlink_call call;
	int r = varlink_next(p->varlink, &message);

	if (r != 0)
		return r;
	if (p->calls_left == 0) {
		json_object_put(message);
		return -EDQUOT;
	}
	p->calls_left -= p->calls_left != NO_LIMIT;
	r = varlink_parse_call(message, &call);
	if (r == 0) {
		p->open = true;
		p->more = call.more;
		p->oneway = call.oneway;
		sd_event_source_set_enabled(p->idle, SD_EVENT_OFF);
		p->handler.on_call(p->handler.userdata, p, &call);
	}
	json_object_put(message);
	return r;
}

/* Gives the client time again until it makes a call or reads. */
static void peer_rest(struct peer *p)
{
	sd_event_source_set_time_relative(p->idle, p->idle_usec);
	sd_event_source_set_enabled(p->idle, SD_EVENT_ONESHOT);
}

static void peer_end_steps(struct peer *p)
{
	free(TAKE_PTR(p->state));
	p->next = NULL;
}

/* Sends answers and answers calls until there are none, or the other side must act first. */
static void peer_pump(struct peer *p)
{
	uint32_t events = 0;
	int r = 0, n = 0, sent;

	while (!p->dead && r == 0) {
		sent = varlink_send(p->varlink, p->fd);
		if (sent < 0)
			peer_die(p, "it cannot be written to");
		if (sent != 0 || (p->open && !p->next) || n++ >= CALLS_AT_ONCE)
			break;
		if (p->open) {
			peer_rest(p);
			p->next(p->state, p);
			if (!p->open)
				peer_end_steps(p);
		} else {
			r = peer_call(p);
		}
	}
	if (r < 0)
		peer_die(p, r == -EDQUOT ? "it has called too often"
					 : "it does not speak the protocol");
	if (p->dead)
		return;
	if (n > CALLS_AT_ONCE)
		peer_defer(p);
	else if (varlink_has_output(p->varlink))
		events |= EPOLLOUT;
	else if (!p->open)
		events |= EPOLLIN;
	sd_event_source_set_io_events(p->io, events);
}

static int peer_on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct peer *p = userdata;
	int r = 0;

	(void)source;
	(void)fd;
	/* EPOLLIN is watched only when all calls are answered and all answers sent, so an end of
	 * the stream is the end of the connection. */
	if (revents & EPOLLIN)
		r = varlink_receive(p->varlink, p->fd, false);
	else if (revents & (EPOLLHUP | EPOLLERR))
		peer_die(p, "hung up");
	if (r == VARLINK_END)
		peer_die(p, "end");
	else if (r < 0)
		peer_die(p, r == -EMSGSIZE ? "a message is too long" : "it cannot be read");
	peer_pump(p);
	return 0;
}

static int peer_on_idle(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct peer *p = userdata;

	(void)source;
	(void)usec;
	peer_die(p, p->open ? "it does not read its answers" : "no call for too long");
	return 0;
}

static int peer_on_later(sd_event_source *source, void *userdata)
{
	struct peer *p = userdata;

	(void)source;
	if (p->dead)
		p->handler.on_gone(p->handler.userdata, p);
	else
		peer_pump(p);
	return 0;
}

int peer_new(sd_event *event, int fd, uint64_t idle_usec, const struct peer_handler *handler,
	     struct peer **ret)
{
	struct peer *p = calloc(1, sizeof(*p));
	socklen_t size = sizeof(p->credentials);
	int r;

	if (!p) {
		close_fd(fd);
		return -ENOMEM;
	}
	p->fd = fd;
	p->pidfd = -EBADF;
	p->idle_usec = idle_usec;
	p->calls_left = NO_LIMIT;
	p->handler = *handler;
	r = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &p->credentials, &size) < 0 ? -errno : 0;
	size = sizeof(p->pidfd);
	if (r == 0 && getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &p->pidfd, &size) < 0)
		p->pidfd = -EBADF;
	if (r == 0)
		r = varlink_new(&p->varlink);
	if (r == 0)
		r = sd_event_add_io(event, &p->io, fd, EPOLLIN, peer_on_io, p);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &p->idle, CLOCK_MONOTONIC, idle_usec,
					       idle_usec / 10 + 1, peer_on_idle, p);
	if (r >= 0)
		r = sd_event_add_defer(event, &p->later, peer_on_later, p);
	if (r >= 0)
		r = sd_event_source_set_enabled(p->later, SD_EVENT_OFF);
	if (r < 0) {
		peer_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void peer_restrict(struct peer *p, unsigned calls)
{
	p->calls_left = calls;
	varlink_limit(p->varlink, MAX_RESTRICTED);
	sd_event_source_set_priority(p->io, SD_EVENT_PRIORITY_NORMAL + 10);
	sd_event_source_set_priority(p->later, SD_EVENT_PRIORITY_NORMAL + 10);
}

void peer_free(struct peer *p)
{
	if (!p)
		return;
	sd_event_source_disable_unref(p->io);
	sd_event_source_disable_unref(p->idle);
	sd_event_source_disable_unref(p->later);
	varlink_free(p->varlink);
	free(p->state);
	close_fd(p->pidfd);
	close_fd(p->fd);
	free(p);
}

const struct ucred *peer_credentials(const struct peer *p)
{
	return &p->credentials;
}

/* Whether the process that connected certainly lives, so that its pid is no other process's. */
static bool peer_lives(const struct peer *p)
{
	struct pollfd pollfd = {.fd = p->pidfd, .events = POLLIN};

	return p->pidfd >= 0 && poll(&pollfd, 1, 0) == 0;
}

void peer_unit(const struct peer *p, char ret[ENTRY_UNIT_SIZE])
{
	if (unitname_of_pid("/proc", (uint64_t)p->credentials.pid, ret) < 0 || !peer_lives(p))
		*ret = '\0';
}

void peer_name(const struct peer *p, char ret[PEER_NAME_SIZE])
{
	char path[64], comm[32], unit[ENTRY_UNIT_SIZE];
	CLEANUP_CLOSE int fd = -EBADF;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)p->credentials.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, comm, sizeof(comm) - 1) : 0;
	comm[MAX_OF(n, 0)] = '\0';
	comm[strcspn(comm, "\n")] = '\0';
	peer_unit(p, unit);
	if (*comm && peer_lives(p))
		snprintf(ret, PEER_NAME_SIZE, "pid %d (%s%s%s), uid %u", (int)p->credentials.pid,
			 comm, *unit ? ", " : "", unit, (unsigned)p->credentials.uid);
	else
		snprintf(ret, PEER_NAME_SIZE, "pid %d, uid %u", (int)p->credentials.pid,
			 (unsigned)p->credentials.uid);
}

bool peer_in_group(const struct peer *p, gid_t gid)
{
	gid_t groups[MAX_GROUPS];
	socklen_t size = sizeof(groups);

	if (p->credentials.gid == gid)
		return true;
	if (getsockopt(p->fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
		return false;
	for (size_t i = 0; i < size / sizeof(*groups); i++)
		if (groups[i] == gid)
			return true;
	return false;
}

bool peer_wants_more(const struct peer *p)
{
	return p->more;
}

bool peer_is_drained(const struct peer *p)
{
	return !varlink_has_output(p->varlink);
}

/* Tells the client, in place of a reply that no message can hold, that this is so. 0 or -errno. */
static int queue_too_long(struct peer *p)
{
	struct json_object *o = json_object_new_object(), *message;
	int r;

	if (o)
		json_object_object_add(o, "maxBytes", json_object_new_int(VARLINK_MAX_MESSAGE));
	message = varlink_make_error(TOO_LONG, o);
	r = message ? varlink_queue(p->varlink, message, -EBADF) : -ENOMEM;
	json_object_put(message);
	return r;
}

/* Queues MESSAGE (taken over; NULL: no memory) and FD (taken over) as a reply. */
static void peer_queue(struct peer *p, struct json_object *message, int fd, bool continues)
{
	int r = -ENOMEM;

	if (p->oneway || p->dead) {
		close_fd(fd);
		r = 0;
	} else if (message) {
		r = varlink_queue(p->varlink, message, fd);
	} else {
		close_fd(fd);
	}
	json_object_put(message);
	if (r == -EMSGSIZE) {
		r = queue_too_long(p);
		continues = false;
	}
	if (r < 0)
		peer_die(p, r == -ENOMEM ? "no memory" : "it does not read its answers");
	if (p->dead)
		return;
	p->open = continues;
	if (!continues)
		peer_rest(p);
	peer_defer(p);
}

void peer_reply(struct peer *p, struct json_object *parameters, bool continues)
{
	peer_queue(p, varlink_make_reply(parameters, continues), -EBADF, continues);
}

void peer_reply_fd(struct peer *p, struct json_object *parameters, int fd)
{
	peer_queue(p, varlink_make_reply(parameters, false), fd, false);
}

void peer_reply_stepwise(struct peer *p, void (*next)(void *state, struct peer *p), void *state)
{
	assert(p->open && !p->next);
	p->next = next;
	p->state = state;
	peer_rest(p);
	peer_defer(p);
}

void peer_error(struct peer *p, const char *error, struct json_object *parameters)
{
	peer_queue(p, varlink_make_error(error, parameters), -EBADF, false);
}

void peer_service_error(struct peer *p, const char *name, const char *key, const char *value)
{
	peer_queue(p, varlink_make_service_error(name, key, value), -EBADF, false);
}

void peer_flush(struct peer *p)
{
	if (!p->dead)
		varlink_send(p->varlink, p->fd);
}

void access_use(struct access *a, const char *name, const struct names *names)
{
	uint32_t gid = 0;
	int r = name && *name ? names_find(names, NAMES_GROUP, name, &gid) : -ENOENT;

	if (r == -EAGAIN)
		return;
	snprintf(a->admin_group, sizeof(a->admin_group), "%s", name ? name : "");
	a->have_admins = r == 0;
	a->admins = gid;
}

enum access_rank access_rank_of(const struct access *a, const struct peer *peer)
{
	uid_t uid = peer_credentials(peer)->uid;

	if (uid == 0 || uid == geteuid() || (a->have_admins && peer_in_group(peer, a->admins)))
		return ACCESS_ADMIN;
	return ACCESS_USER;
}
