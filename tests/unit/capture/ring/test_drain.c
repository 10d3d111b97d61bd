/*
 * capture/ring/drain: every record of every ring comes out once, whole and in its ring's order,
 * whatever happens to the queue, the list of rings and the two threads.
 */
#include "capture/ring/drain.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/unit/capture/data_ring.h"

#define QUEUE	  (1u << 20)
#define MAX_RINGS 8

struct fixture {
	struct drain *d;
	struct data_ring rings[MAX_RINGS];
	uint64_t seen[MAX_RINGS]; /* records that came out, by index */
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(drain_new(QUEUE, 1000, &f->d), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	drain_free(f->d);
	for (int i = 0; i < MAX_RINGS; i++)
		data_ring_done(&f->rings[i]);
	free(f);
	return 0;
}

static void add(struct fixture *f, uint32_t index, uint64_t size, int fd)
{
	data_ring_init(&f->rings[index], size);
	assert_int_equal(drain_add(f->d, index, &f->rings[index].ring, fd), 0);
}

/* Takes at most LIMIT records. Each must be the next record of its ring. */
static uint64_t take(struct fixture *f, uint64_t limit)
{
	const void *record;
	uint32_t index;
	uint64_t n = 0;
	size_t size;

	while (n < limit && drain_peek(f->d, &index, &record, &size) == 0) {
		assert_true(index < MAX_RINGS);
		assert_true(data_ring_is(record, size, f->seen[index]));
		f->seen[index]++;
		drain_consume(f->d);
		n++;
	}
	return n;
}

static void take_all(struct fixture *f)
{
	while (drain_flush(f->d) == DRAIN_FULL)
		take(f, UINT64_MAX);
	take(f, UINT64_MAX);
}

/* Sleeps until something is in the queue. */
static void wait_ready(struct fixture *f)
{
	struct pollfd p = {.fd = drain_fd(f->d), .events = POLLIN};

	assert_int_equal(poll(&p, 1, -1), 1);
}

static bool is_ready(struct fixture *f)
{
	struct pollfd p = {.fd = drain_fd(f->d), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static struct drain_stats stats(struct fixture *f)
{
	struct drain_stats s;

	drain_get_stats(f->d, &s);
	return s;
}

static void drain_new_odd_size_is_refused(void **state)
{
	struct drain *d;

	(void)state;
	assert_int_equal(drain_new(QUEUE + 4096, 1000, &d), -EINVAL);
	assert_int_equal(drain_new(QUEUE / 2, 1000, &d), -EINVAL);
	assert_int_equal(drain_new(0, 1000, &d), -EINVAL);
}

static void drain_peek_without_records_is_empty(void **state)
{
	struct fixture *f = *state;
	const void *record;
	uint32_t index;
	size_t size;

	assert_int_equal(drain_flush(f->d), 0);
	assert_int_equal(drain_peek(f->d, &index, &record, &size), DRAIN_EMPTY);
	add(f, 0, 4096, 0);
	assert_int_equal(drain_flush(f->d), 0);
	assert_int_equal(drain_peek(f->d, &index, &record, &size), DRAIN_EMPTY);
	assert_false(is_ready(f));
}

static void drain_fd_is_readable_while_records_wait(void **state)
{
	struct fixture *f = *state;

	add(f, 0, 4096, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(data_ring_fill(&f->rings[0], 2), 2);
		assert_int_equal(drain_flush(f->d), 0);
		assert_true(is_ready(f));
		assert_int_equal(take(f, 1), 1);
		assert_true(is_ready(f));
		assert_int_equal(take(f, 2), 1);
		assert_false(is_ready(f));
	}
}

/* The records go around a small ring, and around the queue, many times. */
static void drain_flush_records_that_wrap_come_whole(void **state)
{
	struct fixture *f = *state;

	add(f, 0, 4096, 0);
	while (f->rings[0].next < 40000) {
		assert_true(data_ring_fill(&f->rings[0], UINT64_MAX) > 0);
		assert_int_equal(drain_flush(f->d), 0);
		/* The queue is never empty, so it does not start again at its beginning. */
		take(f, f->rings[0].next - f->seen[0] - 1);
	}
	take_all(f);
	assert_int_equal(f->seen[0], f->rings[0].next);
}

static void drain_flush_full_queue_goes_on_after_records_were_taken(void **state)
{
	struct fixture *f = *state;
	int n_full = 0;

	for (uint32_t i = 0; i < 3; i++) {
		add(f, i, 2 * QUEUE, 0);
		data_ring_fill(&f->rings[i], UINT64_MAX);
	}
	while (drain_flush(f->d) == DRAIN_FULL) {
		n_full++;
		assert_true(stats(f).queue_used <= QUEUE);
		assert_true(take(f, UINT64_MAX) > 0);
	}
	take(f, UINT64_MAX);
	assert_true(n_full >= 1);
	assert_true(stats(f).stalls >= 1);
	assert_true(stats(f).queue_most > QUEUE - 512);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(f->seen[i], f->rings[i].next);
	assert_int_equal(drain_take_bad_bytes(f->d), 0);
}

/* The calls come to an end although a ring is written as fast as it is read, because a call does
 * not look again at what an earlier call took. */
static void drain_flush_of_rings_that_are_written_meanwhile_ends(void **state)
{
	struct fixture *f = *state;
	int n_full = 0;

	for (uint32_t i = 0; i < 3; i++) {
		add(f, i, QUEUE, 0);
		data_ring_fill(&f->rings[i], UINT64_MAX);
	}
	while (drain_flush(f->d) == DRAIN_FULL) {
		assert_true(n_full++ < 12);
		take(f, UINT64_MAX);
		for (uint32_t i = 0; i < 3; i++)
			data_ring_fill(&f->rings[i], UINT64_MAX);
	}
	take_all(f);
}

/* The thread works without a flush, and all rings have their turn. */
static void drain_thread_full_queue_waits_and_loses_nothing(void **state)
{
	struct fixture *f = *state;
	uint64_t total = 0, n = 0;

	for (uint32_t i = 0; i < 3; i++) {
		data_ring_init(&f->rings[i], QUEUE);
		total += data_ring_fill(&f->rings[i], UINT64_MAX);
	}
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(drain_add(f->d, i, &f->rings[i].ring, 0), 0);
	while (n < total) {
		wait_ready(f);
		n += take(f, 100);
	}
	assert_int_equal(n, total);
	assert_true(stats(f).stalls >= 1);
	assert_false(is_ready(f));
}

static void drain_thread_takes_what_a_ring_with_fd_holds(void **state)
{
	struct fixture *f = *state;
	int fd = eventfd(0, EFD_CLOEXEC);
	uint64_t one = 1;

	add(f, 0, 4096, fd);
	for (int i = 0; i < 20; i++) {
		data_ring_fill(&f->rings[0], 3);
		assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
		while (f->seen[0] < f->rings[0].next) {
			wait_ready(f);
			take(f, UINT64_MAX);
		}
	}
	drain_remove(f->d, &f->rings[0].ring);
	close(fd);
}

static void drain_add_fd_that_cannot_be_polled_is_looked_at_every_period(void **state)
{
	struct fixture *f = *state;
	int fd = eventfd(0, EFD_CLOEXEC);

	add(f, 0, 4096, fd);
	add(f, 1, 4096, fd); /* the fd is polled already */
	add(f, 2, 4096, 12345);
	for (int i = 0; i < 10; i++) {
		data_ring_fill(&f->rings[1], 3);
		data_ring_fill(&f->rings[2], 3);
		while (f->seen[1] < f->rings[1].next || f->seen[2] < f->rings[2].next) {
			wait_ready(f);
			take(f, UINT64_MAX);
		}
	}
	for (int i = 0; i < 3; i++)
		drain_remove(f->d, &f->rings[i].ring);
	close(fd);
}

/* How often the drain's thread has gone to sleep. */
static uint64_t sleeps(void)
{
	DIR *dir = opendir("/proc/self/task");
	uint64_t n = UINT64_MAX;
	struct dirent *e;

	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL) {
		char path[300], line[128];
		bool ours = false;
		FILE *in;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		in = fopen(path, "re");
		while (in != NULL && fgets(line, sizeof(line), in) != NULL) {
			ours |= strcmp(line, "Name:\tptsnap-drain\n") == 0;
			if (ours)
				sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &n);
		}
		if (in != NULL)
			fclose(in);
	}
	closedir(dir);
	return n;
}

/* Each record of the other ring needs a pass, and the thread must sleep between two passes. */
static void drain_thread_fd_that_is_hung_up_does_not_keep_it_awake(void **state)
{
	struct fixture *f = *state;
	uint64_t before;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	close(fds[1]);
	add(f, 0, 4096, fds[0]);
	add(f, 1, 4096, 0);
	data_ring_fill(&f->rings[0], 5);
	data_ring_fill(&f->rings[1], 5);
	while (f->seen[0] + f->seen[1] < 10) {
		wait_ready(f);
		take(f, UINT64_MAX);
	}
	before = sleeps();
	assert_true(before != UINT64_MAX);
	for (int i = 0; i < 50; i++) {
		data_ring_fill(&f->rings[1], 1);
		wait_ready(f);
		assert_int_equal(take(f, UINT64_MAX), 1);
	}
	assert_true(sleeps() - before >= 49);
	drain_remove(f->d, &f->rings[0].ring);
	close(fds[0]);
}

static void drain_flush_gives_up_a_ring_that_contradicts_itself(void **state)
{
	static const struct perf_event_header bad = {.type = 1, .size = 3};
	struct fixture *f = *state;
	struct perf_event_mmap_page *page;

	add(f, 0, 4096, 0);
	add(f, 1, 4096, 0);
	page = f->rings[0].ring.page;
	data_ring_fill(&f->rings[0], 2);
	take_all(f);
	memcpy(f->rings[0].ring.data + (page->data_head & 4095), &bad, sizeof(bad));
	__atomic_store_n(&page->data_head, page->data_head + sizeof(bad), __ATOMIC_RELEASE);
	data_ring_fill(&f->rings[1], 2);
	take_all(f);
	assert_int_equal(f->seen[1], 2);
	assert_int_equal(drain_take_bad_bytes(f->d), sizeof(bad));
	assert_int_equal(drain_take_bad_bytes(f->d), 0);
	data_ring_fill(&f->rings[0], 2);
	take_all(f);
	assert_int_equal(f->seen[0], 4);
}

static void drain_remove_takes_what_is_left_and_keeps_its_records(void **state)
{
	struct fixture *f = *state;

	add(f, 0, 4096, 0);
	add(f, 1, 4096, 0);
	data_ring_fill(&f->rings[0], 4);
	data_ring_fill(&f->rings[1], 4);
	drain_remove(f->d, &f->rings[0].ring);
	drain_remove(f->d, &f->rings[0].ring); /* the ring is not in the list: ignored */
	data_ring_done(&f->rings[0]);
	data_ring_init(&f->rings[0], 4096); /* the drain does not know this ring */
	data_ring_fill(&f->rings[0], 4);
	take_all(f);
	assert_int_equal(f->seen[0], 4);
	assert_int_equal(f->seen[1], 4);
}

static void drain_remove_full_queue_tells_what_was_lost(void **state)
{
	struct fixture *f = *state;
	uint64_t n;

	add(f, 0, 2 * QUEUE, 0);
	n = data_ring_fill(&f->rings[0], UINT64_MAX);
	drain_remove(f->d, &f->rings[0].ring);
	take_all(f);
	assert_true(f->seen[0] > 0 && f->seen[0] < n);
	assert_true(drain_take_bad_bytes(f->d) >= QUEUE - 512);
}

/* --- With writers at work --- */

struct writer {
	pthread_t thread;
	struct data_ring *ring;
	uint64_t n; /* records to write */
	bool done;  /* atomic */
};

/* A full ring makes the writer wait, where a kernel would drop the record. */
static void *write_records(void *userdata)
{
	struct writer *w = userdata;

	while (w->ring->next < w->n)
		if (!data_ring_put(w->ring))
			sched_yield();
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void start(struct fixture *f, struct writer *w, size_t n, uint64_t records)
{
	for (size_t i = 0; i < n; i++) {
		w[i] = (struct writer){.ring = &f->rings[i], .n = records};
		assert_int_equal(pthread_create(&w[i].thread, NULL, write_records, &w[i]), 0);
	}
}

static bool all_done(struct writer *w, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!__atomic_load_n(&w[i].done, __ATOMIC_ACQUIRE))
			return false;
	return true;
}

static void join(struct fixture *f, struct writer *w, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pthread_join(w[i].thread, NULL);
	take_all(f);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(f->seen[i], w[i].n);
	assert_int_equal(drain_take_bad_bytes(f->d), 0);
}

static void drain_many_writers_every_record_comes_once(void **state)
{
	struct fixture *f = *state;
	struct writer w[MAX_RINGS];

	for (uint32_t i = 0; i < MAX_RINGS; i++)
		add(f, i, 4096u << i % 4, 0);
	start(f, w, MAX_RINGS, 5000);
	while (!all_done(w, MAX_RINGS)) {
		wait_ready(f);
		take(f, 1000);
	}
	join(f, w, MAX_RINGS);
}

static void drain_flush_beside_the_thread_every_record_comes_once(void **state)
{
	struct fixture *f = *state;
	struct writer w[4];

	for (uint32_t i = 0; i < 4; i++)
		add(f, i, 65536, 0);
	start(f, w, 4, 20000);
	while (!all_done(w, 4)) {
		take_all(f);
		sched_yield();
	}
	join(f, w, 4);
}

/* All rings are removed and added again while they are written and others are full. */
static void drain_add_and_remove_beside_the_thread_every_record_comes_once(void **state)
{
	struct fixture *f = *state;
	struct writer w[4];

	for (uint32_t i = 0; i < 4; i++)
		add(f, i, 16384, 0);
	start(f, w, 4, 20000);
	for (uint32_t turn = 0; !all_done(w, 4); turn++) {
		uint32_t i = turn % 4;

		take(f, UINT64_MAX);
		drain_remove(f->d, &f->rings[i].ring);
		take(f, 10);
		assert_int_equal(drain_add(f->d, i, &f->rings[i].ring, 0), 0);
	}
	join(f, w, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		cmocka_unit_test(drain_new_odd_size_is_refused),
		CASE(drain_peek_without_records_is_empty),
		CASE(drain_fd_is_readable_while_records_wait),
		CASE(drain_flush_records_that_wrap_come_whole),
		CASE(drain_flush_full_queue_goes_on_after_records_were_taken),
		CASE(drain_flush_of_rings_that_are_written_meanwhile_ends),
		CASE(drain_thread_full_queue_waits_and_loses_nothing),
		CASE(drain_thread_takes_what_a_ring_with_fd_holds),
		CASE(drain_add_fd_that_cannot_be_polled_is_looked_at_every_period),
		CASE(drain_thread_fd_that_is_hung_up_does_not_keep_it_awake),
		CASE(drain_flush_gives_up_a_ring_that_contradicts_itself),
		CASE(drain_remove_takes_what_is_left_and_keeps_its_records),
		CASE(drain_remove_full_queue_tells_what_was_lost),
		CASE(drain_many_writers_every_record_comes_once),
		CASE(drain_flush_beside_the_thread_every_record_comes_once),
		CASE(drain_add_and_remove_beside_the_thread_every_record_comes_once),
	};

	return cmocka_run_group_tests_name("capture/drain", tests, NULL, NULL);
}
