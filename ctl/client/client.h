/*
 * A connection to the recorder, and the bundles that it has stored.
 *
 * This room asks the recorder: client.c makes one call at a time over the control socket (Varlink,
 * io.ptsnap.recorder(7)) and says the recorder's errors in words. stored.c gives a verb a stored
 * bundle as one file, whether it comes from a recorder or from a state directory. join.c puts the
 * bundle together with its images.
 *
 * Decisions that govern the room:
 * - Every failure is printed where it is found, with what the user can do about it, and returned as
 *   an exit code. A caller passes the code on and prints nothing.
 * - Reports, bundles and images come as file descriptors. ptsnapctl checks that a descriptor is a
 *   regular file of the announced size, and never waits for a socket beyond the deadline of the
 *   connection (--timeout=).
 * - The recorder is trusted to be the recorder, but what it passes on is not: names and messages
 *   are escaped, sizes are checked, and a bundle and its list of images are checked before use.
 * - A stored bundle lacks the bytes of programs: they lie once a host in the recorder's image
 *   cache. ptsnapctl joins both into a bundle that decodes on any host.
 *
 * A struct client belongs to one verb and one thread. The socket's path and the settings are
 * borrowed from the command line.
 */
#pragma once

#include <json-c/json.h>

#include "ctl/base/option.h"

#define CLIENT_INTERFACE "io.ptsnap.recorder"
/* The default timeout for calls that the recorder answers at once. */
#define CLIENT_TIMEOUT_USEC 30000000ull

struct client;

/* Connects. --timeout, or else DEFAULT_TIMEOUT_USEC (0: no limit), counts from here for everything
 * on this connection. *ret is the caller's. Returns an exit code. */
int client_open(const struct settings *s, uint64_t default_timeout_usec, struct client **ret);
/* The same for the method Status: if the user may not use the socket, connects to the socket for
 * all users beside it (SOCKET.status). */
int client_open_status(const struct settings *s, uint64_t default_timeout_usec,
		       struct client **ret);
/* Returns 0 if a program listens at the socket, else -errno. Prints nothing. */
int client_probe(const struct settings *s);
void client_freep(struct client **c);

/* Takes the PARAMETERS (borrowed) of a reply that is not the last. A result other than 0 ends the
 * call, which returns the result. */
typedef int (*client_reply_fn)(void *userdata, struct json_object *parameters);

/* Calls METHOD ("Status") with PARAMETERS (taken over; may be NULL). With ON_REPLY, the call asks
 * for more than one reply. *ret is the last reply's parameters, an object, the caller's. Returns an
 * exit code. */
int client_call(struct client *c, const char *method, struct json_object *parameters,
		client_reply_fn on_reply, void *userdata, struct json_object **ret);

/* Gets the stored report or bundle ID as a file: FORMAT is "report" or "bundle", *ret_fd is the
 * caller's. Returns an exit code. */
int client_get(struct client *c, const char *id, const char *format, int *ret_fd);
/* The same for the list of images (FORMAT "images") and for one image ("image:N"). -ENOENT, without
 * a message: the recorder has none. */
int client_get_image(struct client *c, const char *id, const char *format, int *ret_fd);
