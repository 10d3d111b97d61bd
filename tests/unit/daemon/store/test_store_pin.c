/*
 * Pinned snapshots: what eviction, deletion, restarts and limits do to them.
 */
#include "daemon/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/unit/daemon/store/store_fixture.h"

/* The largest size of ID.entry, which counts for the quota. */
#define ENTRY_FILE 500

static int pin(struct store *s, const struct entry *e)
{
	struct store_pins pins;

	return store_pin(s, e->id, true, &pins);
}

static int unpin(struct store *s, const struct entry *e)
{
	return store_pin(s, e->id, false, NULL);
}

static bool is_there(const struct store *s, const struct entry *e)
{
	const struct entry *found;

	return store_find(s, e->id, &found) == 0;
}

static bool is_pinned(const struct store *s, const struct entry *e)
{
	const struct entry *found;

	assert_int_equal(store_find(s, e->id, &found), 0);
	return found->pinned;
}

static void store_pin_stays_when_others_go(void **state)
{
	CLEANUP(store_freep) struct store *s = open_store(10000, 100);
	struct entry a = complete(s, 100, 3000), b = complete(s, 200, 1000);

	(void)state;
	assert_int_equal(pin(s, &a), 0);
	for (uint64_t i = 0; i < 20; i++)
		complete(s, 300 + i, 2000);
	assert_true(is_there(s, &a));
	assert_false(is_there(s, &b));
	assert_true(store_use(s) <= 10000);
	assert_int_equal(unpin(s, &a), 0);
	complete(s, 400, 3000);
	assert_false(is_there(s, &a));
}

static void store_pin_stays_beyond_the_number_of_snapshots(void **state)
{
	CLEANUP(store_freep) struct store *s = open_store(1 << 20, 4);
	const struct store_limits one = {1 << 20, 1, 2};
	struct entry a = complete(s, 100, 10);

	(void)state;
	assert_int_equal(pin(s, &a), 0);
	for (uint64_t i = 0; i < 10; i++)
		complete(s, 200 + i, 10);
	assert_int_equal(store_count(s), 4);
	assert_true(is_there(s, &a));
	/* If only one snapshot may be listed, the newest one is listed besides the pinned one. */
	store_use_limits(s, &one);
	assert_int_equal(store_count(s), 1);
	complete(s, 300, 10);
	complete(s, 400, 10);
	assert_int_equal(store_count(s), 2);
	assert_true(is_there(s, &a));
}

static void store_pin_is_refused_to_what_has_not_ended_or_is_in_memory(void **state)
{
	CLEANUP(store_freep) struct store *s = open_store(1 << 20, 10);
	struct entry running = begin(s, 100), memory = begin(s, 200), none = running;

	(void)state;
	assert_int_equal(pin(s, &running), -EBUSY);
	memory.state = ENTRY_DONE;
	store_end(s, &memory, memory_of('x', 100), -EBADF);
	assert_int_equal(pin(s, &memory), -ENODATA);
	assert_int_equal(unpin(s, &memory), 0);
	strcpy(none.id, "none");
	assert_int_equal(pin(s, &none), -ENOENT);
	assert_int_equal(unpin(s, &none), -ENOENT);
	assert_int_equal(scratch_dir_count(dir), 1); /* the directory "images" */
}

static void store_pin_of_more_than_half_is_refused_and_says_how_much(void **state)
{
	CLEANUP(store_freep) struct store *s = open_store(30000, 100);
	struct entry a = complete(s, 100, 8000), b = complete(s, 200, 7500),
		     c = complete(s, 300, 6000);
	struct store_pins pins;

	(void)state;
	assert_int_equal(pin(s, &a), 0);
	assert_int_equal(pin(s, &a), 0);
	assert_int_equal(store_pin(s, b.id, true, &pins), -EDQUOT);
	assert_in_range(pins.bytes, 15500, 15500 + 2 * ENTRY_FILE);
	assert_int_equal(pins.max_bytes, 15000);
	assert_false(is_pinned(s, &b));
	assert_int_equal(pin(s, &c), 0);
	store_get_pins(s, &pins);
	assert_in_range(pins.bytes, 14000, 14000 + 2 * ENTRY_FILE);
	assert_int_equal(pins.n, 2);
	assert_int_equal(unpin(s, &a), 0);
	assert_int_equal(pin(s, &b), 0);
}

static void store_pin_of_more_than_half_of_the_snapshots_is_refused(void **state)
{
	CLEANUP(store_freep) struct store *s = open_store(1 << 20, 4);
	struct entry e[3] = {complete(s, 100, 1), complete(s, 200, 1), complete(s, 300, 1)};
	struct store_pins pins;

	(void)state;
	assert_int_equal(pin(s, &e[0]), 0);
	assert_int_equal(pin(s, &e[1]), 0);
	assert_int_equal(store_pin(s, e[2].id, true, &pins), -EDQUOT);
	assert_int_equal(pins.n, 3);
	assert_int_equal(pins.max_n, 2);
}

static void store_pin_counts_images_once(void **state)
{
	CLEANUP(store_freep) struct store *s = open_store(20000, 100);
	struct entry a = complete(s, 100, 1000), b = complete(s, 200, 1000),
		     c = complete(s, 300, 1000);
	struct store_pins pins;

	(void)state;
	keep_image(s, &a, 5, 'i', 6000, NULL);
	keep_image(s, &b, 5, 'i', 6000, NULL);
	keep_image(s, &c, 6, 'i', 6000, NULL);
	assert_int_equal(pin(s, &a), 0);
	assert_int_equal(pin(s, &b), 0);
	store_get_pins(s, &pins);
	assert_in_range(pins.bytes, 8000, 8000 + 2 * ENTRY_FILE);
	assert_int_equal(store_pin(s, c.id, true, &pins), -EDQUOT);
	assert_in_range(pins.bytes, 15000, 15000 + 3 * ENTRY_FILE);
}

static void store_make_room_beside_pinned_ones_keeps_the_quota(void **state)
{
	CLEANUP(store_freep) struct store *s = open_store(10000, 100);
	const struct store_limits less = {6000, 100, 2};
	struct entry a = complete(s, 100, 4000), next;

	(void)state;
	assert_int_equal(pin(s, &a), 0);
	next = begin(s, 200);
	assert_int_equal(store_make_room(s, next.id, 6000), -EFBIG);
	assert_int_equal(store_make_room(s, next.id, 6000 - ENTRY_FILE), 0);
	/* A pinned snapshot stays when the limits become smaller. */
	store_use_limits(s, &less);
	assert_true(is_there(s, &a));
	next = begin(s, 300);
	assert_int_equal(store_make_room(s, next.id, 2000), -EFBIG);
}

static void store_delete_of_a_pinned_one_is_refused(void **state)
{
	CLEANUP(store_freep) struct store *s = open_store(1 << 20, 10);
	struct entry a = complete(s, 100, 10);

	(void)state;
	assert_int_equal(pin(s, &a), 0);
	assert_int_equal(store_delete(s, a.id), -EPERM);
	assert_true(is_there(s, &a));
	assert_int_equal(unpin(s, &a), 0);
	assert_int_equal(store_delete(s, a.id), 0);
	assert_int_equal(scratch_dir_count(dir), 1); /* the directory "images" */
}

static void store_new_knows_what_a_former_run_had_pinned(void **state)
{
	struct store *s = open_store(10000, 100);
	struct entry a = complete(s, 100, 3000), b = complete(s, 200, 3000);

	(void)state;
	assert_int_equal(pin(s, &a), 0);
	assert_int_equal(pin(s, &b), -EDQUOT);
	store_free(s);
	s = open_store(3000, 100); /* removes the others */
	assert_true(is_pinned(s, &a));
	assert_false(is_there(s, &b));
	assert_int_equal(unpin(s, &a), 0);
	store_free(s);
	s = open_store(10000, 100);
	assert_false(is_pinned(s, &a));
	store_free(s);
}

/* The job has its own copy of the entry, which knows nothing of the pin. */
static void store_end_keeps_a_pin(void **state)
{
	struct store *s = open_store(1 << 20, 100);
	struct entry a = complete(s, 100, 10);

	(void)state;
	assert_int_equal(pin(s, &a), 0);
	assert_int_equal(store_file_put_entry(store_dir_fd(s), &a), 0);
	store_end(s, &a, -EBADF, -EBADF);
	assert_true(is_pinned(s, &a));
	store_free(s);
	s = open_store(1 << 20, 100);
	assert_true(is_pinned(s, &a));
	store_free(s);
}

static void store_new_removes_a_pin_of_nothing(void **state)
{
	struct store *s = open_store(1 << 20, 10);
	int fd = openat(store_dir_fd(s), "00000000003-abcd-1.pinned", O_CREAT | O_WRONLY, 0600);

	(void)state;
	close(fd);
	store_free(s);
	s = open_store(1 << 20, 10);
	assert_int_equal(store_count(s), 0);
	assert_int_equal(scratch_dir_count(dir), 1); /* the directory "images" */
	store_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		CASE(store_pin_stays_when_others_go),
		CASE(store_pin_stays_beyond_the_number_of_snapshots),
		CASE(store_pin_is_refused_to_what_has_not_ended_or_is_in_memory),
		CASE(store_pin_of_more_than_half_is_refused_and_says_how_much),
		CASE(store_pin_of_more_than_half_of_the_snapshots_is_refused),
		CASE(store_pin_counts_images_once),
		CASE(store_make_room_beside_pinned_ones_keeps_the_quota),
		CASE(store_delete_of_a_pinned_one_is_refused),
		CASE(store_new_knows_what_a_former_run_had_pinned),
		CASE(store_end_keeps_a_pin),
		CASE(store_new_removes_a_pin_of_nothing),
	};

	return cmocka_run_group_tests_name("daemon/store_pin", tests, NULL, NULL);
}
