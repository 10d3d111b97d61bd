#include "decoder/code/insn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct known {
	const char *bytes;
	uint8_t size, class;
	uint64_t target; /* from IP 0x1000 */
};

/* clang-format off */
static const struct known in_64[] = {
	{ "\x90", 1, INSN_OTHER, 0 },
	{ "\x74\xfe", 2, INSN_COND, 0x1000 },
	{ "\x0f\x85\x00\x01\x00\x00", 6, INSN_COND, 0x1106 },
	{ "\xe2\x02", 2, INSN_COND, 0x1004 },
	{ "\xe3\x02", 2, INSN_COND, 0x1004 },
	{ "\xeb\x80", 2, INSN_JUMP, 0x1002 - 0x80 },
	{ "\xe9\x00\x00\x00\x80", 5, INSN_JUMP, 0x1005 - UINT64_C(0x80000000) },
	{ "\xe8\x00\x00\x00\x00", 5, INSN_CALL, 0x1005 },
	{ "\x66\xe8\x00\x00\x00\x00", 6, INSN_CALL, 0x1006 }, /* 66 is ignored by Intel */
	{ "\xff\xd0", 2, INSN_CALL_IND, 0 },
	{ "\xff\x15\x01\x02\x03\x04", 6, INSN_CALL_IND, 0 },
	{ "\x3e\xff\xe0", 3, INSN_JUMP_IND, 0 },
	{ "\xff\x25\x01\x02\x03\x04", 6, INSN_JUMP_IND, 0 },
	{ "\xff\x1d\x01\x02\x03\x04", 6, INSN_FAR, 0 },
	{ "\xff\x2d\x01\x02\x03\x04", 6, INSN_FAR, 0 },
	{ "\xff\xf0", 2, INSN_OTHER, 0 }, /* push */
	{ "\xc3", 1, INSN_RET, 0 },
	{ "\xf3\xc3", 2, INSN_RET, 0 },
	{ "\xc2\x08\x00", 3, INSN_RET, 0 },
	{ "\xcb", 1, INSN_FAR, 0 },
	{ "\x48\xcf", 2, INSN_FAR, 0 },
	{ "\x0f\x07", 2, INSN_FAR, 0 },
	{ "\x0f\x35", 2, INSN_FAR, 0 },
	{ "\x0f\x01\xc1", 3, INSN_FAR, 0 },
	{ "\x0f\x01\xd0", 3, INSN_OTHER, 0 }, /* xgetbv */
	{ "\x0f\x05", 2, INSN_SYSCALL, 0 },
	{ "\x0f\x34", 2, INSN_SYSCALL, 0 },
	{ "\xcc", 1, INSN_SYSCALL, 0 },
	{ "\xcd\x80", 2, INSN_SYSCALL, 0 },
	{ "\x0f\x22\xd8", 3, INSN_CR3, 0 },
	{ "\x0f\x22\xe0", 3, INSN_OTHER, 0 }, /* cr4 */
	{ "\xc7\xf8\x00\x00\x00\x00", 6, INSN_OTHER, 0 }, /* xbegin */
	{ "\xf3\x0f\x1e\xfa", 4, INSN_OTHER, 0 }, /* endbr64 */
	{ "\xc5\xf8\x77", 3, INSN_OTHER, 0 }, /* vzeroupper: opcode 77 is jcc elsewhere */
	{ "\xf3\xa4", 2, INSN_OTHER, 0 }, /* rep movsb */
};
static const struct known in_32[] = {
	{ "\xe8\xfb\xef\xff\xff", 5, INSN_CALL, 0 },
	{ "\xe9\xfa\xef\xff\xff", 5, INSN_JUMP, 0xffffffff },
	{ "\x9a\x00\x00\x00\x00\x07\x00", 7, INSN_FAR, 0 },
	{ "\x40", 1, INSN_OTHER, 0 }, /* inc, no prefix here */
};
/* clang-format on */

static void check_table(enum insn_mode mode, const struct known *k, size_t n)
{
	struct insn_reader *r = insn_reader_new();
	struct insn insn;

	for (size_t i = 0; i < n; i++) {
		const uint8_t *bytes = (const uint8_t *)k[i].bytes;

		assert_int_equal(insn_read(r, mode, 0x1000, bytes, k[i].size, &insn), 0);
		assert_int_equal(insn.size, k[i].size);
		assert_int_equal(insn.class, k[i].class);
		assert_int_equal(insn.target, k[i].target);
		for (size_t cut = 0; cut < k[i].size; cut++)
			assert_int_not_equal(insn_read(r, mode, 0x1000, bytes, cut, &insn), 0);
	}
	insn_reader_free(r);
}

static void insn_read_every_class_is_told_apart(void **state)
{
	(void)state;
	check_table(INSN_MODE_64, in_64, sizeof(in_64) / sizeof(in_64[0]));
	check_table(INSN_MODE_32, in_32, sizeof(in_32) / sizeof(in_32[0]));
}

static void insn_read_no_instruction_is_bad(void **state)
{
	static const uint8_t bytes[2] = {0x06, 0x90}; /* push es: not in 64-bit mode */
	struct insn_reader *r = insn_reader_new();
	struct insn insn;

	(void)state;
	assert_int_equal(insn_read(r, INSN_MODE_64, 0, bytes, 2, &insn), INSN_BAD);
	assert_int_equal(insn_read(r, INSN_MODE_64, 0, bytes, 0, &insn), INSN_SHORT);
	insn_reader_free(r);
}

/* REX2 (D5) behind so many prefixes that no instruction is that long. */
static void insn_read_rex2_behind_many_prefixes_is_bad(void **state)
{
	struct insn_reader *r = insn_reader_new();
	uint8_t bytes[32];
	struct insn insn;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		memset(bytes, 0xf0, sizeof(bytes));
		bytes[i] = 0xd5;
		assert_int_not_equal(insn_read(r, INSN_MODE_64, 0, bytes, sizeof(bytes), &insn), 0);
	}
	insn_reader_free(r);
}

/* The class of the instruction that objdump calls NAME. */
static enum insn_class class_by_name(const char *name)
{
	static const char *const conds[] = {"loop", "jrcxz", "jecxz"};

	if (strncmp(name, "bnd ", 4) == 0 || strncmp(name, "repz ", 5) == 0)
		name = strchr(name, ' ') + 1;
	if (strncmp(name, "notrack ", 8) == 0)
		name += 8;
	for (size_t i = 0; i < 3; i++) {
		if (strncmp(name, conds[i], strlen(conds[i])) == 0)
			return INSN_COND;
	}
	if (strncmp(name, "jmp", 3) == 0)
		return strchr(name, '*') != NULL ? INSN_JUMP_IND : INSN_JUMP;
	if (strncmp(name, "call", 4) == 0)
		return strchr(name, '*') != NULL ? INSN_CALL_IND : INSN_CALL;
	if (strncmp(name, "ret", 3) == 0)
		return INSN_RET;
	if (name[0] == 'j')
		return INSN_COND;
	if (strncmp(name, "syscall", 7) == 0 || strncmp(name, "int", 3) == 0)
		return INSN_SYSCALL;
	if (strncmp(name, "iret", 4) == 0 || strncmp(name, "lret", 4) == 0)
		return INSN_FAR;
	return INSN_OTHER;
}

/* "  ADDRESS:\tHEX HEX ...\tNAME ...". False: no instruction, or one that objdump does not know. */
static bool parse_line(char *line, uint64_t *ip, uint8_t *bytes, size_t *n, const char **name)
{
	char *end, *hex = strchr(line, '\t'), *text;

	*ip = strtoull(line, &end, 16);
	if (hex == NULL || *end != ':')
		return false;
	text = strchr(hex + 1, '\t');
	if (text == NULL || strstr(text, "(bad)") != NULL || strstr(text, "rex") != NULL)
		return false;
	*name = text + 1;
	for (*n = 0, hex++; *n < INSN_MAX_SIZE && hex < text; hex += 3) {
		if (*hex == ' ')
			break;
		bytes[(*n)++] = (uint8_t)strtoul(hex, NULL, 16);
	}
	return *n > 0;
}

/* "jne    401136 <main+0x6>", "bnd jmp 401020 ..." */
static uint64_t target_in(const char *name)
{
	const char *end = strpbrk(name, "<#\n");

	while (end > name && end[-1] == ' ')
		end--;
	while (end > name && end[-1] != ' ')
		end--;
	return strtoull(end, NULL, 16);
}

static void insn_read_agrees_with_objdump(void **state)
{
	FILE *f = popen("objdump -d -w -z /bin/ls 2>/dev/null", "r");
	struct insn_reader *r = insn_reader_new();
	char line[512];
	size_t seen = 0;

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		uint8_t bytes[INSN_MAX_SIZE];
		const char *name;
		struct insn insn;
		uint64_t ip;
		size_t n;

		if (!parse_line(line, &ip, bytes, &n, &name))
			continue;
		seen++;
		assert_int_equal(insn_read(r, INSN_MODE_64, ip, bytes, n, &insn), 0);
		if (insn.size != n || insn.class != class_by_name(name))
			print_message("%s", line);
		assert_int_equal(insn.size, n);
		assert_int_equal(insn.class, class_by_name(name));
		if (insn.class >= INSN_COND && insn.class <= INSN_CALL)
			assert_int_equal(insn.target, target_in(name));
	}
	insn_reader_free(r);
	if (pclose(f) != 0 || seen == 0)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(insn_read_every_class_is_told_apart),
		cmocka_unit_test(insn_read_no_instruction_is_bad),
		cmocka_unit_test(insn_read_rex2_behind_many_prefixes_is_bad),
		cmocka_unit_test(insn_read_agrees_with_objdump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
