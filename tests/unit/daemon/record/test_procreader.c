/*
 * Facts that another thread reads, with a tree in place of /proc. A file that cannot be read is a
 * FIFO without a writer: opening the FIFO hangs.
 */
#include "daemon/record/procs_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/unit/daemon/scratch_dir.h"

#define LONG_NS 60000000000u

static char dir[SCRATCH_DIR_SIZE];

static void path_of(char ret[static SCRATCH_DIR_SIZE + 32], uint32_t pid, const char *name)
{
	snprintf(ret, SCRATCH_DIR_SIZE + 32, "%s/%u%s%s", dir, pid, *name ? "/" : "", name);
}

static void put(uint32_t pid, const char *name, const char *text)
{
	char path[SCRATCH_DIR_SIZE + 32];

	path_of(path, pid, name);
	CLEANUP_CLOSE int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void runs(uint32_t pid)
{
	char path[SCRATCH_DIR_SIZE + 32];

	path_of(path, pid, "");
	assert_int_equal(mkdir(path, 0700), 0);
	put(pid, "stat", "1 (x) S 42 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0\n");
	put(pid, "cmdline", "hello");
	path_of(path, pid, "exe");
	assert_int_equal(symlink("/bin/hello", path), 0);
}

static void cannot_be_read(uint32_t pid, const char *name)
{
	char path[SCRATCH_DIR_SIZE + 32];

	path_of(path, pid, name);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
}

/* Opens the FIFO for writing as soon as a thread hangs in it. */
static int begin_to_write(uint32_t pid, const char *name)
{
	char path[SCRATCH_DIR_SIZE + 32];
	int fd;

	path_of(path, pid, name);
	while ((fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && errno == ENXIO)
		sched_yield();
	assert_true(fd >= 0);
	return fd;
}

static void can_be_read(uint32_t pid, const char *name)
{
	close(begin_to_write(pid, name));
}

static int ask(struct procreader *r, uint32_t pid)
{
	const struct procreader_request q = {.pid = pid, .tag = 1000 + pid, .cmdline = true};

	return procreader_ask(r, &q);
}

static struct procreader_answer take(struct procreader *r)
{
	struct procreader_answer a;

	while (procreader_take(r, &a) != 0)
		assert_int_equal(procreader_wait(r, LONG_NS), 0);
	return a;
}

static void check_answer(struct procreader *r, uint32_t pid, const char *cmdline)
{
	struct procreader_answer a = take(r);

	assert_int_equal(a.request.pid, pid);
	assert_int_equal(a.request.tag, 1000 + pid);
	assert_int_equal(a.error, 0);
	assert_int_equal(a.info.ppid, 42);
	assert_string_equal(a.info.exe, "/bin/hello");
	assert_int_equal(a.request.cmdline, cmdline != NULL);
	if (cmdline)
		assert_string_equal(a.info.cmdline, cmdline);
	else
		assert_null(a.info.cmdline);
	procinfo_done(&a.info);
}

/* Gives PID up as soon as the thread has begun to read its files. */
static void gives_up(struct procreader *r, uint32_t pid)
{
	struct procreader_request q = {0};

	while (procreader_give_up(r, 0, &q) != 0)
		sched_yield();
	assert_int_equal(q.pid, pid);
	assert_int_equal(q.tag, 1000 + pid);
}

static void nobody_stands(struct procreader *r)
{
	while (procreader_stuck(r) > 0)
		sched_yield();
}

static int setup(void **state)
{
	struct procreader *r = NULL;

	scratch_dir_make(dir);
	assert_int_equal(procreader_new(dir, &r), 0);
	*state = r;
	return 0;
}

static void clear(uint32_t pid)
{
	char path[SCRATCH_DIR_SIZE + 32];

	path_of(path, pid, "");
	if (access(path, F_OK) == 0)
		scratch_dir_remove(path);
}

static int teardown(void **state)
{
	procreader_free(*state);
	for (uint32_t pid = 1; pid < 20; pid++)
		clear(pid);
	scratch_dir_remove(dir);
	return 0;
}

static void procreader_take_has_the_answers_in_order(void **state)
{
	struct procreader *r = *state;
	struct procreader_answer a;

	runs(1);
	runs(3);
	assert_int_equal(procreader_take(r, &a), PROCREADER_NOTHING);
	for (uint32_t pid = 1; pid <= 3; pid++)
		assert_int_equal(ask(r, pid), 0);
	assert_int_equal(procreader_pending(r), 3);
	check_answer(r, 1, "hello");
	a = take(r);
	assert_int_equal(a.request.pid, 2);
	assert_int_equal(a.error, -ESRCH);
	check_answer(r, 3, "hello");
	assert_int_equal(procreader_pending(r), 0);
	assert_int_equal(procreader_take(r, &a), PROCREADER_NOTHING);
}

static void procreader_give_up_others_get_their_answers(void **state)
{
	struct procreader *r = *state;
	struct procreader_answer a;

	for (uint32_t pid = 1; pid <= 3; pid++)
		runs(pid);
	cannot_be_read(2, "cmdline");
	for (uint32_t pid = 1; pid <= 3; pid++)
		assert_int_equal(ask(r, pid), 0);
	check_answer(r, 1, "hello");
	gives_up(r, 2);
	assert_int_equal(procreader_stuck(r), 1);
	check_answer(r, 3, "hello");
	can_be_read(2, "cmdline");
	nobody_stands(r);
	assert_int_equal(procreader_take(r, &a), PROCREADER_NOTHING);
}

static void procreader_give_up_before_its_time_is_nothing(void **state)
{
	struct procreader *r = *state;
	struct procreader_request q;
	int fd;

	runs(1);
	cannot_be_read(1, "cmdline");
	assert_int_equal(procreader_give_up(r, 0, &q), PROCREADER_NOTHING);
	assert_int_equal(ask(r, 1), 0);
	fd = begin_to_write(1, "cmdline"); /* the thread has begun to read */
	assert_int_equal(procreader_give_up(r, LONG_NS, &q), PROCREADER_NOTHING);
	assert_int_equal(write(fd, "hello", 5), 5);
	close(fd);
	check_answer(r, 1, "hello");
	assert_int_equal(procreader_give_up(r, 0, &q), PROCREADER_NOTHING);
}

static void procreader_ask_when_many_stand_reads_no_command_line(void **state)
{
	struct procreader *r = *state;
	uint32_t last = PROCREADER_STUCK + 1;

	/* Nor that of the request that was made before the threads hung. */
	for (uint32_t pid = 1; pid <= last; pid++) {
		runs(pid);
		if (pid < last)
			cannot_be_read(pid, "cmdline");
		assert_int_equal(ask(r, pid), 0);
	}
	for (uint32_t pid = 1; pid < last; pid++)
		gives_up(r, pid);
	check_answer(r, last, NULL);
	assert_int_equal(ask(r, last), 0);
	check_answer(r, last, NULL);
	/* A thread that goes on hangs no more. */
	can_be_read(1, "cmdline");
	while (procreader_stuck(r) == PROCREADER_STUCK)
		sched_yield();
	assert_int_equal(ask(r, last), 0);
	check_answer(r, last, "hello");
	for (uint32_t pid = 2; pid < last; pid++)
		can_be_read(pid, "cmdline");
	nobody_stands(r);
}

static void procreader_ask_when_too_many_stand_is_refused(void **state)
{
	struct procreader *r = *state;
	uint32_t last = ASIDE_STUCK_MAX + 1;

	for (uint32_t pid = 1; pid <= last; pid++) {
		runs(pid);
		if (pid < last)
			cannot_be_read(pid, "stat");
		assert_int_equal(ask(r, pid), 0);
	}
	for (uint32_t pid = 1; pid < last; pid++)
		gives_up(r, pid);
	assert_int_equal(ask(r, last), -EAGAIN);
	assert_int_equal(procreader_wait(r, LONG_NS), -EAGAIN);
	assert_int_equal(procreader_pending(r), 1);
	for (uint32_t pid = 1; pid < last; pid++)
		can_be_read(pid, "stat");
	nobody_stands(r);
	check_answer(r, last, NULL); /* of the request that waited */
	assert_int_equal(ask(r, last), 0);
	check_answer(r, last, "hello");
}

static void procreader_ask_beyond_the_room_is_refused(void **state)
{
	struct procreader *r = *state;

	for (uint32_t i = 0; i < PROCREADER_ROOM; i++)
		assert_int_equal(ask(r, 1 + i), 0);
	assert_int_equal(ask(r, 1), PROCREADER_FULL);
	assert_int_equal(take(r).request.pid, 1);
	assert_int_equal(ask(r, 1), 0);
}

/* procreader_free() does not wait for a thread that hangs, and what the thread needs stays valid.
 */
static void procreader_free_waits_for_nobody(void **state)
{
	struct procreader *r = NULL;

	(void)state;
	/* Process 2 can be read: a thread of the first reader may still begin with it. */
	for (uint32_t pid = 1; pid <= 3; pid++)
		runs(pid);
	cannot_be_read(1, "cmdline");
	cannot_be_read(3, "cmdline");
	assert_int_equal(procreader_new(dir, &r), 0);
	assert_int_equal(ask(r, 1), 0);
	assert_int_equal(ask(r, 2), 0);
	gives_up(r, 1);
	procreader_free(r);
	can_be_read(1, "cmdline");
	assert_int_equal(procreader_new(dir, &r), 0);
	assert_int_equal(ask(r, 3), 0);
	gives_up(r, 3);
	can_be_read(3, "cmdline");
	nobody_stands(r);
	procreader_free(r);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(procreader_take_has_the_answers_in_order),
		CASE(procreader_give_up_others_get_their_answers),
		CASE(procreader_give_up_before_its_time_is_nothing),
		CASE(procreader_ask_when_many_stand_reads_no_command_line),
		CASE(procreader_ask_when_too_many_stand_is_refused),
		CASE(procreader_ask_beyond_the_room_is_refused),
		CASE(procreader_free_waits_for_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
