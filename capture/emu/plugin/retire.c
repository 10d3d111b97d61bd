/*
 * From block to block: the unusual ways. Called by the block and system call callbacks of plugin.c
 * (guest thread, which owns the rings), and by tests without an emulator.
 *
 * A block's callback comes before it runs, so how the block before ended is known only now: whole,
 * or broken off by a fault, by a store into its own code, or by an instruction that QEMU wants to
 * run alone. The last three begin anew at one of its instructions; a signal handler's frame says
 * which.
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

/* To user code at IP, if it is traced. */
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

/* Where user code begins: after the kernel or after a restart. */
static void arrive(struct retire *rt, const struct block *b)
{
	enter(rt, b->ip);
	if (!rt->pmu->s->flowing)
		rt->prev = &rt->none;
}

static void depart(struct retire *rt, struct block *p, uint64_t ip)
{
	if (p->kind == BLOCK_KERNEL && ip == p->next)
		emupmu_leave(rt->pmu);
	else
		emupmu_interrupt(rt->pmu, ip);
}

/* No way leads from P to IP: what is told is at least decodable. */
static void jump(struct retire *rt, struct block *p, uint64_t ip)
{
	retire_truth(rt, p, p->n - 1u);
	truth_jump(rt->truth, ip);
	emupmu_interrupt(rt->pmu, p->last);
	enter(rt, ip);
	rt->on_jump(rt->userdata);
}

/* P was broken off before its instruction number N. A repeated string instruction that is entered
 * anew is not yet executed either. */
static void partial(struct retire *rt, struct block *p, int n)
{
	retire_truth(rt, p, (unsigned int)n);
}

/* Whether P itself may have led to its successor IP without a signal. */
static bool may_follow(const struct block *p, uint64_t ip)
{
	if (p->kind == BLOCK_REP)
		return ip == p->next;
	return p->kind == BLOCK_FAR || retire_follows(p, ip);
}

/* Tells how the guest came from P to IP. FIRST_INSIDE: an instruction of P at IP means that it was
 * broken off there, even where a branch of P could lead there. */
static void go(struct retire *rt, struct block *p, uint64_t ip, bool first_inside)
{
	int inside = block_index(p, ip);

	if (inside >= 0 && first_inside)
		return partial(rt, p, inside);
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
	if (!may_follow(p, ip))
		return inside >= 0 ? partial(rt, p, inside) : jump(rt, p, ip);
	retire_truth(rt, p, p->n);
	if (p->kind == BLOCK_FAR)
		emupmu_tip(rt->pmu, ip);
	else
		retire_usual(rt, p, ip);
}

/* A handler may also be called or looped to by ordinary code while its frame is still the one that
 * the last signal made. */
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
	/* INT3 and its like: to the kernel by its own doing, whole, the handler follows. */
	bool itself = p->kind == BLOCK_KERNEL && s->ip == p->next;

	if (!itself)
		go(rt, p, s->ip, s->fault);
	emupmu_pass(rt->pmu);
	if (itself)
		retire_truth(rt, p, p->n);
	depart(rt, p, s->ip);
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
	go(rt, p, b->ip, (b->flags & BLOCK_SINGLE) && p->n > 1);
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

void retire_depart(struct retire *rt, uint64_t ip)
{
	struct block *p = rt->prev;

	/* The last: on the way into a system call, whose callback comes next. */
	if (p->kind == BLOCK_NONE || p->kind == BLOCK_TRAP ||
	    (p->kind == BLOCK_KERNEL && ip == p->next))
		return retire_leave(rt);
	rt->prev = &rt->none;
	go(rt, p, ip, false);
	emupmu_pass(rt->pmu);
	emupmu_interrupt(rt->pmu, ip);
}
