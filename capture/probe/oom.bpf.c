/*
 * Processes that the OOM killer chooses.
 *
 * __oom_kill_process() (mm/oom_kill.c) sends SIGKILL with SEND_SIG_PRIV and then calls
 * mark_oom_victim(), in one thread. The first shows the process to the filters on every kernel; the
 * tracepoint of the second has had the process as its argument only since Linux 6.9, and its number
 * before.
 *
 * SPDX-License-Identifier: GPL-2.0
 */
#include "capture/probe/common.bpf.h"

#define SIG_KILL 9
/* include/linux/signal_types.h */
#define SEND_SIG_PRIV 1

/* Threads whose process was sent such a SIGKILL, by their number. */
struct victim {
	__u32 tgid, uid, cpu;
	char comm[SHARED_COMM];
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct victim);
} victims SEC(".maps");

SEC("tp_btf/signal_generate")
int BPF_PROG(oom_kill, int sig, struct kernel_siginfo *info, struct task_struct *t)
{
	struct victim v = {0};
	__u32 tid = t->pid;

	if (sig != SIG_KILL || (unsigned long)info != SEND_SIG_PRIV || !matches(t))
		return 0;
	v.tgid = t->tgid;
	v.uid = t->cred->uid.val;
	v.cpu = t->thread_info.cpu;
	bpf_core_read_str(v.comm, sizeof(v.comm), &t->comm);
	bpf_map_update_elem(&victims, &tid, &v, BPF_ANY);
	return 0;
}

SEC("raw_tp/mark_victim")
int oom_victim(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 what = ctx->args[0];
	__u32 tid = what;
	struct shared_event *e;
	struct victim *v;

	/* A pointer into the kernel. */
	if (what >> 63)
		tid = BPF_CORE_READ((struct task_struct *)what, pid);
	v = bpf_map_lookup_elem(&victims, &tid);
	if (!v)
		return 0;
	e = new_event();
	if (!e)
		return 0;
	e->pid = v->tgid;
	e->tid = tid;
	e->uid = v->uid;
	e->cpu = v->cpu;
	e->by = bpf_get_current_pid_tgid() >> 32;
	__builtin_memcpy(e->comm, v->comm, sizeof(e->comm));
	bpf_map_delete_elem(&victims, &tid);
	end_event(e);
	return 0;
}
