/*
 * mapquery_at(): from made-up mappings, as before Linux 6.11, and from those of this process.
 */
#include "capture/proc/procmaps.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/proc/procfile.h"
#include "proto/base.h"
#include "tests/unit/capture/tree.h"

static const char maps[] =
	"555555554000-555555556000 r--p 00000000 fe:01 1234                       /usr/bin/init\n"
	"555555556000-555555559000 r-xp 00002000 fe:01 1234                       /usr/bin/init\n"
	"7ffff7000000-7ffff7001000 rwxs 00001000 00:0e 77                         /dev/shm/a b "
	"(deleted)\n"
	"7ffff7fc0000-7ffff7fc1000 r-xp 00000000 00:00 0 \n"
	"7ffff7fc1000-7ffff7fc2000 r-xp 00000000 00:00 0                          [vdso]\n";

static int dir_of(const char *proc, uint32_t pid)
{
	int dir = -EBADF;

	assert_int_equal(procfile_process(proc, pid, &dir), 0);
	return dir;
}

static void mapquery_at_finds_the_line_that_holds_the_address(void **state)
{
	char *root = tree_new();
	struct mapquery q;

	(void)state;
	tree_write(root, "100/maps", maps);
	CLEANUP_CLOSE int dir = dir_of(root, 100);
	assert_int_equal(mapquery_at(dir, 0x555555557123, &q), 0);
	assert_true(q.begin == 0x555555556000 && q.end == 0x555555559000);
	assert_int_equal(q.pgoff, 0x2000);
	assert_true(q.maj == 0xfe && q.min == 1 && q.ino == 1234);
	assert_string_equal(q.path, "/usr/bin/init");
	assert_int_equal(mapquery_at(dir, 0x7ffff7000000, &q), 0);
	assert_string_equal(q.path, "/dev/shm/a b (deleted)");
	tree_free(root);
}

static void mapquery_at_without_a_file_finds_nothing(void **state)
{
	static const uint64_t addresses[] = {
		0, 0x555555553fff, 0x555555559000, 0x7ffff7fc0000, 0x7ffff7fc1000, UINT64_MAX};
	char *root = tree_new();
	struct mapquery q;

	(void)state;
	tree_write(root, "100/maps", maps);
	tree_write(root, "101/x", "");
	CLEANUP_CLOSE int dir = dir_of(root, 100), gone = dir_of(root, 101);
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
		assert_int_equal(mapquery_at(dir, addresses[i], &q), -ENOENT);
	assert_int_equal(mapquery_at(gone, 0x555555557123, &q), -ESRCH);
	tree_free(root);
}

/* The middle one of three pages is a mapping of its own now; its bounds are those of that mapping.
 */
static void mapquery_at_of_this_process_agrees_with_stat(void **state)
{
	CLEANUP_CLOSE int dir = dir_of("/proc", (uint32_t)getpid());
	CLEANUP_CLOSE int fd = open("/proc/self/exe", O_RDONLY);
	struct mapquery q;
	struct stat st;
	char exe[PATH_MAX] = "";
	uint8_t *at;

	(void)state;
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	at = mmap(NULL, 3 * 4096, PROT_READ, MAP_PRIVATE, fd, 4096);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(mprotect(at + 4096, 4096, PROT_NONE), 0);
	assert_int_equal(mapquery_at(dir, (uintptr_t)at + 4096 + 5, &q), 0);
	assert_true(q.begin == (uintptr_t)at + 4096 && q.end == (uintptr_t)at + 8192);
	assert_int_equal(q.pgoff, 8192);
	assert_string_equal(q.path, exe);
	/* On overlayfs stat(2) has another device. */
	if (major(st.st_dev) != 0)
		assert_true(q.ino == st.st_ino && q.maj == major(st.st_dev) &&
			    q.min == minor(st.st_dev));
	munmap(at, 3 * 4096);
	assert_int_equal(mapquery_at(dir, (uintptr_t)at + 4096 + 5, &q), -ENOENT);
}

static void mapquery_file_build_id_of_a_program_is_what_the_kernel_reads(void **state)
{
	CLEANUP_CLOSE int fd = open("/proc/self/exe", O_RDONLY);
	CLEANUP_CLOSE int text = open("/proc/self/cmdline", O_RDONLY);
	uint8_t id[MAPQUERY_BUILD_ID];
	int size = mapquery_file_build_id(fd, id);

	(void)state;
	assert_true(mapquery_file_build_id(text, id) < 0); /* cannot be mapped */
	if (size == -EOPNOTSUPP)
		skip();
	assert_true(size >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mapquery_at_finds_the_line_that_holds_the_address),
		cmocka_unit_test(mapquery_at_without_a_file_finds_nothing),
		cmocka_unit_test(mapquery_at_of_this_process_agrees_with_stat),
		cmocka_unit_test(mapquery_file_build_id_of_a_program_is_what_the_kernel_reads),
	};

	return cmocka_run_group_tests_name("capture/mapquery", tests, NULL, NULL);
}
