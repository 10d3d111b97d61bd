/*
 * ctl/base/progress: a line on a terminal, which goes again.
 */
#include "ctl/base/progress.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"

/* What FN writes to standard error, which is a terminal; "" if it is nothing. */
static void shown(void (*fn)(void), char *text, size_t size)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY), before = dup(STDERR_FILENO), end;
	size_t used = 0;
	ssize_t n;

	assert_true(terminal >= 0 && before >= 0);
	assert_int_equal(grantpt(terminal), 0);
	assert_int_equal(unlockpt(terminal), 0);
	end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
	assert_true(end >= 0 && dup2(end, STDERR_FILENO) == STDERR_FILENO);
	fn();
	assert_int_equal(write(STDERR_FILENO, "!", 1), 1);
	dup2(before, STDERR_FILENO);
	do {
		n = read(terminal, text + used, size - 1 - used);
		assert_true(n > 0);
		used += (size_t)n;
	} while (text[used - 1] != '!');
	text[used - 1] = '\0';
	close(end);
	close(before);
	close(terminal);
}

static void two_percents(void)
{
	progress_begin("a\033[1m.ptsnap", 0);
	progress_tell(41);
	progress_tell(41);
	progress_tell(42);
	progress_end();
	progress_tell(43);
}

static void too_short(void)
{
	progress_begin("a.ptsnap", UINT64_MAX / 2);
	progress_tell(41);
	progress_end();
}

static void never(void)
{
	progress_never();
	two_percents();
}

static void progress_is_shown_until_the_end(void **state)
{
	char text[256];

	(void)state;
	shown(two_percents, text, sizeof(text));
	assert_string_equal(text, "\r\033[Kdecoding a\\x1b[1m.ptsnap: 41 %"
				  "\r\033[Kdecoding a\\x1b[1m.ptsnap: 42 %\r\033[K");
}

static void progress_of_a_short_decode_is_not_shown(void **state)
{
	char text[256];

	(void)state;
	shown(too_short, text, sizeof(text));
	assert_string_equal(text, "");
}

static void progress_is_not_shown_where_lines_are(void **state)
{
	char text[256];

	(void)state;
	shown(never, text, sizeof(text));
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(progress_is_shown_until_the_end),
		cmocka_unit_test(progress_of_a_short_decode_is_not_shown),
		cmocka_unit_test(progress_is_not_shown_where_lines_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
