/*
 * capture/emu_command and emu_qemu: what is run, and what is refused with one line.
 */
#include "capture/emu/host/emu_qemu.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/unit/capture/exec_files.h"

static int make_directory(void **state)
{
	(void)state;
	exec_files_make();
	exec_file_elf("program", ELF_SOUND, NULL);
	exec_file_elf("i386", ELF_I386, NULL);
	exec_file_elf("arm", ELF_ARM, NULL);
	exec_file_elf("no-loader", ELF_SOUND, "/no/loader");
	exec_file_elf("qemu-arm", ELF_SOUND, NULL);
	exec_file_elf("too-long-a-name-for-comm", ELF_SOUND, NULL);
	exec_file_script("empty", "");
	exec_file_put("plain", "text", 4, 0644);
	exec_file_script("script", "#! \t@/program -x  y \nrest\n");
	exec_file_script("script2", "#!@/script");
	exec_file_script("lost", "#!/nonexistent/interpreter\n");
	exec_file_script("bare", "#!  \n");
	exec_file_script("loop", "#!@/loop ");
	setenv("PATH", exec_files_directory(), 1);
	return 0;
}

static int remove_directory(void **state)
{
	(void)state;
	exec_files_remove();
	return 0;
}

static int find(const char *name, struct emu_command *ret, char *why)
{
	char *argv[] = {(char *)name, (char *)"one", (char *)"two", NULL};

	why[0] = '\0';
	return emu_command_find(argv, ret, why, 256);
}

static void expect_argv(const struct emu_command *c, const char *wanted)
{
	char text[PATH_MAX * 2] = "";

	for (size_t i = 0; c->argv[i] != NULL; i++) {
		const char *arg = c->argv[i];
		size_t used = strlen(text);

		if (strncmp(arg, exec_files_directory(), strlen(exec_files_directory())) == 0)
			arg += strlen(exec_files_directory());
		snprintf(text + used, sizeof(text) - used, "%s|", arg);
	}
	assert_string_equal(text, wanted);
}

static void find_by_path_gives_an_absolute_program(void **state)
{
	struct emu_command c;
	char why[256];

	(void)state;
	assert_int_equal(find("program", &c, why), 0);
	assert_string_equal(c.program, exec_file("program"));
	assert_string_equal(c.comm, "program");
	expect_argv(&c, "program|one|two|");
	emu_command_done(&c);
}

static void find_relative_gives_an_absolute_program(void **state)
{
	struct emu_command c;
	char why[256];

	(void)state;
	assert_int_equal(chdir(exec_files_directory()), 0);
	assert_int_equal(find("./program", &c, why), 0);
	assert_int_equal(c.program[0], '/');
	expect_argv(&c, "./program|one|two|");
	assert_int_equal(chdir("/"), 0);
	emu_command_done(&c);
}

static void find_cuts_a_long_name_as_the_kernel_does(void **state)
{
	struct emu_command c;
	char why[256];

	(void)state;
	assert_int_equal(find("too-long-a-name-for-comm", &c, why), 0);
	assert_string_equal(c.comm, "too-long-a-name");
	emu_command_done(&c);
}

static void find_script_gives_its_interpreter(void **state)
{
	struct emu_command c;
	char why[256];

	(void)state;
	assert_int_equal(find("script", &c, why), 0);
	assert_string_equal(c.program, exec_file("program"));
	assert_string_equal(c.comm, "script");
	expect_argv(&c, "/program|-x  y|/script|one|two|");
	emu_command_done(&c);
	assert_int_equal(find("script2", &c, why), 0);
	expect_argv(&c, "/program|-x  y|/script|/script2|one|two|");
	emu_command_done(&c);
}

/* execvp(3): what may not be used does not end the search. */
static void find_by_path_goes_on_to_the_next_directory(void **state)
{
	struct emu_command c;
	char path[PATH_MAX], why[256];

	(void)state;
	snprintf(path, sizeof(path), "/no/such:/etc/passwd:%s/first::%s/second:%s",
		 exec_files_directory(), exec_files_directory(), exec_files_directory());
	assert_int_equal(mkdir(exec_file("first"), 0755), 0);
	assert_int_equal(mkdir(exec_file("first/program"), 0755), 0);
	assert_int_equal(mkdir(exec_file("second"), 0755), 0);
	exec_file_script("second/program", "#!/no/interpreter\n");
	setenv("PATH", path, 1);
	assert_int_equal(find("program", &c, why), 0);
	assert_string_equal(c.program, exec_file("program"));
	emu_command_done(&c);
	assert_int_equal(find("first", &c, why), -EACCES);
	setenv("PATH", exec_files_directory(), 1);
}

static void find_refuses_with_one_line(void **state)
{
	static const struct {
		const char *name;
		int error;
		const char *why;
	} cases[] = {
		{"nosuch", -ENOENT, "nosuch: command not found"},
		{"/no/such", -ENOENT, "/no/such: command not found"},
		{"", -ENOENT, ": command not found"},
		{"plain", -EACCES, "plain: not executable"},
		{"/tmp", -EACCES, "/tmp: not executable"},
		{"lost", -ENOENT, "lost: its interpreter was not found: /nonexistent/interpreter"},
		{"no-loader", -ENOENT, "no-loader: its interpreter was not found: /no/loader"},
		{"i386", -EOPNOTSUPP, "/i386: a 32-bit program: the emulated source cannot run it"},
		{"qemu-arm", -EOPNOTSUPP, "/qemu-arm: the emulated source does not run emulators"},
		{"arm", -ENOEXEC, "neither an x86-64 ELF program nor a script"},
		{"empty", -ENOEXEC, "neither an x86-64 ELF program nor a script"},
		{"bare", -ENOEXEC, "neither an x86-64 ELF program nor a script"},
		{"loop", -ELOOP, "loop: Too many levels of symbolic links"},
	};
	struct emu_command c;
	char why[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(find(cases[i].name, &c, why), cases[i].error);
		assert_non_null(strstr(why, cases[i].why));
		assert_null(strchr(why, '\n'));
		assert_null(c.argv);
	}
}

static void find_qemu_refuses_what_cannot_load_the_plugin(void **state)
{
	static const struct {
		const char *version, *help, *why;
	} cases[] = {
		{"qemu-x86_64 version 7.2.22 (Debian)", "-plugin QEMU_PLUGIN", NULL},
		{"qemu-x86_64 version 8.2.0", "-plugin", NULL},
		{"qemu-x86_64 version 10.0.2", "-plugin", "too new for the plugin"},
		{"qemu-x86_64 version 5.2.0", "-plugin", "too old for the plugin"},
		{"qemu-x86_64 version 7.2.0", "-strace", "built without plugins"},
		{"GNU bash, version 5.2", "-plugin", "not a qemu-x86_64"},
		{"", "", "not a qemu-x86_64"},
	};
	char text[512], why[512], *path;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r;

		snprintf(text, sizeof(text),
			 "#!/bin/sh\ncase $1 in --version) echo '%s';; *) echo '%s';; esac\n",
			 cases[i].version, cases[i].help);
		exec_file_script("qemu", text);
		r = emu_qemu_find(exec_file("qemu"), &path, why, sizeof(why));
		if (cases[i].why == NULL) {
			assert_int_equal(r, 0);
			free(path);
			continue;
		}
		assert_int_equal(r, -EOPNOTSUPP);
		assert_non_null(strstr(why, cases[i].why));
		assert_null(strchr(why, '\n'));
	}
}

static void find_qemu_absent_says_what_to_install(void **state)
{
	char why[512], *path;

	(void)state;
	assert_int_equal(emu_qemu_find(NULL, &path, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, "qemu-x86_64: not found; install"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find_by_path_gives_an_absolute_program),
		cmocka_unit_test(find_relative_gives_an_absolute_program),
		cmocka_unit_test(find_cuts_a_long_name_as_the_kernel_does),
		cmocka_unit_test(find_script_gives_its_interpreter),
		cmocka_unit_test(find_by_path_goes_on_to_the_next_directory),
		cmocka_unit_test(find_refuses_with_one_line),
		cmocka_unit_test(find_qemu_refuses_what_cannot_load_the_plugin),
		cmocka_unit_test(find_qemu_absent_says_what_to_install),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
