#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/code/insn_text.h"
#include "proto/base.h"

static void check(enum insn_syntax syntax, enum insn_mode mode, const char *bytes, size_t n,
		  size_t size, const char *want)
{
	CLEANUP(insn_text_freep) struct insn_text *t = insn_text_new(syntax);
	char text[INSN_TEXT_MAX];

	assert_non_null(t);
	assert_int_equal(insn_text_write(t, mode, 0x400200, (const uint8_t *)bytes, n, text), size);
	assert_string_equal(text, want);
}

static void insn_text_write_both_syntaxes_have_their_order(void **state)
{
	(void)state;
	check(INSN_ATT, INSN_MODE_64, "\x48\x89\xe5\x90", 4, 3, "mov %rsp, %rbp");
	check(INSN_INTEL, INSN_MODE_64, "\x48\x89\xe5\x90", 4, 3, "mov rbp, rsp");
	check(INSN_ATT, INSN_MODE_64, "\xe8\x1b\x00\x00\x00", 5, 5, "call 0x400220");
}

static void insn_text_write_the_mode_decides(void **state)
{
	(void)state;
	check(INSN_INTEL, INSN_MODE_64, "\x48\x40", 2, 0, "");
	check(INSN_INTEL, INSN_MODE_32, "\x48\x40", 2, 1, "dec eax");
	check(INSN_INTEL, INSN_MODE_16, "\x48\x40", 2, 1, "dec ax");
}

static void insn_text_write_no_instruction_has_no_text(void **state)
{
	(void)state;
	check(INSN_ATT, INSN_MODE_64, "\xe8\x1b", 2, 0, "");
	check(INSN_ATT, INSN_MODE_64, "", 0, 0, "");
	check(INSN_ATT, INSN_MODE_64, "\x06", 1, 0, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(insn_text_write_both_syntaxes_have_their_order),
		cmocka_unit_test(insn_text_write_the_mode_decides),
		cmocka_unit_test(insn_text_write_no_instruction_has_no_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
