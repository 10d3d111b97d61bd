/*
 * The pool of sideband/timeline: blocks do not overlap, can be reused, and stay within the limit.
 */
#include "sideband/timeline/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"

static const size_t sizes[] = {0,   1,	 16,   17,   48,   255,	 256,  257,
			       512, 513, 1024, 1025, 2048, 2049, 5000, 70000};

static void get_gives_zeroed_aligned_blocks_of_their_own(void **state)
{
	uint8_t *blocks[ARRAY_SIZE(sizes)][20];
	struct pool p;

	(void)state;
	pool_init(&p, SIZE_MAX);
	for (size_t k = 0; k < 20; k++)
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			uint8_t *b = blocks[i][k] = pool_get(&p, sizes[i]);

			assert_non_null(b);
			assert_int_equal((uintptr_t)b % 16, 0);
			for (size_t at = 0; at < sizes[i]; at++)
				assert_int_equal(b[at], 0);
			memset(b, (int)(i + 20 * k), sizes[i]);
		}
	for (size_t k = 0; k < 20; k++)
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			for (size_t at = 0; at < sizes[i]; at++)
				assert_int_equal(blocks[i][k][at], (uint8_t)(i + 20 * k));
			pool_put(&p, blocks[i][k], sizes[i]);
		}
	assert_int_equal(p.used, 0);
	pool_done(&p);
}

static void get_after_put_takes_nothing_from_malloc(void **state)
{
	struct pool p;
	size_t taken = 0;

	(void)state;
	pool_init(&p, SIZE_MAX);
	for (int round = 0; round < 5; round++) {
		void *blocks[ARRAY_SIZE(sizes)];

		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			blocks[i] = pool_get(&p, sizes[i]);
		assert_true(round == 0 || p.taken == taken);
		taken = p.taken;
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			pool_put(&p, blocks[i], sizes[i]);
		assert_true(p.taken == taken);
	}
	pool_done(&p);
}

static size_t fill(struct pool *p, size_t size, void **list)
{
	size_t n = 0;

	for (void **b; (b = pool_get(p, size)); n++) {
		*b = *list;
		*list = b;
	}
	return n;
}

static void empty(struct pool *p, size_t size, void **list)
{
	for (void **b; (b = *list);) {
		*list = *b;
		pool_put(p, b, size);
	}
}

/* A full pool whose blocks were put back has as much room for blocks of another size. */
static void get_at_the_limit_reuses_what_other_sizes_gave_back(void **state)
{
	static const size_t small[] = {160, 16, 96, 1024, 256, 48};
	size_t first[ARRAY_SIZE(small)] = {0};
	struct pool p;

	(void)state;
	pool_init(&p, 256 << 10);
	for (size_t round = 0; round < 3; round++)
		for (size_t i = 0; i < ARRAY_SIZE(small); i++) {
			void *list = NULL;
			size_t n = fill(&p, small[i], &list);

			assert_true(p.exceeded);
			assert_true(p.taken <= p.limit);
			assert_true(n * small[i] > 100 << 10);
			assert_true(round == 0 || n == first[i]);
			first[i] = n;
			empty(&p, small[i], &list);
		}
	pool_done(&p);
}

/* Small blocks that fill the pool leave room for a large block, and large blocks for small ones. */
static void get_of_large_blocks_has_its_share(void **state)
{
	struct pool p;
	void *small = NULL, *large = NULL;

	(void)state;
	pool_init(&p, 256 << 10);
	assert_true(fill(&p, 96, &small) > 1000);
	assert_true(fill(&p, 5000, &large) >= 4);
	empty(&p, 5000, &large);
	assert_true(fill(&p, 20000, &large) >= 1);
	assert_true(p.taken <= p.limit);
	empty(&p, 20000, &large);
	empty(&p, 96, &small);
	pool_done(&p);
	pool_init(&p, 256 << 10);
	assert_true(fill(&p, 30000, &large) >= 7);
	empty(&p, 30000, &large);
	assert_true(fill(&p, 96, &small) > 1000);
	assert_true(p.taken <= p.limit);
	pool_done(&p);
}

static void get_of_impossible_sizes_is_refused(void **state)
{
	struct pool p;

	(void)state;
	pool_init(&p, SIZE_MAX);
	assert_null(pool_get(&p, SIZE_MAX));
	assert_true(p.exceeded);
	pool_put(&p, NULL, 7);
	pool_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get_gives_zeroed_aligned_blocks_of_their_own),
		cmocka_unit_test(get_after_put_takes_nothing_from_malloc),
		cmocka_unit_test(get_at_the_limit_reuses_what_other_sizes_gave_back),
		cmocka_unit_test(get_of_large_blocks_has_its_share),
		cmocka_unit_test(get_of_impossible_sizes_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
