/*
 * The kernel's symbols, modules, text and files, from trees that look like /proc and /sys.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/kernel/kcore.h"
#include "capture/kernel/kernel_files.h"
#include "capture/kernel/kernel_text.h"
#include "proto/base.h"
#include "tests/unit/capture/tree.h"

#define SYMBOLS                                                 \
	"0000000000000000 A fixed_percpu_data\n"                \
	"ffffffff81000000 T _text\n"                            \
	"ffffffff81000000 T _stext\n"                           \
	"ffffffff81000040 t local_one\n"                        \
	"ffffffff81000080 W weak_one\n"                         \
	"ffffffff81234560 T _etext\n"                           \
	"ffffffff82000000 D some_data\n"                        \
	"ffffffff82000100 D __start___jump_table\n"             \
	"ffffffffc0201010 t first\t[virtio]\n"                  \
	"ffffffffc0203f00 t last\t[virtio]\n"                   \
	"ffffffffc0205040 r a_constant\t[virtio]\n"             \
	"ffffffffc0300000 t bpf_prog_6deef7357e7b4530\t[bpf]\n" \
	"ffffffffc0300100 t bpf_prog_9990a4f1ba000000\t[bpf]\n" \
	"ffffffffc0400000 t ftrace_trampoline\t[__builtin__ftrace]\n"
#define MODULES                                                               \
	"virtio 32768 2 virtio_blk,virtio_pci, Live 0xffffffffc0201000 (E)\n" \
	"fresh 4096 0 - Loading 0xffffffffc0500000\n"

struct host {
	char *root;
	char path[512];
	struct kernel_symbols symbols;
	struct kernel_modules modules;
};

static const char *at(struct host *h, const char *name)
{
	snprintf(h->path, sizeof(h->path), "%s/%s", h->root, name);
	return h->path;
}

static int setup(void **state)
{
	struct host *h = calloc(1, sizeof(*h));

	assert_non_null(h);
	h->root = tree_new();
	tree_write(h->root, "kallsyms", SYMBOLS);
	tree_write(h->root, "modules", MODULES);
	*state = h;
	return 0;
}

static int teardown(void **state)
{
	struct host *h = *state;

	kernel_symbols_done(&h->symbols);
	kernel_modules_done(&h->modules);
	tree_free(h->root);
	free(h);
	return 0;
}

static void read_both(struct host *h)
{
	assert_int_equal(kernel_symbols_read(at(h, "kallsyms"), &h->symbols), 0);
	assert_int_equal(kernel_modules_read(at(h, "modules"), &h->modules), 0);
}

/* --- Symbols and modules --- */

static void kernel_symbols_read_keeps_functions_and_limits(void **state)
{
	static const char kept[] = "ffffffff81000000 T _text\n"
				   "ffffffff81000000 T _stext\n"
				   "ffffffff81000040 t local_one\n"
				   "ffffffff81000080 W weak_one\n"
				   "ffffffff81234560 T _etext\n"
				   "ffffffff82000100 D __start___jump_table\n"
				   "ffffffffc0201010 t first\t[virtio]\n";
	struct host *h = *state;

	read_both(h);
	assert_int_equal(h->symbols.n_functions, 10);
	assert_true(h->symbols.text.size > sizeof(kept));
	assert_memory_equal(h->symbols.text.data, kept, sizeof(kept) - 1);
	assert_false(h->symbols.hidden);
	assert_int_equal(h->symbols.first, 0xffffffff81000000);
	assert_int_equal(h->symbols.code_end, 0xffffffff81234560);
	assert_int_equal(h->symbols.n_owners, 3);
}

static void kernel_symbols_read_of_hidden_ones_says_so(void **state)
{
	struct host *h = *state;

	tree_write(h->root, "kallsyms",
		   "0000000000000000 T _stext\n0000000000000000 T _etext\n"
		   "0000000000000000 t first\t[virtio]\n");
	read_both(h);
	assert_true(h->symbols.hidden);
	assert_int_equal(h->symbols.n_marks, 0);
}

static void kernel_symbols_read_of_other_lines_leaves_them_out(void **state)
{
	static const char *const lines[] = {
		"",
		"\n",
		"x\n",
		"ffffffff81000000\n",
		"ffffffff81000000 T\n",
		"ffffffff81000000 T \n",
		"fffffffff81000000 T a\n",
		"ffffffff81000000  T a\n",
		"ffffffff81000000 T a",
		"ffffffff81000000 t a\t[]\n",
		"-1 T a\n",
	};
	struct host *h = *state;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		tree_write(h->root, "kallsyms", lines[i]);
		assert_int_equal(kernel_symbols_read(at(h, "kallsyms"), &h->symbols), 0);
		assert_int_equal(h->symbols.text.size, 0);
		kernel_symbols_done(&h->symbols);
	}
	assert_int_equal(kernel_symbols_read(at(h, "nothing"), &h->symbols), -ENOENT);
}

static void kernel_modules_read_takes_name_size_and_address(void **state)
{
	struct host *h = *state;

	read_both(h);
	assert_int_equal(h->modules.n, 2);
	assert_string_equal(h->modules.items[0].name, "virtio");
	assert_int_equal(h->modules.items[0].size, 32768);
	assert_int_equal(h->modules.items[0].address, 0xffffffffc0201000);
	assert_int_equal(h->modules.text.size, sizeof(MODULES) - 1);
}

static void kernel_modules_find_of_one_loaded_again_elsewhere_is_null(void **state)
{
	struct host *h = *state;
	struct kernel_module again;

	read_both(h);
	again = h->modules.items[0];
	assert_ptr_equal(kernel_modules_find(&h->modules, &again), &h->modules.items[0]);
	again.address += 0x1000;
	assert_null(kernel_modules_find(&h->modules, &again));
}

/* --- Regions --- */

static void expect_region(const struct kernel_region *r, const char *name, uint64_t begin,
			  uint64_t end)
{
	assert_string_equal(r->name, name);
	assert_int_equal(r->address, begin);
	assert_int_equal(r->address + r->size, end);
}

static void kernel_text_regions_are_text_alone(void **state)
{
	CLEANUP_FREE struct kernel_region *r = NULL;
	struct host *h = *state;
	size_t n;

	read_both(h);
	assert_int_equal(kernel_text_regions(&h->symbols, &h->modules, &r, &n), 0);
	assert_int_equal(n, 4);
	expect_region(&r[0], "kernel", 0xffffffff81000000, 0xffffffff81234560);
	/* Up to the page where its data begin. */
	expect_region(&r[1], "virtio", 0xffffffffc0201000, 0xffffffffc0205000);
	/* The size of the last program is unknown. */
	expect_region(&r[2], "bpf", 0xffffffffc0300000, 0xffffffffc0311000);
	expect_region(&r[3], "__builtin__ftrace", 0xffffffffc0400000, 0xffffffffc0410000);
}

static void kernel_text_regions_end_with_their_module(void **state)
{
	CLEANUP_FREE struct kernel_region *r = NULL;
	struct host *h = *state;
	size_t n;

	tree_write(h->root, "kallsyms", "ffffffffc0201010 t first\t[virtio]\n");
	read_both(h);
	assert_int_equal(kernel_text_regions(&h->symbols, &h->modules, &r, &n), 0);
	assert_int_equal(n, 1);
	expect_region(&r[0], "virtio", 0xffffffffc0201000, 0xffffffffc0209000);
}

static void kernel_text_regions_of_neighbours_do_not_overlap(void **state)
{
	CLEANUP_FREE struct kernel_region *r = NULL;
	struct host *h = *state;
	size_t n;

	tree_write(h->root, "kallsyms",
		   "ffffffffc0300840 t bpf_prog_2\t[bpf]\nffffffffc0300000 t a\t[one]\n"
		   "ffffffffc0300900 t b\t[two]\nffffffffc0380900 t c\t[two]\n");
	read_both(h);
	assert_int_equal(kernel_text_regions(&h->symbols, &h->modules, &r, &n), 0);
	assert_int_equal(n, 4);
	expect_region(&r[0], "one", 0xffffffffc0300000, 0xffffffffc0300840);
	expect_region(&r[1], "bpf", 0xffffffffc0300840, 0xffffffffc0300900);
	expect_region(&r[2], "two", 0xffffffffc0300900, 0xffffffffc0311000);
	expect_region(&r[3], "two", 0xffffffffc0380000, 0xffffffffc0391000);
}

static void kernel_symbols_add_makes_a_region_of_what_no_line_tells(void **state)
{
	CLEANUP_FREE struct kernel_region *r = NULL;
	struct host *h = *state;
	size_t n;

	tree_write(h->root, "kallsyms", "ffffffffc0300000 t bpf_prog_1\t[bpf]\n");
	read_both(h);
	assert_int_equal(kernel_symbols_add(&h->symbols, "bpf", 0xffffffffc0300000, 0x100), 0);
	assert_int_equal(kernel_symbols_add(&h->symbols, "bpf", 0xffffffffc0400840, 0x100), 0);
	assert_int_equal(kernel_symbols_add(&h->symbols, "bpf", 0xffffffffc0400940, 0x2000), 0);
	assert_int_equal(kernel_symbols_add(&h->symbols, "bpf", 0xffffffffffffff00, 0x1000), 0);
	kernel_symbols_sort(&h->symbols);
	assert_int_equal(kernel_text_regions(&h->symbols, &h->modules, &r, &n), 0);
	assert_int_equal(n, 3);
	/* A program that a line tells, too, stays as the line tells it. */
	expect_region(&r[0], "bpf", 0xffffffffc0300000, 0xffffffffc0310000);
	expect_region(&r[1], "bpf", 0xffffffffc0400000, 0xffffffffc0400940);
	expect_region(&r[2], "bpf", 0xffffffffc0400940, 0xffffffffc0402000);
}

static void kernel_text_regions_of_more_than_any_kernel_are_refused(void **state)
{
	struct kernel_region *r;
	struct host *h = *state;
	size_t n;

	tree_write(h->root, "kallsyms", "ffffffff00000000 T _stext\nffffffff81234560 T _etext\n");
	read_both(h);
	assert_int_equal(kernel_text_regions(&h->symbols, &h->modules, &r, &n), -E2BIG);
}

static void kernel_text_regions_at_the_end_of_memory_do_not_wrap(void **state)
{
	CLEANUP_FREE struct kernel_region *r = NULL;
	struct host *h = *state;
	size_t n;

	tree_write(h->root, "kallsyms", "ffffffffffffff00 t a\t[one]\n");
	read_both(h);
	assert_int_equal(kernel_text_regions(&h->symbols, &h->modules, &r, &n), 0);
	assert_int_equal(n, 1);
	assert_true(r[0].size <= 4096);
}

/* --- /proc/kcore --- */

#define TEXT_ADDRESS 0xffffffff81000000
#define TEXT_OFFSET  4096u
#define TEXT_SIZE    0x3000u

struct core {
	Elf64_Ehdr header;
	Elf64_Phdr segments[3];
};

static void make_core(struct core *c)
{
	*c = (struct core){
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_CORE,
			   .e_machine = EM_X86_64,
			   .e_phoff = offsetof(struct core, segments),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 3},
		.segments = {{.p_type = PT_NOTE, .p_memsz = 100},
			     {.p_type = PT_LOAD,
			      .p_vaddr = TEXT_ADDRESS,
			      .p_offset = TEXT_OFFSET,
			      .p_memsz = TEXT_SIZE,
			      .p_filesz = TEXT_SIZE},
			     {.p_type = PT_LOAD,
			      .p_vaddr = 0xffffffffc0000000,
			      .p_offset = 0x100000,
			      .p_memsz = 0x3f000000}},
	};
}

static void write_core(struct host *h, const struct core *c)
{
	uint8_t bytes[TEXT_OFFSET + TEXT_SIZE] = {0};

	memcpy(bytes, c, sizeof(*c));
	for (size_t i = 0; i < TEXT_SIZE; i++)
		bytes[TEXT_OFFSET + i] = (uint8_t)(i * 7 + i / 256);
	tree_write_bytes(h->root, "kcore", bytes, sizeof(bytes));
}

static void kcore_read_gives_memory_by_address(void **state)
{
	struct host *h = *state;
	struct kcore k;
	struct core c;
	uint8_t bytes[16];

	make_core(&c);
	write_core(h, &c);
	assert_int_equal(kcore_open(at(h, "kcore"), &k), 0);
	assert_int_equal(k.n_segments, 2);
	assert_int_equal(kcore_read(&k, TEXT_ADDRESS + 0x2ff0, bytes, 16), 0);
	assert_int_equal(bytes[0], (uint8_t)(0x2ff0 * 7 + 0x2f));
	/* Reads that are partly outside of a segment, in no segment, beyond the file. */
	assert_int_equal(kcore_read(&k, TEXT_ADDRESS + 0x2ff1, bytes, 16), -EFAULT);
	assert_int_equal(kcore_read(&k, 0x1000, bytes, 16), -EFAULT);
	assert_int_equal(kcore_read(&k, 0xffffffffc0000000, bytes, 16), -ENODATA);
	kcore_close(&k);
}

/* Old kernels give the page that was read before, which is the kernel's first one here. */
static void kcore_read_of_what_is_not_mapped_gives_zeros(void **state)
{
	static uint8_t bytes[TEXT_OFFSET + TEXT_SIZE + 4 * 4096], got[4 * 4096];
	uint8_t *modules = bytes + TEXT_OFFSET + TEXT_SIZE;
	struct host *h = *state;
	struct kcore k;
	struct core c;

	make_core(&c);
	c.segments[2].p_offset = TEXT_OFFSET + TEXT_SIZE;
	memcpy(bytes, &c, sizeof(c));
	for (size_t i = 0; i < TEXT_SIZE; i++)
		bytes[TEXT_OFFSET + i] = (uint8_t)(i * 7 + i / 256);
	/* A page that is not mapped, and two mapped ones with the same bytes. */
	memcpy(modules, bytes + TEXT_OFFSET, 4096);
	memset(modules + 4096, 0xcc, 2 * 4096);
	tree_write_bytes(h->root, "kcore", bytes, sizeof(bytes));
	assert_int_equal(kcore_open(at(h, "kcore"), &k), 0);
	assert_int_equal(kcore_read(&k, 0xffffffffc0000000, got, sizeof(got)), 0);
	memset(modules, 0, 4096);
	assert_memory_equal(got, modules, sizeof(got));
	/* From the middle of a page: the rest of the kernel's buffer. */
	memcpy(modules + 100, bytes + TEXT_OFFSET, 200);
	tree_write_bytes(h->root, "kcore", bytes, sizeof(bytes));
	kcore_close(&k);
	assert_int_equal(kcore_open(at(h, "kcore"), &k), 0);
	assert_int_equal(kcore_read(&k, 0xffffffffc0000000 + 100, got, 100), 0);
	assert_memory_equal(got, modules, 100);
	kcore_close(&k);
}

static void kcore_open_of_damaged_headers_refuses_them(void **state)
{
	struct host *h = *state;
	struct kcore k;
	struct core c;

	make_core(&c);
	c.header.e_phnum = 0xffff;
	write_core(h, &c);
	assert_int_equal(kcore_open(at(h, "kcore"), &k), -EBADMSG);
	make_core(&c);
	c.header.e_phoff = UINT64_MAX - 8;
	write_core(h, &c);
	assert_int_equal(kcore_open(at(h, "kcore"), &k), -EBADMSG);
	make_core(&c);
	c.header.e_phoff = 1 << 20;
	write_core(h, &c);
	assert_int_equal(kcore_open(at(h, "kcore"), &k), -EBADMSG);
	tree_write(h->root, "kcore", "\177ELF");
	assert_int_equal(kcore_open(at(h, "kcore"), &k), -EBADMSG);
	assert_int_equal(kcore_open(at(h, "nothing"), &k), -ENOENT);
}

static void kcore_open_leaves_out_segments_that_overflow(void **state)
{
	struct host *h = *state;
	struct kcore k;
	struct core c;

	make_core(&c);
	c.segments[1].p_memsz = UINT64_MAX - 4096;
	c.segments[2].p_offset = INT64_MAX - 1;
	write_core(h, &c);
	assert_int_equal(kcore_open(at(h, "kcore"), &k), 0);
	assert_int_equal(k.n_segments, 0);
	kcore_close(&k);
}

/* A kernel that patches itself each time the clock is read. */
struct patched {
	struct host *host;
	unsigned asked, patches;
};

static uint64_t clock_of(void *userdata)
{
	struct patched *p = userdata;
	int fd = open(at(p->host, "kcore"), O_WRONLY | O_CLOEXEC);
	uint8_t byte = (uint8_t)(0x80 + p->asked);

	assert_true(fd >= 0);
	if (p->asked++ < p->patches)
		assert_int_equal(pwrite(fd, &byte, 1, TEXT_OFFSET + 5), 1);
	close(fd);
	return 1000 * p->asked;
}

static void copy(struct host *h, unsigned patches, struct kernel_copy *ret)
{
	struct kernel_region r = {.address = TEXT_ADDRESS, .size = TEXT_SIZE};
	struct patched p = {.host = h, .patches = patches};
	struct kcore k;
	struct core c;

	make_core(&c);
	write_core(h, &c);
	assert_int_equal(kcore_open(at(h, "kcore"), &k), 0);
	assert_int_equal(kernel_text_copy(&k, &r, clock_of, &p, ret), 0);
	kcore_close(&k);
}

static void kernel_text_copy_is_of_a_moment_between_two_equal_readings(void **state)
{
	struct kernel_copy copied;
	uint8_t bytes[8];

	copy(*state, 0, &copied);
	assert_int_equal(copied.read_ns, 1000);
	assert_int_equal(pread(copied.fd, bytes, 8, 0), 8);
	assert_int_equal(bytes[5], 35);
	assert_int_equal(lseek(copied.fd, 0, SEEK_END), TEXT_SIZE);
	assert_true(pwrite(copied.fd, bytes, 1, 0) < 0);
	close(copied.fd);
}

static void kernel_text_copy_of_text_that_changes_is_read_again(void **state)
{
	struct kernel_copy copied;
	uint8_t byte;

	copy(*state, 2, &copied);
	assert_false(copied.changing);
	assert_int_equal(copied.read_ns, 3000);
	assert_int_equal(pread(copied.fd, &byte, 1, 5), 1);
	assert_int_equal(byte, 0x81);
	close(copied.fd);
	copy(*state, 100, &copied);
	assert_true(copied.changing);
	close(copied.fd);
}

/* --- Code without symbols --- */

#define AREA_ADDRESS 0xffffffffc0000000
#define AREA_OFFSET  0x10000u
#define AREA_SIZE    0x200000u

/* Makes the module area: a module at its beginning and one at 1 MiB, and pages with many INT3s,
 * with and without other bytes among them. */
static void write_area(struct host *h)
{
	static uint8_t bytes[AREA_OFFSET + AREA_SIZE];
	struct core c;

	make_core(&c);
	c.segments[2].p_offset = AREA_OFFSET;
	c.segments[2].p_memsz = AREA_SIZE;
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, &c, sizeof(c));
	memset(bytes + AREA_OFFSET, 0xcc, 0x1000); /* the module's */
	bytes[AREA_OFFSET] = 0x90;
	memset(bytes + AREA_OFFSET + 0x40000, 0xcc, 0x4000);
	for (size_t i = 0; i < 3; i++)
		bytes[AREA_OFFSET + 0x40000 + i * 0x1000] = 0xc3;
	memset(bytes + AREA_OFFSET + 0x80000, 0xcc, 2047);
	memset(bytes + AREA_OFFSET + 0x90000, 0xcc, 2048);
	tree_write_bytes(h->root, "kcore", bytes, sizeof(bytes));
}

static void kernel_thunks_find_adds_pages_that_nobody_names(void **state)
{
	CLEANUP_FREE struct kernel_region *r = NULL;
	CLEANUP_FREE struct kernel_region *all = NULL;
	struct host *h = *state;
	struct kcore k;
	size_t n;

	tree_write(h->root, "kallsyms",
		   "ffffffffc0000000 t a\t[one]\nffffffffc0001000 r b\t[one]\n"
		   "ffffffffc0100000 t c\t[two]\nffffffffc0101000 r d\t[two]\n");
	read_both(h);
	write_area(h);
	assert_int_equal(kernel_text_regions(&h->symbols, &h->modules, &r, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(kcore_open(at(h, "kcore"), &k), 0);
	assert_int_equal(kernel_thunks_find(&k, r, n, &h->symbols), 2);
	kcore_close(&k);
	kernel_symbols_sort(&h->symbols);
	assert_int_equal(kernel_text_regions(&h->symbols, &h->modules, &all, &n), 0);
	assert_int_equal(n, 4);
	expect_region(&all[0], "one", AREA_ADDRESS, AREA_ADDRESS + 0x1000);
	expect_region(&all[1], "thunks", AREA_ADDRESS + 0x40000, AREA_ADDRESS + 0x43000);
	expect_region(&all[2], "thunks", AREA_ADDRESS + 0x90000, AREA_ADDRESS + 0x91000);
	expect_region(&all[3], "two", AREA_ADDRESS + 0x100000, AREA_ADDRESS + 0x101000);
}

static void kernel_thunks_find_without_modules_looks_nowhere(void **state)
{
	struct host *h = *state;
	struct kcore k;

	tree_write(h->root, "kallsyms", "ffffffff81000000 T _text\n");
	read_both(h);
	write_area(h);
	assert_int_equal(kcore_open(at(h, "kcore"), &k), 0);
	assert_int_equal(kernel_thunks_find(&k, NULL, 0, &h->symbols), 0);
	kcore_close(&k);
}

/* --- Files --- */

#define NOTE "\4\0\0\0\24\0\0\0\3\0\0\0GNU\0ABCDEFGHIJKLMNOPQRST"

#define LONG_NOTE "\4\0\0\0\30\0\0\0\3\0\0\0GNU\0ABCDEFGHIJKLMNOPQRSTUVWX"

static void make_files(struct host *h)
{
	tree_write_bytes(h->root, "sys/kernel/notes", NOTE, sizeof(NOTE) - 1);
	tree_write_bytes(h->root, "sys/module/virtio/notes/.note.gnu.build-id", NOTE,
			 sizeof(NOTE) - 1);
	tree_write(h->root, "sys/module/virtio/sections/.text", "0xffffffffc0201000\n");
	tree_write(h->root, "sys/module/virtio/sections/.data", "0x0\n");
	tree_write(h->root, "boot/vmlinuz-6.1", "bzImage");
	tree_write(h->root, "lib/modules/6.1/modules.dep",
		   "kernel/virtio_pci.ko: kernel/virtio.ko\nkernel/x/virtio.ko:\n"
		   "kernel/fresh.ko.xz:\n");
	tree_write(h->root, "lib/modules/6.1/kernel/x/virtio.ko", "module");
}

static void open_files(struct host *h, struct kernel_files *ret)
{
	char sys[256];
	struct kernel_places places = {.root = h->root, .release = "6.1"};

	snprintf(sys, sizeof(sys), "%s/sys", h->root);
	places.sys = sys;
	read_both(h);
	assert_int_equal(kernel_files_open(&places, &h->modules, ret), 0);
}

static void kernel_files_open_finds_kernel_modules_and_sections(void **state)
{
	static const char sections[] = "virtio .text 0xffffffffc0201000\n";
	struct host *h = *state;
	struct kernel_files f;

	make_files(h);
	open_files(h, &f);
	assert_int_equal(f.n, 3);
	assert_string_equal(f.items[0].name, "kernel");
	assert_int_equal(f.items[0].size, 7);
	assert_null(f.items[0].why);
	assert_int_equal(f.items[0].build_id_size, 20);
	assert_memory_equal(f.items[0].build_id, "ABCDEFGHIJKLMNOPQRST", 20);
	assert_string_equal(f.items[1].name, "virtio");
	assert_int_equal(f.items[1].size, 6);
	assert_int_equal(f.items[1].build_id_size, 20);
	assert_string_equal(f.items[2].name, "fresh");
	assert_true(f.items[2].fd < 0);
	assert_string_equal(f.items[2].why, "its file is compressed");
	assert_int_equal(f.items[2].build_id_size, 0);
	assert_int_equal(f.sections.size, sizeof(sections) - 1);
	assert_memory_equal(f.sections.data, sections, sizeof(sections) - 1);
	kernel_files_done(&f);
}

static void expect_sections(struct host *h, const char *expected)
{
	struct kernel_files f;

	kernel_symbols_done(&h->symbols);
	kernel_modules_done(&h->modules);
	open_files(h, &f);
	assert_int_equal(f.sections.size, strlen(expected));
	assert_memory_equal(f.sections.data, expected, strlen(expected));
	kernel_files_done(&f);
}

static void kernel_files_open_lists_probes_that_are_known(void **state)
{
	struct host *h = *state;

	tree_write(h->root, "sys/kernel/debug/kprobes/list", "");
	expect_sections(h, "* kprobes 0x1\n");
	tree_write(h->root, "sys/kernel/debug/kprobes/list",
		   "ffffffff8134a355  k  do_sys_openat2+0x5    [OPTIMIZED]\n");
	expect_sections(h, "* kprobe 0xffffffff8134a355\n* kprobes 0x1\n");
	tree_write(h->root, "sys/kernel/debug/kprobes/list", "0000000000000000  k  a+0x5\n");
	expect_sections(h, "");
}

static void kernel_files_open_of_several_kernels_gives_those_with_symbols_first(void **state)
{
	struct host *h = *state;
	struct kernel_files f;

	make_files(h);
	tree_write(h->root, "usr/lib/debug/boot/vmlinux-6.1", "vmlinux!");
	open_files(h, &f);
	assert_int_equal(f.n, 4);
	assert_int_equal(f.items[0].size, 8);
	assert_int_equal(f.items[1].size, 7);
	kernel_files_done(&f);
}

static void kernel_files_open_where_there_is_nothing_says_so(void **state)
{
	struct host *h = *state;
	struct kernel_files f;

	open_files(h, &f);
	assert_int_equal(f.n, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_true(f.items[i].fd < 0);
		assert_string_equal(f.items[i].why, "there is no file of it");
	}
	assert_int_equal(f.sections.size, 0);
	kernel_files_done(&f);
}

static void kernel_files_build_id_of_damaged_notes_is_none(void **state)
{
	uint8_t id[KERNEL_FILE_BUILD_ID], notes[sizeof(NOTE)];

	(void)state;
	for (size_t size = 0; size < sizeof(NOTE) - 1; size++)
		assert_int_equal(kernel_files_build_id((const uint8_t *)NOTE, size, id), 0);
	/* Longer than any known build id. */
	assert_int_equal(
		kernel_files_build_id((const uint8_t *)LONG_NOTE, sizeof(LONG_NOTE) - 1, id), 0);
	for (size_t i = 0; i < 8; i++) {
		memcpy(notes, NOTE, sizeof(NOTE));
		notes[i] = 0xff;
		assert_int_equal(kernel_files_build_id(notes, sizeof(NOTE) - 1, id), 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kernel_symbols_read_keeps_functions_and_limits),
		TEST(kernel_symbols_read_of_hidden_ones_says_so),
		TEST(kernel_symbols_read_of_other_lines_leaves_them_out),
		TEST(kernel_modules_read_takes_name_size_and_address),
		TEST(kernel_modules_find_of_one_loaded_again_elsewhere_is_null),
		TEST(kernel_text_regions_are_text_alone),
		TEST(kernel_text_regions_end_with_their_module),
		TEST(kernel_text_regions_of_neighbours_do_not_overlap),
		TEST(kernel_symbols_add_makes_a_region_of_what_no_line_tells),
		TEST(kernel_text_regions_of_more_than_any_kernel_are_refused),
		TEST(kernel_text_regions_at_the_end_of_memory_do_not_wrap),
		TEST(kcore_read_gives_memory_by_address),
		TEST(kcore_read_of_what_is_not_mapped_gives_zeros),
		TEST(kcore_open_of_damaged_headers_refuses_them),
		TEST(kcore_open_leaves_out_segments_that_overflow),
		TEST(kernel_text_copy_is_of_a_moment_between_two_equal_readings),
		TEST(kernel_text_copy_of_text_that_changes_is_read_again),
		TEST(kernel_thunks_find_adds_pages_that_nobody_names),
		TEST(kernel_thunks_find_without_modules_looks_nowhere),
		TEST(kernel_files_open_finds_kernel_modules_and_sections),
		TEST(kernel_files_open_of_several_kernels_gives_those_with_symbols_first),
		TEST(kernel_files_open_lists_probes_that_are_known),
		TEST(kernel_files_open_where_there_is_nothing_says_so),
		TEST(kernel_files_build_id_of_damaged_notes_is_none),
	};

	return cmocka_run_group_tests_name("kernel", tests, NULL, NULL);
}
