/*
 * Passes undecoded snapshots to the next run through systemd's file descriptor store.
 */
#include "daemon/store/fdstore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <systemd/sd-daemon.h>

#include "proto/base.h"

#define MAGIC 0x70747331u
/* Descriptors in one message; the kernel takes SCM_MAX_FD, 253 (include/net/scm.h). */
#define PER_MESSAGE 128u
#define NAME_ONCE   "snap-"
#define NAME_AGAIN  "last-"
#define NAME_SIZE   (sizeof(NAME_ONCE) + ENTRY_ID_SIZE)

/* The first descriptor of the first message is the bundle; all others are images. */
struct message {
	uint32_t magic, n; /* descriptors */
	struct {
		uint64_t size;
		uint32_t index, reserved;
	} of[PER_MESSAGE];
};

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(PER_MESSAGE * sizeof(int))];
};

static int send_some(int to, const struct message *m, const int *fds)
{
	union control control;
	struct iovec part = {(void *)(uintptr_t)m, sizeof(*m)};
	struct msghdr h = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = CMSG_SPACE(m->n * sizeof(int))};

	memset(&control, 0, sizeof(control));
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(m->n * sizeof(int));
	memcpy(CMSG_DATA(&control.header), fds, m->n * sizeof(int));
	return sendmsg(to, &h, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Appends images from *AT on to M and FDS, as many as M has room for. */
static void fill(const struct fdstore_item *item, size_t *at, struct message *m, int *fds)
{
	while (*at < item->n_images && m->n < PER_MESSAGE) {
		const struct fdstore_image *image = &item->images[(*at)++];

		if (image->fd < 0)
			continue;
		m->of[m->n].size = image->size;
		m->of[m->n].index = image->index;
		fds[m->n++] = image->fd;
	}
}

/* Sends the bundle, then images until the queue is full. */
static int send_all(int to, const struct fdstore_item *item, size_t *ret_left_out)
{
	struct message m = {.magic = MAGIC, .n = 1};
	int fds[PER_MESSAGE] = {item->bundle_fd};
	size_t at = 0, sent = 0;
	int r;

	fill(item, &at, &m, fds);
	r = send_some(to, &m, fds);
	while (r == 0 && at < item->n_images && at < FDSTORE_MAX_IMAGES) {
		sent = at;
		m = (struct message){.magic = MAGIC};
		fill(item, &at, &m, fds);
		if (m.n == 0)
			break;
		if (send_some(to, &m, fds) < 0) { /* the queue is full */
			at = sent;
			break;
		}
	}
	*ret_left_out = item->n_images - at;
	return r;
}

int fdstore_pack(const struct fdstore_item *item, int *ret_fd, size_t *ret_left_out)
{
	CLEANUP_CLOSE int from = -EBADF;
	CLEANUP_CLOSE int to = -EBADF;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	from = pair[0];
	to = pair[1];
	r = send_all(to, item, ret_left_out);
	if (r == 0)
		*ret_fd = take_fd(&from);
	return r;
}

/* Collects the descriptors of a message; closes those beyond PER_MESSAGE. */
static void take_fds(const struct msghdr *h, int *ret_fds, size_t *ret_n)
{
	*ret_n = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c;
	     c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)h, c)) {
		size_t n =
			c->cmsg_len >= CMSG_LEN(0) ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (*ret_n < PER_MESSAGE)
				ret_fds[(*ret_n)++] = fd;
			else
				close(fd);
		}
	}
}

/* Receives one message. 0; QUEUE_END; or -EBADMSG or -errno with no descriptor left open. */
#define QUEUE_END 1
static int receive_some(int from, struct message *m, int *fds)
{
	union control control;
	struct iovec part = {m, sizeof(*m)};
	struct msghdr h = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	ssize_t size = recvmsg(from, &h, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	size_t n;

	if (size < 0)
		return errno == EAGAIN ? QUEUE_END : -errno;
	if (size == 0)
		return QUEUE_END;
	take_fds(&h, fds, &n);
	if (size == sizeof(*m) && m->magic == MAGIC && n == m->n && n > 0 &&
	    !(h.msg_flags & (MSG_CTRUNC | MSG_TRUNC)))
		return 0;
	while (n > 0)
		close(fds[--n]);
	return -EBADMSG;
}

/* Takes the descriptors of M from FIRST on over as images. 0, or -ENOMEM with all closed. */
static int add_images(struct fdstore_item *item, const struct message *m, const int *fds,
		      size_t first)
{
	size_t more = m->n - first;

	if (ARRAY_FIT(item->images, item->n_images + more) < 0) {
		for (size_t i = first; i < m->n; i++)
			close(fds[i]);
		return -ENOMEM;
	}
	for (size_t i = first; i < m->n; i++)
		item->images[item->n_images++] =
			(struct fdstore_image){m->of[i].index, fds[i], m->of[i].size};
	return 0;
}

int fdstore_unpack(int fd, struct fdstore_item *ret)
{
	int fds[PER_MESSAGE];
	struct message m;
	int r;

	ret->bundle_fd = -EBADF;
	ret->images = NULL;
	ret->n_images = 0;
	r = receive_some(fd, &m, fds);
	if (r != 0)
		return r == QUEUE_END ? -EBADMSG : r;
	ret->bundle_fd = fds[0];
	r = add_images(ret, &m, fds, 1);
	/* When descriptors run out, a bundle without some of its images is better than none. */
	while (r == 0 && ret->n_images < FDSTORE_MAX_IMAGES) {
		r = receive_some(fd, &m, fds);
		if (r == 0)
			r = add_images(ret, &m, fds, 0);
	}
	return 0;
}

void fdstore_item_done(struct fdstore_item *item)
{
	item->bundle_fd = close_fd(item->bundle_fd);
	for (size_t i = 0; i < item->n_images; i++)
		close_fd(item->images[i].fd);
	free(item->images);
	item->images = NULL;
	item->n_images = 0;
}

static void name_of(const char *id, bool again, char ret[NAME_SIZE])
{
	snprintf(ret, NAME_SIZE, "%s%s", again ? NAME_AGAIN : NAME_ONCE, id);
}

void fdstore_keep(const struct fdstore_item *item)
{
	CLEANUP_CLOSE int fd = -EBADF;
	char name[NAME_SIZE], text[NAME_SIZE + 64];
	size_t left_out;

	if (!getenv("NOTIFY_SOCKET") || fdstore_pack(item, &fd, &left_out) < 0)
		return;
	name_of(item->id, item->again, name);
	/* FDPOLL=0 (sd_notify(3)): without it systemd drops a socket whose other end is closed. */
	snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	(void)sd_pid_notify_with_fds(0, 0, text, &fd, 1);
}

void fdstore_drop(const char *id, bool again)
{
	char name[NAME_SIZE], text[NAME_SIZE + 64];

	if (!getenv("NOTIFY_SOCKET"))
		return;
	name_of(id, again, name);
	snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	(void)sd_notify(0, text);
}

/* Sets RET's id and again from NAME. False: NAME is no snapshot's. */
static bool read_name(const char *name, struct fdstore_item *ret)
{
	size_t n = strlen(NAME_ONCE);

	*ret = (struct fdstore_item){.bundle_fd = -EBADF};
	ret->again = strncmp(name, NAME_AGAIN, n) == 0;
	if ((!ret->again && strncmp(name, NAME_ONCE, n) != 0) || !name[n] ||
	    strlen(name + n) >= sizeof(ret->id))
		return false;
	strcpy(ret->id, name + n);
	return true;
}

int fdstore_take(struct fdstore_item **ret, size_t *ret_n)
{
	char **names = NULL;
	int n = sd_listen_fds_with_names(1, &names);
	struct fdstore_item *items = calloc((size_t)MAX_OF(n, 0) + 1, sizeof(*items));
	size_t found = 0;

	for (int i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		if (items && read_name(names[i], &items[found])) {
			/* Drop what is no snapshot: it would keep its place in the store. */
			if (fdstore_unpack(fd, &items[found]) == 0)
				found++;
			else
				fdstore_drop(items[found].id, items[found].again);
			close(fd);
		}
		free(names[i]);
	}
	free(names);
	*ret = items;
	*ret_n = found;
	return items ? 0 : -ENOMEM;
}

void fdstore_free(struct fdstore_item *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fdstore_item_done(&items[i]);
	free(items);
}
