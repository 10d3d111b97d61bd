/*
 * capture/ring/recqueue: entries come out whole and in order, wherever the end of the queue falls,
 * and nothing is ever written outside the queue.
 */
#include "capture/ring/recqueue.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/perf/perfrecord.h"

#define SIZE  RECQUEUE_MIN_BYTES
#define ENTRY 8u /* the header of an entry */

struct fixture {
	struct recqueue q;
	uint64_t put, taken;
	uint32_t seed;
	uint8_t bytes[PERFRECORD_MAX_SIZE];
};

static int set_up(void **state)
{
	struct fixture *f = aligned_alloc(_Alignof(struct fixture), sizeof(*f));

	assert_non_null(f);
	*f = (struct fixture){.seed = 1};
	assert_int_equal(recqueue_init(&f->q, SIZE), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	recqueue_done(&f->q);
	free(f);
	return 0;
}

/* Puts a record of SIZE bytes, which begins with its number; the other bytes are alike. */
static bool put(struct fixture *f, size_t size)
{
	memset(f->bytes, (int)(f->put & 0xff), size);
	memcpy(f->bytes, &f->put, sizeof(f->put));
	if (!recqueue_put(&f->q, (uint32_t)f->put * 3, f->bytes, size))
		return false;
	f->put++;
	return true;
}

static bool take(struct fixture *f, size_t *ret_size)
{
	const uint8_t *bytes;
	const void *record;
	uint32_t index;
	uint64_t number;

	if (recqueue_peek(&f->q, &index, &record, ret_size) == RECQUEUE_EMPTY)
		return false;
	bytes = record;
	assert_true(bytes >= f->q.bytes && bytes + *ret_size <= f->q.bytes + f->q.size);
	memcpy(&number, bytes, sizeof(number));
	assert_int_equal(number, f->taken);
	assert_int_equal(index, (uint32_t)f->taken * 3);
	for (size_t i = sizeof(number); i < *ret_size; i++)
		assert_int_equal(bytes[i], f->taken & 0xff);
	recqueue_consume(&f->q);
	f->taken++;
	return true;
}

static size_t random_size(struct fixture *f, size_t limit)
{
	f->seed = f->seed * 1664525u + 1013904223u;
	return 8 + (f->seed >> 8) % (limit / 8) * 8;
}

static void recqueue_init_odd_size_is_refused(void **state)
{
	struct recqueue q;

	(void)state;
	assert_int_equal(recqueue_init(&q, 0), -EINVAL);
	assert_int_equal(recqueue_init(&q, SIZE / 2), -EINVAL);
	assert_int_equal(recqueue_init(&q, SIZE + 8), -EINVAL);
	assert_int_equal(recqueue_init(&q, 1ull << 63), -ENOMEM);
}

static void recqueue_put_until_full_uses_every_byte(void **state)
{
	struct fixture *f = *state;
	size_t size;

	for (unsigned i = 0; i < SIZE / 64; i++)
		assert_true(put(f, 64 - ENTRY));
	assert_int_equal(recqueue_used(&f->q), SIZE);
	assert_false(put(f, 8));
	assert_true(take(f, &size));
	assert_false(put(f, 64));
	assert_true(put(f, 64 - ENTRY));
	assert_int_equal(recqueue_most(&f->q), SIZE);
	while (take(f, &size))
		assert_int_equal(size, 64 - ENTRY);
	assert_int_equal(f->taken, f->put);
	assert_int_equal(recqueue_used(&f->q), 0);
}

/* The last record before the end leaves each possible rest: 0, 8, 16, ... bytes. */
static void recqueue_put_any_rest_before_the_end_keeps_records_whole(void **state)
{
	struct fixture *f = *state;
	size_t size;

	for (unsigned rest = 0; rest <= 256; rest += 8) {
		/* The queue is empty. Fills it from its first byte to REST bytes before the end. */
		for (unsigned i = 0; i < SIZE / 1024 - 1; i++)
			assert_true(put(f, 1024 - ENTRY));
		assert_true(put(f, 1024 - rest - ENTRY));
		assert_int_equal(recqueue_used(&f->q), SIZE - rest);
		assert_true(take(f, &size));
		assert_true(put(f, 256));
		assert_true(put(f, 8));
		while (take(f, &size))
			;
		assert_int_equal(f->taken, f->put);
	}
}

static void recqueue_put_records_of_all_sizes_come_in_order(void **state)
{
	struct fixture *f = *state;
	size_t size;

	for (int i = 0; i < 20000; i++) {
		if (random_size(f, 256) < 128 || !put(f, random_size(f, i % 50 ? 512 : 65528)))
			take(f, &size);
		assert_true(recqueue_used(&f->q) <= SIZE);
	}
	while (take(f, &size))
		;
	assert_int_equal(f->taken, f->put);
}

static void recqueue_put_into_an_empty_queue_begins_at_the_first_byte(void **state)
{
	struct fixture *f = *state;
	uint32_t index;
	const void *record;
	size_t size;

	assert_true(put(f, 64) && put(f, 64));
	assert_true(take(f, &size));
	assert_true(put(f, 64)); /* the queue is not empty, so the record goes behind the others */
	assert_true(take(f, &size) && take(f, &size));
	assert_true(put(f, 64));
	assert_int_equal(recqueue_peek(&f->q, &index, &record, &size), 0);
	assert_ptr_equal(record, f->q.bytes + ENTRY);
	assert_true(take(f, &size));
	assert_false(take(f, &size));
}

#define RECORDS 200000u

static void *put_all(void *userdata)
{
	struct fixture *f = userdata;

	while (f->put < RECORDS)
		if (!put(f, random_size(f, 512)))
			sched_yield();
	return NULL;
}

static void recqueue_two_threads_every_record_comes_once(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;
	size_t size;

	assert_int_equal(pthread_create(&thread, NULL, put_all, f), 0);
	while (f->taken < RECORDS)
		if (!take(f, &size))
			sched_yield();
	pthread_join(thread, NULL);
	assert_int_equal(recqueue_used(&f->q), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		cmocka_unit_test(recqueue_init_odd_size_is_refused),
		CASE(recqueue_put_until_full_uses_every_byte),
		CASE(recqueue_put_any_rest_before_the_end_keeps_records_whole),
		CASE(recqueue_put_records_of_all_sizes_come_in_order),
		CASE(recqueue_put_into_an_empty_queue_begins_at_the_first_byte),
		CASE(recqueue_two_threads_every_record_comes_once),
	};

	return cmocka_run_group_tests_name("capture/recqueue", tests, NULL, NULL);
}
