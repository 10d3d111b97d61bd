/*
 * One connection to the control socket: bytes -> calls, replies -> bytes.
 *
 * Calls are answered in order: the next one is looked at when the last one has been answered and
 * its answer has left, so a client that does not read holds up nobody but itself. Whatever breaks
 * the protocol, and 45 s without a call, closes the connection.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <json-c/json.h>
#include <systemd/sd-event.h>

#include "daemon/store/entry.h"
#include "proto/varlink.h"

struct peer;

struct peer_handler {
	void *userdata;
	/* A call, to be answered now or later by peer_reply or peer_error. CALL and its message are
	 * borrowed until it returns. */
	void (*on_call)(void *userdata, struct peer *peer, const struct varlink_call *call);
	/* The connection is over: forget it; the handler calls peer_free. */
	void (*on_gone)(void *userdata, struct peer *peer);
};

/* FD (non-blocking stream socket) is taken over. 0 or -errno. */
int peer_new(sd_event *event, int fd, uint64_t idle_usec, const struct peer_handler *handler,
	     struct peer **ret);
void peer_free(struct peer *p);
/* Calls have few bytes, and after CALLS of them it is closed; everybody else's are answered first.
 * At once after peer_new. */
void peer_restrict(struct peer *p, unsigned calls);

const struct ucred *peer_credentials(const struct peer *p);
/* "pid 7 (COMM, UNIT), uid 1000" for messages; comm and unit only where they are certainly those of
 * who has connected, and not of another process that has got the pid since. */
#define PEER_NAME_SIZE 384
void peer_name(const struct peer *p, char ret[PEER_NAME_SIZE]);
/* The unit that it runs in, "" where that is not known for certain. */
void peer_unit(const struct peer *p, char ret[ENTRY_UNIT_SIZE]);
/* Is the user in group GID (primary or supplementary, as they were at connect)? */
bool peer_in_group(const struct peer *p, gid_t gid);
/* May the call being answered have several replies? */
bool peer_wants_more(const struct peer *p);
/* Has all that was queued been sent? Optional replies (progress) wait for that. */
bool peer_is_drained(const struct peer *p);

/* PARAMETERS (taken over; NULL: {}) as a reply to the call; CONTINUES: more will follow. With
 * FD >= 0 (taken over) that travels with it. Nothing is sent for a oneway call. */
void peer_reply(struct peer *p, struct json_object *parameters, bool continues);
void peer_reply_fd(struct peer *p, struct json_object *parameters, int fd);
/* An error of our interface ("io.ptsnap.recorder.Busy"). */
void peer_error(struct peer *p, const char *error, struct json_object *parameters);
/* An error of org.varlink.service, as varlink_make_service_error. */
void peer_service_error(struct peer *p, const char *name, const char *key, const char *value);
/* Sends what can be sent at once: the recorder ends, or more is to come. */
void peer_flush(struct peer *p);
