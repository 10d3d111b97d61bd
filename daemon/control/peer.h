/*
 * One connection to a control socket: turns bytes into calls and replies into bytes, and says who
 * has connected.
 *
 * Calls are answered in order: the next call is read when the last one has been answered and its
 * answer has left. A client that breaks the protocol, or makes no call for too long, loses the
 * connection.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <json-c/json.h>
#include <systemd/sd-event.h>

#include "daemon/config/names.h"
#include "daemon/store/entry.h"
#include "proto/varlink.h"

struct peer;

struct peer_handler {
	void *userdata;
	/* A call, to be answered now or later by peer_reply or peer_error. CALL and its message are
	 * borrowed until on_call returns. */
	void (*on_call)(void *userdata, struct peer *peer, const struct varlink_call *call);
	/* The connection is over: forget PEER. The handler calls peer_free. */
	void (*on_gone)(void *userdata, struct peer *peer);
};

/* FD (non-blocking stream socket) is taken over. IDLE_USEC without a call end the connection. 0 or
 * -errno. */
int peer_new(sd_event *event, int fd, uint64_t idle_usec, const struct peer_handler *handler,
	     struct peer **ret);
void peer_free(struct peer *p);
/* Limits the size of calls and, to CALLS, their number, and lets all other connections go first.
 * Call at once after peer_new. */
void peer_restrict(struct peer *p, unsigned calls);

const struct ucred *peer_credentials(const struct peer *p);
/* "pid 7 (COMM, UNIT), uid 1000" for messages. COMM and UNIT are left out unless they certainly
 * belong to the process that connected, and not to another one that has the pid now. */
#define PEER_NAME_SIZE 384
void peer_name(const struct peer *p, char ret[PEER_NAME_SIZE]);
/* The unit of the process that connected, "" where it is not known for certain. */
void peer_unit(const struct peer *p, char ret[ENTRY_UNIT_SIZE]);
/* Whether the user was in group GID (primary or supplementary) at connect. */
bool peer_in_group(const struct peer *p, gid_t gid);
/* Whether the call that is being answered may have several replies. */
bool peer_wants_more(const struct peer *p);
/* Whether all queued replies have been sent. Optional replies (progress) wait for that. */
bool peer_is_drained(const struct peer *p);

/* Queues PARAMETERS (taken over; NULL: {}) as a reply to the call; CONTINUES: more replies will
 * follow. FD is taken over and travels with the reply. Nothing is sent for a oneway call. A reply
 * that is longer than VARLINK_MAX_MESSAGE becomes the error TooLong. */
void peer_reply(struct peer *p, struct json_object *parameters, bool continues);
void peer_reply_fd(struct peer *p, struct json_object *parameters, int fd);
/* Answers the call with as many replies as it takes, however many these are: NEXT makes the next
 * few replies whenever all replies before have been sent, until one of them is the last. STATE,
 * from malloc(3), is taken over. A client that reads nothing for as long as it may be without a
 * call loses the connection. */
void peer_reply_stepwise(struct peer *p, void (*next)(void *state, struct peer *p), void *state);
/* An error of our interface ("io.ptsnap.recorder.Busy"). */
void peer_error(struct peer *p, const char *error, struct json_object *parameters);
/* An error of org.varlink.service, as varlink_make_service_error. */
void peer_service_error(struct peer *p, const char *name, const char *key, const char *value);
/* Sends what can be sent without waiting. */
void peer_flush(struct peer *p);

/* Ranks, by the credentials that the kernel noted at connect(2). */
enum access_rank {
	ACCESS_ANYBODY = 0, /* whoever can connect */
	ACCESS_USER,	    /* whoever can connect, and sees nothing of what others did */
	ACCESS_ADMIN,	    /* root, our own user, members of the group AdminGroup= */
};

struct access {
	bool have_admins; /* there is such a group */
	gid_t admins;
	char admin_group[64]; /* its name, for messages; "": none */
};

/* Sets the group of administrators. NAME is a group's name or number; "", NULL, or a group that the
 * host does not have: no group. While NAMES does not know the group yet, nothing changes. Call at
 * the start, at a reload, and when NAMES knows more. */
void access_use(struct access *a, const char *name, const struct names *names);
/* ACCESS_USER or ACCESS_ADMIN. */
enum access_rank access_rank_of(const struct access *a, const struct peer *peer);
