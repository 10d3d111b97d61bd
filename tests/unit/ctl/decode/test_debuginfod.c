/*
 * Answers of debuginfod-find: a program of the test that comes first in $PATH.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ctl/decode/answers.h"
#include "proto/base.h"
#include "tests/support/beside.h"

static const uint8_t ID[20] = {0x0a, 0xbc, 0xff};
#define ID_HEX "0abcff0000000000000000000000000000000000"

struct fixture {
	char dir[64], path[4096];
	struct debuginfod servers;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const char *path = getenv("PATH");
	char first[4096 + 64];

	if (!f || !path)
		return -1;
	strcpy(f->dir, "/tmp/ptsnap-test-XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	snprintf(f->path, sizeof(f->path), "%s", path);
	snprintf(first, sizeof(first), "%s:%s", f->dir, f->path);
	debuginfod_init(&f->servers);
	*state = f;
	return setenv("PATH", first, 1);
}

/* No child may be left. */
static int teardown(void **state)
{
	struct fixture *f = *state;
	bool reaped = waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
	char name[128];

	debuginfod_done(&f->servers);
	setenv("PATH", f->path, 1);
	snprintf(name, sizeof(name), "%s/debuginfod-find", f->dir);
	unlink(name);
	snprintf(name, sizeof(name), "%s/asked", f->dir);
	unlink(name);
	rmdir(f->dir);
	free(f);
	return reaped ? 0 : -1;
}

/* Makes the program, which notes its arguments and then does WHAT; $d is the directory. */
static void make_program(const struct fixture *f, const char *what)
{
	char name[128];
	FILE *file;

	snprintf(name, sizeof(name), "%s/debuginfod-find", f->dir);
	file = fopen(name, "we");
	assert_non_null(file);
	fprintf(file, "#!/bin/sh\nd=%s\necho \"$@\" >>$d/asked\n%s\n", f->dir, what);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(name, 0700), 0);
}

static unsigned count_asked(const struct fixture *f, const char *line)
{
	char name[128], got[256];
	unsigned n = 0;
	FILE *file;

	snprintf(name, sizeof(name), "%s/asked", f->dir);
	file = fopen(name, "re");
	while (file && fgets(got, sizeof(got), file)) {
		got[strcspn(got, "\n")] = '\0';
		assert_string_equal(got, line);
		n++;
	}
	if (file)
		fclose(file);
	return n;
}

static void debuginfod_find_asks_once_for_each_build_id(void **state)
{
	struct fixture *f = *state;
	int before = count_open_fds();

	make_program(f, "echo /some/where\necho words >&2");
	for (int i = 0; i < 3; i++)
		assert_string_equal(debuginfod_find(&f->servers, ID, 20), "/some/where");
	assert_int_equal(count_asked(f, "debuginfo " ID_HEX), 1);
	assert_int_equal(count_open_fds(), before);
	/* A shorter build id is another build id. */
	make_program(f, "exit 1");
	assert_null(debuginfod_find(&f->servers, ID, 3));
	assert_string_equal(debuginfod_find(&f->servers, ID, 20), "/some/where");
}

static void debuginfod_find_of_what_nobody_has_is_asked_once(void **state)
{
	struct fixture *f = *state;

	make_program(f, "echo Server query failed: No such file or directory >&2\nexit 1");
	for (int i = 0; i < 3; i++)
		assert_null(debuginfod_find(&f->servers, ID, 20));
	assert_int_equal(count_asked(f, "debuginfo " ID_HEX), 1);
	assert_int_equal(f->servers.error, 0);
}

static void debuginfod_find_of_an_odd_answer_is_none(void **state)
{
	static const char *const odd[] = {
		":",
		"echo",
		"echo relative",
		"printf /no/newline",
		"printf '/two\\n/lines\\n'",
		"printf '/a\\nb'",
		"head -c 10000 /dev/zero | tr '\\0' /; echo",
		"exec cat /dev/zero",
		"echo /good; exit 3",
		"echo /good; kill -9 $$",
		"echo /good; exec >&-; exit 1",
	};
	struct fixture *f = *state;
	uint8_t id[20] = {0};

	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		id[0] = (uint8_t)i;
		make_program(f, odd[i]);
		assert_null(debuginfod_find(&f->servers, id, 20));
	}
	make_program(f, "echo /well");
	assert_null(debuginfod_find(&f->servers, ID, 0));
	assert_null(debuginfod_find(&f->servers, ID, 21));
}

/* The program has no descriptor of ours to read or to wait for. */
static void debuginfod_find_starts_it_with_nothing_of_ours(void **state)
{
	struct fixture *f = *state;
	int stray = dup2(1, 77);

	make_program(f,
		     "[ -e /proc/self/fd/77 ] && exit 1\n[ -z \"$(cat)\" ] || exit 2\necho /well");
	assert_string_equal(debuginfod_find(&f->servers, ID, 20), "/well");
	close(stray);
}

static void debuginfod_find_without_the_program_says_so(void **state)
{
	struct fixture *f = *state;
	uint8_t id[20] = {1};

	assert_int_equal(setenv("PATH", f->dir, 1), 0);
	assert_null(debuginfod_find(&f->servers, ID, 20));
	assert_int_equal(f->servers.error, -ENOENT);
	/* The program is not tried again. */
	make_program(f, "echo /well");
	assert_null(debuginfod_find(&f->servers, id, 20));
	assert_int_equal(count_asked(f, ""), 0);
}

static void debuginfod_find_beyond_its_limit_asks_nobody(void **state)
{
	struct fixture *f = *state;
	uint8_t id[20] = {1};

	make_program(f, "echo /well");
	assert_string_equal(debuginfod_find(&f->servers, ID, 20), "/well");
	f->servers.n = DEBUGINFOD_MAX_ASKED - 1;
	assert_string_equal(debuginfod_find(&f->servers, id, 1), "/well");
	assert_null(debuginfod_find(&f->servers, id, 2));
	assert_string_equal(debuginfod_find(&f->servers, id, 1), "/well");
	assert_string_equal(debuginfod_find(&f->servers, ID, 20), "/well");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(debuginfod_find_asks_once_for_each_build_id),
		CASE(debuginfod_find_of_what_nobody_has_is_asked_once),
		CASE(debuginfod_find_of_an_odd_answer_is_none),
		CASE(debuginfod_find_starts_it_with_nothing_of_ours),
		CASE(debuginfod_find_without_the_program_says_so),
		CASE(debuginfod_find_beyond_its_limit_asks_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
