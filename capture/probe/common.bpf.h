/*
 * The specification, the filters on processes, and the ring of events, for all programs.
 *
 * SPDX-License-Identifier: GPL-2.0
 */
#pragma once

#include <stdbool.h>

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "capture/probe/kernel.bpf.h"
#include "capture/probe/shared.h"

/* Depth of a group below the group of a filter that is still seen. */
#define CGROUP_DEPTH 16

extern const volatile struct shared_params params;
/* When the probe was turned on (CLOCK_MONOTONIC); 0: it is off. */
extern __u64 on_since;
extern __u64 missed;

struct events_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 128 * 1024);
};
extern struct events_map events SEC(".maps");

static __always_inline struct task_struct *current_task(void)
{
	return (struct task_struct *)bpf_get_current_task_btf();
}

static __always_inline bool same_file(const struct file *f, const volatile struct shared_file *want)
{
	return BPF_CORE_READ(f, f_inode, i_ino) == want->ino &&
	       BPF_CORE_READ(f, f_inode, i_sb, s_dev) == want->dev;
}

static __always_inline bool in_cgroup(struct task_struct *t)
{
	struct cgroup *group = BPF_CORE_READ(t, cgroups, dfl_cgrp);
	struct cgroup_subsys_state *css = &group->self;

	for (int i = 0; css && i < CGROUP_DEPTH; i++) {
		if (BPF_CORE_READ(css, cgroup, kn, id) == params.cgroup)
			return true;
		css = BPF_CORE_READ(css, parent);
	}
	return false;
}

static __always_inline bool same_comm(struct task_struct *t)
{
	__u64 have[2] = {0};
	const volatile __u64 *want = (const volatile __u64 *)params.comm;

	bpf_core_read_str(have, sizeof(have), &t->comm);
	return have[0] == want[0] && have[1] == want[1];
}

/* Whether the filters on processes let T pass. The cheap ones come first. */
static __always_inline bool matches(struct task_struct *t)
{
	if (!on_since)
		return false;
	if (params.tgid && (__u32)t->tgid != params.tgid)
		return false;
	if (params.has_uid && t->cred->uid.val != params.uid)
		return false;
	if (params.comm[0] && !same_comm(t))
		return false;
	if (params.exe.ino && !same_file(BPF_CORE_READ(t, mm, exe_file), &params.exe))
		return false;
	return !params.cgroup || in_cgroup(t);
}

/* The time since START_NS if that is longer than the limit, and the probe has been on all the time;
 * else 0. */
static __always_inline __u64 late_by(__u64 start_ns)
{
	__u64 duration = bpf_ktime_get_ns() - start_ns;

	return on_since && start_ns >= on_since && duration > params.limit_ns ? duration : 0;
}

/* A new event at the present time. NULL: the ring is full. */
static __always_inline struct shared_event *new_event(void)
{
	struct shared_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		__sync_fetch_and_add(&missed, 1);
		return NULL;
	}
	__builtin_memset(e, 0, sizeof(*e) - sizeof(e->stack));
	e->time_ns = bpf_ktime_get_ns();
	return e;
}

/* A new event of thread T. NULL: the ring is full. */
static __always_inline struct shared_event *begin_event(void *ctx, struct task_struct *t)
{
	struct shared_event *e = new_event();
	bool here = current_task() == t;
	long n = 0;

	if (!e)
		return NULL;
	e->pid = t->tgid;
	e->tid = t->pid;
	e->uid = t->cred->uid.val;
	e->cpu = t->thread_info.cpu;
	bpf_core_read_str(e->comm, sizeof(e->comm), &t->comm);
	/* A thread that runs on another CPU saved its registers at an earlier entry. */
	if (t->mm && (here || !t->on_cpu)) {
		struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(t);

		e->address = BPF_CORE_READ(regs, ip);
	}
	if (t->mm && here)
		n = bpf_get_stack(ctx, e->stack, sizeof(e->stack), BPF_F_USER_STACK);
	e->stack_bytes = n > 0 ? n : 0;
	return e;
}

static __always_inline void end_event(struct shared_event *e)
{
	bpf_ringbuf_submit(e, 0);
}

/* An event of thread T, which waited since START_NS, if it waited longer than the limit. */
static __always_inline void report_late(void *ctx, struct task_struct *t, __u64 start_ns,
					__s64 value)
{
	__u64 duration = late_by(start_ns);
	struct shared_event *e;

	if (!duration)
		return;
	e = begin_event(ctx, t);
	if (!e)
		return;
	e->duration_ns = duration;
	e->value = value;
	end_event(e);
}
