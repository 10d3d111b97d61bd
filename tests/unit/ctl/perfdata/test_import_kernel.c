/*
 * ctl/perfdata, import_kernel: the kernel's memory that perf copied, in the bundle.
 */
#include "ctl/perfdata/import_kernel.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/memfd.h"

#define TEXT	0xffffffff81000000u
#define MODULES 0xffffffffc0000000u
#define SYMBOLS "ffffffff81000000 T _text\n"

static char root[] = "/tmp/test_import_kernel.XXXXXX";

static void path_of(char to[128], const char *name)
{
	snprintf(to, 128, "%s/%s", root, name);
}

static int make_root(void **state)
{
	char path[128];

	(void)state;
	assert_non_null(mkdtemp(root));
	path_of(path, "kcore_dir");
	return mkdir(path, 0777);
}

static int remove_root(void **state)
{
	char path[128];

	(void)state;
	path_of(path, "kcore_dir/kcore");
	unlink(path);
	path_of(path, "kcore_dir/kallsyms");
	unlink(path);
	path_of(path, "kcore_dir");
	rmdir(path);
	return rmdir(root);
}

static void put(const char *name, const void *bytes, size_t size)
{
	char path[128];
	FILE *f;

	path_of(path, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

struct core {
	Elf64_Ehdr head;
	Elf64_Phdr segments[4];
	char text[8], modules[4];
};

/* A note, text and modules of the kernel, and memory of a process. */
static struct core a_core(void)
{
	struct core c = {.head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					      ELFDATA2LSB, EV_CURRENT},
				  .e_type = ET_CORE,
				  .e_machine = EM_X86_64,
				  .e_phoff = offsetof(struct core, segments),
				  .e_phentsize = sizeof(Elf64_Phdr),
				  .e_phnum = 4},
			 .text = "kernel!",
			 .modules = "mod"};

	c.segments[0] = (Elf64_Phdr){.p_type = PT_NOTE, .p_vaddr = TEXT, .p_filesz = 1};
	c.segments[1] = (Elf64_Phdr){.p_type = PT_LOAD,
				     .p_vaddr = TEXT,
				     .p_offset = offsetof(struct core, text),
				     .p_filesz = sizeof(c.text)};
	c.segments[2] = (Elf64_Phdr){.p_type = PT_LOAD,
				     .p_vaddr = MODULES,
				     .p_offset = offsetof(struct core, modules),
				     .p_filesz = sizeof(c.modules)};
	c.segments[3] = (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = 0x400000, .p_filesz = 1};
	return c;
}

/* The bundle of a trace of the kernel, or of user code only. */
static struct bundle *imported(bool kernel, struct bundle **ret)
{
	struct bundle_writer w;
	struct manifest m;
	char path[128];
	int fd;

	path_of(path, "data");
	manifest_init(&m);
	m.trace_kernel = kernel;
	m.id = strdup("perf.data");
	m.version = strdup("0");
	m.trigger_kind = strdup("offline");
	m.source = strdup("intel_pt");
	assert_int_equal(memfd_new("test", 0, &fd), 0);
	bundle_writer_init(&w, fd);
	assert_int_equal(bundle_write_member(&w, "sideband", "", 0), 0);
	assert_int_equal(import_kernel_write(path, &m, &w), 0);
	assert_int_equal(bundle_write_end(&w, &m), 0);
	manifest_done(&m);
	assert_int_equal(bundle_open(fd, ret), 0);
	close(fd);
	return *ret;
}

static void import_kernel_segments_of_the_kernel_become_images(void **state)
{
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	const struct core core = a_core();
	const struct manifest *m;
	size_t size;

	(void)state;
	put("kcore_dir/kcore", &core, sizeof(core));
	put("kcore_dir/kallsyms", SYMBOLS, sizeof(SYMBOLS) - 1);
	m = bundle_manifest(imported(true, &b));
	assert_int_equal(m->n_images, 2);
	assert_string_equal(m->images[0].kind, MANIFEST_IMAGE_KERNEL);
	assert_int_equal(m->images[0].address, TEXT);
	assert_int_equal(m->images[0].read_ns, 0);
	assert_memory_equal(bundle_image(b, 0, &size), core.text, sizeof(core.text));
	assert_int_equal(size, sizeof(core.text));
	assert_int_equal(m->images[1].address, MODULES);
	assert_memory_equal(bundle_image(b, 1, &size), core.modules, sizeof(core.modules));
	assert_int_equal(m->n_texts, 1);
	assert_string_equal(m->texts[0].kind, MANIFEST_TEXT_KALLSYMS);
	assert_memory_equal(bundle_text(b, 0, &size), SYMBOLS, sizeof(SYMBOLS) - 1);
	assert_int_equal(size, sizeof(SYMBOLS) - 1);
}

static void import_kernel_trace_of_user_code_has_no_kernel(void **state)
{
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	const struct core core = a_core();
	const struct manifest *m;

	(void)state;
	put("kcore_dir/kcore", &core, sizeof(core));
	m = bundle_manifest(imported(false, &b));
	assert_int_equal(m->n_images, 0);
	assert_int_equal(m->n_texts, 0);
}

static void expect_images(const struct core *core, size_t size, size_t n)
{
	CLEANUP(bundle_freep) struct bundle *b = NULL;

	put("kcore_dir/kcore", core, size);
	assert_int_equal(bundle_manifest(imported(true, &b))->n_images, n);
}

static void import_kernel_damaged_core_file_is_left_out(void **state)
{
	struct core core = a_core();

	(void)state;
	expect_images(&core, sizeof(core.head) + 1, 0);
	core.head.e_phnum = 65;
	expect_images(&core, sizeof(core), 0);
	core = a_core();
	core.head.e_phentsize--;
	expect_images(&core, sizeof(core), 0);
	core = a_core();
	core.head.e_phoff = UINT64_MAX;
	expect_images(&core, sizeof(core), 0);
	core = a_core();
	core.head.e_ident[0] = 0;
	expect_images(&core, sizeof(core), 0);
}

static void import_kernel_segment_beyond_the_file_is_left_out(void **state)
{
	struct core core = a_core();

	(void)state;
	core.segments[1].p_filesz = UINT64_MAX;
	expect_images(&core, sizeof(core), 1);
	core.segments[2].p_offset = sizeof(core) + 1;
	expect_images(&core, sizeof(core), 0);
}

static void import_kernel_copy_that_is_no_regular_file_is_left_out(void **state)
{
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	char path[128];

	(void)state;
	path_of(path, "kcore_dir/kcore");
	unlink(path);
	assert_int_equal(symlink("/proc/kcore", path), 0);
	assert_int_equal(bundle_manifest(imported(true, &b))->n_images, 0);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(import_kernel_segments_of_the_kernel_become_images),
		cmocka_unit_test(import_kernel_trace_of_user_code_has_no_kernel),
		cmocka_unit_test(import_kernel_damaged_core_file_is_left_out),
		cmocka_unit_test(import_kernel_segment_beyond_the_file_is_left_out),
		cmocka_unit_test(import_kernel_copy_that_is_no_regular_file_is_left_out),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
