#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/channel.h"
#include "proto/memfd.h"

struct pair {
	int a, b;
};

static int setup(void **state)
{
	struct pair *p = malloc(sizeof(*p));
	int fds[2];

	if (!p || channel_pair(fds) < 0)
		return -1;
	*p = (struct pair){fds[0], fds[1]};
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	close_fd(p->a);
	close_fd(p->b);
	free(p);
	return 0;
}

static size_t open_fds(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void channel_receive_gives_message_and_fds(void **state)
{
	struct pair *p = *state;
	CLEANUP_CLOSE int file = -EBADF;
	char text[16];
	struct stat mine, got;
	size_t size, n_fds;
	int fds[2];

	assert_int_equal(memfd_new("x", 77, &file), 0);
	assert_int_equal(channel_send(p->a, "hello", 5, (int[]){file, file}, 2), 0);
	assert_int_equal(channel_send(p->a, "!", 1, NULL, 0), 0);
	assert_int_equal(channel_receive(p->b, text, sizeof(text), &size, fds, 2, &n_fds), 0);
	assert_int_equal(size, 5);
	assert_memory_equal(text, "hello", 5);
	assert_int_equal(n_fds, 2);
	assert_int_equal(fstat(file, &mine), 0);
	for (size_t i = 0; i < n_fds; i++) {
		assert_int_equal(fstat(fds[i], &got), 0);
		assert_int_equal(got.st_ino, mine.st_ino);
		assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
		close(fds[i]);
	}
	assert_int_equal(channel_receive(p->b, text, sizeof(text), &size, NULL, 0, &n_fds), 0);
	assert_int_equal(size, 1);
	assert_int_equal(n_fds, 0);
}

static void channel_send_of_the_largest_arrives_whole(void **state)
{
	struct pair *p = *state;
	CLEANUP_FREE uint8_t *out = malloc(CHANNEL_MAX_SIZE), *in = malloc(CHANNEL_MAX_SIZE);
	int fds[CHANNEL_MAX_FDS], got[CHANNEL_MAX_FDS];
	size_t size, n_fds;

	for (size_t i = 0; i < CHANNEL_MAX_FDS; i++)
		fds[i] = 0;
	memset(out, 0xa5, CHANNEL_MAX_SIZE);
	assert_int_equal(channel_send(p->a, out, CHANNEL_MAX_SIZE, fds, CHANNEL_MAX_FDS), 0);
	assert_int_equal(
		channel_receive(p->b, in, CHANNEL_MAX_SIZE, &size, got, CHANNEL_MAX_FDS, &n_fds),
		0);
	assert_int_equal(size, CHANNEL_MAX_SIZE);
	assert_memory_equal(in, out, size);
	assert_int_equal(n_fds, CHANNEL_MAX_FDS);
	while (n_fds > 0)
		close(got[--n_fds]);
}

static void channel_send_out_of_range_is_refused(void **state)
{
	struct pair *p = *state;
	CLEANUP_FREE uint8_t *data = calloc(1, CHANNEL_MAX_SIZE + 1);
	int fds[CHANNEL_MAX_FDS + 1] = {0};

	assert_int_equal(channel_send(p->a, data, 0, NULL, 0), -EINVAL);
	assert_int_equal(channel_send(p->a, data, CHANNEL_MAX_SIZE + 1, NULL, 0), -EINVAL);
	assert_int_equal(channel_send(p->a, data, 1, fds, CHANNEL_MAX_FDS + 1), -EINVAL);
}

static void channel_receive_too_much_is_refused_and_leaks_nothing(void **state)
{
	struct pair *p = *state;
	size_t before = open_fds(), size, n_fds;
	char text[4];
	int fds[4];

	/* a message that is too long; more fds than the caller takes; more fds than any caller may
	 * take */
	assert_int_equal(channel_send(p->a, "12345", 5, (int[]){0}, 1), 0);
	assert_int_equal(channel_receive(p->b, text, 4, &size, fds, 4, &n_fds), -EMSGSIZE);
	assert_int_equal(open_fds(), before);
	assert_int_equal(channel_send(p->a, "1", 1, (int[]){0, 1, 2}, 3), 0);
	assert_int_equal(channel_receive(p->b, text, 4, &size, fds, 2, &n_fds), -EMSGSIZE);
	assert_int_equal(open_fds(), before);
	assert_int_equal(channel_send(p->a, "ok", 2, NULL, 0), 0);
	assert_int_equal(channel_receive(p->b, text, 4, &size, fds, 2, &n_fds), 0);
}

static void channel_receive_more_fds_than_any_is_refused(void **state)
{
	struct pair *p = *state;
	union {
		char bytes[CMSG_SPACE(sizeof(int) * 20)];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec iov = {"x", 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	size_t before = open_fds(), size, n_fds;
	int fds[CHANNEL_MAX_FDS];
	char text[4];

	*CMSG_FIRSTHDR(&msg) = (struct cmsghdr){CMSG_LEN(sizeof(int) * 20), SOL_SOCKET, SCM_RIGHTS};
	memset(CMSG_DATA(CMSG_FIRSTHDR(&msg)), 0, sizeof(int) * 20);
	assert_int_equal(sendmsg(p->a, &msg, 0), 1);
	assert_int_equal(channel_receive(p->b, text, 4, &size, fds, CHANNEL_MAX_FDS, &n_fds),
			 -EMSGSIZE);
	assert_int_equal(open_fds(), before);
}

static void channel_receive_empty_nonblocking_is_again(void **state)
{
	struct pair *p = *state;
	size_t size, n_fds;
	char text[4];

	assert_int_equal(fcntl(p->b, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(channel_receive(p->b, text, 4, &size, NULL, 0, &n_fds), -EAGAIN);
}

static void channel_receive_after_the_peer_left_ends(void **state)
{
	struct pair *p = *state;
	size_t size, n_fds;
	char text[4];

	assert_int_equal(channel_send(p->a, "bye", 3, NULL, 0), 0);
	p->a = close_fd(p->a);
	assert_int_equal(channel_receive(p->b, text, 4, &size, NULL, 0, &n_fds), 0);
	assert_int_equal(channel_receive(p->b, text, 4, &size, NULL, 0, &n_fds), CHANNEL_END);
	assert_int_equal(channel_send(p->b, "x", 1, NULL, 0), -EPIPE);
}

/* The kernel reports ECONNRESET before the peer's last messages. */
static void channel_receive_after_the_peer_left_unread_gives_its_last_words(void **state)
{
	struct pair *p = *state;
	size_t size, n_fds;
	char text[4];

	assert_int_equal(channel_send(p->b, "never read", 10, NULL, 0), 0);
	assert_int_equal(channel_send(p->a, "bye", 3, NULL, 0), 0);
	p->a = close_fd(p->a);
	assert_int_equal(channel_receive(p->b, text, 4, &size, NULL, 0, &n_fds), 0);
	assert_int_equal(size, 3);
	assert_int_equal(channel_receive(p->b, text, 4, &size, NULL, 0, &n_fds), CHANNEL_END);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(channel_receive_gives_message_and_fds),
		CASE(channel_send_of_the_largest_arrives_whole),
		CASE(channel_send_out_of_range_is_refused),
		CASE(channel_receive_too_much_is_refused_and_leaks_nothing),
		CASE(channel_receive_more_fds_than_any_is_refused),
		CASE(channel_receive_empty_nonblocking_is_again),
		CASE(channel_receive_after_the_peer_left_ends),
		CASE(channel_receive_after_the_peer_left_unread_gives_its_last_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
