/*
 * Reports for one user are made once, remembered, and made one at a time; a failure is an answer,
 * too.
 */
#include "daemon/job/remake.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/memfd.h"
#include "tests/unit/daemon/job/debug_directory.h"
#include "tests/unit/daemon/scratch_dir.h"

#define BOOT "abcdef01-2345-6789-abcd-ef0123456789"

struct setting {
	char dir[SCRATCH_DIR_SIZE], program[PATH_MAX];
	struct config config;
	struct store *store;
	sd_event *event;
	struct remake *remake;
	/* The arguments of the last call of on_done, and the number of calls. */
	char id[ENTRY_ID_SIZE];
	uid_t uid;
	unsigned n_done;
};

static void on_done(void *userdata, const char *id, uid_t uid)
{
	struct setting *s = userdata;

	strcpy(s->id, id);
	s->uid = uid;
	s->n_done++;
}

/* The fake decoder is beside this program. */
static void find_fake(char *ret)
{
	ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 32);

	assert_true(n > 0);
	ret[n] = '\0';
	strcpy(strrchr(ret, '/') + 1, "fake_decoder");
}

static int setup(void **state)
{
	const struct store_limits limits = {1u << 30, 100, 100};
	struct setting *s = calloc(1, sizeof(*s));
	const struct remake_handler handler = {s, on_done};
	char why[512];

	scratch_dir_make(s->dir);
	find_fake(s->program);
	s->config.worker = s->program;
	s->config.decode_timeout_usec = 60000000;
	assert_int_equal(store_new(s->dir, &limits, &s->store, why, sizeof(why)), 0);
	assert_true(sd_event_new(&s->event) >= 0);
	assert_int_equal(remake_new(s->event, &s->config, s->store, &handler, &s->remake), 0);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct setting *s = *state;

	remake_free(s->remake);
	sd_event_unref(s->event);
	store_free(s->store);
	scratch_dir_remove(s->dir);
	free(s);
	return 0;
}

/* Adds a snapshot whose bundle is BEHAVIOUR; NULL: a snapshot without a bundle. */
static const struct entry *snapshot(struct setting *s, const char *behaviour)
{
	const struct entry *found = NULL;
	struct entry e;
	int fd = -EBADF;

	entry_init(&e);
	store_new_id(s->store, 1000000, BOOT, e.id);
	assert_int_equal(store_add(s->store, &e), 0);
	e.state = ENTRY_DONE;
	if (behaviour) {
		assert_int_equal(memfd_new("bundle", 0, &fd), 0);
		assert_int_equal(memfd_write_all(fd, behaviour, strlen(behaviour)), 0);
		assert_int_equal(memfd_seal(fd), 0);
	}
	store_end(s->store, &e, fd, -EBADF);
	assert_int_equal(store_find(s->store, e.id, &found), 0);
	return found;
}

/* Runs the loop until on_done was called N times. */
static void run_until(struct setting *s, unsigned n)
{
	while (s->n_done < n)
		assert_true(sd_event_run(s->event, UINT64_MAX) >= 0);
}

/* Expects the remembered report for UID to be TEXT, with a descriptor that cannot be written to. */
static void assert_report(struct setting *s, const char *id, uid_t uid, const char *text)
{
	CLEANUP_CLOSE int fd = -EBADF;
	uint64_t size = 0;
	char got[32] = "";

	assert_int_equal(remake_find(s->remake, id, uid, &fd, &size), 0);
	assert_int_equal(size, strlen(text));
	assert_int_equal(pread(fd, got, sizeof(got), 0), strlen(text));
	assert_string_equal(got, text);
	assert_true(write(fd, "x", 1) < 0);
}

static void assert_none(struct setting *s, const char *id, uid_t uid)
{
	uint64_t size;
	int fd;

	assert_int_equal(remake_find(s->remake, id, uid, &fd, &size), -ENOENT);
}

static void remake_begin_with_source_lines_asks_for_them(void **state)
{
	struct setting *s = *state;
	const struct entry *e = snapshot(s, "lines lines");

	assert_int_equal(remake_begin(s->remake, e, 1001), 0);
	run_until(s, 1);
	assert_report(s, e->id, 1001, "none");
	s->config.source_lines = true;
	assert_int_equal(remake_begin(s->remake, e, 1002), 0);
	run_until(s, 2);
	assert_report(s, e->id, 1002, "lines");
	/* An attempt without names has no source lines. */
	e = snapshot(s, "crash lines");
	assert_int_equal(remake_begin(s->remake, e, 1001), 0);
	run_until(s, 3);
	assert_report(s, e->id, 1001, "none");
}

static void remake_begin_with_a_debug_directory_hands_over_its_files(void **state)
{
	struct setting *s = *state;
	const struct entry *e = snapshot(s, "named none");
	char dir[64];

	make_debug_directory(dir);
	s->config.debug_directory = dir;
	assert_int_equal(remake_begin(s->remake, e, 1001), 0);
	run_until(s, 1);
	assert_report(s, e->id, 1001, "named");
	remove_debug_directory(dir);
}

static void remake_begin_makes_it_for_that_uid_and_remembers_it(void **state)
{
	struct setting *s = *state;
	const struct entry *e = snapshot(s, "uid");

	assert_none(s, e->id, 1001);
	assert_int_equal(remake_begin(s->remake, e, 1001), 0);
	assert_true(remake_is_running(s->remake));
	/* A second request meanwhile is the same one. */
	assert_int_equal(remake_begin(s->remake, e, 1001), 0);
	run_until(s, 1);
	assert_string_equal(s->id, e->id);
	assert_int_equal(s->uid, 1001);
	assert_false(remake_is_running(s->remake));
	assert_report(s, e->id, 1001, "1001");
	assert_report(s, e->id, 1001, "1001");
	assert_none(s, e->id, 1002);
	assert_none(s, "another", 1001);
}

static void remake_begin_lets_users_wait_and_each_of_them_once(void **state)
{
	struct setting *s = *state;
	char first[ENTRY_ID_SIZE], second[ENTRY_ID_SIZE];
	const struct entry *e = snapshot(s, "uid");

	strcpy(first, e->id);
	strcpy(second, snapshot(s, "uid")->id);
	assert_int_equal(store_find(s->store, first, &e), 0);
	assert_int_equal(remake_begin(s->remake, e, 1), 0);
	assert_int_equal(remake_begin(s->remake, e, 2), 0);
	assert_int_equal(store_find(s->store, second, &e), 0);
	assert_int_equal(remake_begin(s->remake, e, 1), -EBUSY);
	assert_int_equal(remake_begin(s->remake, e, 3), 0);
	run_until(s, 3);
	assert_report(s, first, 1, "1");
	assert_report(s, first, 2, "2");
	assert_report(s, second, 3, "3");
	assert_int_equal(remake_begin(s->remake, e, 1), 0);
	run_until(s, 4);
	assert_report(s, second, 1, "1");
}

static void remake_begin_of_too_many_is_busy(void **state)
{
	struct setting *s = *state;
	const struct entry *e = snapshot(s, "uid");
	uid_t n = 0;

	while (n < 1000 && remake_begin(s->remake, e, n) == 0)
		n++;
	assert_in_range(n, 2, 100);
	assert_int_equal(remake_begin(s->remake, e, n), -EBUSY);
	run_until(s, n);
	for (uid_t uid = 0; uid < n; uid++) {
		char text[16];

		snprintf(text, sizeof(text), "%u", (unsigned)uid);
		assert_report(s, e->id, uid, text);
	}
}

static void remake_remembers_so_many_and_the_last_used_ones(void **state)
{
	struct setting *s = *state;
	const struct entry *e = snapshot(s, "uid");

	for (uid_t uid = 0; uid < 40; uid++) {
		assert_int_equal(remake_begin(s->remake, e, uid), 0);
		run_until(s, uid + 1);
		assert_report(s, e->id, 0, "0");
	}
	assert_none(s, e->id, 1);
	assert_report(s, e->id, 39, "39");
}

static void remake_of_a_decoder_that_fails_is_told_and_not_remembered(void **state)
{
	static const char *const bad[] = {"crash", "exit", "lie", "nothing", "flood", "memory"};
	struct setting *s = *state;

	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct entry *e = snapshot(s, bad[i]);

		assert_int_equal(remake_begin(s->remake, e, 1001), 0);
		run_until(s, i + 1);
		assert_none(s, e->id, 1001);
		/* The report may be asked for again. */
		assert_false(remake_is_running(s->remake));
	}
}

static void remake_of_a_decoder_that_fails_at_names_does_without(void **state)
{
	struct setting *s = *state;
	const struct entry *e = snapshot(s, "crash uid");

	assert_int_equal(remake_begin(s->remake, e, 1001), 0);
	run_until(s, 1);
	assert_report(s, e->id, 1001, "1001");
}

static void remake_begin_without_a_bundle_is_no_such(void **state)
{
	struct setting *s = *state;

	assert_int_equal(remake_begin(s->remake, snapshot(s, NULL), 1001), -ENOENT);
	assert_false(remake_is_running(s->remake));
	assert_int_equal(s->n_done, 0);
}

static void remake_free_ends_what_is_being_made(void **state)
{
	struct setting *s = *state;
	const struct entry *e = snapshot(s, "hang");

	assert_int_equal(remake_begin(s->remake, e, 1001), 0);
	assert_int_equal(remake_begin(s->remake, e, 1002), 0);
	remake_free(s->remake);
	s->remake = NULL;
	assert_int_equal(s->n_done, 0);
}

#define REMAKE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REMAKE_TEST(remake_begin_makes_it_for_that_uid_and_remembers_it),
		REMAKE_TEST(remake_begin_with_source_lines_asks_for_them),
		REMAKE_TEST(remake_begin_with_a_debug_directory_hands_over_its_files),
		REMAKE_TEST(remake_begin_lets_users_wait_and_each_of_them_once),
		REMAKE_TEST(remake_begin_of_too_many_is_busy),
		REMAKE_TEST(remake_remembers_so_many_and_the_last_used_ones),
		REMAKE_TEST(remake_of_a_decoder_that_fails_is_told_and_not_remembered),
		REMAKE_TEST(remake_of_a_decoder_that_fails_at_names_does_without),
		REMAKE_TEST(remake_begin_without_a_bundle_is_no_such),
		REMAKE_TEST(remake_free_ends_what_is_being_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
