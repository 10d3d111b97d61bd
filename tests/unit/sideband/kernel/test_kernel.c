#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/perf/perfrecord.h"
#include "sideband/kernel/kernel.h"

#define TEXT UINT64_C(0xffffffff81000000)
#define READ UINT64_C(5000000000)

/* The text as it was read. The bytes 0x11, 0x22 at 16 change. */
static const uint8_t bytes[64] = {[0] = 0x90, [16] = 0x11, [17] = 0x22, [63] = 0xc3};

struct fixture {
	struct image_set *images;
	struct kernel *kernel;
};

static int set_up(void **state)
{
	static struct fixture f;
	const struct image_source source = {.path = "[kernel]",
					    .bytes = bytes,
					    .size = sizeof(bytes),
					    .memory = true,
					    .pid = IMAGE_ANY_PID,
					    .address = TEXT};
	const struct kernel_piece piece = {.address = TEXT, .size = sizeof(bytes), .read_ns = READ};

	if (image_set_new(&source, 1, NULL, &f.images) != 0 || kernel_new(f.images, &f.kernel) != 0)
		return -1;
	*state = &f;
	return kernel_add_piece(f.kernel, &piece);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	kernel_free(f->kernel);
	image_set_free(f->images);
	return 0;
}

static int add(struct kernel *k, uint32_t type, uint64_t time, const uint8_t *body, size_t size)
{
	struct perfrecord record = {.type = type, .time = time};

	record.u.raw.bytes = body;
	record.u.raw.size = size;
	return kernel_add_record(k, &record);
}

/* Adds a record: the two bytes OLD become NEW. Bodies live on, as struct kernel borrows them. */
static void poke(struct kernel *k, uint64_t time, uint64_t address, uint16_t old, uint16_t new)
{
	static uint8_t bodies[16][16];
	static unsigned n;
	uint8_t *body = bodies[n++ % 16];

	memcpy(body, &address, 8);
	memcpy(body + 8, "\2\0\2\0", 4);
	memcpy(body + 12, &old, 2);
	memcpy(body + 14, &new, 2);
	assert_int_equal(add(k, PERF_RECORD_TEXT_POKE, time, body, 16), 0);
}

/* The two bytes at OFFSET at TIME, or KERNEL_MISSING (1) or KERNEL_UNRELIABLE (2). */
static int at(struct kernel *k, uint64_t time, uint64_t offset)
{
	uint32_t last, version = kernel_version(k, TEXT + offset, time, time, &last);
	struct kernel_code code;
	int r = kernel_find(k, TEXT + offset, version, &code);
	const uint8_t *p;

	assert_int_equal(version, last);
	if (r != 0)
		return r;
	p = code.bytes + (TEXT + offset - code.address);
	return p[0] | p[1] << 8;
}

static void kernel_find_between_changes_ends_at_them(void **state)
{
	struct fixture *f = *state;
	struct kernel_code code;

	poke(f->kernel, READ + 10, TEXT + 16, 0x2211, 0x4433);
	assert_int_equal(kernel_ready(f->kernel), 0);
	assert_int_equal(kernel_find(f->kernel, TEXT + 3, 0, &code), 0);
	assert_true(code.address == TEXT && code.size == 16 && code.ends);
	assert_int_equal(code.bytes[0], 0x90);
	assert_int_equal(kernel_find(f->kernel, TEXT + 20, 0, &code), 0);
	assert_true(code.address == TEXT + 18 && code.size == 46 && !code.ends);
	assert_int_equal(code.offset, 18);
	/* An instruction that reaches into the change. */
	assert_int_equal(kernel_find(f->kernel, TEXT + 16, 0, &code), KERNEL_UNRELIABLE);
	assert_int_equal(kernel_find(f->kernel, TEXT + 64, 0, &code), KERNEL_MISSING);
	assert_int_equal(kernel_find(f->kernel, TEXT - 1, 0, &code), KERNEL_MISSING);
}

static void kernel_find_changes_on_both_sides_undoes_and_does_them(void **state)
{
	struct fixture *f = *state;

	poke(f->kernel, READ + 20, TEXT + 16, 0x4433, 0x6655);
	poke(f->kernel, READ - 10, TEXT + 16, 0x8877, 0x2211);
	poke(f->kernel, READ + 10, TEXT + 16, 0x2211, 0x4433);
	assert_int_equal(kernel_ready(f->kernel), 0);
	assert_int_equal(at(f->kernel, 0, 16), 0x8877);
	assert_int_equal(at(f->kernel, READ - 11, 16), 0x8877);
	assert_int_equal(at(f->kernel, READ - 10, 16), 0x2211);
	assert_int_equal(at(f->kernel, READ + 10, 16), 0x4433);
	assert_int_equal(at(f->kernel, READ + 20, 16), 0x6655);
}

static void kernel_version_over_a_change_gives_both(void **state)
{
	struct fixture *f = *state;
	uint32_t last;

	poke(f->kernel, READ + 10, TEXT + 16, 0x2211, 0x4433);
	assert_int_equal(kernel_ready(f->kernel), 0);
	assert_int_equal(kernel_version(f->kernel, TEXT + 17, 0, READ + 9, &last), 1);
	assert_int_equal(last, 1);
	assert_int_equal(kernel_version(f->kernel, TEXT + 17, 0, READ + 10, &last), 1);
	assert_int_equal(last, 2);
	assert_int_equal(kernel_version(f->kernel, TEXT + 17, READ + 10, UINT64_MAX, &last), 2);
	assert_int_equal(kernel_version(f->kernel, TEXT + 18, 0, UINT64_MAX, &last), 0);
	assert_int_equal(last, 0);
}

static void kernel_find_contradiction_is_unreliable_on_its_side(void **state)
{
	struct fixture *f = *state;

	/* Long after the text was read. No record tells how 0x2211 became 0x9999. */
	poke(f->kernel, READ + 1000000000, TEXT + 16, 0x9999, 0x4433);
	assert_int_equal(kernel_ready(f->kernel), 0);
	assert_int_equal(at(f->kernel, READ, 16), KERNEL_UNRELIABLE);
	assert_int_equal(at(f->kernel, READ + 1000000000, 16), 0x4433);
}

static void kernel_find_read_while_it_changed_mends(void **state)
{
	struct fixture *f = *state;

	/* The text was read a little later than its time, when the change was done. */
	poke(f->kernel, READ + 10, TEXT + 16, 0x4433, 0x2211);
	/* The text has neither the old nor the new bytes. */
	poke(f->kernel, READ + 10, TEXT + 30, 0x0055, 0x0066);
	assert_int_equal(kernel_ready(f->kernel), 0);
	assert_int_equal(at(f->kernel, READ, 16), 0x4433);
	assert_int_equal(at(f->kernel, READ + 10, 16), 0x2211);
	assert_int_equal(at(f->kernel, READ, 30), KERNEL_UNRELIABLE);
}

static void kernel_find_int3_in_the_copy_is_what_the_record_says(void **state)
{
	static const uint8_t patched[4] = {0x90, 0xcc, 0x22, 0x90};
	const struct image_source source = {.path = "[kernel]",
					    .bytes = patched,
					    .size = sizeof(patched),
					    .memory = true,
					    .pid = IMAGE_ANY_PID,
					    .address = TEXT};
	const struct kernel_piece piece = {
		.address = TEXT, .size = sizeof(patched), .read_ns = READ};
	struct image_set *images;
	struct kernel *k;

	(void)state;
	assert_int_equal(image_set_new(&source, 1, NULL, &images), 0);
	assert_int_equal(kernel_new(images, &k), 0);
	assert_int_equal(kernel_add_piece(k, &piece), 0);
	poke(k, READ + 10, TEXT + 1, 0x2211, 0x2233);
	assert_int_equal(kernel_ready(k), 0);
	assert_int_equal(at(k, READ, 1), 0x2211);
	assert_int_equal(at(k, READ + 10, 1), 0x2233);
	kernel_free(k);
	image_set_free(images);
}

static void kernel_find_masked_until_a_record_tells(void **state)
{
	struct fixture *f = *state;
	struct kernel_code code;

	assert_int_equal(kernel_add_masked(f->kernel, TEXT + 16, 2), 0);
	assert_int_equal(kernel_add_masked(f->kernel, TEXT + 40, 4), 0);
	poke(f->kernel, READ + 10, TEXT + 16, 0x7777, 0x4433);
	assert_int_equal(kernel_ready(f->kernel), 0);
	assert_int_equal(at(f->kernel, READ, 16), 0x7777);
	assert_int_equal(at(f->kernel, READ + 10, 16), 0x4433);
	assert_int_equal(kernel_find(f->kernel, TEXT + 41, 0, &code), KERNEL_UNRELIABLE);
	assert_int_equal(kernel_find(f->kernel, TEXT + 39, 0, &code), 0);
	assert_true(code.address == TEXT + 18 && code.size == 22);
}

static void kernel_add_record_ksymbol_code_appears(void **state)
{
	static const uint8_t body[32] = {32, 0, 0, 0x81, 0xff, 0xff, 0xff, 0xff, 4,   0,
					 0,  0, 1, 0,	 0,    0,    'p',  'r',	 'o', 'g'};
	struct fixture *f = *state;
	struct kernel_symbol symbol;

	assert_int_equal(add(f->kernel, PERF_RECORD_KSYMBOL, READ - 10, body, sizeof(body)), 0);
	assert_int_equal(kernel_ready(f->kernel), 0);
	assert_int_equal(at(f->kernel, READ - 11, 32), KERNEL_MISSING);
	assert_int_equal(at(f->kernel, READ - 10, 32), 0);
	assert_true(kernel_symbol_at(f->kernel, TEXT + 33, &symbol));
	assert_string_equal(symbol.name, "prog");
	assert_string_equal(symbol.module, "bpf");
	assert_true(symbol.address == TEXT + 32 && symbol.size == 4);
	assert_false(kernel_symbol_at(f->kernel, TEXT + 36, &symbol));
}

static void kernel_add_record_bad_lengths_refused(void **state)
{
	static const uint8_t longer[16] = {[7] = 0xff, [8] = 3, [10] = 2};
	static const uint8_t nothing[16] = {[7] = 0xff};
	static const uint8_t at_end[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 2};
	static const uint8_t unnamed[20] = {[8] = 1, [16] = 'a', 'b', 'c', 'd'};
	struct fixture *f = *state;

	assert_int_equal(add(f->kernel, PERF_RECORD_TEXT_POKE, 1, longer, 16), -EBADMSG);
	assert_int_equal(add(f->kernel, PERF_RECORD_TEXT_POKE, 1, longer, 11), -EBADMSG);
	assert_int_equal(add(f->kernel, PERF_RECORD_TEXT_POKE, 1, nothing, 16), -EBADMSG);
	assert_int_equal(add(f->kernel, PERF_RECORD_TEXT_POKE, 1, at_end, 16), -EBADMSG);
	assert_int_equal(add(f->kernel, PERF_RECORD_KSYMBOL, 1, unnamed, 20), -EBADMSG);
	assert_int_equal(add(f->kernel, PERF_RECORD_KSYMBOL, 1, unnamed, 16), -EBADMSG);
	assert_int_equal(kernel_ready(f->kernel), 0);
}

static void kernel_find_huge_place_is_unreliable(void **state)
{
	static const uint8_t body[24] = {0,    0,    0,	   0x81, 0xff, 0xff, 0xff, 0xff, 0xff,
					 0xff, 0xff, 0x7e, 1,	 0,    0,    0,	   'b'};
	struct fixture *f = *state;

	assert_int_equal(add(f->kernel, PERF_RECORD_KSYMBOL, READ + 1, body, sizeof(body)), 0);
	assert_int_equal(kernel_ready(f->kernel), 0);
	assert_int_equal(at(f->kernel, READ, 16), KERNEL_UNRELIABLE);
}

static void kernel_symbol_at_kallsyms_names_and_modules(void **state)
{
	static const char text[] = "0000000000000000 A fixed\n"
				   "ffffffff81000000 T _stext\n"
				   "ffffffff81000000 t quiet\n"
				   "ffffffff81000000 T _text\n"
				   "garbage\n"
				   "ffffffff81000020 d data\n"
				   "ffffffff81000030 t inner\t[mod]\n"
				   "ffffffff81000010 W __switch_to";
	struct fixture *f = *state;
	struct kernel_symbol s;

	assert_int_equal(kernel_add_symbols(f->kernel, text, sizeof(text) - 1), 0);
	assert_int_equal(kernel_ready(f->kernel), 0);
	assert_true(kernel_symbol_at(f->kernel, TEXT + 15, &s));
	assert_string_equal(s.name, "_text");
	assert_int_equal(s.size, 16);
	assert_null(s.module);
	assert_true(kernel_symbol_at(f->kernel, TEXT + 47, &s));
	assert_string_equal(s.name, "__switch_to");
	assert_true(kernel_symbol_at(f->kernel, TEXT + 63, &s));
	assert_string_equal(s.name, "inner");
	assert_string_equal(s.module, "mod");
	assert_int_equal(s.size, 16);
	assert_false(kernel_symbol_at(f->kernel, TEXT + 64, &s));
	assert_false(kernel_symbol_at(f->kernel, TEXT - 1, &s));
	assert_true(kernel_symbol_address(f->kernel, "__switch_to") == TEXT + 16);
	assert_int_equal(kernel_symbol_address(f->kernel, "inner"), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kernel_find_between_changes_ends_at_them),
		TEST(kernel_find_changes_on_both_sides_undoes_and_does_them),
		TEST(kernel_version_over_a_change_gives_both),
		TEST(kernel_find_contradiction_is_unreliable_on_its_side),
		TEST(kernel_find_read_while_it_changed_mends),
		TEST(kernel_find_int3_in_the_copy_is_what_the_record_says),
		TEST(kernel_find_masked_until_a_record_tells),
		TEST(kernel_add_record_ksymbol_code_appears),
		TEST(kernel_add_record_bad_lengths_refused),
		TEST(kernel_find_huge_place_is_unreliable),
		TEST(kernel_symbol_at_kallsyms_names_and_modules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
