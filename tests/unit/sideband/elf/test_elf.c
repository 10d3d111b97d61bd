/*
 * sideband/elf on real files, compared with nm and with the kernel's build id note, and on damaged
 * files.
 */
#include "sideband/elf/elf.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/sideband/elf/real_files.h"
#include "tests/unit/sideband/elf/some_file.h"
#include "tests/unit/sideband/self.h"

/* A function with a unique name that the compiler cannot leave out. */
__attribute__((noinline)) int test_elf_known_function(int x);

__attribute__((noinline)) int test_elf_known_function(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

static const struct elf_symbol *symbol_named(const struct elf_file *f, const char *name)
{
	size_t n;
	const struct elf_symbol *s = elf_file_symbols(f, &n);

	for (size_t i = 0; i < n; i++)
		if (s[i].name && strcmp(s[i].name, name) == 0)
			return &s[i];
	return NULL;
}

static void new_of_other_bytes_says_not(void **state)
{
	static const uint8_t zeros[4096];
	static const uint8_t script[] = "#!/bin/sh\nexit 0\n";
	static const uint8_t magic[] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1};
	uint8_t *header = calloc(1, 64);
	struct elf_file *f;

	(void)state;
	assert_int_equal(elf_file_new(zeros, 0, &f), ELF_NOT);
	assert_int_equal(elf_file_new(zeros, sizeof(zeros), &f), ELF_NOT);
	assert_int_equal(elf_file_new(script, sizeof(script), &f), ELF_NOT);
	memcpy(header, magic, sizeof(magic));
	for (size_t size = 0; size <= 64; size++)
		assert_int_equal(elf_file_new(header, size, &f), ELF_NOT);
	free(header);
}

/* One field of the header is bad at a time. */
static void new_of_an_impossible_header_says_not(void **state)
{
	static const struct {
		size_t at, size;
		uint64_t value;
	} bad[] = {
		{EI_CLASS, 1, 3},
		{EI_DATA, 1, ELFDATA2MSB},
		{offsetof(Elf64_Ehdr, e_type), 2, ET_REL},
		{offsetof(Elf64_Ehdr, e_machine), 2, EM_AARCH64},
		{offsetof(Elf64_Ehdr, e_shoff), 8, UINT64_MAX - 64},
		{offsetof(Elf64_Ehdr, e_phoff), 8, UINT64_MAX},
		{offsetof(Elf64_Ehdr, e_phentsize), 2, 1},
		{offsetof(Elf64_Ehdr, e_shentsize), 2, 0},
		{offsetof(Elf64_Ehdr, e_shnum), 2, 65535},
	};
	struct file self = file_map("/bin/ls");
	struct elf_file *f;
	uint8_t *copy;

	(void)state;
	assert_non_null(self.bytes);
	copy = malloc(self.size);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		memcpy(copy, self.bytes, self.size);
		memcpy(copy + bad[i].at, &bad[i].value, bad[i].size);
		assert_int_equal(elf_file_new(copy, self.size, &f), ELF_NOT);
	}
	memcpy(copy, self.bytes, self.size);
	assert_int_equal(elf_file_new(copy, self.size, &f), 0);
	elf_file_free(f);
	free(copy);
	file_unmap(&self);
}

static void symbols_of_this_program_lie_where_the_kernel_maps_them(void **state)
{
	struct file self = file_map("/proc/self/exe");
	const struct elf_symbol *s;
	struct elf_file *f;
	uint64_t offset, begin, end;
	char path[4096];

	(void)state;
	assert_int_equal(test_elf_known_function(1), 2);
	assert_true(file_of_address((void *)test_elf_known_function, path, &offset));
	assert_int_equal(elf_file_new(self.bytes, self.size, &f), 0);
	s = symbol_at(f, offset);
	assert_non_null(s);
	assert_string_equal(s->name, "test_elf_known_function");
	assert_true(s->size > 0 && s->size < 4096);
	assert_true(elf_file_code(f, offset, &begin, &end));
	assert_true(begin <= offset && offset + s->size <= end);
	assert_false(elf_file_code(f, 0, &begin, &end));
	assert_false(elf_file_code(f, UINT64_MAX, &begin, &end));
	elf_file_free(f);
	file_unmap(&self);
}

static void symbols_of_libc_have_the_best_name(void **state)
{
	struct file libc;
	const struct elf_symbol *s;
	struct elf_file *f;
	char path[4096];
	uint64_t offset;

	(void)state;
	/* This function has no alias, and no sanitizer replaces it; malloc has the alias
	 * __libc_malloc. */
	assert_true(file_of_address(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), path, &offset));
	libc = file_map(path);
	assert_int_equal(elf_file_new(libc.bytes, libc.size, &f), 0);
	s = symbol_at(f, offset);
	assert_non_null(s);
	assert_string_equal(s->name, "gnu_get_libc_version");
	assert_non_null(symbol_named(f, "malloc"));
	assert_null(symbol_named(f, "__libc_malloc"));
	elf_file_free(f);
	file_unmap(&libc);
}

static void symbols_are_sorted_unique_and_in_the_file(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(real_files); k++) {
		struct file file = file_map(real_files[k]);
		const struct elf_symbol *s;
		struct elf_file *f;
		size_t n;

		if (!file.bytes)
			continue;
		assert_int_equal(elf_file_new(file.bytes, file.size, &f), 0);
		s = elf_file_symbols(f, &n);
		assert_true(n > 0);
		for (size_t i = 0; i < n; i++) {
			assert_true(s[i].offset < file.size);
			assert_true(i == 0 || s[i - 1].offset < s[i].offset);
			assert_true(!s[i].name || s[i].name[0] != 0);
			assert_true(s[i].name || s[i].size > 0);
		}
		elf_file_free(f);
		file_unmap(&file);
	}
}

/* --- Against nm -D --- */

/* The file offset of a virtual address, by the program headers, in the simplest way. */
static uint64_t offset_of(const struct file *file, uint64_t address)
{
	const Elf64_Ehdr *h = (const void *)file->bytes;
	const Elf64_Phdr *p = (const void *)(file->bytes + h->e_phoff);

	for (size_t i = 0; i < h->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && address - p[i].p_vaddr < p[i].p_filesz)
			return address - p[i].p_vaddr + p[i].p_offset;
	return 0;
}

static void compare_with_nm(const char *path)
{
	struct file file = file_map(path);
	struct elf_file *f;
	char line[4096], type, name[2048];
	unsigned long address;
	size_t n = 0;
	FILE *nm;

	if (!file.bytes)
		return;
	snprintf(line, sizeof(line),
		 "nm -D --defined-only --without-symbol-versions %s 2>/dev/null", path);
	nm = popen(line, "r");
	assert_non_null(nm);
	assert_int_equal(elf_file_new(file.bytes, file.size, &f), 0);
	while (fgets(line, sizeof(line), nm)) {
		if (sscanf(line, "%lx %c %2047s", &address, &type, name) != 3 ||
		    (type != 'T' && type != 'i'))
			continue;
		assert_non_null(symbol_at(f, offset_of(&file, address)));
		if (++n == 400)
			break;
	}
	while (fgets(line, sizeof(line), nm))
		;
	pclose(nm);
	elf_file_free(f);
	file_unmap(&file);
}

static void symbols_agree_with_nm(void **state)
{
	(void)state;
	for (size_t i = 1; i < ARRAY_SIZE(real_files); i++)
		compare_with_nm(real_files[i]);
}

/* Calls of a program into the C library go through .plt; those of the C library itself through
 * .plt.sec or .plt.got. */
static void symbols_of_the_plt_are_named_by_their_target(void **state)
{
	struct file ls = file_map("/bin/ls");
	const struct elf_symbol *s;
	struct elf_file *f;

	(void)state;
	assert_int_equal(elf_file_new(ls.bytes, ls.size, &f), 0);
	s = symbol_named(f, "strcmp@plt");
	assert_non_null(s);
	assert_true(s->size == 8 || s->size == 16);
	/* The entry jumps (FF 25), maybe after an ENDBR64 and a BND prefix. */
	assert_non_null(memmem(ls.bytes + s->offset, s->size, "\xff\x25", 2));
	elf_file_free(f);
	file_unmap(&ls);
}

/* --- Build id --- */

static int find_own_build_id(struct dl_phdr_info *info, size_t size, void *userdata)
{
	const uint8_t **ret = userdata;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const uint8_t *at = (const uint8_t *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		const uint8_t *end = at + info->dlpi_phdr[i].p_memsz;

		if (info->dlpi_phdr[i].p_type != PT_NOTE)
			continue;
		while (at + sizeof(Elf64_Nhdr) <= end) {
			const Elf64_Nhdr *n = (const void *)at;

			if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4) {
				*ret = at;
				return 1;
			}
			at += sizeof(*n) + ((n->n_namesz + 3u) & ~3u) + ((n->n_descsz + 3u) & ~3u);
		}
	}
	return 1;
}

static void build_id_is_that_of_the_mapped_note(void **state)
{
	struct file self = file_map("/proc/self/exe");
	const uint8_t *note = NULL, *id;
	struct elf_file *f;
	size_t size;

	(void)state;
	dl_iterate_phdr(find_own_build_id, &note);
	assert_int_equal(elf_file_new(self.bytes, self.size, &f), 0);
	id = elf_file_build_id(f, &size);
	assert_int_equal(!note, !id);
	if (note) {
		const Elf64_Nhdr *n = (const void *)note;

		assert_int_equal(size, n->n_descsz);
		assert_memory_equal(id, note + sizeof(*n) + 4, size);
	}
	elf_file_free(f);
	file_unmap(&self);
}

/* --- Damage --- */

static void new_of_truncated_files_survives(void **state)
{
	struct file ls = file_map("/bin/ls");
	struct elf_file *f;

	(void)state;
	for (size_t i = 0; i < 200; i++) {
		size_t size = ls.size * i / 200;
		uint8_t *copy = malloc(size + 1);

		memcpy(copy, ls.bytes, size);
		if (elf_file_new(copy, size, &f) == 0)
			elf_file_free(f);
		free(copy);
	}
	file_unmap(&ls);
}

static void new_of_damaged_files_survives(void **state)
{
	struct file ls = file_map("/bin/ls");
	const Elf64_Ehdr *h = (const void *)ls.bytes;
	size_t headers = h->e_shnum * sizeof(Elf64_Shdr);
	uint64_t seed = 1;
	uint8_t *copy = malloc(ls.size);
	struct elf_file *f;

	(void)state;
	memcpy(copy, ls.bytes, ls.size);
	for (size_t i = 0; i < 1500; i++) {
		size_t at;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		at = (seed >> 33) % (1024 + headers);
		at = at < 1024 ? at : h->e_shoff + at - 1024;
		copy[at] = (uint8_t)(seed >> 24);
		if (elf_file_new(copy, ls.size, &f) == 0)
			elf_file_free(f);
		copy[at] = ls.bytes[at];
	}
	free(copy);
	file_unmap(&ls);
}

static int open_some(struct some *s, enum elf_wanted wanted, struct elf_file **ret)
{
	const struct elf_bytes bytes = bytes_of_some(s);

	return elf_file_open(&bytes, wanted, ret);
}

static void assert_same_build_id(const struct elf_file *a, const struct elf_file *b)
{
	size_t n, same;
	const uint8_t *x = elf_file_build_id(a, &n), *y = elf_file_build_id(b, &same);

	assert_int_equal(same, n);
	assert_true(n == 0 || memcmp(x, y, n) == 0);
}

static void open_asks_for_all_that_it_reads(void **state)
{
	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(real_files); k++) {
		struct some some = {.file = file_map(real_files[k]), .most = UINT64_MAX};
		struct elf_file *whole, *f;

		if (!some.file.bytes)
			continue;
		some.copy = calloc(1, some.file.size);
		assert_int_equal(elf_file_new(some.file.bytes, some.file.size, &whole), 0);
		assert_int_equal(open_some(&some, ELF_BUILD_ID, &f), 0);
		assert_same_build_id(f, whole);
		assert_true(some.bytes < 16384);
		elf_file_free(f);
		assert_int_equal(open_some(&some, ELF_NAMES, &f), 0);
		assert_same_names(f, whole);
		assert_same_build_id(f, whole);
		assert_true(some.bytes < some.file.size);
		elf_file_free(f);
		elf_file_free(whole);
		free(some.copy);
		file_unmap(&some.file);
	}
}

/* A part of a file has fewer names than the whole file, or none, and never other names. */
static void open_of_what_does_not_come_has_no_names(void **state)
{
	struct file file = file_map("/bin/ls");
	struct elf_file *whole, *f;

	(void)state;
	assert_int_equal(elf_file_new(file.bytes, file.size, &whole), 0);
	for (uint64_t most = 0; most < file.size; most += file.size / 50 + 1) {
		struct some some = {file, calloc(1, file.size), 0, most};
		const struct elf_symbol *s;
		size_t n;

		if (open_some(&some, ELF_NAMES, &f) == 0) {
			s = elf_file_symbols(f, &n);
			while (n-- > 0)
				assert_non_null(symbol_at(whole, s[n].offset));
			elf_file_free(f);
		} else {
			assert_true(most < 8192);
		}
		free(some.copy);
	}
	elf_file_free(whole);
	file_unmap(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_of_other_bytes_says_not),
		cmocka_unit_test(new_of_an_impossible_header_says_not),
		cmocka_unit_test(symbols_of_this_program_lie_where_the_kernel_maps_them),
		cmocka_unit_test(symbols_of_libc_have_the_best_name),
		cmocka_unit_test(symbols_are_sorted_unique_and_in_the_file),
		cmocka_unit_test(symbols_agree_with_nm),
		cmocka_unit_test(symbols_of_the_plt_are_named_by_their_target),
		cmocka_unit_test(build_id_is_that_of_the_mapped_note),
		cmocka_unit_test(new_of_truncated_files_survives),
		cmocka_unit_test(new_of_damaged_files_survives),
		cmocka_unit_test(open_asks_for_all_that_it_reads),
		cmocka_unit_test(open_of_what_does_not_come_has_no_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
