/*
 * A trace of the kernel whose code is known from files alone: where the kernel patches itself
 * nothing is claimed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/worker/decode.h"
#include "decoder/worker/replay/replay_private.h"
#include "proto/base.h"
#include "proto/perf/perfrecord.h"
#include "tests/unit/decoder/worker/made.h"
#include "tests/unit/decoder/worker/made_parts.h"
#include "tests/unit/sideband/elf_maker.h"

#define LINKED	0xffffffff81000000u
#define DATA	0xffffffff82000000u
#define MOVED	0xffffffff91000000u
#define MODULE	0xffffffffc0201000u
#define BPF	0xffffffffc0000000u
#define TEXT	0x200u
#define PATCHED 0x10u /* a jump label's two bytes */
#define NOTE	"\4\0\0\0\4\0\0\0\3\0\0\0GNU\0ABCD"

static const char symbols[] = "ffffffff91000000 T _stext\n"
			      "ffffffff91000200 T _etext\n"
			      "ffffffff91000000 t first\n"
			      "ffffffff91000100 t second\n"
			      "ffffffff92000000 D __start___jump_table\n"
			      "ffffffff92000010 D __stop___jump_table\n"
			      "ffffffff92000010 R __alt_instructions\n"
			      "ffffffff92000010 R __alt_instructions_end\n";
static const char sections[] = "virtio .text 0xffffffffc0201000\n";

struct file {
	uint8_t *bytes;
	size_t size;
};

/* first: NOPs, a place that is patched; second: a jump to a jump by a register. */
static void make_kernel(struct file *f, const char *note)
{
	uint8_t text[TEXT], data[16] = {0};
	uint32_t far = 0x180 - 0x105, site = (uint32_t)(LINKED + PATCHED - DATA);
	struct elf_maker m;

	memset(text, 0x90, sizeof(text));
	text[PATCHED] = 0xeb;
	text[0x100] = 0xe9;
	memcpy(text + 0x101, &far, sizeof(far));
	memcpy(text + 0x180, "\xff\xe0", 2);
	memcpy(data, &site, sizeof(site));
	elf_maker_init(&m, ET_EXEC);
	elf_maker_map(&m, elf_maker_add(&m, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					LINKED, text, sizeof(text)));
	elf_maker_map(&m, elf_maker_add(&m, ".rodata", SHT_PROGBITS, SHF_ALLOC, DATA, data,
					sizeof(data)));
	elf_maker_add(&m, ".notes", SHT_NOTE, SHF_ALLOC, 0, note, sizeof(NOTE) - 1);
	f->bytes = elf_maker_end(&m, &f->size);
}

static void make_module(struct file *f)
{
	static const Elf64_Sym symbol;
	struct elf_maker m;
	size_t table;

	elf_maker_init(&m, ET_REL);
	elf_maker_add(&m, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, "\xff\xe0", 2);
	table = elf_maker_add(&m, ".symtab", SHT_SYMTAB, 0, 0, &symbol, sizeof(symbol));
	m.sections[table].sh_link = (uint32_t)elf_maker_add(&m, ".strtab", SHT_STRTAB, 0, 0, "", 1);
	f->bytes = elf_maker_end(&m, &f->size);
}

/* PSB+ with a TSC and 64-bit mode; tracing goes on at IP, and off with the next indirect branch. */
static void put_trace(struct bytes_out *out, uint64_t ip)
{
	for (int i = 0; i < 8; i++)
		bytes_put_u16(out, 0x8202);
	bytes_put_u8(out, 0x19);
	for (int i = 0; i < 7; i++)
		bytes_put_u8(out, i == 1);
	bytes_put_u16(out, 0x0199);
	bytes_put_u16(out, 0x2302);
	bytes_put_u8(out, 0x11 | 3 << 5);
	for (int i = 0; i < 48; i += 8)
		bytes_put_u8(out, (uint8_t)(ip >> i));
	bytes_put_u8(out, 0x01);
}

static void add_image(struct manifest *m, const char *path, size_t size)
{
	struct manifest_image *image = manifest_add_image(m);

	assert_non_null(image);
	image->path = strdup(path);
	image->kind = strdup(MANIFEST_IMAGE_KERNEL_FILE);
	image->pid = MANIFEST_ANY;
	image->size = image->file_size = size;
	image->build_id = strcmp(path, "[kernel]") == 0 ? strdup("41424344") : NULL;
}

/* Memory of BPF programs: one with seven INT3s in it, then free bytes, then another one. */
static void add_bpf(struct manifest *m, struct bundle_writer *w)
{
	struct manifest_image *image = manifest_add_image(m);
	uint8_t bytes[64];

	assert_non_null(image);
	memset(bytes, 0x90, sizeof(bytes));
	memset(bytes + 4, 0xcc, 7);
	memset(bytes + 24, 0xcc, 20);
	image->path = strdup("[bpf]");
	image->kind = strdup(MANIFEST_IMAGE_KERNEL);
	image->pid = MANIFEST_ANY;
	image->address = BPF;
	image->read_ns = 100;
	image->size = image->file_size = sizeof(bytes);
	bundle_write_member(w, "images/2", bytes, sizeof(bytes));
}

static void add_text(struct manifest *m, struct bundle_writer *w, const char *kind,
		     const char *bytes)
{
	struct manifest_text *text = manifest_add_text(m);
	char name[32];

	assert_non_null(text);
	text->kind = strdup(kind);
	text->pid = MANIFEST_ANY;
	text->size = strlen(bytes);
	snprintf(name, sizeof(name), "texts/%zu", m->n_texts - 1);
	assert_int_equal(bundle_write_member(w, name, bytes, text->size), 0);
}

static void describe(struct manifest *m, size_t trace)
{
	made_describe(m, "kernel", 1000000, trace);
	free(m->source);
	m->source = strdup("intel_pt");
	m->trace_kernel = true;
	m->kernel_start = MOVED;
}

static struct bundle *make(uint64_t ip, const char *note)
{
	CLEANUP(bytes_out_done) struct bytes_out trace, sideband;
	int fd = memfd_create("bundle", MFD_CLOEXEC);
	struct bundle *bundle = NULL;
	struct file kernel, module;
	struct bundle_writer w;
	struct manifest m;

	assert_true(fd >= 0);
	manifest_init(&m);
	bytes_out_init(&trace, 1 << 20);
	bytes_out_init(&sideband, 1 << 20);
	put_trace(&trace, ip);
	made_put_start(&sideband, 10);
	make_kernel(&kernel, note);
	make_module(&module);
	describe(&m, trace.size);
	bundle_writer_init(&w, fd);
	bundle_write_member(&w, "cpu0.pt", trace.data, trace.size);
	bundle_write_member(&w, "sideband", sideband.data, sideband.size);
	add_image(&m, "[kernel]", kernel.size);
	bundle_write_member(&w, "images/0", kernel.bytes, kernel.size);
	add_image(&m, "[virtio]", module.size);
	bundle_write_member(&w, "images/1", module.bytes, module.size);
	add_bpf(&m, &w);
	add_text(&m, &w, MANIFEST_TEXT_KALLSYMS, symbols);
	add_text(&m, &w, MANIFEST_TEXT_KERNEL_SECTIONS, sections);
	assert_int_equal(bundle_write_end(&w, &m), 0);
	manifest_done(&m);
	free(kernel.bytes);
	free(module.bytes);
	assert_int_equal(bundle_open(fd, &bundle), 0);
	close(fd);
	return bundle;
}

static void expect_code(const struct replay *r, uint64_t ip, uint64_t begin, uint64_t end)
{
	struct flow_code code;

	assert_int_equal(replay_kernel_code(r, ip, 0, &code), 0);
	assert_int_equal(code.address, begin);
	assert_int_equal(code.address + code.size, end);
}

static void replay_kernel_code_of_files_ends_where_it_is_patched(void **state)
{
	struct bundle *bundle = make(MOVED, NOTE);
	struct replay *r = NULL;
	struct flow_code code;

	(void)state;
	assert_int_equal(replay_new(bundle, NULL, &r), 0);
	expect_code(r, MOVED + 3, MOVED, MOVED + PATCHED);
	expect_code(r, MOVED + PATCHED + 2, MOVED + PATCHED + 2, MOVED + TEXT);
	expect_code(r, MODULE, MODULE, MODULE + 2);
	assert_int_equal(replay_kernel_code(r, MOVED + PATCHED, 0, &code), FAULT_KERNEL_TEXT);
	assert_int_equal(replay_kernel_code(r, MOVED + PATCHED + 1, 0, &code), FAULT_KERNEL_TEXT);
	assert_int_not_equal(replay_kernel_code(r, MOVED + TEXT, 0, &code), 0);
	replay_free(r);
	bundle_free(bundle);
}

static void replay_kernel_code_of_freed_bpf_programs_is_unknown(void **state)
{
	struct bundle *bundle = make(MOVED, NOTE);
	struct replay *r = NULL;
	struct flow_code code;

	(void)state;
	assert_int_equal(replay_new(bundle, NULL, &r), 0);
	expect_code(r, BPF + 5, BPF, BPF + 24);
	assert_int_equal(replay_kernel_code(r, BPF + 24, 0, &code), FAULT_KERNEL_TEXT);
	assert_int_equal(replay_kernel_code(r, BPF + 43, 0, &code), FAULT_KERNEL_TEXT);
	expect_code(r, BPF + 44, BPF + 44, BPF + 64);
	replay_free(r);
	bundle_free(bundle);
}

/* The firmware's code (EFI) is mapped below the kernel's text. */
static void replay_is_kernel_of_firmware_is_true(void **state)
{
	struct bundle *bundle = make(MOVED, NOTE);
	struct replay *r = NULL;

	(void)state;
	assert_int_equal(replay_new(bundle, NULL, &r), 0);
	assert_true(replay_is_kernel(r, MOVED));
	assert_true(replay_is_kernel(r, 0xfffffffeef000000));
	assert_false(replay_is_kernel(r, 0x7fffffffe000));
	replay_free(r);
	bundle_free(bundle);
}

static char *report(struct bundle *bundle, uint64_t *ret_faults)
{
	const struct decode_options options = {
		.view = WORKER_VIEW_REPORT, .report_limit = 2u << 20, .pretty = 1};
	int fd = memfd_create("report", MFD_CLOEXEC);
	const struct decode_sink sink = {.fd = fd, .version = "0"};
	size_t size;

	assert_int_equal(decode_run(bundle, &options, &sink, ret_faults), 0);
	bundle_free(bundle);
	return made_text(fd, &size);
}

static void decode_run_through_a_patched_place_is_a_gap(void **state)
{
	uint64_t faults;
	char *text = report(make(MOVED, NOTE), &faults);

	(void)state;
	assert_int_equal(faults, 1);
	assert_non_null(strstr(text, "\"kind\": \"kernel-text-unreliable\""));
	free(text);
	/* Elsewhere there is none. */
	text = report(make(MOVED + 0x100, NOTE), &faults);
	assert_int_equal(faults, 0);
	assert_non_null(strstr(text, "\"second\""));
	free(text);
	text = report(make(MODULE, NOTE), &faults);
	assert_int_equal(faults, 0);
	free(text);
}

static void decode_run_with_the_kernel_of_another_build_is_a_gap(void **state)
{
	static const char other[] = "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0ABCE";
	uint64_t faults;
	char *text = report(make(MOVED + 0x100, other), &faults);

	(void)state;
	assert_int_equal(faults, 1);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replay_kernel_code_of_files_ends_where_it_is_patched),
		cmocka_unit_test(replay_kernel_code_of_freed_bpf_programs_is_unknown),
		cmocka_unit_test(replay_is_kernel_of_firmware_is_true),
		cmocka_unit_test(decode_run_through_a_patched_place_is_a_gap),
		cmocka_unit_test(decode_run_with_the_kernel_of_another_build_is_a_gap),
	};

	return cmocka_run_group_tests_name("kernel_files", tests, NULL, NULL);
}
