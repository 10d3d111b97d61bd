/*
 * ctl/decode/import_pevents: perf records of foreign layouts, composed by raw_compose() and read
 * back from the bundle.
 */
#include "ctl/decode/raw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/bundle/bundle.h"
#include "proto/bytes.h"
#include "proto/perf/perfrecord.h"

#define LAYOUT (PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

static char directory[] = "/tmp/test_pevents.XXXXXX";
static char pt[64], one[64], two[64], code[64];

/* The records of a file, for write_records(). */
static struct bytes_out out;

static void write_file(const char *name, const void *data, size_t size)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static int make_files(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(pt, sizeof(pt), "%s/pt", directory);
	snprintf(one, sizeof(one), "%s/one", directory);
	snprintf(two, sizeof(two), "%s/two", directory);
	snprintf(code, sizeof(code), "%s/code", directory);
	write_file(pt, "\x02\x82", 2);
	write_file(code, "0123456789abcdef", 16);
	bytes_out_init(&out, 1 << 16);
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	bytes_out_done(&out);
	unlink(pt);
	unlink(one);
	unlink(two);
	unlink(code);
	return rmdir(directory);
}

static void put_header(uint32_t type, uint16_t misc, size_t body)
{
	bytes_put_u32(&out, type);
	bytes_put_u16(&out, misc);
	bytes_put_u16(&out, (uint16_t)(8 + body + 16));
}

static void put_sample(uint64_t time)
{
	bytes_put_u32(&out, 7);
	bytes_put_u32(&out, 8);
	bytes_put_u64(&out, time);
}

/* A MMAP record of file "code". */
static void put_mmap(const char *name, uint16_t misc, uint64_t time)
{
	char text[16] = "";

	memcpy(text, name, strlen(name));
	put_header(PERF_RECORD_MMAP, misc, 32 + sizeof(text));
	bytes_put_u32(&out, 7);
	bytes_put_u32(&out, 8);
	bytes_put_u64(&out, 0x1000);
	bytes_put_u64(&out, 8);
	bytes_put_u64(&out, 3);
	bytes_put_block(&out, text, sizeof(text));
	put_sample(time);
}

static void put_start(uint64_t time)
{
	put_header(PERF_RECORD_ITRACE_START, 0, 8);
	bytes_put_u32(&out, 7);
	bytes_put_u32(&out, 8);
	put_sample(time);
}

static void write_records(const char *name)
{
	write_file(name, out.data, out.size);
	bytes_out_reset(&out);
}

/* The layout of --pevent:... before the file NAME. */
static void add_file(struct raw *raw, const char *name, bool secondary, uint64_t tsc_offset)
{
	struct option table[PEVENT_OPTIONS_MAX];
	size_t n = pevent_option_table(table, 0), i;
	const char *option = secondary ? "pevent:secondary" : "pevent:primary";

	raw->pevents.layout.sample_type = LAYOUT;
	raw->pevents.layout.tsc_offset = tsc_offset;
	for (i = 0; i < n && strcmp(table[i].name, option) != 0; i++)
		;
	assert_true(pevent_option_take(&raw->pevents, i, name));
}

static struct bundle *compose(const struct raw *raw)
{
	struct bundle *b = NULL;
	size_t cut;
	int fd = -1;

	assert_int_equal(raw_compose(raw, &fd, &cut), 0);
	assert_int_equal(bundle_open(fd, &b), 0);
	close(fd);
	return b;
}

static void expect(const uint8_t **pos, size_t *left, uint32_t type, uint64_t time, uint32_t cpu,
		   struct perfrecord *ret)
{
	assert_int_equal(perfrecord_parse(*pos, *left, ret), 0);
	*pos += ret->size;
	*left -= ret->size;
	assert_int_equal(ret->type, type);
	assert_int_equal(ret->time, time);
	assert_int_equal(ret->cpu, cpu);
}

static void compose_pevents_are_there_twice(void **state)
{
	CLEANUP(raw_done) struct raw raw;
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	const struct manifest *m;
	struct perfrecord r;
	const uint8_t *data;
	size_t size;

	(void)state;
	raw_init(&raw);
	raw.pt_path = pt;
	raw.pevents.layout.time_mult = 2;
	raw.pevents.layout.time_shift = 1;
	raw.pevents.layout.time_zero = 1000;
	put_mmap("code", 0, 1000);
	put_mmap("[kernel]", PERF_RECORD_MISC_KERNEL, 1000);
	put_start(1001);
	write_records(one);
	put_start(1100);
	write_records(two);
	add_file(&raw, one, false, 0);
	add_file(&raw, two, true, 40);
	b = compose(&raw);
	m = bundle_manifest(b);
	assert_int_equal(m->n_pevents, 2);
	assert_string_equal(m->pevents[0].name, one);
	assert_true(m->pevents[1].secondary && m->pevents[1].tsc_offset == 40);
	assert_true(m->have_clock && m->time_shift == 1 && m->time_mult == 2 &&
		    m->time_zero == 1000);
	bundle_pevent(b, 0, &size);
	assert_int_equal(size, 2 * 72 + 32);

	/* The sideband has mappings of code with their whole names, and none of the kernel. Times
	 * of the other file are 40 ticks (of 1 ns) less. */
	data = bundle_sideband(b, &size);
	expect(&data, &size, PERF_RECORD_MMAP2, 1000, 0, &r);
	assert_string_equal(r.u.mmap2.filename, code);
	assert_int_equal(r.u.mmap2.pgoff, 3);
	assert_int_equal(r.pid, 7);
	expect(&data, &size, PERF_RECORD_ITRACE_START, 1001, 0, &r);
	expect(&data, &size, PERF_RECORD_ITRACE_START, 1060, 1, &r);
	assert_int_equal(size, 0);
	assert_int_equal(m->n_images, 1);
	assert_string_equal(m->images[0].path, code);
	bundle_image(b, 0, &size);
	assert_int_equal(size, 16);
}

static void compose_pevents_that_do_not_say_whose_leave_the_raw_images(void **state)
{
	CLEANUP(raw_done) struct raw raw;
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	struct perfrecord r;
	const uint8_t *data;
	char image[80];
	size_t size;

	(void)state;
	raw_init(&raw);
	raw.pt_path = pt;
	snprintf(image, sizeof(image), "%s@0x1000", code);
	assert_int_equal(raw_add_image(&raw, image), 0);
	put_mmap("//anon", 0, 5);
	write_records(one);
	add_file(&raw, one, false, 0);
	b = compose(&raw);
	data = bundle_sideband(b, &size);
	expect(&data, &size, PERF_RECORD_MMAP2, 5, 0, &r);
	assert_string_equal(r.u.mmap2.filename, "//anon");
	expect(&data, &size, PERF_RECORD_COMM, 0, 0, &r);
	expect(&data, &size, PERF_RECORD_ITRACE_START, 0, 0, &r);
	expect(&data, &size, PERF_RECORD_MMAP2, 0, 0, &r);
	assert_string_equal(r.u.mmap2.filename, code);
	assert_int_equal(bundle_manifest(b)->n_images, 1);
}

static void compose_pevents_nonsense_ends_the_file(void **state)
{
	CLEANUP(raw_done) struct raw raw;
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	struct perfrecord r;
	const uint8_t *data;
	size_t size;

	(void)state;
	raw_init(&raw);
	raw.pt_path = pt;
	put_start(5);
	put_header(PERF_RECORD_ITRACE_START, 0, 80);
	put_sample(5);
	write_records(one);
	add_file(&raw, one, false, 0);
	b = compose(&raw);
	data = bundle_sideband(b, &size);
	expect(&data, &size, PERF_RECORD_ITRACE_START, 5, 0, &r);
	assert_int_equal(size, 0);
}

static void compose_pevents_bad_files_are_refused(void **state)
{
	CLEANUP(raw_done) struct raw raw;
	char range[80];
	size_t cut;
	int fd;

	(void)state;
	raw_init(&raw);
	raw.pt_path = pt;
	add_file(&raw, "/nonexistent/sb", false, 0);
	assert_int_not_equal(raw_compose(&raw, &fd, &cut), 0);
	raw_done(&raw);
	raw.pt_path = pt;
	put_start(5);
	write_records(one);
	snprintf(range, sizeof(range), "%s:0-33", one);
	add_file(&raw, range, false, 0);
	assert_int_not_equal(raw_compose(&raw, &fd, &cut), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compose_pevents_are_there_twice),
		cmocka_unit_test(compose_pevents_that_do_not_say_whose_leave_the_raw_images),
		cmocka_unit_test(compose_pevents_nonsense_ends_the_file),
		cmocka_unit_test(compose_pevents_bad_files_are_refused),
	};

	return cmocka_run_group_tests_name("import_pevents", tests, make_files, remove_files);
}
