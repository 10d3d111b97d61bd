/*
 * ctl/perfdata, export: the structures of perf.data byte by byte, and whole files parsed again.
 */
#include "ctl/perfdata/export_perfdata.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "ctl/perfdata/export_layout.h"
#include "proto/base.h"
#include "proto/bundle/bundle.h"
#include "proto/memfd.h"
#include "proto/perf/perfrecord.h"

static uint64_t number(const uint8_t *at, size_t size)
{
	uint64_t v = 0;

	while (size-- > 0)
		v = v << 8 | at[size];
	return v;
}

#define U16(at) number(at, 2)
#define U32(at) number(at, 4)
#define U64(at) number(at, 8)

static void fill_manifest(struct manifest *m)
{
	manifest_init(m);
	m->id = strdup("id");
	m->version = strdup("1.2");
	m->trigger_kind = strdup("offline");
	m->source = strdup("emulated");
	m->hostname = strdup("ho\x1bst");
	m->pt_config = 0x2601;
	m->trace_user = true;
	m->have_clock = true;
	m->unrecorded_cpus = 0;
	m->time_shift = 31;
	m->time_mult = 0x12345678;
	m->time_zero = 0x1122334455667788;
	m->tsc_art_num = 84;
	m->tsc_art_den = 2;
	m->max_nonturbo_ratio = 21;
	m->tsc = 0xaabbccdd00112233;
}

/* The bytes that one layout_...() function writes. */
static const uint8_t *got(struct bytes_out *out, size_t size)
{
	assert_int_equal(out->error, 0);
	assert_int_equal(out->size, size);
	return out->data;
}

static void layout_header_sections_lie_where_perf_looks(void **state)
{
	static const struct perfdata_section attrs = {0x100, 0x120}, data = {0x220, 0x330};
	CLEANUP(bytes_out_done) struct bytes_out out;
	const uint8_t *at;

	(void)state;
	bytes_out_init(&out, 4096);
	layout_header(&out, &attrs, &data, 0x40004);
	at = got(&out, 104);
	assert_memory_equal(at, "PERFILE2", 8);
	assert_int_equal(U64(at + 8), 104);
	assert_int_equal(U64(at + 16), 144);
	assert_int_equal(U64(at + 24), 0x100);
	assert_int_equal(U64(at + 32), 0x120);
	assert_int_equal(U64(at + 40), 0x220);
	assert_int_equal(U64(at + 48), 0x330);
	assert_int_equal(U64(at + 56) | U64(at + 64), 0);
	assert_int_equal(U64(at + 72), 0x40004);
	assert_int_equal(U64(at + 80) | U64(at + 88) | U64(at + 96), 0);
}

static void layout_attr_of_pt_has_128_bytes(void **state)
{
	CLEANUP(bytes_out_done) struct bytes_out out;
	CLEANUP(manifest_done) struct manifest m;
	const uint8_t *at;

	(void)state;
	bytes_out_init(&out, 4096);
	fill_manifest(&m);
	layout_attr(&out, LAYOUT_PT, &m);
	at = got(&out, 128);
	assert_int_equal(U32(at), 1000);
	assert_int_equal(U32(at + 4), 128);
	assert_int_equal(U64(at + 8), 0x2601);
	assert_int_equal(U64(at + 16), 1);
	/* IP, TID, TIME, CPU, IDENTIFIER */
	assert_int_equal(U64(at + 24), 0x10087);
	assert_int_equal(U64(at + 32), PERF_FORMAT_ID);
	/* disabled, exclude_kernel, exclude_hv, sample_id_all */
	assert_int_equal(U64(at + 40), 1 | 1 << 5 | 1 << 6 | 1 << 18);
	for (size_t i = 48; i < 128; i++)
		assert_int_equal(at[i], 0);
}

static void layout_pt_config_unknown_follows_from_the_rest(void **state)
{
	CLEANUP(manifest_done) struct manifest m;

	(void)state;
	fill_manifest(&m);
	assert_int_equal(layout_pt_config(&m), 0x2601);
	m.pt_config = MANIFEST_ABSENT;
	m.mtc_period = UINT32_MAX;
	assert_int_equal(layout_pt_config(&m), 0x2401);
	m.mtc_period = 9;
	m.noretcomp = true;
	assert_int_equal(layout_pt_config(&m), 0x2e01 | 9 << 14);
	m.have_clock = false;
	assert_int_equal(layout_pt_config(&m), 0x2a01 | 9 << 14);
}

/* The bits of the kernel's own struct, as the compiler arranges them. */
static void layout_attr_of_dummy_has_the_kernels_bits(void **state)
{
	CLEANUP(bytes_out_done) struct bytes_out out;
	CLEANUP(manifest_done) struct manifest m;
	struct perf_event_attr attr = {0};

	(void)state;
	bytes_out_init(&out, 4096);
	fill_manifest(&m);
	layout_attr(&out, LAYOUT_DUMMY, &m);
	memcpy(&attr, got(&out, 128), MIN_OF(sizeof(attr), (size_t)128));
	assert_int_equal(attr.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(attr.config, PERF_COUNT_SW_DUMMY);
	assert_true(attr.mmap && attr.mmap2 && attr.comm && attr.comm_exec && attr.task);
	assert_true(attr.context_switch && attr.sample_id_all && attr.namespaces);
	assert_true(attr.ksymbol && attr.bpf_event && attr.text_poke && attr.build_id);
	assert_true(attr.exclude_kernel && attr.exclude_hv && attr.disabled);
	assert_false(attr.inherit || attr.freq || attr.mmap_data || attr.use_clockid);
	assert_false(attr.write_backward || attr.aux_output || attr.cgroup || attr.precise_ip);
}

static void layout_auxtrace_info_has_17_words(void **state)
{
	static const uint64_t words[17] = {
		1000, 31, 0x12345678, 0x1122334455667788, 1,  1 << 10, 1 << 11, 3,
		1,    1,  1 << 9,     0xf << 14,	  84, 2,       1 << 1,	21,
		0};
	CLEANUP(bytes_out_done) struct bytes_out out;
	CLEANUP(manifest_done) struct manifest m;
	const uint8_t *at;

	(void)state;
	bytes_out_init(&out, 4096);
	fill_manifest(&m);
	layout_auxtrace_info(&out, &m, true);
	at = got(&out, 8 + 8 + 17 * 8);
	assert_int_equal(U32(at), 70);
	assert_int_equal(U16(at + 4), 0);
	assert_int_equal(U16(at + 6), 152);
	assert_int_equal(U32(at + 8), 1);
	assert_int_equal(U32(at + 12), 0);
	for (size_t i = 0; i < 17; i++)
		assert_int_equal(U64(at + 16 + 8 * i), words[i]);
}

/* Without a clock, perf must not use the times. The trace of a thread needs no switches. */
static void layout_auxtrace_info_of_thread_without_clock(void **state)
{
	CLEANUP(bytes_out_done) struct bytes_out out;
	CLEANUP(manifest_done) struct manifest m;
	const uint8_t *at;

	(void)state;
	bytes_out_init(&out, 4096);
	fill_manifest(&m);
	m.have_clock = false;
	layout_auxtrace_info(&out, &m, false);
	at = got(&out, 152) + 16;
	for (size_t i = 1; i <= 4; i++)
		assert_int_equal(U64(at + 8 * i), 0);
	assert_int_equal(U64(at + 8 * 7), 0); /* have_sched_switch */
	assert_int_equal(U64(at + 8 * 9), 0); /* per_cpu_mmaps */
}

static void layout_auxtrace_of_cpu_and_thread(void **state)
{
	static const struct manifest_cpu of_cpu = {.cpu = 5, .tid = MANIFEST_ANY};
	static const struct manifest_cpu of_thread = {.cpu = MANIFEST_ANY, .tid = 77};
	CLEANUP(bytes_out_done) struct bytes_out out;
	const uint8_t *at;

	(void)state;
	bytes_out_init(&out, 4096);
	layout_auxtrace(&out, 3, &of_cpu, 4096, 0x99);
	layout_auxtrace(&out, 0, &of_thread, 8, 0);
	at = got(&out, 96);
	assert_int_equal(U32(at), 71);
	assert_int_equal(U16(at + 6), 48);
	assert_int_equal(U64(at + 8), 4096);
	assert_int_equal(U64(at + 16), 0);
	assert_int_equal(U64(at + 24), 0x99);
	assert_int_equal(U32(at + 32), 3);
	assert_int_equal(U32(at + 36), UINT32_MAX); /* tid -1 */
	assert_int_equal(U32(at + 40), 5);
	assert_int_equal(U32(at + 44), 0);
	assert_int_equal(U32(at + 48 + 36), 77);
	assert_int_equal(U32(at + 48 + 40), UINT32_MAX); /* cpu -1 */
}

static void layout_string_control_characters_masked_long_ones_cut(void **state)
{
	CLEANUP(bytes_out_done) struct bytes_out out;
	char text[400];
	const uint8_t *at;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	bytes_out_init(&out, 4096);
	layout_string(&out, "a\x1b\nb\x7f\xc3");
	layout_string(&out, text);
	at = got(&out, 4 + 64 + 4 + 256);
	assert_int_equal(U32(at), 64);
	assert_memory_equal(at + 4, "a??b?\xc3\0", 7);
	assert_int_equal(U32(at + 68), 256);
	assert_int_equal(at[72 + 254], 'x');
	assert_int_equal(at[72 + 255], 0);
}

static void layout_build_id_short_id_and_padded_path(void **state)
{
	CLEANUP(bytes_out_done) struct bytes_out out;
	const uint8_t *at;

	(void)state;
	bytes_out_init(&out, 4096);
	layout_build_id(&out, "00ff1a2b", "/usr/bin/x");
	at = got(&out, 36 + 64);
	assert_int_equal(U16(at + 4), 0x8002);
	assert_int_equal(U16(at + 6), 100);
	assert_int_equal(U32(at + 8), UINT32_MAX);
	assert_memory_equal(at + 12, "\x00\xff\x1a\x2b\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20);
	assert_int_equal(at[32], 4);
	assert_string_equal((const char *)at + 36, "/usr/bin/x");
	assert_int_equal(at[99], 0);
}

/* A bundle with traces of 3 and 8 bytes, of CPUs 4 and 1, and the given records. */
struct made {
	struct bytes_out sideband;
	struct bundle *bundle;
};

static void put(struct made *made, uint32_t type, uint64_t time, uint32_t cpu)
{
	struct perfrecord r = {
		.type = type, .time = time, .cpu = cpu, .pid = 9, .tid = 10, .id = 777};
	uint8_t buffer[4096];
	size_t size;

	if (type == PERF_RECORD_COMM)
		r.u.comm = (__typeof__(r.u.comm)){9, 10, "comm"};
	if (type == PERF_RECORD_MMAP2)
		r.u.mmap2 = (__typeof__(r.u.mmap2)){.pid = 9, .addr = 4096, .filename = "/bin/x"};
	assert_int_equal(perfrecord_compose(&r, buffer, sizeof(buffer), &size), 0);
	bytes_put_block(&made->sideband, buffer, size);
}

static void add_cpu(struct manifest *m, uint32_t cpu, uint64_t bytes)
{
	struct manifest_cpu *c = manifest_add_cpu(m);

	assert_non_null(c);
	c->cpu = cpu;
	c->tid = MANIFEST_ANY;
	c->bytes = bytes;
}

static void add_image(struct manifest *m, const char *path, const char *build_id)
{
	struct manifest_image *image = manifest_add_image(m);

	assert_non_null(image);
	image->path = strdup(path);
	image->build_id = build_id ? strdup(build_id) : NULL;
	image->size = 5;
}

static void make_with(struct made *made, struct manifest *m)
{
	CLEANUP_CLOSE int fd = -EBADF;
	struct bundle_writer w;
	char name[32];

	assert_int_equal(memfd_new("bundle", 0, &fd), 0);
	bundle_writer_init(&w, fd);
	bundle_write_member(&w, "cpu4.pt", "abc", 3);
	bundle_write_member(&w, "cpu1.pt", "ABCDEFGH", 8);
	for (size_t i = 0; i < m->n_images; i++) {
		snprintf(name, sizeof(name), "images/%zu", i);
		bundle_write_member(&w, name, "image", 5);
	}
	bundle_write_member(&w, "sideband", made->sideband.data, made->sideband.size);
	assert_int_equal(bundle_write_end(&w, m), 0);
	assert_int_equal(bundle_open(fd, &made->bundle), 0);
}

static void make_done(struct made *made)
{
	bundle_free(made->bundle);
	bytes_out_done(&made->sideband);
}

static void make(struct made *made)
{
	CLEANUP(manifest_done) struct manifest m;

	fill_manifest(&m);
	add_cpu(&m, 4, 3);
	add_cpu(&m, 1, 8);
	add_image(&m, "/usr/bin/x", "0123456789abcdef");
	add_image(&m, "/usr/bin/y", NULL);
	make_with(made, &m);
}

static uint8_t file[65536];

/* The file's size. */
static size_t export(const struct made *made, struct export_told *told)
{
	CLEANUP_CLOSE int fd = -EBADF;
	ssize_t n;

	assert_int_equal(memfd_new("perf.data", 0, &fd), 0);
	assert_int_equal(export_perfdata(made->bundle, fd, told), 0);
	n = pread(fd, file, sizeof(file), 0);
	assert_int_equal(n, told->bytes);
	return (size_t)n;
}

static void export_ids_belong_to_the_attrs(void **state)
{
	struct made made = {.sideband.limit = SIZE_MAX};
	struct export_told told;
	const uint8_t *attr;

	(void)state;
	make(&made);
	export(&made, &told);
	assert_false(told.nobodys);
	assert_int_equal(U64(file + 32), 2 * 144);
	attr = file + U64(file + 24);
	assert_int_equal(U64(attr + 136), 16);
	assert_int_equal(U64(file + U64(attr + 128)), 1);
	assert_int_equal(U64(file + U64(attr + 128) + 8), 2);
	attr += 144;
	assert_int_equal(U64(attr + 136), 16);
	assert_int_equal(U64(file + U64(attr + 128)), 3);
	assert_int_equal(U64(file + U64(attr + 128) + 8), 4);
	make_done(&made);
}

/* Takes the record of type TYPE at *AT of the file. */
static const uint8_t *take(size_t *at, uint32_t type)
{
	const uint8_t *r = file + *at;

	assert_int_equal(U32(r), type);
	assert_int_equal(*at % 8, 0);
	*at += U16(r + 6);
	return r;
}

static uint64_t id_of(const uint8_t *r)
{
	return U64(r + U16(r + 6) - 8);
}

static void export_records_in_order_with_ids_of_their_event_and_cpu(void **state)
{
	struct made made = {.sideband.limit = SIZE_MAX};
	struct export_told told;
	size_t at, n, end;
	const uint8_t *r;

	(void)state;
	put(&made, PERF_RECORD_COMM, 0, 0);
	put(&made, PERF_RECORD_ITRACE_START, 5, 1);
	put(&made, PERF_RECORD_MMAP2, 6, 4);
	put(&made, PERF_RECORD_SWITCH_CPU_WIDE, 7, 2);
	put(&made, PERF_RECORD_AUX, 8, 4);
	make(&made);
	n = export(&made, &told);
	assert_int_equal(told.records, 5);
	assert_int_equal(told.skipped, 0);
	at = U64(file + 40);
	end = at + U64(file + 48);
	take(&at, 70);
	assert_int_equal(id_of(take(&at, PERF_RECORD_COMM)), 0);
	assert_int_equal(id_of(take(&at, PERF_RECORD_ITRACE_START)), 2);
	r = take(&at, PERF_RECORD_MMAP2);
	assert_int_equal(id_of(r), 3);
	assert_string_equal((const char *)r + 72, "/bin/x");
	/* Records of a CPU without a trace have the id of the first trace. */
	assert_int_equal(id_of(take(&at, PERF_RECORD_SWITCH_CPU_WIDE)), 3);
	assert_int_equal(id_of(take(&at, PERF_RECORD_AUX)), 1);
	take(&at, 68);
	r = take(&at, 71);
	assert_int_equal(U64(r + 8), 8);
	assert_int_equal(U32(r + 40), 4);
	assert_int_equal(U64(r + 24), 0xaabbccdd00112233);
	assert_memory_equal(file + at, "abc\0\0\0\0\0", 8);
	at += 8;
	assert_int_equal(U32(take(&at, 71) + 40), 1);
	assert_memory_equal(file + at, "ABCDEFGH", 8);
	assert_int_equal(at + 8, end);
	assert_true(end < n);
	make_done(&made);
}

static void export_records_that_perf_takes_for_its_own_are_left_out(void **state)
{
	struct made made = {.sideband.limit = SIZE_MAX};
	struct export_told told;
	size_t at;

	(void)state;
	put(&made, 71, 1, 1);
	put(&made, PERF_RECORD_SAMPLE, 2, 1);
	put(&made, PERF_RECORD_SWITCH_CPU_WIDE, 3, 1u << 30);
	put(&made, PERF_RECORD_COMM, 4, 1);
	bytes_put_block(&made.sideband, "\3\0\0\0\0\0\4\0", 8); /* shorter than its header */
	make(&made);
	export(&made, &told);
	assert_int_equal(told.records, 1);
	assert_int_equal(told.skipped, 4);
	at = U64(file + 40);
	take(&at, 70);
	take(&at, PERF_RECORD_COMM);
	take(&at, 68);
	make_done(&made);
}

/* The index of FEATURE's section in the table. */
static const uint8_t *feature(unsigned bit, size_t n, uint64_t *ret_size)
{
	const uint8_t *table = file + U64(file + 40) + U64(file + 48);
	uint64_t bits = U64(file + 72), offset;
	size_t index = (size_t)__builtin_popcountll(bits & ((1ull << bit) - 1));

	assert_true(bits >> bit & 1);
	offset = U64(table + 16 * index);
	*ret_size = U64(table + 16 * index + 8);
	assert_true(offset + *ret_size <= n);
	return file + offset;
}

static void export_features_are_found_by_their_bits(void **state)
{
	struct made made = {.sideband.limit = SIZE_MAX};
	struct export_told told;
	const uint8_t *at;
	uint64_t size;
	size_t n;

	(void)state;
	make(&made);
	n = export(&made, &told);
	assert_string_equal((const char *)feature(3, n, &size) + 4, "ho?st");
	at = feature(2, n, &size);
	assert_int_equal(size, 100); /* one image has a build id */
	assert_int_equal(at[32], 8);
	at = feature(7, n, &size);
	assert_int_equal(U32(at), 5);
	assert_int_equal(U32(at + 4), 5);
	at = feature(18, n, &size);
	assert_int_equal(size, 8 + 2 * 16);
	assert_int_equal(U64(at), 2);
	assert_int_equal(U32(file + U64(at + 8)), 71);
	assert_int_equal(U32(file + U64(at + 24)), 71);
	assert_int_equal(U64(at + 16), 48);
	/* The last feature ends the file. */
	assert_ptr_equal(at + size, file + n);
	/* no kernel release, no CPU model */
	assert_int_equal(U64(file + 72) & (1 << 4 | 1 << 8 | 1 << 9), 0);
	make_done(&made);
}

static void export_cpu_and_command_as_perf_writes_them(void **state)
{
	CLEANUP(manifest_done) struct manifest m;
	struct made made = {.sideband.limit = SIZE_MAX};
	struct export_told told;
	const uint8_t *at;
	uint64_t size;
	size_t n;

	(void)state;
	fill_manifest(&m);
	add_cpu(&m, 4, 3);
	add_cpu(&m, 1, 8);
	m.have_cpu = m.cpu_intel = true;
	m.cpu_family = 6;
	m.cpu_model = 0x9e;
	m.cpu_stepping = 10;
	m.pt_terms = strdup("tsc,mtc");
	make_with(&made, &m);
	n = export(&made, &told);
	assert_string_equal((const char *)feature(9, n, &size) + 4, "GenuineIntel,6,158,10");
	at = feature(11, n, &size);
	assert_int_equal(U32(at), 3);
	assert_string_equal((const char *)at + 8, "ptsnapd");
	assert_string_equal((const char *)at + 8 + 68, "--source=emulated");
	assert_string_equal((const char *)at + 8 + 2 * 68, "--pt=tsc,mtc");
	at = feature(16, n, &size);
	assert_int_equal(U32(at), 1);
	assert_int_equal(U32(at + 4), 1000);
	assert_string_equal((const char *)at + 12, "intel_pt");
	make_done(&made);
}

static void export_event_desc_repeats_attrs_and_ids(void **state)
{
	struct made made = {.sideband.limit = SIZE_MAX};
	struct export_told told;
	const uint8_t *at;
	uint64_t size;
	size_t n;

	(void)state;
	make(&made);
	n = export(&made, &told);
	at = feature(12, n, &size);
	assert_int_equal(size, 8 + 2 * (128 + 4 + 4 + 64 + 16));
	assert_int_equal(U32(at), 2);
	assert_int_equal(U32(at + 4), 128);
	assert_memory_equal(at + 8, file + U64(file + 24), 128);
	assert_int_equal(U32(at + 136), 2);
	assert_string_equal((const char *)at + 144, "intel_pt//u");
	assert_int_equal(U64(at + 208), 1);
	assert_int_equal(U64(at + 216), 2);
	make_done(&made);
}

static void export_no_trace_refused(void **state)
{
	CLEANUP(manifest_done) struct manifest m;
	CLEANUP_CLOSE int fd = -EBADF;
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	struct export_told told;
	struct bundle_writer w;

	(void)state;
	fill_manifest(&m);
	assert_int_equal(memfd_new("bundle", 0, &fd), 0);
	bundle_writer_init(&w, fd);
	bundle_write_member(&w, "sideband", "", 0);
	assert_int_equal(bundle_write_end(&w, &m), 0);
	assert_int_equal(bundle_open(fd, &b), 0);
	assert_int_equal(export_perfdata(b, fd, &told), -ENODATA);
}

/* perf looks for a trace wherever there is an Intel PT event, and without a clock prints no time.
 */
static void export_untraced_bundle_has_the_sideband_alone(void **state)
{
	CLEANUP(manifest_done) struct manifest m;
	struct made made = {.sideband.limit = SIZE_MAX};
	CLEANUP_CLOSE int fd = -EBADF;
	struct export_told told;
	struct bundle_writer w;
	const uint8_t *attr;
	size_t at;

	(void)state;
	fill_manifest(&m);
	m.have_clock = false;
	add_cpu(&m, 4, 0);
	add_cpu(&m, 1, 0);
	put(&made, PERF_RECORD_COMM, 100, 4);
	put(&made, PERF_RECORD_ITRACE_START, 200, 1);
	assert_int_equal(memfd_new("bundle", 0, &fd), 0);
	bundle_writer_init(&w, fd);
	bundle_write_member(&w, "cpu4.pt", "", 0);
	bundle_write_member(&w, "cpu1.pt", "", 0);
	bundle_write_member(&w, "sideband", made.sideband.data, made.sideband.size);
	assert_int_equal(bundle_write_end(&w, &m), 0);
	assert_int_equal(bundle_open(fd, &made.bundle), 0);
	export(&made, &told);
	assert_true(told.untraced);
	assert_false(told.nobodys);
	/* One event, the dummy, with its two ids. */
	assert_int_equal(U64(file + 32), 144);
	attr = file + U64(file + 24);
	assert_int_equal(U32(attr), PERF_TYPE_SOFTWARE);
	assert_int_equal(U64(attr + 136), 16);
	at = U64(file + 40);
	assert_int_equal(id_of(take(&at, PERF_RECORD_COMM)), U64(file + U64(attr + 128)));
	assert_int_equal(id_of(take(&at, PERF_RECORD_ITRACE_START)),
			 U64(file + U64(attr + 128) + 8));
	take(&at, LAYOUT_FINISHED_ROUND);
	assert_int_equal(at, U64(file + 40) + U64(file + 48));
	make_done(&made);
}

static void export_full_disk_is_an_error(void **state)
{
	struct made made = {.sideband.limit = SIZE_MAX};
	struct export_told told;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	if (fd < 0)
		skip();
	make(&made);
	assert_int_equal(export_perfdata(made.bundle, fd, &told), -ENOSPC);
	close(fd);
	make_done(&made);
}

static void export_without_tsc_is_nobodys_unless_a_threads(void **state)
{
	static const struct {
		uint32_t cpu;
		uint64_t config;
		bool clock, nobodys;
	} cases[] = {
		{4, 0x2601, true, false},	   {4, 0x2201, true, true},
		{4, MANIFEST_ABSENT, true, false}, {4, MANIFEST_ABSENT, false, true},
		{4, 0x2601, false, true},	   {MANIFEST_ANY, 0x2201, true, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct made made = {.sideband.limit = SIZE_MAX};
		CLEANUP(manifest_done) struct manifest m;
		CLEANUP_CLOSE int fd = -EBADF;
		struct export_told told;
		struct bundle_writer w;

		fill_manifest(&m);
		m.pt_config = cases[i].config;
		m.have_clock = cases[i].clock;
		add_cpu(&m, cases[i].cpu, 3);
		m.cpus[0].tid = cases[i].cpu == MANIFEST_ANY ? 77 : MANIFEST_ANY;
		assert_int_equal(memfd_new("bundle", 0, &fd), 0);
		bundle_writer_init(&w, fd);
		bundle_write_member(&w, cases[i].cpu == 4 ? "cpu4.pt" : "trace/0", "abc", 3);
		bundle_write_member(&w, "sideband", "", 0);
		assert_int_equal(bundle_write_end(&w, &m), 0);
		assert_int_equal(bundle_open(fd, &made.bundle), 0);
		export(&made, &told);
		assert_int_equal(told.nobodys, cases[i].nobodys);
		make_done(&made);
	}
}

static void export_trace_of_a_thread(void **state)
{
	CLEANUP(manifest_done) struct manifest m;
	CLEANUP_CLOSE int fd = -EBADF;
	struct made made = {.sideband.limit = SIZE_MAX};
	struct export_told told;
	struct bundle_writer w;
	const uint8_t *r;
	size_t at;

	(void)state;
	fill_manifest(&m);
	add_cpu(&m, MANIFEST_ANY, 3);
	m.cpus[0].tid = 77;
	put(&made, PERF_RECORD_ITRACE_START, 5, 6);
	assert_int_equal(memfd_new("bundle", 0, &fd), 0);
	bundle_writer_init(&w, fd);
	bundle_write_member(&w, "trace/0", "abc", 3);
	bundle_write_member(&w, "sideband", made.sideband.data, made.sideband.size);
	assert_int_equal(bundle_write_end(&w, &m), 0);
	assert_int_equal(bundle_open(fd, &made.bundle), 0);
	export(&made, &told);
	at = U64(file + 40);
	r = take(&at, 70);
	assert_int_equal(U64(r + 16 + 8 * 9), 0); /* per_cpu_mmaps */
	assert_int_equal(id_of(take(&at, PERF_RECORD_ITRACE_START)), 1);
	take(&at, 68);
	r = take(&at, 71);
	assert_int_equal(U32(r + 36), 77);
	assert_int_equal(U32(r + 40), UINT32_MAX);
	make_done(&made);
}

static char directory[] = "/tmp/test_export.XXXXXX";

static void expect_file(const char *name, const char *content)
{
	char path[128], bytes[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	n = read(fd, bytes, sizeof(bytes));
	close(fd);
	assert_int_equal(n, strlen(content));
	assert_memory_equal(bytes, content, (size_t)n);
}

/* No file is made for the hostile paths of a bundle. The second image of a path is only in the
 * cache. */
static void images_write_only_below_the_directory(void **state)
{
	static const struct {
		const char *path, *build_id;
	} images[] = {
		{"/../../escape", NULL}, {"relative", NULL},
		{"/a/./b", NULL},	 {"//x//y", NULL},
		{"/x/y", NULL},		 {"/x/y/z", NULL},
		{"/lib/c", "0123abcd"},	 {"/lib/c", "99aa"},
		{"/lib/c", NULL},	 {"/", NULL},
		{"/..", "7f7f7f7f"},	 {"/d", "0123abcd"},
	};
	struct made made = {.sideband.limit = SIZE_MAX};
	CLEANUP(manifest_done) struct manifest m;
	struct images_told told;
	char command[128];

	(void)state;
	assert_non_null(mkdtemp(directory));
	fill_manifest(&m);
	add_cpu(&m, 4, 3);
	add_cpu(&m, 1, 8);
	for (size_t i = 0; i < ARRAY_SIZE(images); i++)
		add_image(&m, images[i].path, images[i].build_id);
	make_with(&made, &m);
	assert_int_equal(images_write(made.bundle, directory, &told), 0);
	assert_int_equal(told.n, ARRAY_SIZE(images) - 1); /* "relative" is no file */
	assert_int_equal(told.good, 5);
	assert_string_equal(told.first_other, "/../../escape");
	expect_file("x/y", "image");
	expect_file("lib/c", "image");
	expect_file("d", "image");
	expect_file(".debug/.build-id/01/23abcd/elf", "image");
	expect_file(".debug/.build-id/99/aa/elf", "image");
	expect_file(".debug/.build-id/7f/7f7f7f/elf", "image");
	assert_int_equal(images_write(made.bundle, directory, &told), -ENOTEMPTY);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	assert_int_equal(system(command), 0);
	make_done(&made);
}

static void images_compare_counts_what_is_gone_or_other(void **state)
{
	struct made made = {.sideband.limit = SIZE_MAX};
	CLEANUP(manifest_done) struct manifest m;
	char same[] = "/tmp/test_export.XXXXXX", other[] = "/tmp/test_export.XXXXXX";
	int a = mkstemp(same), b = mkstemp(other);
	struct images_told told;

	(void)state;
	assert_int_equal(write(a, "image", 5), 5);
	assert_int_equal(write(b, "imagE", 5), 5);
	fill_manifest(&m);
	add_cpu(&m, 4, 3);
	add_cpu(&m, 1, 8);
	add_image(&m, same, NULL);
	add_image(&m, other, NULL);
	add_image(&m, "/dev/zero", NULL);
	add_image(&m, "/nonexistent", NULL);
	make_with(&made, &m);
	images_compare(made.bundle, &told);
	assert_int_equal(told.n, 4);
	assert_int_equal(told.good, 1);
	assert_string_equal(told.first_other, other);
	make_done(&made);
	close(a);
	close(b);
	unlink(same);
	unlink(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout_header_sections_lie_where_perf_looks),
		cmocka_unit_test(layout_attr_of_pt_has_128_bytes),
		cmocka_unit_test(layout_pt_config_unknown_follows_from_the_rest),
		cmocka_unit_test(layout_attr_of_dummy_has_the_kernels_bits),
		cmocka_unit_test(layout_auxtrace_info_has_17_words),
		cmocka_unit_test(layout_auxtrace_info_of_thread_without_clock),
		cmocka_unit_test(layout_auxtrace_of_cpu_and_thread),
		cmocka_unit_test(layout_string_control_characters_masked_long_ones_cut),
		cmocka_unit_test(layout_build_id_short_id_and_padded_path),
		cmocka_unit_test(export_ids_belong_to_the_attrs),
		cmocka_unit_test(export_records_in_order_with_ids_of_their_event_and_cpu),
		cmocka_unit_test(export_records_that_perf_takes_for_its_own_are_left_out),
		cmocka_unit_test(export_features_are_found_by_their_bits),
		cmocka_unit_test(export_cpu_and_command_as_perf_writes_them),
		cmocka_unit_test(export_event_desc_repeats_attrs_and_ids),
		cmocka_unit_test(export_without_tsc_is_nobodys_unless_a_threads),
		cmocka_unit_test(export_trace_of_a_thread),
		cmocka_unit_test(export_no_trace_refused),
		cmocka_unit_test(export_untraced_bundle_has_the_sideband_alone),
		cmocka_unit_test(export_full_disk_is_an_error),
		cmocka_unit_test(images_write_only_below_the_directory),
		cmocka_unit_test(images_compare_counts_what_is_gone_or_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
