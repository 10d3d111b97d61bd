/*
 * The method List over a socketpair: all snapshots, however many bytes their entries have together,
 * pages, and snapshots that come and go meanwhile.
 */
#include "daemon/control/control.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/daemon/store/store_fixture.h"

#define LONG_IDLE 3600000000ull

struct fixture {
	sd_event *event;
	struct store *store;
	struct control control;
	struct peer *peer;
	struct varlink *client;
	int fd;
	bool gone;
};

static void on_gone(void *userdata, struct peer *peer)
{
	struct fixture *f = userdata;

	control_on_gone(&f->control, peer);
	peer_free(peer);
	f->peer = NULL;
	f->gone = true;
}

static void on_call(void *userdata, struct peer *peer, const struct varlink_call *call)
{
	struct fixture *f = userdata;

	control_on_call(&f->control, peer, call);
}

static int begin_fixture(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct peer_handler handler = {f, on_call, on_gone};
	int fds[2];

	setup(NULL);
	f->store = open_store(1u << 30, 100000);
	assert_true(sd_event_new(&f->event) >= 0);
	f->control = (struct control){.event = f->event, .store = f->store};
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
			 0);
	f->fd = fds[1];
	assert_int_equal(peer_new(f->event, fds[0], LONG_IDLE, &handler, &f->peer), 0);
	assert_int_equal(varlink_new(&f->client), 0);
	*state = f;
	return 0;
}

static int end_fixture(void **state)
{
	struct fixture *f = *state;

	peer_free(f->peer);
	varlink_free(f->client);
	close(f->fd);
	sd_event_unref(f->event);
	store_free(f->store);
	free(f);
	return teardown(NULL);
}

/* Lists N snapshots whose entries have as many bytes as the limits allow. */
static void add(struct fixture *f, size_t n)
{
	struct entry e;
	char key[] = "a";

	entry_init(&e);
	strcpy(e.trigger, "control");
	strcpy(e.boot_id, BOOT);
	e.uid = geteuid();
	memset(e.reason, '"', sizeof(e.reason) - 1);
	memset(e.unit, '\\', sizeof(e.unit) - 1);
	memset(e.sender_unit, '\\', sizeof(e.sender_unit) - 1);
	memset(e.coredump, '"', sizeof(e.coredump) - 1);
	for (; e.labels.n < LABEL_MAX; key[0]++) {
		char value[LABEL_VALUE_SIZE];

		memset(value, '"', sizeof(value) - 1);
		value[sizeof(value) - 1] = '\0';
		assert_int_equal(labels_add(&e.labels, key, value), 0);
	}
	while (n--) {
		store_new_id(f->store, 1, BOOT, e.id);
		assert_int_equal(store_add(f->store, &e), 0);
	}
}

static void call(struct fixture *f, const char *text)
{
	assert_int_equal(send(f->fd, text, strlen(text) + 1, MSG_NOSIGNAL), strlen(text) + 1);
}

/* The next reply, the caller's; NULL: the connection is closed. */
static struct json_object *hear(struct fixture *f)
{
	struct json_object *message = NULL;
	int r;

	for (;;) {
		r = varlink_next(f->client, &message);
		if (r == 0)
			return message;
		assert_int_equal(r, VARLINK_AGAIN);
		r = varlink_receive(f->client, f->fd, false);
		if (r == VARLINK_END || r == -ECONNRESET)
			return NULL;
		if (r == VARLINK_AGAIN) {
			assert_false(f->gone);
			assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
		}
	}
}

/* The id in the next reply, "" if it has no snapshot; *RET_MORE: whether more replies follow. */
static const char *hear_id(struct fixture *f, bool *ret_more)
{
	static char id[ENTRY_ID_SIZE];
	struct json_object *message = hear(f), *report;
	struct varlink_reply reply;

	assert_non_null(message);
	assert_int_equal(varlink_parse_reply(message, &reply), 0);
	assert_null(reply.error);
	assert_true(json_object_object_get_ex(reply.parameters, "report", &report));
	snprintf(id, sizeof(id), "%s",
		 report ? json_object_get_string(json_object_object_get(report, "id")) : "");
	*ret_more = reply.continues;
	json_object_put(message);
	return id;
}

/* Expects the snapshots from index FIRST on, N of them. */
static void expect(struct fixture *f, size_t first, size_t n)
{
	bool more = true;

	for (size_t i = 0; i < n; i++) {
		assert_true(more);
		assert_string_equal(hear_id(f, &more), store_at(f->store, first + i)->id);
	}
	assert_false(more);
}

#define LIST(parameters) \
	"{\"method\":\"io.ptsnap.recorder.List\",\"more\":true,\"parameters\":{" parameters "}}"

static void list_of_more_than_is_queued_is_complete(void **state)
{
	const size_t n = 8000;
	struct fixture *f = *state;

	add(f, n);
	call(f, LIST(""));
	expect(f, 0, n);
	/* The connection is as good as before. */
	call(f, LIST("\"limit\":3"));
	expect(f, n - 3, 3);
	assert_false(f->gone);
}

static void list_goes_page_by_page(void **state)
{
	struct fixture *f = *state;
	char text[256];

	add(f, 10);
	call(f, LIST("\"limit\":4"));
	expect(f, 6, 4);
	snprintf(text, sizeof(text), LIST("\"limit\":4,\"before\":\"%s\""),
		 store_at(f->store, 6)->id);
	call(f, text);
	expect(f, 2, 4);
	snprintf(text, sizeof(text), LIST("\"limit\":4,\"before\":\"%s\""),
		 store_at(f->store, 2)->id);
	call(f, text);
	expect(f, 0, 2);
	snprintf(text, sizeof(text), LIST("\"before\":\"%s\""), store_at(f->store, 0)->id);
	call(f, text);
	bool more;
	assert_string_equal(hear_id(f, &more), "");
	assert_false(more);
	/* Without "more": the newest one before. */
	snprintf(text, sizeof(text),
		 "{\"method\":\"io.ptsnap.recorder.List\",\"parameters\":{\"before\":\"%s\"}}",
		 store_at(f->store, 5)->id);
	call(f, text);
	expect(f, 4, 1);
	call(f, LIST("\"before\":\"latest\""));
	struct json_object *message = hear(f);
	assert_non_null(strstr(json_object_to_json_string(message), "InvalidParameter"));
	json_object_put(message);
}

/* Removes all snapshots from index FIRST on. */
static void remove_from(struct fixture *f, size_t first)
{
	while (store_count(f->store) > first) {
		struct entry e = *store_at(f->store, first);

		e.state = ENTRY_FAILED;
		store_end(f->store, &e, -EBADF, -EBADF);
		assert_int_equal(store_delete(f->store, e.id), 0);
	}
}

static void snapshots_that_come_and_go_during_a_list_end_it_well(void **state)
{
	struct fixture *f = *state;
	size_t n = 1, old = 1000;
	bool more = true;

	add(f, old);
	call(f, LIST(""));
	hear_id(f, &more);
	remove_from(f, old / 2);
	add(f, 10);
	while (more)
		n += *hear_id(f, &more) != '\0';
	assert_in_range(n, 1, old - 1);
	assert_false(f->gone);
	call(f, LIST(""));
	expect(f, 0, old / 2 + 10);
}

static void list_holds_only_what_the_client_can_read_now(void **state)
{
	struct fixture *f = *state;
	bool more = true;
	size_t n = 0;

	add(f, 4000);
	call(f, LIST(""));
	while (sd_event_run(f->event, 0) > 0)
		;
	/* An entry that was not made yet is not sent. */
	remove_from(f, 0);
	while (more)
		n += *hear_id(f, &more) != '\0';
	assert_in_range(n, 1, 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(list_of_more_than_is_queued_is_complete,
						begin_fixture, end_fixture),
		cmocka_unit_test_setup_teardown(list_goes_page_by_page, begin_fixture, end_fixture),
		cmocka_unit_test_setup_teardown(
			snapshots_that_come_and_go_during_a_list_end_it_well, begin_fixture,
			end_fixture),
		cmocka_unit_test_setup_teardown(list_holds_only_what_the_client_can_read_now,
						begin_fixture, end_fixture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
