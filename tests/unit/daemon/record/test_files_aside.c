/*
 * Files that another thread opens, with a tree in place of /proc. A process that holds the thread
 * up has a FIFO without a writer in place of its mountinfo: opening the FIFO hangs.
 */
#include "daemon/record/files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/aside.h"
#include "proto/base.h"
#include "tests/unit/daemon/scratch_dir.h"

static char dir[SCRATCH_DIR_SIZE];

static const char *path_of(const char *name)
{
	static char path[8][SCRATCH_DIR_SIZE + 64];
	static unsigned int n;

	snprintf(path[++n % 8], sizeof(path[0]), "%s/%s", dir, name);
	return path[n % 8];
}

static void put(const char *name, const char *text)
{
	CLEANUP_CLOSE int fd = open(path_of(name), O_CREAT | O_TRUNC | O_WRONLY, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void mounts_of(const char *pid)
{
	char name[64], line[128];
	struct stat st;

	assert_int_equal(stat(dir, &st), 0);
	snprintf(name, sizeof(name), "%s/mountinfo", pid);
	snprintf(line, sizeof(line), "20 1 %u:%u / / rw - ext4 /dev/x rw\n", major(st.st_dev),
		 minor(st.st_dev));
	put(name, line);
}

static void runs(const char *pid)
{
	char name[64];

	assert_int_equal(mkdir(path_of(pid), 0700), 0);
	snprintf(name, sizeof(name), "%s/root", pid);
	assert_int_equal(symlink("/", path_of(name)), 0);
	mounts_of(pid);
}

static void holds_up(uint32_t pid)
{
	char name[64], fifo[64];

	snprintf(name, sizeof(name), "%u", pid);
	runs(name);
	snprintf(name, sizeof(name), "%u/mountinfo", pid);
	snprintf(fifo, sizeof(fifo), "%u/fifo", pid);
	unlink(path_of(name));
	assert_int_equal(mkfifo(path_of(fifo), 0600), 0);
	assert_int_equal(link(path_of(fifo), path_of(name)), 0);
}

/* Lets a thread go on as soon as it hangs in the FIFO of PID; it then finds a real mountinfo. */
static void lets_go(uint32_t pid)
{
	char name[64], fifo[64];
	int fd;

	snprintf(name, sizeof(name), "%u", pid);
	snprintf(fifo, sizeof(fifo), "%u/fifo", pid);
	while ((fd = open(path_of(fifo), O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && errno == ENXIO)
		sched_yield();
	assert_true(fd >= 0);
	snprintf(fifo, sizeof(fifo), "%u/mountinfo", pid);
	unlink(path_of(fifo));
	mounts_of(name);
	close(fd);
}

static int setup(void **state)
{
	struct files *f = NULL;
	char *real;

	scratch_dir_make(dir);
	real = realpath(dir, NULL);
	if (strlen(real) < sizeof(dir))
		strcpy(dir, real);
	free(real);
	runs("1");
	runs("self");
	runs("50");
	assert_int_equal(files_new(dir, 100, &f), 0);
	assert_int_equal(files_open_aside(f), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = {"1", "self", "50"};

	files_free(*state);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		scratch_dir_remove(path_of(names[i]));
	for (uint32_t pid = 60; pid < 70; pid++) {
		char name[64];

		snprintf(name, sizeof(name), "%u", pid);
		if (access(path_of(name), F_OK) == 0)
			scratch_dir_remove(path_of(name));
	}
	scratch_dir_remove(dir);
	return 0;
}

static void sees(struct files *f, const char *name, uint32_t pid)
{
	struct perfrecord r = {.type = PERF_RECORD_MMAP2};
	struct stat st = {0};

	if (access(path_of(name), F_OK) != 0)
		put(name, "x");
	assert_int_equal(stat(path_of(name), &st), 0);
	r.u.mmap2.maj = major(st.st_dev);
	r.u.mmap2.min = minor(st.st_dev);
	r.u.mmap2.ino = st.st_ino;
	r.u.mmap2.pid = r.u.mmap2.tid = pid;
	r.u.mmap2.addr = 0x1000;
	r.u.mmap2.len = 0x1000;
	r.u.mmap2.prot = PROT_READ | PROT_EXEC;
	r.u.mmap2.filename = path_of(name);
	files_see(f, &r);
}

static void opens(struct files *f, size_t index)
{
	struct pollfd p = {.fd = files_fd(f), .events = POLLIN};

	while (files_at(f, index)->fd < 0) {
		assert_int_equal(poll(&p, 1, -1), 1);
		files_on_fd(f);
	}
	assert_null(files_at(f, index)->missing);
}

/* Waits until the file is open, which is when the loop has given up those before it. */
static void opens_after_all(struct files *f, size_t index)
{
	while (files_at(f, index)->fd < 0) {
		files_take(f);
		sched_yield();
	}
}

/* Waits until the loop has given up, so that STUCK threads hang. */
static void is_given_up(struct files *f, unsigned int stuck)
{
	while (files_stuck(f) < stuck) {
		files_take(f);
		sched_yield();
	}
}

static void nobody_stands(struct files *f)
{
	while (files_stuck(f) > 0)
		sched_yield();
	files_take(f);
}

static void files_see_is_opened_when_it_is_taken(void **state)
{
	struct files *f = *state;

	sees(f, "a", 50);
	assert_int_equal(files_count(f), 1);
	assert_true(files_at(f, 0)->fd < 0);
	assert_non_null(strstr(files_at(f, 0)->missing, "yet"));
	opens(f, 0);
	assert_int_equal(files_at(f, 0)->size, 1);
	files_await(f); /* nothing to wait for */
}

static void files_see_of_one_that_stands_others_are_opened(void **state)
{
	struct files *f = *state;

	holds_up(60);
	sees(f, "a", 60);
	sees(f, "b", 50);
	is_given_up(f, 1);
	assert_non_null(strstr(files_at(f, 0)->missing, "too long"));
	opens(f, 1);
	/* Another process maps it. */
	sees(f, "a", 50);
	opens(f, 0);
	lets_go(60);
	nobody_stands(f);
	assert_true(files_at(f, 0)->fd >= 0);
}

static void files_take_of_one_that_came_back_has_its_file(void **state)
{
	struct files *f = *state;

	holds_up(60);
	sees(f, "a", 60);
	is_given_up(f, 1);
	lets_go(60);
	nobody_stands(f);
	assert_true(files_at(f, 0)->fd >= 0);
	assert_null(files_at(f, 0)->missing);
}

static void files_see_while_it_is_opened_asks_the_next_one(void **state)
{
	struct files *f = *state;

	holds_up(60);
	sees(f, "a", 60);
	sees(f, "a", 50);
	opens_after_all(f, 0);
	lets_go(60);
	nobody_stands(f);
}

static void files_see_when_too_many_stand_says_why(void **state)
{
	struct files *f = *state;
	char name[16];

	for (uint32_t i = 0; i < ASIDE_STUCK_MAX; i++) {
		snprintf(name, sizeof(name), "%u", i);
		holds_up(60 + i);
		sees(f, name, 60 + i);
		is_given_up(f, i + 1);
	}
	sees(f, "a", 50);
	assert_non_null(strstr(files_at(f, ASIDE_STUCK_MAX)->missing, "too long"));
	files_await(f); /* returns although threads hang */
	lets_go(60);
	while (files_stuck(f) == ASIDE_STUCK_MAX)
		files_take(f);
	sees(f, "a", 50);
	opens(f, ASIDE_STUCK_MAX);
	for (uint32_t i = 1; i < ASIDE_STUCK_MAX; i++)
		lets_go(60 + i);
	nobody_stands(f);
}

static void files_await_ends_when_one_stands(void **state)
{
	struct files *f = *state;

	holds_up(60);
	sees(f, "a", 60);
	sees(f, "b", 50);
	while (files_stuck(f) == 0 || files_at(f, 1)->fd < 0)
		files_await(f);
	lets_go(60);
	nobody_stands(f);
}

/* More files than the queue has room for, the first of which hangs. */
static void files_see_beyond_the_room_opens_all(void **state)
{
	const struct rlimit limit = {4 * ASIDE_ROOM, 4 * ASIDE_ROOM};
	struct files *f = NULL;
	struct rlimit before;
	char name[16];

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	if (before.rlim_max < limit.rlim_max)
		skip();
	before.rlim_cur = limit.rlim_cur;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(files_new(dir, 2 * ASIDE_ROOM, &f), 0);
	assert_int_equal(files_open_aside(f), 0);
	for (uint32_t i = 1; i < ASIDE_ROOM + 10; i++) {
		snprintf(name, sizeof(name), "%u", 1000 + i);
		put(name, "x");
	}
	holds_up(60);
	sees(f, "a", 60);
	for (uint32_t i = 1; i < ASIDE_ROOM + 10; i++) {
		snprintf(name, sizeof(name), "%u", 1000 + i);
		sees(f, name, 50);
	}
	for (uint32_t i = 1; i < ASIDE_ROOM + 10; i++)
		opens(f, i);
	lets_go(60);
	opens(f, 0);
	files_free(f);
}

/* Files that are being opened count, too. */
static void files_see_beyond_max_open_says_so(void **state)
{
	struct files *f = NULL;

	(void)state;
	assert_int_equal(files_new(dir, 1, &f), 0);
	assert_int_equal(files_open_aside(f), 0);
	holds_up(60);
	sees(f, "a", 60);
	sees(f, "b", 50);
	assert_non_null(strstr(files_at(f, 1)->missing, "more files"));
	lets_go(60);
	opens(f, 0);
	files_await(f);
	assert_non_null(strstr(files_at(f, 1)->missing, "more files"));
	files_free(f);
}

/* files_free() does not wait for a thread that hangs, and what the thread needs stays valid. */
static void files_free_waits_for_nobody(void **state)
{
	struct files *f = NULL;

	(void)state;
	for (uint32_t pid = 60; pid < 62; pid++)
		holds_up(pid);
	assert_int_equal(files_new(dir, 10, &f), 0);
	assert_int_equal(files_open_aside(f), 0);
	sees(f, "a", 60);
	sees(f, "b", 50);
	is_given_up(f, 1);
	sees(f, "c", 61);
	sees(f, "c", 50);
	sees(f, "d", 50);
	files_free(f);
	lets_go(60);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(files_see_is_opened_when_it_is_taken),
		CASE(files_see_of_one_that_stands_others_are_opened),
		CASE(files_take_of_one_that_came_back_has_its_file),
		CASE(files_see_while_it_is_opened_asks_the_next_one),
		CASE(files_see_when_too_many_stand_says_why),
		CASE(files_await_ends_when_one_stands),
		CASE(files_see_beyond_the_room_opens_all),
		CASE(files_see_beyond_max_open_says_so),
		CASE(files_free_waits_for_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
