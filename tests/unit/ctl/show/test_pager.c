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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
