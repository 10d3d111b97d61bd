/*
 * The end of a process with a status, and the execution of a file.
 *
 * SPDX-License-Identifier: GPL-2.0
 */
#include "capture/probe/common.bpf.h"

/* include/linux/sched/signal.h */
#define SIGNAL_GROUP_EXIT 0x00000004

/* Processes that were reported, because two last threads may end at the same time. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} exited SEC(".maps");

static __always_inline bool first_exit(struct task_struct *t)
{
	__u32 tgid = t->tgid;
	__u64 start = t->group_leader->start_time;
	__u64 *known = bpf_map_lookup_elem(&exited, &tgid);

	if (known && *known == start)
		return false;
	return bpf_map_update_elem(&exited, &tgid, &start, known ? BPF_EXIST : BPF_NOEXIST) == 0;
}

/* What wait(2) will return (kernel/exit.c, wait_task_zombie()). */
static __always_inline int wait_status(struct task_struct *t)
{
	if (t->signal->flags & SIGNAL_GROUP_EXIT)
		return t->signal->group_exit_code;
	return t->group_leader->exit_code;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit, struct task_struct *t)
{
	struct shared_event *e;
	int status, code;

	if (t->signal->live.counter != 0)
		return 0;
	status = wait_status(t);
	code = (status >> 8) & 0xff;
	if ((status & 0x7f) || code < params.status_min || code > params.status_max)
		return 0;
	if (!matches(t) || !first_exit(t))
		return 0;
	e = begin_event(ctx, t);
	if (!e)
		return 0;
	e->value = code;
	end_event(e);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sched_process_exec, struct task_struct *t, int old_pid, struct linux_binprm *bprm)
{
	struct shared_event *e;

	if (params.file.ino && !same_file(bprm->file, &params.file))
		return 0;
	if (!matches(t))
		return 0;
	e = begin_event(ctx, t);
	if (e)
		end_event(e);
	return 0;
}
