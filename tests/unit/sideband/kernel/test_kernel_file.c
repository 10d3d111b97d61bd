/*
 * Kernel text from files. The test makes a linked kernel and a module with each kind of place that
 * a kernel patches, packs the kernel, and damages all of them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zstd.h>

#include "proto/base.h"
#include "sideband/kernel/kernel_file.h"
#include "tests/unit/sideband/elf_maker.h"

#define LINKED 0xffffffff81000000u /* the address of .text in the file */
#define DATA   0xffffffff82000000u
#define MOVED  0xffffffffa1000000u /* the address of .text in memory */
#define TEXT   0x400u

struct file {
	uint8_t *bytes;
	size_t size;
	struct kernel_links *links;
	struct kernel_file_text text;
};

static ssize_t read_file(void *userdata, uint64_t offset, void *to, size_t size)
{
	const struct file *f = userdata;

	if (offset >= f->size)
		return 0;
	size = MIN_OF(size, f->size - offset);
	memcpy(to, f->bytes + offset, size);
	return (ssize_t)size;
}

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct file));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	struct file *f = *state;

	kernel_file_text_done(&f->text);
	kernel_links_free(f->links);
	free(f->bytes);
	free(f);
	return 0;
}

static void use_links(struct file *f, const char *text)
{
	kernel_links_free(f->links);
	assert_int_equal(kernel_links_new(text, strlen(text), &f->links), 0);
}

static int make_text(struct file *f, const char *module, const char *sections)
{
	struct kernel_file file = {
		.source = {read_file, f, f->size},
		.module = module,
		.links = f->links,
		.sections = sections,
		.sections_size = strlen(sections),
	};

	kernel_file_text_done(&f->text);
	return kernel_file_text(&file, &f->text);
}

/* EXPECTED has pairs of offsets in the text, begin and end; 0 and 0 end the list. */
static void expect_masked(const struct file *f, const uint64_t (*expected)[2])
{
	size_t n = 0;

	for (; expected[n][1]; n++) {
		assert_true(n < f->text.n_masked);
		assert_int_equal(f->text.masked[n].begin - f->text.address, expected[n][0]);
		assert_int_equal(f->text.masked[n].end - f->text.address, expected[n][1]);
	}
	assert_int_equal(f->text.n_masked, n);
}

/* --- A linked kernel --- */

static const char kernel_symbols[] = "ffffffffa1000000 T _text\n"
				     "ffffffffa1000000 T _stext\n"
				     "ffffffffa1000400 T _etext\n"
				     "ffffffffa1000300 t __SCT__a_call\n"
				     "ffffffffa1000310 t ftrace_call\n"
				     "ffffffffa2000000 D __start___jump_table\n"
				     "ffffffffa2000020 D __stop___jump_table\n"
				     "ffffffffa2000020 D __start_static_call_sites\n"
				     "ffffffffa2000028 D __stop_static_call_sites\n"
				     "ffffffffa2000030 D __start_mcount_loc\n"
				     "ffffffffa2000040 D __stop_mcount_loc\n"
				     "ffffffffa2000040 R __parainstructions\n"
				     "ffffffffa2000050 R __parainstructions_end\n"
				     "ffffffffa2000050 R __retpoline_sites\n"
				     "ffffffffa2000058 R __retpoline_sites_end\n"
				     "ffffffffa2000058 R __return_sites\n"
				     "ffffffffa200005c R __return_sites_end\n"
				     "ffffffffa2000060 R __alt_instructions\n"
				     "ffffffffa2000078 R __alt_instructions_end\n";

static void put32(uint8_t *data, size_t at, uint64_t value)
{
	uint32_t v = (uint32_t)value;

	memcpy(data + at, &v, sizeof(v));
}

static void put64(uint8_t *data, size_t at, uint64_t value)
{
	memcpy(data + at, &value, sizeof(value));
}

/* Writes the distance from the field at DATA + AT to OFFSET of the text. */
static void put_site(uint8_t *data, size_t at, uint64_t offset)
{
	put32(data, at, LINKED + offset - (DATA + at));
}

struct kernel {
	uint8_t text[TEXT], data[0x100];
};

static void fill_kernel(struct kernel *k)
{
	static const uint8_t thunk[] = {0x2e, 0xe8, 0, 0, 0, 0}, jcc[] = {0x0f, 0x84, 0, 0, 0, 0};

	memset(k, 0, sizeof(*k));
	memset(k->text, 0x90, sizeof(k->text));
	/* Two jump labels, of two bytes and of five. */
	k->text[0x10] = 0xeb;
	put_site(k->data, 0, 0x10);
	k->text[0x20] = 0xe9;
	put_site(k->data, 0x10, 0x20);
	k->text[0x30] = 0xe8;
	put_site(k->data, 0x20, 0x30); /* a static call */
	put64(k->data, 0x30, LINKED + 0x40);
	put64(k->data, 0x38, LINKED + 0x100000); /* code of the start, no longer there */
	put64(k->data, 0x40, LINKED + 0x50);
	k->data[0x49] = 7;
	memcpy(k->text + 0x60, thunk, sizeof(thunk));
	put_site(k->data, 0x50, 0x60);
	memcpy(k->text + 0x70, jcc, sizeof(jcc));
	put_site(k->data, 0x54, 0x70);
	k->text[0x80] = 0xe9;
	put_site(k->data, 0x58, 0x80);
	/* Two alternatives, one right behind the return. */
	put_site(k->data, 0x60, 0x90);
	k->data[0x6a] = 3;
	put_site(k->data, 0x6c, 0x85);
	k->data[0x76] = 2;
	k->data[0x77] = 2;
}

static const uint64_t kernel_masks[][2] = {
	{0x10, 0x12}, {0x20, 0x25}, {0x30, 0x35}, {0x40, 0x45},	  {0x50, 0x57},	  {0x60, 0x66},
	{0x70, 0x76}, {0x80, 0x87}, {0x90, 0x93}, {0x300, 0x308}, {0x310, 0x315}, {0, 0}};
static const uint64_t all_masked[][2] = {{0, TEXT}, {0, 0}};

static void link_kernel(struct file *f, const struct kernel *k)
{
	struct elf_maker m;

	elf_maker_init(&m, ET_EXEC);
	elf_maker_map(&m, elf_maker_add(&m, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					LINKED, k->text, sizeof(k->text)));
	elf_maker_map(&m, elf_maker_add(&m, ".rodata", SHT_PROGBITS, SHF_ALLOC, DATA, k->data,
					sizeof(k->data)));
	free(f->bytes);
	f->bytes = elf_maker_end(&m, &f->size);
}

static void kernel_file_text_of_a_kernel_is_moved_and_masked(void **state)
{
	struct file *f = *state;
	struct kernel k;

	fill_kernel(&k);
	link_kernel(f, &k);
	use_links(f, kernel_symbols);
	assert_int_equal(make_text(f, NULL, ""), 0);
	assert_int_equal(f->text.address, MOVED);
	assert_int_equal(f->text.size, TEXT);
	assert_memory_equal(f->text.bytes, k.text, TEXT);
	expect_masked(f, kernel_masks);
}

/* FineIBT replaces the check that kCFI has before an indirect call. */
static void kernel_file_text_with_checked_calls_is_masked_before_them(void **state)
{
	static const uint8_t check[] = {0x41, 0xba, 1,	  2,	3,    4,    0x45,
					0x03, 0x53, 0xf1, 0x74, 0x02, 0x0f, 0x0b};
	static const uint64_t masks[][2] = {{0x10, 0x12},   {0x20, 0x25},   {0x30, 0x35},
					    {0x40, 0x45},   {0x50, 0x57},   {0x60, 0x66},
					    {0x80, 0x87},   {0x90, 0x93},   {0x112, 0x126},
					    {0x300, 0x308}, {0x310, 0x315}, {0, 0}};
	struct file *f = *state;
	struct kernel k;

	fill_kernel(&k);
	memcpy(k.text + 0x112, check, sizeof(check));
	memcpy(k.text + 0x120, k.text + 0x60, 6);
	put_site(k.data, 0x54, 0x120);
	link_kernel(f, &k);
	use_links(f, kernel_symbols);
	assert_int_equal(make_text(f, NULL, ""), 0);
	expect_masked(f, masks);
}

static void kernel_file_text_with_a_damaged_table_is_believed_nowhere(void **state)
{
	struct file *f = *state;
	struct kernel k;

	use_links(f, kernel_symbols);
	/* An alternative outside of the text, an empty one, and one longer than what it replaces.
	 */
	fill_kernel(&k);
	put_site(k.data, 0x60, 0x10000000);
	link_kernel(f, &k);
	assert_int_equal(make_text(f, NULL, ""), 0);
	expect_masked(f, all_masked);
	fill_kernel(&k);
	k.data[0x6a] = 0;
	link_kernel(f, &k);
	assert_int_equal(make_text(f, NULL, ""), 0);
	expect_masked(f, all_masked);
	fill_kernel(&k);
	k.data[0x77] = 3;
	link_kernel(f, &k);
	assert_int_equal(make_text(f, NULL, ""), 0);
	expect_masked(f, all_masked);
}

/* Uses kernel_symbols with TO instead of FROM. */
static void use_changed_links(struct file *f, const char *from, const char *to)
{
	char text[sizeof(kernel_symbols) + 64];
	const char *at = strstr(kernel_symbols, from);

	assert_non_null(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - kernel_symbols), kernel_symbols, to,
		 at + strlen(from));
	use_links(f, text);
	/* Before TEXT, which the links borrow, is gone. */
	assert_int_equal(make_text(f, NULL, ""), 0);
}

static void kernel_file_text_without_its_tables_is_believed_nowhere(void **state)
{
	struct file *f = *state;
	struct kernel k;

	fill_kernel(&k);
	link_kernel(f, &k);
	use_changed_links(f, "R __alt_instructions\n", "R something\n");
	expect_masked(f, all_masked);
	/* Neither begin nor end, though every kernel has alternatives. */
	use_changed_links(f,
			  "ffffffffa2000060 R __alt_instructions\n"
			  "ffffffffa2000078 R __alt_instructions_end\n",
			  "");
	expect_masked(f, all_masked);
	use_changed_links(f, "ffffffffa2000078", "ffffffffa2000079");
	expect_masked(f, all_masked);
	/* A table that ends beyond the file, or before its own beginning. */
	use_changed_links(f, "ffffffffa2000028", "ffffffffa2008020");
	expect_masked(f, all_masked);
	use_changed_links(f, "ffffffffa2000028", "ffffffffa2000018");
	expect_masked(f, all_masked);
}

static void kernel_file_text_with_probes_is_masked_there(void **state)
{
	static const uint64_t masked[][2] = {
		{0x10, 0x12},	{0x20, 0x25},	{0x30, 0x35},	{0x40, 0x45}, {0x50, 0x57},
		{0x60, 0x66},	{0x70, 0x76},	{0x80, 0x87},	{0x90, 0x93}, {0x200, 0x214},
		{0x300, 0x308}, {0x310, 0x315}, {0x3f8, 0x400}, {0, 0}};
	char links[sizeof(kernel_symbols) + 64];
	struct file *f = *state;
	struct kernel k;

	fill_kernel(&k);
	link_kernel(f, &k);
	use_links(f, kernel_symbols);
	assert_int_equal(make_text(f, NULL,
				   "* kprobe 0xffffffffa1000200\n* kprobe 0xffffffffa10003f8\n"
				   "* kprobes 0x1\n"),
			 0);
	expect_masked(f, masked);
	/* There were probes. Whether there still are probes, and where, is unknown. */
	snprintf(links, sizeof(links),
		 "%sffffffffc0226000 t kprobe_insn_page\t[__builtin__kprobes]\n", kernel_symbols);
	use_links(f, links);
	assert_int_equal(make_text(f, NULL, ""), 0);
	expect_masked(f, all_masked);
	assert_int_equal(make_text(f, NULL, "* kprobes 0x1\n"), 0);
	expect_masked(f, kernel_masks);
}

static void kernel_file_text_of_a_kernel_without_a_place_is_unplaced(void **state)
{
	struct file *f = *state;
	struct kernel k;

	fill_kernel(&k);
	link_kernel(f, &k);
	use_links(f, "0000000000000000 T _stext\n0000000000000000 T _etext\n");
	assert_int_equal(make_text(f, NULL, ""), KERNEL_FILE_UNPLACED);
	use_links(f, "");
	assert_int_equal(make_text(f, NULL, ""), KERNEL_FILE_UNPLACED);
	/* Longer than .text in the file. */
	use_links(f, "ffffffffa1000000 T _stext\nffffffffa1000401 T _etext\n");
	assert_int_equal(make_text(f, NULL, ""), -EBADMSG);
}

static void kernel_file_text_of_another_build_is_refused(void **state)
{
	static const char note[] = "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0ABCD";
	struct file *f = *state;
	struct kernel_file file = {.source = {.read = read_file, .userdata = f},
				   .build_id = (const uint8_t *)"ABCE",
				   .build_id_size = 4,
				   .sections = ""};
	struct elf_maker m;
	struct kernel k;

	fill_kernel(&k);
	elf_maker_init(&m, ET_EXEC);
	elf_maker_add(&m, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, LINKED, k.text, TEXT);
	elf_maker_add(&m, ".notes", SHT_NOTE, SHF_ALLOC, 0, note, sizeof(note) - 1);
	f->bytes = elf_maker_end(&m, &f->size);
	use_links(f, kernel_symbols);
	file.links = f->links;
	file.source.size = f->size;
	assert_int_equal(kernel_file_text(&file, &f->text), KERNEL_FILE_OTHER);
	file.build_id = (const uint8_t *)"ABCD";
	assert_int_equal(kernel_file_text(&file, &f->text), 0);
}

/* --- A packed kernel --- */

#define SETUP_SECTORS 1u
#define PAYLOAD_AT    ((SETUP_SECTORS + 1) * 512 + 0x40)

/* Makes a bzImage of PAYLOAD, SIZE bytes that are UNPACKED bytes when unpacked. */
static void pack(struct file *f, const void *payload, size_t size, size_t unpacked)
{
	uint8_t *image = calloc(1, PAYLOAD_AT + size + 4);

	assert_non_null(image);
	image[0x1f1] = SETUP_SECTORS;
	memcpy(image + 0x202, "HdrS\x0f\x02", 6);
	put32(image, 0x248, 0x40);
	put32(image, 0x24c, size + 4);
	memcpy(image + PAYLOAD_AT, payload, size);
	put32(image, PAYLOAD_AT + size, unpacked);
	free(f->bytes);
	f->bytes = image;
	f->size = PAYLOAD_AT + size + 4;
}

/* Writes a legacy frame: literals, a match of the 4 bytes before, the last literals. */
static size_t pack_lz4(const uint8_t *bytes, size_t size, uint8_t *to)
{
	size_t n = 8, left = size;

	put32(to, 0, 0x184c2102);
	/* The first 16 bytes as they are, then a match that repeats the last 4 of them. The input
	 * must repeat them, too. */
	to[n++] = 0xf0;
	to[n++] = 1;
	memcpy(to + n, bytes, 16);
	n += 16;
	to[n++] = 4;
	to[n++] = 0;
	left -= 20;
	to[n++] = 0xf0;
	for (size_t rest = left - 15;; rest -= 255) {
		to[n++] = (uint8_t)MIN_OF(rest, 255u);
		if (rest < 255)
			break;
	}
	memcpy(to + n, bytes + 20, left);
	n += left;
	put32(to, 4, n - 8);
	return n;
}

static void kernel_file_text_of_a_packed_kernel_is_the_same(void **state)
{
	struct file *f = *state;
	uint8_t packed[ELF_MAKER_BYTES], elf[ELF_MAKER_BYTES];
	struct kernel k;
	size_t size, n;

	fill_kernel(&k);
	link_kernel(f, &k);
	use_links(f, kernel_symbols);
	size = f->size;
	/* Bytes 16 to 20 of the header are type and machine; the padding before them gets the same.
	 */
	memcpy(elf, f->bytes, size);
	memcpy(elf + 12, elf + 16, 4);
	n = pack_lz4(elf, size, packed);
	pack(f, packed, n, size);
	assert_int_equal(make_text(f, NULL, ""), 0);
	assert_memory_equal(f->text.bytes, k.text, TEXT);
	expect_masked(f, kernel_masks);
	n = ZSTD_compress(packed, sizeof(packed), elf, size, 3);
	assert_false(ZSTD_isError(n));
	pack(f, packed, n, size);
	assert_int_equal(make_text(f, NULL, ""), 0);
	expect_masked(f, kernel_masks);
	pack(f,
	     "\xfd"
	     "7zXZ\0\0\0",
	     8, size);
	assert_int_equal(make_text(f, NULL, ""), -EPROTONOSUPPORT);
}

/* Changes each byte, and cuts the file at many lengths. Any answer will do. */
static void mangle(struct file *f, const char *module, const char *sections)
{
	uint8_t *bytes = f->bytes;
	size_t size = f->size;

	for (f->size = 0; f->size < size; f->size += f->size < 128 ? 1 : 61)
		make_text(f, module, sections);
	f->size = size;
	for (size_t i = 0; i < size; i++) {
		uint8_t was = bytes[i];

		bytes[i] = 0xff;
		make_text(f, module, sections);
		bytes[i] = (uint8_t)(was ^ 0x10);
		make_text(f, module, sections);
		bytes[i] = was;
	}
}

static void kernel_file_text_of_damaged_kernels_ends(void **state)
{
	struct file *f = *state;
	uint8_t packed[ELF_MAKER_BYTES];
	struct kernel k;
	size_t size, n;

	fill_kernel(&k);
	link_kernel(f, &k);
	use_links(f, kernel_symbols);
	mangle(f, NULL, "");
	size = f->size;
	memcpy(f->bytes + 12, f->bytes + 16, 4);
	n = pack_lz4(f->bytes, size, packed);
	pack(f, packed, n, size);
	mangle(f, NULL, "");
}

/* --- A module --- */

#define MODULE_AT 0xffffffffc0201000u

static const char module_sections[] = "other .text 0xffffffffc0900000\n"
				      "virtio .text 0xffffffffc0201000\n"
				      "virtio .text.unlikely 0xffffffffc0201080\n"
				      "virtio .init.text 0xffffffffc0300000\n"
				      "virtio .altinstr_replacement 0xffffffffc0201090\n";
static const char module_symbols[] = "ffffffff81000100 T printk\n"
				     "ffffffff81000200 t local_only\n"
				     "ffffffffc0100000 t exported\t[virtio_ring]\n"
				     "ffffffff81000300 T twice\n"
				     "ffffffffc0100010 t twice\t[virtio_ring]\n";

enum {
	SYMBOL_NONE,
	SYMBOL_TEXT,
	SYMBOL_UNLIKELY,
	SYMBOL_PRINTK,
	SYMBOL_LOCAL,
	SYMBOL_EXPORTED,
	SYMBOL_TWICE,
	SYMBOL_DATA,
	SYMBOL_INIT,
	N_SYMBOLS
};

static const char module_strings[] = "\0printk\0local_only\0exported\0twice\0data";

static void add_module_symbols(struct elf_maker *m, size_t text, size_t unlikely, size_t init)
{
	Elf64_Sym symbols[N_SYMBOLS] = {
		[SYMBOL_TEXT] = {.st_shndx = (Elf64_Section)text},
		[SYMBOL_UNLIKELY] = {.st_shndx = (Elf64_Section)unlikely},
		[SYMBOL_PRINTK] = {.st_name = 1},
		[SYMBOL_LOCAL] = {.st_name = 8},
		[SYMBOL_EXPORTED] = {.st_name = 19},
		[SYMBOL_TWICE] = {.st_name = 28},
		[SYMBOL_DATA] = {.st_name = 34},
		[SYMBOL_INIT] = {.st_shndx = (Elf64_Section)init},
	};
	size_t table = elf_maker_add(m, ".symtab", SHT_SYMTAB, 0, 0, symbols, sizeof(symbols));

	m->sections[table].sh_link = (uint32_t)elf_maker_add(
		m, ".strtab", SHT_STRTAB, 0, 0, module_strings, sizeof(module_strings));
}

struct relocation {
	uint64_t offset;
	uint32_t type, symbol;
	int64_t addend;
};

static void add_relocations(struct elf_maker *m, size_t section, const struct relocation *list,
			    size_t n)
{
	Elf64_Rela relas[16];
	size_t at;

	for (size_t i = 0; i < n; i++)
		relas[i] =
			(Elf64_Rela){.r_offset = list[i].offset,
				     .r_info = ELF64_R_INFO((uint64_t)list[i].symbol, list[i].type),
				     .r_addend = list[i].addend};
	at = elf_maker_add(m, ".rela", SHT_RELA, 0, 0, relas, n * sizeof(*relas));
	m->sections[at].sh_info = (uint32_t)section;
}

static void make_module(struct file *f, const struct relocation *mcount)
{
	static const uint8_t text[0x80] = {
		0xe8, 0,    0,	  0, 0,	      /* call __fentry__ */
		0xe8, 0,    0,	  0, 0,	      /* call printk */
		0x0f, 0x84, 0,	  0, 0, 0,    /* je .text.unlikely + 2 */
		0xe9, 0,    0,	  0, 0,	      /* jmp local_only, which is not exported */
		0x48, 0xc7, 0xc7, 0, 0, 0, 0, /* mov $data,%rdi */
		0xe8, 0,    0,	  0, 0,	      /* call exported */
		0xe8, 0,    0,	  0, 0,	      /* call twice, which two modules have */
		0xe9, 0,    0,	  0, 0,	      /* jmp __x86_return_thunk */
		0xcc,
	};
	static const uint8_t unlikely[8] = {0x90, 0x90, 0xe9, 0, 0, 0, 0, 0xcc};
	static const struct relocation in_text[] = {
		{1, R_X86_64_PLT32, SYMBOL_PRINTK, -4},	  {6, R_X86_64_PLT32, SYMBOL_PRINTK, -4},
		{12, R_X86_64_PC32, SYMBOL_UNLIKELY, -2}, {17, R_X86_64_PLT32, SYMBOL_LOCAL, -4},
		{24, R_X86_64_32S, SYMBOL_DATA, 0},	  {29, R_X86_64_PLT32, SYMBOL_EXPORTED, -4},
		{34, R_X86_64_PLT32, SYMBOL_TWICE, -4},	  {39, R_X86_64_PLT32, SYMBOL_PRINTK, -4},
	};
	static const struct relocation in_unlikely[] = {{3, R_X86_64_PC32, SYMBOL_TEXT, 5 - 4}};
	static const struct relocation returns[] = {{0, R_X86_64_PC32, SYMBOL_TEXT, 38},
						    {4, R_X86_64_PC32, SYMBOL_INIT, 0}};
	static const uint8_t zeros[16];
	size_t at, unlikely_at, init;
	struct elf_maker m;

	elf_maker_init(&m, ET_REL);
	at = elf_maker_add(&m, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, text,
			   sizeof(text));
	unlikely_at = elf_maker_add(&m, ".text.unlikely", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
				    0, unlikely, sizeof(unlikely));
	init = elf_maker_add(&m, ".init.text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, text,
			     16);
	elf_maker_add(&m, ".altinstr_replacement", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0,
		      unlikely, 2);
	add_module_symbols(&m, at, unlikely_at, init);
	add_relocations(&m, at, in_text, ARRAY_SIZE(in_text));
	add_relocations(&m, unlikely_at, in_unlikely, ARRAY_SIZE(in_unlikely));
	at = elf_maker_add(&m, ".return_sites", SHT_PROGBITS, SHF_ALLOC, 0, zeros, 8);
	add_relocations(&m, at, returns, ARRAY_SIZE(returns));
	at = elf_maker_add(&m, "__mcount_loc", SHT_PROGBITS, SHF_ALLOC, 0, zeros, 8);
	add_relocations(&m, at, mcount, 1);
	free(f->bytes);
	f->bytes = elf_maker_end(&m, &f->size);
}

static const struct relocation mcount_first = {0, R_X86_64_64, SYMBOL_TEXT, 0};

static uint64_t target_of(const struct file *f, uint64_t field)
{
	int32_t distance;

	memcpy(&distance, f->text.bytes + field, sizeof(distance));
	return f->text.address + field + 4 + (uint64_t)(int64_t)distance;
}

static void kernel_file_text_of_a_module_is_linked_and_masked(void **state)
{
	static const uint64_t masked[][2] = {{0, 5}, {16, 21}, {33, 43}, {0x88, 0x90}, {0, 0}};
	struct file *f = *state;

	make_module(f, &mcount_first);
	use_links(f, module_symbols);
	assert_int_equal(make_text(f, "virtio", module_sections), 0);
	assert_int_equal(f->text.address, MODULE_AT);
	assert_int_equal(f->text.size, 0x92);
	assert_int_equal(target_of(f, 6), 0xffffffff81000100);
	assert_int_equal(target_of(f, 12), MODULE_AT + 0x80 + 2);
	assert_int_equal(target_of(f, 29), 0xffffffffc0100000);
	assert_int_equal(target_of(f, 0x83), MODULE_AT + 5);
	expect_masked(f, masked);
}

static void kernel_file_text_of_a_module_with_a_damaged_table_is_believed_nowhere(void **state)
{
	static const struct relocation nowhere = {0, R_X86_64_64, SYMBOL_DATA, 0};
	static const uint64_t all[][2] = {{0, 0x92}, {0, 0}};
	struct file *f = *state;
	struct elf_maker m;
	static const uint8_t byte = 0x90, zeros[13];
	static const struct relocation sites[] = {{0, R_X86_64_PC32, SYMBOL_TEXT, 0}};
	size_t text, at;

	/* An entry whose place is unknown. */
	make_module(f, &nowhere);
	use_links(f, module_symbols);
	assert_int_equal(make_text(f, "virtio", module_sections), 0);
	assert_true(f->text.n_masked > 0 && f->text.masked[0].begin == MODULE_AT);
	expect_masked(f, all);
	/* Alternatives of a size that no kernel has. */
	elf_maker_init(&m, ET_REL);
	text = elf_maker_add(&m, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, &byte, 1);
	add_module_symbols(&m, text, text, text);
	at = elf_maker_add(&m, ".altinstructions", SHT_PROGBITS, SHF_ALLOC, 0, zeros, 11);
	add_relocations(&m, at, sites, 1);
	free(f->bytes);
	f->bytes = elf_maker_end(&m, &f->size);
	assert_int_equal(make_text(f, "virtio", module_sections), 0);
	assert_int_equal(f->text.n_masked, 1);
	assert_int_equal(f->text.masked[0].end, MODULE_AT + 1);
}

static void kernel_file_text_of_a_module_without_a_place_is_unplaced(void **state)
{
	struct file *f = *state;

	make_module(f, &mcount_first);
	use_links(f, module_symbols);
	assert_int_equal(make_text(f, "virtio", ""), KERNEL_FILE_UNPLACED);
	assert_int_equal(make_text(f, "virt", module_sections), KERNEL_FILE_UNPLACED);
	assert_int_equal(make_text(f, "virtio", "virtio .text ffffffffc0201000\n"),
			 KERNEL_FILE_UNPLACED);
	/* No module's sections are so far apart. */
	assert_int_equal(make_text(f, "virtio",
				   "virtio .text 0xffffffff00000000\n"
				   "virtio .text.unlikely 0xffffffffc0201080\n"),
			 -EBADMSG);
	/* At the end of memory. */
	assert_int_equal(make_text(f, "virtio", "virtio .text 0xffffffffffffffff\n"), -EBADMSG);
	/* A module's file is no kernel. */
	assert_int_equal(make_text(f, NULL, ""), -EBADMSG);
}

static void kernel_file_text_of_damaged_modules_ends(void **state)
{
	struct file *f = *state;

	make_module(f, &mcount_first);
	use_links(f, module_symbols);
	mangle(f, "virtio", module_sections);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kernel_file_text_of_a_kernel_is_moved_and_masked),
		TEST(kernel_file_text_with_checked_calls_is_masked_before_them),
		TEST(kernel_file_text_with_a_damaged_table_is_believed_nowhere),
		TEST(kernel_file_text_without_its_tables_is_believed_nowhere),
		TEST(kernel_file_text_with_probes_is_masked_there),
		TEST(kernel_file_text_of_a_kernel_without_a_place_is_unplaced),
		TEST(kernel_file_text_of_another_build_is_refused),
		TEST(kernel_file_text_of_a_packed_kernel_is_the_same),
		TEST(kernel_file_text_of_damaged_kernels_ends),
		TEST(kernel_file_text_of_a_module_is_linked_and_masked),
		TEST(kernel_file_text_of_a_module_with_a_damaged_table_is_believed_nowhere),
		TEST(kernel_file_text_of_a_module_without_a_place_is_unplaced),
		TEST(kernel_file_text_of_damaged_modules_ends),
	};

	return cmocka_run_group_tests_name("kernel_file", tests, NULL, NULL);
}
