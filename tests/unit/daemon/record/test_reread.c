/*
 * A sweep over a made-up /proc: what is told, what changed meanwhile, and when a sweep begins.
 */
#include "daemon/record/reread.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/bundle/manifest.h"
#include "tests/unit/capture/tree.h"

/* Looks for a thread's answer; a test that waits so often fails. */
#define MOST_LOOKS 10000

struct fixture {
	char *root;
	struct reread *reread;
	char told[4096]; /* "PID@TIME PATH;" for each mapping */
	uint64_t now;
};

static void put_process(const char *root, unsigned int pid, const char *file)
{
	char name[64], text[256];

	snprintf(name, sizeof(name), "%u/stat", pid);
	snprintf(text, sizeof(text),
		 "%u (x) S 1 1 1 0 -1 4194560 9 0 0 0 5 6 -7 0 20 0 1 0 250 170000 100\n", pid);
	tree_write(root, name, text);
	snprintf(name, sizeof(name), "%u/task/%u/comm", pid, pid);
	tree_write(root, name, "x\n");
	snprintf(name, sizeof(name), "%u/maps", pid);
	snprintf(text, sizeof(text), "1000-2000 r-xp 00000000 fe:01 12 %s\n", file);
	tree_write(root, name, text);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->root = tree_new();
	f->now = 100;
	put_process(f->root, 7, "/a");
	put_process(f->root, 8, "/b");
	tree_write(f->root, "uptime", "1 1\n");
	assert_int_equal(reread_new(f->root, &f->reread), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	reread_free(f->reread);
	tree_free(f->root);
	free(f);
	return 0;
}

static int on_record(void *userdata, const void *record, size_t size)
{
	struct fixture *f = userdata;
	struct perfrecord r;
	size_t n = strlen(f->told);

	assert_int_equal(perfrecord_parse(record, size, &r), 0);
	/* As the intake does with each mapping. */
	if (r.type == PERF_RECORD_MMAP2)
		reread_changed(f->reread, r.u.mmap2.pid, r.time);
	if (r.type == PERF_RECORD_MMAP2)
		snprintf(f->told + n, sizeof(f->told) - n, "%u@%llu %s;", r.u.mmap2.pid,
			 (unsigned long long)r.time, r.u.mmap2.filename);
	return 0;
}

/* Waits until something was read. False: nothing is. */
static bool await(struct fixture *f)
{
	for (int i = 0; i < MOST_LOOKS; i++) {
		if (reread_take(f->reread))
			return true;
		usleep(1000);
	}
	return false;
}

/* Asks at the fixture's time, and gives all that is read, until N processes were told. */
static void sweep(struct fixture *f, uint64_t n)
{
	struct reread_stats stats;

	reread_ask(f->reread, f->now);
	do {
		assert_true(await(f));
		reread_give(f->reread, f->now, on_record, f);
		reread_get_stats(f->reread, &stats);
	} while (stats.told < n);
	assert_int_equal(stats.told, n);
}

static void reread_ask_without_a_loss_reads_nothing(void **state)
{
	struct fixture *f = *state;
	struct reread_stats stats;

	reread_ask(f->reread, f->now);
	assert_false(reread_take(f->reread));
	reread_get_stats(f->reread, &stats);
	assert_int_equal(stats.sweeps, 0);
}

static void reread_ask_after_a_loss_tells_all_processes(void **state)
{
	struct fixture *f = *state;
	struct reread_stats stats;

	reread_lost(f->reread);
	sweep(f, 2);
	assert_non_null(strstr(f->told, "7@100 /a;"));
	assert_non_null(strstr(f->told, "8@100 /b;"));
	reread_get_stats(f->reread, &stats);
	assert_int_equal(stats.sweeps, 1);
	assert_int_equal(stats.failed, 0);
}

static void reread_ask_without_a_clock_waits(void **state)
{
	struct fixture *f = *state;
	struct reread_stats stats;

	reread_lost(f->reread);
	reread_ask(f->reread, MANIFEST_ABSENT);
	reread_get_stats(f->reread, &stats);
	assert_int_equal(stats.sweeps, 0);
	sweep(f, 2);
}

/* The answer may have a mapping that was not there yet at the time of the question. */
static void reread_give_of_a_process_that_changed_asks_again(void **state)
{
	struct fixture *f = *state;

	reread_lost(f->reread);
	reread_ask(f->reread, f->now);
	reread_changed(f->reread, 7, f->now - 1); /* before the question: known */
	reread_changed(f->reread, 8, f->now);
	f->now = 200;
	sweep(f, 2);
	assert_non_null(strstr(f->told, "7@100 /a;"));
	assert_non_null(strstr(f->told, "8@200 /b;"));
	assert_null(strstr(f->told, "8@100"));
}

static void reread_give_of_a_process_that_never_holds_still_gives_up(void **state)
{
	struct fixture *f = *state;
	struct reread_stats stats = {0};

	reread_lost(f->reread);
	reread_ask(f->reread, f->now);
	while (stats.told + stats.failed < 2) {
		reread_changed(f->reread, 8, f->now);
		assert_true(await(f));
		reread_give(f->reread, ++f->now, on_record, f);
		reread_get_stats(f->reread, &stats);
	}
	assert_int_equal(stats.told, 1);
	assert_int_equal(stats.failed, 1);
	assert_null(strstr(f->told, "/b"));
}

/* The recorder may end while a thread still reads, or with answers that nobody took. */
static void reread_free_in_a_sweep_frees_all(void **state)
{
	struct fixture *f = *state;

	for (unsigned int pid = 100; pid < 140; pid++)
		put_process(f->root, pid, "/many");
	reread_lost(f->reread);
	reread_ask(f->reread, f->now);
	assert_true(await(f));
}

/* More processes than are asked for at once; one of them is gone. */
static void reread_ask_goes_on_until_all_were_read(void **state)
{
	struct fixture *f = *state;
	struct reread_stats stats;

	for (unsigned int pid = 100; pid < 140; pid++)
		put_process(f->root, pid, "/many");
	tree_write(f->root, "141/maps", "no process any more");
	reread_lost(f->reread);
	do {
		reread_ask(f->reread, f->now);
		assert_true(await(f));
		reread_give(f->reread, f->now, on_record, f);
		reread_get_stats(f->reread, &stats);
	} while (stats.told < 42);
	assert_int_equal(stats.failed, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(reread_ask_without_a_loss_reads_nothing),
		CASE(reread_ask_after_a_loss_tells_all_processes),
		CASE(reread_ask_without_a_clock_waits),
		CASE(reread_give_of_a_process_that_changed_asks_again),
		CASE(reread_give_of_a_process_that_never_holds_still_gives_up),
		CASE(reread_free_in_a_sweep_frees_all),
		CASE(reread_ask_goes_on_until_all_were_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
