/*
 * capture/emu_command and emu_qemu: what is run, and what is refused with one line.
 */
#include "capture/emu_command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/emu_qemu.h"
#include "proto/base.h"

static char directory[] = "/tmp/test_emu_command.XXXXXX";

static char *in_directory(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void put_file(const char *name, const void *bytes, size_t size, mode_t mode)
{
	int fd = open(in_directory(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void put_text(const char *name, const char *text)
{
	put_file(name, text, strlen(text), 0755);
}

static void put_elf(const char *name, uint8_t bits, uint8_t machine)
{
	uint8_t head[64] = {0x7f, 'E', 'L', 'F', bits, 1, 1};

	head[16] = 3; /* ET_DYN */
	head[18] = machine;
	put_file(name, head, sizeof(head), 0755);
}

static int make_directory(void **state)
{
	char text[PATH_MAX];

	(void)state;
	if (mkdtemp(directory) == NULL)
		return -1;
	put_elf("program", 2, 62);
	put_elf("i386", 1, 3);
	put_elf("arm", 2, 183);
	put_text("empty", "");
	put_file("plain", "text", 4, 0644);
	snprintf(text, sizeof(text), "#! \t%s/program -x  y \nrest\n", directory);
	put_text("script", text);
	snprintf(text, sizeof(text), "#!%s/script", directory);
	put_text("script2", text);
	put_text("lost", "#!/nonexistent/interpreter\n");
	put_text("bare", "#!  \n");
	snprintf(text, sizeof(text), "#!%s/loop", directory);
	put_text("loop", text);
	put_text("too-long-a-name-for-comm", "");
	put_elf("too-long-a-name-for-comm", 2, 62);
	setenv("PATH", directory, 1);
	return 0;
}

static int remove_directory(void **state)
{
	static const char *const names[] = {"program",
					    "i386",
					    "arm",
					    "empty",
					    "plain",
					    "script",
					    "script2",
					    "lost",
					    "bare",
					    "loop",
					    "qemu",
					    "qemu2",
					    "too-long-a-name-for-comm"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unlink(in_directory(names[i]));
	return rmdir(directory);
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

		if (strncmp(arg, directory, strlen(directory)) == 0)
			arg += strlen(directory);
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
	assert_string_equal(c.program, in_directory("program"));
	assert_string_equal(c.comm, "program");
	expect_argv(&c, "program|one|two|");
	emu_command_done(&c);
}

static void find_relative_gives_an_absolute_program(void **state)
{
	struct emu_command c;
	char why[256];

	(void)state;
	assert_int_equal(chdir(directory), 0);
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
	assert_string_equal(c.program, in_directory("program"));
	assert_string_equal(c.comm, "script");
	expect_argv(&c, "/program|-x  y|/script|one|two|");
	emu_command_done(&c);
	assert_int_equal(find("script2", &c, why), 0);
	expect_argv(&c, "/program|-x  y|/script|/script2|one|two|");
	emu_command_done(&c);
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
		{"lost", -ENOENT, "lost: its interpreter was not found"},
		{"i386", -ENOEXEC, "neither an x86-64 ELF program nor a script"},
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
		put_text("qemu", text);
		r = emu_qemu_find(in_directory("qemu"), &path, why, sizeof(why));
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
		cmocka_unit_test(find_refuses_with_one_line),
		cmocka_unit_test(find_qemu_refuses_what_cannot_load_the_plugin),
		cmocka_unit_test(find_qemu_absent_says_what_to_install),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
