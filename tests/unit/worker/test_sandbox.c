#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "decoder/ahead.h"
#include "decoder/worker/sandbox.h"
#include "proto/base.h"
#include "proto/channel.h"

#define CHILD_FAILED 77 /* sandbox_enter */

/* The status of a child that does ACT within the sandbox; FD stays open there. */
static int in_sandbox(int fd, void (*act)(int fd))
{
	const struct sandbox_limits limits = {
		.keep = &fd,
		.n_keep = 1,
		.memory_bytes = 256 << 20,
		.address_bytes = 2ull << 30,
		.cpu_seconds = 10,
		.file_bytes = 4096,
	};
	unsigned missing;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (sandbox_enter(&limits, &missing) != 0)
			_exit(CHILD_FAILED);
		act(fd);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void do_open(int fd)
{
	(void)fd;
	(void)open("/dev/null", O_RDONLY);
}

static void do_openat2(int fd)
{
	(void)syscall(SYS_openat2, fd, "x", NULL, 0);
}

static void do_socket(int fd)
{
	(void)fd;
	(void)socket(AF_UNIX, SOCK_STREAM, 0);
}

static void do_exec(int fd)
{
	char *argv[] = {(char *)(uintptr_t) "true", NULL};

	(void)fd;
	(void)execve("/bin/true", argv, argv + 1);
}

static void do_map_exec(int fd)
{
	(void)fd;
	(void)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void do_protect_exec(int fd)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)fd;
	(void)mprotect(p, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static void do_fork(int fd)
{
	(void)fd;
	(void)syscall(SYS_fork);
}

static void do_clone(int fd)
{
	(void)fd;
	(void)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
}

/* A thread, and more: it would have files of its own. */
static void do_clone_files(int fd)
{
	(void)fd;
	(void)syscall(SYS_clone, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD, NULL, NULL, NULL, 0);
}

#ifndef __SANITIZE_ADDRESS__
static void do_sigaction(int fd)
{
	(void)fd;
	(void)signal(SIGTERM, SIG_IGN);
}
#endif

static void do_kill_parent(int fd)
{
	(void)fd;
	(void)kill(getppid(), 0);
}

static void do_ptrace(int fd)
{
	(void)fd;
	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static void do_unlink(int fd)
{
	(void)fd;
	(void)unlink("/nonexistent");
}

static void do_map_shared(int fd)
{
	(void)fd;
	(void)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void do_map_stack(int fd)
{
	(void)fd;
	(void)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN,
		   -1, 0);
}

static const struct {
	const char *name;
	void (*act)(int fd);
} forbidden[] = {
	{"open", do_open},
	{"openat2", do_openat2},
	{"socket", do_socket},
	{"execve", do_exec},
	{"mmap exec", do_map_exec},
	{"mprotect exec", do_protect_exec},
	{"fork", do_fork},
	{"kill", do_kill_parent},
	{"ptrace", do_ptrace},
	{"unlink", do_unlink},
	{"mmap shared", do_map_shared},
	{"mmap stack", do_map_stack},
	{"clone", do_clone},
	{"clone files", do_clone_files},
#ifndef __SANITIZE_ADDRESS__
	{"sigaction", do_sigaction},
#endif
};

static void sandbox_enter_forbidden_calls_kill(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(forbidden); i++) {
		int status = in_sandbox(2, forbidden[i].act);

		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
			fail_msg("%s: status 0x%x", forbidden[i].name, status);
	}
}

/* What the worker needs: memory, its bundle by mmap, its output, its size. */
static void do_work(int fd)
{
	struct stat st;
	char *p = malloc(1 << 20), *map;

	if (p == NULL)
		_exit(1);
	memset(p, 1, 1 << 20);
	p = realloc(p, 3 << 20);
	free(p);
	if (fstat(fd, &st) != 0 || write(fd, "x", 1) != 1)
		_exit(2);
	map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED || map[0] != 'x' || munmap(map, 4096) != 0)
		_exit(3);
}

static void sandbox_enter_lets_the_worker_work(void **state)
{
	int fd = memfd_create("t", 0), status;

	(void)state;
	status = in_sandbox(fd, do_work);
	close(fd);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void *work_aside(void *userdata)
{
	char *p = malloc(100);

	if (p != NULL)
		*(char **)userdata = p;
	return userdata;
}

static void do_threads(int fd)
{
	pthread_t threads[3];
	char *made[3] = {0};
	void *ret;

	(void)fd;
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		if (pthread_create(&threads[i], NULL, work_aside, &made[i]) != 0)
			_exit(1);
	}
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		if (pthread_join(threads[i], &ret) != 0 || ret != &made[i] || made[i] == NULL)
			_exit(2);
		free(made[i]);
	}
	/* Nobody has any other way to make one, or to ask how many CPUs there are. */
	if (syscall(SYS_clone3, NULL, 0) != -1 || errno != ENOSYS || ahead_count_cpus() == 0)
		_exit(3);
}

static void sandbox_enter_lets_the_worker_have_threads(void **state)
{
	int status;

	(void)state;
	mallopt(M_ARENA_MAX, 1); /* as main.c of the worker */
	status = in_sandbox(2, do_threads);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A limit on what can be written to, and room for addresses beyond it. */
static void do_use_memory(int fd)
{
	const size_t half = 128 << 20, much = 1 << 30;
	char *p = mmap(NULL, much, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)fd;
	if (p == MAP_FAILED)
		_exit(1);
	if (mprotect(p + half, half, PROT_READ | PROT_WRITE) != 0)
		_exit(2);
	memset(p + half, 1, half);
	if (p[0] != 0 || p[much - 1] != 0)
		_exit(3);
	if (mprotect(p + 2 * half, half, PROT_READ | PROT_WRITE) == 0 || errno != ENOMEM)
		_exit(4);
	if (mmap(NULL, half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	    MAP_FAILED)
		_exit(5);
	if (mmap(NULL, 2 * much, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		_exit(6);
}

static void sandbox_enter_limits_memory_that_can_be_written_to(void **state)
{
	int status;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	skip();
#endif
	status = in_sandbox(2, do_use_memory);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define MORE_FDS 5

/* FD is one end of a pair whose other end sends stdout again and again. */
static void take_fds(int fd)
{
	int n = 0;

	for (;;) {
		int got;
		char byte;
		size_t size, n_fds;

		if (channel_receive(fd, &byte, 1, &size, &got, 1, &n_fds) != 0 || n_fds != 1)
			break;
		n++;
	}
	_exit(n);
}

static void sandbox_enter_lets_so_many_more_fds_come(void **state)
{
	int pair[2], status;
	struct sandbox_limits limits = {.keep = &pair[1], .n_keep = 1, .more_fds = MORE_FDS};
	unsigned missing;
	pid_t pid;

	(void)state;
	assert_int_equal(channel_pair(pair), 0);
	for (int i = 0; i < 3 * MORE_FDS; i++)
		assert_int_equal(channel_send(pair[0], "x", 1, &pair[0], 1), 0);
	pid = fork();
	if (pid == 0) {
		if (sandbox_enter(&limits, &missing) != 0)
			_exit(CHILD_FAILED);
		take_fds(pair[1]);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	/* Between the standard ones and this one may be numbers that are free. */
	assert_in_range(WEXITSTATUS(status), MORE_FDS, MORE_FDS + pair[1] - 3);
	close(pair[0]);
	close(pair[1]);
}

static void do_close_next(int fd)
{
	if (close(fd) != 0)
		_exit(1);
	if (close(fd + 1) == 0 || errno != EBADF)
		_exit(2);
}

static void sandbox_enter_closes_all_other_fds(void **state)
{
	int fd = memfd_create("a", 0), other = dup(fd), status;

	(void)state;
	assert_int_equal(other, fd + 1);
	status = in_sandbox(fd, do_close_next);
	close(fd);
	close(other);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* The line of /proc/PID/status that begins with KEY says VALUE. */
static bool status_says(const char *status, const char *key, const char *value)
{
	const char *line = strstr(status, key);

	return line != NULL && strncmp(line + strlen(key), value, strlen(value)) == 0;
}

static void read_status(pid_t pid, char *to, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	n = read(fd, to, size - 1);
	assert_true(n > 0);
	to[n] = '\0';
	close(fd);
}

static void sandbox_enter_drops_identity_and_privileges(void **state)
{
	char status[4096], byte;
	struct sandbox_limits limits = {.n_keep = 1};
	unsigned missing;
	int pair[2], result;
	pid_t pid;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	limits.keep = &pair[1];
	pid = fork();
	if (pid == 0) {
		if (sandbox_enter(&limits, &missing) != 0)
			_exit(CHILD_FAILED);
		byte = (char)missing;
		_exit(write(pair[1], &byte, 1) != 1 || read(pair[1], &byte, 1) != 1);
	}
	close(pair[1]);
	assert_int_equal(read(pair[0], &byte, 1), 1);
	read_status(pid, status, sizeof(status));
	assert_true(status_says(status, "\nNoNewPrivs:\t", "1"));
	assert_true(status_says(status, "\nSeccomp:\t", "2"));
	if (geteuid() == 0 && !(byte & SANDBOX_NO_UID)) {
		assert_true(status_says(status, "\nUid:\t", "65534\t65534\t65534\t65534"));
		assert_true(status_says(status, "\nGid:\t", "65534\t65534\t65534\t65534"));
		assert_true(status_says(status, "\nCapEff:\t", "0000000000000000"));
	}
	assert_int_equal(write(pair[0], "", 1), 1);
	assert_int_equal(waitpid(pid, &result, 0), pid);
	assert_int_equal(result, 0);
	close(pair[0]);
}

static void do_write_much(int fd)
{
	static char page[8192];

	if (write(fd, page, sizeof(page)) != 4096)
		_exit(1);
	if (write(fd, page, 1) != -1 || errno != EFBIG)
		_exit(2);
}

static void sandbox_enter_limits_the_output(void **state)
{
	char name[] = "/tmp/ptsnap-test-XXXXXX";
	int fd = mkstemp(name), status;

	(void)state;
	assert_true(fd >= 0);
	unlink(name);
	status = in_sandbox(fd, do_write_much);
	close(fd);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void sandbox_enter_too_many_fds_is_refused(void **state)
{
	int keep[SANDBOX_MAX_KEEP + 1] = {0};
	const struct sandbox_limits limits = {.keep = keep, .n_keep = ARRAY_SIZE(keep)};
	unsigned missing;
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(sandbox_enter(&limits, &missing) == -EINVAL ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sandbox_enter_forbidden_calls_kill),
		cmocka_unit_test(sandbox_enter_lets_the_worker_work),
		cmocka_unit_test(sandbox_enter_lets_the_worker_have_threads),
		cmocka_unit_test(sandbox_enter_limits_memory_that_can_be_written_to),
		cmocka_unit_test(sandbox_enter_lets_so_many_more_fds_come),
		cmocka_unit_test(sandbox_enter_closes_all_other_fds),
		cmocka_unit_test(sandbox_enter_drops_identity_and_privileges),
		cmocka_unit_test(sandbox_enter_limits_the_output),
		cmocka_unit_test(sandbox_enter_too_many_fds_is_refused),
	};

	return cmocka_run_group_tests_name("sandbox", tests, NULL, NULL);
}
