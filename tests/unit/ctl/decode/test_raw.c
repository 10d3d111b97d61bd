/*
 * ctl/decode/raw: texts of options, and the composed bundle read back by proto/bundle.
 */
#include "ctl/decode/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/bundle/bundle.h"
#include "proto/perf/perfrecord.h"

#include "ctl/base/say.h"

static char directory[] = "/tmp/test_raw.XXXXXX";
static char path[4][64]; /* pt, a:b, c@1, empty */
static const uint8_t PT[] = {0x02, 0x82, 0x02, 0x82, 0x00};

static void write_file(const char *name, const void *data, size_t size)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static int make_files(void **state)
{
	static const char *const names[] = {"pt", "a:b", "c@1", "empty"};
	uint8_t bytes[256];

	(void)state;
	assert_non_null(mkdtemp(directory));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		snprintf(path[i], sizeof(path[i]), "%s/%s", directory, names[i]);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	write_file(path[0], PT, sizeof(PT));
	write_file(path[1], bytes, sizeof(bytes));
	write_file(path[2], bytes, 16);
	write_file(path[3], bytes, 0);
	return 0;
}

static int remove_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(path); i++)
		unlink(path[i]);
	return rmdir(directory);
}

static void add_image_forms(void **state)
{
	static const struct {
		const char *text;
		int result;
		const char *path;
		uint64_t offset, length, vaddr;
	} cases[] = {
		{"f@0x401000", 0, "f", 0, UINT64_MAX, 0x401000},
		{"f:0x10:32@4096", 0, "f", 0x10, 32, 4096},
		{"a@b:c:1:2@3", 0, "a@b:c", 1, 2, 3},
		{"f:1@3", 0, "f:1", 0, UINT64_MAX, 3},
		{"f:x:2@3", 0, "f:x:2", 0, UINT64_MAX, 3},
		{"1:2:3:4@5", 0, "1:2", 3, 4, 5},
		{"f:0:1@0xffffffffffffffff", 0, "f", 0, 1, UINT64_MAX},
		{"f:0:2@0xffffffffffffffff", -ERANGE, NULL, 0, 0, 0},
		{"f:0xffffffffffffffff:2@0", -ERANGE, NULL, 0, 0, 0},
		{"f:0:0@1", -EINVAL, NULL, 0, 0, 0},
		{"f@0x10000000000000000", -ERANGE, NULL, 0, 0, 0},
		{"f", -EINVAL, NULL, 0, 0, 0},
		{"f@", -EINVAL, NULL, 0, 0, 0},
		{"f@x", -EINVAL, NULL, 0, 0, 0},
		{"@1", -EINVAL, NULL, 0, 0, 0},
		{":1:2@1", -EINVAL, NULL, 0, 0, 0},
		{"", -EINVAL, NULL, 0, 0, 0},
	};
	struct raw raw;

	(void)state;
	raw_init(&raw);
	for (size_t i = 0, n = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(raw_add_image(&raw, cases[i].text), cases[i].result);
		assert_int_equal(raw.n_images, n + (cases[i].result == 0));
		if (cases[i].result < 0)
			continue;
		assert_string_equal(raw.images[n].path, cases[i].path);
		assert_int_equal(raw.images[n].offset, cases[i].offset);
		assert_true(raw.images[n].length == cases[i].length);
		assert_true(raw.images[n].vaddr == cases[i].vaddr);
		n++;
	}
	raw_done(&raw);
}

static void set_cpu_and_cpuid_forms(void **state)
{
	static const struct {
		const char *text;
		int cpu, cpuid;
	} cases[] = {
		{"6/85/4", 0, -EINVAL},
		{"6/0x55", 0, -EINVAL},
		{"6", -EINVAL, -EINVAL},
		{"6/85/", -EINVAL, -EINVAL},
		{"6/85/4/1", -EINVAL, -EINVAL},
		{"", -EINVAL, -EINVAL},
		{"6/256", -ERANGE, -EINVAL},
		{"6/1/16", -ERANGE, -EINVAL},
		{"2,308", -EINVAL, 0},
		{"2,", -EINVAL, -EINVAL},
		{"2,0x100000000", -EINVAL, -ERANGE},
	};
	struct raw raw;

	(void)state;
	raw_init(&raw);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(raw_set_cpu(&raw, cases[i].text), cases[i].cpu);
		assert_int_equal(raw_set_cpuid_0x15(&raw, cases[i].text), cases[i].cpuid);
	}
	assert_true(raw.have_cpu);
	assert_int_equal(raw.model, 0x55);
	assert_int_equal(raw.stepping, 0);
	assert_int_equal(raw.tsc_art_den, 2);
	assert_int_equal(raw.tsc_art_num, 308);
}

/* Takes the next record of the bundle's sideband. Returns false at the end. */
static bool next_record(const uint8_t **pos, size_t *left, struct perfrecord *ret)
{
	if (*left == 0)
		return false;
	assert_int_equal(perfrecord_parse(*pos, *left, ret), 0);
	*pos += ret->size;
	*left -= ret->size;
	return true;
}

static void add(struct raw *raw, const char *file, const char *rest)
{
	char text[128];

	snprintf(text, sizeof(text), "%s%s", file, rest);
	assert_int_equal(raw_add_image(raw, text), 0);
}

static void compose_into(struct raw *raw, struct bundle **ret, size_t *ret_cut)
{
	int fd = -1;

	assert_int_equal(raw_compose(raw, &fd, ret_cut), 0);
	assert_int_equal(bundle_open(fd, ret), 0);
	close(fd);
}

static void compose_two_files_reads_back(void **state)
{
	CLEANUP(raw_done) struct raw raw;
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	struct perfrecord record;
	const struct manifest *m;
	const uint8_t *data;
	size_t size, cut;

	(void)state;
	raw_init(&raw);
	raw.pt_path = path[0];
	raw.mtc_period = 3;
	raw.max_nonturbo_ratio = 37;
	assert_int_equal(raw_set_cpu(&raw, "6/85/4"), 0);
	assert_int_equal(raw_set_cpuid_0x15(&raw, "2,308"), 0);
	add(&raw, path[1], ":3:5@0x401003");
	add(&raw, path[2], "@0x7000");
	add(&raw, path[1], ":250:100@0x500000");
	compose_into(&raw, &b, &cut);
	assert_int_equal(cut, 1);

	m = bundle_manifest(b);
	assert_string_equal(m->source, "raw");
	assert_true(m->have_cpu && m->cpu_intel);
	assert_int_equal(m->cpu_family << 16 | m->cpu_model << 8 | m->cpu_stepping, 0x065504);
	assert_int_equal(m->mtc_period, 3);
	assert_int_equal(m->max_nonturbo_ratio, 37);
	assert_int_equal(m->tsc_art_den, 2);
	assert_int_equal(m->tsc_art_num, 308);
	assert_int_equal(m->n_cpus, 1);
	assert_int_equal(m->n_images, 2);

	data = bundle_cpu(b, 0, &size);
	assert_int_equal(size, sizeof(PT));
	assert_memory_equal(data, PT, sizeof(PT));
	data = bundle_image(b, 0, &size);
	assert_int_equal(size, 256);
	assert_int_equal(data[200], 200);
	bundle_image(b, 1, &size);
	assert_int_equal(size, 16);

	data = bundle_sideband(b, &size);
	assert_true(next_record(&data, &size, &record));
	assert_int_equal(record.type, PERF_RECORD_COMM);
	assert_string_equal(record.u.comm.comm, "raw");
	assert_int_equal(record.time, 0);
	assert_true(next_record(&data, &size, &record));
	assert_int_equal(record.type, PERF_RECORD_ITRACE_START);
	assert_int_equal(record.u.itrace_start.tid, 1);
	assert_int_equal(record.cpu, 0);

	/* Each mapping, unaligned as given, and the image of its inode. */
	static const struct {
		uint64_t addr, len, pgoff, ino;
	} mappings[] = {{0x401003, 5, 3, 1}, {0x7000, 16, 0, 2}, {0x500000, 6, 250, 1}};
	for (size_t i = 0; i < ARRAY_SIZE(mappings); i++) {
		assert_true(next_record(&data, &size, &record));
		assert_int_equal(record.type, PERF_RECORD_MMAP2);
		assert_int_equal(record.u.mmap2.pid, 1);
		assert_int_equal(record.u.mmap2.addr, mappings[i].addr);
		assert_int_equal(record.u.mmap2.len, mappings[i].len);
		assert_int_equal(record.u.mmap2.pgoff, mappings[i].pgoff);
		assert_int_equal(record.u.mmap2.ino, mappings[i].ino);
		assert_int_equal(record.u.mmap2.prot, PROT_READ | PROT_EXEC);
		assert_int_equal(m->images[mappings[i].ino - 1].ino, mappings[i].ino);
		assert_string_equal(m->images[mappings[i].ino - 1].path, record.u.mmap2.filename);
	}
	assert_false(next_record(&data, &size, &record));
}

static void compose_hundreds_of_ranges_hold_one_image(void **state)
{
	CLEANUP(raw_done) struct raw raw;
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	size_t cut, size, n = 0;
	struct perfrecord record;
	const uint8_t *data;
	char rest[64];

	(void)state;
	raw_init(&raw);
	raw.pt_path = path[0];
	for (unsigned i = 0; i < 700; i++) {
		snprintf(rest, sizeof(rest), ":%u:1@0x%x", i % 256, 0x10000 + i * 16);
		add(&raw, path[1], rest);
	}
	compose_into(&raw, &b, &cut);
	assert_int_equal(cut, 0);
	assert_int_equal(bundle_manifest(b)->n_images, 1);
	data = bundle_sideband(b, &size);
	while (next_record(&data, &size, &record))
		n++;
	assert_int_equal(n, 702);
}

static void compose_large_file_takes_what_is_needed(void **state)
{
	CLEANUP(raw_done) struct raw raw;
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	char name[80];
	const uint8_t *data;
	size_t size, cut;
	int fd;

	(void)state;
	snprintf(name, sizeof(name), "%s/sparse", directory);
	fd = open(name, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(ftruncate(fd, 1ll << 40), 0);
	assert_int_equal(pwrite(fd, "code", 4, 1ll << 39), 4);
	close(fd);
	raw_init(&raw);
	raw.pt_path = path[0];
	add(&raw, name, ":0x8000000000:4@0x1000");
	add(&raw, name, ":0x8000000ff0:0x10@0x2000");
	compose_into(&raw, &b, &cut);
	unlink(name);
	assert_int_equal(bundle_manifest(b)->images[0].offset, 1ull << 39);
	data = bundle_image(b, 0, &size);
	assert_int_equal(size, 0x1000);
	assert_memory_equal(data, "code", 4);
}

/* Returns the exit code of composing with one --raw-image, or with none. */
static int code_of(const char *pt, const char *image, const char *rest)
{
	CLEANUP(raw_done) struct raw raw;
	size_t cut = 0;
	int fd = -1, r;

	raw_init(&raw);
	raw.pt_path = pt;
	if (image)
		add(&raw, image, rest);
	r = raw_compose(&raw, &fd, &cut);
	if (fd >= 0)
		close(fd);
	return r;
}

static void compose_bad_files_are_failures(void **state)
{
	(void)state;
	assert_int_equal(code_of(path[0], NULL, NULL), 0);
	assert_int_equal(code_of(path[3], NULL, NULL), EXIT_CODE_FAILURE);
	assert_int_equal(code_of("/nonexistent/pt", NULL, NULL), EXIT_CODE_FAILURE);
	assert_int_equal(code_of(directory, NULL, NULL), EXIT_CODE_FAILURE);
	assert_int_equal(code_of("/dev/zero", NULL, NULL), EXIT_CODE_FAILURE);
	assert_int_equal(code_of(path[0], path[3], "@1"), EXIT_CODE_FAILURE);
	assert_int_equal(code_of(path[0], path[2], ":16:1@1"), EXIT_CODE_FAILURE);
	assert_int_equal(code_of(path[0], path[2], ":15:1@1"), 0);
	assert_int_equal(code_of(path[0], path[2], "@0xfffffffffffffff0"), 0);
	assert_int_equal(code_of(path[0], path[2], "@0xfffffffffffffff1"), EXIT_CODE_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add_image_forms),
		cmocka_unit_test(set_cpu_and_cpuid_forms),
		cmocka_unit_test(compose_two_files_reads_back),
		cmocka_unit_test(compose_hundreds_of_ranges_hold_one_image),
		cmocka_unit_test(compose_large_file_takes_what_is_needed),
		cmocka_unit_test(compose_bad_files_are_failures),
	};

	return cmocka_run_group_tests_name("raw", tests, make_files, remove_files);
}
