#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/bundle/manifest.h"

static void fill_host(struct manifest *m)
{
	m->id = strdup("20240101-abc");
	m->version = strdup("0.1");
	m->hostname = strdup("host \"quoted\"");
	m->kernel_release = strdup("6.1.0");
	m->boot_id = strdup("0f");
	m->cpu_model_name = strdup("CPU \xc2\xae");
	m->have_cpu = true;
	m->cpu_family = 6;
	m->cpu_model = 151;
	m->cpu_stepping = 2;
	m->cpu_intel = true;
}

static void fill_trigger(struct manifest *m)
{
	m->trigger_kind = strdup("signal");
	m->trigger_name = strdup("SIGUSR2");
	m->sender_pid = 42;
	m->sender_uid = 0;
	m->realtime_ns = UINT64_C(1700000000123456789);
	m->perf_ns = 5;
	m->tsc = UINT64_C(0xfedcba9876543210);
	m->have_clock = true;
	m->time_shift = 31;
	m->time_mult = UINT32_MAX;
	m->time_zero = UINT64_C(0xfffffffffffffff0);
	m->source = strdup("emulated");
	m->pt_terms = strdup("tsc,mtc");
	m->pt_config = 0x2401;
	m->trace_user = true;
	m->mtc_period = 9;
	m->tsc_art_num = 176;
	m->tsc_art_den = 2;
	m->clock_is_monotonic = true;
	m->preset = strdup("std");
	m->pt_attr = strdup("type=8 config=0x2401");
	m->sideband_attr = strdup("type=1 config=0x9");
	m->sideband_missing = strdup("text_poke,cgroup");
	m->sizes_note = strdup("4 MiB instead of 8");
	m->last_ns = 0;
}

static void fill_lists(struct manifest *m)
{
	for (uint32_t i = 0; i < 5; i++) {
		struct manifest_cpu *cpu = manifest_add_cpu(m);

		cpu->cpu = 4 - i;
		cpu->bytes = 1000 + i;
		cpu->ring_bytes = 4096;
		cpu->stop_timeout = i == 2;
		cpu->state = i == 1 ? strdup("busy") : NULL;
		cpu->why = i == 1 ? strdup("perf has it") : NULL;
		cpu->stop_order = i == 3 ? 0 : MANIFEST_ABSENT;
	}
	for (uint32_t i = 0; i < 3; i++) {
		struct manifest_process *p = manifest_add_process(m);

		p->pid = 10 + i;
		p->cmdline = i == 1 ? strdup("a b") : NULL;
		p->uid = i == 2 ? 0 : MANIFEST_ABSENT;
	}
	*manifest_add_image(m) = (struct manifest_image){.path = strdup("/bin/ls"),
							 .maj = 8,
							 .ino = UINT64_MAX - 1,
							 .size = 77,
							 .offset = 4096};
	*manifest_add_image(m) =
		(struct manifest_image){.path = strdup("[vdso]"), .missing = strdup("no file")};
	m->images[0].build_id = strdup("00ff");
	assert_int_equal(manifest_add_note(m, "lost", 3, "why"), 0);
	assert_int_equal(
		manifest_add_note_at(m, &(struct manifest_note){.kind = (char *)"dark",
								.count = 1,
								.cpu = 7,
								.since_ns = 5,
								.until_ns = MANIFEST_ABSENT}),
		0);
}

static void fill(struct manifest *m)
{
	manifest_init(m);
	fill_host(m);
	fill_trigger(m);
	fill_lists(m);
}

/* Returns M as a string, to be freed with bytes_out_done(). */
static struct bytes_out text_of(const struct manifest *m)
{
	struct bytes_out out;

	bytes_out_init(&out, MANIFEST_MAX_TEXT);
	assert_int_equal(manifest_write(m, &out), 0);
	bytes_put_u8(&out, 0);
	return out;
}

static int read_text(const char *text, struct manifest *m)
{
	manifest_init(m);
	return manifest_read(text, strlen(text), m);
}

static void manifest_write_then_read_gives_the_same(void **state)
{
	struct bytes_out first, second;
	struct manifest m, back;

	(void)state;
	fill(&m);
	first = text_of(&m);
	assert_int_equal(read_text((char *)first.data, &back), 0);
	second = text_of(&back);
	assert_string_equal((char *)first.data, (char *)second.data);
	assert_string_equal(back.hostname, m.hostname);
	assert_null(back.machine);
	assert_null(back.reason);
	assert_true(back.have_cpu && back.cpu_intel && back.have_clock && back.trace_user);
	assert_false(back.trace_kernel || back.noretcomp);
	assert_int_equal(back.cpu_model, 151);
	assert_true(back.tsc == m.tsc);
	assert_true(back.time_zero == m.time_zero);
	assert_int_equal(back.time_shift, 31);
	assert_true(back.time_mult == UINT32_MAX);
	assert_true(back.monotonic_ns == MANIFEST_ABSENT);
	assert_int_equal(back.sender_uid, 0);
	assert_int_equal(back.last_ns, 0);
	assert_true(back.last_bytes == MANIFEST_ABSENT);
	assert_int_equal(back.n_cpus, 5);
	assert_int_equal(back.cpus[4].cpu, 0);
	assert_int_equal(back.cpus[4].bytes, 1004);
	assert_true(back.cpus[2].stop_timeout);
	assert_string_equal(back.cpus[1].state, "busy");
	assert_string_equal(back.cpus[1].why, "perf has it");
	assert_null(back.cpus[0].state);
	assert_null(back.cpus[0].why);
	assert_int_equal(back.cpus[3].stop_order, 0);
	assert_true(back.cpus[2].stop_order == MANIFEST_ABSENT);
	assert_true(back.clock_is_monotonic);
	assert_string_equal(back.preset, "std");
	assert_string_equal(back.pt_attr, "type=8 config=0x2401");
	assert_string_equal(back.sideband_attr, "type=1 config=0x9");
	assert_string_equal(back.sideband_missing, "text_poke,cgroup");
	assert_string_equal(back.sizes_note, "4 MiB instead of 8");
	assert_int_equal(back.n_processes, 3);
	assert_string_equal(back.processes[1].cmdline, "a b");
	assert_int_equal(back.processes[2].uid, 0);
	assert_true(back.processes[1].uid == MANIFEST_ABSENT);
	assert_int_equal(back.n_images, 2);
	assert_true(back.images[0].ino == UINT64_MAX - 1);
	assert_string_equal(back.images[1].missing, "no file");
	assert_string_equal(back.images[0].build_id, "00ff");
	assert_null(back.images[1].build_id);
	assert_int_equal(back.n_notes, 2);
	assert_string_equal(back.notes[0].why, "why");
	assert_int_equal(back.notes[0].cpu, MANIFEST_ANY);
	assert_true(back.notes[0].since_ns == MANIFEST_ABSENT);
	assert_true(back.notes[0].until_ns == MANIFEST_ABSENT);
	assert_int_equal(back.notes[1].cpu, 7);
	assert_int_equal(back.notes[1].since_ns, 5);
	assert_true(back.notes[1].until_ns == MANIFEST_ABSENT);
	bytes_out_done(&first);
	bytes_out_done(&second);
	manifest_done(&m);
	manifest_done(&back);
}

#define NUMBER(object, member)                                                              \
	{                                                                                   \
#member, offsetof(struct object, member), sizeof((struct object){0}.member) \
	}

struct number {
	const char *name;
	size_t offset, size;
};

/* Sets every number of OBJECT to a different value that is within all ranges. */
static void set_numbers(void *object, const struct number *numbers, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v = i + 1;

		memcpy((char *)object + numbers[i].offset, &v, numbers[i].size);
	}
}

static void check_numbers(const void *object, const struct number *numbers, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v = 0;

		memcpy(&v, (const char *)object + numbers[i].offset, numbers[i].size);
		if (v != i + 1)
			fail_msg("%s came back as %ju", numbers[i].name, (uintmax_t)v);
	}
}

static void manifest_write_then_read_keeps_every_number_apart(void **state)
{
	static const struct number whole[] = {
		NUMBER(manifest, mtc_period),
		NUMBER(manifest, time_shift),
		NUMBER(manifest, cpu_family),
		NUMBER(manifest, cpu_model),
		NUMBER(manifest, cpu_stepping),
		NUMBER(manifest, sender_pid),
		NUMBER(manifest, sender_uid),
		NUMBER(manifest, realtime_ns),
		NUMBER(manifest, monotonic_ns),
		NUMBER(manifest, perf_ns),
		NUMBER(manifest, tsc),
		NUMBER(manifest, time_mult),
		NUMBER(manifest, time_zero),
		NUMBER(manifest, pt_config),
		NUMBER(manifest, max_nonturbo_ratio),
		NUMBER(manifest, tsc_art_num),
		NUMBER(manifest, tsc_art_den),
		NUMBER(manifest, last_bytes),
		NUMBER(manifest, last_ns),
		NUMBER(manifest, previous_stop_ns),
		NUMBER(manifest, horizon_ns),
		NUMBER(manifest, dropped_records),
		NUMBER(manifest, kernel_start),
	};
	static const struct number cpu[] = {
		NUMBER(manifest_cpu, cpu),	    NUMBER(manifest_cpu, ring_bytes),
		NUMBER(manifest_cpu, bytes),	    NUMBER(manifest_cpu, asked_bytes),
		NUMBER(manifest_cpu, stop_ns),	    NUMBER(manifest_cpu, dark_ns),
		NUMBER(manifest_cpu, copy_ns),	    NUMBER(manifest_cpu, aux_flags),
		NUMBER(manifest_cpu, lost_records), NUMBER(manifest_cpu, stop_order),
		NUMBER(manifest_cpu, truncated_ns), NUMBER(manifest_cpu, partial_ns),
		NUMBER(manifest_cpu, collision_ns),
	};
	static const struct number process[] = {
		NUMBER(manifest_process, pid),		NUMBER(manifest_process, ppid),
		NUMBER(manifest_process, start_ns),	NUMBER(manifest_process, uid),
		NUMBER(manifest_process, mount_ns),	NUMBER(manifest_process, ns_pid),
		NUMBER(manifest_process, uid_since_ns),
	};
	static const struct number image[] = {
		NUMBER(manifest_image, maj),	      NUMBER(manifest_image, min),
		NUMBER(manifest_image, ino),	      NUMBER(manifest_image, ino_generation),
		NUMBER(manifest_image, size),	      NUMBER(manifest_image, offset),
		NUMBER(manifest_image, file_size),    NUMBER(manifest_image, pid),
		NUMBER(manifest_image, address),      NUMBER(manifest_image, read_ns),
		NUMBER(manifest_image, unchanged_ns),
	};
	static const struct number part[] = {
		NUMBER(manifest_text, pid),
		NUMBER(manifest_text, size),
	};
	struct bytes_out text;
	struct manifest m, back;

	(void)state;
	manifest_init(&m);
	m.have_cpu = m.have_clock = true;
	set_numbers(&m, whole, ARRAY_SIZE(whole));
	set_numbers(manifest_add_cpu(&m), cpu, ARRAY_SIZE(cpu));
	set_numbers(manifest_add_process(&m), process, ARRAY_SIZE(process));
	set_numbers(manifest_add_image(&m), image, ARRAY_SIZE(image));
	set_numbers(manifest_add_text(&m), part, ARRAY_SIZE(part));
	text = text_of(&m);
	assert_int_equal(read_text((char *)text.data, &back), 0);
	check_numbers(&back, whole, ARRAY_SIZE(whole));
	check_numbers(back.cpus, cpu, ARRAY_SIZE(cpu));
	check_numbers(back.processes, process, ARRAY_SIZE(process));
	check_numbers(back.images, image, ARRAY_SIZE(image));
	check_numbers(back.texts, part, ARRAY_SIZE(part));
	bytes_out_done(&text);
	manifest_done(&m);
	manifest_done(&back);
}

static void manifest_write_empty_is_readable_and_says_null(void **state)
{
	struct manifest m, back;
	struct bytes_out text;

	(void)state;
	manifest_init(&m);
	text = text_of(&m);
	assert_non_null(strstr((char *)text.data, "\"clock\": null"));
	assert_non_null(strstr((char *)text.data, "\"tsc\": null"));
	assert_non_null(strstr((char *)text.data, "\"maxNonturboRatio\": null"));
	assert_non_null(strstr((char *)text.data, "\"mtcPeriod\": null"));
	assert_int_equal(read_text((char *)text.data, &back), 0);
	assert_string_equal(back.source, "");
	assert_false(back.have_cpu);
	assert_true(back.mtc_period == UINT32_MAX);
	bytes_out_done(&text);
	manifest_done(&back);
	manifest_done(&m);
}

/* Removes all lines with KEY from TEXT. */
static void drop_key(char *text, const char *key)
{
	char *at;

	while ((at = strstr(text, key))) {
		char *begin = at, *end = at + strcspn(at, "\n");

		while (begin > text && begin[-1] != '\n')
			begin--;
		/* The last member leaves a comma behind when it is removed. */
		if (end[-1] != ',' && begin > text + 1 && begin[-2] == ',')
			begin -= 2;
		else
			end++;
		memmove(begin, end, strlen(end) + 1);
	}
}

static void manifest_read_of_an_older_recorder_has_the_new_fields_absent(void **state)
{
	static const char *const keys[] = {
		"\"clockIsMonotonic\"", "\"preset\"",	 "\"ptAttr\"", "\"sidebandAttr\"",
		"\"sidebandMissing\"",	"\"sizesNote\"", "\"state\"",  "\"why\": \"perf has it\"",
		"\"stopOrder\""};
	struct manifest m, back;
	struct bytes_out text;

	(void)state;
	fill(&m);
	text = text_of(&m);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		drop_key((char *)text.data, keys[i]);
	assert_int_equal(read_text((char *)text.data, &back), 0);
	assert_false(back.clock_is_monotonic);
	assert_true(!back.preset && !back.pt_attr && !back.sideband_attr);
	assert_true(!back.sideband_missing && !back.sizes_note);
	for (size_t i = 0; i < back.n_cpus; i++) {
		assert_true(!back.cpus[i].state && !back.cpus[i].why);
		assert_true(back.cpus[i].stop_order == MANIFEST_ABSENT);
	}
	assert_int_equal(back.cpus[4].bytes, 1004);
	bytes_out_done(&text);
	manifest_done(&back);
	manifest_done(&m);
}

static void manifest_excluded_processes_come_back_and_others_do_not_mention_it(void **state)
{
	struct bytes_out text;
	struct manifest m, back;

	(void)state;
	manifest_init(&m);
	manifest_add_process(&m)->pid = 1;
	text = text_of(&m);
	assert_null(strstr((char *)text.data, "exclud"));
	assert_null(strstr((char *)text.data, "uidSince"));
	bytes_out_done(&text);
	manifest_add_process(&m)->excluded = true;
	m.excluding = true;
	text = text_of(&m);
	assert_int_equal(read_text((char *)text.data, &back), 0);
	assert_true(back.excluding);
	assert_false(back.processes[0].excluded);
	assert_true(back.processes[1].excluded);
	assert_true(back.processes[0].uid_since_ns == MANIFEST_ABSENT);
	bytes_out_done(&text);
	manifest_done(&m);
	manifest_done(&back);
}

static void manifest_images_elsewhere_come_back_and_others_do_not_mention_it(void **state)
{
	struct manifest_image *image;
	struct manifest m, back;
	struct bytes_out text;

	(void)state;
	manifest_init(&m);
	manifest_add_image(&m)->path = strdup("/plain");
	text = text_of(&m);
	assert_null(strstr((char *)text.data, "elsewhere"));
	assert_null(strstr((char *)text.data, "pieces"));
	assert_null(strstr((char *)text.data, "texts"));
	bytes_out_done(&text);
	image = manifest_add_image(&m);
	image->path = strdup("//anon");
	image->kind = strdup(MANIFEST_IMAGE_MEMORY);
	image->pid = 7;
	image->address = 0x7f0000000000;
	image->elsewhere = true;
	image->file_size = 4096;
	manifest_add_text(&m)->kind = strdup(MANIFEST_TEXT_PERF_MAP);
	text = text_of(&m);
	assert_int_equal(read_text((char *)text.data, &back), 0);
	assert_false(back.images[0].elsewhere);
	assert_true(back.images[0].file_size == MANIFEST_ABSENT && !back.images[0].kind);
	assert_true(back.images[0].pid == MANIFEST_ANY);
	assert_true(back.images[1].elsewhere && back.images[1].file_size == 4096);
	assert_string_equal(back.images[1].kind, "memory");
	assert_int_equal(back.n_texts, 1);
	assert_string_equal(back.texts[0].kind, "perf-map");
	bytes_out_done(&text);
	manifest_done(&back);
	manifest_done(&m);
}

static void manifest_unit_and_labels_come_back_and_others_do_not_mention_them(void **state)
{
	struct manifest_label *label;
	struct manifest m, back;
	struct bytes_out text;

	(void)state;
	manifest_init(&m);
	text = text_of(&m);
	assert_null(strstr((char *)text.data, "unit"));
	assert_null(strstr((char *)text.data, "labels"));
	bytes_out_done(&text);
	m.unit = strdup("web.service");
	m.sender_unit = strdup("cron.service");
	for (unsigned i = 0; i < MANIFEST_MAX_LABELS; i++) {
		label = manifest_add_label(&m);
		assert_non_null(label);
		label->key = strdup("k");
		label->value = strdup("");
	}
	assert_null(manifest_add_label(&m));
	text = text_of(&m);
	assert_int_equal(read_text((char *)text.data, &back), 0);
	assert_string_equal(back.unit, "web.service");
	assert_string_equal(back.sender_unit, "cron.service");
	assert_int_equal(back.n_labels, MANIFEST_MAX_LABELS);
	assert_string_equal(back.labels[7].key, "k");
	assert_string_equal(back.labels[7].value, "");
	bytes_out_done(&text);
	manifest_done(&back);
	manifest_done(&m);
}

/* An image that contradicts itself. */
static int read_image(uint64_t size, uint64_t offset, const char *missing, bool elsewhere,
		      const char *pieces, uint64_t file_size)
{
	struct manifest m, back;
	struct manifest_image *image;
	struct bytes_out text;
	int r;

	manifest_init(&m);
	image = manifest_add_image(&m);
	image->path = strdup("/x");
	image->size = size;
	image->offset = offset;
	image->missing = missing ? strdup(missing) : NULL;
	image->elsewhere = elsewhere;
	image->pieces = pieces ? strdup(pieces) : NULL;
	image->file_size = file_size;
	text = text_of(&m);
	r = read_text((char *)text.data, &back);
	if (r == 0)
		manifest_done(&back);
	bytes_out_done(&text);
	manifest_done(&m);
	return r;
}

static int read_seams(const struct manifest_seam *seams, size_t n)
{
	CLEANUP(bytes_out_done) struct bytes_out text;
	struct manifest m, back;
	struct manifest_cpu *cpu;
	int r;

	manifest_init(&m);
	manifest_init(&back);
	for (uint32_t i = 0; i < 2; i++) {
		cpu = manifest_add_cpu(&m);
		assert_non_null(cpu);
		cpu->cpu = i;
		cpu->bytes = 100;
	}
	for (size_t i = 0; i < n; i++) {
		struct manifest_seam *seam = manifest_add_seam(&m);

		assert_non_null(seam);
		*seam = seams[i];
		seam->kind = strdup("trace-missing");
	}
	bytes_out_init(&text, 1 << 20);
	assert_int_equal(manifest_write(&m, &text), 0);
	r = manifest_read(text.data, text.size, &back);
	if (r == 0) {
		size_t of[2];

		assert_int_equal(back.n_seams, n);
		assert_memory_equal(manifest_seams(&back, 0, &of[0]), &back.seams[0],
				    sizeof(back.seams[0]));
		(void)manifest_seams(&back, 1, &of[1]);
		assert_int_equal(of[0] + of[1], n);
	}
	manifest_done(&back);
	manifest_done(&m);
	return r;
}

static void manifest_read_seams_out_of_order_or_outside_are_refused(void **state)
{
	static const struct manifest_seam good[] = {{0, 1, NULL}, {0, 99, NULL}, {1, 5, NULL}};
	static const struct manifest_seam bad[][2] = {
		{{0, 0, NULL}, {0, 5, NULL}}, {{0, 5, NULL}, {0, 100, NULL}},
		{{0, 5, NULL}, {0, 5, NULL}}, {{1, 5, NULL}, {0, 7, NULL}},
		{{0, 5, NULL}, {2, 7, NULL}},
	};

	(void)state;
	assert_int_equal(read_seams(good, ARRAY_SIZE(good)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(read_seams(bad[i], 2), -EBADMSG);
}

static void manifest_read_image_that_contradicts_itself_is_refused(void **state)
{
	(void)state;
	assert_int_equal(read_image(5, 0, NULL, false, "0x0+0x5", 9), 0);
	assert_int_equal(read_image(0, 0, NULL, true, NULL, 9), 0);
	assert_int_equal(read_image(5, 0, NULL, true, NULL, 9), -EBADMSG);
	assert_int_equal(read_image(0, 0, "gone", true, NULL, 9), -EBADMSG);
	assert_int_equal(read_image(5, 1, NULL, false, "0x0+0x5", 9), -EBADMSG);
	assert_int_equal(read_image(5, 0, NULL, false, "0x0+0x5", MANIFEST_ABSENT), -EBADMSG);
}

static void manifest_pieces_format_then_parse_gives_the_same(void **state)
{
	const struct manifest_piece in[] = {{0, 1}, {2, 0x1000}, {0x7fffffff00000000, 0xfffffffe}};
	struct manifest_piece *out;
	char *text;
	size_t n;

	(void)state;
	assert_int_equal(manifest_pieces_format(in, 3, &text), 0);
	assert_string_equal(text, "0x0+0x1,0x2+0x1000,0x7fffffff00000000+0xfffffffe");
	assert_int_equal(manifest_pieces_parse(text, &out, &n), 0);
	assert_int_equal(n, 3);
	assert_memory_equal(in, out, sizeof(in));
	free(out);
	free(text);
	assert_int_equal(manifest_pieces_format(in, 0, &text), 0);
	assert_string_equal(text, "");
	free(text);
}

static void manifest_pieces_parse_what_is_no_list_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"0x0",
		"0x0+",
		"0x0+0x0",
		"0x0+0x1,",
		",0x0+0x1",
		"0x0+0x1 ",
		"0+1",
		"0x00+0x1",
		"0x0+0x01",
		"0xA+0x1",
		"0x0+0x1,0x1+0x1", /* touches */
		"0x4+0x4,0x6+0x1", /* overlaps */
		"0x4+0x4,0x0+0x1", /* out of order */
		"0x10000000000000000+0x1",
		"0x0+0x8000000000000000",
		"0x7fffffffffffffff+0x1",
		"0xffffffffffffffff+0x2",
		"-",
	};
	struct manifest_piece *out;
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (manifest_pieces_parse(bad[i], &out, &n) != -EBADMSG)
			fail_msg("\"%s\" was taken", bad[i]);
}

static void manifest_pieces_join_sorts_joins_and_drops(void **state)
{
	struct manifest_piece p[] = {{100, 10},	      {0, 4},	 {4, 4},	 {105, 2}, {50, 0},
				     {UINT64_MAX, 2}, {109, 20}, {INT64_MAX, 1}, {20, 1}};

	(void)state;
	assert_int_equal(manifest_pieces_join(p, ARRAY_SIZE(p)), 3);
	assert_true(p[0].offset == 0 && p[0].size == 8);
	assert_true(p[1].offset == 20 && p[1].size == 1);
	assert_true(p[2].offset == 100 && p[2].size == 29);
	assert_int_equal(manifest_pieces_join(p, 0), 0);
}

static void manifest_read_can_be_added_to(void **state)
{
	struct manifest m, back;
	struct bytes_out text;

	(void)state;
	fill(&m);
	text = text_of(&m);
	assert_int_equal(read_text((char *)text.data, &back), 0);
	for (uint32_t i = 0; i < 100; i++) {
		assert_non_null(manifest_add_cpu(&back));
		assert_non_null(manifest_add_image(&back));
		assert_int_equal(manifest_add_note(&back, "k", i, NULL), 0);
	}
	assert_int_equal(back.n_cpus, 105);
	assert_int_equal(back.cpus[4].bytes, 1004);
	bytes_out_done(&text);
	manifest_done(&back);
	manifest_done(&m);
}

static void manifest_add_beyond_the_limit_gives_none(void **state)
{
	struct manifest m;

	(void)state;
	manifest_init(&m);
	for (unsigned i = 0; i < MANIFEST_MAX_CPUS; i++)
		assert_non_null(manifest_add_cpu(&m));
	assert_null(manifest_add_cpu(&m));
	for (unsigned i = 0; i < MANIFEST_MAX_NOTES; i++)
		assert_int_equal(manifest_add_note(&m, "k", 1, NULL), 0);
	assert_int_equal(manifest_add_note(&m, "k", 1, NULL), -ENOSPC);
	manifest_done(&m);
	assert_int_equal(m.n_cpus, 0);
}

/* TEXT with its first FROM replaced. */
static char *replaced(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	char *s = NULL;

	if (!at)
		fail_msg("no %s in the manifest", from);
	assert_true(asprintf(&s, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) >= 0);
	return s;
}

static void manifest_read_altered_is_judged(void **state)
{
	static const struct {
		const char *from, *to;
		int expected;
	} cases[] = {
		{"\"manifestVersion\": 1", "\"manifestVersion\": 2", -EPROTONOSUPPORT},
		{"\"manifestVersion\": 1", "\"manifestVersion\": 0", -EBADMSG},
		{"\"manifestVersion\": 1", "\"manifestVersion\": \"x\"", -EBADMSG},
		{"\"manifestVersion\": 1", "\"manifestVersion\": null", -EBADMSG},
		{"\"manifestVersion\": 1", "\"manifestVersion\": 1, \"new\": {\"a\": [1]}", 0},
		/* duplicates, at any depth, even with equal values */
		{"\"manifestVersion\": 1", "\"manifestVersion\": 1, \"manifestVersion\": 1",
		 -EBADMSG},
		{"\"timeShift\": 31", "\"timeShift\": 31, \"timeShift\": 31", -EBADMSG},
		{"\"bytes\": 1000", "\"bytes\": 1000, \"b\\u0079tes\": 1000", -EBADMSG},
		{"\"version\": \"0.1\"", "\"version\": \"\\\"a\\\\\\\":b{[,\"", 0},
		{"\"version\": \"0.1\"", "\"version\": \"\\\":\\\"\"", 0},
		/* types */
		{"\"id\": \"20240101-abc\"", "\"id\": null", -EBADMSG},
		{"\"id\": \"20240101-abc\"", "\"id\": 1", -EBADMSG},
		{"\"id\": \"20240101-abc\"", "\"id\": \"a\\u0000b\"", -EBADMSG},
		{"\"id\": \"20240101-abc\"", "\"id\": \"a\xff\"", -EBADMSG},
		{"\"bootId\": \"0f\"", "\"bootId\": null", 0},
		{"\"buildId\": \"00ff\"", "\"buildId\": \"\"", -EBADMSG},
		{"\"buildId\": \"00ff\"", "\"buildId\": \"00f\"", -EBADMSG},
		{"\"buildId\": \"00ff\"", "\"buildId\": \"00FF\"", -EBADMSG},
		{"\"buildId\": \"00ff\"", "\"buildId\": 255", -EBADMSG},
		{"\"buildId\": \"00ff\"",
		 "\"buildId\": \"000000000000000000000000000000000000000000\"", -EBADMSG},
		/* as written by an older recorder */
		{",\n      \"buildId\": \"00ff\"", "", 0},
		{",\n    \"clockIsMonotonic\": true", "", 0},
		{"\"clockIsMonotonic\": true", "\"clockIsMonotonic\": null", 0},
		{"\"clockIsMonotonic\": true", "\"clockIsMonotonic\": 1", -EBADMSG},
		/* of a newer one */
		{"\"state\": \"busy\"", "\"state\": \"on holiday\"", 0},
		{"\"state\": \"busy\"", "\"state\": 1", -EBADMSG},
		{"\"stopOrder\": 0", "\"stopOrder\": -1", -EBADMSG},
		{"\"user\": true", "\"user\": 1", -EBADMSG},
		{"\"user\": true", "\"user\": null", -EBADMSG},
		{"\"senderPid\": 42", "\"senderPid\": 42.0", -EBADMSG},
		{"\"senderPid\": 42", "\"senderPid\": -42", -EBADMSG},
		{"\"senderPid\": 42", "\"senderPid\": {}", -EBADMSG},
		{"\"senderPid\": 42", "\"senderPid\": 042", -EBADMSG},
		{"\"senderPid\": 42", "\"senderPid\": NaN", -EBADMSG},
		{"\"senderPid\": 42", "\"senderPid\": \"42\"", 0},
		{"\"senderPid\": 42", "\"senderPid\": \"0x2a\"", 0},
		{"\"senderPid\": 42", "\"senderPid\": \"\"", -EBADMSG},
		{"\"senderPid\": 42", "\"senderPid\": \"0x\"", -EBADMSG},
		{"\"senderPid\": 42", "\"senderPid\": \" 42\"", -EBADMSG},
		{"\"senderPid\": 42", "\"senderPid\": \"+42\"", -EBADMSG},
		{"\"senderPid\": 42", "\"senderPid\": \"18446744073709551616\"", -EBADMSG},
		{"\"senderPid\": 42", "\"senderPid\": \"0x10000000000000000\"", -EBADMSG},
		{"\"senderPid\": 42", "\"senderPid\": 18446744073709551615", -EBADMSG},
		/* ranges */
		{"\"timeShift\": 31", "\"timeShift\": 63", 0},
		{"\"timeShift\": 31", "\"timeShift\": 64", -EBADMSG},
		{"\"timeShift\": 31", "\"timeShift\": 65567", -EBADMSG},
		{"\"timeMult\": 4294967295", "\"timeMult\": 4294967296", -EBADMSG},
		{"\"mtcPeriod\": 9", "\"mtcPeriod\": 16", -EBADMSG},
		{"\"cpu\": 4", "\"cpu\": 4095", 0},
		{"\"cpu\": 4", "\"cpu\": 4096", -EBADMSG},
		{"\"cpu\": 4", "\"cpu\": 3", -EBADMSG}, /* twice */
		{"\"bytes\": 1000", "\"bytes\": 68719476737", -EBADMSG},
		{"\"missing\": \"no file\"", "\"missing\": null", 0},
		{"\"missing\": null", "\"missing\": \"but it has bytes\"", -EBADMSG},
		/* shape */
		{"\"clock\": {", "\"clock\": null, \"other\": {", 0},
		{"\"clock\": {", "\"other\": {", -EBADMSG},
		{"\"host\": {", "\"host\": null, \"other\": {", -EBADMSG},
		{"\"cpus\": [", "\"cpus\": null, \"other\": [", -EBADMSG},
		{"\"cpus\": [", "\"cpus\": {}, \"other\": [", -EBADMSG},
		{"\"cpus\": [", "\"cpus\": [null,", -EBADMSG},
		{"\"notes\": [", "\"notes\": [[[[[[[[[[1]]]]]]]]],", -EBADMSG},
		{"\"notes\": [", "\"notes\": [,", -EBADMSG},
		{"\"notes\": [", "\"notes\": [ /* comment */", -EBADMSG},
		{"{", "[{", -EBADMSG},
	};
	struct bytes_out text;
	struct manifest m, back;

	(void)state;
	fill(&m);
	text = text_of(&m);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP_FREE char *s = replaced((char *)text.data, cases[i].from, cases[i].to);
		int r = read_text(s, &back);

		if (r != cases[i].expected)
			fail_msg("%s: %d", cases[i].to, r);
		if (r < 0)
			assert_true(!back.id && !back.cpus && !back.images && back.n_cpus == 0);
		manifest_done(&back);
	}
	bytes_out_done(&text);
	manifest_done(&m);
}

static void manifest_read_truncated_anywhere_is_refused(void **state)
{
	struct bytes_out text;
	struct manifest m;

	(void)state;
	fill(&m);
	text = text_of(&m);
	manifest_done(&m);
	manifest_init(&m);
	/* NUL and newline may be missing. */
	for (size_t size = 0; size < text.size - 2; size++)
		assert_int_equal(manifest_read(text.data, size, &m), -EBADMSG);
	assert_int_equal(manifest_read(text.data, text.size, &m), -EBADMSG);
	assert_int_equal(manifest_read(text.data, text.size - 2, &m), 0);
	manifest_done(&m);
	text.data[text.size - 1] = '}';
	assert_int_equal(manifest_read(text.data, text.size, &m), -EBADMSG);
	bytes_out_done(&text);
}

/* A text for which json-c would need gigabytes is refused before json-c gets it. */
static void manifest_read_bomb_is_refused(void **state)
{
	static const char *const units[] = {"{},", "[],", "1,", "{\"a\":1},", "\"a\":1,"};
	const size_t size = 16u << 20;
	CLEANUP_FREE char *s = malloc(size);
	struct manifest m;

	(void)state;
	manifest_init(&m);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		size_t n = strlen(units[i]);

		for (size_t at = 0; at < size; at++)
			s[at] = units[i][at % n];
		s[0] = '[';
		assert_int_equal(manifest_read(s, size, &m), -EBADMSG);
	}
	memset(s, '[', size);
	assert_int_equal(manifest_read(s, size, &m), -EBADMSG);
	memset(s, '\\', size);
	s[0] = '"';
	assert_int_equal(manifest_read(s, size, &m), -EBADMSG);
}

static void manifest_write_without_space_says_so(void **state)
{
	struct bytes_out out;
	struct manifest m;

	(void)state;
	manifest_init(&m);
	bytes_out_init(&out, 100);
	assert_int_equal(manifest_write(&m, &out), -E2BIG);
	bytes_out_done(&out);
	manifest_done(&m);
}

/* The packets that attr.config of intel_pt leaves out of a trace. */
static void manifest_contents_follow_the_configuration(void **state)
{
	static const struct {
		uint64_t config;
		enum manifest_contents contents;
	} cases[] = {
		{MANIFEST_ABSENT, MANIFEST_BRANCHES}, /* not known to lack anything */
		{0x2601, MANIFEST_BRANCHES},	      /* pt,branch,tsc,mtc */
		{0x600, MANIFEST_BRANCHES},	      /* without pt branches are always on */
		{0x601, MANIFEST_EVENTS},	      /* branch=0 */
		{0x80000000002601, MANIFEST_TARGETS}, /* notnt */
		{0x80000000000601, MANIFEST_EVENTS},  /* notnt,branch=0 */
		{UINT64_C(0x80000000000000), MANIFEST_TARGETS}, /* notnt without pt */
	};
	struct manifest m;

	(void)state;
	manifest_init(&m);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		m.pt_config = cases[i].config;
		assert_int_equal(manifest_contents(&m), cases[i].contents);
	}
	manifest_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(manifest_contents_follow_the_configuration),
		cmocka_unit_test(manifest_write_then_read_gives_the_same),
		cmocka_unit_test(manifest_write_then_read_keeps_every_number_apart),
		cmocka_unit_test(manifest_write_empty_is_readable_and_says_null),
		cmocka_unit_test(manifest_read_of_an_older_recorder_has_the_new_fields_absent),
		cmocka_unit_test(
			manifest_excluded_processes_come_back_and_others_do_not_mention_it),
		cmocka_unit_test(manifest_images_elsewhere_come_back_and_others_do_not_mention_it),
		cmocka_unit_test(manifest_unit_and_labels_come_back_and_others_do_not_mention_them),
		cmocka_unit_test(manifest_read_seams_out_of_order_or_outside_are_refused),
		cmocka_unit_test(manifest_read_image_that_contradicts_itself_is_refused),
		cmocka_unit_test(manifest_pieces_format_then_parse_gives_the_same),
		cmocka_unit_test(manifest_pieces_parse_what_is_no_list_is_refused),
		cmocka_unit_test(manifest_pieces_join_sorts_joins_and_drops),
		cmocka_unit_test(manifest_read_can_be_added_to),
		cmocka_unit_test(manifest_add_beyond_the_limit_gives_none),
		cmocka_unit_test(manifest_read_altered_is_judged),
		cmocka_unit_test(manifest_read_truncated_anywhere_is_refused),
		cmocka_unit_test(manifest_read_bomb_is_refused),
		cmocka_unit_test(manifest_write_without_space_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
