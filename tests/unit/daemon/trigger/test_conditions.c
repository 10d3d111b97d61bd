/*
 * Triggers with conditions: adding, removing, reloading, storms, and the end of a trigger. The
 * recorder is ending, so that requests are counted and refused, and no snapshot begins.
 */
#include "daemon/trigger/trigger.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/log.h"
#include "proto/base.h"
#include "tests/unit/daemon/ring_source.h"
#include "tests/unit/daemon/scratch_dir.h"

struct fixture {
	char dir[SCRATCH_DIR_SIZE], fifo[SCRATCH_DIR_SIZE + 8], setting[SCRATCH_DIR_SIZE + 16];
	struct config config;
	sd_event *event;
	struct ring_source *source;
	struct trigger trigger;
	char why[CONDITION_WHY_SIZE];
	char told[4096];
};

static void on_line(void *userdata, int priority, const char *id, const struct log_fields *fields,
		    const char *text)
{
	struct fixture *f = userdata;
	size_t used = strlen(f->told);

	(void)priority;
	(void)id;
	(void)fields;
	snprintf(f->told + used, sizeof(f->told) - used, "%s\n", text);
}

static int setup(void **state)
{
	static char *const argv[] = {"ptsnapd", NULL};
	struct fixture *f = calloc(1, sizeof(*f));
	char why[512];

	scratch_dir_make(f->dir);
	snprintf(f->fifo, sizeof(f->fifo), "%s/fifo", f->dir);
	snprintf(f->setting, sizeof(f->setting), "FIFO=%s", f->fifo);
	assert_int_equal(mkfifo(f->fifo, 0600), 0);
	assert_int_equal(config_parse(1, argv, &f->config, why, sizeof(why)), 0);
	assert_true(sd_event_new(&f->event) >= 0);
	f->source = ring_source_new(1);
	assert_int_equal(
		trigger_init(&f->trigger, ring_source_base(f->source), NULL, NULL, &f->config), 0);
	assert_int_equal(trigger_arm(&f->trigger, f->event), 0);
	f->trigger.closed = true;
	log_listen(&(struct log_listener){on_line, f});
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	log_listen(NULL);
	trigger_done(&f->trigger);
	ring_source_free(f->source);
	sd_event_unref(f->event);
	scratch_dir_remove(f->dir);
	config_done(&f->config);
	free(f);
	return 0;
}

static int add(struct fixture *f, const char *name, const char *first, const char *second)
{
	const char *const settings[] = {first, second};

	return trigger_add(&f->trigger, name, settings, second ? 2 : 1, f->why);
}

/* The trigger of NAME as it is armed; NULL: it is not. */
static struct armed *armed_of(struct fixture *f, const char *name)
{
	for (size_t i = 0; i < TRIGGER_SET_MAX; i++)
		if (f->trigger.armed[i] &&
		    strcmp(armed_object(f->trigger.armed[i])->name, name) == 0)
			return f->trigger.armed[i];
	return NULL;
}

static size_t n_armed(const struct fixture *f)
{
	size_t n = 0;

	for (size_t i = 0; i < TRIGGER_SET_MAX; i++)
		n += f->trigger.armed[i] != NULL;
	return n;
}

static enum armed_state state_of(struct fixture *f, const char *name)
{
	struct armed_news news;

	assert_non_null(armed_of(f, name));
	armed_tell(armed_of(f, name), &news);
	return news.state;
}

static void write_fifo(struct fixture *f)
{
	int fd = open(f->fifo, O_WRONLY | O_NONBLOCK);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
}

/* Makes N events, one after the other. */
static void fire(struct fixture *f, unsigned n)
{
	for (uint64_t wanted = f->trigger.n + n; f->trigger.n < wanted;) {
		write_fifo(f);
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
	}
}

static void nothing_has_changed(struct fixture *f, size_t n)
{
	assert_int_equal(f->trigger.set->n, n);
	assert_int_equal(f->trigger.gate.n, n);
	assert_int_equal(n_armed(f), 0);
}

static void trigger_add_an_event_right_after_is_not_missed(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(add(f, "a", f->setting, "Reason=why"), 0);
	/* Before the loop runs. */
	write_fifo(f);
	assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
	assert_int_equal(f->trigger.n, 1);
	assert_non_null(strstr(f->told, "a program wrote to"));
}

static void trigger_add_wrong_settings_change_nothing(void **state)
{
	static const struct {
		const char *first, *second, *why;
	} bad[] = {
		{"Pressure=disk", NULL, "Pressure=disk is not valid; valid: cpu, memory or io"},
		{"Colour=red", NULL, "there is no setting Colour="},
		{"Pressure", NULL, "a setting is KEY=VALUE"},
		{"Reason=a\nb", NULL, "a setting is KEY=VALUE"},
		{"On=pressure", NULL, "On=pressure needs Pressure="},
		{"Pressure=cpu", "FIFO=/a", "FIFO=/a needs On=fifo"},
		{"Pressure=cpu", "PressureStall=3s", "is longer than PressureWindow="},
		{"On=kernel-log", NULL, "On=kernel-log needs KernelLog="},
		{"MetricFile=/a", "Metric=b", "needs either MetricAbove= or MetricBelow="},
		{"On=signal", NULL, "On=signal is for files"},
		{"On=exit", NULL, "On=exit is not valid"},
		{"PathAppears=/no/such/folder/a", NULL, "/no/such/folder: No such file"},
	};
	struct fixture *f = *state;
	size_t n = f->trigger.set->n;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_true(add(f, "a", bad[i].first, bad[i].second) < 0);
		assert_non_null(strstr(f->why, bad[i].why));
		nothing_has_changed(f, n);
	}
	assert_int_equal(add(f, "../a", "On=control", NULL), -EINVAL);
	assert_int_equal(add(f, "control", "On=control", NULL), -EEXIST);
	nothing_has_changed(f, n);
}

static void trigger_add_beyond_the_last_place_is_refused(void **state)
{
	struct fixture *f = *state;
	char name[16];

	for (int i = 0; f->trigger.set->n < TRIGGER_SET_MAX; i++) {
		snprintf(name, sizeof(name), "t%d", i);
		assert_int_equal(add(f, name, "On=control", NULL), 0);
	}
	assert_int_equal(add(f, "more", f->setting, NULL), -ENOSPC);
	nothing_has_changed(f, TRIGGER_SET_MAX);
}

static void trigger_remove_leaves_what_files_have(void **state)
{
	struct fixture *f = *state;
	size_t n = f->trigger.set->n;

	assert_int_equal(add(f, "a", f->setting, NULL), 0);
	assert_int_equal(trigger_remove(&f->trigger, "control"), -EPERM);
	assert_int_equal(trigger_remove(&f->trigger, "b"), -ENOENT);
	assert_int_equal(trigger_remove(&f->trigger, "a"), 0);
	nothing_has_changed(f, n);
	/* Nobody reads the FIFO any more. */
	assert_int_equal(open(f->fifo, O_WRONLY | O_NONBLOCK), -1);
	assert_int_equal(errno, ENXIO);
}

static void trigger_use_keeps_added_triggers_armed(void **state)
{
	struct fixture *f = *state;
	struct armed *was;

	assert_int_equal(add(f, "a", f->setting, "Label=x=y z"), 0);
	was = armed_of(f, "a");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(trigger_use(&f->trigger, &f->config), 0);
		assert_int_equal(trigger_arm(&f->trigger, f->event), 0);
	}
	assert_ptr_equal(armed_of(f, "a"), was);
	assert_int_equal(n_armed(f), 1);
	assert_string_equal(labels_get(&trigger_set_find(f->trigger.set, "a")->labels, "x"), "y z");
	fire(f, 1);
}

static void trigger_use_arms_what_files_changed(void **state)
{
	struct fixture *f = *state;
	struct trigger_object o;
	struct trigger_problem problem;

	trigger_object_init(&o, "filed", TRIGGER_ON_CONTROL, false);
	assert_int_equal(trigger_object_set(&o, TRIGGER_FIFO, f->fifo, 1), 0);
	assert_false(trigger_object_check(&o, &problem));
	assert_int_equal(trigger_set_add(f->config.triggers, &o), 0);
	assert_int_equal(trigger_use(&f->trigger, &f->config), 0);
	assert_int_equal(trigger_arm(&f->trigger, f->event), 0);
	assert_int_equal(state_of(f, "filed"), ARMED_WATCHING);
	assert_int_equal(trigger_object_set(trigger_set_find(f->config.triggers, "filed"),
					    TRIGGER_ENABLED, "no", 1),
			 0);
	assert_int_equal(trigger_use(&f->trigger, &f->config), 0);
	assert_int_equal(trigger_arm(&f->trigger, f->event), 0);
	assert_null(armed_of(f, "filed"));
}

static void trigger_arm_what_cannot_be_armed_is_told_and_tried_again(void **state)
{
	struct fixture *f = *state;
	struct trigger_object o;

	f->trigger.arming.broken_usec = 1;
	assert_int_equal(unlink(f->fifo), 0);
	trigger_object_init(&o, "filed", TRIGGER_ON_FIFO, false);
	assert_int_equal(trigger_object_set(&o, TRIGGER_FIFO, f->fifo, 1), 0);
	assert_int_equal(trigger_set_add(f->config.triggers, &o), 0);
	assert_int_equal(trigger_use(&f->trigger, &f->config), 0);
	assert_int_equal(trigger_arm(&f->trigger, f->event), 0);
	assert_int_equal(state_of(f, "filed"), ARMED_BROKEN);
	assert_non_null(strstr(f->told, "trigger filed: cannot be armed: "));
	assert_int_equal(mkfifo(f->fifo, 0600), 0);
	while (state_of(f, "filed") == ARMED_BROKEN)
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
	assert_non_null(strstr(f->told, "trigger filed: armed again"));
}

static void armed_with_too_many_events_rests_says_so_and_comes_back(void **state)
{
	struct fixture *f = *state;

	f->trigger.arming.rest_usec = 1;
	assert_int_equal(add(f, "a", f->setting, NULL), 0);
	while (state_of(f, "a") == ARMED_WATCHING)
		fire(f, 1);
	assert_int_equal(state_of(f, "a"), ARMED_RESTING);
	assert_true(f->trigger.n >= ARMED_STORM_BURST);
	assert_non_null(strstr(f->told, "trigger a: disabled for 0 s: more than 20 events in 2 s"));
	while (state_of(f, "a") == ARMED_RESTING)
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
	assert_non_null(strstr(f->told, "trigger a: armed again"));
	fire(f, 1);
}

static void trigger_end_conditions_disarms_what_is_over(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(add(f, "a", f->setting, "Count=2"), 0);
	gate_find(&f->trigger.gate, "a")->fired = 1;
	trigger_end_conditions(&f->trigger);
	assert_int_equal(state_of(f, "a"), ARMED_WATCHING);
	gate_find(&f->trigger.gate, "a")->fired = 2;
	trigger_end_conditions(&f->trigger);
	assert_int_equal(state_of(f, "a"), ARMED_OVER);
}

/* The third event within an hour; the second three begin anew. */
static void armed_with_events_fires_at_each_nth(void **state)
{
	static const unsigned fired[] = {0, 0, 1, 1, 1, 2, 2};
	const char *settings[3];
	struct fixture *f = *state;
	struct armed_news news = {0};

	settings[0] = f->setting;
	settings[1] = "Events=3";
	settings[2] = "EventsWithin=1h";
	assert_int_equal(trigger_add(&f->trigger, "a", settings, 3, f->why), 0);
	for (size_t i = 0; i < ARRAY_SIZE(fired); i++) {
		write_fifo(f);
		while (news.n_events <= i) {
			assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
			armed_tell(armed_of(f, "a"), &news);
		}
		assert_int_equal(f->trigger.n, fired[i]);
	}
}

/* More than a microsecond of work lies between two events. */
static void armed_with_events_forgets_those_before_the_span(void **state)
{
	const char *settings[3];
	struct fixture *f = *state;
	struct armed_news news = {0};

	settings[0] = f->setting;
	settings[1] = "Events=2";
	settings[2] = "EventsWithin=1us";
	assert_int_equal(trigger_add(&f->trigger, "a", settings, 3, f->why), 0);
	for (size_t i = 0; i < 5; i++) {
		write_fifo(f);
		while (news.n_events <= i) {
			assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
			armed_tell(armed_of(f, "a"), &news);
		}
	}
	assert_int_equal(f->trigger.n, 0);
}

/* More snapshots are wanted now than when the trigger ended. */
static void trigger_arm_after_a_reload_that_lets_it_go_on_arms_again(void **state)
{
	struct fixture *f = *state;
	struct trigger_object o;

	trigger_object_init(&o, "filed", TRIGGER_ON_FIFO, false);
	assert_int_equal(trigger_object_set(&o, TRIGGER_FIFO, f->fifo, 1), 0);
	assert_int_equal(trigger_object_set(&o, TRIGGER_COUNT, "1", 1), 0);
	assert_int_equal(trigger_set_add(f->config.triggers, &o), 0);
	assert_int_equal(trigger_use(&f->trigger, &f->config), 0);
	assert_int_equal(trigger_arm(&f->trigger, f->event), 0);
	gate_find(&f->trigger.gate, "filed")->fired = 1;
	trigger_end_conditions(&f->trigger);
	assert_int_equal(state_of(f, "filed"), ARMED_OVER);
	assert_int_equal(trigger_use(&f->trigger, &f->config), 0);
	assert_int_equal(trigger_arm(&f->trigger, f->event), 0);
	assert_null(armed_of(f, "filed"));
	assert_int_equal(trigger_object_set(trigger_set_find(f->config.triggers, "filed"),
					    TRIGGER_COUNT, "2", 1),
			 0);
	assert_int_equal(trigger_use(&f->trigger, &f->config), 0);
	assert_int_equal(trigger_arm(&f->trigger, f->event), 0);
	assert_int_equal(state_of(f, "filed"), ARMED_WATCHING);
}

/* What on_tested() heard. */
struct heard {
	int n;
	char name[ENTRY_NAME_SIZE];
};

static void on_tested(void *userdata, const char *name, int r, const struct trigger_answer *answer)
{
	struct heard *h = userdata;

	assert_int_equal(r, TRIGGER_CLOSED);
	assert_string_equal(answer->why, "the recorder ends");
	snprintf(h->name, sizeof(h->name), "%s", name);
	h->n++;
}

static void trigger_test_tells_the_event_it_made(void **state)
{
	struct fixture *f = *state;
	struct heard heard = {0};

	f->trigger.on_tested = (struct trigger_tested){&heard, on_tested};
	assert_int_equal(add(f, "a", f->setting, NULL), 0);
	assert_int_equal(trigger_test(&f->trigger, "control", f->why), -EOPNOTSUPP);
	assert_int_equal(trigger_test(&f->trigger, "b", f->why), TRIGGER_UNKNOWN);
	fire(f, 1);
	assert_int_equal(heard.n, 0);
	assert_int_equal(trigger_test(&f->trigger, "a", f->why), 0);
	while (heard.n == 0)
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
	assert_string_equal(heard.name, "a");
}

static void trigger_list_to_json_has_settings_and_state(void **state)
{
	struct fixture *f = *state;
	struct json_object *list, *one;

	assert_int_equal(add(f, "a", f->setting, "Count=2"), 0);
	list = trigger_list_to_json(&f->trigger);
	one = json_object_array_get_idx(list, json_object_array_length(list) - 1);
	assert_string_equal(json_object_get_string(json_object_object_get(one, "name")), "a");
	assert_string_equal(json_object_get_string(json_object_object_get(one, "on")), "fifo");
	assert_string_equal(json_object_get_string(json_object_object_get(one, "state")), "armed");
	assert_true(json_object_get_boolean(json_object_object_get(one, "runtime")));
	one = json_object_object_get(one, "settings");
	assert_int_equal(json_object_array_length(one), 2);
	assert_string_equal(json_object_get_string(json_object_array_get_idx(one, 0)), "Count=2");
	json_object_put(list);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(trigger_add_an_event_right_after_is_not_missed),
		CASE(trigger_add_wrong_settings_change_nothing),
		CASE(trigger_add_beyond_the_last_place_is_refused),
		CASE(trigger_remove_leaves_what_files_have),
		CASE(trigger_use_keeps_added_triggers_armed),
		CASE(trigger_use_arms_what_files_changed),
		CASE(trigger_arm_what_cannot_be_armed_is_told_and_tried_again),
		CASE(armed_with_too_many_events_rests_says_so_and_comes_back),
		CASE(trigger_end_conditions_disarms_what_is_over),
		CASE(trigger_arm_after_a_reload_that_lets_it_go_on_arms_again),
		CASE(armed_with_events_fires_at_each_nth),
		CASE(armed_with_events_forgets_those_before_the_span),
		CASE(trigger_test_tells_the_event_it_made),
		CASE(trigger_list_to_json_has_settings_and_state),
	};

	return cmocka_run_group_tests_name("conditions", tests, NULL, NULL);
}
