/*
 * sideband/dwarf: a large unit that would take libdw long in one call, which nothing can interrupt.
 * DWARF_MAKER_BYTES is larger than in other tests.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dwarf.h>

#include "sideband/dwarf/dwarf.h"
#include "tests/unit/sideband/dwarf_maker.h"

#define BEGIN 0x1000u
#define SIZE  0x100u
#define UNIT  1u
#define ENTRY 2u

static struct dwarf_maker m;

/* Entries are one byte and have WIDTH attributes without bytes. */
static void put_abbrevs(unsigned width)
{
	dwarf_put_unsigned(&m.abbrev, UNIT);
	dwarf_put_unsigned(&m.abbrev, DW_TAG_compile_unit);
	dwarf_put(&m.abbrev, 1, 1);
	dwarf_put(&m.abbrev, DW_AT_low_pc | DW_FORM_addr << 8, 2);
	dwarf_put(&m.abbrev, DW_AT_high_pc | DW_FORM_data4 << 8, 2);
	dwarf_put(&m.abbrev, 0, 2);
	dwarf_put_unsigned(&m.abbrev, ENTRY);
	dwarf_put_unsigned(&m.abbrev, DW_TAG_variable);
	dwarf_put(&m.abbrev, 0, 1);
	while (width-- > 0)
		dwarf_put(&m.abbrev, DW_AT_external | DW_FORM_flag_present << 8, 2);
	dwarf_put(&m.abbrev, 0, 3);
}

static int open_with(unsigned width, unsigned n)
{
	struct elf_bytes e = {0};
	struct dwarf_file *f;
	uint8_t *bytes;
	int r;

	memset(&m, 0, sizeof(m));
	put_abbrevs(width);
	dwarf_put(&m.info, 0, 4);
	dwarf_put(&m.info, 4, 2); /* version */
	dwarf_put(&m.info, 0, 4); /* .debug_abbrev */
	dwarf_put(&m.info, 8, 1); /* address size */
	dwarf_put_unsigned(&m.info, UNIT);
	dwarf_put(&m.info, BEGIN, 8);
	dwarf_put(&m.info, SIZE, 4);
	memset(m.info.bytes + m.info.n, ENTRY, n);
	m.info.n += n;
	dwarf_put(&m.info, 0, 1);
	dwarf_maker_end_unit(&m);
	bytes = dwarf_maker_file(&m, &e.size);
	e.bytes = bytes;
	r = dwarf_file_open(&e, &f);
	if (r == 0)
		dwarf_file_free(f);
	free(bytes);
	return r;
}

static void open_of_a_unit_of_very_many_attributes_is_not_done(void **state)
{
	(void)state;
	assert_int_equal(open_with(1, 8500000), 0);
	assert_int_equal(open_with(250, 8000000), 0);
	assert_int_equal(open_with(250, 8500000), DWARF_LARGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_of_a_unit_of_very_many_attributes_is_not_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
