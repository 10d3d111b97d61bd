/*
 * Dumps of just-in-time compilers: what was written is what is read, and each address has at each
 * time the newest code of that time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "sideband/symbols/jitdump.h"
#include "tests/unit/sideband/jitdump_maker.h"

static const uint8_t old_code[16] = "old old old old";
static const uint8_t new_code[16] = "new new new new";

struct fixture {
	struct bytes_out bytes;
	struct jitdump *dump;
	struct jitcode *code;
	size_t n;
	const struct jitdump_load *loads;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){0};
	bytes_out_init(&f->bytes, 16 << 20);
	jit_put_header(&f->bytes, 0);
}

static void read_dump(struct fixture *f)
{
	assert_int_equal(jitdump_new(f->bytes.data, f->bytes.size, &f->dump), 0);
	f->loads = jitdump_loads(f->dump, &f->n);
}

/* Times are known to 2 ns. */
static void on_ns(void *userdata, uint64_t time, uint64_t *ret_lo, uint64_t *ret_hi)
{
	(void)userdata;
	*ret_lo = time - 1;
	*ret_hi = time + 1;
}

static void read_code(struct fixture *f, uint64_t since, bool complete)
{
	const struct jitcode_clock clock = {.ns = on_ns, .begin = since, .complete = complete};

	read_dump(f);
	assert_int_equal(jitcode_new(f->dump, &clock, &f->code), 0);
}

static void done(struct fixture *f)
{
	jitcode_free(f->code);
	jitdump_free(f->dump);
	bytes_out_done(&f->bytes);
}

static void jitdump_new_reads_what_was_written(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	jit_put_load(&f.bytes, 100, 0x1000, old_code, 16, 1, "one");
	jit_put_other(&f.bytes, 110, 4);
	jit_put_load(&f.bytes, 120, 0x2000, new_code, 8, 2, "two");
	jit_put_move(&f.bytes, 130, 0x1000, 0x3000, 16, 1);
	jit_put_other(&f.bytes, 140, 3);
	read_dump(&f);
	assert_int_equal(f.n, 3);
	assert_true(jitdump_is_whole(f.dump) && jitdump_is_closed(f.dump));
	assert_false(jitdump_has_tsc(f.dump));
	assert_int_equal(jitdump_last(f.dump), 140);
	assert_int_equal(f.loads[0].address, 0x1000);
	assert_int_equal(f.loads[0].size, 16);
	assert_int_equal(f.loads[0].time, 100);
	assert_string_equal(f.loads[0].name, "one");
	assert_memory_equal(jitdump_bytes(f.dump, &f.loads[0]), old_code, 16);
	assert_string_equal(f.loads[1].name, "two");
	assert_memory_equal(jitdump_bytes(f.dump, &f.loads[1]), new_code, 8);
	assert_int_equal(f.loads[2].address, 0x3000);
	assert_int_equal(f.loads[2].offset, f.loads[0].offset);
	assert_string_equal(f.loads[2].name, "one");
	assert_string_equal(jitdump_at(f.dump, f.loads[1].offset + 7)->name, "two");
	assert_null(jitdump_at(f.dump, f.loads[1].offset + 8));
	assert_null(jitdump_at(f.dump, 0));
	done(&f);
}

static void jitdump_new_other_files_are_none(void **state)
{
	struct fixture f;
	size_t i;

	(void)state;
	begin(&f);
	for (i = 0; i < 40; i++)
		assert_int_equal(jitdump_new(f.bytes.data, i, &f.dump), JITDUMP_NOT);
	f.bytes.data[12] = 183; /* AArch64 */
	assert_int_equal(jitdump_new(f.bytes.data, 40, &f.dump), JITDUMP_NOT);
	f.bytes.data[12] = 62;
	f.bytes.data[32] = 2; /* a flag of a later version */
	assert_int_equal(jitdump_new(f.bytes.data, 40, &f.dump), JITDUMP_NOT);
	f.bytes.data[32] = 1;
	read_dump(&f);
	assert_true(jitdump_has_tsc(f.dump));
	assert_int_equal(f.n, 0);
	done(&f);
}

static void jitdump_new_cut_anywhere_has_the_whole_records(void **state)
{
	struct fixture f;
	size_t i, first, second;

	(void)state;
	begin(&f);
	jit_put_load(&f.bytes, 100, 0x1000, old_code, 16, 1, "one");
	first = f.bytes.size;
	jit_put_load(&f.bytes, 120, 0x2000, new_code, 16, 2, "two");
	second = f.bytes.size;
	for (i = 40; i <= second; i++) {
		uint8_t *copy = malloc(i);

		assert_non_null(copy);
		memcpy(copy, f.bytes.data, i);
		assert_int_equal(jitdump_new(copy, i, &f.dump), 0);
		(void)jitdump_loads(f.dump, &f.n);
		assert_int_equal(f.n, i < first ? 0 : i < second ? 1 : 2);
		assert_true(jitdump_is_whole(f.dump));
		jitdump_free(f.dump);
		free(copy);
	}
	f.dump = NULL;
	done(&f);
}

/* The recorder copies the header and the newest part. */
static void jitdump_new_without_a_part_goes_on_with_the_next_record(void **state)
{
	struct fixture f;
	size_t i, size;

	(void)state;
	begin(&f);
	for (i = 0; i < 20; i++)
		jit_put_load(&f.bytes, 100 + i, 0x1000 + 16 * i, old_code, 16, i, "name");
	size = 200;
	memmove(f.bytes.data + 40, f.bytes.data + 40 + size, f.bytes.size - 40 - size);
	f.bytes.size -= size;
	read_dump(&f);
	assert_false(jitdump_is_whole(f.dump));
	assert_int_equal(f.n, 20 - (size + 76) / 77);
	assert_int_equal(f.loads[0].time, 103);
	assert_int_equal(f.loads[f.n - 1].time, 119);
	done(&f);
}

static void jitdump_new_what_cannot_be_is_dropped(void **state)
{
	struct fixture f;
	size_t at;

	(void)state;
	begin(&f);
	jit_put_load(&f.bytes, 100, UINT64_MAX - 8, old_code, 16, 1, "wraps");
	jit_put_move(&f.bytes, 101, 0x1000, 0x2000, 16, 5); /* from nowhere */
	at = f.bytes.size;
	jit_put_load(&f.bytes, 102, 0x3000, old_code, 16, 2, "other process");
	f.bytes.data[at + 16] = 1;
	at = f.bytes.size;
	jit_put_load(&f.bytes, 103, 0x3000, old_code, 16, 2, "endless");
	f.bytes.data[at + 56 + 7] = 'x';
	jit_put_load(&f.bytes, 104, 0x4000, old_code, 16, 3, "good");
	jit_put_load(&f.bytes, 105, 0x5000, old_code, 0, 4, "empty");
	read_dump(&f);
	assert_int_equal(f.n, 1);
	assert_string_equal(f.loads[0].name, "good");
	assert_int_equal(jitdump_dropped(f.dump), 4);
	assert_false(jitdump_is_whole(f.dump));
	done(&f);
}

static void jitdump_new_long_name_has_its_end(void **state)
{
	char name[3000];
	struct fixture f;

	(void)state;
	memset(name, 'a', sizeof(name));
	memcpy(name + sizeof(name) - 4, "end", 4);
	begin(&f);
	jit_put_load(&f.bytes, 100, 0x1000, old_code, 16, 1, name);
	read_dump(&f);
	assert_int_equal(strlen(f.loads[0].name), JITDUMP_NAME_MAX);
	assert_string_equal(f.loads[0].name + JITDUMP_NAME_MAX - 3, "end");
	done(&f);
}

static void check_line(const struct fixture *f, size_t load, size_t byte, const char *file,
		       uint32_t line)
{
	const char *found;
	uint32_t number;

	assert_true(jitdump_line(f->dump, f->loads[load].offset + byte, &found, &number));
	assert_string_equal(found, file);
	assert_int_equal(number, line);
}

static void jitdump_line_finds_the_line_of_a_byte(void **state)
{
	static const struct jit_line lines[] = {
		{0x1000, 7, "a.js"}, {0x1004, 8, "\xff"}, {0x100c, 3, "b.js"}};
	static const struct jit_line late[] = {{0x2040, 1, "c.js"}};
	const char *file;
	uint32_t line;
	struct fixture f;

	(void)state;
	begin(&f);
	jit_put_lines(&f.bytes, 99, 0x1000, lines, ARRAY_SIZE(lines));
	jit_put_load(&f.bytes, 100, 0x1000, old_code, 16, 1, "one");
	jit_put_load(&f.bytes, 101, 0x3000, new_code, 16, 2, "without");
	jit_put_lines(&f.bytes, 102, 0x2000, late, ARRAY_SIZE(late));
	jit_put_load(&f.bytes, 103, 0x2000, new_code, 16, 3, "late");
	read_dump(&f);
	check_line(&f, 0, 0, "a.js", 7);
	check_line(&f, 0, 3, "a.js", 7);
	check_line(&f, 0, 4, "a.js", 8);
	check_line(&f, 0, 15, "b.js", 3);
	assert_false(jitdump_line(f.dump, f.loads[1].offset, &file, &line));
	assert_false(jitdump_line(f.dump, f.loads[2].offset, &file, &line));
	done(&f);
}

/* V8 adds the size of an ELF header to each address. */
static void jitdump_line_of_shifted_lines_finds_the_line_of_a_byte(void **state)
{
	static const struct jit_line one[] = {{0x1040, 1, "c.js"}, {0x104c, 2, "c.js"}};
	static const struct jit_line two[] = {{0x2044, 9, "c.js"}};
	const char *file;
	uint32_t line;
	struct fixture f;

	(void)state;
	begin(&f);
	jit_put_lines(&f.bytes, 99, 0x1000, one, ARRAY_SIZE(one));
	jit_put_load(&f.bytes, 100, 0x1000, old_code, 16, 1, "one");
	jit_put_lines(&f.bytes, 101, 0x2000, two, ARRAY_SIZE(two));
	jit_put_load(&f.bytes, 102, 0x2000, new_code, 16, 2, "two");
	read_dump(&f);
	check_line(&f, 0, 0, "c.js", 1);
	check_line(&f, 0, 15, "c.js", 2);
	check_line(&f, 1, 4, "c.js", 9);
	assert_false(jitdump_line(f.dump, f.loads[1].offset + 3, &file, &line));
	done(&f);
}

static struct jitcode_piece find(const struct fixture *f, uint64_t time, uint64_t address)
{
	struct jitcode_piece piece;

	assert_true(jitcode_find(f->code, jitcode_at(f->code, time), address, &piece));
	return piece;
}

/* Whether PIECE holds certainly all the time from LO to HI. */
static bool is_certain(const struct fixture *f, struct jitcode_piece piece, uint64_t lo,
		       uint64_t hi)
{
	uint32_t first, last;

	jitcode_within(f->code, lo, hi, &first, &last);
	return piece.since <= first && last < piece.until;
}

static void jitcode_find_code_written_over_has_its_time(void **state)
{
	struct jitcode_piece piece;
	struct fixture f;

	(void)state;
	begin(&f);
	jit_put_load(&f.bytes, 100, 0x1000, old_code, 16, 1, "old");
	jit_put_load(&f.bytes, 200, 0x1008, new_code, 16, 2, "new");
	jit_put_load(&f.bytes, 300, 0x1000, old_code, 16, 3, "again");
	read_code(&f, 50, true);
	assert_int_equal(jitcode_versions(f.code), 3);
	piece = find(&f, 150, 0x100a);
	assert_string_equal(piece.load->name, "old");
	assert_true(piece.begin == 0x1008 && piece.end == 0x1010 && !piece.newest);
	assert_true(is_certain(&f, piece, 101, 198));
	assert_false(is_certain(&f, piece, 101, 199));
	assert_true(is_certain(&f, piece, 60, 198)); /* nothing else was there before */
	piece = find(&f, 250, 0x100a);
	assert_string_equal(piece.load->name, "new");
	assert_true(is_certain(&f, piece, 201, 298));
	assert_false(is_certain(&f, piece, 200, 298));
	piece = find(&f, 250, 0x1000);
	assert_string_equal(piece.load->name, "old");
	assert_true(piece.begin == 0x1000 && piece.end == 0x1008);
	piece = find(&f, 350, 0x100f);
	assert_string_equal(piece.load->name, "again");
	assert_true(piece.newest && is_certain(&f, piece, 301, UINT64_MAX));
	piece = find(&f, 350, 0x1010);
	assert_string_equal(piece.load->name, "new");
	assert_true(piece.end == 0x1018 && piece.newest);
	assert_false(jitcode_find(f.code, 0, 0xfff, &piece));
	assert_false(jitcode_find(f.code, 0, 0x1018, &piece));
	done(&f);
}

/* A compiler may write its file later than its code. */
static void jitcode_end_of_an_open_dump_is_its_last_record(void **state)
{
	struct fixture f;
	uint32_t first, last;

	(void)state;
	begin(&f);
	jit_put_load(&f.bytes, 100, 0x1000, old_code, 16, 1, "old");
	jit_put_other(&f.bytes, 200, 4);
	read_code(&f, 50, false);
	jitcode_within(f.code, 150, 198, &first, &last);
	assert_true(last < jitcode_end(f.code));
	jitcode_within(f.code, 150, 199, &first, &last);
	assert_false(last < jitcode_end(f.code));
	done(&f);
	begin(&f);
	jit_put_load(&f.bytes, 100, 0x1000, old_code, 16, 1, "old");
	jit_put_other(&f.bytes, 200, 3);
	read_code(&f, 50, false);
	assert_int_equal(jitcode_end(f.code), JITCODE_FOREVER);
	done(&f);
}

/* Of a dump that lacks its beginning, nobody knows what was at a place before. */
static void jitcode_find_in_a_cut_dump_begins_with_its_records(void **state)
{
	struct jitcode_piece piece;
	struct fixture f;
	size_t at;

	(void)state;
	begin(&f);
	at = f.bytes.size;
	jit_put_load(&f.bytes, 90, 0x9000, old_code, 16, 9, "damaged");
	f.bytes.data[at] = 99;
	for (unsigned i = 0; i < 6; i++)
		jit_put_load(&f.bytes, 100 + 10 * i, 0x1000 + 16 * i, old_code, 16, i, "name");
	read_code(&f, 115, true);
	assert_true(jitcode_find(f.code, 0, 0x1010, &piece));
	assert_true(is_certain(&f, piece, 115, 500));
	assert_false(jitcode_find(f.code, jitcode_at(f.code, 116), 0x1020, &piece));
	piece = find(&f, 125, 0x1020);
	assert_true(is_certain(&f, piece, 121, 500));
	assert_false(is_certain(&f, piece, 120, 500));
	done(&f);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static void jitcode_find_random_code_is_as_a_search_backwards_finds_it(void **state)
{
	uint32_t seed = 1;
	struct fixture f;

	(void)state;
	begin(&f);
	for (unsigned i = 0; i < 400; i++)
		jit_put_load(&f.bytes, 100 + 10 * i, 0x1000 + next_random(&seed) % 512, old_code,
			     1 + next_random(&seed) % 16, i, "name");
	read_code(&f, 0, true);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t time = 95 + next_random(&seed) % 4100, address;
		const struct jitdump_load *want = NULL, *next = NULL;
		struct jitcode_piece piece;
		bool found;

		address = 0xff0 + next_random(&seed) % 560;
		for (size_t k = 0; k < f.n; k++) {
			const struct jitdump_load *l = &f.loads[k];

			if (address - l->address >= l->size)
				continue;
			if (!want || l->time <= time)
				want = l;
			else if (!next)
				next = l;
		}
		found = jitcode_find(f.code, jitcode_at(f.code, time), address, &piece);
		assert_int_equal(found, want != NULL);
		if (!found)
			continue;
		assert_ptr_equal(piece.load, want);
		assert_true(piece.begin <= address && address < piece.end);
		assert_int_equal(piece.newest, next == NULL);
		if (next && want->time <= time) {
			assert_true(is_certain(&f, piece, time + 10, next->time - 2) ||
				    time + 10 > next->time - 2);
			assert_false(is_certain(&f, piece, time, next->time));
		}
	}
	done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jitdump_new_reads_what_was_written),
		cmocka_unit_test(jitdump_new_other_files_are_none),
		cmocka_unit_test(jitdump_new_cut_anywhere_has_the_whole_records),
		cmocka_unit_test(jitdump_new_without_a_part_goes_on_with_the_next_record),
		cmocka_unit_test(jitdump_new_what_cannot_be_is_dropped),
		cmocka_unit_test(jitdump_new_long_name_has_its_end),
		cmocka_unit_test(jitdump_line_finds_the_line_of_a_byte),
		cmocka_unit_test(jitdump_line_of_shifted_lines_finds_the_line_of_a_byte),
		cmocka_unit_test(jitcode_find_code_written_over_has_its_time),
		cmocka_unit_test(jitcode_end_of_an_open_dump_is_its_last_record),
		cmocka_unit_test(jitcode_find_in_a_cut_dump_begins_with_its_records),
		cmocka_unit_test(jitcode_find_random_code_is_as_a_search_backwards_finds_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
