/*
 * proto/emuring: layout, and the writer's half of a DATA ring.
 */
#include "capture/emu/machine/emuring.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <linux/perf_event.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/perf/perfrecord.h"

#define DATA 4096u
#define AUX  4096u

static struct emuring ring;

static int set_up(void **state)
{
	struct emuring_layout l = {
		.n_cpus = 2, .max_tasks = EMURING_MIN_TASKS, .data_size = DATA, .aux_size = AUX};
	struct emuring_head *head;

	(void)state;
	assert_int_equal(emuring_layout(&l), 0);
	head = aligned_alloc(4096, l.total);
	assert_non_null(head);
	memset(head, 0, l.total);
	head->magic = EMURING_MAGIC;
	head->version = EMURING_VERSION;
	head->n_cpus = 2;
	head->max_tasks = EMURING_MIN_TASKS;
	head->data_size = DATA;
	head->aux_size = AUX;
	head->cpu_stride = l.cpu_stride;
	head->cpus_at = l.cpus_at;
	head->tasks_at = l.tasks_at;
	assert_int_equal(emuring_check(head, l.total), 0);
	assert_int_equal(emuring_check(head, l.total - 1), -EBADMSG);
	emuring_attach(&ring, head);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(ring.shared);
	return 0;
}

/* A COMM record with this name. */
static size_t compose(const char *comm, void *bytes, size_t capacity)
{
	struct perfrecord r = {.type = PERF_RECORD_COMM, .pid = 7, .tid = 8, .time = 99, .id = 5};
	size_t size;

	r.u.comm.comm = comm;
	assert_int_equal(perfrecord_compose(&r, bytes, capacity, &size), 0);
	return size;
}

/* Parses the record at byte POS of CPU's ring, which may wrap; returns its size. */
static size_t parse_at(uint32_t cpu, uint64_t pos, struct perfrecord *ret, uint8_t *bytes)
{
	for (size_t i = 0; i < 256; i++)
		bytes[i] = emuring_data_at(&ring, cpu)[(pos + i) % DATA];
	assert_int_equal(perfrecord_parse(bytes, 256, ret), 0);
	return ret->size;
}

static void layout_refuses_what_does_not_fit(void **state)
{
	static const struct {
		uint32_t n, tasks;
		uint64_t data, aux;
		int result;
	} cases[] = {
		{1, 16, 4096, 4096, 0},
		{EMURING_MAX_CPUS, EMURING_MAX_TASKS, 1ull << 20, 1ull << 30, 0},
		{0, 16, 4096, 4096, -EINVAL},
		{EMURING_MAX_CPUS + 1, 16, 4096, 4096, -EINVAL},
		{1, EMURING_MIN_TASKS - 1, 4096, 4096, -EINVAL},
		{1, EMURING_MAX_TASKS + 1, 4096, 4096, -EINVAL},
		{1, 16, 2048, 4096, -EINVAL},
		{1, 16, 4096, 12288, -EINVAL},
		{1, 16, 0, 4096, -EINVAL},
		{1, 16, 1ull << 63, 1ull << 63, -EINVAL},
		{256, 16, 4096, 1ull << 60, -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct emuring_layout l = {
			cases[i].n, cases[i].tasks, cases[i].data, cases[i].aux, 0, 0, 0, 0};

		assert_int_equal(emuring_layout(&l), cases[i].result);
	}
}

/* A guest that overwrites the head afterwards moves nothing. */
static void attach_keeps_a_copy_of_the_layout(void **state)
{
	uint8_t *aux = emuring_aux_at(&ring, 1);

	(void)state;
	memset(ring.shared, 0xff, sizeof(*ring.shared));
	assert_ptr_equal(emuring_aux_at(&ring, 1), aux);
}

static void write_record_loses_each_nth_where_that_is_wished(void **state)
{
	uint8_t record[256], bytes[256];
	size_t size = compose("name", record, sizeof(record));
	struct perfrecord r;

	(void)state;
	ring.fixed.lose_every = 3;
	assert_int_equal(emuring_write_record(&ring, 0, record, size), 0);
	assert_int_equal(emuring_write_record(&ring, 0, record, size), 0);
	assert_int_equal(emuring_write_record(&ring, 0, record, size), EMURING_LOST);
	assert_int_equal(emuring_write_record(&ring, 0, record, size), 0);
	parse_at(0, 2 * size, &r, bytes);
	assert_int_equal(r.type, PERF_RECORD_LOST);
	assert_int_equal(r.u.lost.lost, 1);
	assert_int_equal(ring.shared->resync, 1);
	ring.fixed.lose_every = 0;
}

static void add_reason_keeps_each_once_and_no_more_than_fit(void **state)
{
	char text[400];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < 20; i++) {
		text[0] = (char)('a' + i / 2);
		emuring_add_reason(ring.shared, text);
	}
	assert_int_equal(strlen(ring.shared->reasons[0]), EMURING_REASON_SIZE - 1);
	for (int i = 0; i < (int)EMURING_MAX_REASONS; i++)
		assert_int_equal(ring.shared->reasons[i][0], 'a' + i);
}

static void layout_keeps_cpus_apart_on_pages(void **state)
{
	uint8_t *second = (uint8_t *)emuring_cpu_at(&ring, 1);

	(void)state;
	assert_ptr_equal(emuring_aux_at(&ring, 0) + AUX, second);
	assert_ptr_equal(emuring_data_at(&ring, 0), (uint8_t *)emuring_page_at(&ring, 0) + 4096);
	assert_int_equal((uintptr_t)second % 4096, 0);
}

static void write_record_appends_and_wraps(void **state)
{
	uint8_t record[256], bytes[256];
	struct perfrecord r;
	size_t size = compose("name", record, sizeof(record));
	struct perf_event_mmap_page *page = emuring_page_at(&ring, 1);
	uint64_t pos = 0;

	(void)state;
	for (int i = 0; i < 200; i++) {
		assert_int_equal(emuring_write_record(&ring, 1, record, size), 0);
		assert_int_equal(page->data_head, pos + size);
		assert_int_equal(parse_at(1, pos, &r, bytes), size);
		assert_string_equal(r.u.comm.comm, "name");
		pos += size;
		page->data_tail = pos;
	}
	assert_int_equal(emuring_page_at(&ring, 0)->data_head, 0);
}

static void write_record_full_ring_counts_then_tells_the_loss(void **state)
{
	uint8_t record[256], bytes[256];
	struct perfrecord r;
	size_t size = compose("name", record, sizeof(record));
	struct perf_event_mmap_page *page = emuring_page_at(&ring, 0);
	uint64_t full;

	(void)state;
	while (emuring_write_record(&ring, 0, record, size) == 0)
		;
	full = page->data_head;
	assert_true(DATA - full < size);
	assert_int_equal(emuring_write_record(&ring, 0, record, size), EMURING_LOST);
	assert_int_equal(emuring_cpu_at(&ring, 0)->data_lost, 2);
	/* Room for the record, but not for the LOST before it. */
	page->data_tail = size;
	assert_int_equal(emuring_write_record(&ring, 0, record, size), EMURING_LOST);
	page->data_tail = full;
	assert_int_equal(emuring_write_record(&ring, 0, record, size), 0);
	full += parse_at(0, full, &r, bytes);
	assert_int_equal(r.type, PERF_RECORD_LOST);
	assert_int_equal(r.u.lost.lost, 3);
	assert_int_equal(r.u.lost.id, 5);
	assert_int_equal(r.time, 99);
	parse_at(0, full, &r, bytes);
	assert_int_equal(r.type, PERF_RECORD_COMM);
	assert_int_equal(emuring_cpu_at(&ring, 0)->data_lost, 0);
}

static void write_record_with_a_wrong_tail_loses_it(void **state)
{
	uint8_t record[256];
	size_t size = compose("name", record, sizeof(record));

	(void)state;
	emuring_page_at(&ring, 0)->data_tail = 1u << 20;
	assert_int_equal(emuring_write_record(&ring, 0, record, size), EMURING_LOST);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(layout_refuses_what_does_not_fit),
		CASE(layout_keeps_cpus_apart_on_pages),
		CASE(write_record_appends_and_wraps),
		CASE(write_record_full_ring_counts_then_tells_the_loss),
		CASE(write_record_with_a_wrong_tail_loses_it),
		CASE(attach_keeps_a_copy_of_the_layout),
		CASE(write_record_loses_each_nth_where_that_is_wished),
		CASE(add_reason_keeps_each_once_and_no_more_than_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
