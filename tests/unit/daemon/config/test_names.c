/*
 * Names of users and groups, and what is known of them while a list does not answer.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/config/exclude.h"
#include "daemon/config/names.h"
#include "daemon/control/peer.h"

#define SOON   1000000u
#define MINUTE 60000000000u

/* The list that has "slow" answers when something is written here. */
static int slow_pipe[2];
static uint32_t slow_id, bob_id;
static int bob_r;

static int ask(enum names_kind kind, const char *name, uint32_t *ret_id)
{
	char byte;

	*ret_id = kind == NAMES_GROUP ? 50 : bob_id;
	if (strcmp(name, "bob") == 0)
		return bob_r;
	if (strcmp(name, "slow") != 0)
		return -ENOENT;
	if (read(slow_pipe[0], &byte, 1) != 1)
		return -EIO;
	*ret_id = slow_id;
	return 0;
}

static int setup(void **state)
{
	struct names *n;

	assert_int_equal(pipe(slow_pipe), 0);
	slow_id = 1001;
	bob_id = 1002;
	bob_r = 0;
	assert_int_equal(names_new(ask, &n), 0);
	*state = n;
	return 0;
}

static int teardown(void **state)
{
	names_free(*state);
	close(slow_pipe[1]); /* ends threads that still wait */
	return 0;
}

static void on_line(void *userdata, const char *text)
{
	char *all = userdata;

	strcat(strcat(all, text), "\n");
}

static void names_find_knows_what_was_answered(void **state)
{
	struct names *n = *state;
	uint32_t id = 0;

	assert_int_equal(names_find(n, NAMES_USER, "bob", &id), -EAGAIN);
	names_want(n, NAMES_USER, "bob", "ExcludeUsers");
	names_want(n, NAMES_GROUP, "bob", "AdminGroup");
	names_want(n, NAMES_USER, "nobody-at-all", "SignalUsers");
	assert_true(names_await(n, MINUTE));
	assert_int_equal(names_find(n, NAMES_USER, "bob", &id), 0);
	assert_int_equal(id, 1002);
	assert_int_equal(names_find(n, NAMES_GROUP, "bob", &id), 0);
	assert_int_equal(id, 50);
	assert_int_equal(names_find(n, NAMES_USER, "nobody-at-all", &id), -ENOENT);
}

static void names_find_of_a_number_asks_nobody(void **state)
{
	uint32_t id = 0;

	(void)state;
	assert_int_equal(names_find(NULL, NAMES_USER, "1000", &id), 0);
	assert_int_equal(id, 1000);
	assert_int_equal(names_find(NULL, NAMES_USER, "4294967295", &id), -ENOENT);
	assert_int_equal(names_find(NULL, NAMES_USER, "00000001000", &id), -ENOENT);
	assert_int_equal(names_find(NULL, NAMES_USER, "", &id), -EAGAIN);
	assert_int_equal(names_find(NULL, NAMES_USER, "bob", &id), -EAGAIN);
}

/* The resolver asks neither for a name that is too long nor for one name too many. */
static void names_find_of_what_is_not_asked_for_is_nobody(void **state)
{
	char text[301], name[16];
	struct names *n = *state;
	uint32_t id = 0;

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	names_want(n, NAMES_USER, text, "ExcludeUsers");
	assert_int_equal(names_find(n, NAMES_USER, text, &id), -ENOENT);
	for (unsigned i = 0; i < NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "4294967295%u", i);
		names_want(n, NAMES_USER, name, "ExcludeUsers");
	}
	names_want(n, NAMES_USER, "bob", "ExcludeUsers");
	assert_int_equal(names_find(n, NAMES_USER, "bob", &id), -ENOENT);
}

static void names_await_does_not_wait_for_a_list_that_hangs(void **state)
{
	struct names *n = *state;
	char told[1024] = "";
	uint32_t id = 0;

	names_want(n, NAMES_USER, "slow", "ExcludeUsers");
	names_want(n, NAMES_USER, "bob", "SignalUsers");
	names_await(n, SOON);
	assert_int_equal(names_find(n, NAMES_USER, "slow", &id), -EAGAIN);
	names_tell(n, on_line, told);
	assert_non_null(
		strstr(told, "ExcludeUsers=slow: the host's list of users does not answer"));
	/* Other names do not wait behind it for ever. */
	for (int i = 0; i < 60 && names_find(n, NAMES_USER, "bob", &id) != 0; i++) {
		names_tidy(n);
		names_await(n, MINUTE / 60);
	}
	assert_int_equal(names_find(n, NAMES_USER, "bob", &id), 0);
	/* The list answers after all. */
	assert_int_equal(write(slow_pipe[1], "", 1), 1);
	while (names_find(n, NAMES_USER, "slow", &id) != 0) {
		struct pollfd p = {.fd = names_fd(n), .events = POLLIN};

		assert_int_equal(poll(&p, 1, 60000), 1);
		names_take(n);
	}
	assert_int_equal(names_find(n, NAMES_USER, "slow", &id), 0);
	assert_int_equal(id, 1001);
}

static void names_await_of_a_list_that_fails_keeps_what_was_known(void **state)
{
	struct names *n = *state;
	char told[1024] = "";
	uint32_t id = 0;

	names_want(n, NAMES_USER, "bob", "ExcludeUsers");
	names_await(n, MINUTE);
	bob_r = -EIO;
	names_want(n, NAMES_USER, "bob", "ExcludeUsers");
	assert_false(names_await(n, MINUTE));
	assert_int_equal(names_find(n, NAMES_USER, "bob", &id), 0);
	assert_int_equal(id, 1002);
	names_tell(n, on_line, told);
	assert_string_equal(told, "ExcludeUsers=bob: the host's list of users cannot be read: "
				  "Input/output error; it is tried again\n");
	bob_r = 0;
	bob_id = 7;
	names_tidy(n);
	assert_true(names_await(n, MINUTE));
	assert_int_equal(names_find(n, NAMES_USER, "bob", &id), 0);
	assert_int_equal(id, 7);
}

static int n_lines;
static bool last_warn;

static void on_news(bool warn, const char *text)
{
	assert_non_null(text);
	n_lines++;
	last_warn = warn;
}

static void names_news_says_each_thing_once_until_it_changes(void **state)
{
	struct names *n = *state;

	n_lines = 0;
	for (int i = 0; i < 3; i++) { /* three reloads */
		names_want(n, NAMES_GROUP, "none", "AdminGroup");
		names_await(n, MINUTE);
		names_news(n, on_news);
	}
	assert_int_equal(n_lines, 1);
	assert_false(last_warn);
	bob_r = -ENOENT;
	for (int i = 0; i < 3; i++) {
		names_want(n, NAMES_USER, "bob", "SignalUsers");
		names_await(n, MINUTE);
		names_news(n, on_news);
	}
	assert_int_equal(n_lines, 2);
	assert_true(last_warn);
	bob_r = 0;
	names_want(n, NAMES_USER, "bob", "SignalUsers");
	names_await(n, MINUTE);
	names_news(n, on_news);
	assert_int_equal(n_lines, 3);
	assert_false(last_warn);
}

static void access_use_of_a_group_not_yet_known_changes_nothing(void **state)
{
	struct names *n = *state;
	struct access a = {0};

	access_use(&a, "17", n);
	assert_true(a.have_admins && a.admins == 17);
	access_use(&a, "slow", n);
	assert_true(a.have_admins && a.admins == 17);
	assert_string_equal(a.admin_group, "17");
	names_want(n, NAMES_GROUP, "none", "AdminGroup");
	names_await(n, MINUTE);
	access_use(&a, "none", n);
	assert_false(a.have_admins);
	access_use(&a, "17", n);
	access_use(&a, "", n);
	assert_false(a.have_admins);
}

static void exclude_look_up_keeps_whom_it_has_found(void **state)
{
	struct names *n = *state;
	struct exclude *x;

	assert_int_equal(exclude_new(NULL, "bob 5", &x), 0);
	assert_int_equal(exclude_look_up(x, n), EXCLUDE_UNKNOWN);
	assert_true(exclude_has_uid(x, 5));
	assert_false(exclude_has_uid(x, 1002));
	names_want(n, NAMES_USER, "bob", "ExcludeUsers");
	names_await(n, MINUTE);
	assert_int_equal(exclude_look_up(x, n), 0);
	assert_true(exclude_has_uid(x, 1002));
	bob_id = 8;
	names_want(n, NAMES_USER, "bob", "ExcludeUsers");
	names_await(n, MINUTE);
	assert_int_equal(exclude_look_up(x, n), 0);
	assert_true(exclude_has_uid(x, 1002));
	assert_true(exclude_has_uid(x, 8));
	exclude_free(x);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(names_find_knows_what_was_answered),
		CASE(names_find_of_a_number_asks_nobody),
		CASE(names_find_of_what_is_not_asked_for_is_nobody),
		CASE(names_await_does_not_wait_for_a_list_that_hangs),
		CASE(names_await_of_a_list_that_fails_keeps_what_was_known),
		CASE(names_news_says_each_thing_once_until_it_changes),
		CASE(access_use_of_a_group_not_yet_known_changes_nothing),
		CASE(exclude_look_up_keeps_whom_it_has_found),
	};

	return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
