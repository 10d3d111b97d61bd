/*
 * The file of metrics when its file system hangs, or when other users have put files in its place.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/check/metrics_writer.h"
#include "tests/unit/daemon/scratch_dir.h"

#define SEC 1000000u

/* Writing a file below /hung lasts until a byte is read from this pipe. */
static int hung_pipe[2];
static int n_hung, n_written, n_made;
static time_t later;

int __wrap_metrics_write(const char *path, const char *text, size_t size);
int __real_metrics_write(const char *path, const char *text, size_t size);
int __wrap_metrics_make(const struct status_from *from, char **ret, size_t *ret_size);
void __wrap_status_look(const struct status_from *from);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret);
int __real_clock_gettime(clockid_t id, struct timespec *ret);

int __wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
	int r = __real_clock_gettime(id, ret);

	ret->tv_sec += later;
	return r;
}

int __wrap_metrics_write(const char *path, const char *text, size_t size)
{
	char byte;

	if (strncmp(path, "/hung/", 6) == 0) {
		__atomic_add_fetch(&n_hung, 1, __ATOMIC_SEQ_CST);
		return read(hung_pipe[0], &byte, 1) == 1 ? 0 : -EIO;
	}
	__atomic_add_fetch(&n_written, 1, __ATOMIC_SEQ_CST);
	return __real_metrics_write(path, text, size);
}

int __wrap_metrics_make(const struct status_from *from, char **ret, size_t *ret_size)
{
	(void)from;
	n_made++;
	*ret = strdup("text\n");
	assert_non_null(*ret);
	*ret_size = 5;
	return 0;
}

void __wrap_status_look(const struct status_from *from)
{
	(void)from;
}

struct fixture {
	char dir[SCRATCH_DIR_SIZE], path[SCRATCH_DIR_SIZE + 16];
	sd_event *event;
	struct config hung, good;
	struct metrics_writer writer;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(pipe(hung_pipe), 0);
	scratch_dir_make(f->dir);
	snprintf(f->path, sizeof(f->path), "%s/file.prom", f->dir);
	f->hung.metrics_file = "/hung/file.prom";
	f->good.metrics_file = f->path;
	n_hung = n_written = n_made = 0;
	later = 0;
	assert_true(sd_event_new(&f->event) >= 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	metrics_writer_done(&f->writer);
	sd_event_unref(f->event);
	close(hung_pipe[1]);
	scratch_dir_remove(f->dir);
	free(f);
	return 0;
}

/* Runs the loop until the file has been made N times. */
static void run_until_made(struct fixture *f, int n)
{
	while (n_made < n)
		assert_true(sd_event_run(f->event, 10 * SEC) > 0);
}

static void writer_skips_while_a_file_hangs(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(metrics_writer_init(&f->writer, f->event, &f->hung, NULL), 0);
	run_until_made(f, 1);
	metrics_writer_use(&f->writer, &f->hung);
	assert_true(sd_event_run(f->event, 10 * SEC) > 0);
	assert_int_equal(n_made, 1);
	assert_int_equal(f->writer.self.metrics_skipped, 0); /* the write does not take long yet */
	later = 20;
	metrics_writer_use(&f->writer, &f->hung);
	assert_true(sd_event_run(f->event, 10 * SEC) > 0);
	assert_int_equal(n_made, 1);
	assert_int_equal(f->writer.self.metrics_skipped, 1);
	assert_true(f->writer.slow);
	assert_int_equal(write(hung_pipe[1], "", 1), 1);
	while (f->writer.slow)
		assert_true(sd_event_run(f->event, 10 * SEC) > 0);
	metrics_writer_use(&f->writer, &f->hung);
	run_until_made(f, 2);
}

static void writer_use_of_another_file_leaves_the_one_that_hangs(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	assert_int_equal(metrics_writer_init(&f->writer, f->event, &f->hung, NULL), 0);
	run_until_made(f, 1);
	while (__atomic_load_n(&n_hung, __ATOMIC_SEQ_CST) == 0)
		sched_yield();
	metrics_writer_use(&f->writer, &f->good);
	while (__atomic_load_n(&n_written, __ATOMIC_SEQ_CST) == 0)
		assert_true(sd_event_run(f->event, 10 * SEC) > 0);
	while (aside_pending(f->writer.aside) > 0)
		assert_true(sd_event_run(f->event, 10 * SEC) > 0);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(st.st_mode & 07777, 0644);
}

static void metrics_write_leaves_what_others_put_beside_it(void **state)
{
	struct fixture *f = *state;
	char other[SCRATCH_DIR_SIZE + 32];

	metrics_writer_init(&f->writer, f->event, &f->good, NULL);
	snprintf(other, sizeof(other), "%s.tmp", f->path);
	assert_int_equal(mkdir(f->path, 0755), 0); /* so that rename fails */
	assert_int_equal(symlink("/nonexistent/target", other), 0);
	assert_true(__real_metrics_write(f->path, "x", 1) < 0);
	assert_int_equal(access(other, F_OK), -1);
	assert_int_equal(scratch_dir_count(f->dir), 2);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(rmdir(f->path), 0);
	assert_int_equal(__real_metrics_write(f->path, "x", 1), 0);
	assert_int_equal(scratch_dir_count(f->dir), 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(writer_skips_while_a_file_hangs),
		CASE(writer_use_of_another_file_leaves_the_one_that_hangs),
		CASE(metrics_write_leaves_what_others_put_beside_it),
	};

	return cmocka_run_group_tests_name("metrics_writer", tests, NULL, NULL);
}
