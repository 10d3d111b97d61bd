/*
 * Varlink (varlink.org): framing, calls, replies and limits. A message is one JSON object and one
 * NUL byte on a stream socket.
 *
 * Nothing here owns a socket or an event loop: the recorder (daemon/control) and ptsnapctl
 * (ctl/client) feed received bytes in and take bytes out. docs/io.ptsnap.recorder.7 has the details
 * of the protocol and the limits. Unknown keys of a message are ignored, because newer peers may
 * send them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#define VARLINK_MAX_MESSAGE (1u << 20)	/* bytes of a request or reply, without its NUL */
#define VARLINK_MAX_QUEUED  (16u << 20) /* bytes waiting to be sent on one connection */
#define VARLINK_MAX_DEPTH   16
#define VARLINK_MAX_FDS	    4 /* that may be queued at a time */

/* The interface description of the recorder: io.ptsnap.recorder.varlink as a string, made by the
 * build. */
extern const char recorder_idl[];

/* The buffers of one connection, for both directions. */
struct varlink;

int varlink_new(struct varlink **ret);
void varlink_free(struct varlink *v);
void varlink_freep(struct varlink **v);

/* Limits further received messages to MAX bytes (at most VARLINK_MAX_MESSAGE). */
void varlink_limit(struct varlink *v, size_t max);
/* Receives from FD (non-blocking), at most 64 KiB a call. With ACCEPT_FDS keeps at most one
 * descriptor that comes with the bytes; else the kernel closes descriptors. 0: something was
 * received; VARLINK_AGAIN: nothing was received, or complete messages of more than
 * VARLINK_MAX_MESSAGE bytes in all wait for varlink_next() (call it until it returns VARLINK_AGAIN
 * before every poll); VARLINK_END: the peer closed; -EMSGSIZE: a message exceeds its limit; or
 * another -errno. */
#define VARLINK_AGAIN 1
#define VARLINK_END   2
int varlink_receive(struct varlink *v, int fd, bool accept_fds);
/* Returns the next complete message as a JSON object; *ret is the caller's (json_object_put). 0;
 * VARLINK_AGAIN; -ENOMEM; or -EBADMSG: empty, not an object, trailing bytes, invalid UTF-8, too
 * deep, or more than 4096 arrays and objects or 65536 commas. The connection must then be closed.
 */
int varlink_next(struct varlink *v, struct json_object **ret);
/* Returns the oldest received descriptor, the caller's, or -EBADF. */
int varlink_take_fd(struct varlink *v);
/* Queues MESSAGE (borrowed). FD_TO_SEND, if >= 0, is taken over, travels with the message's first
 * byte, and is closed when it is sent or on failure. 0, -ENOBUFS (VARLINK_MAX_QUEUED), -EMSGSIZE
 * (more bytes, arrays and objects, or commas than varlink_next() takes), -ENOMEM. */
int varlink_queue(struct varlink *v, struct json_object *message, int fd_to_send);
/* Sends as much as FD takes. 0: everything was sent; VARLINK_AGAIN: more is waiting; -errno (-EPIPE
 * without a signal). */
int varlink_send(struct varlink *v, int fd);
bool varlink_has_output(const struct varlink *v);
bool varlink_has_partial_input(const struct varlink *v);

/* A checked call: the method has an interface and a name, the flags are booleans, and not both more
 * and oneway are set. */
struct varlink_call {
	const char *method;  /* "io.ptsnap.recorder.Snapshot", borrowed from the message */
	char interface[256]; /* "io.ptsnap.recorder" */
	const char *name;    /* "Snapshot", within method */
	struct json_object *parameters; /* borrowed; NULL: absent, null or {} */
	bool more, oneway, upgrade;
};
/* 0 or -EBADMSG. */
int varlink_parse_call(struct json_object *message, struct varlink_call *ret);

/* Make messages. Each result is the caller's; NULL: no memory. PARAMETERS are taken over; NULL
 * means
 * {}. */
struct json_object *varlink_make_call(const char *method, struct json_object *parameters,
				      bool more);
struct json_object *varlink_make_reply(struct json_object *parameters, bool continues);
struct json_object *varlink_make_error(const char *error, struct json_object *parameters);
/* Makes one of org.varlink.service.{MethodNotFound{method},InterfaceNotFound{interface},
 * InvalidParameter{parameter},MethodNotImplemented{method}}. KEY is the name in braces. */
struct json_object *varlink_make_service_error(const char *name, const char *key,
					       const char *value);

/* A reply that a client received. */
struct varlink_reply {
	const char *error;		/* borrowed; NULL: success */
	struct json_object *parameters; /* borrowed; NULL: none */
	bool continues;
};
/* 0 or -EBADMSG. */
int varlink_parse_reply(struct json_object *message, struct varlink_reply *ret);

/* Read a parameter of a type. If FIELD is absent or null, *ret stays as it was. 0, or -EINVAL:
 * wrong type or range. */
int varlink_get_string(struct json_object *parameters, const char *field, const char **ret);
int varlink_get_u64(struct json_object *parameters, const char *field, uint64_t *ret);
int varlink_get_bool(struct json_object *parameters, const char *field, bool *ret);
/* Returns the first key of PARAMETERS that is not in ALLOWED (ends in NULL), or NULL. */
const char *varlink_unknown_field(struct json_object *parameters, const char *const *allowed);
