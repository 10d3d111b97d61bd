/*
 * Messages as systemd sends them, in the order in which it sends them: one failure counts once.
 */
#include "daemon/trigger/unitwatch.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define PATH	"/org/freedesktop/systemd1/unit/web_2eservice"
#define UNIT	"org.freedesktop.systemd1.Unit"
#define SERVICE "org.freedesktop.systemd1.Service"
#define NOW	1000000000ull

static sd_bus *bus;
static int ends[2];

static int setup(void **state)
{
	(void)state;
	/* Messages are made and read, but not sent: nobody answers at the other end. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends),
			 0);
	assert_true(sd_bus_new(&bus) >= 0);
	assert_true(sd_bus_set_fd(bus, ends[0], ends[0]) >= 0);
	assert_true(sd_bus_start(bus) >= 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	bus = sd_bus_close_unref(bus);
	close(ends[1]);
	return 0;
}

static sd_bus_message *begin(const char *path, const char *interface)
{
	sd_bus_message *m;

	assert_true(sd_bus_message_new_signal(bus, &m, path, "org.freedesktop.DBus.Properties",
					      "PropertiesChanged") >= 0);
	assert_true(sd_bus_message_append(m, "s", interface) >= 0);
	assert_true(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
	return m;
}

static int parse(sd_bus_message *m, struct unit_news *ret)
{
	int r;

	assert_true(sd_bus_message_close_container(m) >= 0);
	assert_true(sd_bus_message_append(m, "as", 0) >= 0);
	assert_true(sd_bus_message_seal(m, 1, 0) >= 0);
	r = unitwatch_parse(m, ret);
	sd_bus_message_unref(m);
	return r;
}

static void unitwatch_parse_of_a_service_takes_what_it_says(void **state)
{
	sd_bus_message *m = begin(PATH, SERVICE);
	struct unit_news news;
	char text[128];

	(void)state;
	sd_bus_message_append(m, "{sv}", "MainPID", "u", 0);
	sd_bus_message_append(m, "{sv}", "Result", "s", "core-dump");
	sd_bus_message_append(m, "{sv}", "ExecMainExitTimestampMonotonic", "t", (uint64_t)5);
	sd_bus_message_append(m, "{sv}", "ExecMainPID", "u", 4711);
	sd_bus_message_append(m, "{sv}", "ExecMainCode", "i", CLD_DUMPED);
	sd_bus_message_append(m, "{sv}", "ExecMainStatus", "i", SIGSEGV);
	sd_bus_message_append(m, "{sv}", "ExecStart", "a(sasbttttuii)", 0);
	assert_int_equal(parse(m, &news), 0);
	assert_string_equal(news.unit, "web.service");
	assert_string_equal(news.result, "core-dump");
	assert_string_equal(news.active, "");
	assert_int_equal(news.changed_usec, 5);
	assert_int_equal(news.pid, 4711);
	unitwatch_describe(&news, text, sizeof(text));
	assert_string_equal(text, "web.service failed: core-dump, killed by SIGSEGV");
	news.code = CLD_EXITED;
	news.status = 3;
	unitwatch_describe(&news, text, sizeof(text));
	assert_string_equal(text, "web.service failed: core-dump, exited with 3");
}

static void unitwatch_parse_of_a_unit_takes_what_it_says(void **state)
{
	static const uint8_t id[16] = {1, 2, 3};
	sd_bus_message *m = begin(PATH, UNIT);
	struct unit_news news;

	(void)state;
	sd_bus_message_append(m, "{sv}", "ActiveState", "s", "failed");
	sd_bus_message_append(m, "{sv}", "Result", "s", "of no unit");
	sd_bus_message_open_container(m, 'e', "sv");
	sd_bus_message_append(m, "s", "InvocationID");
	sd_bus_message_open_container(m, 'v', "ay");
	sd_bus_message_append_array(m, 'y', id, sizeof(id));
	sd_bus_message_close_container(m);
	sd_bus_message_close_container(m);
	assert_int_equal(parse(m, &news), 0);
	assert_string_equal(news.active, "failed");
	assert_string_equal(news.result, "");
	assert_true(news.has_invocation);
	assert_memory_equal(news.invocation, id, sizeof(id));
}

static void unitwatch_parse_of_something_else_is_none(void **state)
{
	struct unit_news news;
	sd_bus_message *m = begin(PATH, "org.freedesktop.systemd1.Socket");

	(void)state;
	assert_int_equal(parse(m, &news), -ENOENT);
	m = begin(PATH, UNIT);
	sd_bus_message_append(m, "{sv}", "SubState", "s", "dead");
	assert_int_equal(parse(m, &news), -ENOENT);
	m = begin("/org/freedesktop/systemd1/job/1", UNIT);
	assert_int_equal(parse(m, &news), -EBADMSG);
	m = begin(PATH, UNIT);
	sd_bus_message_append(m, "{sv}", "ActiveState", "u", 1);
	assert_int_equal(parse(m, &news), -EBADMSG);
	assert_true(sd_bus_message_new_signal(bus, &m, PATH, "org.freedesktop.DBus.Properties",
					      "PropertiesChanged") >= 0);
	assert_true(sd_bus_message_append(m, "u", 1) >= 0);
	assert_true(sd_bus_message_seal(m, 1, 0) >= 0);
	assert_int_equal(unitwatch_parse(m, &news), -EBADMSG);
	sd_bus_message_unref(m);
}

static struct unit_table table;

static bool service_says(const char *result)
{
	struct unit_news news = {.unit = "web.service", .changed_usec = NOW};

	strcpy(news.result, result);
	return unitwatch_judge(&table, &news, NOW);
}

static bool unit_says(const char *active, uint8_t invocation)
{
	struct unit_news news = {.unit = "web.service",
				 .has_invocation = true,
				 .invocation = {invocation},
				 .changed_usec = NOW};

	strcpy(news.active, active);
	return unitwatch_judge(&table, &news, NOW);
}

static int empty_table(void **state)
{
	(void)state;
	memset(&table, 0, sizeof(table));
	return 0;
}

static void unitwatch_judge_one_failure_is_told_once(void **state)
{
	(void)state;
	assert_false(service_says("success"));
	assert_false(unit_says("active", 1));
	assert_true(service_says("signal"));
	assert_false(unit_says("failed", 1));
	assert_false(service_says("signal"));
	assert_false(unit_says("failed", 1));
}

static void unitwatch_judge_each_run_of_a_restarted_unit_is_told(void **state)
{
	(void)state;
	for (uint8_t run = 1; run <= 3; run++) {
		assert_true(service_says("exit-code"));
		assert_false(unit_says("failed", run));
		assert_false(service_says("exit-code"));
		assert_false(unit_says("activating", run));
		assert_false(service_says("success"));
		assert_false(unit_says("active", (uint8_t)(run + 1)));
	}
}

static void unitwatch_judge_a_new_run_that_failed_between_messages_is_told(void **state)
{
	(void)state;
	assert_true(service_says("exit-code"));
	assert_false(unit_says("failed", 1));
	assert_true(unit_says("failed", 2));
	assert_false(unit_says("failed", 2));
}

static void unitwatch_judge_a_unit_without_a_result_goes_by_its_state(void **state)
{
	(void)state;
	assert_true(unit_says("failed", 1));
	assert_false(unit_says("active", 1));
	assert_true(unit_says("failed", 1));
	assert_false(unit_says("inactive", 1));
	assert_true(unit_says("failed", 2));
}

/* The messages of systemd 252 after the last run that StartLimitBurst= allows. */
static void unitwatch_judge_a_start_limit_is_no_failure_of_its_own(void **state)
{
	(void)state;
	assert_true(service_says("signal"));
	assert_false(unit_says("failed", 3));
	assert_false(unit_says("activating", 3));
	assert_false(service_says("signal"));
	assert_false(unit_says("inactive", 3));
	assert_false(service_says("signal"));
	assert_false(unit_says("failed", 3));
}

static void unitwatch_judge_what_is_long_ago_is_known_and_not_told(void **state)
{
	struct unit_news news = {.unit = "web.service", .active = "failed", .changed_usec = 1};

	(void)state;
	assert_false(unitwatch_judge(&table, &news, NOW));
	assert_false(unit_says("failed", 1));
	/* The main process ended long ago, and the unit fails now. */
	empty_table(NULL);
	news = (struct unit_news){.unit = "web.service", .result = "timeout", .changed_usec = 1};
	assert_false(unitwatch_judge(&table, &news, NOW));
	assert_true(unit_says("failed", 1));
}

static void unitwatch_judge_of_too_many_forgets_the_oldest(void **state)
{
	struct unit_news news = {.result = "signal", .changed_usec = NOW};

	(void)state;
	for (unsigned i = 0; i < 2 * UNITWATCH_MAX_FAILED; i++) {
		snprintf(news.unit, sizeof(news.unit), "u%u.service", i);
		assert_true(unitwatch_judge(&table, &news, NOW));
	}
	assert_false(unitwatch_judge(&table, &news, NOW));
	strcpy(news.unit, "u0.service");
	assert_true(unitwatch_judge(&table, &news, NOW));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unitwatch_parse_of_a_service_takes_what_it_says),
		cmocka_unit_test(unitwatch_parse_of_a_unit_takes_what_it_says),
		cmocka_unit_test(unitwatch_parse_of_something_else_is_none),
		cmocka_unit_test_setup(unitwatch_judge_one_failure_is_told_once, empty_table),
		cmocka_unit_test_setup(unitwatch_judge_each_run_of_a_restarted_unit_is_told,
				       empty_table),
		cmocka_unit_test_setup(
			unitwatch_judge_a_new_run_that_failed_between_messages_is_told,
			empty_table),
		cmocka_unit_test_setup(unitwatch_judge_a_unit_without_a_result_goes_by_its_state,
				       empty_table),
		cmocka_unit_test_setup(unitwatch_judge_a_start_limit_is_no_failure_of_its_own,
				       empty_table),
		cmocka_unit_test_setup(unitwatch_judge_what_is_long_ago_is_known_and_not_told,
				       empty_table),
		cmocka_unit_test_setup(unitwatch_judge_of_too_many_forgets_the_oldest, empty_table),
	};

	return cmocka_run_group_tests_name("unitwatch", tests, setup, teardown);
}
