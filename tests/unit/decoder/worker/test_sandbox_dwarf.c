/*
 * Names and source lines within the sandbox: libdw, libelf, liblzma and libiberty do nothing there
 * that is forbidden. The file is this test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "decoder/worker/sandbox.h"
#include "proto/base.h"
#include "sideband/dwarf/dwarf.h"
#include "sideband/elf/elf.h"
#include "sideband/symbols/symbols.h"
#include "tests/support/child.h"

#define CHILD_FAILED 77
#define NO_DWARF     78 /* compiled without -g */

extern const char __ehdr_start[];

/* The status of a child that does ACT with this program's bytes within the sandbox. */
static int in_sandbox(void (*act)(const struct elf_bytes *file))
{
	const struct sandbox_limits limits = {.channel = -1, .memory_bytes = 512 << 20};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), status;
	struct elf_bytes file = {0};
	struct stat st;
	unsigned missing;
	pid_t pid;

	assert_int_equal(fstat(fd, &st), 0);
	file.size = (size_t)st.st_size;
	file.bytes = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(file.bytes != MAP_FAILED);
	pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (sandbox_enter(&limits, &missing) != 0)
			_exit(CHILD_FAILED);
		act(&file);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	munmap((void *)(uintptr_t)file.bytes, file.size);
	close(fd);
	return status;
}

/* As the file counts it. */
static uint64_t address_of(const struct elf_bytes *file, const void *p)
{
	const Elf64_Ehdr *header = (const void *)file->bytes;
	uint64_t loaded = header->e_type == ET_DYN ? (uintptr_t)__ehdr_start : 0;

	return (uintptr_t)p - loaded;
}

static void find_line(const struct elf_bytes *file)
{
	struct dwarf_frame frames[DWARF_MAX_FRAMES];
	struct dwarf_file *dwarf;
	size_t n;
	int r = dwarf_file_open(file, &dwarf);

	if (r == DWARF_NONE)
		_exit(NO_DWARF);
	if (r != 0)
		_exit(1);
	n = dwarf_file_find(dwarf, address_of(file, (const void *)(uintptr_t)address_of), frames,
			    DWARF_MAX_FRAMES);
	if (n != 1 || frames[0].line == 0 || strcmp(frames[0].function, "address_of") != 0 ||
	    strstr(frames[0].file, "test_sandbox_dwarf.c") == NULL)
		_exit(2);
	dwarf_file_free(dwarf);
}

static void sandbox_enter_lets_the_worker_find_lines(void **state)
{
	int status = in_sandbox(find_line);

	(void)state;
	if (WIFSIGNALED(status))
		fail_msg("killed by signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status) == NO_DWARF)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void find_names(const struct elf_bytes *file)
{
	struct elf_file *elf;
	size_t n;
	char *text = demangle("_ZNSt6vectorIiSaIiEE9push_backEOi");

	if (text == NULL || strstr(text, "push_back(int&&)") == NULL)
		_exit(1);
	free(text);
	if (elf_file_open(file, ELF_NAMES, &elf) != 0)
		_exit(2);
	elf_file_symbols(elf, &n);
	if (n == 0)
		_exit(3);
	elf_file_free(elf);
}

static void sandbox_enter_lets_the_worker_find_names(void **state)
{
	int status = in_sandbox(find_names);

	(void)state;
	if (WIFSIGNALED(status))
		fail_msg("killed by signal %d", WTERMSIG(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sandbox_enter_lets_the_worker_find_lines),
		cmocka_unit_test(sandbox_enter_lets_the_worker_find_names),
	};

	return cmocka_run_group_tests_name("sandbox_dwarf", tests, NULL, NULL);
}
