/*
 * Spaces: what is mapped where and when, against examples and against a slow, obvious oracle.
 */
#include "sideband/timeline/space.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sideband/timeline/timeline_private.h"

static const struct space_file file_a = {.index = 0, .ino = 1, .path = "/a"};
static const struct space_file file_b = {.index = 1, .ino = 2, .path = "/b"};

static void map(struct space *s, uint64_t time, uint64_t start, uint64_t size,
		const struct space_file *file)
{
	assert_int_equal(space_map(s, time, start, size, start, 5, 2, file), 0);
}

static const struct space_file *file_at(const struct space *s, uint64_t time, uint64_t address)
{
	const struct space_mapping *m = space_find(s, time, address);

	return m ? m->file : NULL;
}

static void find_in_empty_space_gives_none(void **state)
{
	struct space *s = space_new(true);

	(void)state;
	assert_null(space_find(s, SPACE_NOW, 0));
	assert_null(space_find(s, 0, UINT64_MAX));
	assert_int_equal(space_generation(s, SPACE_NOW), 0);
	space_free(s);
}

static void find_holds_from_begin_and_within_bounds(void **state)
{
	struct space *s = space_new(true);
	const struct space_mapping *m;

	(void)state;
	map(s, 10, 0x1000, 0x1000, &file_a);
	assert_null(space_find(s, 9, 0x1000));
	assert_null(space_find(s, 10, 0xfff));
	assert_null(space_find(s, 10, 0x2000));
	m = space_find(s, 10, 0x1fff);
	assert_non_null(m);
	assert_int_equal(m->start, 0x1000);
	assert_int_equal(m->size, 0x1000);
	assert_int_equal(m->begin, 10);
	assert_true(m->end == SPACE_NOW);
	space_free(s);
}

/* A mapping in the middle of another leaves both ends with the right file offsets. */
static void map_in_the_middle_leaves_both_ends(void **state)
{
	(void)state;
	for (int history = 0; history < 2; history++) {
		struct space *s = space_new(history);
		const struct space_mapping *m;

		map(s, 1, 0x1000, 0x9000, &file_a);
		map(s, 2, 0x4000, 0x1000, &file_b);
		assert_ptr_equal(file_at(s, SPACE_NOW, 0x3fff), &file_a);
		assert_ptr_equal(file_at(s, SPACE_NOW, 0x4000), &file_b);
		m = space_find(s, SPACE_NOW, 0x5000);
		assert_ptr_equal(m->file, &file_a);
		assert_int_equal(m->start, 0x5000);
		assert_int_equal(m->size, 0x5000);
		assert_int_equal(m->pgoff, 0x5000);
		m = space_find(s, 1, 0x4800);
		if (history) {
			assert_ptr_equal(m->file, &file_a);
			assert_int_equal(m->pgoff - m->start, 0);
			assert_int_equal(m->end, 2);
		} else {
			assert_null(m);
		}
		space_free(s);
	}
}

static void map_of_equal_content_changes_nothing(void **state)
{
	struct space_file scanned = {.ino = 1, .path = "/a"};
	struct space_file recorded = {.ino = 1, .ino_generation = 7, .path = "/a"};
	struct space_file by_id = {.build_id_size = 2, .build_id = {1, 2}, .path = "/a"};
	struct space_file other = {.ino = 3, .path = "/a"};
	struct space *s = space_new(true);

	(void)state;
	map(s, 0, 0x1000, 0x1000, &scanned);
	map(s, 5, 0x1000, 0x1000, &recorded);
	map(s, 6, 0x1000, 0x1000, &by_id);
	assert_int_equal(space_generation(s, SPACE_NOW), 1);
	assert_int_equal(space_find(s, 6, 0x1000)->begin, 0);
	map(s, 7, 0x1000, 0x1000, &other);
	assert_int_equal(space_generation(s, 6), 1);
	assert_int_equal(space_generation(s, 7), 2);
	space_free(s);
}

/* The same bytes, which the process may have written to since. */
static void map_of_equal_content_that_was_writable_begins_anew(void **state)
{
	struct space *s = space_new(true);

	(void)state;
	map(s, 1, 0x1000, 0x1000, &file_a);
	assert_int_equal(space_map(s, 5, 0x1000, 0x1000, 0x1000, 7, 2, &file_a), 0);
	assert_int_equal(space_generation(s, SPACE_NOW), 2);
	assert_int_equal(space_find(s, 4, 0x1000)->prot, 5);
	assert_int_equal(space_find(s, 5, 0x1000)->prot, 7);
	assert_int_equal(space_find(s, 5, 0x1000)->begin, 5);
	/* It stays so, whatever is said later. */
	map(s, 6, 0x1000, 0x1000, &file_a);
	assert_int_equal(space_map(s, 7, 0x1000, 0x1000, 0x1000, 7, 2, &file_a), 0);
	assert_int_equal(space_generation(s, SPACE_NOW), 2);
	assert_int_equal(space_find(s, SPACE_NOW, 0x1000)->prot, 7);
	space_free(s);
}

static void shows_only_where_all_bytes_are_mapped(void **state)
{
	struct space *s = space_new(true);

	(void)state;
	map(s, 1, 0x1000, 0x3000, &file_a);
	map(s, 2, 0x4000, 0x1000, &file_a);
	map(s, 3, 0x6000, 0x1000, &file_b);
	assert_true(space_shows(s, 0x1000, 0x3000, 0x1000, &file_a));
	assert_true(space_shows(s, 0x2000, 0x3000, 0x2000, &file_a));
	assert_false(space_shows(s, 0x2000, 0x1000, 0x3000, &file_a)); /* other bytes */
	assert_false(space_shows(s, 0x2000, 0x1000, 0x2000, &file_b)); /* of another file */
	assert_false(space_shows(s, 0x4000, 0x2000, 0x4000, &file_a)); /* a hole */
	assert_false(space_shows(s, 0x800, 0x1000, 0x800, &file_a));
	assert_false(space_shows(s, 0x6800, 0x1000, 0x6800, &file_b));
	assert_false(space_shows(s, 0x1000, 0, 0x1000, &file_a));
	assert_false(space_shows(s, UINT64_MAX - 5, 0x1000, 0, &file_a));
	space_free(s);
}

static void map_that_is_older_does_not_undo_a_newer_one(void **state)
{
	struct space *s = space_new(false);

	(void)state;
	map(s, 5, 0x1000, 0x1000, &file_a);
	map(s, 0, 0x1800, 0x1000, &file_b);
	assert_ptr_equal(file_at(s, SPACE_NOW, 0x1800), &file_a);
	map(s, 0, 0x8000, 0x1000, &file_b);
	assert_ptr_equal(file_at(s, SPACE_NOW, 0x8000), &file_b);
	space_free(s);
}

static void map_at_the_end_of_memory_is_clipped(void **state)
{
	struct space *s = space_new(true);

	(void)state;
	map(s, 1, UINT64_MAX - 0xfff, UINT64_MAX, &file_a);
	assert_ptr_equal(file_at(s, 1, UINT64_MAX - 1), &file_a);
	map(s, 2, 0, UINT64_MAX, &file_b);
	assert_ptr_equal(file_at(s, 2, UINT64_MAX - 1), &file_b);
	assert_ptr_equal(file_at(s, 1, UINT64_MAX - 1), &file_a);
	assert_null(file_at(s, 1, 0));
	map(s, 3, 0x1000, 0, &file_a);
	assert_int_equal(space_generation(s, 3), 2);
	space_free(s);
}

static void map_beyond_the_kernels_limit_is_refused(void **state)
{
	struct space *s = space_new(false);
	int r = 0;

	(void)state;
	for (uint64_t i = 0; i < 70000 && r == 0; i++)
		r = space_map(s, 1, i * 0x2000, 0x1000, 0, 5, 2, &file_a);
	assert_int_equal(r, -E2BIG);
	assert_ptr_equal(file_at(s, SPACE_NOW, 0x2000), &file_a);
	space_free(s);
}

static void fork_copies_what_was_there_at_that_time(void **state)
{
	struct space *s = space_new(true), *child;

	(void)state;
	map(s, 1, 0x1000, 0x3000, &file_a);
	map(s, 5, 0x2000, 0x1000, &file_b);
	child = space_fork(s, 3);
	assert_int_not_equal(space_id(s), space_id(child));
	assert_ptr_equal(file_at(child, 3, 0x2000), &file_a);
	assert_null(file_at(child, 2, 0x2000));
	assert_int_equal(space_find(child, 9, 0x1000)->begin, 3);
	assert_int_equal(space_generation(child, SPACE_NOW), 0);
	map(child, 7, 0x1000, 0x1000, &file_b);
	assert_ptr_equal(file_at(s, 7, 0x1000), &file_a);
	space_free(s);
	assert_ptr_equal(file_at(child, 7, 0x1000), &file_b);
	space_free(child);
}

struct listed {
	size_t n;
	uint64_t starts[8];
};

static int list(void *userdata, const struct space_mapping *m)
{
	struct listed *l = userdata;

	assert_in_range(l->n, 0, 7);
	l->starts[l->n++] = m->start;
	return l->n == 3 ? 42 : 0;
}

static void foreach_goes_by_address_until_told_to_stop(void **state)
{
	struct space *s = space_new(true);
	struct listed l = {0};

	(void)state;
	map(s, 1, 0x5000, 0x1000, &file_a);
	map(s, 2, 0x1000, 0x1000, &file_a);
	assert_int_equal(space_foreach(s, 2, list, &l), 0);
	assert_int_equal(l.n, 2);
	assert_int_equal(l.starts[0], 0x1000);
	assert_int_equal(l.starts[1], 0x5000);
	l.n = 0;
	assert_int_equal(space_foreach(s, 1, list, &l), 0);
	assert_int_equal(l.n, 1);
	map(s, 3, 0x9000, 0x1000, &file_a);
	l.n = 0;
	assert_int_equal(space_foreach(s, 3, list, &l), 42);
	space_free(s);
}

/* --- Against an oracle: the newest mapping made so far that contains the address --- */

#define PAGES 64u
#define STEPS 600u

struct made {
	uint64_t start, size, pgoff;
	const struct space_file *file;
};

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

static int one(void *userdata, const struct space_mapping *m)
{
	(void)userdata;
	(void)m;
	return 1;
}

static void compare(const struct space *s, const struct made *made, size_t n, uint64_t time)
{
	assert_int_equal(space_is_mapped(s, time), space_foreach(s, time, one, NULL));
	for (uint64_t page = 0; page < PAGES; page++) {
		const struct space_mapping *m = space_find(s, time, page);
		const struct made *expected = NULL;

		for (size_t i = 0; i < n && i + 1 <= time; i++)
			if (page - made[i].start < made[i].size)
				expected = &made[i];
		assert_int_equal(!m, !expected);
		if (!m)
			continue;
		assert_ptr_equal(m->file, expected->file);
		assert_int_equal(page - m->start + m->pgoff,
				 page - expected->start + expected->pgoff);
		assert_true(page >= m->start && page - m->start < m->size);
		assert_true(m->begin <= time && time < m->end);
	}
}

static void find_at_any_time_agrees_with_a_replay(void **state)
{
	struct made made[STEPS];
	uint64_t seed = 1;

	(void)state;
	for (unsigned round = 0; round < 4; round++) {
		struct space *s = space_new(true), *now = space_new(false);

		for (size_t i = 0; i < STEPS; i++) {
			struct made *m = &made[i];
			uint64_t few = round % 2 ? 4 : PAGES;

			m->start = next_random(&seed) % few;
			m->size = 1 + next_random(&seed) % (round < 2 ? 4 : PAGES - m->start);
			m->pgoff = 100 * i;
			m->file = i % 2 ? &file_a : &file_b;
			assert_int_equal(
				space_map(s, i + 1, m->start, m->size, m->pgoff, 5, 2, m->file), 0);
			assert_int_equal(
				space_map(now, i + 1, m->start, m->size, m->pgoff, 5, 2, m->file),
				0);
			if (i % 50 == 0)
				compare(now, made, i + 1, i + 1);
		}
		for (uint64_t time = 0; time <= STEPS; time += 7)
			compare(s, made, STEPS, time);
		assert_int_equal(space_generation(s, 17), 17);
		space_free(s);
		space_free(now);
	}
}

/* A plug-in is loaded again and again: without jumps the searches would take 10^10 steps. */
static void find_below_many_layers_is_fast(void **state)
{
	struct space *s = space_new(true);

	(void)state;
	for (uint64_t i = 0; i < 100000; i++)
		assert_int_equal(space_map(s, i + 1, 0x1000, 0x1000, i << 12, 5, 2, &file_a), 0);
	for (uint64_t i = 0; i < 100000; i++)
		assert_int_equal(space_find(s, i + 1, 0x1800)->pgoff, i << 12);
	space_free(s);
}

/* The mappings of a copy begin when the copy is made. */
static void is_mapped_from_the_first_on(void **state)
{
	struct space *s = space_new(true), *copy, *empty;

	(void)state;
	assert_false(space_is_mapped(s, UINT64_MAX - 1));
	empty = space_fork(s, 2);
	map(s, 3, 0x9000, 0x1000, &file_a);
	assert_false(space_is_mapped(s, 2));
	assert_true(space_is_mapped(s, 3));
	copy = space_fork(s, 5);
	assert_false(space_is_mapped(copy, 4));
	assert_true(space_is_mapped(copy, 5));
	assert_false(space_is_mapped(empty, 5));
	space_free(s);
	space_free(copy);
	space_free(empty);
}

static const struct space_file a_file = {.path = "/a"}, b_file = {.path = "/b"};

static const char *path_of(const struct space *s, uint64_t address)
{
	const struct space_mapping *m = space_find(s, SPACE_NOW, address);

	return m ? m->file->path : "";
}

static int map_at(struct space *s, uint64_t time, uint64_t start, const struct space_file *file)
{
	return space_map(s, time, start, 0x1000, 0, 5, 2, file);
}

/* Three spaces share their mappings until each has its own. All memory is given back. */
static void fork_without_history_shares_until_one_changes(void **state)
{
	struct space *s, *child, *grandchild;
	struct pool pool;
	size_t used;

	(void)state;
	pool_init(&pool, SIZE_MAX);
	s = space_new_in(&pool, false);
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(map_at(s, 1 + i, 0x1000 * i, &a_file), 0);
	used = pool.used;
	child = space_fork_in(&pool, s, 30);
	grandchild = space_fork_in(&pool, child, 31);
	assert_true(pool.used - used < 1024);
	assert_int_equal(map_at(child, 40, 0x3000, &b_file), 0);
	assert_string_equal(path_of(s, 0x3000), "/a");
	assert_string_equal(path_of(child, 0x3000), "/b");
	assert_string_equal(path_of(child, 0x13000), "/a");
	assert_string_equal(path_of(grandchild, 0x3000), "/a");
	space_free(s);
	assert_int_equal(map_at(grandchild, 50, 0x4000, &b_file), 0);
	assert_string_equal(path_of(grandchild, 0x4000), "/b");
	assert_string_equal(path_of(child, 0x4000), "/a");
	assert_int_equal(space_n_mappings(grandchild), 20);
	space_free(child);
	assert_string_equal(path_of(grandchild, 0x5000), "/a");
	space_free(grandchild);
	assert_int_equal(pool.used, 0);
	pool_done(&pool);
}

/* The child does not get a mapping that is newer than the fork, though its record came before that
 * of the fork, from another CPU. */
static void fork_without_history_leaves_out_what_came_later(void **state)
{
	struct space *s, *child;
	struct pool pool;

	(void)state;
	pool_init(&pool, SIZE_MAX);
	s = space_new_in(&pool, false);
	map_at(s, 10, 0x1000, &a_file);
	map_at(s, 30, 0x2000, &b_file);
	child = space_fork_in(&pool, s, 20);
	assert_string_equal(path_of(child, 0x1000), "/a");
	assert_string_equal(path_of(child, 0x2000), "");
	space_free(s);
	space_free(child);
	assert_int_equal(pool.used, 0);
	pool_done(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find_in_empty_space_gives_none),
		cmocka_unit_test(find_holds_from_begin_and_within_bounds),
		cmocka_unit_test(map_in_the_middle_leaves_both_ends),
		cmocka_unit_test(map_of_equal_content_changes_nothing),
		cmocka_unit_test(map_of_equal_content_that_was_writable_begins_anew),
		cmocka_unit_test(shows_only_where_all_bytes_are_mapped),
		cmocka_unit_test(map_that_is_older_does_not_undo_a_newer_one),
		cmocka_unit_test(map_at_the_end_of_memory_is_clipped),
		cmocka_unit_test(map_beyond_the_kernels_limit_is_refused),
		cmocka_unit_test(fork_copies_what_was_there_at_that_time),
		cmocka_unit_test(foreach_goes_by_address_until_told_to_stop),
		cmocka_unit_test(find_at_any_time_agrees_with_a_replay),
		cmocka_unit_test(find_below_many_layers_is_fast),
		cmocka_unit_test(is_mapped_from_the_first_on),
		cmocka_unit_test(fork_without_history_shares_until_one_changes),
		cmocka_unit_test(fork_without_history_leaves_out_what_came_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
