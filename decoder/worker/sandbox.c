/*
 * The sandbox, in the order in which each step is still allowed by those before it: descriptors,
 * limits, identity, privileges, Landlock, and the system call filter last. Called once, by main.c
 * of ptsnap-decode, single-threaded, before the bundle is looked at.
 *
 * The filter is the hard wall: whatever takes this process over can compute, with as many threads
 * as whoever started it may have, write to the output, end, and be given the images that the
 * snapshot names; it cannot open, connect, execute, or make memory executable.
 */
#include "decoder/worker/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <seccomp.h>

#include "proto/base.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANDBOX_SANITIZED 1
#else
#define SANDBOX_SANITIZED 0
#endif

/* nobody and nogroup: the ids that the kernel itself uses for "no one we know"
 * (include/linux/highuid.h, DEFAULT_OVERFLOWUID). */
#define NOBODY 65534u

#define MAX_STACK (64u << 20)

#define SIGNAL_SETXID 33u /* of those that glibc keeps for itself */
#define THREAD_FLAGS                                                                        \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | CLONE_THREAD | \
	 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

static int compare_fds(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int close_others(const int *keep, size_t n)
{
	int sorted[SANDBOX_MAX_KEEP];
	unsigned from = 3;
	size_t i;

	if (n > SANDBOX_MAX_KEEP)
		return -EINVAL;
	for (i = 0; i < n; i++)
		sorted[i] = keep[i];
	qsort(sorted, n, sizeof(sorted[0]), compare_fds);
	for (i = 0; i < n; i++) {
		unsigned fd = (unsigned)sorted[i];

		if (sorted[i] < 0 || fd < from)
			continue;
		if (fd > from && close_range(from, fd - 1, 0) < 0)
			return -errno;
		from = fd + 1;
	}
	return close_range(from, ~0u, 0) < 0 ? -errno : 0;
}

static int limit(int resource, uint64_t value)
{
	struct rlimit now, wanted = {.rlim_cur = value, .rlim_max = value};

	if (getrlimit((__rlimit_resource_t)resource, &now) < 0)
		return -errno;
	/* Never ask for more than there is: raising the hard limit needs a privilege. */
	wanted.rlim_cur = wanted.rlim_max = MIN_OF(wanted.rlim_max, now.rlim_max);
	return setrlimit((__rlimit_resource_t)resource, &wanted) < 0 ? -errno : 0;
}

/* Nothing is ever opened again; what comes takes the lowest numbers that are free. */
static uint64_t count_fds(const struct sandbox_limits *l)
{
	int highest = STDERR_FILENO;

	if (l->more_fds == 0)
		return 0;
	for (size_t i = 0; i < l->n_keep; i++)
		highest = MAX_OF(highest, l->keep[i]);
	return (uint64_t)highest + 1 + l->more_fds;
}

static int limit_memory(const struct sandbox_limits *l)
{
	int r;

	/* AddressSanitizer reserves terabytes for its shadow. */
	if (SANDBOX_SANITIZED)
		return 0;
	/* It is no data. */
	r = limit(RLIMIT_STACK, MAX_STACK);
	if (r == 0 && l->memory_bytes > 0)
		r = limit(RLIMIT_DATA, l->memory_bytes);
	if (r == 0 && l->address_bytes > 0)
		r = limit(RLIMIT_AS, l->address_bytes);
	return r;
}

static int limit_all(const struct sandbox_limits *l)
{
	int r = limit(RLIMIT_CORE, 0);

	if (r == 0)
		r = limit(RLIMIT_NOFILE, count_fds(l));
	if (r == 0)
		r = limit_memory(l);
	if (r == 0 && l->cpu_seconds > 0)
		r = limit(RLIMIT_CPU, l->cpu_seconds);
	if (r == 0 && l->file_bytes > 0)
		r = limit(RLIMIT_FSIZE, l->file_bytes);
	return r;
}

/* Root becomes nobody. A root that may not (in a container without CAP_SETUID, or in a user
 * namespace that does not map the id) goes on behind the other walls, and it is said. */
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

/* PDEATHSIG after the change of identity, which clears it (kernel/cred.c, commit_creds). */
static int drop_privileges(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

/* struct landlock_ruleset_attr as of ABI 6; older kernels take its beginning. Installed headers may
 * be older than the kernel, so the layout is written out here (include/uapi/linux/landlock.h). */
struct ruleset_attr {
	uint64_t fs, net, scoped;
};

static size_t ruleset_for(long abi, struct ruleset_attr *ret)
{
	unsigned bits = abi >= 5 ? 16 : abi >= 3 ? 15 : abi == 2 ? 14 : 13;

	ret->fs = (1ull << bits) - 1;
	ret->net = abi >= 4 ? 3 : 0;	/* bind, connect TCP */
	ret->scoped = abi >= 6 ? 3 : 0; /* abstract unix sockets, signals */
	return abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
}

/* Everything that Landlock handles is denied: a ruleset without a rule. */
static int enter_landlock(unsigned *missing)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct ruleset_attr attr;
	int r = 0;
	long fd;

	if (abi < 1) {
		*missing |= SANDBOX_NO_LANDLOCK;
		return 0;
	}
	fd = syscall(SYS_landlock_create_ruleset, &attr, ruleset_for(abi, &attr), 0);
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
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(brk),
	SCMP_SYS(sendmsg),
	SCMP_SYS(recvmsg), /* images that were asked for */
	SCMP_SYS(futex),
	SCMP_SYS(getrandom),
	SCMP_SYS(clock_gettime),
	/* Threads (decoder/ahead.c), and how many. */
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(sysinfo), /* glibc: qsort asks how much memory there is (stdlib/msort.c) */
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(rt_sigprocmask),
#if SANDBOX_SANITIZED
	/* The sanitizers' runtime: alternate stacks, yielding locks, names for its mappings. */
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

/* Calls that are allowed only with certain arguments. */
static int allow_conditional(scmp_filter_ctx ctx)
{
	const struct scmp_arg_cmp no_exec[] = {SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0)};
	/* Shared memory and stacks do not count as data (include/linux/mm.h, is_data_mapping()):
	 * they would be memory without a limit. */
	const struct scmp_arg_cmp data[] = {
		SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
		SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_SHARED | MAP_GROWSDOWN, 0),
	};
	/* fstat of glibc >= 2.33. A filter cannot read the path; what is left is to stat, not to
	 * open. */
	const struct scmp_arg_cmp by_fd[] = {SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH)};
	/* A thread and no process: what glibc's pthread_create asks for
	 * (nptl/pthread_create.c, create_thread). */
	const struct scmp_arg_cmp thread[] = {SCMP_A0(SCMP_CMP_EQ, THREAD_FLAGS)};
	/* With the first one glibc takes the signal for setuid() of all (nptl/pthread_create.c). */
	const struct scmp_arg_cmp setxid[] = {SCMP_A0(SCMP_CMP_EQ, SIGNAL_SETXID)};
	const struct scmp_arg_cmp get_fl[] = {SCMP_A1(SCMP_CMP_EQ, F_GETFL)};
	/* abort() of our own asserts, and nobody else's process. */
	const struct scmp_arg_cmp self[] = {SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid())};
	int r = allow(ctx, SCMP_SYS(mmap), data, ARRAY_SIZE(data));

	if (r == 0)
		r = allow(ctx, SCMP_SYS(mprotect), no_exec, 1);
	if (r == 0)
		r = allow(ctx, SCMP_SYS(newfstatat), by_fd, 1);
	if (r == 0)
		r = allow(ctx, SCMP_SYS(fcntl), get_fl, 1);
	if (r == 0)
		r = allow(ctx, SCMP_SYS(tgkill), self, 1);
	if (r == 0)
		r = allow(ctx, SCMP_SYS(clone), thread, 1);
	if (r == 0 && !SANDBOX_SANITIZED)
		r = allow(ctx, SCMP_SYS(rt_sigaction), setxid, 1);
	/* A filter cannot read its arguments; glibc then uses clone. */
	if (r == 0)
		r = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0, NULL);
	return r;
}

static int enter_seccomp(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	size_t i;
	int r = 0;

	if (ctx == NULL)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(allowed_calls) && r == 0; i++)
		r = allow(ctx, allowed_calls[i], NULL, 0);
	if (r == 0)
		r = allow_conditional(ctx);
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r;
}

int sandbox_enter(const struct sandbox_limits *limits, unsigned *ret_missing)
{
	int r;

	*ret_missing = 0;
	/* A reader that went away, a file at its limit: errors of write, not deaths. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	r = close_others(limits->keep, limits->n_keep);
	if (r == 0)
		r = drop_identity(ret_missing);
	if (r == 0)
		r = drop_privileges();
	if (r == 0)
		r = enter_landlock(ret_missing);
	/* After Landlock, which needs one descriptor for its ruleset. */
	if (r == 0)
		r = limit_all(limits);
	if (r == 0)
		r = enter_seccomp();
	return r;
}
