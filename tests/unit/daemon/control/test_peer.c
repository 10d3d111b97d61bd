/*
 * One connection over a socketpair: order, more, oneway, descriptors, and everything that must end
 * the connection.
 */
#include "daemon/control/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"

#define LONG_IDLE 3600000000ull

/* The service under test: t.Echo answers {"n": its number}, t.Hold is answered by the test, t.Big
 * with much, t.TooBig with more than a message may have, t.Endless with much again and again, t.Fd
 * with an fd. */
struct fixture {
	sd_event *event;
	struct peer *peer;
	int client;
	int calls;
	int gone;
};

static struct json_object *numbered(int n)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "n", json_object_new_int(n));
	return o;
}

static void answer_big(struct peer *peer, size_t size, bool continues)
{
	struct json_object *o = json_object_new_object();
	char *text = malloc(size);

	memset(text, 'x', size - 1);
	text[size - 1] = '\0';
	json_object_object_add(o, "text", json_object_new_string(text));
	free(text);
	peer_reply(peer, o, continues);
}

static void answer_without_end(void *state, struct peer *peer)
{
	(void)state;
	answer_big(peer, 512 * 1024, true);
}

static void on_call(void *userdata, struct peer *peer, const struct varlink_call *call)
{
	struct fixture *f = userdata;

	f->calls++;
	if (strcmp(call->name, "Echo") == 0)
		peer_reply(peer, numbered(f->calls), false);
	else if (strcmp(call->name, "Big") == 0)
		answer_big(peer, 512 * 1024, false);
	else if (strcmp(call->name, "TooBig") == 0)
		answer_big(peer, VARLINK_MAX_MESSAGE + 1, false);
	else if (strcmp(call->name, "Endless") == 0)
		peer_reply_stepwise(peer, answer_without_end, NULL);
	else if (strcmp(call->name, "Fd") == 0)
		peer_reply_fd(peer, NULL, open("/dev/null", O_RDONLY | O_CLOEXEC));
	else if (strcmp(call->name, "Hold") != 0)
		peer_service_error(peer, "MethodNotFound", "method", call->method);
}

static void on_gone(void *userdata, struct peer *peer)
{
	struct fixture *f = userdata;

	f->gone++;
	f->peer = NULL;
	peer_free(peer);
}

static void open_peer(struct fixture *f, uint64_t idle_usec)
{
	const struct peer_handler handler = {f, on_call, on_gone};
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
			 0);
	f->client = fds[1];
	assert_int_equal(peer_new(f->event, fds[0], idle_usec, &handler, &f->peer), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_true(sd_event_new(&f->event) >= 0);
	open_peer(f, LONG_IDLE);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	peer_free(f->peer);
	close_fd(f->client);
	sd_event_unref(f->event);
	free(f);
	return 0;
}

/* Runs the loop until it has nothing to do. */
static void settle(struct fixture *f)
{
	while (sd_event_run(f->event, 0) > 0)
		;
}

static void say_bytes(struct fixture *f, const void *bytes, size_t size)
{
	for (const char *at = bytes; size;) {
		ssize_t n = send(f->client, at, size, MSG_NOSIGNAL);

		if (n > 0) {
			at += n;
			size -= (size_t)n;
		} else if (errno != EAGAIN) {
			return; /* the peer closed the connection, as some tests want */
		}
		settle(f);
	}
}

/* Sends TEXT with its NUL. */
static void say(struct fixture *f, const char *text)
{
	say_bytes(f, text, strlen(text) + 1);
	settle(f);
}

/* Returns what has arrived, with NULs as '|'; "EOF" if the connection is closed. */
static const char *hear(struct fixture *f)
{
	static char text[4096];
	ssize_t n = recv(f->client, text, sizeof(text) - 1, 0);

	if (n == 0)
		return "EOF";
	if (n < 0)
		return errno == EAGAIN ? "" : "EOF";
	for (ssize_t i = 0; i < n; i++)
		if (!text[i])
			text[i] = '|';
	text[n] = '\0';
	return text;
}

static size_t occurrences(const char *text, const char *of)
{
	size_t n = 0;

	for (; (text = strstr(text, of)); text++)
		n++;
	return n;
}

static void peer_call_is_answered(void **state)
{
	struct fixture *f = *state;

	say(f, "{\"method\":\"t.Echo\"}");
	assert_non_null(strstr(hear(f), "\"n\":1"));
	say(f, "{\"method\":\"t.Nonsense\"}");
	assert_non_null(strstr(hear(f), "MethodNotFound"));
	assert_int_equal(f->gone, 0);
}

static void peer_pipelined_calls_are_answered_in_order(void **state)
{
	static const char calls[] = "{\"method\":\"t.Echo\"}\0{\"method\":\"t.Echo\"}\0"
				    "{\"method\":\"t.Echo\"}";
	struct fixture *f = *state;
	const char *text;

	say_bytes(f, calls, sizeof(calls));
	settle(f);
	text = hear(f);
	assert_true(strstr(text, "\"n\":1") < strstr(text, "\"n\":2"));
	assert_true(strstr(text, "\"n\":2") < strstr(text, "\"n\":3"));
}

static void peer_message_in_single_bytes_is_one_call(void **state)
{
	static const char call[] = "{\"method\":\"t.Echo\"}";
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(call); i++) {
		assert_int_equal(f->calls, 0);
		say_bytes(f, &call[i], 1);
		settle(f);
	}
	assert_int_equal(f->calls, 1);
}

static void peer_call_under_way_makes_the_next_one_wait(void **state)
{
	struct fixture *f = *state;
	const char *text;
	static const char calls[] = "{\"method\":\"t.Hold\",\"more\":true}\0"
				    "{\"method\":\"t.Echo\"}";

	say_bytes(f, calls, sizeof(calls));
	settle(f);
	assert_int_equal(f->calls, 1);
	assert_true(peer_wants_more(f->peer));
	peer_reply(f->peer, numbered(50), true);
	settle(f);
	assert_non_null(strstr(hear(f), "\"continues\":true"));
	assert_int_equal(f->calls, 1);
	peer_reply(f->peer, numbered(51), false);
	settle(f);
	assert_int_equal(f->calls, 2);
	text = hear(f);
	assert_true(strstr(text, "\"n\":51") < strstr(text, "\"n\":2"));
	assert_null(strstr(text, "continues\":true"));
}

static void peer_oneway_call_has_no_answer(void **state)
{
	struct fixture *f = *state;

	say(f, "{\"method\":\"t.Echo\",\"oneway\":true}");
	assert_int_equal(f->calls, 1);
	assert_string_equal(hear(f), "");
	say(f, "{\"method\":\"t.Echo\"}");
	assert_non_null(strstr(hear(f), "\"n\":2"));
}

static void peer_reply_fd_passes_it(void **state)
{
	struct fixture *f = *state;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	char text[256];
	struct iovec iov = {text, sizeof(text)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c;
	int fd;

	say(f, "{\"method\":\"t.Fd\"}");
	assert_true(recvmsg(f->client, &m, 0) > 0);
	c = CMSG_FIRSTHDR(&m);
	assert_non_null(c);
	assert_int_equal(c->cmsg_type, SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	assert_int_equal(read(fd, text, 1), 0);
	close(fd);
}

/* Each of these ends the connection, and nothing else. */
static void peer_protocol_error_closes(void **state)
{
	/* clang-format off */
	static const struct { const char *bytes; size_t size; } cases[] = {
#define BYTES(s) {s, sizeof(s) - 1}
		BYTES("\0"),
		BYTES("GET / HTTP/1.1\r\n\r\n\0"),
		BYTES("[]\0"),
		BYTES("{}\0"),
		BYTES("{\"method\":1}\0"),
		BYTES("{\"method\":\"nodot\"}\0"),
		BYTES("{\"method\":\"t.Echo\"} x\0"),
		BYTES("{\"method\":\"t.Echo\",\"more\":true,\"oneway\":true}\0"),
		BYTES("{\"method\":\"t.\xff\"}\0"),
		BYTES("\xff\xfe\x00\x01"),
		BYTES("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\0"),
	};
	/* clang-format on */
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		say_bytes(f, cases[i].bytes, cases[i].size);
		settle(f);
		assert_int_equal(f->gone, i + 1);
		assert_int_equal(f->calls, 0);
		close(f->client);
		open_peer(f, LONG_IDLE);
	}
}

static void peer_endless_message_closes(void **state)
{
	struct fixture *f = *state;
	char block[4096];

	memset(block, ' ', sizeof(block));
	for (int i = 0; i < 1024 && !f->gone; i++)
		say_bytes(f, block, sizeof(block));
	assert_int_equal(f->gone, 1);
	assert_int_equal(f->calls, 0);
}

static void peer_that_does_not_read_waits_for_itself(void **state)
{
	struct fixture *f = *state;

	/* The first answer is far larger than a socket's buffer, so the second call is not even
	 * read. */
	say(f, "{\"method\":\"t.Big\"}");
	say(f, "{\"method\":\"t.Echo\"}");
	assert_int_equal(f->calls, 1);
	assert_false(peer_is_drained(f->peer));
	for (int i = 0; i < 4096 && f->calls < 2; i++) {
		hear(f);
		settle(f);
	}
	assert_int_equal(f->calls, 2);
	assert_int_equal(f->gone, 0);
}

static void peer_that_hangs_up_during_a_call_is_gone(void **state)
{
	struct fixture *f = *state;

	say(f, "{\"method\":\"t.Hold\",\"more\":true}");
	close(f->client);
	f->client = -EBADF;
	settle(f);
	assert_int_equal(f->gone, 1);
}

static void peer_that_hangs_up_amid_a_message_is_gone(void **state)
{
	struct fixture *f = *state;

	say_bytes(f, "{\"method\":", 10);
	close(f->client);
	f->client = -EBADF;
	settle(f);
	assert_int_equal(f->gone, 1);
	assert_int_equal(f->calls, 0);
}

static void peer_that_only_stops_sending_gets_its_answer(void **state)
{
	struct fixture *f = *state;

	say(f, "{\"method\":\"t.Hold\",\"more\":true}");
	shutdown(f->client, SHUT_WR);
	settle(f);
	assert_int_equal(f->gone, 0);
	peer_reply(f->peer, numbered(7), false);
	settle(f);
	assert_non_null(strstr(hear(f), "\"n\":7"));
	assert_string_equal(hear(f), "EOF");
	assert_int_equal(f->gone, 1);
}

static void peer_without_a_call_is_closed(void **state)
{
	struct fixture *f = *state;

	peer_free(f->peer);
	close(f->client);
	open_peer(f, 1);
	while (!f->gone)
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
	assert_string_equal(hear(f), "EOF");
}

static void peer_answer_in_pieces_counts_once(void **state)
{
	struct fixture *f = *state;
	size_t n = 0;

	/* Ten calls come at once, and each is answered once, whatever the loop does between them.
	 */
	for (int i = 0; i < 10; i++)
		say_bytes(f, "{\"method\":\"t.Echo\"}", 20);
	settle(f);
	for (const char *text = hear(f); *text; text = hear(f))
		n += occurrences(text, "\"n\":");
	assert_int_equal(n, 10);
	assert_int_equal(f->calls, 10);
}

static void peer_credentials_are_the_clients(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(peer_credentials(f->peer)->pid, getpid());
	assert_int_equal(peer_credentials(f->peer)->uid, geteuid());
	assert_true(peer_in_group(f->peer, getegid()));
	assert_false(peer_in_group(f->peer, 0x7ffffff0));
}

static void send_echos(struct fixture *f, int n)
{
	static const char call[] = "{\"method\":\"t.Echo\"}";

	for (int i = 0; i < n; i++)
		assert_int_equal(send(f->client, call, sizeof(call), MSG_NOSIGNAL), sizeof(call));
}

static void peer_with_many_calls_at_once_gives_others_their_turn(void **state)
{
	struct fixture *f = *state;

	send_echos(f, 100);
	assert_true(sd_event_run(f->event, 0) > 0);
	assert_in_range(f->calls, 1, 16);
	settle(f);
	assert_int_equal(f->calls, 100);
	assert_int_equal(occurrences(hear(f), "\"n\":"), 100);
	assert_int_equal(f->gone, 0);
}

static void peer_restrict_closes_after_so_many_calls(void **state)
{
	struct fixture *f = *state;

	peer_restrict(f->peer, 20);
	send_echos(f, 15);
	settle(f);
	assert_int_equal(f->gone, 0);
	send_echos(f, 15);
	settle(f);
	assert_int_equal(f->calls, 20);
	assert_int_equal(f->gone, 1);
	assert_int_equal(occurrences(hear(f), "\"n\":"), 20);
}

static void peer_reply_too_long_for_a_message_is_an_error(void **state)
{
	struct fixture *f = *state;

	say(f, "{\"method\":\"t.TooBig\"}");
	assert_non_null(strstr(hear(f), "\"io.ptsnap.recorder.TooLong\""));
	say(f, "{\"method\":\"t.Echo\"}");
	assert_non_null(strstr(hear(f), "\"n\":2"));
	assert_int_equal(f->gone, 0);
}

static void peer_that_does_not_read_a_long_answer_is_closed(void **state)
{
	struct fixture *f = *state;

	peer_free(TAKE_PTR(f->peer));
	close_fd(f->client);
	open_peer(f, 100000);
	say(f, "{\"method\":\"t.Endless\",\"more\":true}");
	while (f->gone == 0)
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(peer_call_is_answered),
		CASE(peer_pipelined_calls_are_answered_in_order),
		CASE(peer_message_in_single_bytes_is_one_call),
		CASE(peer_call_under_way_makes_the_next_one_wait),
		CASE(peer_oneway_call_has_no_answer),
		CASE(peer_reply_fd_passes_it),
		CASE(peer_protocol_error_closes),
		CASE(peer_endless_message_closes),
		CASE(peer_that_does_not_read_waits_for_itself),
		CASE(peer_that_hangs_up_during_a_call_is_gone),
		CASE(peer_that_hangs_up_amid_a_message_is_gone),
		CASE(peer_that_only_stops_sending_gets_its_answer),
		CASE(peer_without_a_call_is_closed),
		CASE(peer_answer_in_pieces_counts_once),
		CASE(peer_with_many_calls_at_once_gives_others_their_turn),
		CASE(peer_restrict_closes_after_so_many_calls),
		CASE(peer_reply_too_long_for_a_message_is_an_error),
		CASE(peer_that_does_not_read_a_long_answer_is_closed),
		CASE(peer_credentials_are_the_clients),
	};

	return cmocka_run_group_tests_name("daemon/peer", tests, NULL, NULL);
}
