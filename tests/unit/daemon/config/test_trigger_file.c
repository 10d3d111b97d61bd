/*
 * Triggers from files: what each key means, what is told and left out, and which trigger is chosen.
 */
#include "daemon/config/trigger_set.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/config/config.h"
#include "proto/base.h"
#include "tests/unit/daemon/scratch_dir.h"

struct fixture {
	char dir[SCRATCH_DIR_SIZE];
	struct trigger_set *set;
	char told[4096];
	unsigned n_lost;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	scratch_dir_make(f->dir);
	assert_int_equal(trigger_set_new(&f->set), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	trigger_set_free(f->set);
	scratch_dir_remove(f->dir);
	free(f);
	return 0;
}

static void on_line(void *userdata, const char *text)
{
	struct fixture *f = userdata;
	size_t used = strlen(f->told);

	/* Cuts off the directory, which is another one each time. */
	if (strncmp(text, f->dir, strlen(f->dir)) == 0)
		text += strlen(f->dir) + 1;
	snprintf(f->told + used, sizeof(f->told) - used, "%s\n", text);
}

static void write_file(const struct fixture *f, const char *name, const char *text)
{
	char path[SCRATCH_DIR_SIZE + 300];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void read_all(struct fixture *f)
{
	struct config_warn warn = {.userdata = f, .line = on_line};

	assert_int_equal(trigger_set_read(f->set, NULL, f->dir, &warn), 0);
	f->n_lost = warn.n_lost;
}

static const struct trigger_object *one(struct fixture *f, const char *text)
{
	const struct trigger_object *o;

	write_file(f, "one.conf", text);
	read_all(f);
	o = trigger_set_find(f->set, "one");
	assert_non_null(o);
	return o;
}

static void trigger_set_read_every_key_is_taken(void **state)
{
	struct fixture *f = *state;
	const struct trigger_object *o =
		one(f, "[Trigger]\nOn=unit\nEnabled=no\nUnits=web-*.service db.service\n"
		       "Units=x@?.service\nWatch=yes\nLastBytes=4M\nLastTime=20ms\nDecode=yes\n"
		       "Deadline=3s\nReason=why not\nLabel=team=data base\nLabel=a=1\nBurst=3\n"
		       "Interval=1h\nMinFill=500ms\n");

	assert_string_equal(f->told, "");
	assert_int_equal(f->set->n, 5);
	assert_false(o->built_in);
	assert_false(o->enabled);
	assert_int_equal(o->on, TRIGGER_ON_UNIT);
	assert_int_equal(o->n_units, 3);
	assert_string_equal(o->units[2], "x@?.service");
	assert_true(o->watch);
	assert_int_equal(o->last_bytes, 4 << 20);
	assert_int_equal(o->last_ns, 20000000);
	assert_int_equal(o->deadline_ns, 3000000000u);
	assert_string_equal(o->reason, "why not");
	assert_int_equal(o->labels.n, 2);
	assert_string_equal(labels_get(&o->labels, "team"), "data base");
	assert_int_equal(o->burst, 3);
	assert_int_equal(o->interval_usec, 3600000000u);
	assert_int_equal(o->min_fill_ns, 500000000);
}

static void trigger_set_read_wrong_values_leave_the_defaults(void **state)
{
	struct fixture *f = *state;
	const struct trigger_object *o = one(
		f, "[Trigger]\nOn=exit\nDecode=maybe\nLastBytes=0\nLastTime=0\nBurst=-1\n"
		   "Label=1x=2\nInterval=soon\nUnits=a/b\n[Trigger]\nColour=red\n[Other]\nA=b\n");

	assert_int_equal(f->n_lost, 8);
	assert_non_null(strstr(f->told, "one.conf:2: On=exit is not valid, ignored; valid: "));
	assert_non_null(strstr(f->told, "one.conf:9: Units=a/b is not valid"));
	assert_non_null(strstr(f->told, "one.conf:11: unknown key Colour in section [Trigger]"));
	assert_non_null(strstr(f->told, "one.conf:12: unknown section [Other], ignored"));
	assert_int_equal(o->on, TRIGGER_ON_CONTROL);
	assert_true(o->decode && o->enabled);
	assert_int_equal(o->last_bytes, ENTRY_ABSENT);
	assert_false(o->has_burst || o->has_interval);
	assert_int_equal(o->labels.n + o->n_units, 0);
}

static void trigger_set_read_keys_of_another_kind_are_dropped(void **state)
{
	struct fixture *f = *state;
	const struct trigger_object *o = one(
		f,
		"[Trigger]\nUnits=a.service\nWatch=yes\nSignalUsers=0\nDecode=no\nDeadline=1s\n");

	assert_string_equal(f->told, "one.conf:2: Units=a.service needs On=unit, ignored\n"
				     "one.conf:3: Watch=yes needs On=unit, ignored\n"
				     "one.conf:4: SignalUsers=0 needs On=signal, ignored\n"
				     "one.conf:6: Deadline=1s needs Decode=yes, ignored\n");
	assert_int_equal(o->n_units + o->n_users, 0);
	assert_false(o->watch);
	assert_int_equal(o->deadline_ns, ENTRY_ABSENT);
}

static void trigger_set_read_an_empty_value_takes_back(void **state)
{
	struct fixture *f = *state;
	const struct trigger_object *o =
		one(f, "[Trigger]\nOn=unit\nUnits=a.service\nUnits=\nUnits=b.service\nLabel=a=1\n"
		       "Label=\nLabel=b=2\nBurst=1\nBurst=\nOn=\nOn=unit\n");

	assert_string_equal(f->told, "");
	assert_int_equal(o->n_units, 1);
	assert_string_equal(o->units[0], "b.service");
	assert_null(labels_get(&o->labels, "a"));
	assert_non_null(labels_get(&o->labels, "b"));
	assert_false(o->has_burst);
}

static void trigger_set_read_a_built_in_name_changes_the_built_in_one(void **state)
{
	struct fixture *f = *state;
	const struct trigger_object *o;

	write_file(f, "signal.conf", "[Trigger]\nOn=unit\nLastBytes=1M\nSignalUsers=7 0\n");
	read_all(f);
	assert_int_equal(f->set->n, 4);
	o = trigger_set_find(f->set, "signal");
	assert_true(o->built_in);
	assert_int_equal(o->on, TRIGGER_ON_SIGNAL);
	assert_int_equal(o->last_bytes, 1 << 20);
	assert_int_equal(o->n_users, 2);
	assert_string_equal(f->told,
			    "signal.conf:2: On=unit is not valid, ignored; valid: control, "
			    "signal, unit, pressure, kernel-log, path, fifo, metric; for a "
			    "built-in trigger only its own\n");
}

static void trigger_set_read_keys_of_conditions_are_taken(void **state)
{
	struct fixture *f = *state;
	const struct trigger_object *o;

	write_file(f, "a.conf",
		   "[Trigger]\nPressure=memory full\nPressureStall=150ms\nPressureWindow=1s\n"
		   "Count=3\nExpireAfter=1h\nEvents=32\nEventsWithin=2s\n");
	write_file(f, "b.conf",
		   "[Trigger]\nOn=kernel-log\nKernelLog=oops hung-task\n"
		   "KernelLog=rcu-stall\nKernelLogMatch=*segfault at*\n");
	write_file(f, "c.conf",
		   "[Trigger]\nMetricFile=/a/b.prom\nMetric=x{y=\"z\"}\n"
		   "MetricBelow=-1.5e3\n");
	read_all(f);
	assert_string_equal(f->told, "");
	o = trigger_set_find(f->set, "a");
	assert_int_equal(o->on, TRIGGER_ON_PRESSURE);
	assert_int_equal(o->condition.pressure, TRIGGER_MEMORY);
	assert_true(o->condition.pressure_full && o->enabled);
	assert_int_equal(o->condition.stall_usec, 150000);
	assert_int_equal(o->condition.window_usec, 1000000);
	assert_int_equal(o->count, 3);
	assert_int_equal(o->events, 32);
	assert_int_equal(o->events_within_usec, 2000000);
	assert_int_equal(o->expire_usec, 3600000000u);
	o = trigger_set_find(f->set, "b");
	assert_int_equal(o->condition.kernel_log,
			 1u << TRIGGER_OOPS | 1u << TRIGGER_HUNG_TASK | 1u << TRIGGER_RCU_STALL);
	o = trigger_set_find(f->set, "c");
	assert_int_equal(o->on, TRIGGER_ON_METRIC);
	assert_true(o->condition.below == -1500);
}

static void trigger_object_set_wrong_values_of_conditions_are_refused(void **state)
{
	static const struct {
		enum trigger_key_id key;
		const char *text;
	} bad[] = {
		{TRIGGER_PRESSURE, "disk"},
		{TRIGGER_PRESSURE, "cpu half"},
		{TRIGGER_PRESSURE_STALL, "0"},
		{TRIGGER_PRESSURE_STALL, "11s"},
		{TRIGGER_PRESSURE_WINDOW, "1ms"},
		{TRIGGER_PRESSURE_WINDOW, "1h"},
		{TRIGGER_KERNEL_LOG, "oops x"},
		{TRIGGER_PATH_APPEARS, "a/b"},
		{TRIGGER_PATH_APPEARS, "/a/"},
		{TRIGGER_FIFO, "a"},
		{TRIGGER_METRIC, "1x"},
		{TRIGGER_METRIC_FILE, "m"},
		{TRIGGER_METRIC_ABOVE, "much"},
		{TRIGGER_METRIC_ABOVE, "inf"},
		{TRIGGER_COUNT, "0"},
		{TRIGGER_EXPIRE_AFTER, "0"},
		{TRIGGER_EVENTS, "0"},
		{TRIGGER_EVENTS, "33"},
		{TRIGGER_EVENTS_WITHIN, "0"},
	};
	struct trigger_object o;

	(void)state;
	trigger_object_init(&o, "one", TRIGGER_ON_CONTROL, false);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(trigger_object_set(&o, bad[i].key, bad[i].text, 1), -EINVAL);
		assert_null(o.values[bad[i].key].text);
	}
	trigger_object_done(&o);
}

static void trigger_set_read_keys_of_conditions_without_one_are_dropped(void **state)
{
	struct fixture *f = *state;

	assert_true(one(f, "[Trigger]\nOn=control\nEvents=3\nFIFO=/f\n")->enabled);
	assert_non_null(strstr(f->told, "one.conf:3: Events=3 needs a condition, ignored"));
	assert_non_null(strstr(f->told, "one.conf:4: FIFO=/f needs On=fifo, ignored"));
	assert_int_equal(f->n_lost, 2);
}

static void trigger_set_read_a_condition_that_lacks_a_key_is_disabled(void **state)
{
	struct fixture *f = *state;

	assert_false(one(f, "[Trigger]\nOn=metric\nMetricFile=/a\nMetricAbove=1\n")->enabled);
	assert_non_null(
		strstr(f->told, "one.conf: On=metric needs Metric=, the trigger is disabled"));
	assert_int_equal(f->n_lost, 1);
}

static void trigger_set_copy_has_all_values(void **state)
{
	struct fixture *f = *state;
	const struct trigger_object *o =
		one(f, "[Trigger]\nUnits=a.service b.service\nOn=unit\nLabel=x=y z\nLabel=a=b\n"
		       "Burst=3\nReason=why\n");
	struct trigger_set *copy = trigger_set_copy(f->set);

	assert_non_null(copy);
	assert_int_equal(copy->n, f->set->n);
	o = trigger_set_find(copy, "one");
	assert_int_equal(o->n_units, 2);
	assert_int_equal(o->burst, 3);
	assert_string_equal(labels_get(&o->labels, "x"), "y z");
	assert_string_equal(o->reason, "why");
	trigger_set_remove(copy, "one");
	assert_null(trigger_set_find(copy, "one"));
	assert_int_equal(copy->n, f->set->n - 1);
	trigger_set_free(copy);
}

static void trigger_set_read_a_name_that_is_none_is_left_out(void **state)
{
	struct fixture *f = *state;

	write_file(f, "a b.conf", "[Trigger]\nBurst=nonsense\n");
	write_file(f, "-x.conf", "");
	write_file(f, "notes.txt", "[Trigger]\n");
	read_all(f);
	assert_int_equal(f->set->n, 4);
	assert_int_equal(f->n_lost, 2);
	assert_non_null(strstr(f->told, "a b.conf: not the name of a trigger, ignored; valid: "));
}

static void trigger_set_read_too_many_are_told(void **state)
{
	struct fixture *f = *state;
	char name[32];

	for (int i = 0; i < 70; i++) {
		snprintf(name, sizeof(name), "t%02d.conf", i);
		write_file(f, name, "[Trigger]\nBurst=1\n");
	}
	read_all(f);
	assert_int_equal(f->set->n, TRIGGER_SET_MAX);
	assert_int_equal(f->n_lost, 70 - (TRIGGER_SET_MAX - 4));
}

static void trigger_set_for_unit_prefers_files_in_their_order(void **state)
{
	struct fixture *f = *state;

	write_file(f, "b.conf", "[Trigger]\nOn=unit\nUnits=web-*.service\n");
	write_file(f, "c.conf", "[Trigger]\nOn=unit\nUnits=*.service\nWatch=yes\n");
	write_file(f, "a.conf", "[Trigger]\nOn=unit\nUnits=web-*.service\nEnabled=no\n");
	read_all(f);
	assert_string_equal(trigger_set_for_unit(f->set, "web-1.service", false)->name, "b");
	assert_string_equal(trigger_set_for_unit(f->set, "web-1.service", true)->name, "c");
	assert_string_equal(trigger_set_for_unit(f->set, "db.service", false)->name, "c");
	assert_string_equal(trigger_set_for_unit(f->set, "x.mount", false)->name, "unit");
	assert_null(trigger_set_for_unit(f->set, "x.mount", true));
	assert_true(trigger_set_watches(f->set));
}

static void trigger_set_for_unit_of_an_escaped_name_takes_backslashes_as_they_are(void **state)
{
	struct fixture *f = *state;

	write_file(f, "a.conf", "[Trigger]\nOn=unit\nUnits=dev-disk\\x2d1.*\n");
	read_all(f);
	assert_string_equal(trigger_set_for_unit(f->set, "dev-disk\\x2d1.mount", false)->name, "a");
	assert_string_equal(trigger_set_for_unit(f->set, "dev-diskx2d1.mount", false)->name,
			    "unit");
}

static void trigger_set_for_signal_goes_by_user(void **state)
{
	struct fixture *f = *state;

	struct names *n;

	write_file(f, "mine.conf", "[Trigger]\nOn=signal\nSignalUsers=1000 no-one root\n");
	read_all(f);
	assert_string_equal(f->told, "");
	assert_string_equal(trigger_set_for_signal(f->set, NULL, 1000)->name, "mine");
	assert_string_equal(trigger_set_for_signal(f->set, NULL, 0)->name, "signal");
	assert_int_equal(names_new(names_ask_host, &n), 0);
	names_want(n, NAMES_USER, "root", "SignalUsers");
	names_await(n, 60000000000u);
	assert_string_equal(trigger_set_for_signal(f->set, n, 1000)->name, "mine");
	assert_string_equal(trigger_set_for_signal(f->set, n, 0)->name, "mine");
	assert_string_equal(trigger_set_for_signal(f->set, n, 1001)->name, "signal");
	assert_string_equal(trigger_set_for_signal(f->set, n, ENTRY_ABSENT)->name, "signal");
	names_free(n);
}

static void trigger_set_read_of_directories_takes_the_strongest_of_a_name(void **state)
{
	struct fixture *f = *state;
	char strong[SCRATCH_DIR_SIZE + 8], weak[SCRATCH_DIR_SIZE + 8];
	const char *const directories[] = {strong, weak, NULL};
	struct config_warn warn = {.userdata = f, .line = on_line};
	char path[SCRATCH_DIR_SIZE + 32];

	snprintf(strong, sizeof(strong), "%s/s", f->dir);
	snprintf(weak, sizeof(weak), "%s/w", f->dir);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(mkdir(directories[i], 0755), 0);
		snprintf(path, sizeof(path), "%s/triggers.d", directories[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	write_file(f, "s/triggers.d/one.conf", "[Trigger]\nBurst=1\n");
	write_file(f, "w/triggers.d/one.conf", "[Trigger]\nBurst=2\nMinFill=1s\n");
	write_file(f, "w/triggers.d/two.conf", "[Trigger]\nBurst=2\n");
	assert_int_equal(trigger_set_read(f->set, directories, NULL, &warn), 0);
	assert_int_equal(trigger_set_find(f->set, "one")->burst, 1);
	assert_int_equal(trigger_set_find(f->set, "one")->min_fill_ns, 0);
	assert_int_equal(trigger_set_find(f->set, "two")->burst, 2);
	assert_int_equal(trigger_set_read(f->set, directories, "", &warn), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(trigger_set_read_every_key_is_taken),
		CASE(trigger_set_read_wrong_values_leave_the_defaults),
		CASE(trigger_set_read_keys_of_another_kind_are_dropped),
		CASE(trigger_set_read_an_empty_value_takes_back),
		CASE(trigger_set_read_a_built_in_name_changes_the_built_in_one),
		CASE(trigger_set_read_keys_of_conditions_are_taken),
		CASE(trigger_object_set_wrong_values_of_conditions_are_refused),
		CASE(trigger_set_read_keys_of_conditions_without_one_are_dropped),
		CASE(trigger_set_read_a_condition_that_lacks_a_key_is_disabled),
		CASE(trigger_set_copy_has_all_values),
		CASE(trigger_set_read_a_name_that_is_none_is_left_out),
		CASE(trigger_set_read_too_many_are_told),
		CASE(trigger_set_for_unit_prefers_files_in_their_order),
		CASE(trigger_set_for_unit_of_an_escaped_name_takes_backslashes_as_they_are),
		CASE(trigger_set_for_signal_goes_by_user),
		CASE(trigger_set_read_of_directories_takes_the_strongest_of_a_name),
	};

	return cmocka_run_group_tests_name("trigger_file", tests, NULL, NULL);
}
