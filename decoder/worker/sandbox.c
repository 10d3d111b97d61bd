/*
 * The sandbox: descriptors, identity, privileges, Landlock, limits, threads, and the filter of
 * system calls last, in an order in which each step is still allowed by the steps before.
 *
 * The steps that apply to one thread alone (identity, no_new_privs, Landlock) come before there are
 * other threads; the filter is put on all threads at once.
 *
 * The filter is the hard wall. Whoever takes this process over can compute, with the threads that
 * there are, write to the output, get the images that the snapshot names, and end; but cannot open
 * files, look at paths, connect, execute, start a thread, or make memory executable.
 */
#include "decoder/worker/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <seccomp.h>

#include "proto/asan.h"
#include "proto/base.h"

/* nobody and nogroup: the ids that the kernel itself uses for unknown users
 * (include/linux/highuid.h, DEFAULT_OVERFLOWUID). */
#define NOBODY 65534u

#define MAX_STACK   (8u << 20)
#define STACK_SLACK (64u << 10)

static int compare_fds(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int close_others(const int *keep, size_t n)
{
	int sorted[SANDBOX_MAX_KEEP];
	unsigned from = 3;

	if (n > SANDBOX_MAX_KEEP)
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		sorted[i] = keep[i];
	qsort(sorted, n, sizeof(sorted[0]), compare_fds);
	for (size_t i = 0; i < n; i++) {
		unsigned fd = (unsigned)sorted[i];

		if (sorted[i] < 0 || fd < from)
			continue;
		if (fd > from && close_range(from, fd - 1, 0) < 0)
			return -errno;
		from = fd + 1;
	}
	return close_range(from, ~0u, 0) < 0 ? -errno : 0;
}

/* Redirects standard input and output to /dev/null, and standard error if it is a terminal: a
 * stranger may have a say in the messages. Without /dev/null they stay as they are. */
static void blind_standard(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)dup2(fd, STDIN_FILENO);
	(void)dup2(fd, STDOUT_FILENO);
	if (isatty(STDERR_FILENO))
		(void)dup2(fd, STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

static int limit(int resource, uint64_t value)
{
	struct rlimit now, wanted = {.rlim_cur = value, .rlim_max = value};

	if (getrlimit((__rlimit_resource_t)resource, &now) < 0)
		return -errno;
	/* Never raise the hard limit: that needs a privilege. */
	wanted.rlim_cur = wanted.rlim_max = MIN_OF(wanted.rlim_max, now.rlim_max);
	return setrlimit((__rlimit_resource_t)resource, &wanted) < 0 ? -errno : 0;
}

/* Gives the main thread's stack all memory that it will ever have, and lets it grow no more. A
 * stack is not counted as data, and its limit holds for each mapping that it is cut into: whoever
 * cuts off its end again and again would have memory without a limit (mm/mmap.c,
 * acct_stack_growth()). The program's name lies at the stack's top (fs/binfmt_elf.c); touching a
 * page makes all pages above. */
static int settle_stack(void)
{
	const char *name = (const char *)(uintptr_t)getauxval(AT_EXECFN);
	struct rlimit now;
	uintptr_t lowest;

	if (limit(RLIMIT_STACK, MAX_STACK) < 0 || getrlimit(RLIMIT_STACK, &now) < 0)
		return -errno;
	if (!name)
		return -ENODATA;
	if (now.rlim_cur > STACK_SLACK) {
		lowest = (uintptr_t)name - (uintptr_t)now.rlim_cur + STACK_SLACK;
		if (lowest < (uintptr_t)&now)
			*(volatile char *)lowest = 0;
	}
	return limit(RLIMIT_STACK, 0);
}

static int limit_all(const struct sandbox_limits *l)
{
	uint64_t fds = 0;
	int r = limit(RLIMIT_CORE, 0);

	/* Nothing is ever opened again; fds that come later take the lowest free numbers. */
	if (l->more_fds > 0) {
		int highest = STDERR_FILENO;

		for (size_t i = 0; i < l->n_keep; i++)
			highest = MAX_OF(highest, l->keep[i]);
		fds = (uint64_t)highest + 1 + l->more_fds;
	}
	if (r == 0)
		r = limit(RLIMIT_NOFILE, fds);
	/* AddressSanitizer reserves terabytes for its shadow. */
	if (!BUILT_WITH_ASAN) {
		if (r == 0)
			r = settle_stack();
		if (r == 0 && l->memory_bytes > 0)
			r = limit(RLIMIT_DATA, l->memory_bytes);
		if (r == 0 && l->address_bytes > 0)
			r = limit(RLIMIT_AS, l->address_bytes);
	}
	if (r == 0 && l->cpu_seconds > 0)
		r = limit(RLIMIT_CPU, l->cpu_seconds);
	if (r == 0 && l->file_bytes > 0)
		r = limit(RLIMIT_FSIZE, l->file_bytes);
	return r;
}

/* Root becomes nobody. If root may not (in a container without CAP_SETUID, or in a user namespace
 * that does not map the id), the other steps still hold, and *missing says so. */
static int drop_identity(unsigned *missing)
{
	if (geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
	    setresuid(NOBODY, NOBODY, NOBODY) == 0)
		return 0;
	if (errno != EPERM && errno != EINVAL)
		return -errno;
	*missing |= SANDBOX_NO_UID;
	return 0;
}

/* Drops the capabilities of a recorder that is not root but may trace. A process without
 * capabilities does not call capset(2), which the filter of its unit may forbid. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	if ((data[0].permitted | data[0].inheritable | data[1].permitted | data[1].inheritable) ==
	    0)
		return 0;
	memset(data, 0, sizeof(data));
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

/* struct landlock_ruleset_attr of ABI 6; older kernels take its beginning. The layout is written
 * out here because installed headers may be older than the kernel (include/uapi/linux/landlock.h).
 */
struct ruleset_attr {
	uint64_t fs, net, scoped;
};

/* Denies everything that Landlock handles: a ruleset without a rule. */
static int enter_landlock(unsigned *missing)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	const unsigned bits = abi >= 5 ? 16 : abi >= 3 ? 15 : abi == 2 ? 14 : 13;
	const struct ruleset_attr attr = {
		.fs = (1ull << bits) - 1,
		.net = abi >= 4 ? 3 : 0,    /* bind, connect TCP */
		.scoped = abi >= 6 ? 3 : 0, /* abstract unix sockets, signals */
	};
	const size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
	int r = 0;
	long fd;

	if (abi < 1) {
		*missing |= SANDBOX_NO_LANDLOCK;
		return 0;
	}
	fd = syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (fd < 0)
		return -errno;
	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		r = -errno;
	close((int)fd);
	return r;
}

static const int allowed_calls[] = {
	SCMP_SYS(read),
	SCMP_SYS(pread64),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(lseek),
	SCMP_SYS(close),
	SCMP_SYS(fstat),
	SCMP_SYS(munmap),
	SCMP_SYS(brk),
	SCMP_SYS(poll), /* waits for the channel's end */
	SCMP_SYS(getrandom),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(sysinfo), /* glibc: qsort asks how much memory there is (stdlib/msort.c) */
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(exit_group),
	SCMP_SYS(rt_sigprocmask),
#if BUILT_WITH_ASAN
	/* The sanitizers' runtime: alternate stacks, yielding locks, names for its mappings. */
	SCMP_SYS(madvise),
	SCMP_SYS(newfstatat),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(sched_yield),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(prctl),
#endif
};

static int allow(scmp_filter_ctx ctx, int call, const struct scmp_arg_cmp *args, unsigned n)
{
	return seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, call, n, args);
}

/* Allows waiting and waking, as mutexes and conditions do, but no inheriting of priorities and no
 * requeueing. */
static int allow_futex(scmp_filter_ctx ctx)
{
	static const unsigned operations[] = {FUTEX_WAIT, FUTEX_WAKE, FUTEX_WAIT_BITSET,
					      FUTEX_WAKE_BITSET};
	const scmp_datum_t which = UINT32_MAX & ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(operations) && r == 0; i++) {
		const struct scmp_arg_cmp op[] = {
			SCMP_A1(SCMP_CMP_MASKED_EQ, which, operations[i])};

		r = allow(ctx, SCMP_SYS(futex), op, 1);
	}
	return r;
}

/* Calls that are allowed only with certain arguments. */
static int allow_conditional(scmp_filter_ctx ctx)
{
	/* Memory that was written to and then made read-only would not count as data any more. */
	const struct scmp_arg_cmp writable[] = {SCMP_A2(SCMP_CMP_EQ, PROT_READ | PROT_WRITE)};
	const struct scmp_arg_cmp no_exec[] = {SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)};
	/* Shared memory and stacks do not count as data (include/linux/mm.h, is_data_mapping()),
	 * and would be memory without a limit. */
	const struct scmp_arg_cmp data[] = {
		SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
		SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_SHARED | MAP_GROWSDOWN, 0),
	};
	/* The main thread's stack does not count as data either, and mremap(2) could make it grow
	 * as far as there are addresses. The stack, whose end is in use here, does not reach below
	 * STACK; all other mappings lie below (arch/x86/mm/mmap.c, mmap_base: at least 128 MiB are
	 * left between). */
	const char here = 0;
	const scmp_datum_t stack = (scmp_datum_t)(uintptr_t)&here - MAX_STACK;
	const struct scmp_arg_cmp below[] = {
		SCMP_A0(SCMP_CMP_LT, stack),
		SCMP_A3(SCMP_CMP_MASKED_EQ, ~(scmp_datum_t)MREMAP_MAYMOVE, 0)};
	const struct scmp_arg_cmp forget[] = {SCMP_A2(SCMP_CMP_EQ, MADV_DONTNEED)};
	const struct scmp_arg_cmp large[] = {SCMP_A2(SCMP_CMP_EQ, MADV_HUGEPAGE)};
	const struct scmp_arg_cmp get_fl[] = {SCMP_A1(SCMP_CMP_EQ, F_GETFL)};
	/* For abort() of our own asserts; no other process can be hit. */
	const struct scmp_arg_cmp self[] = {SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid())};
	int r = allow(ctx, SCMP_SYS(mmap), data, ARRAY_SIZE(data));

	if (r == 0)
		r = allow(ctx, SCMP_SYS(mprotect), BUILT_WITH_ASAN ? no_exec : writable, 1);
	if (r == 0)
		r = allow(ctx, SCMP_SYS(mremap), below, ARRAY_SIZE(below));
	if (r == 0 && !BUILT_WITH_ASAN)
		r = allow(ctx, SCMP_SYS(madvise), forget, 1);
	if (r == 0 && !BUILT_WITH_ASAN)
		r = allow(ctx, SCMP_SYS(madvise), large, 1);
	if (r == 0)
		r = allow(ctx, SCMP_SYS(fcntl), get_fl, 1);
	if (r == 0)
		r = allow(ctx, SCMP_SYS(tgkill), self, 1);
	return r;
}

static int enter_seccomp(int channel)
{
	const struct scmp_arg_cmp on_channel[] = {
		SCMP_A0(SCMP_CMP_MASKED_EQ, UINT32_MAX, (scmp_datum_t)channel)};
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int r;

	if (!ctx)
		return -ENOMEM;
	/* The filter holds for all threads; a call of another architecture kills, too. */
	r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	for (size_t i = 0; i < ARRAY_SIZE(allowed_calls) && r == 0; i++)
		r = allow(ctx, allowed_calls[i], NULL, 0);
	if (r == 0)
		r = allow_conditional(ctx);
	if (r == 0)
		r = allow_futex(ctx);
	/* Messages go over the channel alone; standard error may be a socket, too. */
	if (r == 0 && channel >= 0)
		r = allow(ctx, SCMP_SYS(sendmsg), on_channel, 1);
	if (r == 0 && channel >= 0)
		r = allow(ctx, SCMP_SYS(recvmsg), on_channel, 1);
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r;
}

int sandbox_enter(const struct sandbox_limits *limits, unsigned *ret_missing)
{
	int r;

	*ret_missing = 0;
	/* A reader that goes away and a file at its limit are errors of write, not the end. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	blind_standard();
	r = close_others(limits->keep, limits->n_keep);
	if (r == 0)
		r = drop_identity(ret_missing);
	if (r == 0)
		r = drop_capabilities();
	/* PR_SET_PDEATHSIG behind the change of identity, which clears it (kernel/cred.c,
	 * commit_creds). */
	if (r == 0 &&
	    (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	     prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0))
		r = -errno;
	if (r == 0)
		r = enter_landlock(ret_missing);
	/* Behind Landlock, which needs a descriptor for its ruleset. */
	if (r == 0)
		r = limit_all(limits);
	if (r == 0 && limits->start)
		r = limits->start(limits->userdata);
	if (r == 0)
		r = limit(RLIMIT_NPROC, 0);
	if (r == 0)
		r = enter_seccomp(limits->channel);
	return r;
}
