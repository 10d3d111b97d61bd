/*
 * Places of user programs: functions, returns, static probes, and the time between two places.
 *
 * SPDX-License-Identifier: GPL-2.0
 */
#include "capture/probe/common.bpf.h"

/* Calls of the function that a thread has entered and not left, the outermost first. */
struct frames {
	__u32 n;
	struct {
		__u64 sp, start_ns;
	} at[SHARED_FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct frames);
} frames SEC(".maps");

static __always_inline struct frames *frames_of(struct task_struct *t, __u64 flags)
{
	return bpf_task_storage_get(&frames, t, NULL, flags);
}

/* The frames of T, which may be new. NULL: no memory, which is counted. */
static __always_inline struct frames *make_frames(struct task_struct *t)
{
	struct frames *f = frames_of(t, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!f)
		__sync_fetch_and_add(&missed, 1);
	return f;
}

SEC("uprobe")
int user_place(struct pt_regs *ctx)
{
	struct task_struct *t = current_task();
	struct shared_event *e;

	if (!matches(t))
		return 0;
	e = begin_event(ctx, t);
	if (e)
		end_event(e);
	return 0;
}

SEC("uretprobe")
int user_return(struct pt_regs *ctx)
{
	struct task_struct *t = current_task();
	struct shared_event *e;

	if (!matches(t))
		return 0;
	e = begin_event(ctx, t);
	if (!e)
		return 0;
	e->value = ctx->ax;
	end_event(e);
	return 0;
}

/*
 * The stack pointer tells calls apart. Frames at or below the present one are gone, although their
 * return was not seen (longjmp(), an exception).
 */
SEC("uprobe")
int latency_entry(struct pt_regs *ctx)
{
	struct task_struct *t = current_task();
	__u64 sp = ctx->sp;
	struct frames *f;
	__u32 n;

	if (!matches(t))
		return 0;
	f = make_frames(t);
	if (!f)
		return 0;
	n = f->n;
	for (int i = 0; i < SHARED_FRAMES; i++)
		if (n > 0 && n <= SHARED_FRAMES && f->at[n - 1].sp <= sp)
			n--;
	if (n < SHARED_FRAMES) {
		f->at[n].sp = sp;
		f->at[n].start_ns = bpf_ktime_get_ns();
		n++;
	}
	f->n = n;
	return 0;
}

/* The return has removed the return address: 8 bytes. */
SEC("uretprobe")
int latency_return(struct pt_regs *ctx)
{
	struct task_struct *t = current_task();
	struct frames *f = frames_of(t, 0);
	__u64 sp = ctx->sp - 8;

	if (!f)
		return 0;
	for (int i = 0; i < SHARED_FRAMES; i++)
		if (i < f->n && f->at[i].sp == sp) {
			f->n = i;
			report_late(ctx, t, f->at[i].start_ns, ctx->ax);
			return 0;
		}
	return 0;
}

SEC("uprobe")
int span_begin(struct pt_regs *ctx)
{
	struct task_struct *t = current_task();
	struct frames *f;

	if (!matches(t))
		return 0;
	f = make_frames(t);
	if (!f)
		return 0;
	f->n = 1;
	f->at[0].start_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("uprobe")
int span_end(struct pt_regs *ctx)
{
	struct task_struct *t = current_task();
	struct frames *f = frames_of(t, 0);

	if (!f || !f->n)
		return 0;
	f->n = 0;
	report_late(ctx, t, f->at[0].start_ns, 0);
	return 0;
}
