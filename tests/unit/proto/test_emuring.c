/*
 * proto/emuring: layout, and the writer's half of a DATA ring.
 */
#include "proto/emuring.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <linux/perf_event.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/perfrecord.h"

#define DATA 4096u
#define AUX  4096u

static struct emuring_head *head;

static int set_up(void **state)
{
	uint64_t stride, total;

	(void)state;
	assert_int_equal(emuring_layout(2, DATA, AUX, &stride, &total), 0);
	head = aligned_alloc(4096, total);
	assert_non_null(head);
	memset(head, 0, total);
	head->n_cpus = 2;
	head->data_size = DATA;
	head->aux_size = AUX;
	head->cpu_stride = stride;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(head);
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
		bytes[i] = emuring_data_at(head, cpu)[(pos + i) % DATA];
	assert_int_equal(perfrecord_parse(bytes, 256, ret), 0);
	return ret->size;
}

static void layout_refuses_what_does_not_fit(void **state)
{
	static const struct {
		uint32_t n;
		uint64_t data, aux;
		int result;
	} cases[] = {
		{1, 4096, 4096, 0},
		{EMURING_MAX_CPUS, 1ull << 20, 1ull << 30, 0},
		{0, 4096, 4096, -EINVAL},
		{EMURING_MAX_CPUS + 1, 4096, 4096, -EINVAL},
		{1, 2048, 4096, -EINVAL},
		{1, 4096, 12288, -EINVAL},
		{1, 0, 4096, -EINVAL},
		{1, 1ull << 63, 1ull << 63, -EINVAL},
		{256, 4096, 1ull << 60, -EINVAL},
	};
	uint64_t stride, total;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(
			emuring_layout(cases[i].n, cases[i].data, cases[i].aux, &stride, &total),
			cases[i].result);
}

static void layout_keeps_cpus_apart_on_pages(void **state)
{
	uint8_t *second = (uint8_t *)emuring_cpu_at(head, 1);

	(void)state;
	assert_ptr_equal(emuring_aux_at(head, 0) + AUX, second);
	assert_ptr_equal(emuring_data_at(head, 0), (uint8_t *)emuring_page_at(head, 0) + 4096);
	assert_int_equal((uintptr_t)second % 4096, 0);
}

static void write_record_appends_and_wraps(void **state)
{
	uint8_t record[256], bytes[256];
	struct perfrecord r;
	size_t size = compose("name", record, sizeof(record));
	struct perf_event_mmap_page *page = emuring_page_at(head, 1);
	uint64_t pos = 0;

	(void)state;
	for (int i = 0; i < 200; i++) {
		assert_int_equal(emuring_write_record(head, 1, record, size), 0);
		assert_int_equal(page->data_head, pos + size);
		assert_int_equal(parse_at(1, pos, &r, bytes), size);
		assert_string_equal(r.u.comm.comm, "name");
		pos += size;
		page->data_tail = pos;
	}
	assert_int_equal(emuring_page_at(head, 0)->data_head, 0);
}

static void write_record_full_ring_counts_then_tells_the_loss(void **state)
{
	uint8_t record[256], bytes[256];
	struct perfrecord r;
	size_t size = compose("name", record, sizeof(record));
	struct perf_event_mmap_page *page = emuring_page_at(head, 0);
	uint64_t full;

	(void)state;
	while (emuring_write_record(head, 0, record, size) == 0)
		;
	full = page->data_head;
	assert_true(DATA - full < size);
	assert_int_equal(emuring_write_record(head, 0, record, size), EMURING_LOST);
	assert_int_equal(emuring_cpu_at(head, 0)->data_lost, 2);
	/* Room for the record, but not for the LOST before it. */
	page->data_tail = size;
	assert_int_equal(emuring_write_record(head, 0, record, size), EMURING_LOST);
	page->data_tail = full;
	assert_int_equal(emuring_write_record(head, 0, record, size), 0);
	full += parse_at(0, full, &r, bytes);
	assert_int_equal(r.type, PERF_RECORD_LOST);
	assert_int_equal(r.u.lost.lost, 3);
	assert_int_equal(r.u.lost.id, 5);
	assert_int_equal(r.time, 99);
	parse_at(0, full, &r, bytes);
	assert_int_equal(r.type, PERF_RECORD_COMM);
	assert_int_equal(emuring_cpu_at(head, 0)->data_lost, 0);
}

static void write_record_with_a_wrong_tail_loses_it(void **state)
{
	uint8_t record[256];
	size_t size = compose("name", record, sizeof(record));

	(void)state;
	emuring_page_at(head, 0)->data_tail = 1u << 20;
	assert_int_equal(emuring_write_record(head, 0, record, size), EMURING_LOST);
}

static void finish_writes_what_was_pending(void **state)
{
	static const struct {
		uint64_t tnt;
		size_t size;
		uint8_t bytes[8];
	} cases[] = {
		{0, 0, {0}},
		{1, 0, {0}},
		{5, 1, {0x0a}},
		{0x7f, 1, {0xfe}},
		{0xff, 8, {0x02, 0xa3, 0xff}},
		{1ull << 48, 0, {0}}, /* no encoder leaves that */
	};
	struct emuring_cpu *cpu = emuring_cpu_at(head, 0);
	uint8_t *aux = emuring_aux_at(head, 0);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cpu->tnt = cases[i].tnt;
		assert_int_equal(emuring_finish(cpu, aux, AUX, AUX - 2), AUX - 2 + cases[i].size);
		for (size_t j = 0; j < cases[i].size; j++)
			assert_int_equal(aux[(AUX - 2 + j) % AUX], cases[i].bytes[j]);
		assert_true(cpu->tnt <= 1);
	}
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
		CASE(finish_writes_what_was_pending),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
