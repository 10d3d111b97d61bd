#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/perf/perfrecord.h"

static const uint8_t raw_body[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

#define TRAILER .pid = 100, .tid = 101, .time = UINT64_C(0x1122334455667788), .cpu = 3, .id = 77

/* One record of every type, and its size by the layout in perf_event.h. */
static const struct {
	struct perfrecord record;
	size_t size;
	int parsed;
} samples[] = {
	{{.type = PERF_RECORD_COMM,
	  .misc = PERF_RECORD_MISC_COMM_EXEC,
	  TRAILER,
	  .u.comm = {5, 6, "cc1"}},
	 8 + 8 + 8 + 32,
	 0},
	{{.type = PERF_RECORD_COMM, TRAILER, .u.comm = {5, 6, ""}}, 8 + 8 + 8 + 32, 0},
	{{.type = PERF_RECORD_FORK, TRAILER, .u.task = {1, 2, 3, 4, 5}}, 8 + 24 + 32, 0},
	{{.type = PERF_RECORD_EXIT, TRAILER, .u.task = {9, 8, 7, 6, UINT64_MAX}}, 8 + 24 + 32, 0},
	{{.type = PERF_RECORD_MMAP2,
	  .misc = PERF_RECORD_MISC_USER,
	  TRAILER,
	  .u.mmap2 = {.pid = 1,
		      .tid = 2,
		      .addr = 0x400000,
		      .len = 0x1000,
		      .pgoff = 0x2000,
		      .maj = 8,
		      .min = 1,
		      .ino = 99,
		      .ino_generation = 12,
		      .prot = 5,
		      .flags = 2,
		      .filename = "/bin/ls"}},
	 8 + 8 + 24 + 24 + 8 + 8 + 32,
	 0},
	{{.type = PERF_RECORD_MMAP2,
	  .misc = PERF_RECORD_MISC_MMAP_BUILD_ID,
	  TRAILER,
	  .u.mmap2 = {.pid = 1,
		      .tid = 2,
		      .addr = 0x400000,
		      .len = 0x1000,
		      .pgoff = 0x2000,
		      .build_id_size = 5,
		      .build_id = {1, 2, 3, 4, 5},
		      .prot = 5,
		      .flags = 2,
		      .filename = "/lib/libx.so"}},
	 8 + 8 + 24 + 24 + 8 + 16 + 32,
	 0},
	{{.type = PERF_RECORD_SWITCH, .misc = PERF_RECORD_MISC_SWITCH_OUT, TRAILER}, 8 + 32, 0},
	{{.type = PERF_RECORD_SWITCH_CPU_WIDE, TRAILER, .u.context_switch = {11, 12}},
	 8 + 8 + 32,
	 0},
	{{.type = PERF_RECORD_ITRACE_START, TRAILER, .u.itrace_start = {21, 22}}, 8 + 8 + 32, 0},
	{{.type = PERF_RECORD_AUX, TRAILER, .u.aux = {0x1000, 0x2000, PERF_AUX_FLAG_TRUNCATED}},
	 8 + 24 + 32,
	 0},
	{{.type = PERF_RECORD_LOST, TRAILER, .u.lost = {77, 5}}, 8 + 16 + 32, 0},
	{{.type = PERF_RECORD_KSYMBOL, TRAILER, .u.raw = {raw_body, sizeof(raw_body)}},
	 8 + 16 + 32,
	 PERFRECORD_UNKNOWN},
	{{.type = 12345, TRAILER}, 8 + 32, PERFRECORD_UNKNOWN},
};

static void check_same_body(const struct perfrecord *a, const struct perfrecord *b)
{
	switch (a->type) {
	case PERF_RECORD_COMM:
		assert_int_equal(a->u.comm.pid, b->u.comm.pid);
		assert_int_equal(a->u.comm.tid, b->u.comm.tid);
		assert_string_equal(a->u.comm.comm, b->u.comm.comm);
		break;
	case PERF_RECORD_MMAP2:
		assert_memory_equal(&a->u.mmap2, &b->u.mmap2,
				    offsetof(struct perfrecord, u.mmap2.build_id_size) -
					    offsetof(struct perfrecord, u.mmap2));
		assert_int_equal(a->u.mmap2.build_id_size, b->u.mmap2.build_id_size);
		assert_memory_equal(a->u.mmap2.build_id, b->u.mmap2.build_id, 20);
		assert_int_equal(a->u.mmap2.prot, b->u.mmap2.prot);
		assert_int_equal(a->u.mmap2.flags, b->u.mmap2.flags);
		assert_string_equal(a->u.mmap2.filename, b->u.mmap2.filename);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
	case PERF_RECORD_ITRACE_START:
	case PERF_RECORD_AUX:
	case PERF_RECORD_LOST:
		assert_memory_equal(&a->u.task, &b->u.task, sizeof(a->u.task));
		break;
	default:
		assert_int_equal(a->u.raw.size, b->u.raw.size);
		if (a->u.raw.size > 0)
			assert_memory_equal(a->u.raw.bytes, b->u.raw.bytes, a->u.raw.size);
	}
}

static void check_same(const struct perfrecord *a, const struct perfrecord *b)
{
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->misc, b->misc);
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->tid, b->tid);
	assert_true(a->time == b->time);
	assert_int_equal(a->cpu, b->cpu);
	assert_true(a->id == b->id);
	check_same_body(a, b);
}

static void perfrecord_compose_then_parse_gives_the_same(void **state)
{
	_Alignas(8) uint8_t buffer[256];
	struct perfrecord back;
	size_t size;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		assert_int_equal(
			perfrecord_compose(&samples[i].record, buffer, sizeof(buffer), &size), 0);
		assert_int_equal(size, samples[i].size);
		assert_int_equal(perfrecord_parse(buffer, size, &back), samples[i].parsed);
		assert_int_equal(back.size, size);
		check_same(&samples[i].record, &back);
	}
}

/* Bytes from a kernel, and not from our own composer. */
static void perfrecord_parse_kernel_bytes_gives_the_fields(void **state)
{
	struct {
		struct perf_event_header header;
		uint32_t next_prev_pid, next_prev_tid;
		uint32_t pid, tid;
		uint64_t time;
		uint32_t cpu, reserved;
		uint64_t id;
	} bytes = {{PERF_RECORD_SWITCH_CPU_WIDE, PERF_RECORD_MISC_SWITCH_OUT, sizeof(bytes)},
		   1,
		   2,
		   3,
		   4,
		   5,
		   6,
		   0,
		   8};
	struct perfrecord r;

	(void)state;
	assert_int_equal(perfrecord_parse(&bytes, sizeof(bytes), &r), 0);
	assert_int_equal(r.misc, PERF_RECORD_MISC_SWITCH_OUT);
	assert_int_equal(r.u.context_switch.next_prev_pid, 1);
	assert_int_equal(r.u.context_switch.next_prev_tid, 2);
	assert_int_equal(r.pid, 3);
	assert_int_equal(r.tid, 4);
	assert_int_equal(r.time, 5);
	assert_int_equal(r.cpu, 6);
	assert_int_equal(r.id, 8);
}

static void perfrecord_parse_truncated_anywhere_is_refused(void **state)
{
	uint8_t buffer[256];
	struct perfrecord back;
	size_t size;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		perfrecord_compose(&samples[i].record, buffer, sizeof(buffer), &size);
		for (size_t cut = 0; cut < size; cut++) {
			CLEANUP_FREE uint8_t *exact = malloc(cut + 1);

			/* At its very end, for the sanitizer to see a byte too many. */
			memcpy(exact + 1, buffer, cut);
			assert_int_equal(perfrecord_parse(exact + 1, cut, &back), -EBADMSG);
			assert_int_equal(back.size, 0);
		}
	}
}

static void perfrecord_parse_wrong_size_is_refused(void **state)
{
	uint8_t buffer[512] = {0};
	struct perfrecord back;
	size_t size;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		bool has_string = samples[i].record.type == PERF_RECORD_COMM ||
				  samples[i].record.type == PERF_RECORD_MMAP2;

		if (samples[i].parsed == PERFRECORD_UNKNOWN)
			continue;
		perfrecord_compose(&samples[i].record, buffer, sizeof(buffer), &size);
		for (unsigned wrong = 0; wrong <= UINT16_MAX; wrong++) {
			uint16_t bytes = (uint16_t)wrong;

			if (wrong == size || (has_string && wrong > size))
				continue; /* a longer string is well-formed */
			memcpy(buffer + 6, &bytes, 2);
			assert_int_equal(perfrecord_parse(buffer, sizeof(buffer), &back), -EBADMSG);
			assert_int_equal(back.size,
					 wrong >= 8 && wrong <= sizeof(buffer) && wrong % 8 == 0
						 ? wrong
						 : 0);
		}
	}
}

static void perfrecord_parse_string_without_nul_is_refused(void **state)
{
	const struct perfrecord record = {.type = PERF_RECORD_COMM, .u.comm.comm = "1234567"};
	uint8_t buffer[64];
	struct perfrecord back;
	size_t size;

	(void)state;
	assert_int_equal(perfrecord_compose(&record, buffer, sizeof(buffer), &size), 0);
	assert_int_equal(buffer[8 + 8 + 7], 0);
	buffer[8 + 8 + 7] = '8';
	assert_int_equal(perfrecord_parse(buffer, size, &back), -EBADMSG);
	assert_int_equal(back.size, size);
}

static void perfrecord_parse_long_build_id_is_refused(void **state)
{
	struct perfrecord record = {.type = PERF_RECORD_MMAP2,
				    .misc = PERF_RECORD_MISC_MMAP_BUILD_ID,
				    .u.mmap2 = {.build_id_size = 20, .filename = "x"}};
	uint8_t buffer[256];
	struct perfrecord back;
	size_t size;

	(void)state;
	assert_int_equal(perfrecord_compose(&record, buffer, sizeof(buffer), &size), 0);
	assert_int_equal(perfrecord_parse(buffer, size, &back), 0);
	buffer[8 + 32] = 21;
	assert_int_equal(perfrecord_parse(buffer, size, &back), -EBADMSG);
	record.u.mmap2.build_id_size = 21;
	assert_int_equal(perfrecord_compose(&record, buffer, sizeof(buffer), &size), -EINVAL);
}

static void perfrecord_compose_short_buffer_has_no_space(void **state)
{
	uint8_t buffer[256];
	size_t size, unused;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		perfrecord_compose(&samples[i].record, buffer, sizeof(buffer), &size);
		for (size_t capacity = 0; capacity < size; capacity++) {
			CLEANUP_FREE uint8_t *exact = malloc(capacity + 1);

			assert_int_equal(
				perfrecord_compose(&samples[i].record, exact, capacity, &unused),
				-ENOSPC);
		}
		assert_int_equal(perfrecord_compose(&samples[i].record, buffer, size, &unused), 0);
	}
}

static void perfrecord_compose_long_strings_are_cut(void **state)
{
	static char path[2 * PATH_MAX];
	static uint8_t buffer[PERFRECORD_MAX_SIZE];
	struct perfrecord record = {.type = PERF_RECORD_COMM, .u.comm.comm = "sixteen_bytes_16"};
	struct perfrecord back;
	size_t size;

	(void)state;
	assert_int_equal(perfrecord_compose(&record, buffer, sizeof(buffer), &size), 0);
	assert_int_equal(perfrecord_parse(buffer, size, &back), 0);
	assert_string_equal(back.u.comm.comm, "sixteen_bytes_1");
	memset(path, 'p', sizeof(path) - 1);
	record = (struct perfrecord){.type = PERF_RECORD_MMAP2, .u.mmap2.filename = path};
	assert_int_equal(perfrecord_compose(&record, buffer, sizeof(buffer), &size), 0);
	assert_int_equal(perfrecord_parse(buffer, size, &back), 0);
	assert_int_equal(strlen(back.u.mmap2.filename), PATH_MAX - 1);
}

static void perfrecord_compose_raw_beyond_16_bits_has_no_space(void **state)
{
	static uint8_t body[70000], buffer[80000];
	struct perfrecord record = {.type = PERF_RECORD_KSYMBOL,
				    .u.raw = {body, PERFRECORD_MAX_SIZE - 40}};
	size_t size;

	(void)state;
	assert_int_equal(perfrecord_compose(&record, buffer, sizeof(buffer), &size), 0);
	assert_int_equal(size, PERFRECORD_MAX_SIZE);
	record.u.raw.size++;
	assert_int_equal(perfrecord_compose(&record, buffer, sizeof(buffer), &size), -ENOSPC);
	record.u.raw = (__typeof__(record.u.raw)){NULL, 8};
	assert_int_equal(perfrecord_compose(&record, buffer, sizeof(buffer), &size), -EINVAL);
}

/* Body and trailer in the order of perf_event.h, with all fields. */
static const uint64_t all_fields[] = {
	PERF_RECORD_EXIT | (uint64_t)(8 + 24 + 48) << 48,
	1 | UINT64_C(2) << 32, /* pid, ppid */
	3 | UINT64_C(4) << 32, /* tid, ptid */
	5,		       /* time */
	6 | UINT64_C(7) << 32, /* the trailer: pid, tid */
	8,		       /* time */
	9,		       /* id */
	10,		       /* stream id */
	11,		       /* cpu */
	9,		       /* id again */
};
#define ALL_FIELDS                                                                     \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

static void perfrecord_parse_as_all_fields_gives_them(void **state)
{
	/* The last three bits do not change the trailer. */
	const struct perfrecord_layout layout = {
		ALL_FIELDS | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW, true};
	struct perfrecord r;

	(void)state;
	assert_int_equal(perfrecord_sample_id_size(&layout), 48);
	assert_int_equal(perfrecord_parse_as(all_fields, sizeof(all_fields), &layout, &r), 0);
	assert_int_equal(r.u.task.ptid, 4);
	assert_int_equal(r.pid, 6);
	assert_int_equal(r.tid, 7);
	assert_int_equal(r.time, 8);
	assert_int_equal(r.id, 9);
	assert_int_equal(r.cpu, 11);
}

static void perfrecord_parse_as_without_trailer_knows_nobody(void **state)
{
	static const struct perfrecord_layout layouts[] = {{ALL_FIELDS, false}, {0, true}};
	uint64_t bytes[4];
	struct perfrecord r;

	(void)state;
	memcpy(bytes, all_fields, sizeof(bytes));
	bytes[0] = PERF_RECORD_EXIT | (uint64_t)sizeof(bytes) << 48;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		assert_int_equal(perfrecord_sample_id_size(&layouts[i]), 0);
		assert_int_equal(perfrecord_parse_as(bytes, sizeof(bytes), &layouts[i], &r), 0);
		assert_int_equal(r.u.task.pid, 1);
		assert_true(r.pid == UINT32_MAX && r.tid == UINT32_MAX && r.cpu == UINT32_MAX);
		assert_true(r.time == 0 && r.id == 0);
	}
}

static void perfrecord_parse_as_wrong_layout_is_refused(void **state)
{
	struct perfrecord_layout layout = {ALL_FIELDS, true};
	struct perfrecord r;

	(void)state;
	for (uint64_t bit = PERF_SAMPLE_TID; bit <= PERF_SAMPLE_IDENTIFIER; bit <<= 1) {
		if (!(ALL_FIELDS & bit))
			continue;
		layout.sample_type = ALL_FIELDS & ~bit;
		assert_int_equal(perfrecord_parse_as(all_fields, sizeof(all_fields), &layout, &r),
				 -EBADMSG);
		assert_int_equal(r.size, sizeof(all_fields));
	}
}

static void perfrecord_parse_as_mmap_is_the_mmap2_that_it_stands_for(void **state)
{
	static const struct perfrecord_layout layout = {PERF_SAMPLE_TIME, true};
	uint64_t bytes[] = {PERF_RECORD_MMAP | UINT64_C(56) << 48,
			    1 | UINT64_C(2) << 32,
			    0x400000,
			    0x1000,
			    0x2000,
			    'x',
			    77};
	struct perfrecord r;

	(void)state;
	assert_int_equal(perfrecord_parse_as(bytes, sizeof(bytes), &layout, &r), 0);
	assert_int_equal(r.type, PERF_RECORD_MMAP2);
	assert_int_equal(r.time, 77);
	assert_int_equal(r.u.mmap2.tid, 2);
	assert_int_equal(r.u.mmap2.pgoff, 0x2000);
	assert_int_equal(r.u.mmap2.prot, 5);
	assert_int_equal(r.u.mmap2.ino, 0);
	assert_string_equal(r.u.mmap2.filename, "x");
	bytes[0] |= (uint64_t)(PERF_RECORD_MISC_MMAP_DATA | PERF_RECORD_MISC_USER) << 32;
	assert_int_equal(perfrecord_parse_as(bytes, sizeof(bytes), &layout, &r), 0);
	assert_int_equal(r.u.mmap2.prot, 1);
	assert_int_equal(r.misc, PERF_RECORD_MISC_MMAP_DATA | PERF_RECORD_MISC_USER);
	/* Our own layout has no MMAP. */
	assert_int_equal(perfrecord_parse(bytes, sizeof(bytes), &r), PERFRECORD_UNKNOWN);
}

static void perfrecord_parse_as_sample_has_no_trailer(void **state)
{
	static const struct perfrecord_layout layout = {ALL_FIELDS, true};
	const uint64_t bytes[] = {PERF_RECORD_SAMPLE | UINT64_C(16) << 48, 1};
	struct perfrecord r;

	(void)state;
	assert_int_equal(perfrecord_parse_as(bytes, sizeof(bytes), &layout, &r),
			 PERFRECORD_UNKNOWN);
	assert_int_equal(r.u.raw.size, 8);
}

static void perfrecord_type_name_knows_the_kernels(void **state)
{
	(void)state;
	assert_string_equal(perfrecord_type_name(PERF_RECORD_MMAP2), "MMAP2");
	assert_string_equal(perfrecord_type_name(PERF_RECORD_SWITCH_CPU_WIDE), "SWITCH_CPU_WIDE");
	assert_null(perfrecord_type_name(0));
	assert_null(perfrecord_type_name(UINT32_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perfrecord_compose_then_parse_gives_the_same),
		cmocka_unit_test(perfrecord_parse_kernel_bytes_gives_the_fields),
		cmocka_unit_test(perfrecord_parse_truncated_anywhere_is_refused),
		cmocka_unit_test(perfrecord_parse_wrong_size_is_refused),
		cmocka_unit_test(perfrecord_parse_string_without_nul_is_refused),
		cmocka_unit_test(perfrecord_parse_long_build_id_is_refused),
		cmocka_unit_test(perfrecord_compose_short_buffer_has_no_space),
		cmocka_unit_test(perfrecord_compose_long_strings_are_cut),
		cmocka_unit_test(perfrecord_compose_raw_beyond_16_bits_has_no_space),
		cmocka_unit_test(perfrecord_parse_as_all_fields_gives_them),
		cmocka_unit_test(perfrecord_parse_as_without_trailer_knows_nobody),
		cmocka_unit_test(perfrecord_parse_as_wrong_layout_is_refused),
		cmocka_unit_test(perfrecord_parse_as_mmap_is_the_mmap2_that_it_stands_for),
		cmocka_unit_test(perfrecord_parse_as_sample_has_no_trailer),
		cmocka_unit_test(perfrecord_type_name_knows_the_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
