#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "decoder/hot/crew.h"
#include "decoder/worker/sandbox.h"
#include "proto/asan.h"
#include "proto/base.h"
#include "proto/channel.h"
#include "tests/support/child.h"

#define CHILD_FAILED 77 /* sandbox_enter */

/* The status of a child that does ACT within the sandbox; FD stays open there. */
static int in_sandbox(int fd, void (*act)(int fd))
{
	const struct sandbox_limits limits = {
		.keep = &fd,
		.n_keep = 1,
		.channel = -1,
		.memory_bytes = 256 << 20,
		.address_bytes = 2ull << 30,
		.cpu_seconds = 10,
		.file_bytes = 4096,
	};
	unsigned missing;
	int status;
	pid_t pid = test_fork();

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

/* Uses what the worker needs: memory, its bundle by mmap, its output, its size. */
static void do_work(int fd)
{
	struct stat st;
	char *p = malloc(1 << 20), *map;

	if (p == NULL)
		_exit(1);
	memset(p, 1, 1 << 20);
	p = realloc(p, 3 << 20);
	free(p);
	if (syscall(SYS_fstat, fd, &st) != 0 || write(fd, "x", 1) != 1)
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

static void work_aside(void *userdata)
{
	*(void **)userdata = malloc(100);
}

static int have_crew(void *userdata)
{
	return crew_new(3, userdata);
}

static void use_crew(struct crew *crew)
{
	struct crew_thread *threads[3];
	void *made[3] = {NULL};

	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		threads[i] = crew_start(crew, work_aside, &made[i]);
		if (threads[i] == NULL)
			_exit(1);
	}
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		crew_finish(threads[i]);
		if (made[i] == NULL)
			_exit(2);
		free(made[i]);
	}
}

static void sandbox_enter_lets_the_worker_have_threads(void **state)
{
	struct crew *crew = NULL;
	const struct sandbox_limits limits = {
		.channel = -1, .memory_bytes = 256 << 20, .start = have_crew, .userdata = &crew};
	unsigned missing;
	int status;
	pid_t pid;

	(void)state;
	mallopt(M_ARENA_MAX, 1); /* as main.c of the worker */
	pid = test_fork();
	if (pid == 0) {
		if (sandbox_enter(&limits, &missing) != 0)
			_exit(CHILD_FAILED);
		use_crew(crew);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
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
#if BUILT_WITH_ASAN
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
	limits.channel = pair[1];
	for (int i = 0; i < 3 * MORE_FDS; i++)
		assert_int_equal(channel_send(pair[0], "x", 1, &pair[0], 1), 0);
	pid = test_fork();
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

static void read_about(pid_t pid, const char *what, char *to, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	n = read(fd, to, size - 1);
	assert_true(n > 0);
	to[n] = '\0';
	close(fd);
}

static void sandbox_enter_drops_identity_and_privileges(void **state)
{
	char status[4096], limits_text[4096], byte;
	struct sandbox_limits limits = {.n_keep = 1, .channel = -1};
	unsigned missing;
	int pair[2], result;
	pid_t pid;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	limits.keep = &pair[1];
	pid = test_fork();
	if (pid == 0) {
		if (sandbox_enter(&limits, &missing) != 0)
			_exit(CHILD_FAILED);
		byte = (char)missing;
		_exit(write(pair[1], &byte, 1) != 1 || read(pair[1], &byte, 1) != 1);
	}
	close(pair[1]);
	assert_int_equal(read(pair[0], &byte, 1), 1);
	read_about(pid, "status", status, sizeof(status));
	assert_true(status_says(status, "\nNoNewPrivs:\t", "1"));
	assert_true(status_says(status, "\nSeccomp:\t", "2"));
	read_about(pid, "limits", limits_text, sizeof(limits_text));
	assert_true(status_says(limits_text, "\nMax processes             ", "0 "));
	assert_true(status_says(limits_text, "\nMax core file size        ", "0 "));
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

/* Keeps the capability of a recorder that may trace but is not root. */
static bool keep_a_capability(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
		{.effective = 1u << CAP_SYS_PTRACE,
		 .permitted = 1u << CAP_SYS_PTRACE,
		 .inheritable = 1u << CAP_SYS_PTRACE}};

	return prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && setresuid(1, 1, 1) == 0 &&
	       syscall(SYS_capset, &header, data) == 0 &&
	       prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_PTRACE, 0, 0) == 0;
}

static void sandbox_enter_drops_capabilities_without_root(void **state)
{
	char status[4096], byte = 0;
	struct sandbox_limits limits = {.n_keep = 1, .channel = -1};
	unsigned missing;
	int pair[2], result;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	limits.keep = &pair[1];
	pid = test_fork();
	if (pid == 0) {
		if (!keep_a_capability())
			_exit(CHILD_FAILED + 1);
		if (sandbox_enter(&limits, &missing) != 0)
			_exit(CHILD_FAILED);
		_exit(write(pair[1], &byte, 1) != 1 || read(pair[1], &byte, 1) != 1);
	}
	close(pair[1]);
	if (read(pair[0], &byte, 1) != 1) {
		/* A root that may not keep it. */
		assert_int_equal(waitpid(pid, &result, 0), pid);
		assert_int_equal(WEXITSTATUS(result), CHILD_FAILED + 1);
		close(pair[0]);
		skip();
	}
	read_about(pid, "status", status, sizeof(status));
	for (size_t i = 0; i < 4; i++) {
		static const char *const keys[] = {"\nCapInh:\t", "\nCapPrm:\t", "\nCapEff:\t",
						   "\nCapAmb:\t"};

		assert_true(status_says(status, keys[i], "0000000000000000\n"));
	}
	assert_int_equal(write(pair[0], "", 1), 1);
	assert_int_equal(waitpid(pid, &result, 0), pid);
	assert_int_equal(result, 0);
	close(pair[0]);
}

/* Nothing of a terminal or a pipe is left but standard error. */
static void do_use_standard(int fd)
{
	char byte;

	if (write(fd, "", 1) != 1)
		_exit(1);
	if (read(STDIN_FILENO, &byte, 1) != 0)
		_exit(2);
	if (write(STDOUT_FILENO, "said\n", 5) != 5)
		_exit(3);
}

static void sandbox_enter_blinds_standard_input_and_output(void **state)
{
	int in[2], out[2], fd = memfd_create("t", 0), status;
	int before[2] = {dup(STDIN_FILENO), dup(STDOUT_FILENO)};
	char byte;

	(void)state;
	if (access("/dev/null", R_OK | W_OK) != 0)
		skip();
	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	assert_int_equal(write(in[1], "typed", 5), 5);
	fflush(stdout);
	dup2(in[0], STDIN_FILENO);
	dup2(out[1], STDOUT_FILENO);
	status = in_sandbox(fd, do_use_standard);
	dup2(before[0], STDIN_FILENO);
	dup2(before[1], STDOUT_FILENO);
	close(out[1]);
	assert_int_equal(status, 0);
	assert_int_equal(read(out[0], &byte, 1), 0);
	close(out[0]);
	close(in[0]);
	close(in[1]);
	close(before[0]);
	close(before[1]);
	close(fd);
}

/* The lowest page of the main thread's stack that there is; what is above stays. */
static char *touch_down(char *from)
{
	static char *volatile at;
	size_t i;

	for (i = 0; i < 16u << 20; i += 4096) {
		at = from - i;
		*at = 1;
	}
	return at;
}

/* Cut off what grew, and let that grow. */
static void do_grow_stack(int fd)
{
	char here, *page = (char *)((uintptr_t)&here & ~(uintptr_t)4095);

	for (int i = 0; i < 4; i++) {
		page = touch_down(page) + 4096;
		if (munmap(page, 4096) != 0)
			_exit(1);
	}
	(void)fd;
}

static void do_use_stack(int fd)
{
	char here, *page = (char *)((uintptr_t)&here & ~(uintptr_t)4095);

	for (size_t i = 0; i < 6u << 20; i += 4096)
		*(volatile char *)(page - i) = 1;
	(void)fd;
}

static void sandbox_enter_leaves_a_stack_that_does_not_grow(void **state)
{
	int fd = memfd_create("t", 0), status;

	(void)state;
	status = in_sandbox(fd, do_use_stack);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
#if !BUILT_WITH_ASAN
	/* These have memory without a limit anyway. */
	status = in_sandbox(fd, do_grow_stack);
	assert_true(WIFSIGNALED(status));
#else
	(void)do_grow_stack;
#endif
	close(fd);
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
	pid_t pid = test_fork();

	(void)state;
	if (pid == 0)
		_exit(sandbox_enter(&limits, &missing) == -EINVAL ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sandbox_enter_lets_the_worker_work),
		cmocka_unit_test(sandbox_enter_lets_the_worker_have_threads),
		cmocka_unit_test(sandbox_enter_limits_memory_that_can_be_written_to),
		cmocka_unit_test(sandbox_enter_lets_so_many_more_fds_come),
		cmocka_unit_test(sandbox_enter_closes_all_other_fds),
		cmocka_unit_test(sandbox_enter_drops_identity_and_privileges),
		cmocka_unit_test(sandbox_enter_drops_capabilities_without_root),
		cmocka_unit_test(sandbox_enter_blinds_standard_input_and_output),
		cmocka_unit_test(sandbox_enter_leaves_a_stack_that_does_not_grow),
		cmocka_unit_test(sandbox_enter_limits_the_output),
		cmocka_unit_test(sandbox_enter_too_many_fds_is_refused),
	};

	return cmocka_run_group_tests_name("sandbox", tests, NULL, NULL);
}
