/*
 * Signals that end their process, and processes that the OOM killer chooses.
 *
 * kernel/signal.c decides what a signal does: complete_signal() when it is generated (sig_fatal(),
 * ptrace, blocked), get_signal() when it is dequeued (SIG_DFL, SIGNAL_UNKILLABLE).
 *
 * SPDX-License-Identifier: GPL-2.0
 */
#include "capture/probe/common.bpf.h"

/* include/linux/sched/signal.h */
#define SIGNAL_GROUP_EXIT 0x00000004
#define SIGNAL_UNKILLABLE 0x00000040
/* include/trace/events/signal.h */
#define TRACE_SIGNAL_DELIVERED 0
#define TRACE_SIGNAL_LOSE_INFO 4

#define SI_KERNEL 0x80
#define MAX_SIG	  64

enum {
	SIG_KILL = 9,
	SIG_CHLD = 17,
	SIG_CONT = 18,
	SIG_STOP = 19,
	SIG_TSTP = 20,
	SIG_TTIN = 21,
	SIG_TTOU = 22,
	SIG_URG = 23,
	SIG_WINCH = 28
};
#define BIT_OF(sig) (1ull << ((sig)-1))
/* Not fatal by default (include/linux/signal.h, SIG_KERNEL_IGNORE_MASK and SIG_KERNEL_STOP_MASK).
 */
#define HARMLESS                                                                     \
	(BIT_OF(SIG_CHLD) | BIT_OF(SIG_CONT) | BIT_OF(SIG_STOP) | BIT_OF(SIG_TSTP) | \
	 BIT_OF(SIG_TTIN) | BIT_OF(SIG_TTOU) | BIT_OF(SIG_URG) | BIT_OF(SIG_WINCH))

/* Processes whose end was reported: tgid to the start time of the leader. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} ended SEC(".maps");

static __always_inline bool first_end(struct task_struct *t)
{
	__u32 tgid = t->tgid;
	__u64 start = t->group_leader->start_time;
	__u64 *known = bpf_map_lookup_elem(&ended, &tgid);

	if (known && *known == start)
		return false;
	bpf_map_update_elem(&ended, &tgid, &start, BPF_ANY);
	return true;
}

/* Whether the default action of SIG ends T, and T has that action. */
static __always_inline bool is_fatal(struct task_struct *t, int sig)
{
	void *action = __builtin_preserve_access_index(&t->sighand->action);
	void *handler = NULL;

	if (BIT_OF(sig) & HARMLESS)
		return false;
	action += (sig - 1) * bpf_core_type_size(struct k_sigaction);
	return bpf_probe_read_kernel(&handler, sizeof(handler), action) == 0 && !handler;
}

static __always_inline bool is_wanted(int sig)
{
	return sig >= 1 && sig <= MAX_SIG && (!params.signals || (params.signals & BIT_OF(sig)));
}

static __always_inline void report(void *ctx, struct task_struct *t, int sig,
				   struct kernel_siginfo *info)
{
	struct shared_event *e;

	if (!matches(t) || !first_end(t))
		return;
	e = begin_event(ctx, t);
	if (!e)
		return;
	e->value = sig;
	e->by = bpf_get_current_pid_tgid() >> 32;
	/* 0 and 1 are no pointers (SEND_SIG_NOINFO, SEND_SIG_PRIV). */
	if ((unsigned long)info > 1 && info->si_code > 0 && info->si_code < SI_KERNEL)
		e->data = (unsigned long)info->_sifields._sigfault._addr;
	end_event(e);
}

SEC("tp_btf/signal_generate")
int BPF_PROG(signal_generate, int sig, struct kernel_siginfo *info, struct task_struct *t,
	     int group, int result)
{
	if (!is_wanted(sig) ||
	    (result != TRACE_SIGNAL_DELIVERED && result != TRACE_SIGNAL_LOSE_INFO))
		return 0;
	if (!is_fatal(t, sig))
		return 0;
	/* Not certain yet; signal_deliver() sees it again. */
	if (sig != SIG_KILL && (t->ptrace || (t->blocked.sig[0] & BIT_OF(sig))))
		return 0;
	report(ctx, t, sig, info);
	return 0;
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(signal_deliver, int sig, struct kernel_siginfo *info, struct k_sigaction *ka)
{
	struct task_struct *t = current_task();

	/* Threads of a process that ends, or executes a file, dequeue SIGKILL, and the reason of an
	 * end is in group_exit_code. signal_generate() has seen a SIGKILL that somebody sent. */
	if (sig == SIG_KILL)
		sig = t->signal->flags & SIGNAL_GROUP_EXIT ? t->signal->group_exit_code & 0x7f : 0;
	if (!is_wanted(sig) || !is_fatal(t, sig))
		return 0;
	if ((t->signal->flags & SIGNAL_UNKILLABLE) && sig != SIG_KILL)
		return 0;
	report(ctx, t, sig, info);
	return 0;
}
