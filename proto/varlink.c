/*
 * Varlink framing: received bytes to JSON objects, and JSON objects to bytes.
 *
 * A connection is two queues of bytes. A descriptor that travels with a message is bound to the
 * stream offset of the byte that carries the descriptor.
 */
#include "proto/varlink.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "proto/base.h"

#define READ_SIZE 65536u
/* The most memory that an empty queue keeps. */
#define KEEP_SIZE  READ_SIZE
#define FIRST_SIZE 4096u
/* json-c allocates about 900 bytes for an empty object of two characters. These limits, and not a
 * message's length, bound what a message makes us allocate. They are counted before parsing, and so
 * within strings, too. */
#define MAX_CONTAINERS 4096u
#define MAX_COMMAS     65536u

/* Bytes from begin to end; the user of the queue limits the size. */
struct queue {
	char *data;
	size_t begin, end, capacity;
};

struct sent_fd {
	int fd;
	uint64_t first, last; /* stream offsets of the message: first byte, and behind the NUL */
};

struct varlink {
	struct queue in, out;
	size_t open_message; /* offset in in.data of the message that is not complete */
	size_t max_message;  /* limit of a received message */
	bool failed;	     /* a message was too long: nothing more is received */
	uint64_t out_offset; /* stream offset of out.data[out.begin] */
	int in_fds[VARLINK_MAX_FDS];
	size_t n_in_fds;
	struct sent_fd out_fds[VARLINK_MAX_FDS];
	size_t n_out_fds;
};

static size_t queue_size(const struct queue *q)
{
	return q->end - q->begin;
}

/* Makes room for SIZE more bytes; moves the content to the beginning of the memory. */
static int queue_reserve(struct queue *q, size_t size)
{
	size_t used = queue_size(q);

	if (q->begin > 0) {
		memmove(q->data, q->data + q->begin, used);
		q->begin = 0;
		q->end = used;
	}
	return ARRAY_RESERVE(q->data, q->capacity, MAX_OF(used + size, (size_t)FIRST_SIZE));
}

static void queue_consume(struct queue *q, size_t size)
{
	assert(size <= queue_size(q));
	q->begin += size;
	if (q->begin < q->end)
		return;
	q->begin = q->end = 0;
	if (q->capacity > KEEP_SIZE) {
		free(q->data);
		q->data = NULL;
		q->capacity = 0;
	}
}

int varlink_new(struct varlink **ret)
{
	struct varlink *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	v->max_message = VARLINK_MAX_MESSAGE;
	*ret = v;
	return 0;
}

void varlink_limit(struct varlink *v, size_t max)
{
	v->max_message = MIN_OF(max, (size_t)VARLINK_MAX_MESSAGE);
}

void varlink_free(struct varlink *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->n_in_fds; i++)
		close_fd(v->in_fds[i]);
	for (size_t i = 0; i < v->n_out_fds; i++)
		close_fd(v->out_fds[i].fd);
	free(v->in.data);
	free(v->out.data);
	free(v);
}

void varlink_freep(struct varlink **v)
{
	varlink_free(*v);
}

/* --- Input --- */

/* Receives bytes, and keeps the first descriptor that comes with them. */
static ssize_t receive_with_fds(struct varlink *v, int fd, void *data, size_t size)
{
	union {
		char bytes[CMSG_SPACE(VARLINK_MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = data, .iov_len = size};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return n;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		int received;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			memcpy(&received, CMSG_DATA(c) + i * sizeof(int), sizeof(received));
			if (i == 0 && v->n_in_fds < VARLINK_MAX_FDS)
				v->in_fds[v->n_in_fds++] = received;
			else
				close_fd(received);
		}
	}
	return n;
}

static bool has_message(const struct varlink *v)
{
	return v->open_message > v->in.begin;
}

int varlink_receive(struct varlink *v, int fd, bool accept_fds)
{
	size_t open_size = v->in.end - v->open_message, pos;
	const char *nul;
	ssize_t n;
	int r;

	if (v->failed)
		return -EMSGSIZE;
	if (has_message(v) && queue_size(&v->in) > VARLINK_MAX_MESSAGE)
		return VARLINK_AGAIN;
	r = queue_reserve(&v->in, READ_SIZE);
	if (r < 0)
		return r;
	pos = v->in.end;
	v->open_message = pos - open_size;
	do {
		/* recv(2) has no room for control data: the kernel closes descriptors that come. */
		n = accept_fds ? receive_with_fds(v, fd, v->in.data + pos, READ_SIZE)
			       : recv(fd, v->in.data + pos, READ_SIZE, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? VARLINK_AGAIN : -errno;
	if (n == 0)
		return VARLINK_END;
	v->in.end += (size_t)n;
	/* The new bytes may complete several messages, and each has its own length. */
	v->failed = true;
	while ((nul = memchr(v->in.data + pos, '\0', v->in.end - pos))) {
		pos = (size_t)(nul - v->in.data);
		if (pos - v->open_message > v->max_message)
			return -EMSGSIZE;
		v->open_message = ++pos;
	}
	if (v->in.end - v->open_message > v->max_message)
		return -EMSGSIZE;
	v->failed = false;
	return 0;
}

/* Whether the message can make json-c allocate only as much as the limits say. */
static bool is_within_limits(const char *text, size_t size)
{
	size_t containers = 0, commas = 0;

	for (size_t i = 0; i < size; i++) {
		containers += text[i] == '{' || text[i] == '[';
		commas += text[i] == ',';
	}
	return containers <= MAX_CONTAINERS && commas <= MAX_COMMAS;
}

static int parse_object(const char *text, size_t size, struct json_object **ret)
{
	struct json_tokener *tokener;
	struct json_object *object;
	bool good;

	if (size == 0 || !is_within_limits(text, size))
		return -EBADMSG;
	tokener = json_tokener_new_ex(VARLINK_MAX_DEPTH);
	if (!tokener)
		return -ENOMEM;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	object = json_tokener_parse_ex(tokener, text, (int)size);
	good = object && json_tokener_get_error(tokener) == json_tokener_success &&
	       json_tokener_get_parse_end(tokener) == size &&
	       json_object_is_type(object, json_type_object);
	json_tokener_free(tokener);
	if (!good) {
		json_object_put(object);
		return -EBADMSG;
	}
	*ret = object;
	return 0;
}

int varlink_next(struct varlink *v, struct json_object **ret)
{
	size_t size, open_size = v->in.end - v->open_message;
	const char *text;
	int r;

	if (!has_message(v))
		return VARLINK_AGAIN;
	text = v->in.data + v->in.begin;
	size = strlen(text);
	r = parse_object(text, size, ret);
	queue_consume(&v->in, size + 1);
	v->open_message = v->in.end - open_size;
	return r;
}

int varlink_take_fd(struct varlink *v)
{
	int fd;

	if (v->n_in_fds == 0)
		return -EBADF;
	fd = v->in_fds[0];
	v->n_in_fds--;
	memmove(v->in_fds, v->in_fds + 1, v->n_in_fds * sizeof(v->in_fds[0]));
	return fd;
}

bool varlink_has_partial_input(const struct varlink *v)
{
	return v->in.end > v->open_message;
}

/* --- Output --- */

/* Queues SIZE bytes of TEXT, of which the last is the NUL. */
static int queue_text(struct varlink *v, const char *text, size_t size, bool with_fd)
{
	int r;

	/* The receiver has the same limits. */
	if (size - 1 > VARLINK_MAX_MESSAGE || !is_within_limits(text, size - 1))
		return -EMSGSIZE;
	if (size > VARLINK_MAX_QUEUED - queue_size(&v->out))
		return -ENOBUFS;
	if (with_fd && v->n_out_fds == VARLINK_MAX_FDS)
		return -ENOBUFS;
	r = queue_reserve(&v->out, size);
	if (r < 0)
		return r;
	memcpy(v->out.data + v->out.end, text, size);
	v->out.end += size;
	return 0;
}

int varlink_queue(struct varlink *v, struct json_object *message, int fd_to_send)
{
	CLEANUP_CLOSE int fd = fd_to_send;
	uint64_t first = v->out_offset + queue_size(&v->out);
	const char *text;
	size_t size;
	int r;

	assert(json_object_is_type(message, json_type_object));
	text = json_object_to_json_string_length(
		message, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &size);
	if (!text)
		return -ENOMEM;
	r = queue_text(v, text, size + 1, fd >= 0);
	if (r < 0)
		return r;
	if (fd >= 0)
		v->out_fds[v->n_out_fds++] = (struct sent_fd){
			.fd = take_fd(&fd), .first = first, .last = first + size + 1};
	return 0;
}

/* Sends DATA and, if FD >= 0, the descriptor. */
static ssize_t send_bytes(int socket_fd, char *data, size_t size, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {.bytes = {0}};
	struct iovec iov = {.iov_base = data, .iov_len = size};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (fd >= 0) {
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
	}
	do {
		n = sendmsg(socket_fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n;
}

int varlink_send(struct varlink *v, int fd)
{
	while (varlink_has_output(v)) {
		const struct sent_fd *next = &v->out_fds[0];
		bool with_fd = v->n_out_fds > 0 && next->first == v->out_offset;
		size_t size = queue_size(&v->out);
		ssize_t n;

		/* One piece is a message with a descriptor, or all bytes before such a message. */
		if (v->n_out_fds > 0)
			size = (size_t)((with_fd ? next->last : next->first) - v->out_offset);
		n = send_bytes(fd, v->out.data + v->out.begin, size, with_fd ? next->fd : -1);
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? VARLINK_AGAIN : -errno;
		if (with_fd) {
			close_fd(next->fd);
			v->n_out_fds--;
			memmove(v->out_fds, v->out_fds + 1, v->n_out_fds * sizeof(v->out_fds[0]));
		}
		v->out_offset += (size_t)n;
		queue_consume(&v->out, (size_t)n);
	}
	return 0;
}

bool varlink_has_output(const struct varlink *v)
{
	return queue_size(&v->out) > 0;
}
