/*
 * sideband/dwarf on hostile DWARF: references to other files, circles, deep nesting, sections that
 * are larger than they look, and damage.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <assert.h>
#include <cmocka.h>
#include <dwarf.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf.h"
#include "sideband/elf/elf.h"
#include "tests/support/child.h"
#include "tests/unit/sideband/dwarf_maker.h"

#define BEGIN 0x1000u
#define SIZE  0x100u
#define FOUND (SIZE / 0x10) /* searches of find_all() that find something */

static struct dwarf_maker m;

/* Searches for every address, and reads all of each result. */
static size_t find_all(struct dwarf_file *f)
{
	struct dwarf_frame frames[DWARF_MAX_FRAMES];
	size_t sum = 0;

	for (uint64_t at = BEGIN; at <= BEGIN + SIZE; at += 0x10) {
		size_t n = dwarf_file_find(f, at, frames, ARRAY_SIZE(frames));

		assert(n <= DWARF_MAX_FRAMES);
		for (size_t i = 0; i < n; i++) {
			sum += 1 + (frames[i].function ? strlen(frames[i].function) : 0);
			sum += frames[i].file ? strlen(frames[i].file) : 0;
		}
	}
	return sum;
}

static int open_and_find(const struct elf_bytes *e, size_t *ret_found)
{
	struct dwarf_file *f;
	int r = dwarf_file_open(e, &f);

	*ret_found = 0;
	if (r == 0) {
		*ret_found = find_all(f);
		dwarf_file_free(f);
	}
	return r;
}

static int open_made(size_t *ret_found)
{
	struct elf_bytes e = {0};
	uint8_t *bytes = dwarf_maker_file(&m, &e.size);
	int r;

	e.bytes = bytes;
	r = open_and_find(&e, ret_found);
	free(bytes);
	return r;
}

static void put_row(void)
{
	size_t begin = dwarf_maker_lines(&m);

	dwarf_maker_row(&m, BEGIN, 0, 2, 9);
	dwarf_maker_end_sequence(&m, SIZE);
	dwarf_maker_end_lines(&m, begin);
}

static void begin_unit(void)
{
	dwarf_maker_init(&m, 4, 0);
	put_row();
	dwarf_maker_unit(&m, BEGIN, SIZE);
}

static void end_unit(unsigned open_entries)
{
	for (unsigned i = 0; i < open_entries; i++)
		dwarf_put(&m.info, 0, 1);
	dwarf_maker_end_unit(&m);
}

/* --- Other files --- */

/* Forbids all system calls that look at a path or leave the process. realpath() is that of
 * ptsnap-decode. */
static bool forbid_paths(void)
{
	static const int calls[] = {
		SCMP_SYS(open),	      SCMP_SYS(openat),	    SCMP_SYS(openat2),
		SCMP_SYS(creat),      SCMP_SYS(stat),	    SCMP_SYS(lstat),
		SCMP_SYS(newfstatat), SCMP_SYS(statx),	    SCMP_SYS(access),
		SCMP_SYS(faccessat),  SCMP_SYS(readlink),   SCMP_SYS(readlinkat),
		SCMP_SYS(socket),     SCMP_SYS(connect),    SCMP_SYS(execve),
		SCMP_SYS(getcwd),     SCMP_SYS(getdents64),
	};
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	bool ok = ctx && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;

	for (size_t i = 0; ok && i < ARRAY_SIZE(calls); i++)
		ok = seccomp_rule_add(ctx, SCMP_ACT_KILL_PROCESS, calls[i], 0) == 0;
	return ok && seccomp_load(ctx) == 0;
}

/* Nothing may be opened, with or without a result. */
static void assert_opens_nothing(void)
{
	struct elf_bytes e = {0};
	size_t found;
	int status;
	pid_t pid;

	e.bytes = dwarf_maker_file(&m, &e.size);
	pid = test_fork();
	if (pid == 0)
		_exit(!forbid_paths() ? 100 : open_and_find(&e, &found));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_in_range(WEXITSTATUS(status), 0, DWARF_NONE);
	free((void *)(uintptr_t)e.bytes);
}

static void find_in_what_names_a_common_file_opens_none(void **state)
{
	(void)state;
	begin_unit();
	dwarf_maker_entry(&m, SHAPE_APART);
	dwarf_put(&m.info, 0, 8);
	dwarf_put(&m.info, BEGIN, 8);
	dwarf_put(&m.info, SIZE, 4);
	end_unit(2);
	m.further = ".gnu_debugaltlink";
	m.further_text = "/bin/true\0its build id, of twenty bytes";
	assert_opens_nothing();
}

static void find_in_a_unit_that_was_split_opens_none(void **state)
{
	(void)state;
	dwarf_maker_init(&m, 4, 0);
	put_row();
	dwarf_maker_entry(&m, SHAPE_OLD_SKELETON);
	dwarf_put_text(&m.info, "/bin/true");
	dwarf_put(&m.info, 1234, 8);
	dwarf_put(&m.info, BEGIN, 8);
	dwarf_put(&m.info, SIZE, 4);
	dwarf_put(&m.info, 0, 4);
	end_unit(0);
	assert_opens_nothing();

	for (unsigned type = DW_UT_compile; type <= DW_UT_split_type; type++) {
		bool type_unit = type == DW_UT_type || type == DW_UT_split_type;

		dwarf_maker_init(&m, 5, type);
		put_row();
		if (type_unit)
			dwarf_put(&m.info, 32, 4);
		dwarf_maker_entry(&m, SHAPE_SKELETON);
		dwarf_put_text(&m.info, "/bin/true");
		dwarf_put(&m.info, BEGIN, 8);
		dwarf_put(&m.info, SIZE, 4);
		dwarf_put(&m.info, 0, 4);
		end_unit(1);
		assert_opens_nothing();
	}
}

/* The lines of a split unit are in its skeleton. */
static void find_in_a_skeleton_gives_its_lines(void **state)
{
	size_t found;

	(void)state;
	dwarf_maker_init(&m, 5, DW_UT_skeleton);
	put_row();
	dwarf_maker_entry(&m, SHAPE_SKELETON);
	dwarf_put_text(&m.info, "/nowhere.dwo");
	dwarf_put(&m.info, BEGIN, 8);
	dwarf_put(&m.info, SIZE, 4);
	dwarf_put(&m.info, 0, 4);
	end_unit(0);
	assert_int_equal(open_made(&found), 0);
	assert_int_equal(found, FOUND * (1 + strlen("sub/b.h")));
}

/* --- Circles and depth --- */

static void find_by_names_in_a_circle_ends(void **state)
{
	size_t found;
	uint32_t at;

	(void)state;
	begin_unit();
	at = dwarf_maker_entry(&m, SHAPE_CLONE);
	dwarf_put(&m.info, at, 4);
	dwarf_put(&m.info, BEGIN, 8);
	dwarf_put(&m.info, SIZE, 4);
	/* Each of the two has the other as its origin. */
	at = dwarf_maker_entry(&m, SHAPE_ORIGIN);
	dwarf_put(&m.info, at + 5, 4);
	dwarf_maker_entry(&m, SHAPE_ORIGIN);
	dwarf_put(&m.info, at, 4);
	dwarf_maker_inlined(&m, at, BEGIN, SIZE, 5);
	/* The origin of this one does not exist. */
	dwarf_maker_inlined(&m, UINT32_MAX, BEGIN, SIZE, 5);
	end_unit(4);
	assert_int_equal(open_made(&found), 0);
	assert_int_equal(found, FOUND * (3 + strlen("/src/sub/b.h") + 2 * strlen("/src/a.c")));
}

static void find_in_a_long_chain_gives_the_innermost(void **state)
{
	struct dwarf_frame frames[DWARF_MAX_FRAMES];
	struct elf_bytes e = {0};
	struct dwarf_file *f;
	uint32_t at;

	(void)state;
	begin_unit();
	at = dwarf_maker_abstract(&m, "again", "");
	dwarf_maker_function(&m, "outer", BEGIN, SIZE);
	for (unsigned i = 0; i < 100; i++)
		dwarf_maker_inlined(&m, at, BEGIN, SIZE, i);
	end_unit(102);
	e.bytes = dwarf_maker_file(&m, &e.size);
	assert_int_equal(dwarf_file_open(&e, &f), 0);
	assert_int_equal(dwarf_file_find(f, BEGIN, frames, ARRAY_SIZE(frames)), DWARF_MAX_FRAMES);
	assert_string_equal(frames[0].function, "again");
	assert_int_equal(frames[1].line, 99);
	dwarf_file_free(f);
	free((void *)(uintptr_t)e.bytes);
}

static void put_nested(enum dwarf_shape shape)
{
	begin_unit();
	dwarf_maker_function(&m, "outer", BEGIN, SIZE);
	for (unsigned i = 0; i < 20000; i++) {
		dwarf_maker_entry(&m, shape);
		if (shape == SHAPE_SPACE)
			dwarf_put(&m.info, 0, 1);
	}
	end_unit(2);
}

static void find_in_what_lies_deep_ends(void **state)
{
	const size_t whole = FOUND * (1 + strlen("outer") + strlen("/src/sub/b.h"));
	size_t found;

	(void)state;
	put_nested(SHAPE_BLOCK);
	assert_int_equal(open_made(&found), 0);
	assert_int_equal(found, whole);
	put_nested(SHAPE_SPACE);
	assert_int_equal(open_made(&found), 0);
	assert_int_equal(found, whole);
}

/* --- Sizes --- */

static void put_plain(void)
{
	begin_unit();
	dwarf_maker_function(&m, "outer", BEGIN, SIZE);
	end_unit(2);
}

static void open_of_what_claims_to_be_large_says_so(void **state)
{
	static const uint64_t sizes[] = {DWARF_MAX_BYTES, DWARF_MAX_BYTES + 1, INT64_MAX,
					 UINT64_MAX};
	size_t found;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		put_plain();
		m.packing = DWARF_ZLIB;
		m.claimed = sizes[i];
		assert_int_equal(open_made(&found), DWARF_LARGE);
		m.packing = DWARF_OLD;
		assert_int_equal(open_made(&found), DWARF_LARGE);
	}
	/* The packed bytes are fewer than claimed. */
	m.claimed = 1u << 20;
	assert_int_equal(open_made(&found), DWARF_NONE);
}

static void open_of_packed_sections_takes_of_the_room(void **state)
{
	struct elf_bytes e = {0};
	uint64_t room = 100;
	struct dwarf_file *f;

	(void)state;
	put_plain();
	m.packing = DWARF_ZSTD;
	e.bytes = dwarf_maker_file(&m, &e.size);
	e.room = &room;
	assert_int_equal(dwarf_file_open(&e, &f), DWARF_LARGE);
	assert_int_equal(room, 100);
	room = 100000;
	assert_int_equal(dwarf_file_open(&e, &f), 0);
	/* The file takes more than the unpacked sections (dwarf_limits.c). */
	assert_true(room <= 100000 - m.info.n - m.abbrev.n - m.line.n);
	dwarf_file_free(f);
	assert_int_equal(room, 100000);
	free((void *)(uintptr_t)e.bytes);
}

struct some {
	const uint8_t *from;
	uint8_t *to;
	size_t limit, brought;
};

static bool bring(void *userdata, uint64_t offset, uint64_t size)
{
	struct some *s = userdata;

	if (size > s->limit - s->brought)
		return false;
	memcpy(s->to + offset, s->from + offset, size);
	s->brought += size;
	return true;
}

static void open_of_a_part_asks_for_what_it_needs(void **state)
{
	struct some some = {.limit = SIZE_MAX};
	struct elf_bytes e = {.need = bring, .userdata = &some};
	size_t found, all;

	(void)state;
	put_plain();
	m.further = ".debug_loclists";
	m.further_text = "not needed";
	some.from = dwarf_maker_file(&m, &e.size);
	e.bytes = some.to = calloc(1, e.size);
	assert_int_equal(open_and_find(&e, &found), 0);
	assert_int_equal(found, FOUND * (1 + strlen("outer") + strlen("/src/sub/b.h")));
	all = some.brought;
	assert_null(memmem(some.to, e.size, m.further_text, strlen(m.further_text)));
	/* With fewer bytes at hand there is no DWARF. */
	for (some.limit = 0; some.limit < all; some.limit++) {
		memset(some.to, 0, e.size);
		some.brought = 0;
		assert_int_equal(open_and_find(&e, &found), DWARF_NONE);
	}
	assert_int_equal(some.limit, all);
	free((void *)(uintptr_t)some.from);
	free(some.to);
}

/* --- Damage --- */

/* Changes one byte at a time. Only results may be lost. */
static void damage(uint8_t *bytes, size_t size)
{
	static const uint8_t masks[] = {0x01, 0x80, 0xff};
	const struct elf_bytes e = {.bytes = bytes, .size = size};
	size_t found;

	for (size_t i = 0; i < size; i++)
		for (size_t k = 0; k < ARRAY_SIZE(masks); k++) {
			bytes[i] ^= masks[k];
			assert_in_range(open_and_find(&e, &found), 0, DWARF_LARGE);
			bytes[i] ^= masks[k];
		}
	assert_int_equal(open_and_find(&e, &found), 0);
}

static void find_in_damaged_files_ends(void **state)
{
	uint8_t *bytes;
	uint32_t at;
	size_t size;

	(void)state;
	begin_unit();
	at = dwarf_maker_abstract(&m, "first", "_Z5firstv");
	dwarf_maker_function(&m, "outer", BEGIN, SIZE);
	dwarf_maker_entry(&m, SHAPE_BLOCK);
	dwarf_maker_inlined(&m, at, BEGIN, 0x10, 77);
	end_unit(4);
	bytes = dwarf_maker_file(&m, &size);
	damage(bytes, size);
	free(bytes);
}

static void find_in_cut_sections_ends(void **state)
{
	struct dwarf_maker whole;
	size_t found;

	(void)state;
	put_plain();
	whole = m;
	for (m.info.n = 1; m.info.n < whole.info.n; m.info.n++)
		assert_in_range(open_made(&found), 0, DWARF_NONE);
	for (m.abbrev.n = 1; m.abbrev.n < whole.abbrev.n; m.abbrev.n++)
		assert_in_range(open_made(&found), 0, DWARF_NONE);
	for (m.line.n = 1; m.line.n < whole.line.n; m.line.n++)
		assert_in_range(open_made(&found), 0, DWARF_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find_in_what_names_a_common_file_opens_none),
		cmocka_unit_test(find_in_a_unit_that_was_split_opens_none),
		cmocka_unit_test(find_in_a_skeleton_gives_its_lines),
		cmocka_unit_test(find_by_names_in_a_circle_ends),
		cmocka_unit_test(find_in_a_long_chain_gives_the_innermost),
		cmocka_unit_test(find_in_what_lies_deep_ends),
		cmocka_unit_test(open_of_what_claims_to_be_large_says_so),
		cmocka_unit_test(open_of_packed_sections_takes_of_the_room),
		cmocka_unit_test(open_of_a_part_asks_for_what_it_needs),
		cmocka_unit_test(find_in_damaged_files_ends),
		cmocka_unit_test(find_in_cut_sections_ends),
	};

	return cmocka_run_group_tests_name("dwarf_hostile", tests, NULL, NULL);
}
