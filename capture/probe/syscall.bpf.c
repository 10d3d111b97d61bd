/*
 * System calls that take longer than the limit.
 *
 * SPDX-License-Identifier: GPL-2.0
 */
#include "capture/probe/common.bpf.h"

/* arch/x86/include/asm/thread_info.h: the call has a number of another table. */
#define TS_COMPAT 2

#define N_SYSCALLS (sizeof(params.syscalls) * 8)

struct call {
	__u64 start_ns; /* 0: in no call that counts */
	__u64 nr;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call);
} calls SEC(".maps");

static __always_inline bool is_wanted(__u64 nr)
{
	__u64 any = 0;

	for (int i = 0; i < N_SYSCALLS / 64; i++)
		any |= params.syscalls[i];
	if (!any)
		return true;
	return nr < N_SYSCALLS && (params.syscalls[(nr / 64) & 7] >> (nr % 64) & 1);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long nr)
{
	struct task_struct *t = current_task();
	struct call *c;

	if (!is_wanted(nr) || !matches(t) || (t->thread_info.status & TS_COMPAT))
		return 0;
	c = bpf_task_storage_get(&calls, t, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!c) {
		__sync_fetch_and_add(&missed, 1);
		return 0;
	}
	c->nr = nr;
	c->start_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long result)
{
	struct task_struct *t = current_task();
	struct call *c = bpf_task_storage_get(&calls, t, NULL, 0);
	struct shared_event *e;
	__u64 duration;

	if (!c || !c->start_ns)
		return 0;
	duration = late_by(c->start_ns);
	c->start_ns = 0;
	if (!duration)
		return 0;
	e = begin_event(ctx, t);
	if (!e)
		return 0;
	e->duration_ns = duration;
	e->value = c->nr;
	e->data = result;
	end_event(e);
	return 0;
}
