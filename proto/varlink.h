/*
 * Varlink (varlink.org) framing, calls, replies and limits: one JSON object, then one NUL byte,
 * over a stream socket. This file knows no sockets' lifetimes and no event loop: the daemon's
 * peer.c and the client feed bytes in and take bytes out. Wire details and limits:
 * docs/io.ptsnap.recorder.7
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#define VARLINK_MAX_MESSAGE (1u << 20)	/* a request or reply, without its NUL */
#define VARLINK_MAX_QUEUED  (16u << 20) /* bytes waiting to be sent on one connection */
#define VARLINK_MAX_DEPTH   16
#define VARLINK_MAX_FDS	    4 /* that may be queued with messages at a time */

/* One connection's two buffers. */
struct varlink;

int varlink_new(struct varlink **ret);
void varlink_free(struct varlink *v);
void varlink_freep(struct varlink **v);

/* From now on a message that is read has at most MAX bytes (up to VARLINK_MAX_MESSAGE). */
void varlink_limit(struct varlink *v, size_t max);
/* Reads what FD (non-blocking) has, at most 64 KiB a call, and keeps at most one fd that came with
 * it when ACCEPT_FDS (else fds never reach us: plain recv). 0: something was read; VARLINK_AGAIN
 * (also, with nothing read, while complete messages of more than VARLINK_MAX_MESSAGE bytes in all
 * wait for varlink_next: call that until it says VARLINK_AGAIN before every poll); VARLINK_END: the
 * peer closed; -EMSGSIZE: a message grew beyond VARLINK_MAX_MESSAGE, or what it was limited to;
 * -errno. */
#define VARLINK_AGAIN 1
#define VARLINK_END   2
int varlink_receive(struct varlink *v, int fd, bool accept_fds);
/* The next complete message as a JSON object; *ret is the caller's (json_object_put). 0,
 * VARLINK_AGAIN, -ENOMEM, or -EBADMSG: empty, not an object, trailing bytes, bad UTF-8, too deep,
 * more than 4096 arrays and objects or 65536 commas; the connection must then be closed. */
int varlink_next(struct varlink *v, struct json_object **ret);
/* An fd that came with received bytes (the oldest), owned by the caller; -EBADF: none. */
int varlink_take_fd(struct varlink *v);
/* Queues MESSAGE (borrowed); with FD_TO_SEND >= 0 (taken over, closed when sent or on failure) the
 * fd travels with the first byte of this very message. 0, -ENOBUFS (VARLINK_MAX_QUEUED), -EMSGSIZE,
 * -ENOMEM. */
int varlink_queue(struct varlink *v, struct json_object *message, int fd_to_send);
/* Writes what FD takes. 0: all gone; VARLINK_AGAIN: more is waiting; -errno (-EPIPE without a
 * signal). */
int varlink_send(struct varlink *v, int fd);
bool varlink_has_output(const struct varlink *v);
bool varlink_has_partial_input(const struct varlink *v);

/* A call, checked: method has an interface and a name, flags are booleans, not more and oneway. */
struct varlink_call {
	const char *method;  /* "io.ptsnap.recorder.Snapshot", borrowed from the message */
	char interface[256]; /* "io.ptsnap.recorder" */
	const char *name;    /* "Snapshot", within method */
	struct json_object *parameters; /* borrowed; NULL: absent, null or {} */
	bool more, oneway, upgrade;
};
/* 0 or -EBADMSG. */
int varlink_parse_call(struct json_object *message, struct varlink_call *ret);

/* Messages; each result is the caller's; NULL: no memory. PARAMETERS is taken over, NULL gives {}.
 */
struct json_object *varlink_make_call(const char *method, struct json_object *parameters,
				      bool more);
struct json_object *varlink_make_reply(struct json_object *parameters, bool continues);
struct json_object *varlink_make_error(const char *error, struct json_object *parameters);
/* org.varlink.service.{MethodNotFound{method},InterfaceNotFound{interface},
 * InvalidParameter{parameter},MethodNotImplemented{method}}; KEY is the name in braces. */
struct json_object *varlink_make_service_error(const char *name, const char *key,
					       const char *value);

/* A reply read by a client. */
struct varlink_reply {
	const char *error;		/* borrowed; NULL: success */
	struct json_object *parameters; /* borrowed; NULL: none */
	bool continues;
};
int varlink_parse_reply(struct json_object *message, struct varlink_reply *ret);

/* Typed access to parameters, so that each method's check is one line. FIELD absent or null: the
 * value stays as it was. 0 or -EINVAL (wrong type or range). */
int varlink_get_string(struct json_object *parameters, const char *field, const char **ret);
int varlink_get_u64(struct json_object *parameters, const char *field, uint64_t *ret);
int varlink_get_bool(struct json_object *parameters, const char *field, bool *ret);
/* The first key of PARAMETERS that is not in ALLOWED (NULL-terminated), or NULL. */
const char *varlink_unknown_field(struct json_object *parameters, const char *const *allowed);
