/*
 * Interprets system calls and signals for the software PMU. The numbers of calls are those of
 * x86-64 (arch/x86/entry/syscalls/syscall_64.tbl), for the guest and for the host.
 */
#include "capture/emu/plugin/calls.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/emu/plugin/guest.h"
#include "capture/emu/plugin/task.h"

#define NEW_NAMESPACES                                                                 \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	 CLONE_NEWPID | CLONE_NEWNET)

#define MAX_KNOWN 256u

/* Offsets in a signal frame: pretcode, ucontext, siginfo (arch/x86/include/asm/sigframe.h, struct
 * rt_sigframe, x86-64). */
#define FRAME_RSP   168
#define FRAME_RIP   176
#define FRAME_SIGNO 312
#define FRAME_CODE  320
#define FRAME_SIZE  324

struct set {
	uint64_t values[MAX_KNOWN];
	_Atomic uint32_t n;
};

struct sig {
	struct code *code;
	pthread_mutex_t lock; /* writers take it; readers need no lock */
	struct set handlers, restorers;
};

struct sig *sig_new(struct code *code)
{
	struct sig *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->code = code;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void sig_forked(struct sig *s)
{
	pthread_mutex_init(&s->lock, NULL);
}

/* A writer stores a value before it increments n, so that a reader needs no lock. */
static bool has(struct set *set, uint64_t value)
{
	for (uint32_t i = 0; i < set->n; i++)
		if (set->values[i] == value)
			return true;
	return false;
}

static void add(struct set *set, uint64_t value)
{
	if (has(set, value) || set->n >= MAX_KNOWN)
		return;
	set->values[set->n] = value;
	set->n++;
}

void sig_add(struct sig *s, uint64_t handler, uint64_t restorer)
{
	if (handler <= 1)
		return;
	pthread_mutex_lock(&s->lock);
	add(&s->handlers, handler);
	add(&s->restorers, restorer);
	pthread_mutex_unlock(&s->lock);
	code_add_handler(s->code, handler);
}

/* Reads the frame at RSP. *RET_BELOW: the stack pointer of the interrupted code. */
static bool read_frame(struct sig *s, uint64_t rsp, struct sig_frame *ret, uint64_t *ret_below)
{
	/* SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV. */
	static const uint32_t faults = 1u << 4 | 1u << 5 | 1u << 7 | 1u << 8 | 1u << 11;
	uint8_t bytes[FRAME_SIZE];
	uint64_t restorer;
	int32_t signo, code;

	if (!guest_read(rsp, &restorer, sizeof(restorer)) || !has(&s->restorers, restorer) ||
	    !guest_read(rsp, bytes, sizeof(bytes)))
		return false;
	memcpy(&ret->ip, bytes + FRAME_RIP, 8);
	memcpy(ret_below, bytes + FRAME_RSP, 8);
	memcpy(&signo, bytes + FRAME_SIGNO, 4);
	memcpy(&code, bytes + FRAME_CODE, 4);
	ret->rsp = rsp;
	/* A code above 0: the CPU raised the signal, not kill(2). */
	ret->fault = signo > 0 && signo < 32 && code > 0 && (faults >> signo & 1) != 0;
	return true;
}

bool sig_entered(struct sig *s, uint64_t rsp, struct sig_frame *ret)
{
	struct sig_frame below;
	uint64_t below_rsp;

	if (!read_frame(s, rsp, ret, &below_rsp))
		return false;
	/* Several signals were delivered at once: the frame below belongs to a handler that has not
	 * executed any instruction yet. */
	for (int i = 0; i < 64 && has(&s->handlers, ret->ip); i++) {
		uint64_t next_rsp;

		if (!read_frame(s, below_rsp, &below, &next_rsp))
			break;
		ret->ip = below.ip;
		ret->fault = below.fault;
		below_rsp = next_rsp;
	}
	return true;
}

void calls_enter(struct call *c)
{
	uint64_t action[3]; /* the kernel's struct sigaction: handler, flags, restorer, mask */

	c->handler = c->restorer = 0;
	if (c->number != SYS_rt_sigaction || c->args[1] == 0 ||
	    !guest_read(c->args[1], action, sizeof(action)))
		return;
	c->handler = action[0];
	c->restorer = action[2];
}

void calls_leave_any(const struct call *c, int64_t ret, struct sig *sig)
{
	if (c->number == SYS_rt_sigaction && ret == 0)
		sig_add(sig, c->handler, c->restorer);
}

bool calls_is_exec(const struct call *c)
{
	return c->number == SYS_execve || c->number == SYS_execveat;
}

bool calls_is_end(const struct call *c)
{
	return c->number == SYS_exit || c->number == SYS_exit_group;
}

bool calls_is_vfork(const struct call *c)
{
	return c->number == SYS_vfork ||
	       (c->number == SYS_clone && (c->args[0] & CLONE_VFORK) != 0);
}

bool calls_is_new_pid_namespace(const struct call *c)
{
	/* With type 0, setns(2) joins a namespace of any type. Such calls are ignored here:
	 * programs that join a pid namespace name the type. */
	if (c->number == SYS_setns)
		return (c->args[1] & CLONE_NEWPID) != 0;
	return (c->number == SYS_clone || c->number == SYS_unshare) &&
	       (c->args[0] & CLONE_NEWPID) != 0;
}

bool calls_is_change_of_user(const struct call *c)
{
	switch (c->number) {
	case SYS_setuid:
	case SYS_setreuid:
	case SYS_setresuid:
	case SYS_setfsuid:
	case SYS_setgid:
	case SYS_setregid:
	case SYS_setresgid:
	case SYS_setfsgid: return true;
	default: return false;
	}
}

/* Whether poll() says that EVENTS would block on FD. */
static bool not_ready(uint64_t fd, short events)
{
	struct pollfd p = {.fd = (int)fd, .events = events};

	return poll(&p, 1, 0) == 0;
}

static bool futex_blocks(const uint64_t args[6])
{
	uint32_t value;

	switch (args[1] & (uint64_t)FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
		return guest_read(args[0], &value, sizeof(value)) && value == (uint32_t)args[2];
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
	case FUTEX_WAIT_REQUEUE_PI: return true;
	default: return false;
	}
}

bool calls_would_block(const struct call *c)
{
	const uint64_t *args = c->args;

	switch (c->number) {
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_accept:
	case SYS_accept4: return not_ready(args[0], POLLIN);
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg: return not_ready(args[0], POLLOUT);
	case SYS_futex: return futex_blocks(args);
	case SYS_poll: return args[2] != 0;
	case SYS_epoll_wait:
	case SYS_epoll_pwait: return args[3] != 0;
	case SYS_fcntl: return args[1] == F_SETLKW || args[1] == F_OFD_SETLKW;
	case SYS_select:
	case SYS_pselect6:
	case SYS_ppoll:
	case SYS_pause:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_rt_sigsuspend:
	case SYS_rt_sigtimedwait:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_connect:
	case SYS_flock:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_sendfile:
	case SYS_splice:
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_sync:
	case SYS_fork:
	case SYS_vfork:
	case SYS_clone:
	case SYS_execve:
	case SYS_execveat: return true;
	default: return false;
	}
}

/* Begin of the range in which a call that returned RET may have made pages executable. *RET_SIZE 0:
 * no such range. */
static uint64_t mapped_by(const struct call *c, int64_t ret, uint64_t *ret_size)
{
	struct shmid_ds segment;

	*ret_size = 0;
	switch (c->number) {
	case SYS_mmap:
		if (c->args[2] & PROT_EXEC)
			*ret_size = c->args[1];
		return (uint64_t)ret;
	case SYS_mprotect:
		if (c->args[2] & PROT_EXEC)
			*ret_size = c->args[1];
		return c->args[0];
	case SYS_mremap: *ret_size = c->args[2]; return (uint64_t)ret;
	case SYS_shmat:
		if (c->args[2] & SHM_EXEC && shmctl((int)c->args[0], IPC_STAT, &segment) == 0)
			*ret_size = segment.shm_segsz;
		return (uint64_t)ret;
	default: return 0;
	}
}

static void give_mapping(void *userdata, const struct sideband_mapping *mapping)
{
	struct task *t = userdata;

	sideband_mmap(&t->cpu->sideband, t->cpu->pmu.s->now, &t->who, mapping);
}

void calls_tell_mappings(struct task *t, uint64_t begin, uint64_t end)
{
	guest_mappings(begin, end, t->cpu->ring->fixed.flags, give_mapping, t);
}

/* Order: NET_NS_INDEX to CGROUP_NS_INDEX, include/uapi/linux/perf_event.h. */
static void read_namespaces(uint32_t tid, struct sideband_namespaces *ret)
{
	static const char *const names[] = {"net", "uts", "ipc", "pid", "user", "mnt", "cgroup"};
	char path[64];
	struct stat st;

	memset(ret, 0, sizeof(*ret));
	for (int i = 0; i < 7; i++) {
		snprintf(path, sizeof(path), "/proc/%u/ns/%s", tid, names[i]);
		if (stat(path, &st) < 0)
			continue;
		ret->dev[i] = st.st_dev;
		ret->ino[i] = st.st_ino;
	}
}

static void tell_namespaces(struct task *t, const struct sideband_task *who)
{
	struct sideband_namespaces n;

	read_namespaces(who->tid, &n);
	sideband_namespaces(&t->cpu->sideband, vcpu_now(t->cpu), &t->who, who, &n);
}

/* T has made thread or process CHILD. kernel/events/core.c, perf_event_fork: FORK, then NAMESPACES.
 */
static void tell_child(struct task *t, uint32_t child)
{
	bool thread = t->call.number == SYS_clone && (t->call.args[0] & CLONE_THREAD) != 0;
	const struct sideband_task who = {.pid = thread ? t->who.pid : child,
					  .tid = child,
					  .ppid = t->who.pid,
					  .ptid = t->who.tid};

	sideband_fork(&t->cpu->sideband, vcpu_now(t->cpu), &t->who, &who);
	tell_namespaces(t, &who);
	atomic_store(&t->slot->announced, child);
	syscall(SYS_futex, &t->slot->announced, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void calls_leave(struct task *t, int64_t ret)
{
	const struct call *c = &t->call;
	uint64_t begin, size, end;
	char name[16] = "";

	if (ret < 0 && ret >= -4095)
		return;
	begin = mapped_by(c, ret, &size);
	if (size != 0 && !__builtin_add_overflow(begin, size + 4095, &end)) {
		vcpu_now(t->cpu);
		calls_tell_mappings(t, begin, end & ~4095ull);
	}
	if (c->number == SYS_prctl && c->args[0] == PR_SET_NAME) {
		for (size_t i = 0; i < sizeof(name) - 1; i++)
			if (!guest_read(c->args[1] + i, &name[i], 1) || name[i] == '\0')
				break;
		name[sizeof(name) - 1] = '\0';
		/* The first thread's name is the process' name. */
		if (t->who.pid == t->who.tid)
			memcpy(t->group->comm, name, sizeof(name));
		sideband_comm(&t->cpu->sideband, vcpu_now(t->cpu), &t->who, name, false);
	}
	if (c->number == SYS_setns ||
	    (c->number == SYS_unshare && (c->args[0] & NEW_NAMESPACES) != 0))
		tell_namespaces(t, &t->who);
	if (ret > 0 && (c->number == SYS_fork || c->number == SYS_vfork || c->number == SYS_clone))
		tell_child(t, (uint32_t)ret);
}
