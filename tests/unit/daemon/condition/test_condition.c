/*
 * Each kind of condition, from its settings to its event: the event of the kernel, of a file or of
 * a program, and near misses, of which a barrier shows that they were seen.
 */
#include "daemon/condition/condition.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/support/child.h"
#include "tests/unit/daemon/scratch_dir.h"

struct fixture {
	char dir[SCRATCH_DIR_SIZE];
	sd_event *event;
	struct condition_paths paths;
	struct trigger_object object;
	struct condition *condition;
	int n_events, n_lost;
	struct condition_event last;
	char why[CONDITION_WHY_SIZE];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	scratch_dir_make(f->dir);
	assert_true(sd_event_new(&f->event) >= 0);
	f->paths = condition_host_paths;
	trigger_object_init(&f->object, "test", TRIGGER_ON_CONTROL, false);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	condition_free(f->condition);
	trigger_object_done(&f->object);
	sd_event_unref(f->event);
	scratch_dir_remove(f->dir);
	free(f);
	return 0;
}

static void on_event(void *userdata, const struct condition_event *event)
{
	struct fixture *f = userdata;

	f->n_events++;
	f->last = *event;
}

static void on_lost(void *userdata, const char *why)
{
	struct fixture *f = userdata;

	f->n_lost++;
	snprintf(f->why, sizeof(f->why), "%s", why);
}

static void set(struct fixture *f, enum trigger_key_id key, const char *text)
{
	assert_int_equal(trigger_object_set(&f->object, key, text, 1), 0);
}

/* Sets KEY to the file NAME of the test's directory. */
static void set_path(struct fixture *f, enum trigger_key_id key, const char *name)
{
	char path[SCRATCH_DIR_SIZE + 64];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	set(f, key, path);
}

static int arm(struct fixture *f)
{
	const struct condition_handler handler = {f, on_event, on_lost};
	struct trigger_problem problem;

	assert_false(trigger_object_check(&f->object, &problem));
	return condition_new(f->event, &f->paths, &f->object, &handler, &f->condition, f->why);
}

static void run_until_event(struct fixture *f, int n)
{
	while (f->n_events < n && f->n_lost == 0)
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
	assert_int_equal(f->n_events, n);
}

static void write_file(const struct fixture *f, const char *name, const char *text)
{
	char path[SCRATCH_DIR_SIZE + 64], other[SCRATCH_DIR_SIZE + 64];
	FILE *file;

	/* As exporters do: another file takes its place. */
	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	snprintf(other, sizeof(other), "%s/%s.new", f->dir, name);
	file = fopen(other, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(rename(other, path), 0);
}

/* --- path --- */

static void condition_of_path_a_file_that_appears_is_told(void **state)
{
	struct fixture *f = *state;
	char wanted[SCRATCH_DIR_SIZE + 64];

	set_path(f, TRIGGER_PATH_APPEARS, "*.crash");
	assert_int_equal(arm(f), 0);
	write_file(f, "other", "");
	write_file(f, ".hidden.crash", "");
	write_file(f, "a.crash", "");
	run_until_event(f, 1);
	snprintf(wanted, sizeof(wanted), "%s/a.crash appeared", f->dir);
	assert_string_equal(f->last.what, wanted);
	assert_false(f->last.test);
}

static void condition_of_path_that_exists_already_waits_for_the_next(void **state)
{
	struct fixture *f = *state;

	write_file(f, "a", "");
	set_path(f, TRIGGER_PATH_APPEARS, "[ab]");
	assert_int_equal(arm(f), 0);
	write_file(f, "b", "");
	run_until_event(f, 1);
	assert_non_null(strstr(f->last.what, "/b appeared"));
}

static void condition_of_path_without_its_folder_is_refused(void **state)
{
	struct fixture *f = *state;

	set_path(f, TRIGGER_PATH_APPEARS, "no/a");
	assert_int_equal(arm(f), -ENOENT);
	assert_non_null(strstr(f->why, "/no: No such file or directory"));
}

static void condition_of_path_whose_folder_goes_is_lost(void **state)
{
	struct fixture *f = *state;
	char path[SCRATCH_DIR_SIZE + 64];

	snprintf(path, sizeof(path), "%s/folder", f->dir);
	assert_int_equal(mkdir(path, 0700), 0);
	set_path(f, TRIGGER_PATH_APPEARS, "folder/a");
	assert_int_equal(arm(f), 0);
	/* What came before is told first. */
	write_file(f, "folder/a", "");
	scratch_dir_remove(path);
	while (f->n_lost == 0)
		assert_true(sd_event_run(f->event, UINT64_MAX) >= 0);
	assert_int_equal(f->n_events, 1);
	assert_non_null(strstr(f->why, "path: "));
}

static void condition_test_of_path_is_told_as_a_test(void **state)
{
	struct fixture *f = *state;

	set_path(f, TRIGGER_PATH_APPEARS, "a");
	assert_int_equal(arm(f), 0);
	assert_int_equal(condition_test(f->condition, f->why), 0);
	run_until_event(f, 1);
	assert_true(f->last.test);
	assert_int_equal(scratch_dir_count(f->dir), 0);
}

/* --- fifo --- */

static void condition_of_fifo_each_write_is_told(void **state)
{
	struct fixture *f = *state;
	int fd;

	set_path(f, TRIGGER_FIFO, "fifo");
	assert_int_equal(mkfifo(f->object.values[TRIGGER_FIFO].text, 0600), 0);
	assert_int_equal(arm(f), 0);
	for (int i = 1; i <= 2; i++) {
		fd = open(f->object.values[TRIGGER_FIFO].text, O_WRONLY | O_NONBLOCK);
		assert_true(fd >= 0);
		assert_int_equal(write(fd, "x\n", 2), 2);
		/* The writer goes; nothing stays ready behind it. */
		close(fd);
		run_until_event(f, i);
	}
	assert_int_equal(sd_event_run(f->event, 0), 0);
	assert_int_equal(f->n_events + f->n_lost, 2);
}

static void condition_of_fifo_that_is_a_file_is_refused(void **state)
{
	struct fixture *f = *state;

	write_file(f, "file", "");
	set_path(f, TRIGGER_FIFO, "file");
	assert_int_equal(arm(f), -EINVAL);
	assert_non_null(strstr(f->why, "is not a FIFO"));
}

static void condition_test_of_fifo_is_told_as_a_test(void **state)
{
	struct fixture *f = *state;

	set_path(f, TRIGGER_FIFO, "fifo");
	assert_int_equal(mkfifo(f->object.values[TRIGGER_FIFO].text, 0600), 0);
	assert_int_equal(arm(f), 0);
	assert_int_equal(condition_test(f->condition, f->why), 0);
	run_until_event(f, 1);
	assert_true(f->last.test);
}

/* --- metric --- */

static void set_metric(struct fixture *f)
{
	set_path(f, TRIGGER_METRIC_FILE, "m.prom");
	set(f, TRIGGER_METRIC, "load");
	set(f, TRIGGER_METRIC_ABOVE, "5");
}

static void condition_of_metric_a_crossing_is_told_once(void **state)
{
	struct fixture *f = *state;

	set_metric(f);
	write_file(f, "m.prom", "load 1\n");
	assert_int_equal(arm(f), 0);
	write_file(f, "m.prom", "load 7\n");
	run_until_event(f, 1);
	assert_string_equal(f->last.what, "load is 7, above 5");
	/* The test has the file read: 8 is still above. */
	write_file(f, "m.prom", "load 8\n");
	assert_int_equal(condition_test(f->condition, f->why), 0);
	run_until_event(f, 2);
	assert_true(f->last.test);
	assert_string_equal(f->last.what, "load is 8");
}

static void condition_of_metric_without_the_file_is_refused(void **state)
{
	struct fixture *f = *state;

	set_metric(f);
	assert_int_equal(arm(f), -ENOENT);
}

static void condition_of_metric_that_is_too_large_is_refused(void **state)
{
	struct fixture *f = *state;

	set_metric(f);
	write_file(f, "m.prom", "load 1\n");
	assert_int_equal(truncate(f->object.values[TRIGGER_METRIC_FILE].text, (1 << 20) + 1), 0);
	assert_int_equal(arm(f), -EFBIG);
}

static void condition_test_of_metric_without_the_series_says_so(void **state)
{
	struct fixture *f = *state;

	set_metric(f);
	write_file(f, "m.prom", "other 1\n");
	assert_int_equal(arm(f), 0);
	assert_int_equal(condition_test(f->condition, f->why), -ENOENT);
	assert_non_null(strstr(f->why, "has no load"));
}

/* --- kernel-log --- */

static void log_write(const char *text)
{
	int fd = open("/dev/kmsg", O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void condition_of_kernel_log_a_matching_line_is_told(void **state)
{
	struct fixture *f = *state;
	char pattern[64], line[64];

	if (access("/dev/kmsg", R_OK | W_OK) < 0)
		skip();
	snprintf(pattern, sizeof(pattern), "*of ptsnap-%d-[0-9]*", (int)getpid());
	snprintf(line, sizeof(line), "a line of ptsnap-%d-0\n", (int)getpid());
	set(f, TRIGGER_KERNEL_LOG_MATCH, pattern);
	/* In the log before. */
	log_write(line);
	assert_int_equal(arm(f), 0);
	log_write("a line that nobody waits for\n");
	snprintf(line, sizeof(line), "a line of ptsnap-%d-1\n", (int)getpid());
	log_write(line);
	run_until_event(f, 1);
	line[strlen(line) - 1] = '\0';
	assert_string_equal(f->last.what + strlen("kernel log: "), line);
}

/* A process can write what the kernel would write, but not in its name; the test's own line behind
 * it shows that the record was read. */
static void condition_test_of_kernel_log_is_told_and_a_forged_report_is_not(void **state)
{
	struct fixture *f = *state;

	if (access("/dev/kmsg", R_OK | W_OK) < 0)
		skip();
	set(f, TRIGGER_KERNEL_LOG, "oom-kill");
	assert_int_equal(arm(f), 0);
	log_write("<3>Out of memory: Killed process 1 (forged by a test of ptsnap)\n");
	assert_int_equal(condition_test(f->condition, f->why), 0);
	run_until_event(f, 1);
	assert_true(f->last.test);
}

static void condition_of_kernel_log_without_the_log_is_refused(void **state)
{
	struct fixture *f = *state;

	f->paths.kernel_log = "/no/kmsg";
	set(f, TRIGGER_KERNEL_LOG, "oops");
	assert_int_equal(arm(f), -ENOENT);
	assert_string_equal(f->why, "/no/kmsg: No such file or directory");
}

/* --- pressure --- */

/* A child that wants the CPU on which we are, for ever. */
static pid_t spin(const cpu_set_t *cpu)
{
	pid_t pid = test_fork();

	if (pid == 0) {
		sched_setaffinity(0, sizeof(*cpu), cpu);
		for (;;)
			__asm__ volatile("");
	}
	return pid;
}

static void condition_of_pressure_two_for_one_cpu_are_told(void **state)
{
	struct fixture *f = *state;
	cpu_set_t cpu;
	pid_t a, b;
	int r;

	set(f, TRIGGER_PRESSURE, "cpu some");
	set(f, TRIGGER_PRESSURE_STALL, "1ms");
	set(f, TRIGGER_PRESSURE_WINDOW, "2s");
	r = arm(f);
	if (r == -ENOENT || r == -EOPNOTSUPP || r == -EPERM || r == -EACCES)
		skip();
	assert_int_equal(r, 0);
	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	a = spin(&cpu);
	b = spin(&cpu);
	run_until_event(f, 1);
	kill(a, SIGKILL);
	kill(b, SIGKILL);
	waitpid(a, NULL, 0);
	waitpid(b, NULL, 0);
	assert_string_equal(f->last.what,
			    "cpu pressure: some tasks stalled for 1.000 ms of 2000 ms");
}

static void condition_of_pressure_without_psi_says_so(void **state)
{
	struct fixture *f = *state;

	f->paths.pressure = "/no/pressure";
	set(f, TRIGGER_PRESSURE, "io full");
	assert_int_equal(arm(f), -ENOENT);
	assert_non_null(strstr(f->why, "/no/pressure/io: "));
	assert_non_null(strstr(f->why, "the kernel has no PSI"));
}

static void condition_test_of_pressure_is_refused_as_harmful(void **state)
{
	struct fixture *f = *state;

	set(f, TRIGGER_PRESSURE, "memory full");
	if (arm(f) < 0)
		skip();
	assert_int_equal(condition_test(f->condition, f->why), -EOPNOTSUPP);
	assert_non_null(strstr(f->why, "pressure cannot be made without harm"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(condition_of_path_a_file_that_appears_is_told),
		CASE(condition_of_path_that_exists_already_waits_for_the_next),
		CASE(condition_of_path_without_its_folder_is_refused),
		CASE(condition_of_path_whose_folder_goes_is_lost),
		CASE(condition_test_of_path_is_told_as_a_test),
		CASE(condition_of_fifo_each_write_is_told),
		CASE(condition_of_fifo_that_is_a_file_is_refused),
		CASE(condition_test_of_fifo_is_told_as_a_test),
		CASE(condition_of_metric_a_crossing_is_told_once),
		CASE(condition_of_metric_without_the_file_is_refused),
		CASE(condition_of_metric_that_is_too_large_is_refused),
		CASE(condition_test_of_metric_without_the_series_says_so),
		CASE(condition_of_kernel_log_a_matching_line_is_told),
		CASE(condition_test_of_kernel_log_is_told_and_a_forged_report_is_not),
		CASE(condition_of_kernel_log_without_the_log_is_refused),
		CASE(condition_of_pressure_two_for_one_cpu_are_told),
		CASE(condition_of_pressure_without_psi_says_so),
		CASE(condition_test_of_pressure_is_refused_as_harmful),
	};

	return cmocka_run_group_tests_name("condition", tests, NULL, NULL);
}
