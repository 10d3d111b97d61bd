/*
 * The parts of the kernel that a snapshot gathers, from trees that look like a host's.
 */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/gather/evidence.h"
#include "proto/base.h"
#include "proto/perf/perfrecord.h"
#include "tests/unit/capture/tree.h"

#define TEXT   0xffffffff81000000u
#define MODULE 0xffffffffc0201000u
#define SIZE   0x1000u

#define SYMBOLS                                  \
	"ffffffff81000000 T _text\n"             \
	"ffffffff81000000 T _stext\n"            \
	"ffffffff81001000 T _etext\n"            \
	"ffffffffc0201010 t first\t[virtio]\n"   \
	"ffffffffc0202040 d some\t[virtio]\n"    \
	"ffffffffc0300000 t bpf_prog_1\t[bpf]\n" \
	"ffffffffc0301000 t bpf_prog_2\t[other]\n"
#define MODULES "virtio 8192 0 - Live 0xffffffffc0201000\nother 4096 0 - Live 0xffffffffc0301000\n"

struct host {
	char *root, proc[256], sys[256];
	struct kernel_paths paths;
	struct kernel *kernel;
	struct source source;
	struct evidence *evidence;
};

/* TEXT is all 1, MODULE all 2, and the rest of the module area 0. */
static void make_core(struct host *h)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segments[2];
	} c = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
			   .e_type = ET_CORE,
			   .e_machine = EM_X86_64,
			   .e_phoff = sizeof(Elf64_Ehdr),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 2},
		.segments =
			{{.p_type = PT_LOAD, .p_vaddr = TEXT, .p_offset = 0x1000, .p_memsz = SIZE},
			 {.p_type = PT_LOAD,
			  .p_vaddr = MODULE,
			  .p_offset = 0x2000,
			  .p_memsz = 0x111000}},
	};
	static uint8_t bytes[0x113000];

	memcpy(bytes, &c, sizeof(c));
	memset(bytes + 0x1000, 1, SIZE);
	memset(bytes + 0x2000, 2, SIZE);
	memset(bytes + 0x102000, 3, SIZE);
	tree_write_bytes(h->root, "proc/kcore", bytes, sizeof(bytes));
}

static void new_evidence(struct host *h)
{
	evidence_free(h->evidence);
	h->evidence = calloc(1, sizeof(*h->evidence));
	assert_non_null(h->evidence);
	manifest_init(&h->evidence->manifest);
	h->evidence->traced = true;
}

static int setup(void **state)
{
	struct host *h = calloc(1, sizeof(*h));

	assert_non_null(h);
	h->root = tree_new();
	snprintf(h->proc, sizeof(h->proc), "%s/proc", h->root);
	snprintf(h->sys, sizeof(h->sys), "%s/sys", h->root);
	h->paths = (struct kernel_paths){h->proc, h->sys, h->root, "6.1"};
	h->source = (struct source){.trace_kernel = true, .clock_is_monotonic = true};
	tree_write(h->root, "proc/kallsyms", SYMBOLS);
	tree_write(h->root, "proc/modules", MODULES);
	make_core(h);
	new_evidence(h);
	assert_int_equal(kernel_new(&h->paths, &h->kernel), 0);
	*state = h;
	return 0;
}

static int teardown(void **state)
{
	struct host *h = *state;

	kernel_free(h->kernel);
	evidence_free(h->evidence);
	tree_free(h->root);
	free(h);
	return 0;
}

static const struct manifest *gather(struct host *h)
{
	new_evidence(h);
	assert_int_equal(kernel_gather(h->kernel, &h->source, h->evidence), 0);
	return &h->evidence->manifest;
}

static void expect_image(struct host *h, size_t i, const char *path, const char *kind,
			 uint64_t address, uint8_t byte)
{
	const struct manifest_image *m = &h->evidence->manifest.images[i];
	uint8_t bytes[1];

	assert_string_equal(m->path, path);
	assert_string_equal(m->kind, kind);
	assert_int_equal(m->address, address);
	assert_int_equal(m->pid, MANIFEST_ANY);
	assert_true(m->elsewhere);
	assert_int_equal(m->file_size, h->evidence->images[i].size);
	assert_int_equal(pread(h->evidence->images[i].fd, bytes, 1, 0), 1);
	assert_int_equal(bytes[0], byte);
}

static void kernel_gather_copies_text_and_texts(void **state)
{
	struct host *h = *state;
	const struct manifest *m = gather(h);

	/* The text of the BPF program is gone: its region reads as zeros. */
	assert_int_equal(m->n_images, 3);
	expect_image(h, 0, "[kernel]", "kernel", TEXT, 1);
	expect_image(h, 1, "[virtio]", "kernel", MODULE, 2);
	expect_image(h, 2, "[other]", "kernel", 0xffffffffc0301000, 3);
	assert_int_equal(m->images[0].file_size, SIZE);
	assert_int_equal(m->images[1].file_size, SIZE);
	assert_true(m->images[0].read_ns != MANIFEST_ABSENT && m->images[0].read_ns > 0);
	assert_true(m->images[1].read_ns >= m->images[0].read_ns);
	assert_int_equal(m->n_texts, 2);
	assert_string_equal(m->texts[0].kind, "kallsyms");
	assert_null(m->texts[0].missing);
	assert_memory_equal(h->evidence->texts[0].data, "ffffffff81000000 T _text\n", 25);
	assert_string_equal(m->texts[1].kind, "modules");
	assert_int_equal(h->evidence->texts[1].size, sizeof(MODULES) - 1);
	assert_int_equal(m->kernel_start, TEXT);
	assert_int_equal(m->n_notes, 0);
}

static void kernel_gather_of_a_trace_without_the_kernel_adds_nothing(void **state)
{
	struct host *h = *state;

	h->source.trace_kernel = false;
	assert_int_equal(gather(h)->n_images, 0);
	h->source.trace_kernel = true;
	h->evidence->traced = false;
	assert_int_equal(kernel_gather(h->kernel, &h->source, h->evidence), 0);
	assert_int_equal(kernel_gather(NULL, &h->source, h->evidence), 0);
	assert_int_equal(h->evidence->manifest.n_texts, 0);
}

/* Writes a KSYMBOL record: code at ADDRESS comes, or goes. */
static void put_ksymbol(struct bytes_out *out, uint64_t address, uint32_t size, bool gone)
{
	struct perfrecord record = {.type = PERF_RECORD_KSYMBOL, .time = 5};
	uint8_t body[32] = {0}, buffer[128];
	uint16_t type = PERF_RECORD_KSYMBOL_TYPE_BPF, flags = gone;
	size_t n;

	memcpy(body, &address, 8);
	memcpy(body + 8, &size, 4);
	memcpy(body + 12, &type, 2);
	memcpy(body + 14, &flags, 2);
	memcpy(body + 16, "bpf_prog_x", 10);
	record.u.raw.bytes = body;
	record.u.raw.size = sizeof(body);
	assert_int_equal(perfrecord_compose(&record, buffer, sizeof(buffer), &n), 0);
	bytes_put_block(out, buffer, n);
}

static void kernel_gather_copies_code_that_records_tell_of(void **state)
{
	struct host *h = *state;

	bytes_out_init(&h->evidence->sideband, 1 << 20);
	put_ksymbol(&h->evidence->sideband, 0xffffffffc0301800, 0x100, false);
	put_ksymbol(&h->evidence->sideband, 0xffffffffc0301400, 0x100, false);
	put_ksymbol(&h->evidence->sideband, 0xffffffffc0301400, 0x100, true);
	assert_int_equal(kernel_gather(h->kernel, &h->source, h->evidence), 0);
	assert_int_equal(h->evidence->manifest.n_images, 4);
	expect_image(h, 2, "[other]", "kernel", 0xffffffffc0301000, 3);
	expect_image(h, 3, "[bpf]", "kernel", 0xffffffffc0301800, 3);
	assert_int_equal(h->evidence->manifest.images[3].file_size, 0x100);
}

static void kernel_gather_names_modules_that_are_gone_once(void **state)
{
	struct host *h = *state;
	const struct manifest *m;

	tree_write(h->root, "proc/modules", "virtio 8192 7 - Live 0xffffffffc0201000\n");
	m = gather(h);
	assert_int_equal(m->n_notes, 1);
	assert_string_equal(m->notes[0].kind, "image-missing");
	assert_int_equal(m->notes[0].count, 1);
	assert_string_equal(m->notes[0].why, "modules that were unloaded: other");
	assert_int_equal(gather(h)->n_notes, 0);
}

static void kernel_gather_without_kcore_hands_on_files(void **state)
{
	static const char note[] = "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\x1\x2\xab\xcd";
	struct host *h = *state;
	const struct manifest *m;
	char path[300];

	snprintf(path, sizeof(path), "%s/kcore", h->proc);
	unlink(path);
	tree_write_bytes(h->root, "sys/kernel/notes", note, sizeof(note) - 1);
	tree_write(h->root, "sys/module/virtio/sections/.text", "0xffffffffc0201000\n");
	tree_write(h->root, "boot/vmlinuz-6.1", "\7");
	tree_write(h->root, "lib/modules/6.1/modules.dep", "kernel/virtio.ko:\n");
	tree_write(h->root, "lib/modules/6.1/kernel/virtio.ko", "\10");
	m = gather(h);
	assert_int_equal(m->n_images, 3);
	expect_image(h, 0, "[kernel]", "kernel-file", MANIFEST_ABSENT, 7);
	assert_string_equal(m->images[0].build_id, "0102abcd");
	expect_image(h, 1, "[virtio]", "kernel-file", MANIFEST_ABSENT, 8);
	assert_null(m->images[1].build_id);
	assert_string_equal(m->images[2].path, "[other]");
	assert_string_equal(m->images[2].missing, "there is no file of it");
	assert_false(m->images[2].elsewhere);
	assert_int_equal(m->n_texts, 3);
	assert_string_equal(m->texts[2].kind, "kernel-sections");
	assert_memory_equal(h->evidence->texts[2].data, "virtio .text 0xffffffffc0201000\n", 32);
	assert_int_equal(m->n_notes, 1);
	assert_string_equal(m->notes[0].kind, "kernel-text-unreliable");
	assert_non_null(strstr(m->notes[0].why, "/proc/kcore: No such file"));
}

static void kernel_gather_with_hidden_addresses_says_so(void **state)
{
	struct host *h = *state;
	const struct manifest *m;

	tree_write(h->root, "proc/kallsyms", "0000000000000000 T _text\n");
	m = gather(h);
	assert_string_equal(m->texts[0].kind, "kallsyms");
	assert_non_null(strstr(m->texts[0].missing, "hidden"));
	assert_int_equal(m->texts[0].size, 0);
	assert_int_equal(m->kernel_start, MANIFEST_ABSENT);
	for (size_t i = 0; i < m->n_images; i++)
		assert_string_equal(m->images[i].kind, "kernel-file");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kernel_gather_copies_text_and_texts),
		TEST(kernel_gather_of_a_trace_without_the_kernel_adds_nothing),
		TEST(kernel_gather_copies_code_that_records_tell_of),
		TEST(kernel_gather_names_modules_that_are_gone_once),
		TEST(kernel_gather_without_kcore_hands_on_files),
		TEST(kernel_gather_with_hidden_addresses_says_so),
	};

	return cmocka_run_group_tests_name("kernel", tests, NULL, NULL);
}
