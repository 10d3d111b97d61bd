/*
 * A reload: what changes at once, what is told to need a restart, and that the old configuration
 * stays as it was.
 */
#include "daemon/config/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/config/config_setting.h"
#include "daemon/config/trigger_set.h"
#include "tests/unit/daemon/scratch_dir.h"

struct fixture {
	char dir[SCRATCH_DIR_SIZE], path[SCRATCH_DIR_SIZE + 32];
	char option[SCRATCH_DIR_SIZE + 64];
	char *argv[4];
	struct config old, fresh;
	char told[4096], why[512];
};

static const char *const nowhere[] = {NULL};

static void on_line(void *userdata, const char *text)
{
	struct fixture *f = userdata;
	size_t used = strlen(f->told);

	if (strncmp(text, f->path, strlen(f->path)) == 0)
		text += strlen(f->dir) + 1;
	snprintf(f->told + used, sizeof(f->told) - used, "%s\n", text);
}

static void say(const struct fixture *f, const char *text)
{
	FILE *file = fopen(f->path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void begin(struct fixture *f, const char *text)
{
	struct config_warn warn = {.userdata = f, .line = on_line};

	say(f, text);
	assert_int_equal(config_parse(3, f->argv, &f->old, f->why, sizeof(f->why)), 0);
	assert_int_equal(config_read_files(&f->old, nowhere, &warn, f->why, sizeof(f->why)), 0);
	assert_string_equal(f->told, "");
}

static int again(struct fixture *f)
{
	struct config_warn warn = {.userdata = f, .line = on_line};

	return config_reload(&f->old, nowhere, &f->fresh, &warn, f->why, sizeof(f->why));
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	scratch_dir_make(f->dir);
	snprintf(f->path, sizeof(f->path), "%s/c", f->dir);
	snprintf(f->option, sizeof(f->option), "--config=%s", f->path);
	f->argv[0] = (char *)"ptsnapd";
	f->argv[1] = f->option;
	f->argv[2] = (char *)"--max-snapshots=9";
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	config_done(&f->old);
	config_done(&f->fresh);
	scratch_dir_remove(f->dir);
	free(f);
	return 0;
}

static void config_reload_takes_what_is_live(void **state)
{
	struct fixture *f = *state;

	begin(f, "[Service]\nMaxUse=2M\n");
	say(f,
	    "[Service]\nMaxUse=3M\nMaxSnapshots=5\nDecodeTimeout=7s\nDecodeMemoryMax=512M\nSourceLines=yes\n"
	    "[Limits]\nTriggerBurst=4\nTriggerInterval=3s\nUserBurst=6\nUserInterval=5s\n");
	assert_int_equal(again(f), 0);
	assert_string_equal(f->told, "");
	assert_int_equal(f->fresh.store_max_use, 3 << 20);
	assert_int_equal(f->fresh.store_max_entries, 9); /* from the command line, as before */
	assert_int_equal(f->fresh.decode_timeout_usec, 7000000);
	assert_int_equal(f->fresh.decode_memory, 512 << 20);
	assert_true(f->fresh.source_lines);
	assert_false(f->old.source_lines);
	assert_int_equal(f->fresh.trigger_burst, 4);
	assert_int_equal(f->fresh.user_interval_usec, 5000000);
	assert_int_equal(f->old.store_max_use, 2 << 20);
}

static void config_reload_keeps_and_names_what_is_not(void **state)
{
	struct fixture *f = *state;

	begin(f, "[Rings]\nRingSize=1M\nTimelineMax=5M\n[Trace]\nCPUs=0-3\nTerms=cyc\n");
	say(f, "[Rings]\nRingSize=2M\nTimelineMax=5M\n[Trace]\nTerms=cyc\nPreset=light\n"
	       "[Service]\nSocket=/s\n");
	assert_int_equal(again(f), 0);
	assert_string_equal(
		f->told,
		"CPUs=all (no longer 0-3) takes effect after a restart\n"
		"c:6: Preset=light takes effect after a restart (now: std; custom with --pt)\n"
		"c:2: RingSize=2M takes effect after a restart (now: 1M)\n"
		"c:8: Socket=/s takes effect after a restart (now: "
		"/run/ptsnap/io.ptsnap.recorder)\n");
	config_done(&f->old);
	memset(&f->old, 0, sizeof(f->old));
	/* The values in force, in memory of their own. */
	assert_int_equal(f->fresh.aux_size, 1 << 20);
	assert_string_equal(f->fresh.cpus, "0-3");
	assert_null(f->fresh.preset);
	assert_string_equal(f->fresh.pt_terms, "cyc");
	assert_string_equal(f->fresh.socket, "/run/ptsnap/io.ptsnap.recorder");
}

static void config_reload_of_lists_that_grow_takes_what_was_added(void **state)
{
	struct fixture *f = *state;

	begin(f, "[Access]\nExcludeUnits=a.service, b.service\n");
	say(f, "[Access]\nExcludeUnits=b.service c.service\nExcludeUsers=bob\n");
	assert_int_equal(again(f), 0);
	assert_string_equal(
		f->told,
		"ExcludeUnits=a.service is no longer said, which takes effect after a restart\n");
	assert_string_equal(f->fresh.exclude_units, "a.service, b.service,c.service");
	assert_string_equal(f->fresh.exclude_users, "bob");
	config_done(&f->old);
	f->old = f->fresh;
	memset(&f->fresh, 0, sizeof(f->fresh));
	*f->told = '\0';
	say(f, "");
	assert_int_equal(again(f), 0);
	assert_string_equal(f->fresh.exclude_users, "bob");
	assert_string_equal(f->fresh.exclude_units, "a.service, b.service,c.service");
	assert_non_null(strstr(f->told, "ExcludeUsers=bob is no longer said"));
}

static void config_reload_of_a_reload_compares_with_what_is_in_force(void **state)
{
	struct fixture *f = *state;

	begin(f, "[Rings]\nRingSize=1M\n");
	say(f, "[Rings]\nRingSize=2M\n");
	assert_int_equal(again(f), 0);
	config_done(&f->old);
	f->old = f->fresh;
	memset(&f->fresh, 0, sizeof(f->fresh));
	*f->told = '\0';
	say(f, "[Rings]\nRingSize=1M\n");
	assert_int_equal(again(f), 0);
	assert_string_equal(f->told, "");
	assert_int_equal(f->fresh.aux_size, 1 << 20);
}

static void config_reload_of_a_wrong_value_is_the_default(void **state)
{
	struct fixture *f = *state;

	begin(f, "[Service]\nMaxUse=2M\n");
	say(f, "[Service]\nMaxUse=much\nnonsense\n");
	assert_int_equal(again(f), 0);
	assert_int_equal(f->fresh.store_max_use, 1 << 30);
	assert_non_null(strstr(f->told, "c:2: MaxUse=much is not valid, ignored"));
	assert_non_null(strstr(f->told, "c:3: neither a [section]"));
}

static void config_reload_without_its_file_fails(void **state)
{
	struct fixture *f = *state;

	begin(f, "");
	assert_int_equal(remove(f->path), 0);
	assert_int_equal(again(f), -EINVAL);
	assert_non_null(strstr(f->why, "there is no such file"));
}

/* Messages name defaults, so an empty default needs words. */
static void config_settings_of_an_empty_default_say_it_in_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < config_n_settings; i++) {
		const struct config_setting *s = &config_settings[i];

		if (s->key && !*s->initial && !s->initially)
			fail_msg("%s has no words for its default", s->key);
	}
}

/* A setting that the recorder reads only once must not be marked as live. */
static void config_reload_live_settings_are_these(void **state)
{
	static const char *const live[] = {"MaxUse",	      "MaxSnapshots", "DecodeTimeout",
					   "DecodeMemoryMax", "SourceLines",  "TriggerBurst",
					   "TriggerInterval", "UserBurst",    "UserInterval"};
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < config_n_settings; i++)
		for (size_t k = 0; k < sizeof(live) / sizeof(live[0]); k++)
			if (config_settings[i].key &&
			    strcmp(config_settings[i].key, live[k]) == 0) {
				assert_true(config_settings[i].live);
				n++;
			}
	assert_int_equal(n, sizeof(live) / sizeof(live[0]));
	for (size_t i = 0; i < config_n_settings; i++)
		assert_true(config_settings[i].key || !config_settings[i].live);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(config_reload_takes_what_is_live),
		CASE(config_reload_keeps_and_names_what_is_not),
		CASE(config_reload_of_lists_that_grow_takes_what_was_added),
		CASE(config_reload_of_a_reload_compares_with_what_is_in_force),
		CASE(config_reload_of_a_wrong_value_is_the_default),
		CASE(config_reload_without_its_file_fails),
		cmocka_unit_test(config_settings_of_an_empty_default_say_it_in_words),
		cmocka_unit_test(config_reload_live_settings_are_these),
	};

	return cmocka_run_group_tests_name("config_reload", tests, NULL, NULL);
}
