/*
 * ctl/show: which pager is chosen, and what becomes of the text.
 */
#include "ctl/show/pager.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void pager_choose_unset_gives_less(void **state)
{
	(void)state;
	assert_string_equal(pager_choose(NULL, NULL), "less");
}

static void pager_choose_both_takes_our_own(void **state)
{
	(void)state;
	assert_string_equal(pager_choose("more", "most"), "more");
	assert_string_equal(pager_choose(NULL, "most"), "most");
}

static void pager_choose_empty_or_cat_gives_none(void **state)
{
	(void)state;
	assert_null(pager_choose("", "most"));
	assert_null(pager_choose("cat", NULL));
	assert_null(pager_choose(NULL, ""));
}

static void pager_show_command_gets_the_text(void **state)
{
	char path[] = "/tmp/ptsnap-pager-XXXXXX", command[96], got[32] = "";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	snprintf(command, sizeof(command), "cat >%s; echo \"$LESS\" >>%s", path, path);
	setenv("PTSNAP_PAGER", command, 1);
	assert_true(pager_show("a page\n", 7));
	assert_true(read(fd, got, sizeof(got) - 1) > 0);
	assert_string_equal(got, "a page\nFRSXMK\n");
	close(fd);
	unlink(path);
}

static void pager_show_without_standard_input_shows_the_text(void **state)
{
	char path[] = "/tmp/ptsnap-pager-XXXXXX", command[96], got[32] = "";
	int fd = mkstemp(path), before = dup(STDIN_FILENO);
	bool shown;

	(void)state;
	assert_true(fd > 0 && before > 0);
	snprintf(command, sizeof(command), "cat >%s", path);
	setenv("PTSNAP_PAGER", command, 1);
	close(STDIN_FILENO);
	shown = pager_show("a page\n", 7);
	dup2(before, STDIN_FILENO);
	close(before);
	assert_true(shown);
	assert_int_equal(read(fd, got, sizeof(got) - 1), 7);
	assert_string_equal(got, "a page\n");
	close(fd);
	unlink(path);
}

static void pager_show_pager_that_ends_early_is_no_failure(void **state)
{
	static char text[1 << 20];

	(void)state;
	memset(text, '\n', sizeof(text));
	setenv("PTSNAP_PAGER", "true", 1);
	assert_true(pager_show(text, sizeof(text)));
}

static void pager_show_without_pager_returns_false(void **state)
{
	(void)state;
	setenv("PTSNAP_PAGER", "/nonexistent/pager 2>/dev/null", 1);
	assert_false(pager_show("x\n", 2));
	setenv("PTSNAP_PAGER", "cat", 1);
	assert_false(pager_show("x\n", 2));
}

/* What is left in the file that stdout is, if SIZE bytes go through COMMAND. The caller's. */
static char *through(const char *command, size_t size)
{
	char path[] = "/tmp/ptsnap-pager-XXXXXX", *got = calloc(1, 2 * size + 1);
	int fd = mkstemp(path), before = dup(STDOUT_FILENO);
	struct pager p;

	assert_true(fd >= 0 && before >= 0 && got);
	unlink(path);
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	setenv("PTSNAP_PAGER", command, 1);
	pager_begin(&p);
	for (size_t i = 0; i < size; i++)
		putchar('a' + (int)(i % 23));
	pager_end(&p);
	dup2(before, STDOUT_FILENO);
	close(before);
	assert_true(pread(fd, got, 2 * size, 0) >= 0);
	close(fd);
	return got;
}

static void pager_begin_pager_that_cannot_start_loses_nothing(void **state)
{
	static const size_t sizes[] = {1, 5000, 1 << 20};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		char *got = through("/nonexistent/pager 2>/dev/null", sizes[i]);

		assert_int_equal(strlen(got), sizes[i]);
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal(got[k], 'a' + (int)(k % 23));
		free(got);
	}
}

static void pager_begin_pager_gets_the_text_once(void **state)
{
	char *got = through("tr a-w A-W", 1 << 20);

	(void)state;
	assert_int_equal(strlen(got), 1 << 20);
	assert_null(strpbrk(got, "abcdefghijklmnopqrstuvw"));
	free(got);
	got = through("head -c 3", 1 << 20);
	assert_string_equal(got, "abc");
	free(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pager_choose_unset_gives_less),
		cmocka_unit_test(pager_choose_both_takes_our_own),
		cmocka_unit_test(pager_choose_empty_or_cat_gives_none),
		cmocka_unit_test(pager_show_command_gets_the_text),
		cmocka_unit_test(pager_show_without_standard_input_shows_the_text),
		cmocka_unit_test(pager_show_pager_that_ends_early_is_no_failure),
		cmocka_unit_test(pager_show_without_pager_returns_false),
		cmocka_unit_test(pager_begin_pager_that_cannot_start_loses_nothing),
		cmocka_unit_test(pager_begin_pager_gets_the_text_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
