/*
 * The bounds of functions from .eh_frame: on real files compared with readelf, and on this program
 * without its symbol table compared with its symbol table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "sideband/elf/elf_private.h"
#include "tests/unit/sideband/elf/real_files.h"
#include "tests/unit/sideband/self.h"

/* A function that the compiler can neither leave out nor put into another one. */
__attribute__((noinline)) int test_unwind_known_function(int x);

__attribute__((noinline)) int test_unwind_known_function(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

/* A function written by hand, whose unwind information begins behind its first instruction. */
int test_unwind_late_function(void);

__asm__(".text\n"
	".globl test_unwind_late_function\n"
	".type test_unwind_late_function, @function\n"
	"test_unwind_late_function:\n"
	"	mov $7, %eax\n"
	"test_unwind_late_entry:\n"
	"	.cfi_startproc\n"
	"	nop\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size test_unwind_late_function, . - test_unwind_late_function\n");

/* Whether OFFSET lies within a symbol that has a name, and behind its begin. */
static bool is_within_named(const struct elf_file *f, uint64_t offset)
{
	size_t n;
	const struct elf_symbol *s = elf_file_symbols(f, &n);

	for (size_t i = 0; i < n && s[i].offset < offset; i++)
		if (s[i].name && offset - s[i].offset < s[i].size)
			return true;
	return false;
}

/* Every entry that readelf prints has a symbol, or lies within a symbol that has a name; one
 * without a name has the entry's size. Returns the number of entries. */
static size_t compare_with_readelf(const char *path)
{
	struct file file = file_map(path);
	unsigned long begin, end;
	struct elf_file *f;
	char line[4096];
	size_t n = 0;
	FILE *readelf;

	if (!file.bytes)
		return 0;
	assert_int_equal(elf_file_new(file.bytes, file.size, &f), 0);
	snprintf(line, sizeof(line), "readelf --debug-dump=frames-interp %s 2>/dev/null", path);
	if (strcmp(path, "/proc/self/exe") == 0)
		snprintf(line, sizeof(line),
			 "readelf --debug-dump=frames-interp /proc/%d/exe 2>/dev/null", getpid());
	readelf = popen(line, "r");
	assert_non_null(readelf);
	while (fgets(line, sizeof(line), readelf)) {
		const char *pc = strstr(line, " FDE ") ? strstr(line, "pc=") : NULL;
		const struct elf_symbol *s;
		uint64_t offset, code, code_end;

		if (strstr(line, ".debug_frame"))
			break;
		if (!pc || sscanf(pc, "pc=%lx..%lx", &begin, &end) != 2 || begin == end ||
		    !elf_offset_of(f, begin, &offset) ||
		    !elf_file_code(f, offset, &code, &code_end))
			continue;
		s = symbol_at(f, offset);
		if (!s) {
			assert_true(is_within_named(f, offset));
			continue;
		}
		assert_true(s->size > 0);
		if (!s->name)
			assert_int_equal(s->size, MIN_OF(end - begin, code_end - offset));
		n++;
	}
	while (fgets(line, sizeof(line), readelf))
		;
	pclose(readelf);
	elf_file_free(f);
	file_unmap(&file);
	return n;
}

static void symbols_agree_with_readelf(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(real_files); i++)
		assert_true(compare_with_readelf(real_files[i]) > 0);
}

static void symbols_of_late_unwind_information_are_one_function(void **state)
{
	struct file whole = file_map("/proc/self/exe");
	const struct elf_symbol *s, *late = NULL;
	struct elf_file *f;
	size_t n;

	(void)state;
	assert_int_equal(test_unwind_late_function(), 7);
	assert_int_equal(elf_file_new(whole.bytes, whole.size, &f), 0);
	s = elf_file_symbols(f, &n);
	for (size_t i = 0; i < n; i++)
		if (s[i].name && strcmp(s[i].name, "test_unwind_late_function") == 0)
			late = &s[i];
	assert_non_null(late);
	assert_int_equal(late->size, 7);
	for (uint64_t i = 1; i < late->size; i++)
		assert_null(symbol_at(f, late->offset + i));
	elf_file_free(f);
	file_unmap(&whole);
}

/* The program without .symtab has the same functions: those that .dynsym has not are without a
 * name, and have the size that they had. */
static void symbols_of_a_stripped_file_have_the_bounds_of_the_whole_one(void **state)
{
	char path[] = "/tmp/test_elf_unwind.XXXXXX", command[256];
	struct file whole = file_map("/proc/self/exe"), stripped;
	int fd = mkstemp(path);
	const struct elf_symbol *s, *known = NULL;
	struct elf_file *f, *g;
	size_t n, unnamed = 0;

	(void)state;
	assert_int_equal(test_unwind_known_function(1), 2);
	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof(command), "strip -o %s /proc/%d/exe", path, getpid());
	assert_int_equal(system(command), 0);
	stripped = file_map(path);
	unlink(path);
	assert_int_equal(elf_file_new(whole.bytes, whole.size, &f), 0);
	assert_int_equal(elf_file_new(stripped.bytes, stripped.size, &g), 0);
	s = elf_file_symbols(f, &n);
	for (size_t i = 0; i < n; i++)
		if (s[i].name && strcmp(s[i].name, "test_unwind_known_function") == 0)
			known = &s[i];
	assert_non_null(known);
	s = symbol_at(g, known->offset);
	assert_non_null(s);
	assert_int_equal(s->size, known->size);
	s = elf_file_symbols(g, &n);
	for (size_t i = 0; i < n; i++) {
		const struct elf_symbol *same = symbol_at(f, s[i].offset);

		/* The begin of test_unwind_late_function() is lost. */
		if (!same) {
			assert_true(is_within_named(f, s[i].offset));
			continue;
		}
		unnamed += !s[i].name;
		assert_int_equal(s[i].size, same->size);
	}
	assert_true(unnamed > 5);
	elf_file_free(f);
	elf_file_free(g);
	file_unmap(&whole);
	file_unmap(&stripped);
}

/* Damage in .eh_frame leaves functions out, and never makes one that lies outside of the code. */
static void symbols_of_a_damaged_table_lie_within_code(void **state)
{
	struct file ls = file_map("/bin/ls");
	uint8_t *copy = malloc(ls.size);
	uint64_t seed = 1, begin, end;
	GElf_Shdr h = {0};
	struct elf_file *f;

	(void)state;
	assert_int_equal(elf_file_new(ls.bytes, ls.size, &f), 0);
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(f->elf, scn));)
		if (gelf_getshdr(scn, &h) && strcmp(elf_section_name(f, &h), ".eh_frame") == 0)
			break;
	elf_file_free(f);
	memcpy(copy, ls.bytes, ls.size);
	for (size_t i = 0; i < 500; i++) {
		const struct elf_symbol *s;
		size_t n, at;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		at = h.sh_offset + (seed >> 33) % h.sh_size;
		copy[at] = (uint8_t)(seed >> 24);
		assert_int_equal(elf_file_new(copy, ls.size, &f), 0);
		s = elf_file_symbols(f, &n);
		for (size_t j = 0; j < n; j++) {
			if (s[j].name)
				continue;
			assert_true(elf_file_code(f, s[j].offset, &begin, &end));
			assert_true(s[j].size > 0 && s[j].size <= end - s[j].offset);
		}
		elf_file_free(f);
		copy[at] = ls.bytes[at];
	}
	free(copy);
	file_unmap(&ls);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbols_agree_with_readelf),
		cmocka_unit_test(symbols_of_late_unwind_information_are_one_function),
		cmocka_unit_test(symbols_of_a_stripped_file_have_the_bounds_of_the_whole_one),
		cmocka_unit_test(symbols_of_a_damaged_table_lie_within_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
