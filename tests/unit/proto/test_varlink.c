/*
 * proto/varlink: framing over a real socketpair, limits, fds, calls and replies.
 */
#include "proto/varlink.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"

struct fixture {
	int near, far; /* we write raw bytes into far; the connection reads near */
	struct varlink *v;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fds[2];

	assert_non_null(f);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
			 0);
	f->near = fds[0];
	f->far = fds[1];
	assert_int_equal(varlink_new(&f->v), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	varlink_free(f->v);
	close_fd(f->near);
	close_fd(f->far);
	free(f);
	return 0;
}

static void put(struct fixture *f, const char *bytes, size_t size)
{
	assert_int_equal(send(f->far, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* Returns the text of the next message, and frees the object. */
static void assert_next(struct fixture *f, const char *expected)
{
	struct json_object *m = NULL;

	assert_int_equal(varlink_next(f->v, &m), 0);
	assert_string_equal(json_object_to_json_string_ext(m, JSON_C_TO_STRING_PLAIN), expected);
	json_object_put(m);
}

static void assert_no_next(struct fixture *f, int expected)
{
	struct json_object *m = NULL;

	assert_int_equal(varlink_next(f->v, &m), expected);
	assert_null(m);
}

static void receive_byte_by_byte_gives_message_at_nul(void **state)
{
	static const char text[] = "{\"method\":\"a.b.C\"}";
	struct fixture *f = *state;

	assert_int_equal(varlink_receive(f->v, f->near, false), VARLINK_AGAIN);
	for (size_t i = 0; i < sizeof(text); i++) {
		assert_no_next(f, VARLINK_AGAIN);
		put(f, text + i, 1);
		assert_int_equal(varlink_receive(f->v, f->near, false), 0);
		assert_int_equal(varlink_has_partial_input(f->v), i + 1 < sizeof(text));
	}
	assert_next(f, text);
	assert_no_next(f, VARLINK_AGAIN);
}

static void receive_pipelined_gives_all_in_order(void **state)
{
	static const char text[] = "{\"a\":1}\0{\"a\":2}\0{\"a\":3";
	struct fixture *f = *state;

	put(f, text, sizeof(text) - 1);
	assert_int_equal(varlink_receive(f->v, f->near, false), 0);
	assert_next(f, "{\"a\":1}");
	assert_true(varlink_has_partial_input(f->v));
	put(f, "}", 2);
	assert_int_equal(varlink_receive(f->v, f->near, false), 0);
	assert_next(f, "{\"a\":2}");
	assert_next(f, "{\"a\":3}");
	assert_false(varlink_has_partial_input(f->v));
}

static void receive_peer_closed_gives_end(void **state)
{
	struct fixture *f = *state;

	put(f, "{", 1);
	f->far = close_fd(f->far);
	assert_int_equal(varlink_receive(f->v, f->near, false), 0);
	assert_int_equal(varlink_receive(f->v, f->near, false), VARLINK_END);
	assert_true(varlink_has_partial_input(f->v));
}

/* Sends C SIZE times and receives at the same time. Returns the first failure of varlink_receive().
 */
static int feed_many(struct fixture *f, char c, size_t size)
{
	static char block[32768];
	int r = 0;

	memset(block, c, sizeof(block));
	while (size > 0 && r >= 0) {
		size_t n = MIN_OF(size, sizeof(block));

		put(f, block, n);
		size -= n;
		while ((r = varlink_receive(f->v, f->near, false)) == 0)
			;
	}
	return r;
}

static void receive_longest_message_is_taken(void **state)
{
	struct fixture *f = *state;

	put(f, "{}", 2);
	assert_int_equal(feed_many(f, ' ', VARLINK_MAX_MESSAGE - 2), VARLINK_AGAIN);
	put(f, "", 1);
	assert_int_equal(varlink_receive(f->v, f->near, false), 0);
	assert_next(f, "{}");
}

static void receive_one_byte_too_many_is_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(feed_many(f, ' ', VARLINK_MAX_MESSAGE), VARLINK_AGAIN);
	put(f, " ", 1);
	assert_int_equal(varlink_receive(f->v, f->near, false), -EMSGSIZE);
	assert_int_equal(varlink_receive(f->v, f->near, false), -EMSGSIZE);
	assert_no_next(f, VARLINK_AGAIN);
}

static void receive_beyond_a_limit_is_refused(void **state)
{
	struct fixture *f = *state;

	varlink_limit(f->v, 4);
	put(f, "{  }", 5);
	assert_int_equal(varlink_receive(f->v, f->near, false), 0);
	assert_next(f, "{}");
	put(f, "{   }", 5);
	assert_int_equal(varlink_receive(f->v, f->near, false), -EMSGSIZE);
}

static void receive_too_long_message_with_its_nul_is_refused(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(feed_many(f, ' ', VARLINK_MAX_MESSAGE), VARLINK_AGAIN);
	put(f, " ", 2);
	assert_int_equal(varlink_receive(f->v, f->near, false), -EMSGSIZE);
	assert_no_next(f, VARLINK_AGAIN);
}

static void receive_unread_messages_stop_reading(void **state)
{
	struct fixture *f = *state;
	struct json_object *m = NULL;
	size_t n = 0;

	assert_int_equal(feed_many(f, '\0', VARLINK_MAX_MESSAGE + 32768), VARLINK_AGAIN);
	put(f, "x", 1);
	assert_int_equal(varlink_receive(f->v, f->near, false), VARLINK_AGAIN);
	while (varlink_next(f->v, &m) == -EBADMSG)
		n++;
	assert_int_equal(n, VARLINK_MAX_MESSAGE + 32768);
	assert_int_equal(varlink_receive(f->v, f->near, false), 0);
	assert_true(varlink_has_partial_input(f->v));
}

static void next_bad_messages_are_refused(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"x",
		"[]",
		"1",
		"null",
		"\"a\"",
		"{",
		"{}{}",
		"{} x",
		"{\"a\":\"\xff\"}",
		"{\"a\":\"\xc3\"}",
		"{\"a\":1,}",
		"{\"a\":[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]}",
		"{\"a\":tru",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		put(f, bad[i], strlen(bad[i]) + 1);
		assert_int_equal(varlink_receive(f->v, f->near, false), 0);
		assert_no_next(f, -EBADMSG);
		assert_no_next(f, VARLINK_AGAIN);
	}
}

static void next_too_many_containers_are_refused(void **state)
{
	struct fixture *f = *state;
	char text[16384] = "{\"a\":[[]";
	size_t size = strlen(text);

	for (int i = 0; i < 4094; i++, size += 3)
		memcpy(text + size, ",[]", 3);
	memcpy(text + size, "]}", 3);
	put(f, text, size + 3);
	assert_int_equal(varlink_receive(f->v, f->near, false), 0);
	assert_no_next(f, -EBADMSG);
}

static void queue_oversized_message_is_refused_and_fd_closed(void **state)
{
	struct fixture *f = *state;
	char *text = malloc(VARLINK_MAX_MESSAGE + 1);
	struct json_object *m = json_object_new_object();
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_non_null(text);
	memset(text, 'a', VARLINK_MAX_MESSAGE);
	text[VARLINK_MAX_MESSAGE] = '\0';
	json_object_object_add(m, "a", json_object_new_string(text));
	assert_int_equal(varlink_queue(f->v, m, fd), -EMSGSIZE);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_false(varlink_has_output(f->v));
	json_object_put(m);
	free(text);
}

static struct json_object *big_message(size_t size)
{
	struct json_object *m = json_object_new_object();
	char *text = malloc(size);

	assert_non_null(text);
	memset(text, 'a', size);
	json_object_object_add(m, "a", json_object_new_string_len(text, (int)size));
	free(text);
	return m;
}

static void queue_slow_reader_meets_limit_and_loses_nothing(void **state)
{
	struct fixture *f = *state;
	struct varlink *reader;
	struct json_object *m = big_message(1000000), *got;
	unsigned queued = 0, received = 0;
	int r;

	assert_int_equal(varlink_new(&reader), 0);
	while ((r = varlink_queue(f->v, m, -1)) == 0)
		queued++;
	assert_int_equal(r, -ENOBUFS);
	assert_int_equal(queued, VARLINK_MAX_QUEUED / 1000009);
	while (received < queued) {
		assert_true(varlink_send(f->v, f->near) >= 0);
		r = varlink_receive(reader, f->far, false);
		assert_true(r == 0 || r == VARLINK_AGAIN);
		while (varlink_next(reader, &got) == 0) {
			assert_true(json_object_equal(m, got));
			json_object_put(got);
			received++;
		}
	}
	assert_false(varlink_has_output(f->v));
	json_object_put(m);
	varlink_free(reader);
}

static void send_to_closed_peer_gives_epipe(void **state)
{
	struct fixture *f = *state;
	struct json_object *m = json_object_new_object();

	f->far = close_fd(f->far);
	assert_int_equal(varlink_queue(f->v, m, -1), 0);
	assert_int_equal(varlink_send(f->v, f->near), -EPIPE);
	json_object_put(m);
}

static int numbered_file(int size)
{
	int fd = memfd_create("numbered", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	return fd;
}

static void assert_file(int fd, int size)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, size);
	close(fd);
}

static unsigned count_messages(struct varlink *v)
{
	struct json_object *m;
	unsigned n = 0;

	for (; varlink_next(v, &m) == 0; n++)
		json_object_put(m);
	return n;
}

static void queue_fds_between_messages_arrive_with_their_message(void **state)
{
	struct fixture *f = *state;
	struct varlink *reader;
	struct json_object *m = json_object_new_object();

	assert_int_equal(varlink_new(&reader), 0);
	assert_int_equal(varlink_queue(f->v, m, -1), 0);
	assert_int_equal(varlink_queue(f->v, m, numbered_file(11)), 0);
	assert_int_equal(varlink_queue(f->v, m, numbered_file(22)), 0);
	assert_int_equal(varlink_queue(f->v, m, -1), 0);
	assert_int_equal(varlink_send(f->v, f->near), 0);

	/* A read may begin before the bytes that carry an fd, but ends with them. */
	assert_int_equal(varlink_receive(reader, f->far, true), 0);
	assert_int_equal(count_messages(reader), 2);
	assert_file(varlink_take_fd(reader), 11);
	assert_int_equal(varlink_take_fd(reader), -EBADF);
	assert_int_equal(varlink_receive(reader, f->far, true), 0);
	assert_int_equal(count_messages(reader), 1);
	assert_file(varlink_take_fd(reader), 22);
	assert_int_equal(varlink_receive(reader, f->far, true), 0);
	assert_int_equal(count_messages(reader), 1);
	assert_int_equal(varlink_take_fd(reader), -EBADF);
	json_object_put(m);
	varlink_free(reader);
}

static void queue_too_many_fds_are_refused_and_closed(void **state)
{
	struct fixture *f = *state;
	struct json_object *m = json_object_new_object();
	int fd;

	for (int i = 0; i < VARLINK_MAX_FDS; i++)
		assert_int_equal(varlink_queue(f->v, m, numbered_file(1)), 0);
	fd = numbered_file(1);
	assert_int_equal(varlink_queue(f->v, m, fd), -ENOBUFS);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	json_object_put(m);
}

/* Sends N copies of a pipe's write end with one byte. Returns whether all copies are closed again.
 */
static bool fds_are_closed(struct fixture *f, bool accept_fds, int n, int expect_kept)
{
	union {
		char bytes[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr align;
	} control = {.bytes = {0}};
	struct iovec iov = {.iov_base = (char[]){'{'}, .iov_len = 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = CMSG_SPACE((size_t)n * sizeof(int))};
	int ends[2], kept = 0, fd;
	ssize_t r;
	char c;

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
	for (int i = 0; i < n; i++)
		memcpy(CMSG_DATA(&control.align) + (size_t)i * sizeof(int), &ends[1], sizeof(int));
	assert_int_equal(sendmsg(f->far, &m, MSG_NOSIGNAL), 1);
	close(ends[1]);
	assert_int_equal(varlink_receive(f->v, f->near, accept_fds), 0);
	while ((fd = varlink_take_fd(f->v)) >= 0) {
		close(fd);
		kept++;
	}
	assert_int_equal(kept, expect_kept);
	r = read(ends[0], &c, 1);
	close(ends[0]);
	return r == 0;
}

static void receive_fds_unasked_are_closed(void **state)
{
	assert_true(fds_are_closed(*state, false, 1, 0));
	assert_true(fds_are_closed(*state, false, 8, 0));
}

static void receive_several_fds_keeps_one(void **state)
{
	assert_true(fds_are_closed(*state, true, 3, 1));
	assert_true(fds_are_closed(*state, true, 8, 1));
}

static struct json_object *parse(const char *text)
{
	struct json_object *o = json_tokener_parse(text);

	assert_non_null(o);
	return o;
}

static void parse_call_good_gives_parts(void **state)
{
	struct json_object *m = parse("{\"method\":\"io.ptsnap.recorder.Snapshot\",\"more\":true,"
				      "\"oneway\":null,\"parameters\":{\"a\":1},\"later\":[]}");
	struct varlink_call call;

	(void)state;
	assert_int_equal(varlink_parse_call(m, &call), 0);
	assert_string_equal(call.method, "io.ptsnap.recorder.Snapshot");
	assert_string_equal(call.interface, "io.ptsnap.recorder");
	assert_string_equal(call.name, "Snapshot");
	assert_non_null(call.parameters);
	assert_true(call.more);
	assert_false(call.oneway);
	assert_false(call.upgrade);
	json_object_put(m);
}

static void parse_call_empty_parameters_are_none(void **state)
{
	static const char *const texts[] = {"{\"method\":\"a.b.C\"}",
					    "{\"method\":\"a.b.C\",\"parameters\":null}",
					    "{\"method\":\"a.b.C\",\"parameters\":{}}"};
	struct varlink_call call;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct json_object *m = parse(texts[i]);

		assert_int_equal(varlink_parse_call(m, &call), 0);
		assert_null(call.parameters);
		json_object_put(m);
	}
}

static void parse_call_bad_is_refused(void **state)
{
	static const char *const bad[] = {
		"{}",
		"{\"method\":1}",
		"{\"method\":null}",
		"{\"method\":\"\"}",
		"{\"method\":\"Nodot\"}",
		"{\"method\":\".Name\"}",
		"{\"method\":\"a.\"}",
		"{\"method\":\"a.b\\u0000c.D\"}",
		"{\"method\":\"a.b.C\",\"more\":1}",
		"{\"method\":\"a.b.C\",\"oneway\":\"true\"}",
		"{\"method\":\"a.b.C\",\"upgrade\":0}",
		"{\"method\":\"a.b.C\",\"more\":true,\"oneway\":true}",
		"{\"method\":\"a.b.C\",\"parameters\":[]}",
		"{\"method\":\"a.b.C\",\"parameters\":\"\"}",
	};
	struct varlink_call call;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct json_object *m = parse(bad[i]);

		assert_int_equal(varlink_parse_call(m, &call), -EBADMSG);
		json_object_put(m);
	}
}

static void parse_call_long_interface_is_refused(void **state)
{
	struct varlink_call call;
	char method[300];

	(void)state;
	for (size_t dot = 255; dot <= 256; dot++) {
		struct json_object *m = json_object_new_object();

		memset(method, 'a', sizeof(method));
		method[dot] = '.';
		method[sizeof(method) - 1] = '\0';
		json_object_object_add(m, "method", json_object_new_string(method));
		assert_int_equal(varlink_parse_call(m, &call), dot == 255 ? 0 : -EBADMSG);
		json_object_put(m);
	}
}

static void parse_reply_cases_give_error_parameters_continues(void **state)
{
	static const struct {
		const char *text;
		int result;
		const char *error;
		bool parameters, continues;
	} cases[] = {
		{"{}", 0, NULL, false, false},
		{"{\"parameters\":{\"a\":1},\"continues\":true}", 0, NULL, true, true},
		{"{\"error\":\"a.b.C\",\"parameters\":{}}", 0, "a.b.C", false, false},
		{"{\"error\":null}", 0, NULL, false, false},
		{"{\"error\":\"\"}", -EBADMSG, NULL, false, false},
		{"{\"error\":{}}", -EBADMSG, NULL, false, false},
		{"{\"continues\":1}", -EBADMSG, NULL, false, false},
		{"{\"parameters\":3}", -EBADMSG, NULL, false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct json_object *m = parse(cases[i].text);
		struct varlink_reply reply = {.error = NULL};

		assert_int_equal(varlink_parse_reply(m, &reply), cases[i].result);
		assert_int_equal(reply.parameters != NULL, cases[i].parameters);
		assert_int_equal(reply.continues, cases[i].continues);
		if (cases[i].error)
			assert_string_equal(reply.error, cases[i].error);
		else
			assert_null(reply.error);
		json_object_put(m);
	}
}

static void get_u64_types_and_ranges(void **state)
{
	static const struct {
		const char *text;
		int result;
		uint64_t value; /* 77: stayed */
	} cases[] = {
		{"{}", 0, 77},
		{"{\"n\":null}", 0, 77},
		{"{\"n\":0}", 0, 0},
		{"{\"n\":9223372036854775808}", 0, 9223372036854775808u},
		{"{\"n\":-1}", -EINVAL, 77},
		{"{\"n\":99999999999999999999999}", -EINVAL, 77},
		{"{\"n\":1.5}", -EINVAL, 77},
		{"{\"n\":\"1\"}", -EINVAL, 77},
		{"{\"n\":true}", -EINVAL, 77},
		{"{\"n\":[]}", -EINVAL, 77},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct json_object *m = parse(cases[i].text);
		uint64_t value = 77;

		assert_int_equal(varlink_get_u64(m, "n", &value), cases[i].result);
		assert_true(value == cases[i].value);
		json_object_put(m);
	}
}

static void get_string_and_bool_check_their_types(void **state)
{
	struct json_object *m =
		parse("{\"s\":\"x\",\"z\":\"a\\u0000b\",\"b\":true,\"n\":null,\"i\":1}");
	const char *s = "stays";
	bool b = false;

	(void)state;
	assert_int_equal(varlink_get_string(m, "i", &s), -EINVAL);
	assert_int_equal(varlink_get_string(m, "z", &s), -EINVAL);
	assert_int_equal(varlink_get_string(m, "n", &s), 0);
	assert_int_equal(varlink_get_string(NULL, "s", &s), 0);
	assert_string_equal(s, "stays");
	assert_int_equal(varlink_get_string(m, "s", &s), 0);
	assert_string_equal(s, "x");
	assert_int_equal(varlink_get_bool(m, "i", &b), -EINVAL);
	assert_int_equal(varlink_get_bool(m, "none", &b), 0);
	assert_false(b);
	assert_int_equal(varlink_get_bool(m, "b", &b), 0);
	assert_true(b);
	json_object_put(m);
}

static void unknown_field_finds_the_typo(void **state)
{
	static const char *const allowed[] = {"reason", "decode", NULL};
	struct json_object *good = parse("{\"reason\":1,\"decode\":2}");
	struct json_object *bad = parse("{\"reason\":1,\"dekode\":2}");

	(void)state;
	assert_null(varlink_unknown_field(NULL, allowed));
	assert_null(varlink_unknown_field(good, allowed));
	assert_string_equal(varlink_unknown_field(bad, allowed), "dekode");
	json_object_put(good);
	json_object_put(bad);
}

static void assert_text(struct json_object *m, const char *expected)
{
	assert_non_null(m);
	assert_string_equal(json_object_to_json_string_ext(m, JSON_C_TO_STRING_PLAIN), expected);
	json_object_put(m);
}

static void make_messages_have_the_wire_form(void **state)
{
	(void)state;
	assert_text(varlink_make_call("a.b.C", NULL, false),
		    "{\"parameters\":{},\"method\":\"a.b.C\"}");
	assert_text(varlink_make_call("a.b.C", parse("{\"x\":1}"), true),
		    "{\"parameters\":{\"x\":1},\"method\":\"a.b.C\",\"more\":true}");
	assert_text(varlink_make_reply(NULL, false), "{\"parameters\":{}}");
	assert_text(varlink_make_reply(NULL, true), "{\"parameters\":{},\"continues\":true}");
	assert_text(varlink_make_error("a.b.E", NULL), "{\"parameters\":{},\"error\":\"a.b.E\"}");
	assert_text(varlink_make_service_error("MethodNotFound", "method", "X"),
		    "{\"parameters\":{\"method\":\"X\"},"
		    "\"error\":\"org.varlink.service.MethodNotFound\"}");
}

#define WIRE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WIRE(receive_byte_by_byte_gives_message_at_nul),
		WIRE(receive_pipelined_gives_all_in_order),
		WIRE(receive_peer_closed_gives_end),
		WIRE(receive_longest_message_is_taken),
		WIRE(receive_one_byte_too_many_is_refused),
		WIRE(receive_beyond_a_limit_is_refused),
		WIRE(receive_too_long_message_with_its_nul_is_refused),
		WIRE(receive_unread_messages_stop_reading),
		WIRE(receive_fds_unasked_are_closed),
		WIRE(receive_several_fds_keeps_one),
		WIRE(next_bad_messages_are_refused),
		WIRE(next_too_many_containers_are_refused),
		WIRE(queue_oversized_message_is_refused_and_fd_closed),
		WIRE(queue_slow_reader_meets_limit_and_loses_nothing),
		WIRE(queue_fds_between_messages_arrive_with_their_message),
		WIRE(queue_too_many_fds_are_refused_and_closed),
		WIRE(send_to_closed_peer_gives_epipe),
		cmocka_unit_test(parse_call_good_gives_parts),
		cmocka_unit_test(parse_call_empty_parameters_are_none),
		cmocka_unit_test(parse_call_bad_is_refused),
		cmocka_unit_test(parse_call_long_interface_is_refused),
		cmocka_unit_test(parse_reply_cases_give_error_parameters_continues),
		cmocka_unit_test(get_u64_types_and_ranges),
		cmocka_unit_test(get_string_and_bool_check_their_types),
		cmocka_unit_test(unknown_field_finds_the_typo),
		cmocka_unit_test(make_messages_have_the_wire_form),
	};

	return cmocka_run_group_tests_name("varlink", tests, NULL, NULL);
}
