/*
 * Retirement: the cases that are not frequent.
 *
 * QEMU calls the plugin before a block runs. Only the next call shows how the last block ended: it
 * ran to its end, or it ended early. A block ends early on a fault, on a store into its own code,
 * and where QEMU executes one instruction alone. In these three cases execution continues at one
 * of the block's own instructions, or in a signal handler; then the signal frame names the
 * instruction.
 */
#include "capture/emu/plugin/retire.h"

#include <string.h>

void retire_init(struct retire *rt, struct truth *truth)
{
	memset(rt, 0, sizeof(*rt));
	rt->truth = truth;
	rt->prev = &rt->none;
}

void retire_attach(struct retire *rt, struct emupmu *pmu, uint32_t cpu)
{
	rt->pmu = pmu;
	rt->encode = &pmu->s->encode;
	rt->tnt = pmu->encoder.tnt;
	rt->cpu = pmu->cpu;
	rt->cpu_index = cpu;
	rt->retcomp = pmu->retcomp;
	rt->prev = &rt->none;
}

/* User code begins at IP; reports the entry if tracing is on. */
static void enter(struct retire *rt, uint64_t ip)
{
	if (!rt->pmu->s->enabled || rt->pmu->s->flowing)
		return;
	emupmu_enter(rt->pmu, ip);
	truth_enter(rt->truth, rt->cpu_index, rt->pmu->s->now, rt->pmu->s->encode.pos);
}

void retire_tip(struct retire *rt, uint64_t ip)
{
	emupmu_tip(rt->pmu, ip);
}

void retire_tnt_full(struct retire *rt)
{
	emupmu_tnt_full(rt->pmu);
}

void retire_service(struct retire *rt, struct block *b)
{
	rt->pmu->budget = RETIRE_BUDGET;
	emupmu_service(rt->pmu, b->ip);
	rt->service(rt->userdata, b->ip);
	enter(rt, b->ip);
	rt->prev = rt->pmu->s->flowing ? b : &rt->none;
}

void retire_frame_gone(struct retire *rt)
{
	rt->frame_rsp = 0;
}

/* User code begins at B, after the kernel or after a restart of tracing. */
static void arrive(struct retire *rt, const struct block *b)
{
	enter(rt, b->ip);
	if (!rt->pmu->s->flowing)
		rt->prev = &rt->none;
}

/* Whether execution can continue at IP after the last instruction of P, without a signal. */
static bool may_follow(const struct block *p, uint64_t ip)
{
	if (p->kind == BLOCK_REP)
		return ip == p->next;
	return p->kind == BLOCK_FAR || retire_follows(p, ip);
}

/* Reports how execution came from P to IP. IP may be an instruction of P: P then ended early there.
 * FIRST_INSIDE: prefer this explanation even if a branch of P can also lead to IP. A repeated
 * string instruction that QEMU enters again has not completed, and is reported as an early end,
 * too. */
static void report(struct retire *rt, struct block *p, uint64_t ip, bool first_inside)
{
	int inside = block_index(p, ip);

	if (inside >= 0 && first_inside)
		return retire_truth(rt, p, (unsigned int)inside);
	if (p->kind == BLOCK_TRAP) {
		emupmu_pass(rt->pmu);
		emupmu_interrupt(rt->pmu, p->ip);
		return enter(rt, ip);
	}
	if (p->kind == BLOCK_KERNEL && ip == p->next) {
		emupmu_pass(rt->pmu);
		retire_truth(rt, p, p->n);
		emupmu_leave(rt->pmu);
		return enter(rt, ip);
	}
	if (may_follow(p, ip)) {
		retire_truth(rt, p, p->n);
		if (p->kind == BLOCK_FAR)
			emupmu_tip(rt->pmu, ip);
		else
			retire_usual(rt, p, ip);
		return;
	}
	if (inside >= 0)
		return retire_truth(rt, p, (unsigned int)inside);
	/* No branch leads from P to IP. Report an interrupt, so that the trace stays decodable. */
	retire_truth(rt, p, p->n - 1u);
	truth_jump(rt->truth, ip);
	emupmu_interrupt(rt->pmu, p->last);
	enter(rt, ip);
	rt->on_jump(rt->userdata);
}

/* Whether a signal led from P to B, which begins at a handler. Ordinary code may also call a
 * handler, or loop to its beginning, while the frame of the last signal is still on the stack. */
static bool by_signal(struct retire *rt, const struct block *p, const struct block *b,
		      struct retire_signal *ret)
{
	bool known;

	*ret = rt->look(rt->userdata);
	if (!ret->entered)
		return false;
	known = ret->rsp == rt->frame_rsp && ret->ip == rt->frame_ip;
	rt->frame_rsp = ret->rsp;
	rt->frame_ip = ret->ip;
	if (!may_follow(p, b->ip))
		return true;
	return !known && (may_follow(p, ret->ip) || block_index(p, ret->ip) >= 0);
}

static void signal_entry(struct retire *rt, struct block *p, const struct block *b,
			 const struct retire_signal *s)
{
	/* INT3 and the like complete, enter the kernel and raise the signal there. */
	bool trapped = p->kind == BLOCK_KERNEL && s->ip == p->next;

	if (!trapped)
		report(rt, p, s->ip, s->fault);
	emupmu_pass(rt->pmu);
	if (trapped) {
		retire_truth(rt, p, p->n);
		emupmu_leave(rt->pmu);
	} else {
		emupmu_interrupt(rt->pmu, s->ip);
	}
	arrive(rt, b);
}

void retire_unusual(struct retire *rt, struct block *p, struct block *b)
{
	struct retire_signal s;

	if (p->kind == BLOCK_NONE) {
		if (b->flags & BLOCK_HANDLER) {
			s = rt->look(rt->userdata);
			rt->frame_rsp = s.entered ? s.rsp : rt->frame_rsp;
			rt->frame_ip = s.entered ? s.ip : rt->frame_ip;
		}
		return arrive(rt, b);
	}
	if ((b->flags & BLOCK_HANDLER) && by_signal(rt, p, b, &s))
		return signal_entry(rt, p, b, &s);
	report(rt, p, b->ip, (b->flags & BLOCK_SINGLE) && p->n > 1);
}

void retire_leave(struct retire *rt)
{
	struct block *p = rt->prev;

	rt->prev = &rt->none;
	if (p->kind == BLOCK_NONE)
		return;
	emupmu_pass(rt->pmu);
	if (p->kind == BLOCK_TRAP)
		return emupmu_interrupt(rt->pmu, p->ip);
	retire_truth(rt, p, p->n);
	emupmu_leave(rt->pmu);
}

void retire_interrupt(struct retire *rt, uint64_t ip)
{
	struct block *p = rt->prev;

	/* The third case: the system call instruction has executed, and its callback comes next. */
	if (p->kind == BLOCK_NONE || p->kind == BLOCK_TRAP ||
	    (p->kind == BLOCK_KERNEL && ip == p->next))
		return retire_leave(rt);
	rt->prev = &rt->none;
	report(rt, p, ip, false);
	emupmu_pass(rt->pmu);
	emupmu_interrupt(rt->pmu, ip);
}
