/*
 * What system calls mean to the software PMU. Called by the system call callbacks of plugin.c in
 * the emulator's process. Numbers are x86-64's (arch/x86/entry/syscalls/syscall_64.tbl), which here
 * are the host's too.
 */
#include "capture/emu/plugin/calls.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/emu/plugin/guest.h"
#include "capture/emu/plugin/maps.h"
#include "capture/emu/plugin/task.h"

#define NEW_NAMESPACES                                                                 \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	 CLONE_NEWPID | CLONE_NEWNET)

void calls_enter(struct call *c)
{
	uint64_t action[3]; /* struct sigaction of the kernel: handler, flags, restorer, mask */

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
	/* setns(2): with type 0 it may be any; that is not asked for, as nobody joins one so. */
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

/* Makes a process or a thread; its number is what it returns. */
static bool calls_makes_thread(const struct call *c)
{
	return c->number == SYS_clone && (c->args[0] & CLONE_THREAD) != 0;
}

static bool calls_makes_child(const struct call *c)
{
	return c->number == SYS_fork || c->number == SYS_vfork || c->number == SYS_clone;
}

/* Length of the segment that was attached, or 0. */
static uint64_t segment_size(uint64_t id)
{
	struct shmid_ds ds;

	return shmctl((int)id, IPC_STAT, &ds) < 0 ? 0 : ds.shm_segsz;
}

/* The range in which a call that returned RET may have made pages executable; *ret_size 0: none. */
static uint64_t mapped_by(const struct call *c, int64_t ret, uint64_t *ret_size)
{
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
		if (c->args[2] & SHM_EXEC)
			*ret_size = segment_size(c->args[0]);
		return (uint64_t)ret;
	default: return 0;
	}
}

static void give_mapping(void *userdata, const struct sideband_mapping *mapping)
{
	struct task *t = userdata;

	sideband_mmap(&t->cpu->sideband, t->cpu->pmu.s->now, &t->who, mapping);
}

static void tell_mapped(struct task *t, uint64_t begin, uint64_t size)
{
	uint64_t end;

	if (size == 0 || __builtin_add_overflow(begin, size + 4095, &end))
		return;
	vcpu_now(t->cpu);
	maps_executable(begin, end & ~4095ull, t->cpu->ring->fixed.flags, give_mapping, t);
}

static void tell_name(struct task *t)
{
	char name[16] = "";

	for (size_t i = 0; i < sizeof(name) - 1; i++)
		if (!guest_read(t->call.args[1] + i, &name[i], 1) || name[i] == '\0')
			break;
	name[sizeof(name) - 1] = '\0';
	if (t->who.pid == t->who.tid)
		memcpy(t->group->comm, name, sizeof(name));
	sideband_comm(&t->cpu->sideband, vcpu_now(t->cpu), &t->who, name, false);
}

/* In the order of NET_NS_INDEX and so on, include/uapi/linux/perf_event.h. */
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

/* kernel/events/core.c, perf_event_fork: FORK, then NAMESPACES. */
static void tell_child(struct task *t, uint32_t child)
{
	bool thread = calls_makes_thread(&t->call);
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
	uint64_t begin, size;

	if (ret < 0 && ret >= -4095)
		return;
	begin = mapped_by(c, ret, &size);
	tell_mapped(t, begin, size);
	if (c->number == SYS_prctl && c->args[0] == PR_SET_NAME)
		tell_name(t);
	if (c->number == SYS_setns ||
	    (c->number == SYS_unshare && (c->args[0] & NEW_NAMESPACES) != 0))
		tell_namespaces(t, &t->who);
	if (calls_makes_child(c) && ret > 0)
		tell_child(t, (uint32_t)ret);
}
