/*
 * The calls that the sandbox forbids, one by one: a worker that tries one dies of SIGSYS with all
 * its threads, whichever of them tried. The arguments are such that the call would do something
 * without a sandbox, or fail harmlessly where that would be too much.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "decoder/hot/crew.h"
#include "decoder/worker/sandbox.h"
#include "proto/asan.h"
#include "proto/base.h"
#include "proto/channel.h"
#include "tests/support/child.h"

#define CHILD_FAILED 77
#define THREADS	     2
#define X32_BIT	     0x40000000

#define PAGE	    4096
#define PRIVATE	    (MAP_PRIVATE | MAP_ANONYMOUS)
#define THREAD_LIKE (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)
/* As glibc makes threads. */
#define GLIBC_LIKE \
	(THREAD_LIKE | CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

#if BUILT_WITH_ASAN
#define SANITIZED true
#else
#define SANITIZED false
#endif

static char null_file[] = "/dev/null", missing[] = "/nonexistent", true_file[] = "/bin/true";
static char *no_strings[] = {NULL};
static char page[PAGE] __attribute__((aligned(PAGE)));
static uint64_t zeros[32];
static struct msghdr message;
static const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/x"};

#define P(x) (long)(uintptr_t)(x)

struct call {
	const char *name;
	long number;
	long args[6];
	bool sanitizers; /* their runtime may */
};

/* clang-format off */
static const struct call calls[] = {
	/* Files. */
	{"open", SYS_open, {P(null_file), O_RDONLY}, false},
	{"openat", SYS_openat, {AT_FDCWD, P(null_file), O_RDONLY}, false},
	{"openat2", SYS_openat2, {AT_FDCWD, P(null_file), P(zeros), 24}, false},
	{"creat", SYS_creat, {P(missing), 0}, false},
	{"open_by_handle_at", SYS_open_by_handle_at, {AT_FDCWD, P(zeros), 0}, false},
	{"name_to_handle_at", SYS_name_to_handle_at, {AT_FDCWD, P(null_file), P(zeros), P(zeros), 0}, false},
	{"stat", SYS_stat, {P(null_file), P(page)}, false},
	{"lstat", SYS_lstat, {P(null_file), P(page)}, false},
	{"newfstatat", SYS_newfstatat, {AT_FDCWD, P(null_file), P(page), 0}, true},
	{"newfstatat of a path, with the flag of fstat", SYS_newfstatat,
	 {AT_FDCWD, P(null_file), P(page), AT_EMPTY_PATH}, true},
	{"statx", SYS_statx, {AT_FDCWD, P(null_file), 0, 0x7ff, P(page)}, false},
	{"access", SYS_access, {P(null_file), 0}, false},
	{"faccessat2", SYS_faccessat2, {AT_FDCWD, P(null_file), 0, 0}, false},
	{"readlink", SYS_readlink, {P(null_file), P(page), PAGE}, false},
	{"getdents64", SYS_getdents64, {0, P(page), PAGE}, false},
	{"getcwd", SYS_getcwd, {P(page), PAGE}, false},
	{"unlink", SYS_unlink, {P(missing)}, false},
	{"rename", SYS_rename, {P(missing), P(missing)}, false},
	{"mkdir", SYS_mkdir, {P(null_file), 0}, false},
	{"link", SYS_link, {P(missing), P(missing)}, false},
	{"symlink", SYS_symlink, {P(missing), P(null_file)}, false},
	{"mknod", SYS_mknod, {P(null_file), 0, 0}, false},
	{"chmod", SYS_chmod, {P(missing), 0}, false},
	{"chown", SYS_chown, {P(missing), 0, 0}, false},
	{"utimensat", SYS_utimensat, {AT_FDCWD, P(missing), 0, 0}, false},
	{"setxattr", SYS_setxattr, {P(missing), P(missing), P(page), 1, 0}, false},
	{"chdir", SYS_chdir, {P(missing)}, false},
	{"chroot", SYS_chroot, {P(missing)}, false},
	{"mount", SYS_mount, {P(missing), P(missing), 0, 0, 0}, false},
	{"umount2", SYS_umount2, {P(missing), 0}, false},
	{"pivot_root", SYS_pivot_root, {P(missing), P(missing)}, false},
	{"fsopen", SYS_fsopen, {P(missing), 0}, false},
	{"open_tree", SYS_open_tree, {AT_FDCWD, P(missing), 0}, false},
	{"truncate", SYS_truncate, {P(missing), 0}, false},
	{"memfd_create", SYS_memfd_create, {P(missing), 0}, false},
	{"memfd_secret", 447, {0}, false},
	/* Files that are there: only to be read, written at their position, closed. */
	{"ftruncate", SYS_ftruncate, {2, 0}, false},
	{"fallocate", SYS_fallocate, {2, 0, 0, 1}, false},
	{"pwrite64", SYS_pwrite64, {2, P(page), 0, 0}, false},
	{"fchmod", SYS_fchmod, {-1, 0}, false},
	{"flock", SYS_flock, {-1, 0}, false},
	{"dup", SYS_dup, {2}, false},
	{"dup2", SYS_dup2, {2, 9}, false},
	{"dup3", SYS_dup3, {2, 9, 0}, false},
	{"fcntl F_SETFL", SYS_fcntl, {2, F_SETFL, O_NONBLOCK}, false},
	{"fcntl F_DUPFD", SYS_fcntl, {2, F_DUPFD, 9}, false},
	{"fcntl F_SETOWN", SYS_fcntl, {2, F_SETOWN, 1}, false},
	{"ioctl", SYS_ioctl, {2, 0x5401, P(page)}, false},
	{"splice", SYS_splice, {0, 0, 1, 0, 1, 0}, false},
	{"vmsplice", SYS_vmsplice, {1, 0, 0, 0}, false},
	{"sendfile", SYS_sendfile, {1, 0, 0, 1}, false},
	{"copy_file_range", SYS_copy_file_range, {0, 0, 1, 0, 1, 0}, false},
	/* Others to talk to. */
	{"socket", SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, false},
	{"socket inet", SYS_socket, {AF_INET, SOCK_STREAM, 0}, false},
	{"socketpair", SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0, P(page)}, false},
	{"connect", SYS_connect, {2, P(&address), sizeof(address)}, false},
	{"bind", SYS_bind, {2, P(&address), sizeof(address)}, false},
	{"listen", SYS_listen, {2, 1}, false},
	{"accept4", SYS_accept4, {2, 0, 0, 0}, false},
	{"sendto", SYS_sendto, {2, P(page), 1, 0, 0, 0}, false},
	{"recvfrom", SYS_recvfrom, {2, P(page), 1, 0, 0, 0}, false},
	{"sendmmsg", SYS_sendmmsg, {2, P(page), 1, 0}, false},
	{"recvmmsg", SYS_recvmmsg, {2, P(page), 1, 0, 0}, false},
	{"sendmsg elsewhere", SYS_sendmsg, {2, P(&message), 0}, false},
	{"recvmsg elsewhere", SYS_recvmsg, {2, P(&message), 0}, false},
	{"setsockopt", SYS_setsockopt, {2, 1, 1, P(page), 4}, false},
	{"pipe2", SYS_pipe2, {P(page), 0}, false},
	{"shmget", SYS_shmget, {0, PAGE, 0600}, false},
	{"shmat", SYS_shmat, {0, 0, 0}, false},
	{"msgget", SYS_msgget, {0, 0600}, false},
	{"semget", SYS_semget, {0, 1, 0600}, false},
	{"mq_open", SYS_mq_open, {P(missing), 0}, false},
	/* Programs, processes, threads. */
	{"execve", SYS_execve, {P(true_file), P(no_strings), P(no_strings)}, false},
	{"execveat", SYS_execveat, {AT_FDCWD, P(true_file), P(no_strings), P(no_strings), 0}, false},
	{"fork", SYS_fork, {0}, false},
	{"vfork", SYS_vfork, {0}, false},
	{"clone process", SYS_clone, {SIGCHLD, 0, 0, 0, 0}, false},
	{"clone thread", SYS_clone, {THREAD_LIKE, 0, 0, 0, 0}, false},
	{"clone thread as glibc", SYS_clone, {GLIBC_LIKE, 0, 0, 0, 0}, false},
	{"clone3", SYS_clone3, {P(zeros), 64}, false},
	{"wait4", SYS_wait4, {-1, 0, WNOHANG, 0}, false},
	{"kill of the parent", SYS_kill, {1, 0}, false},
	{"tkill", SYS_tkill, {1, 0}, false},
	{"tgkill of another", SYS_tgkill, {1, 1, 0}, false},
	{"rt_sigqueueinfo", SYS_rt_sigqueueinfo, {1, 0, P(zeros)}, false},
	{"pidfd_open", SYS_pidfd_open, {1, 0}, false},
	{"pidfd_getfd", SYS_pidfd_getfd, {2, 0, 0}, false},
	{"pidfd_send_signal", SYS_pidfd_send_signal, {2, 0, 0, 0}, false},
	{"ptrace", SYS_ptrace, {PTRACE_TRACEME, 0, 0, 0}, false},
	{"process_vm_readv", SYS_process_vm_readv, {1, 0, 0, 0, 0, 0}, false},
	{"process_vm_writev", SYS_process_vm_writev, {1, 0, 0, 0, 0, 0}, false},
	{"process_madvise", SYS_process_madvise, {2, 0, 0, 0, 0}, false},
	{"kcmp", SYS_kcmp, {1, 1, 0, 0, 0}, false},
	{"prlimit64", SYS_prlimit64, {0, 7, 0, P(page)}, false},
	{"setrlimit", SYS_setrlimit, {7, P(zeros)}, false},
	{"setpriority", SYS_setpriority, {0, 0, 19}, false},
	{"sched_setscheduler", SYS_sched_setscheduler, {0, 0, P(zeros)}, false},
	{"sched_setaffinity", SYS_sched_setaffinity, {0, 8, P(zeros)}, false},
	{"sched_getaffinity", SYS_sched_getaffinity, {0, 128, P(page)}, false},
	{"setsid", SYS_setsid, {0}, false},
	{"set_robust_list", SYS_set_robust_list, {P(zeros), 24}, false},
	{"rseq", SYS_rseq, {P(zeros), 32, 0, 0}, false},
	{"set_tid_address", SYS_set_tid_address, {P(zeros)}, false},
	/* Identity and rights. */
	{"setuid", SYS_setuid, {0}, false},
	{"setresuid", SYS_setresuid, {0, 0, 0}, false},
	{"setgid", SYS_setgid, {0}, false},
	{"setgroups", SYS_setgroups, {0, 0}, false},
	{"capset", SYS_capset, {P(zeros), P(zeros)}, false},
	{"unshare", SYS_unshare, {0x10000000}, false},
	{"setns", SYS_setns, {2, 0}, false},
	{"prctl", SYS_prctl, {PR_SET_DUMPABLE, 1, 0, 0, 0}, true},
	{"arch_prctl", SYS_arch_prctl, {0x1001, 0}, false},
	{"personality", SYS_personality, {0x0400000}, false},
	{"seccomp", SYS_seccomp, {0, 0, 0}, false},
	{"landlock_create_ruleset", 444, {0, 0, 1}, false},
	{"keyctl", SYS_keyctl, {0, 0, 0, 0, 0}, false},
	{"add_key", SYS_add_key, {P(missing), P(missing), 0, 0, 0}, false},
	{"request_key", SYS_request_key, {P(missing), P(missing), 0, 0}, false},
	/* Memory. */
	{"mmap exec", SYS_mmap, {0, PAGE, PROT_READ | PROT_EXEC, PRIVATE, -1, 0}, false},
	{"mmap write exec", SYS_mmap, {0, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, PRIVATE, -1, 0}, false},
	{"mmap shared", SYS_mmap, {0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0}, false},
	{"mmap shared, validated", SYS_mmap, {0, PAGE, PROT_READ, MAP_SHARED_VALIDATE, 2, 0}, false},
	{"mmap stack", SYS_mmap, {0, PAGE, PROT_READ | PROT_WRITE, PRIVATE | MAP_GROWSDOWN, -1, 0}, false},
	{"mprotect exec", SYS_mprotect, {P(page), PAGE, PROT_READ | PROT_WRITE | PROT_EXEC}, false},
	{"mprotect to read", SYS_mprotect, {P(page), PAGE, PROT_READ}, true},
	{"mprotect of all", SYS_mprotect, {P(page), PAGE, PROT_NONE}, true},
	{"mremap to a place", SYS_mremap, {P(page), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, P(page)}, false},
	{"pkey_mprotect", SYS_pkey_mprotect, {P(page), PAGE, PROT_READ | PROT_WRITE, -1}, false},
	{"pkey_alloc", SYS_pkey_alloc, {0, 0}, false},
	{"madvise to punch a hole", SYS_madvise, {P(page), PAGE, MADV_REMOVE}, true},
	{"madvise to free", SYS_madvise, {P(page), PAGE, MADV_FREE}, true},
	{"madvise to poison", SYS_madvise, {P(page), PAGE, 100}, true},
	{"remap_file_pages", SYS_remap_file_pages, {P(page), PAGE, 0, 0, 0}, false},
	{"mlock", SYS_mlock, {P(page), PAGE}, false},
	{"mlockall", SYS_mlockall, {1}, false},
	{"mbind", SYS_mbind, {P(page), PAGE, 0, 0, 0, 0}, false},
	{"move_pages", SYS_move_pages, {0, 0, 0, 0, 0, 0}, false},
	{"msync", SYS_msync, {P(page), PAGE, 1}, false},
	{"userfaultfd", SYS_userfaultfd, {0}, false},
	{"modify_ldt", SYS_modify_ldt, {0, P(page), 16}, false},
	/* Calls that attacks on kernels begin with. */
	{"bpf", SYS_bpf, {0, P(page), 16}, false},
	{"perf_event_open", SYS_perf_event_open, {P(zeros), 0, -1, -1, 0}, false},
	{"io_uring_setup", SYS_io_uring_setup, {1, P(zeros)}, false},
	{"io_uring_enter", SYS_io_uring_enter, {2, 0, 0, 0, 0, 0}, false},
	{"io_setup", SYS_io_setup, {1, P(zeros)}, false},
	{"epoll_create1", SYS_epoll_create1, {0}, false},
	{"eventfd2", SYS_eventfd2, {0, 0}, false},
	{"signalfd4", SYS_signalfd4, {-1, P(zeros), 8, 0}, false},
	{"timerfd_create", SYS_timerfd_create, {1, 0}, false},
	{"timer_create", SYS_timer_create, {1, 0, P(page)}, false},
	{"inotify_init1", SYS_inotify_init1, {0}, false},
	{"fanotify_init", SYS_fanotify_init, {0, 0}, false},
	{"rt_sigaction", SYS_rt_sigaction, {SIGTERM, 0, P(page), 8}, true},
	{"sigaltstack", SYS_sigaltstack, {0, P(page)}, true},
	{"futex that inherits priority", SYS_futex, {P(zeros), FUTEX_LOCK_PI, 0, 0, 0, 0}, false},
	{"futex that unlocks so", SYS_futex, {P(zeros), FUTEX_UNLOCK_PI_PRIVATE, 0, 0, 0, 0}, false},
	{"futex that moves who waits", SYS_futex, {P(zeros), FUTEX_REQUEUE, 0, 0, P(zeros), 0}, false},
	{"futex that moves so", SYS_futex, {P(zeros), FUTEX_CMP_REQUEUE_PI, 1, 0, P(zeros), 0}, false},
	{"futex_waitv", 449, {P(zeros), 0, 0, 0, 0}, false},
	{"membarrier", SYS_membarrier, {0, 0, 0}, false},
	{"iopl", SYS_iopl, {0}, false},
	{"ioperm", SYS_ioperm, {0, 1, 0}, false},
	{"init_module", SYS_init_module, {0, 0, P(missing)}, false},
	{"finit_module", SYS_finit_module, {-1, P(missing), 0}, false},
	{"kexec_load", SYS_kexec_load, {0, 0, 0, 0}, false},
	{"syslog", SYS_syslog, {10, 0, 0}, false},
	{"quotactl", SYS_quotactl, {-1, 0, 0, 0}, false},
	{"acct", SYS_acct, {P(missing)}, false},
	{"swapoff", SYS_swapoff, {P(missing)}, false},
	{"sethostname", SYS_sethostname, {P(page), -1}, false},
	{"settimeofday", SYS_settimeofday, {0, 0}, false},
	{"clock_settime", SYS_clock_settime, {-1, 0}, false},
	{"uname", SYS_uname, {P(page)}, false},
	{"a number that no kernel has", 0x3ff, {0}, false},
	/* Other ways in. */
	{"x32 read", SYS_read | X32_BIT, {0, P(page), 0}, false},
	{"x32 getpid", SYS_getpid | X32_BIT, {0}, false},
};
/* clang-format on */

enum where { ALONE, MAIN_OF_MANY, ASIDE };

struct attempt {
	const struct call *call; /* NULL: ACT */
	void (*act)(void);
};

static struct crew *crew;
static int channel[2];

static int have_crew(void *userdata)
{
	(void)userdata;
	return crew_new(THREADS, &crew);
}

static void try(void *userdata)
{
	const struct attempt *a = userdata;
	const long *x;

	if (a->call == NULL) {
		a->act();
		return;
	}
	x = a->call->args;
	(void)syscall(a->call->number, x[0], x[1], x[2], x[3], x[4], x[5]);
}

static void try_in_sandbox(struct attempt *a, enum where where)
{
	const struct sandbox_limits limits = {
		.keep = channel,
		.n_keep = 1,
		.channel = channel[0],
		.memory_bytes = 64 << 20,
		.address_bytes = 16ull << 30,
		.cpu_seconds = 10,
		.start = where == ALONE ? NULL : have_crew,
	};
	struct crew_thread *t;
	unsigned lacks;

	/* One of whose threads only some die would wait for ever. */
	alarm(60);
	if (sandbox_enter(&limits, &lacks) != 0)
		_exit(CHILD_FAILED);
	if (where == ASIDE) {
		t = crew_start(crew, try, a);
		if (t == NULL)
			_exit(CHILD_FAILED);
		crew_finish(t);
	} else {
		try(a);
	}
	_exit(0);
}

static void say_something(void)
{
	if (channel_send(channel[0], "x", 1, NULL, 0) != 0)
		_exit(1);
}

static int status_of(struct attempt *a, enum where where)
{
	int status;
	pid_t pid = test_fork();

	assert_true(pid >= 0);
	if (pid == 0)
		try_in_sandbox(a, where);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static bool dies(struct attempt *a, const char *name, enum where where)
{
	int status = status_of(a, where);

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		return true;
	print_error("%s, %d: status 0x%x\n", name, (int)where, status);
	return false;
}

static void try_all(enum where where)
{
	unsigned n_alive = 0;

	for (size_t i = 0; i < ARRAY_SIZE(calls) && n_alive < 3; i++) {
		struct attempt a = {.call = &calls[i]};

		if (!SANITIZED || !calls[i].sanitizers)
			n_alive += !dies(&a, calls[i].name, where);
	}
	assert_int_equal(n_alive, 0);
}

static void sandbox_enter_forbidden_calls_kill(void **state)
{
	(void)state;
	try_all(ALONE);
}

static void sandbox_enter_forbidden_calls_kill_all_threads(void **state)
{
	(void)state;
	try_all(MAIN_OF_MANY);
}

static void sandbox_enter_forbidden_calls_of_a_thread_kill_all(void **state)
{
	(void)state;
	try_all(ASIDE);
}

/* The tests above saw the filter: calls that it allows do not kill. */
static void sandbox_enter_allowed_calls_do_not_kill(void **state)
{
	static const struct call allowed[] = {
		{"getpid", SYS_getpid, {0}, false},
		{"futex", SYS_futex, {P(zeros), FUTEX_WAKE_PRIVATE, 1, 0, 0, 0}, false},
		{"fcntl", SYS_fcntl, {2, F_GETFL}, false},
		{"mmap", SYS_mmap, {0, PAGE, PROT_READ, PRIVATE, -1, 0}, false},
		{"madvise", SYS_madvise, {P(page), PAGE, MADV_DONTNEED}, false},
		{"madvise for large pages", SYS_madvise, {P(page), PAGE, MADV_HUGEPAGE}, false},
		{"mremap", SYS_mremap, {P(page), PAGE, PAGE, 0, 0}, false},
		{"pread64", SYS_pread64, {0, P(page), 1, 0}, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++) {
		struct attempt a = {.call = &allowed[i]};

		assert_int_equal(status_of(&a, ALONE), 0);
		assert_int_equal(status_of(&a, MAIN_OF_MANY), 0);
		assert_int_equal(status_of(&a, ASIDE), 0);
	}
}

static void sandbox_enter_lets_messages_go_over_the_channel(void **state)
{
	struct attempt a = {.act = say_something};

	(void)state;
	assert_int_equal(status_of(&a, ALONE), 0);
	assert_int_equal(status_of(&a, ASIDE), 0);
}

/* The calls of 32-bit programs have other numbers: 20 is getpid. */
static void call_as_32_bit(void)
{
	int r = 20;

	__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
}

static bool kernel_has_32_bit_calls(void)
{
	int status;
	pid_t pid = test_fork();

	if (pid == 0) {
		call_as_32_bit();
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static void sandbox_enter_calls_of_32_bit_programs_kill(void **state)
{
	struct attempt a = {.act = call_as_32_bit};

	(void)state;
	if (!kernel_has_32_bit_calls())
		skip();
	assert_true(dies(&a, "int 0x80", ALONE));
	assert_true(dies(&a, "int 0x80", MAIN_OF_MANY));
	assert_true(dies(&a, "int 0x80", ASIDE));
}

/* Stacks are no data, so they could grow as far as there are addresses. */
static void move_the_stack(void)
{
	char here = 0;
	char *at = (char *)((uintptr_t)&here & ~(uintptr_t)(PAGE - 1));

	(void)mremap(at, PAGE, 1ul << 30, MREMAP_MAYMOVE);
}

static void sandbox_enter_making_the_stack_larger_kills(void **state)
{
	struct attempt a = {.act = move_the_stack};

	(void)state;
	assert_true(dies(&a, "mremap of the stack", ALONE));
	assert_true(dies(&a, "mremap of the stack", MAIN_OF_MANY));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sandbox_enter_forbidden_calls_kill),
		cmocka_unit_test(sandbox_enter_forbidden_calls_kill_all_threads),
		cmocka_unit_test(sandbox_enter_forbidden_calls_of_a_thread_kill_all),
		cmocka_unit_test(sandbox_enter_allowed_calls_do_not_kill),
		cmocka_unit_test(sandbox_enter_lets_messages_go_over_the_channel),
		cmocka_unit_test(sandbox_enter_calls_of_32_bit_programs_kill),
		cmocka_unit_test(sandbox_enter_making_the_stack_larger_kills),
	};

	if (channel_pair(channel) < 0)
		return 1;
	return cmocka_run_group_tests_name("sandbox_calls", tests, NULL, NULL);
}
