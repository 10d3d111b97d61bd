/*
 * Threads that wait for a CPU, or are without one, longer than the limit.
 *
 * These tracepoints fire with the run queue locked, where a map should not allocate: the map of
 * beginnings is allocated when the probe is armed.
 *
 * SPDX-License-Identifier: GPL-2.0
 */
#include "capture/probe/common.bpf.h"

/* include/linux/sched.h */
#define TASK_DEAD 0x80

struct wait {
	__u64 start_ns;
	__u64 state; /* in which the thread left its CPU */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct wait);
} waits SEC(".maps");

static __always_inline void begin_wait(struct task_struct *t, __u64 state)
{
	__u32 tid = t->pid;
	struct wait w = {.state = state};

	/* 0: the idle thread of each CPU. */
	if (!tid || !matches(t))
		return;
	w.start_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&waits, &tid, &w, BPF_ANY) != 0)
		__sync_fetch_and_add(&missed, 1);
}

/* T is about to run. */
static __always_inline void end_wait(void *ctx, struct task_struct *t)
{
	__u32 tid = t->pid;
	struct wait *w = bpf_map_lookup_elem(&waits, &tid);
	struct wait ended;

	if (!w)
		return;
	ended = *w;
	bpf_map_delete_elem(&waits, &tid);
	report_late(ctx, t, ended.start_ns, ended.state);
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(wakeup, struct task_struct *t)
{
	begin_wait(t, 0);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(wakeup_new, struct task_struct *t)
{
	begin_wait(t, 0);
	return 0;
}

/* A thread may be woken up while it runs (it was about to sleep). That is no wait: it ends here. */
SEC("tp_btf/sched_switch")
int BPF_PROG(wakeup_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u32 tid = prev->pid;

	if (matches(prev))
		bpf_map_delete_elem(&waits, &tid);
	end_wait(ctx, next);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(offcpu_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	if (preempt || !(state & TASK_DEAD))
		begin_wait(prev, preempt ? 0 : state);
	end_wait(ctx, next);
	return 0;
}
