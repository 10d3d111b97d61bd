/*
 * The client's half of the control socket: one connection, one call at a time, and the recorder's
 * errors in words.
 */
#include "ctl/client/client.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "ctl/base/say.h"
#include "proto/base.h"
#include "proto/varlink.h"

#define NO_DEADLINE UINT64_MAX

struct client {
	const char *path; /* of the socket, for messages; borrowed */
	int fd;
	struct varlink *varlink;
	uint64_t deadline;	 /* CLOCK_MONOTONIC, us */
	bool no_image_is_answer; /* NoSuchImage gives -ENOENT and no message */
};

void client_freep(struct client **c)
{
	if (!*c)
		return;
	varlink_free((*c)->varlink);
	close_fd((*c)->fd);
	free(*c);
}

/* --- Errors of the recorder (proto/io.ptsnap.recorder.varlink) and of org.varlink.service --- */

static const char *word(struct json_object *parameters, const char *field)
{
	const char *text = "?";

	(void)varlink_get_string(parameters, field, &text);
	return text;
}

static uint64_t number(struct json_object *parameters, const char *field)
{
	uint64_t value = 0;

	(void)varlink_get_u64(parameters, field, &value);
	return value;
}

static uint64_t retry_after_ms(struct json_object *parameters)
{
	return (number(parameters, "retryAfterUSec") + 999) / 1000;
}

static int say_pinned(struct json_object *p)
{
	const char *id = word(p, "id");

	return say_error(EXIT_CODE_FAILURE,
			 "%s: the snapshot is pinned; run `ptsnapctl unpin %s' first", id, id);
}

static int say_too_many_pinned(struct json_object *p)
{
	return say_error(EXIT_CODE_FAILURE,
			 "too much would be pinned: %" PRIu64 " snapshots of at most %" PRIu64
			 ", %" PRIu64 " bytes of at most %" PRIu64 ", which is half of "
			 "MaxSnapshots= and MaxUse=; unpin other snapshots (`ptsnapctl list' shows "
			 "them), or copy the snapshot with `ptsnapctl fetch --format=bundle'",
			 number(p, "snapshots"), number(p, "maxSnapshots"), number(p, "bytes"),
			 number(p, "maxBytes"));
}

static int say_busy(struct json_object *p)
{
	return say_error(EXIT_CODE_BUSY, "the recorder is busy; try again in %" PRIu64 " ms",
			 retry_after_ms(p));
}

static int say_rate_limited(struct json_object *p)
{
	return say_error(EXIT_CODE_BUSY,
			 "too many snapshots for this trigger or by this user; the recorder takes "
			 "the next snapshot in %" PRIu64 " ms",
			 retry_after_ms(p));
}

static int say_no_space(struct json_object *p)
{
	return say_error(EXIT_CODE_FAILURE,
			 "the recorder's disk is full: %" PRIu64 " bytes needed, %" PRIu64
			 " free; remove old snapshots from its state directory",
			 number(p, "needBytes"), number(p, "haveBytes"));
}

static int say_failed(struct json_object *p)
{
	return say_error(EXIT_CODE_FAILURE, "snapshot %s failed: %s", word(p, "id"),
			 word(p, "cause"));
}

static int say_denied(struct json_object *p)
{
	const char *action = NULL, *group = NULL, *socket = NULL;

	(void)varlink_get_string(p, "action", &action);
	(void)varlink_get_string(p, "group", &group);
	(void)varlink_get_string(p, "socket", &socket);
	if (!action)
		return say_error(EXIT_CODE_PERMISSION, "permission denied by the recorder; run as "
						       "root or ask the administrator");
	if (socket)
		return say_error(EXIT_CODE_PERMISSION,
				 "permission denied by the recorder: %s is not for all users; run "
				 "as root or as a member of the group that owns %s",
				 action, socket);
	if (!group)
		return say_error(EXIT_CODE_PERMISSION,
				 "permission denied by the recorder: %s is for root (the group "
				 "that AdminGroup= in ptsnapd.conf names does not exist)",
				 action);
	return say_error(EXIT_CODE_PERMISSION,
			 "permission denied by the recorder: %s is for root and members of the "
			 "group %s",
			 action, group);
}

#define UNKNOWN_METHOD "the recorder does not know this request; it may be older than ptsnapctl"

/* The message of an error is BEFORE, the string parameter FIELD, and AFTER; or SAY makes it. */
static const struct {
	const char *name;
	int code;
	const char *before, *field, *after;
	int (*say)(struct json_object *parameters);
} ERRORS[] = {
	{CLIENT_INTERFACE ".NoSuchReport", EXIT_CODE_NO_REPORT, "", "id",
	 ": no such report; `ptsnapctl list' shows the reports", NULL},
	{CLIENT_INTERFACE ".AmbiguousReport", EXIT_CODE_NO_REPORT, "", "id",
	 ": more than one report begins like this; give more of the ID (`ptsnapctl list')", NULL},
	{CLIENT_INTERFACE ".NoSuchImage", EXIT_CODE_FAILURE, "", "id",
	 ": the recorder has no such image", NULL},
	{CLIENT_INTERFACE ".Pinned", 0, NULL, NULL, NULL, say_pinned},
	{CLIENT_INTERFACE ".TooManyPinned", 0, NULL, NULL, NULL, say_too_many_pinned},
	{CLIENT_INTERFACE ".NotDecoded", EXIT_CODE_NO_REPORT, "", "id",
	 ": this snapshot has no report; fetch the bundle with --format=bundle and run `ptsnapctl "
	 "decode'",
	 NULL},
	{CLIENT_INTERFACE ".Busy", 0, NULL, NULL, NULL, say_busy},
	{CLIENT_INTERFACE ".RateLimited", 0, NULL, NULL, NULL, say_rate_limited},
	{CLIENT_INTERFACE ".NoSuchTrigger", EXIT_CODE_USAGE, "the recorder has no trigger ",
	 "trigger",
	 ", or the trigger is disabled or not for this unit; `ptsnapctl trigger list' lists the "
	 "triggers",
	 NULL},
	{CLIENT_INTERFACE ".TriggerExists", EXIT_CODE_FAILURE, "the recorder has a trigger ",
	 "trigger", " already", NULL},
	{CLIENT_INTERFACE ".InvalidTrigger", EXIT_CODE_FAILURE,
	 "the recorder does not add the trigger: ", "cause", "", NULL},
	{CLIENT_INTERFACE ".NotReloaded", EXIT_CODE_FAILURE,
	 "the recorder keeps its old configuration: ", "cause", "", NULL},
	{CLIENT_INTERFACE ".NotTracing", EXIT_CODE_NOT_TRACING,
	 "the recorder takes no snapshot: ", "cause", "", NULL},
	{CLIENT_INTERFACE ".Failed", 0, NULL, NULL, NULL, say_failed},
	{CLIENT_INTERFACE ".UnsupportedFormat", EXIT_CODE_USAGE,
	 "the recorder does not know the format ", "format", "", NULL},
	{CLIENT_INTERFACE ".TooLong", EXIT_CODE_FAILURE,
	 "the recorder's answer is longer than a message may be", NULL, "", NULL},
	{CLIENT_INTERFACE ".NotSupported", EXIT_CODE_FAILURE,
	 "the recorder cannot do this: ", "cause", "", NULL},
	{CLIENT_INTERFACE ".NoSpace", 0, NULL, NULL, NULL, say_no_space},
	{CLIENT_INTERFACE ".PermissionDenied", 0, NULL, NULL, NULL, say_denied},
	{"org.varlink.service.PermissionDenied", 0, NULL, NULL, NULL, say_denied},
	{"org.varlink.service.InvalidParameter", EXIT_CODE_USAGE,
	 "the recorder does not accept the value of ", "parameter", "", NULL},
	{"org.varlink.service.MethodNotFound", EXIT_CODE_FAILURE, UNKNOWN_METHOD, NULL, "", NULL},
	{"org.varlink.service.MethodNotImplemented", EXIT_CODE_FAILURE, UNKNOWN_METHOD, NULL, "",
	 NULL},
	{"org.varlink.service.InterfaceNotFound", EXIT_CODE_FAILURE, UNKNOWN_METHOD, NULL, "",
	 NULL},
};

static int say_recorder_error(const char *error, struct json_object *parameters)
{
	for (size_t i = 0; i < ARRAY_SIZE(ERRORS); i++) {
		if (strcmp(ERRORS[i].name, error) != 0)
			continue;
		if (ERRORS[i].say)
			return ERRORS[i].say(parameters);
		return say_error(ERRORS[i].code, "%s%s%s", ERRORS[i].before,
				 ERRORS[i].field ? word(parameters, ERRORS[i].field) : "",
				 ERRORS[i].after);
	}
	return say_error(EXIT_CODE_FAILURE, "the recorder answers with the error %s", error);
}

/* --- The connection --- */

static int say_connect_error(const char *path, int error)
{
	switch (error) {
	case ENOENT:
	case ECONNREFUSED:
		return say_error(EXIT_CODE_UNREACHABLE,
				 "%s: no recorder listens there (%s); start ptsnapd, or name its "
				 "socket with --socket=",
				 path, strerror(error));
	case EACCES:
	case EPERM:
		return say_error(EXIT_CODE_PERMISSION,
				 "%s: permission denied; run as root or as a member of the group "
				 "that owns the socket",
				 path);
	default:
		return say_error(EXIT_CODE_UNREACHABLE, "%s: cannot connect: %s", path,
				 strerror(error));
	}
}

/* Waits for EVENTS on the socket, or 20 ms if there are none. 0 or an exit code. */
static int wait_for(struct client *c, short events)
{
	struct pollfd p = {.fd = events ? c->fd : -1, .events = events};
	uint64_t now = now_usec(CLOCK_MONOTONIC), left = 0;
	int timeout = events ? 60000 : 20;

	if (now < c->deadline)
		left = (c->deadline - now + 999) / 1000;
	if (left == 0)
		return say_error(EXIT_CODE_TIMEOUT,
				 "%s: no answer in time; --timeout= sets how long to wait",
				 c->path);
	if (left < (uint64_t)timeout)
		timeout = (int)left;
	if (poll(&p, 1, timeout) < 0 && errno != EINTR)
		return say_error(EXIT_CODE_FAILURE, "poll: %m");
	return 0;
}

int client_probe(const struct settings *s)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (strlen(s->socket) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, s->socket);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

/* Connects to PATH followed by SUFFIX. 0, -errno, or an exit code. */
static int connect_to(struct client *c, const char *suffix)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int r;

	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s%s", c->path, suffix) >=
	    (int)sizeof(address.sun_path))
		return -ENAMETOOLONG;
	while (connect(c->fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		/* EAGAIN of a UNIX socket: its backlog is full, and poll(2) cannot wait for it. */
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = errno == EAGAIN ? wait_for(c, 0) : 0;
		if (r != 0)
			return r;
	}
	return 0;
}

static int open_client(const struct settings *s, uint64_t default_timeout_usec, bool status,
		       struct client **ret)
{
	uint64_t timeout = s->timeout_usec == UINT64_MAX ? default_timeout_usec : s->timeout_usec;
	CLEANUP(client_freep) struct client *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	c->path = s->socket;
	if (timeout == 0 ||
	    __builtin_add_overflow(now_usec(CLOCK_MONOTONIC), timeout, &c->deadline))
		c->deadline = NO_DEADLINE;
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0 || varlink_new(&c->varlink) < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot make a socket: %m");
	r = connect_to(c, "");
	if (r == -ENAMETOOLONG)
		return say_error(EXIT_CODE_USAGE, "%s: a socket's path has at most %zu bytes",
				 c->path, sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1);
	if (r == -EACCES && status) {
		r = connect_to(c, ".status");
		/* Whatever is wrong with the second socket, the first one refused us. */
		if (r < 0)
			r = -EACCES;
	}
	if (r != 0)
		return r < 0 ? say_connect_error(c->path, -r) : r;
	*ret = TAKE_PTR(c);
	return 0;
}

int client_open(const struct settings *s, uint64_t default_timeout_usec, struct client **ret)
{
	return open_client(s, default_timeout_usec, false, ret);
}

int client_open_status(const struct settings *s, uint64_t default_timeout_usec, struct client **ret)
{
	return open_client(s, default_timeout_usec, true, ret);
}

/* --- Calls --- */

static int say_broken(const struct client *c, int r)
{
	if (r == VARLINK_END || r == -EPIPE || r == -ECONNRESET)
		return say_error(EXIT_CODE_UNREACHABLE,
				 "%s: the recorder closed the connection before it answered; see "
				 "the recorder's log",
				 c->path);
	if (r == -EBADMSG || r == -EMSGSIZE)
		return say_error(EXIT_CODE_FAILURE,
				 "%s: the answer is not valid Varlink; is this ptsnapd's socket?",
				 c->path);
	return say_error(EXIT_CODE_FAILURE, "%s: %s", c->path, strerror(-r));
}

/* Queues a call of METHOD. Takes PARAMETERS over. 0 or an exit code. */
static int queue_call(struct client *c, const char *method, struct json_object *parameters,
		      bool more)
{
	char full[sizeof(CLIENT_INTERFACE) + 64];
	struct json_object *message;
	int r;

	if (parameters) {
		/* The recorder would refuse the whole message without a word about the reason. */
		json_object_object_foreach(parameters, key, value)
		{
			if (!json_object_is_type(value, json_type_string) ||
			    text_is_utf8(json_object_get_string(value)))
				continue;
			say("the %s is not valid UTF-8", key);
			json_object_put(parameters);
			return EXIT_CODE_USAGE;
		}
	}
	assert(strlen(method) < 64);
	snprintf(full, sizeof(full), CLIENT_INTERFACE ".%s", method);
	message = varlink_make_call(full, parameters, more);
	r = message ? varlink_queue(c->varlink, message, -1) : -ENOMEM;
	json_object_put(message);
	if (r == -EMSGSIZE)
		return say_error(EXIT_CODE_USAGE, "the request is longer than 1 MiB");
	return r < 0 ? say_error(EXIT_CODE_FAILURE, "out of memory") : 0;
}

/* Sends all that is queued and receives the next message. 0 or an exit code. */
static int exchange(struct client *c, struct json_object **ret)
{
	int sent, r;

	for (;;) {
		r = varlink_next(c->varlink, ret);
		if (r <= 0)
			return r == 0 ? 0 : say_broken(c, r);
		sent = varlink_send(c->varlink, c->fd);
		/* A recorder that refuses us may have said why before it closed. */
		r = varlink_receive(c->varlink, c->fd, true);
		if (r == 0)
			continue;
		if (r != VARLINK_AGAIN || sent < 0)
			return say_broken(c, r != VARLINK_AGAIN ? r : sent);
		r = wait_for(c, sent == VARLINK_AGAIN ? POLLIN | POLLOUT : POLLIN);
		if (r != 0)
			return r;
	}
}

/* Receives one reply. Sets *ret_last to its parameters if it is the last one. */
static int take_reply(struct client *c, client_reply_fn on_reply, void *userdata,
		      struct json_object **ret_last)
{
	struct json_object *message = NULL, *none;
	struct varlink_reply reply;
	int r = exchange(c, &message);

	if (r != 0)
		return r;
	none = json_object_new_object();
	r = varlink_parse_reply(message, &reply);
	if (r < 0 || (reply.continues && !on_reply))
		r = say_broken(c, -EBADMSG);
	else if (reply.error && c->no_image_is_answer &&
		 strcmp(reply.error, CLIENT_INTERFACE ".NoSuchImage") == 0)
		r = -ENOENT;
	else if (reply.error)
		r = say_recorder_error(reply.error, reply.parameters);
	else if (reply.continues)
		r = on_reply(userdata, reply.parameters ? reply.parameters : none);
	else
		*ret_last = json_object_get(reply.parameters ? reply.parameters : none);
	json_object_put(none);
	json_object_put(message);
	return r;
}

int client_call(struct client *c, const char *method, struct json_object *parameters,
		client_reply_fn on_reply, void *userdata, struct json_object **ret)
{
	struct json_object *last = NULL;
	int r = queue_call(c, method, parameters, on_reply != NULL);

	while (r == 0 && !last)
		r = take_reply(c, on_reply, userdata, &last);
	if (r == 0)
		*ret = last;
	return r;
}

/* FD must be a regular file of the announced size, and the only fd of the reply. 0 or an exit code.
 */
static int check_file(struct client *c, struct json_object *parameters, int fd)
{
	uint64_t index = UINT64_MAX, size = UINT64_MAX;
	struct stat st;

	if (varlink_get_u64(parameters, "fileDescriptor", &index) < 0 ||
	    varlink_get_u64(parameters, "sizeBytes", &size) < 0 || index != 0 || fd < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: the recorder's answer has no file",
				 c->path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return say_error(EXIT_CODE_FAILURE,
				 "%s: the recorder sent something other than a regular file",
				 c->path);
	if ((uint64_t)st.st_size != size)
		return say_error(EXIT_CODE_FAILURE,
				 "%s: the recorder announced %ju bytes, but the file has %ju",
				 c->path, (uintmax_t)size, (uintmax_t)st.st_size);
	return 0;
}

int client_get(struct client *c, const char *id, const char *format, int *ret_fd)
{
	struct json_object *parameters = json_object_new_object(), *answer = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	int r;

	json_object_object_add(parameters, "id", json_object_new_string(id));
	json_object_object_add(parameters, "format", json_object_new_string(format));
	r = client_call(c, "Get", parameters, NULL, NULL, &answer);
	if (r != 0)
		return r;
	fd = varlink_take_fd(c->varlink);
	r = check_file(c, answer, fd);
	json_object_put(answer);
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

int client_get_image(struct client *c, const char *id, const char *format, int *ret_fd)
{
	int r;

	c->no_image_is_answer = true;
	r = client_get(c, id, format, ret_fd);
	c->no_image_is_answer = false;
	return r;
}
