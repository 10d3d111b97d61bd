/*
 * Sends and receives one message with its descriptors over a SOCK_SEQPACKET socket.
 */
#include "proto/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "proto/base.h"

/* Ancillary data, aligned as the kernel requires. */
union control {
	char bytes[CMSG_SPACE(sizeof(int) * CHANNEL_MAX_FDS)];
	struct cmsghdr align;
};

int channel_pair(int ret_fds[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_fds) < 0 ? -errno : 0;
}

int channel_send(int fd, const void *data, size_t size, const int *fds, size_t n_fds)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	union control control = {.bytes = {0}};
	ssize_t n;

	if (size == 0 || size > CHANNEL_MAX_SIZE || n_fds > CHANNEL_MAX_FDS)
		return -EINVAL;
	if (n_fds > 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(&control.align), fds, sizeof(int) * n_fds);
	}
	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EIO;
}

struct received {
	int fds[CHANNEL_MAX_FDS];
	size_t n;
	bool too_many;
};

static void collect_fds(struct msghdr *msg, struct received *got)
{
	int fd;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (got->n < CHANNEL_MAX_FDS) {
				got->fds[got->n++] = fd;
			} else {
				got->too_many = true;
				close_fd(fd);
			}
		}
	}
}

int channel_receive(int fd, void *data, size_t capacity, size_t *ret_size, int *ret_fds,
		    size_t max_fds, size_t *ret_n_fds)
{
	union control control;
	struct iovec iov = {.iov_base = data, .iov_len = capacity};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	const size_t control_size = msg.msg_controllen;
	struct received got = {0};
	ssize_t n;
	int r = 0;

	/* A peer that closes its end with unread messages causes one ECONNRESET, which comes before
	 * the messages that the peer has sent (net/core/datagram.c, __skb_try_recv_datagram():
	 * sock_error() comes first). The next call returns these, or the end. */
	do {
		msg.msg_controllen = control_size;
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return -errno;
	collect_fds(&msg, &got);
	if (n == 0)
		r = CHANNEL_END;
	else if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || got.too_many || got.n > max_fds)
		r = -EMSGSIZE;
	if (r != 0) {
		while (got.n > 0)
			close_fd(got.fds[--got.n]);
		return r;
	}
	if (got.n > 0)
		memcpy(ret_fds, got.fds, got.n * sizeof(int));
	*ret_size = (size_t)n;
	*ret_n_fds = got.n;
	return 0;
}
