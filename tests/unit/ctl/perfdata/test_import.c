/*
 * ctl/perfdata, import: synthetic perf.data files, and the bundles that they become.
 */
#include "ctl/perfdata/import_perfdata.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zstd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/bundle/bundle.h"
#include "proto/memfd.h"
#include "proto/perf/perfrecord.h"
#include "tests/support/make_perfdata.h"

#include "ctl/base/say.h"
#include "ctl/perfdata/import_images.h"
#include "ctl/perfdata/import_private.h"

static char root[] = "/tmp/test_import.XXXXXX";

static int make_root(void **state)
{
	CLEANUP(bytes_out_done) struct bytes_out program;
	char path[128];
	FILE *f;

	(void)state;
	bytes_out_init(&program, 1 << 20);
	make_program(&program);
	assert_non_null(mkdtemp(root));
	setenv("HOME", root, 1);
	snprintf(path, sizeof(path), "%s/usr", root);
	assert_int_equal(mkdir(path, 0777), 0);
	snprintf(path, sizeof(path), "%s/usr/bin", root);
	assert_int_equal(mkdir(path, 0777), 0);
	snprintf(path, sizeof(path), "%s%s", root, MAKE_PATH);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(program.data, 1, program.size, f), program.size);
	assert_int_equal(fclose(f), 0);
	return 0;
}

static int remove_root(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s%s", root, MAKE_PATH);
	unlink(path);
	snprintf(path, sizeof(path), "%s/usr/bin", root);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/usr", root);
	rmdir(path);
	return rmdir(root);
}

/* Imports without the messages about expected failures. */
static int import_quietly(int fd, const char *sysroot, int *ret_fd)
{
	CLEANUP_CLOSE int saved = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);
	int r;

	assert_true(saved >= 0 && null >= 0);
	dup2(null, STDERR_FILENO);
	r = import_perfdata(fd, "FILE", sysroot, false, ret_fd);
	dup2(saved, STDERR_FILENO);
	return r;
}

static int import_bytes(const uint8_t *bytes, size_t size, const char *sysroot, struct bundle **ret)
{
	CLEANUP_CLOSE int fd = -EBADF, bundle = -EBADF;
	int r;

	assert_int_equal(memfd_new("test", 0, &fd), 0);
	assert_int_equal(memfd_write_all(fd, bytes, size), 0);
	r = import_quietly(fd, sysroot, &bundle);
	if (r == 0)
		assert_int_equal(bundle_open(bundle, ret), 0);
	return r;
}

static int import_how(const struct make_perfdata *how, struct bundle **ret)
{
	CLEANUP(bytes_out_done) struct bytes_out file;

	bytes_out_init(&file, 1 << 24);
	assert_int_equal(make_perfdata(how, &file), 0);
	return import_bytes(file.data, file.size, root, ret);
}

static struct bundle *imported(const char *kind)
{
	struct bundle *b;

	assert_int_equal(import_how(make_perfdata_kind(kind), &b), 0);
	return b;
}

static void check_trace(const struct bundle *b, size_t cpu, const struct make_bundle *how)
{
	CLEANUP(bytes_out_done) struct bytes_out trace;
	const uint8_t *bytes;
	size_t size;

	bytes_out_init(&trace, 1 << 20);
	make_trace(how, &trace);
	bytes = bundle_cpu(b, cpu, &size);
	assert_int_equal(size, trace.size);
	assert_memory_equal(bytes, trace.data, size);
}

/* The trace does not depend on layout, pieces and compression. */
static void import_every_kind_has_the_whole_trace(void **state)
{
	static const char *const kinds[] = {
		"plain",   "tasks",	 "kernel",     "cpus",	      "mixed",	"ids",
		"nocpu",   "notime",	 "nosampleid", "notsc",	      "thread", "pieces",
		"overlap", "compressed", "every",      "compressed2", "old",	"unfinished",
		"buildid", "mismatch",	 "mapbuildid", "mapmismatch"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		CLEANUP(bundle_freep) struct bundle *b = imported(kinds[i]);
		const struct make_bundle *how = &make_perfdata_kind(kinds[i])->recorded;

		assert_int_equal(bundle_manifest(b)->n_cpus, MAX_OF(how->n_cpus, 1u));
		for (size_t cpu = 0; cpu < bundle_manifest(b)->n_cpus; cpu++)
			check_trace(b, cpu, how);
		assert_int_equal(bundle_manifest(b)->n_notes, 0);
		/* Snapshots pause the trace. */
		assert_int_equal(bundle_manifest(b)->n_seams, strcmp(kinds[i], "overlap") == 0);
	}
}

/* Records with all fields stay the same, except for the id of their event. */
static void import_records_come_out_as_they_were(void **state)
{
	static const char *const kinds[] = {"plain", "cpus", "compressed", "mixed"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		CLEANUP(bundle_freep) struct bundle *b = imported(kinds[i]);
		CLEANUP(bytes_out_done) struct bytes_out expected;
		const uint8_t *records;
		struct perfrecord r, e;
		size_t size;

		bytes_out_init(&expected, 1 << 20);
		make_sideband(&make_perfdata_kind(kinds[i])->recorded, &expected);
		records = bundle_sideband(b, &size);
		assert_int_equal(size, expected.size);
		for (size_t at = 0; at < size; at += r.size) {
			assert_int_equal(perfrecord_parse(records + at, size - at, &r), 0);
			assert_int_equal(perfrecord_parse(expected.data + at, size - at, &e), 0);
			assert_memory_equal(records + at, expected.data + at,
					    r.size - PERFRECORD_SAMPLE_ID_SIZE);
			assert_true(r.time == e.time && r.cpu == e.cpu);
			assert_true(r.time == 0 || (r.pid == e.pid && r.tid == e.tid));
		}
	}
}

static void import_manifest_has_what_the_file_says(void **state)
{
	CLEANUP(bundle_freep) struct bundle *b = imported("plain");
	const struct manifest *m = bundle_manifest(b);

	(void)state;
	assert_string_equal(m->source, "intel_pt");
	assert_string_equal(m->hostname, "synthetic");
	assert_null(m->kernel_release);
	assert_true(m->have_cpu && m->cpu_intel);
	assert_int_equal(m->cpu_family, 6);
	assert_int_equal(m->cpu_model, 94);
	assert_int_equal(m->cpu_stepping, 3);
	assert_true(m->have_clock);
	assert_int_equal(m->time_mult, 1);
	assert_int_equal(m->pt_config, MAKE_CONFIG);
	assert_true(m->trace_user && !m->trace_kernel);
	assert_true(m->mtc_period == UINT32_MAX);
	assert_int_equal(m->tsc_art_num, 100);
	assert_int_equal(m->tsc_art_den, 2);
	assert_int_equal(m->max_nonturbo_ratio, 30);
	assert_int_equal(m->cpus[0].cpu, 0);
	assert_true(m->cpus[0].tid == MANIFEST_ANY);
}

static void import_filters_are_known(void **state)
{
	static const struct {
		const char *kind;
		unsigned int filters;
	} cases[] = {
		{"plain", MANIFEST_ONLY_USER | MANIFEST_ONLY_TASKS},
		{"kernel", MANIFEST_ONLY_TASKS},
		{"filter", MANIFEST_ONLY_USER | MANIFEST_ONLY_TASKS | MANIFEST_ONLY_ADDRESSES},
		{"paused", MANIFEST_ONLY_USER | MANIFEST_ONLY_TASKS | MANIFEST_ONLY_BETWEEN},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(bundle_freep) struct bundle *b = imported(cases[i].kind);

		assert_int_equal(manifest_filters(bundle_manifest(b)), cases[i].filters);
	}
}

/* Whatever the packets are, perf said that there are no TNT packets. */
static void import_without_tnt_is_of_targets(void **state)
{
	CLEANUP(bundle_freep) struct bundle *b = imported("notnt");

	(void)state;
	assert_int_equal(manifest_contents(bundle_manifest(b)), MANIFEST_TARGETS);
}

static void import_thread_is_of_any_cpu(void **state)
{
	CLEANUP(bundle_freep) struct bundle *b = imported("thread");
	const struct manifest *m = bundle_manifest(b);

	(void)state;
	assert_int_equal(m->n_cpus, 1);
	assert_true(m->cpus[0].cpu == MANIFEST_ANY);
	assert_int_equal(m->cpus[0].tid, MAKE_TID);
	assert_true(m->have_clock);
}

/* Records without time get times in the order of the file, and the bundle has no clock. */
static void import_timeless_records_have_an_order(void **state)
{
	static const char *const kinds[] = {"notime", "notsc", "nosampleid"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		CLEANUP(bundle_freep) struct bundle *b = imported(kinds[i]);
		const uint8_t *records;
		uint64_t time = 0;
		struct perfrecord r;
		size_t size;

		assert_false(bundle_manifest(b)->have_clock);
		records = bundle_sideband(b, &size);
		for (size_t at = 0; at < size; at += r.size) {
			assert_int_equal(perfrecord_parse(records + at, size - at, &r), 0);
			assert_int_equal(r.time, ++time);
		}
		assert_true(time > 3);
	}
}

static void import_images_come_from_the_sysroot_only(void **state)
{
	CLEANUP(bundle_freep) struct bundle *b = imported("plain"), *none = NULL;
	CLEANUP(bytes_out_done) struct bytes_out program, file;
	const struct manifest_image *image = &bundle_manifest(b)->images[0];
	const uint8_t *bytes;
	size_t size;

	(void)state;
	bytes_out_init(&program, 1 << 20);
	bytes_out_init(&file, 1 << 20);
	make_program(&program);
	assert_int_equal(bundle_manifest(b)->n_images, 1);
	assert_null(image->missing);
	assert_null(image->build_id);
	assert_true(image->unverified);
	assert_int_equal(image->ino, 99);
	bytes = bundle_image(b, 0, &size);
	assert_int_equal(size, program.size);
	assert_memory_equal(bytes, program.data, size);
	/* This machine has no file of that name. */
	assert_int_equal(make_perfdata(make_perfdata_kind("buildid"), &file), 0);
	assert_int_equal(import_bytes(file.data, file.size, NULL, &none), 0);
	image = &bundle_manifest(none)->images[0];
	assert_string_equal(image->missing, "No such file or directory");
	assert_string_equal(image->build_id, "abababababababababababababababababababab");
	bundle_freep(&none);
	assert_int_equal(import_bytes(file.data, file.size, "/nonexistent", &none), 0);
	assert_non_null(bundle_manifest(none)->images[0].missing);
}

/* A path that leads out of the sysroot ends at the top of the sysroot. */
static void import_images_links_stay_in_the_sysroot(void **state)
{
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	CLEANUP(bytes_out_done) struct bytes_out file;
	char link[64], target[128];

	(void)state;
	bytes_out_init(&file, 1 << 20);
	snprintf(link, sizeof(link), "%s/sysroot", root);
	assert_int_equal(mkdir(link, 0777), 0);
	snprintf(link, sizeof(link), "%s/sysroot/usr", root);
	snprintf(target, sizeof(target), "../usr");
	assert_int_equal(symlink(target, link), 0);
	snprintf(target, sizeof(target), "%s/sysroot", root);
	assert_int_equal(make_perfdata(make_perfdata_kind("plain"), &file), 0);
	assert_int_equal(import_bytes(file.data, file.size, target, &b), 0);
	assert_non_null(bundle_manifest(b)->images[0].missing);
	unlink(link);
	rmdir(target);
}

/* perf's cache: ~/.debug/.build-id/AB/ABAB.../elf. */
/* The bundle with the file PATH alone, which process 42 maps with the inode INO. */
static struct bundle *import_file(const char *path, uint64_t ino)
{
	struct perfrecord r = {.type = PERF_RECORD_MMAP2};
	CLEANUP_CLOSE int fd = -EBADF;
	struct import_images images;
	struct bundle_writer w;
	struct bundle *bundle;
	struct manifest m;

	r.u.mmap2.pid = r.u.mmap2.tid = 42;
	r.u.mmap2.len = 0x1000;
	r.u.mmap2.prot = PROT_READ | PROT_EXEC;
	r.u.mmap2.ino = ino;
	r.u.mmap2.filename = path;
	import_images_init(&images);
	manifest_init(&m);
	m.id = strdup("dump");
	m.version = strdup("0");
	m.trigger_kind = strdup("offline");
	m.source = strdup("raw");
	assert_int_equal(memfd_new("test", 0, &fd), 0);
	bundle_writer_init(&w, fd);
	assert_int_equal(import_images_add(&images, &r), 0);
	assert_int_equal(import_images_write(&images, NULL, &m, &w), 0);
	assert_int_equal(bundle_write_end(&w, &m), 0);
	assert_int_equal(bundle_open(fd, &bundle), 0);
	import_images_done(&images);
	manifest_done(&m);
	return bundle;
}

/* A file of a later process that had the same number is another one. */
static void import_images_jitdump_is_the_one_that_was_mapped(void **state)
{
	const struct manifest_image *image;
	struct bundle *b;
	char path[128];
	struct stat st;
	size_t size;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/jit-42.dump", root);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fputs("a dump", f) < 0, 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(stat(path, &st), 0);
	b = import_file(path, st.st_ino);
	image = &bundle_manifest(b)->images[0];
	assert_string_equal(image->kind, MANIFEST_IMAGE_JITDUMP);
	assert_int_equal(image->pid, 42);
	assert_int_equal(image->read_ns, MANIFEST_ABSENT);
	assert_false(image->unverified);
	assert_memory_equal(bundle_image(b, 0, &size), "a dump", 6);
	bundle_free(b);
	b = import_file(path, st.st_ino + 1);
	image = &bundle_manifest(b)->images[0];
	assert_string_equal(image->kind, MANIFEST_IMAGE_JITDUMP);
	assert_string_equal(image->missing, "another file has its name now");
	bundle_free(b);
	unlink(path);
	b = import_file("/usr/jit-.dump", 5);
	assert_null(bundle_manifest(b)->images[0].kind);
	bundle_free(b);
}

static void import_images_copy_by_build_id_comes_first(void **state)
{
	static const char *const folders[] = {
		".debug", ".debug/.build-id", ".debug/.build-id/ab",
		".debug/.build-id/ab/ababababababababababababababababababab"};
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	char path[256];
	size_t size;
	FILE *f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, folders[i]);
		assert_int_equal(mkdir(path, 0777), 0);
	}
	snprintf(path, sizeof(path), "%s/%s/elf", root, folders[3]);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("copy", f);
	assert_int_equal(fclose(f), 0);
	b = imported("mapbuildid");
	assert_false(bundle_manifest(b)->images[0].unverified);
	assert_memory_equal(bundle_image(b, 0, &size), "copy", 4);
	assert_int_equal(size, 4);
	unlink(path);
	for (size_t i = ARRAY_SIZE(folders); i-- > 0;) {
		snprintf(path, sizeof(path), "%s/%s", root, folders[i]);
		rmdir(path);
	}
}

/* The pieces of a trace that was made by `perf record --snapshot', joined. The manifest is the
 * caller's to empty. */
static void join(struct import_piece *pieces, size_t n, struct manifest *m,
		 struct import_traces *counts)
{
	CLEANUP_CLOSE int fd = -EBADF;
	struct bundle_writer w;

	*counts = (struct import_traces){.pieces = pieces, .n = n};
	for (size_t i = 0; i < n; i++) {
		pieces[i].tid = PERFDATA_ANY;
		pieces[i].place = i;
	}
	assert_int_equal(memfd_new("test", 0, &fd), 0);
	bundle_writer_init(&w, fd);
	manifest_init(m);
	assert_int_equal(import_traces_write(counts, "FILE", true, m, &w), 0);
}

#define PSB	    "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

static void traces_write_pieces_apart_have_a_seam_at_the_next_psb(void **state)
{
	struct import_piece pieces[] = {
		{0, 0, 0, BYTES(PSB "one"), 0},
		/* Without a PSB: nothing of it can be read, and nothing of the piece that continues
		 * it, up to its PSB. */
		{0, 0, 5000, BYTES("two"), 0},
		{0, 0, 5003, BYTES("three" PSB "more"), 0},
		{0, 0, 9000, BYTES(PSB), 0},
	};
	struct import_traces counts;
	struct manifest m;

	(void)state;
	join(pieces, ARRAY_SIZE(pieces), &m, &counts);
	assert_int_equal(m.n_seams, 2);
	assert_string_equal(m.seams[0].kind, "trace-missing");
	assert_int_equal(m.seams[0].offset, 19);
	assert_string_equal(m.seams[1].kind, "trace-missing");
	assert_int_equal(m.seams[1].offset, 19 + 20);
	assert_int_equal(m.cpus[0].bytes, 19 + 20 + 16);
	assert_int_equal(counts.cut, 2);
	assert_int_equal(counts.copies, 0);
	manifest_done(&m);
}

/* perf pauses the trace when it takes a snapshot, although the bytes go on. */
static void traces_write_snapshots_that_continue_pause_the_trace(void **state)
{
	struct import_piece pieces[] = {
		{0, 0, 0, BYTES(PSB "one"), 0}, {0, 0, 19, BYTES(PSB "two"), 0},
		{0, 0, 38, BYTES("three"), 0},	{1, 0, 0, BYTES(PSB "four"), 0},
		{1, 0, 20, BYTES(PSB), 0},
	};
	struct import_traces counts;
	struct manifest m;

	(void)state;
	join(pieces, ARRAY_SIZE(pieces), &m, &counts);
	assert_int_equal(m.n_seams, 2);
	assert_string_equal(m.seams[0].kind, "snapshot-copy");
	assert_int_equal(m.seams[0].offset, 19);
	assert_int_equal(m.seams[1].trace, 1);
	assert_int_equal(m.seams[1].offset, 20);
	assert_int_equal(m.cpus[0].bytes, 19 + 19 + 5);
	assert_int_equal(counts.cut, 0);
	assert_int_equal(counts.copies, 1);
	manifest_done(&m);
}

static void import_lost_pieces_are_noted(void **state)
{
	CLEANUP(bundle_freep) struct bundle *b = imported("hole");
	const struct manifest *m = bundle_manifest(b);

	(void)state;
	assert_int_equal(m->n_notes, 1);
	assert_string_equal(m->notes[0].kind, "head");
	assert_int_equal(m->notes[0].count, 1);
	assert_int_equal(m->n_seams, 1);
	assert_string_equal(m->seams[0].kind, "trace-missing");
}

static void import_unusable_files_fail(void **state)
{
	static const char *const kinds[] = {"bts", "short", "noinfo", "notrace"};
	struct bundle *b;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		assert_int_equal(import_how(make_perfdata_kind(kinds[i]), &b), EXIT_CODE_FAILURE);
}

static void import_truncated_anywhere_fails(void **state)
{
	CLEANUP(bytes_out_done) struct bytes_out file;
	struct bundle *b;

	(void)state;
	bytes_out_init(&file, 1 << 20);
	assert_int_equal(make_perfdata(make_perfdata_kind("compressed"), &file), 0);
	for (size_t cut = 0; cut < file.size; cut++)
		assert_int_equal(import_bytes(file.data, cut, root, &b), EXIT_CODE_FAILURE);
}

/* A changed byte in compressed records gives an error or other records, and reading ends. */
static void import_damaged_records_are_errors_or_notes(void **state)
{
	CLEANUP(bytes_out_done) struct bytes_out file;
	size_t bad = 0;

	(void)state;
	bytes_out_init(&file, 1 << 20);
	assert_int_equal(make_perfdata(make_perfdata_kind("compressed"), &file), 0);
	for (size_t at = 104 + 144 + 8; at < file.size; at++) {
		CLEANUP(bundle_freep) struct bundle *b = NULL;

		file.data[at] ^= 0x55;
		if (import_bytes(file.data, file.size, root, &b) == 0)
			bad += bundle_manifest(b)->n_notes;
		file.data[at] ^= 0x55;
	}
	assert_true(bad > 0);
}

static void traces_overlap_is_found_by_its_psb(void **state)
{
	static const struct make_bundle how = {.rounds = 40, .rounds_per_psb = 4};
	CLEANUP(bytes_out_done) struct bytes_out t;

	(void)state;
	bytes_out_init(&t, 1 << 20);
	make_trace(&how, &t);
	/* A ends at 700, and B begins at FROM. The overlap is found if A has a PSB of B. */
	for (size_t from = 100; from < 699; from++) {
		const uint8_t *psb = memmem(t.data + from, t.size - from, t.data, 16);
		size_t same = import_traces_overlap(t.data, 700, t.data + from, t.size - from);
		bool seen = psb != NULL && psb + 16 <= t.data + 700;

		if (seen)
			assert_int_equal(same, 700 - from);
		else
			assert_true(same == 0 || same == 700 - from);
	}
	assert_int_equal(import_traces_overlap(t.data, 700, t.data + 700, t.size - 700), 0);
	assert_int_equal(import_traces_overlap(t.data, 0, t.data, t.size), 0);
	assert_int_equal(import_traces_overlap(t.data, t.size, t.data, 0), 0);
}

/* A trace of nothing but PSBs: the number of comparisons is bounded. */
static void traces_overlap_of_many_psbs_ends(void **state)
{
	static uint8_t a[1 << 20], b[1 << 19];

	(void)state;
	for (size_t i = 0; i < sizeof(a); i += 2)
		memcpy(a + i, "\x02\x82", 2);
	memcpy(b, a, sizeof(b));
	b[sizeof(b) - 1] = 0;
	(void)import_traces_overlap(a, sizeof(a), b, sizeof(b));
	(void)import_traces_overlap(b, sizeof(b), a, sizeof(a));
}

static int count_record(void *userdata, const struct perfdata_record *record)
{
	*(uint64_t *)userdata += record->size;
	return 0;
}

/* A few KiB that decompress to 3 GiB. */
static void zstd_feed_bomb_is_refused(void **state)
{
	static uint8_t packed[1 << 20], plain[1 << 24];
	const struct perf_event_header header = {.type = 60, .size = 1 << 15};
	uint64_t total = 0;
	struct import_zstd *z;
	size_t size;
	int r = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(plain); i += header.size)
		memcpy(plain + i, &header, sizeof(header));
	size = ZSTD_compress(packed, sizeof(packed), plain, sizeof(plain), 1);
	assert_false(ZSTD_isError(size));
	assert_int_equal(import_zstd_new(count_record, &total, &z), 0);
	for (unsigned i = 0; i < 192 && r == 0; i++)
		r = import_zstd_feed(z, packed, size);
	assert_int_equal(r, -E2BIG);
	assert_true(total <= 2ull << 30);
	import_zstd_free(z);
}

static void zstd_feed_garbage_is_refused(void **state)
{
	uint64_t total = 0;
	struct import_zstd *z;

	(void)state;
	assert_int_equal(import_zstd_new(count_record, &total, &z), 0);
	assert_int_equal(import_zstd_feed(z, (const uint8_t *)"no zstd", 7), -EBADMSG);
	assert_int_equal(total, 0);
	import_zstd_free(z);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(import_every_kind_has_the_whole_trace),
		cmocka_unit_test(import_records_come_out_as_they_were),
		cmocka_unit_test(import_manifest_has_what_the_file_says),
		cmocka_unit_test(import_filters_are_known),
		cmocka_unit_test(import_without_tnt_is_of_targets),
		cmocka_unit_test(import_thread_is_of_any_cpu),
		cmocka_unit_test(import_timeless_records_have_an_order),
		cmocka_unit_test(import_images_come_from_the_sysroot_only),
		cmocka_unit_test(import_images_links_stay_in_the_sysroot),
		cmocka_unit_test(import_images_jitdump_is_the_one_that_was_mapped),
		cmocka_unit_test(import_images_copy_by_build_id_comes_first),
		cmocka_unit_test(import_lost_pieces_are_noted),
		cmocka_unit_test(import_unusable_files_fail),
		cmocka_unit_test(import_truncated_anywhere_fails),
		cmocka_unit_test(import_damaged_records_are_errors_or_notes),
		cmocka_unit_test(traces_overlap_is_found_by_its_psb),
		cmocka_unit_test(traces_overlap_of_many_psbs_ends),
		cmocka_unit_test(traces_write_pieces_apart_have_a_seam_at_the_next_psb),
		cmocka_unit_test(traces_write_snapshots_that_continue_pause_the_trace),
		cmocka_unit_test(zstd_feed_bomb_is_refused),
		cmocka_unit_test(zstd_feed_garbage_is_refused),
	};

	return cmocka_run_group_tests_name("import", tests, make_root, remove_root);
}
