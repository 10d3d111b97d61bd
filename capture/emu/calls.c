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
#include "capture/emu/maps.h"

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

void calls_enter_traced(const struct call *c, struct machine *m)
{
	if (c->number == SYS_exit || c->number == SYS_exit_group)
		machine_exit(m);
	/* There is no later chance to say so: a successful exec does not return. */
	if (calls_is_exec(c))
		atomic_fetch_add(&m->head->untraced_execs, 1);
}

static void give_mapping(void *userdata, const struct sideband_mapping *mapping)
{
	struct machine *m = userdata;

	sideband_mmap(&m->sideband, m->pmu.s->now, mapping);
}

static void tell_mapped(struct machine *m, uint64_t begin, uint64_t size)
{
	uint64_t end;

	if (size > 0 && !__builtin_add_overflow(begin, size + 4095, &end))
		maps_executable(begin, end & ~4095ull, give_mapping, m);
}

/* Length of the segment that was attached, or 0. */
static uint64_t segment_size(uint64_t id)
{
	struct shmid_ds ds;

	return shmctl((int)id, IPC_STAT, &ds) < 0 ? 0 : ds.shm_segsz;
}

static void tell_mapping_call(const struct call *c, int64_t ret, struct machine *m)
{
	switch (c->number) {
	case SYS_mmap:
		if (c->args[2] & PROT_EXEC)
			tell_mapped(m, (uint64_t)ret, c->args[1]);
		break;
	case SYS_mprotect:
		if (c->args[2] & PROT_EXEC)
			tell_mapped(m, c->args[0], c->args[1]);
		break;
	case SYS_mremap: tell_mapped(m, (uint64_t)ret, c->args[2]); break;
	case SYS_shmat:
		if (c->args[2] & SHM_EXEC)
			tell_mapped(m, (uint64_t)ret, segment_size(c->args[0]));
		break;
	default: break;
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

	if (calls_is_exec(c))
		atomic_fetch_sub(&m->head->untraced_execs, 1);
	if (ret < 0 && ret >= -4095)
		return;
	tell_mapping_call(c, ret, m);
	if (c->number == SYS_prctl && c->args[0] == PR_SET_NAME)
		tell_name(c, m);
	if (!makes_child(c) || ret == 0)
		return;
	count_child(c, m);
	sideband_fork(&m->sideband, m->pmu.s->now, makes_thread(c) ? m->sideband.pid : child, child);
}

void calls_leave_untraced(const struct call *c, int64_t ret, struct machine *m)
{
	if (makes_child(c) && ret > 0)
		count_child(c, m);
}
