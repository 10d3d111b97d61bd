/*
 * capture/ring/ring: DATA and AUX rings made by hand, and a ring of this kernel.
 */
#include "capture/ring/ring.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/perf/perf_event.h"
#include "proto/base.h"
#include "proto/perf/perfrecord.h"
#include "tests/support/child.h"

#define PAGE  4096u
#define DATA  4096u
#define AUX   8192u
#define TOTAL (PAGE + DATA + AUX)

struct fixture {
	struct ring r;
	struct perf_event_mmap_page *page;
	uint8_t *memory;
	uint8_t scratch[PERFRECORD_MAX_SIZE];
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->memory = aligned_alloc(PAGE, TOTAL);
	assert_non_null(f->memory);
	memset(f->memory, 0, TOTAL);
	f->page = (struct perf_event_mmap_page *)f->memory;
	f->page->data_offset = PAGE;
	f->page->data_size = DATA;
	f->page->aux_offset = PAGE + DATA;
	f->page->aux_size = AUX;
	assert_int_equal(ring_init(&f->r, f->page, TOTAL, f->scratch), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	free(f->memory);
	free(f);
	return 0;
}

/* Writes a record of SIZE bytes at the running position POS: a header, then bytes made from
 * PATTERN. */
static void put_record(struct fixture *f, uint64_t pos, uint16_t size, uint8_t pattern)
{
	struct perf_event_header header = {.type = 1000u + pattern, .size = size};
	uint8_t bytes[256];

	assert_true(size <= sizeof(bytes));
	memset(bytes, pattern, sizeof(bytes));
	memcpy(bytes, &header, sizeof(header));
	for (size_t i = 0; i < size; i++)
		f->r.data[(pos + i) % DATA] = bytes[i];
}

static void assert_record(const void *record, size_t size, uint8_t pattern)
{
	struct perf_event_header header;
	const uint8_t *bytes = record;

	memcpy(&header, record, sizeof(header));
	assert_int_equal(header.type, 1000u + pattern);
	assert_int_equal(header.size, size);
	for (size_t i = sizeof(header); i < size; i++)
		assert_int_equal(bytes[i], pattern);
}

static void ring_init_contradicting_page_is_refused(void **state)
{
	static const struct {
		uint64_t data_offset, data_size, aux_offset, aux_size, total;
	} bad[] = {
		{PAGE, DATA, PAGE + DATA, AUX, TOTAL - 1},
		{PAGE, DATA, PAGE + DATA, AUX, 100},
		{0, DATA, PAGE + DATA, AUX, TOTAL},
		{PAGE + 8, DATA, PAGE + 2 * DATA, DATA, TOTAL},
		{PAGE, 0, PAGE + DATA, AUX, TOTAL},
		{PAGE, 2048, PAGE + DATA, AUX, TOTAL},
		{PAGE, 3 * 4096, 0, 0, TOTAL},
		{PAGE, 1ull << 63, 0, 0, TOTAL},
		{UINT64_MAX - 4095, DATA, 0, 0, TOTAL},
		{PAGE, DATA, PAGE + DATA, 12288, TOTAL + 8192},
		{PAGE, DATA, PAGE + DATA, 100, TOTAL},
		{PAGE, DATA, PAGE, AUX, TOTAL},
		{PAGE, DATA, UINT64_MAX - 4095, AUX, TOTAL},
		{PAGE, DATA, PAGE + DATA, 1ull << 63, TOTAL},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct ring r;

		f->page->data_offset = bad[i].data_offset;
		f->page->data_size = bad[i].data_size;
		f->page->aux_offset = bad[i].aux_offset;
		f->page->aux_size = bad[i].aux_size;
		assert_int_equal(ring_init(&r, f->page, bad[i].total, f->scratch), -EINVAL);
	}
}

static void ring_init_without_aux_has_none(void **state)
{
	struct fixture *f = *state;
	uint8_t to[8];

	f->page->aux_size = 0;
	f->page->aux_offset = 0;
	assert_int_equal(ring_init(&f->r, f->page, TOTAL, f->scratch), 0);
	assert_null(f->r.aux);
	assert_int_equal(f->r.aux_size, 0);
	assert_int_equal(ring_copy_aux(&f->r, 0, to), 0);
	assert_int_equal(ring_copy_aux(&f->r, 8, to), 0);
}

static void ring_peek_empty_says_so(void **state)
{
	struct fixture *f = *state;
	const void *record;
	size_t size;

	assert_int_equal(ring_peek(&f->r, &record, &size), RING_EMPTY);
	f->page->data_head = f->page->data_tail = 3 * DATA + 40;
	assert_int_equal(ring_peek(&f->r, &record, &size), RING_EMPTY);
}

static void ring_peek_records_come_in_order_and_room_is_given_back(void **state)
{
	struct fixture *f = *state;
	const void *record;
	size_t size;

	put_record(f, 0, 16, 1);
	put_record(f, 16, 8, 2);
	put_record(f, 24, 64, 3);
	f->page->data_head = 88;
	assert_int_equal(ring_peek(&f->r, &record, &size), 0);
	assert_int_equal(size, 16);
	assert_record(record, size, 1);
	assert_int_equal(f->page->data_tail, 0);
	ring_consume(&f->r, size);
	assert_int_equal(f->page->data_tail, 16);
	assert_int_equal(ring_peek(&f->r, &record, &size), 0);
	assert_record(record, size, 2);
	ring_consume(&f->r, size);
	assert_int_equal(ring_peek(&f->r, &record, &size), 0);
	assert_int_equal(size, 64);
	assert_record(record, size, 3);
	ring_consume(&f->r, size);
	assert_int_equal(ring_peek(&f->r, &record, &size), RING_EMPTY);
	assert_int_equal(f->page->data_tail, 88);
}

/* The record wraps at every possible place, also within its header, and where the running position
 * passes 2^64. */
static void ring_peek_wrapping_record_is_joined(void **state)
{
	static const uint64_t laps[] = {0, 7 * DATA, -(uint64_t)DATA};
	struct fixture *f = *state;
	const void *record;
	size_t size;

	for (size_t lap = 0; lap < ARRAY_SIZE(laps); lap++) {
		for (uint64_t before = 8; before <= 200; before += 8) {
			uint64_t pos = laps[lap] + DATA - before;

			put_record(f, pos, 200, (uint8_t)before);
			f->page->data_tail = pos;
			f->page->data_head = pos + 200;
			assert_int_equal(ring_peek(&f->r, &record, &size), 0);
			assert_int_equal(size, 200);
			assert_record(record, size, (uint8_t)before);
			ring_consume(&f->r, size);
			assert_int_equal(ring_peek(&f->r, &record, &size), RING_EMPTY);
		}
	}
}

static void ring_peek_record_as_large_as_the_ring_is_given(void **state)
{
	struct fixture *f = *state;
	struct perf_event_header header = {.type = 9, .size = DATA};
	const void *record;
	size_t size;

	memcpy(f->r.data, &header, sizeof(header));
	f->page->data_head = DATA;
	assert_int_equal(ring_peek(&f->r, &record, &size), 0);
	assert_int_equal(size, DATA);
}

static void ring_peek_record_changed_by_the_writer_stays_as_checked(void **state)
{
	struct fixture *f = *state;
	const void *record;
	size_t size;

	put_record(f, 0, 64, 5);
	f->page->data_head = 64;
	assert_int_equal(ring_peek(&f->r, &record, &size), 0);
	memset(f->r.data, 0xff, DATA);
	assert_int_equal(size, 64);
	assert_record(record, size, 5);
}

static void ring_peek_contradicting_header_is_refused_and_skipped(void **state)
{
	static const struct {
		uint64_t tail, head;
		uint16_t size;
	} bad[] = {
		{0, 64, 0},		       /* reading would never end */
		{0, 64, 7},		       /* less than a header */
		{0, 64, 12},		       /* not a multiple of 8 */
		{0, 64, 72},		       /* the record ends beyond the head */
		{0, 64, 65535},	    {0, 4, 8}, /* the header itself ends beyond the head */
		{0, DATA + 8, 8},	       /* more bytes than the ring has */
		{64, 0, 8},		       /* the head is behind the tail */
		{8, UINT64_MAX, 8},
	};
	struct fixture *f = *state;
	const void *record;
	size_t size;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct perf_event_header header = {.type = 1, .size = bad[i].size};

		memcpy(f->r.data + bad[i].tail % DATA, &header, sizeof(header));
		f->page->data_tail = bad[i].tail;
		f->page->data_head = bad[i].head;
		assert_int_equal(ring_peek(&f->r, &record, &size), -EBADMSG);
		assert_int_equal(ring_skip_all(&f->r), bad[i].head - bad[i].tail);
		assert_int_equal(ring_peek(&f->r, &record, &size), RING_EMPTY);
	}
}

/* Each place of the ring holds its own age, in two bytes: 0 is the oldest, AUX - 1 the newest. */
static uint16_t age_at(uint64_t head, uint64_t place)
{
	return (uint16_t)((place - head) % AUX);
}

static void ring_copy_data_gives_all_that_is_used_as_it_lies(void **state)
{
	struct fixture *f = *state;
	uint8_t copy[DATA];
	uint64_t used;

	assert_int_equal(ring_used(&f->r, &used), RING_EMPTY);
	/* Two records; the second one wraps. */
	f->page->data_tail = DATA - 48;
	f->page->data_head = DATA + 16;
	put_record(f, DATA - 48, 32, 1);
	put_record(f, DATA - 16, 32, 2);
	assert_int_equal(ring_used(&f->r, &used), 0);
	assert_int_equal(used, 64);
	ring_copy_data(&f->r, used, copy);
	assert_record(copy, 32, 1);
	assert_record(copy + 32, 32, 2);
	/* The records are still in the ring. */
	assert_int_equal(f->page->data_tail, DATA - 48);
	f->page->data_head = DATA + 20;
	assert_int_equal(ring_used(&f->r, &used), -EBADMSG);
	f->page->data_head = f->page->data_tail + DATA + 8;
	assert_int_equal(ring_used(&f->r, &used), -EBADMSG);
}

static void ring_copy_aux_gives_the_newest_bytes_oldest_first(void **state)
{
	static const uint64_t heads[] = {0, 2, 4096, AUX - 2, AUX, 5 * AUX + 6};
	static const uint64_t wanted[] = {0, 2, 64, 4096, AUX - 2, AUX, AUX + 2, UINT64_MAX - 1};
	struct fixture *f = *state;
	uint16_t *aux = (uint16_t *)(f->memory + PAGE + DATA);

	for (size_t h = 0; h < ARRAY_SIZE(heads); h++) {
		for (uint64_t i = 0; i < AUX; i += 2)
			aux[i / 2] = age_at(heads[h], i);
		f->page->aux_head = heads[h];
		for (size_t w = 0; w < ARRAY_SIZE(wanted); w++) {
			uint64_t n = wanted[w] == 0 || wanted[w] > AUX ? AUX : wanted[w];
			uint16_t *to = malloc(n); /* of the exact size, so that the sanitizer sees
						     one byte more */

			assert_int_equal(ring_copy_aux(&f->r, wanted[w], (uint8_t *)to), n);
			for (uint64_t i = 0; i < n; i += 2)
				assert_int_equal(to[i / 2], AUX - n + i);
			free(to);
		}
	}
}

static void ring_copy_aux_odd_sizes_end_at_the_head(void **state)
{
	struct fixture *f = *state;
	uint8_t *aux = f->memory + PAGE + DATA, to[5];

	memset(aux, 0, AUX);
	memcpy(aux, "de", 2);
	memcpy(aux + AUX - 3, "abc", 3);
	f->page->aux_head = 2;
	assert_int_equal(ring_copy_aux(&f->r, 5, to), 5);
	assert_memory_equal(to, "abcde", 5);
	assert_int_equal(ring_copy_aux(&f->r, 1, to), 1);
	assert_memory_equal(to, "e", 1);
}

/* Opens one CPU's sideband for this process and its children. */
static int open_sideband(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERFRECORD_SAMPLE_TYPE,
		.inherit = 1,
		.exclude_kernel = 1,
		.mmap = 1,
		.mmap2 = 1,
		/* Without this, a record is marked as having a build id, and has none, while
		 * another event asks for build ids: perf_event_mmap_output() does not remove the
		 * mark. */
		.build_id = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.context_switch = 1,
		.sample_id_all = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

struct seen {
	unsigned forks, execs, mmaps, exits, switches;
	uint64_t bytes;
};

static void note_record(const struct perfrecord *p, pid_t child, struct seen *seen)
{
	const char *name;

	assert_in_range(p->time, 1, UINT64_MAX - 1);
	switch (p->type) {
	case PERF_RECORD_FORK: seen->forks += p->u.task.pid == (uint32_t)child; break;
	case PERF_RECORD_EXIT: seen->exits += p->u.task.pid == (uint32_t)child; break;
	case PERF_RECORD_COMM:
		if ((p->misc & PERF_RECORD_MISC_COMM_EXEC) != 0) {
			assert_string_equal(p->u.comm.comm, "true");
			seen->execs += p->u.comm.pid == (uint32_t)child;
		}
		break;
	case PERF_RECORD_MMAP2:
		name = strrchr(p->u.mmap2.filename, '/');
		seen->mmaps += name != NULL && strcmp(name, "/true") == 0 &&
			       (p->u.mmap2.prot & PROT_EXEC) != 0;
		break;
	case PERF_RECORD_SWITCH: seen->switches++; break;
	default: fail_msg("record of type %u was not asked for", p->type);
	}
}

static void drain(struct ring *r, pid_t child, struct seen *seen)
{
	const void *record;
	size_t size;
	int result;

	while ((result = ring_peek(r, &record, &size)) == 0) {
		struct perfrecord p;

		assert_int_equal(perfrecord_parse(record, size, &p), 0);
		assert_int_equal(p.size, size);
		note_record(&p, child, seen);
		seen->bytes += size;
		ring_consume(r, size);
	}
	assert_int_equal(result, RING_EMPTY);
}

static pid_t run_true(void)
{
	pid_t child = test_fork();
	int status;

	if (child == 0) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return child;
}

static void read_kernel_ring(struct fixture *f, void *memory, size_t total)
{
	struct seen seen = {0};
	unsigned rounds = 0;

	assert_int_equal(ring_init(&f->r, memory, total, f->scratch), 0);
	assert_int_equal(f->r.data_size, total - PAGE);
	/* Goes on until the ring has wrapped several times. */
	while (seen.bytes <= 3 * f->r.data_size && rounds < 100) {
		pid_t child = run_true();

		rounds++;
		drain(&f->r, child, &seen);
		assert_int_equal(f->r.page->data_tail, f->r.page->data_head);
	}
	assert_int_equal(seen.forks, rounds);
	assert_int_equal(seen.execs, rounds);
	assert_int_equal(seen.exits, rounds);
	assert_true(seen.mmaps >= rounds);
	assert_true(seen.switches > 0);
	assert_int_equal(seen.bytes, f->r.page->data_head);
	assert_true(seen.bytes > 3 * f->r.data_size);
}

static void ring_peek_this_kernels_ring_is_understood(void **state)
{
	struct fixture *f = *state;
	size_t total = PAGE + 2 * PAGE;
	cpu_set_t one, before;
	CLEANUP_CLOSE int fd = -EBADF;
	void *memory;
	int cpu;

	/* The child starts on its parent's CPU, so one CPU's ring has all of the child's records.
	 */
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	cpu = sched_getcpu();
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	fd = open_sideband(cpu);
	if (fd < 0 || sched_setaffinity(0, sizeof(one), &one) < 0)
		skip();
	memory = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED) {
		sched_setaffinity(0, sizeof(before), &before);
		skip();
	}
	read_kernel_ring(f, memory, total);
	munmap(memory, total);
	sched_setaffinity(0, sizeof(before), &before);
}

/* Renames the process N times. Each time is a record. */
static void fill_beyond(unsigned n)
{
	char name[16];

	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "test_%u", i & 1);
		prctl(PR_SET_NAME, name, 0, 0, 0);
	}
}

/* Losses that no record follows are reported in no other way. */
static void perf_event_lost_of_this_kernel_counts_what_no_record_tells(void **state)
{
	struct fixture *f = *state;
	struct perf_event_attr attr;
	struct perf_event e;
	uint64_t no_aux = 0, lost = 0;
	const void *record;
	uint32_t kinds;
	size_t size;
	cpu_set_t one, before;
	int cpu = sched_getcpu();

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	if (perf_attr_probe((uint32_t)cpu, true, &kinds) < 0 || !(kinds & PERF_ATTR_LOST))
		skip();
	perf_attr_sideband(kinds, true, &attr);
	if (sched_setaffinity(0, sizeof(one), &one) < 0 ||
	    perf_event_start(&e, &attr, (uint32_t)cpu, PAGE, &no_aux, f->scratch) < 0) {
		sched_setaffinity(0, sizeof(before), &before);
		skip();
	}
	assert_int_equal(perf_event_lost(&e, &lost), 0);
	assert_int_equal(lost, 0);
	assert_int_equal(perf_event_enable(&e), 0);
	fill_beyond(1000);
	assert_int_equal(perf_event_lost(&e, &lost), 0);
	assert_true(lost >= 900);
	/* The ring is full, and its first record is not a LOST record. */
	assert_int_equal(ring_peek(&e.ring, &record, &size), 0);
	assert_int_not_equal(((const struct perf_event_header *)record)->type, PERF_RECORD_LOST);
	perf_event_stop(&e);
	sched_setaffinity(0, sizeof(before), &before);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(ring_init_contradicting_page_is_refused),
		CASE(ring_init_without_aux_has_none),
		CASE(ring_peek_empty_says_so),
		CASE(ring_peek_records_come_in_order_and_room_is_given_back),
		CASE(ring_peek_wrapping_record_is_joined),
		CASE(ring_peek_record_as_large_as_the_ring_is_given),
		CASE(ring_peek_record_changed_by_the_writer_stays_as_checked),
		CASE(ring_peek_contradicting_header_is_refused_and_skipped),
		CASE(ring_copy_data_gives_all_that_is_used_as_it_lies),
		CASE(ring_copy_aux_gives_the_newest_bytes_oldest_first),
		CASE(ring_copy_aux_odd_sizes_end_at_the_head),
		CASE(ring_peek_this_kernels_ring_is_understood),
		CASE(perf_event_lost_of_this_kernel_counts_what_no_record_tells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
