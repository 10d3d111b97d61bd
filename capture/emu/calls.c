/*
 * What system calls mean to the software PMU. Called by the system call callbacks of plugin.c in
 * the emulator's process. Numbers are x86-64's (arch/x86/entry/syscalls/syscall_64.tbl), which here
 * are the host's too.
 */
#include "capture/emu/calls.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "capture/emu/guest.h"

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

void calls_enter_traced(const struct call *c, struct machine *m)
{
	if (calls_is_end(c))
		machine_exit(m);
	/* There is no later chance to say so: a successful exec does not return. */
	if (calls_is_exec(c))
		atomic_fetch_add(&m->head->untraced_execs, 1);
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

static void tell_name(const struct call *c, struct machine *m)
{
	char name[16] = "";

	for (size_t i = 0; i < sizeof(name) - 1; i++)
		if (!guest_read(c->args[1] + i, &name[i], 1) || name[i] == '\0')
			break;
	name[sizeof(name) - 1] = '\0';
	sideband_comm(&m->sideband, m->pmu.s->now, name, false);
}

static bool makes_thread(const struct call *c)
{
	return c->number == SYS_clone && (c->args[0] & CLONE_THREAD) != 0;
}

static bool makes_child(const struct call *c)
{
	return c->number == SYS_fork || c->number == SYS_vfork || c->number == SYS_clone;
}

static void count_child(const struct call *c, struct machine *m)
{
	if (makes_thread(c))
		atomic_fetch_add(&m->head->untraced_threads, 1);
	else
		atomic_fetch_add(&m->head->untraced_children, 1);
}

void calls_leave_traced(const struct call *c, int64_t ret, struct machine *m)
{
	uint32_t child = (uint32_t)ret;
	uint64_t begin, size;

	if (calls_is_exec(c))
		atomic_fetch_sub(&m->head->untraced_execs, 1);
	if (ret < 0 && ret >= -4095)
		return;
	begin = mapped_by(c, ret, &size);
	machine_mapped(m, begin, size);
	if (c->number == SYS_prctl && c->args[0] == PR_SET_NAME)
		tell_name(c, m);
	if (!makes_child(c) || ret == 0)
		return;
	count_child(c, m);
	sideband_fork(&m->sideband, m->pmu.s->now, makes_thread(c) ? m->sideband.pid : child,
		      child);
}

void calls_enter_untraced(const struct call *c, struct machine *m)
{
	if (c->number == SYS_exit_group)
		machine_exit_by_other(m);
}

void calls_leave_untraced(const struct call *c, int64_t ret, struct machine *m)
{
	uint64_t begin, size;

	if (ret < 0 && ret >= -4095)
		return;
	if (makes_child(c) && ret > 0)
		count_child(c, m);
	begin = mapped_by(c, ret, &size);
	if (size > 0)
		machine_mapped_by_other(m, begin, size);
}
