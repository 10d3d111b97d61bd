/*
 * capture/probe: what a specification may say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "capture/probe/probe.h"
#include "proto/base.h"

static void expect(const struct probe_spec *spec, const char *text)
{
	char *error = NULL;
	int r = probe_check(spec, &error);

	if (!text) {
		assert_int_equal(r, 0);
		assert_null(error);
		return;
	}
	assert_int_equal(r, -EINVAL);
	assert_string_equal(error, text);
	free(error);
}

static void check_accepts_each_kind_with_what_it_needs(void **state)
{
	static const struct probe_spec good[] = {
		{.kind = PROBE_SIGNAL, .signals = 1, .comm = "fifteen letters"},
		{.kind = PROBE_EXIT, .status_min = 1, .status_max = 255},
		{.kind = PROBE_EXEC, .file = "/bin/true", .exe = "/bin/sh"},
		{.kind = PROBE_ENTRY, .file = "f", .symbol = "s"},
		{.kind = PROBE_RETURN, .file = "f", .symbol = "s"},
		{.kind = PROBE_LATENCY, .file = "f", .symbol = "s", .limit_ns = 1},
		{.kind = PROBE_SPAN, .file = "f", .symbol = "s", .to = "t", .limit_ns = 1},
		{.kind = PROBE_OOM, .has_uid = true},
		{.kind = PROBE_SYSCALL, .limit_ns = 1, .syscalls = {1}},
		{.kind = PROBE_WAKEUP, .limit_ns = 1},
		{.kind = PROBE_OFFCPU, .limit_ns = 1},
		{.kind = PROBE_TRACEPOINT, .tracepoint = "a:b", .filter = "c==1"},
		{.kind = PROBE_USDT, .file = "f", .symbol = "p:n"},
	};

	(void)state;
	assert_int_equal(ARRAY_SIZE(good), _PROBE_KINDS);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(good[i].kind, i);
		expect(&good[i], NULL);
	}
}

static void check_names_what_is_missing(void **state)
{
	(void)state;
	expect(&(struct probe_spec){.kind = PROBE_LATENCY, .symbol = "s", .limit_ns = 1},
	       "A probe of kind latency needs a file.");
	expect(&(struct probe_spec){.kind = PROBE_USDT, .file = "f"},
	       "A probe of kind usdt needs a symbol.");
	expect(&(struct probe_spec){.kind = PROBE_SPAN, .file = "f", .symbol = "s", .limit_ns = 1},
	       "A probe of kind span needs a second symbol.");
	expect(&(struct probe_spec){.kind = PROBE_OFFCPU}, "A probe of kind offcpu needs a limit.");
	expect(&(struct probe_spec){.kind = PROBE_TRACEPOINT},
	       "A probe of kind tracepoint needs a tracepoint.");
}

static void check_names_what_the_kind_cannot_use(void **state)
{
	(void)state;
	expect(&(struct probe_spec){.kind = PROBE_SIGNAL, .limit_ns = 1},
	       "A probe of kind signal has no use for a limit.");
	expect(&(struct probe_spec){.kind = PROBE_SIGNAL, .file = "f"},
	       "A probe of kind signal has no use for a file.");
	expect(&(struct probe_spec){.kind = PROBE_EXIT, .signals = 1},
	       "A probe of kind exit has no use for signals.");
	expect(&(struct probe_spec){.kind = PROBE_EXEC, .status_max = 1},
	       "A probe of kind exec has no use for a status.");
	expect(&(struct probe_spec){.kind = PROBE_OOM, .syscalls = {[7] = 1}},
	       "A probe of kind oom has no use for system calls.");
	expect(&(struct probe_spec){.kind = PROBE_OOM, .filter = "a==1"},
	       "A probe of kind oom has no use for a filter over fields.");
}

static void check_refuses_strings_that_are_empty_or_too_long(void **state)
{
	char longest[PROBE_STRING + 1];

	(void)state;
	expect(&(struct probe_spec){.kind = PROBE_OOM, .comm = ""}, "The command name is empty.");
	expect(&(struct probe_spec){.kind = PROBE_OOM, .comm = "sixteen letters!"},
	       "The command name is longer than 15 bytes.");
	memset(longest, 'a', sizeof(longest));
	longest[PROBE_STRING - 1] = 0;
	expect(&(struct probe_spec){.kind = PROBE_ENTRY, .file = "f", .symbol = longest}, NULL);
	longest[PROBE_STRING - 1] = 'a';
	longest[PROBE_STRING] = 0;
	expect(&(struct probe_spec){.kind = PROBE_ENTRY, .file = "f", .symbol = longest},
	       "The symbol is longer than 255 bytes.");
}

static void check_refuses_numbers_without_meaning(void **state)
{
	(void)state;
	expect(&(struct probe_spec){.kind = (enum probe_kind)_PROBE_KINDS},
	       "There is no such kind of probe.");
	expect(&(struct probe_spec){.kind = (enum probe_kind) - 1},
	       "There is no such kind of probe.");
	expect(&(struct probe_spec){.kind = PROBE_OOM, .pid = -1}, "A process id is not negative.");
	expect(&(struct probe_spec){.kind = PROBE_EXIT, .status_min = 2, .status_max = 1},
	       "The lowest status is greater than the highest.");
	assert_null(probe_kind_name((enum probe_kind)_PROBE_KINDS));
	assert_string_equal(probe_kind_name(PROBE_USDT), "usdt");
}

static void arm_without_the_library_says_so(void **state)
{
	const struct probe_spec spec = {.kind = PROBE_OOM};
	struct probe *p = NULL;
	char *error = NULL;

	(void)state;
	if (probe_built())
		skip();
	assert_int_equal(probe_arm(&spec, NULL, NULL, &p, &error), -EOPNOTSUPP);
	assert_non_null(strstr(error, "has no BPF"));
	assert_null(p);
	free(error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_accepts_each_kind_with_what_it_needs),
		cmocka_unit_test(check_names_what_is_missing),
		cmocka_unit_test(check_names_what_the_kind_cannot_use),
		cmocka_unit_test(check_refuses_strings_that_are_empty_or_too_long),
		cmocka_unit_test(check_refuses_numbers_without_meaning),
		cmocka_unit_test(arm_without_the_library_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
