/*
 * The client's half of the control socket: connect, a poll loop with a deadline, one call at a
 * time. Called by the verbs that need a recorder.
 */
#include "ctl/client/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "proto/base.h"
#include "proto/varlink.h"

#include "ctl/base/say.h"
#include "ctl/client/client_error.h"

#define NEVER UINT64_MAX

struct client {
	const char *path; /* borrowed: the socket's, for messages */
	int fd;
	struct varlink *varlink;
	uint64_t deadline; /* CLOCK_MONOTONIC, us */
	bool may_lack;	   /* NoSuchImage is an answer */
};

static uint64_t deadline_of(const struct settings *s, uint64_t default_usec)
{
	uint64_t timeout = s->timeout_usec == UINT64_MAX ? default_usec : s->timeout_usec;
	uint64_t deadline;

	if (timeout == 0 || __builtin_add_overflow(now_usec(CLOCK_MONOTONIC), timeout, &deadline))
		return NEVER;
	return deadline;
}

void client_freep(struct client **c)
{
	if (!*c)
		return;
	varlink_free((*c)->varlink);
	close_fd((*c)->fd);
	free(*c);
}

static int say_timeout(const struct client *c)
{
	return say_error(EXIT_CODE_TIMEOUT,
			 "%s: no answer in time; --timeout= sets how long to wait", c->path);
}

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

/* Waits for EVENTS or, without, for the next try. 0 or an exit code. */
static int wait_for(struct client *c, short events)
{
	struct pollfd p = {.fd = events ? c->fd : -1, .events = events};
	uint64_t now = now_usec(CLOCK_MONOTONIC), left = 0;
	int timeout = events ? 60000 : 20;

	if (now < c->deadline)
		left = (c->deadline - now + 999) / 1000;
	if (left == 0)
		return say_timeout(c);
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

/* The socket for everybody. Where there is none it is as if we had not looked. */
static int connect_to_status(struct client *c)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int r;

	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s.status", c->path) >=
	    (int)sizeof(address.sun_path))
		return say_connect_error(c->path, EACCES);
	while (connect(c->fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return say_connect_error(c->path, EACCES);
		r = wait_for(c, 0);
		if (r != 0)
			return r;
	}
	return 0;
}

/* EAGAIN of a UNIX socket: its backlog is full; there is nothing to poll for. Who refuses us is
 * said, unless there is STATUS besides: to PATH.status then. */
static int connect_to(struct client *c, bool status)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int r;

	if (strlen(c->path) >= sizeof(address.sun_path))
		return say_error(EXIT_CODE_USAGE, "%s: a socket's path has at most %zu bytes",
				 c->path, sizeof(address.sun_path) - 1);
	strcpy(address.sun_path, c->path);
	while (connect(c->fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno == EINTR)
			continue;
		if (errno == EACCES && status)
			return connect_to_status(c);
		if (errno != EAGAIN)
			return say_connect_error(c->path, errno);
		r = wait_for(c, 0);
		if (r != 0)
			return r;
	}
	return 0;
}

static int open_client(const struct settings *s, uint64_t default_timeout_usec, bool status,
		       struct client **ret)
{
	CLEANUP(client_freep) struct client *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	c->path = s->socket;
	c->deadline = deadline_of(s, default_timeout_usec);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0 || varlink_new(&c->varlink) < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot make a socket: %m");
	r = connect_to(c, status);
	if (r != 0)
		return r;
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

static int say_broken(const struct client *c, int r)
{
	if (r == VARLINK_END || r == -EPIPE || r == -ECONNRESET)
		return say_error(EXIT_CODE_UNREACHABLE,
				 "%s: the recorder closed the connection before it had answered; "
				 "see its log",
				 c->path);
	if (r == -EBADMSG || r == -EMSGSIZE)
		return say_error(EXIT_CODE_FAILURE,
				 "%s: what answers there does not speak Varlink; is it ptsnapd's "
				 "socket?",
				 c->path);
	return say_error(EXIT_CODE_FAILURE, "%s: %s", c->path, strerror(-r));
}

/* The next whole message, after all that is queued has been sent. 0 or an exit code. */
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

/* The first string field that the recorder could not parse, or NULL. */
static const char *find_bad_text(struct json_object *parameters)
{
	if (!parameters)
		return NULL;
	json_object_object_foreach(parameters, key, value)
	{
		if (json_object_is_type(value, json_type_string) &&
		    !text_is_utf8(json_object_get_string(value)))
			return key;
	}
	return NULL;
}

/* PARAMETERS is taken over. */
static int queue_call(struct client *c, const char *method, struct json_object *parameters,
		      bool more)
{
	CLEANUP_FREE char *full = NULL;
	struct json_object *message;
	int r;

	if (asprintf(&full, CLIENT_INTERFACE ".%s", method) < 0) {
		full = NULL;
		json_object_put(parameters);
		return -ENOMEM;
	}
	message = varlink_make_call(full, parameters, more);
	r = message ? varlink_queue(c->varlink, message, -1) : -ENOMEM;
	json_object_put(message);
	return r;
}

static int send_call(struct client *c, const char *method, struct json_object *parameters,
		     bool more)
{
	const char *bad = find_bad_text(parameters);
	int r;

	if (bad) {
		say("the %s is not valid UTF-8", bad);
		json_object_put(parameters);
		return EXIT_CODE_USAGE;
	}
	r = queue_call(c, method, parameters, more);
	if (r == -EMSGSIZE)
		return say_error(EXIT_CODE_USAGE, "the request is longer than 1 MiB");
	return r < 0 ? say_error(EXIT_CODE_FAILURE, "out of memory") : 0;
}

/* One reply. *ret_last: its parameters, when nothing follows. */
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
	else if (reply.error && c->may_lack &&
		 strcmp(reply.error, CLIENT_INTERFACE ".NoSuchImage") == 0)
		r = -ENOENT;
	else if (reply.error)
		r = client_error_say(reply.error, reply.parameters);
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
	int r = send_call(c, method, parameters, on_reply != NULL);

	while (r == 0 && !last)
		r = take_reply(c, on_reply, userdata, &last);
	if (r == 0)
		*ret = last;
	return r;
}

/* The fd that came with the replies; -EBADF: none. The caller's. */
static int client_take_fd(struct client *c)
{
	return varlink_take_fd(c->varlink);
}

/* The index must be 0: we are handed one fd. */
static int check_file(struct client *c, struct json_object *parameters, int fd)
{
	uint64_t index = UINT64_MAX, size = UINT64_MAX;
	struct stat st;

	if (varlink_get_u64(parameters, "fileDescriptor", &index) < 0 ||
	    varlink_get_u64(parameters, "sizeBytes", &size) < 0 || index != 0 || fd < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: the recorder's answer holds no file",
				 c->path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return say_error(EXIT_CODE_FAILURE, "%s: what the recorder sent is not a file",
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
	fd = client_take_fd(c);
	r = check_file(c, answer, fd);
	json_object_put(answer);
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

int client_get_image(struct client *c, const char *id, const char *format, int *ret_fd)
{
	int r;

	c->may_lack = true;
	r = client_get(c, id, format, ret_fd);
	c->may_lack = false;
	return r;
}
