/*
 * One connection to the recorder: calls, replies, an fd. Every failure is said (say.h) where it is
 * met, with what to do about it, and given as an exit code (exit_code.h).
 */
#pragma once

#include <json-c/json.h>

#include "ctl/base/option.h"

#define CLIENT_INTERFACE "io.ptsnap.recorder"
/* For calls that are answered at once. */
#define CLIENT_TIMEOUT_USEC 30000000ull

struct client;

/* Connects. DEFAULT_TIMEOUT (0: none) counts from here for everything on this connection, unless
 * --timeout was given. */
int client_open(const struct settings *s, uint64_t default_timeout_usec, struct client **ret);
/* So, for Status alone: where the socket is not ours to use, the one for everybody beside it is
 * tried. */
int client_open_status(const struct settings *s, uint64_t default_timeout_usec,
		       struct client **ret);
/* Does anybody listen at the settings' socket? Says nothing. 0 or -errno. */
int client_probe(const struct settings *s);
void client_freep(struct client **c);

/* PARAMETERS of a reply that is not the last. A code other than 0 ends the call with it. */
typedef int (*client_reply_fn)(void *userdata, struct json_object *parameters);

/* Calls METHOD ("Status"); PARAMETERS (may be NULL) is taken over. With ON_REPLY, asks for "more"
 * and hands over every reply with "continues". *ret is the last reply's parameters (an object, the
 * caller's). */
int client_call(struct client *c, const char *method, struct json_object *parameters,
		client_reply_fn on_reply, void *userdata, struct json_object **ret);

/* Get(ID, FORMAT): the fd of a stored report or bundle, checked to be a file of the size that was
 * announced. */
int client_get(struct client *c, const char *id, const char *format, int *ret_fd);
/* The same for "images" and "image:N"; -ENOENT, which is not said: the recorder has none. */
int client_get_image(struct client *c, const char *id, const char *format, int *ret_fd);
