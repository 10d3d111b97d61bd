#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "decoder/hot/crew.h"
#include "proto/base.h"

/* Each waits for all the others: they have to be different threads. */
static void meet(void *userdata)
{
	pthread_barrier_wait(userdata);
}

static void add_one(void *userdata)
{
	__atomic_add_fetch((uint32_t *)userdata, 1, __ATOMIC_RELAXED);
}

static void crew_start_runs_all_at_once(void **state)
{
	struct crew_thread *threads[4];
	pthread_barrier_t barrier;
	struct crew *crew;

	(void)state;
	assert_int_equal(crew_new(4, &crew), 0);
	assert_int_equal(crew_idle(crew), 4);
	pthread_barrier_init(&barrier, NULL, 5);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		threads[i] = crew_start(crew, meet, &barrier);
		assert_non_null(threads[i]);
	}
	assert_int_equal(crew_idle(crew), 0);
	assert_null(crew_start(crew, meet, &barrier));
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		crew_finish(threads[i]);
	assert_int_equal(crew_idle(crew), 4);
	pthread_barrier_destroy(&barrier);
	crew_free(crew);
}

static void crew_finish_lets_it_have_more_work(void **state)
{
	struct crew_thread *t;
	struct crew *crew;
	uint32_t n = 0;

	(void)state;
	assert_int_equal(crew_new(1, &crew), 0);
	for (uint32_t i = 0; i < 1000; i++) {
		t = crew_start(crew, add_one, &n);
		assert_non_null(t);
		crew_finish(t);
		assert_int_equal(n, i + 1);
	}
	crew_free(crew);
}

static void crew_of_nobody_does_nothing(void **state)
{
	struct crew *crew;
	uint32_t n = 0;

	(void)state;
	assert_int_equal(crew_new(0, &crew), 0);
	assert_int_equal(crew_idle(crew), 0);
	assert_null(crew_start(crew, add_one, &n));
	crew_free(crew);
	crew_free(NULL);
	assert_int_equal(n, 0);
}

static void crew_new_of_too_many_has_fewer(void **state)
{
	struct crew *crew;

	(void)state;
	assert_int_equal(crew_new(UINT32_MAX, &crew), 0);
	assert_in_range(crew_idle(crew), 1, CREW_MAX_THREADS);
	crew_free(crew);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crew_start_runs_all_at_once),
		cmocka_unit_test(crew_finish_lets_it_have_more_work),
		cmocka_unit_test(crew_of_nobody_does_nothing),
		cmocka_unit_test(crew_new_of_too_many_has_fewer),
	};

	return cmocka_run_group_tests_name("crew", tests, NULL, NULL);
}
