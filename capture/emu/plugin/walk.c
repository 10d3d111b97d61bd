/*
 * From block to block: the unusual ways. Called by the block and system call callbacks of plugin.c
 * (guest thread, which owns the rings), and by tests without an emulator.
 *
 * A block's callback comes before it runs, so how the block before ended is known only now: whole,
 * or broken off by a fault, by a store into its own code, or by an instruction that QEMU wants to
 * run alone. The last three begin anew at one of its instructions; a signal handler's frame says
 * which.
 */
#include "capture/emu/plugin/walk.h"

#include <string.h>

void walk_init(struct walk *w, struct truth *truth)
{
	memset(w, 0, sizeof(*w));
	w->truth = truth;
	w->prev = &w->none;
}

void walk_attach(struct walk *w, struct emupmu *pmu, uint32_t cpu)
{
	w->pmu = pmu;
	w->encode = &pmu->s->encode;
	w->tnt = pmu->encoder.tnt;
	w->cpu = pmu->cpu;
	w->cpu_index = cpu;
	w->retcomp = pmu->retcomp;
	w->prev = &w->none;
}

/* To user code at IP, if it is traced. */
static void enter(struct walk *w, uint64_t ip)
{
	if (!w->pmu->s->enabled || w->pmu->s->flowing)
		return;
	emupmu_enter(w->pmu, ip);
	truth_enter(w->truth, w->cpu_index, w->pmu->s->now, w->pmu->s->encode.pos);
}

void walk_tip(struct walk *w, uint64_t ip)
{
	emupmu_tip(w->pmu, ip);
}

void walk_tnt_full(struct walk *w)
{
	emupmu_tnt_full(w->pmu);
}

void walk_service(struct walk *w, struct block *b)
{
	w->pmu->budget = WALK_BUDGET;
	emupmu_service(w->pmu, b->ip);
	w->service(w->userdata, b->ip);
	enter(w, b->ip);
	w->prev = w->pmu->s->flowing ? b : &w->none;
}

void walk_frame_gone(struct walk *w)
{
	w->frame_rsp = 0;
}

/* Where user code begins: after the kernel or after a restart. */
static void arrive(struct walk *w, const struct block *b)
{
	enter(w, b->ip);
	if (!w->pmu->s->flowing)
		w->prev = &w->none;
}

static void depart(struct walk *w, struct block *p, uint64_t ip)
{
	if (p->kind == BLOCK_KERNEL && ip == p->next)
		emupmu_leave(w->pmu);
	else
		emupmu_interrupt(w->pmu, ip);
}

/* No way leads from P to IP: what is told is at least decodable. */
static void jump(struct walk *w, struct block *p, uint64_t ip)
{
	walk_truth(w, p, p->n - 1u);
	truth_jump(w->truth, ip);
	emupmu_interrupt(w->pmu, p->last);
	enter(w, ip);
	w->on_jump(w->userdata);
}

/* P was broken off before its instruction number N. A repeated string instruction that is entered
 * anew is not yet executed either. */
static void partial(struct walk *w, struct block *p, int n)
{
	walk_truth(w, p, (unsigned int)n);
}

/* Whether P itself may have led to its successor IP without a signal. */
static bool may_follow(const struct block *p, uint64_t ip)
{
	if (p->kind == BLOCK_REP)
		return ip == p->next;
	return p->kind == BLOCK_FAR || walk_follows(p, ip);
}

/* Tells how the guest came from P to IP. FIRST_INSIDE: an instruction of P at IP means that it was
 * broken off there, even where a branch of P could lead there. */
static void go(struct walk *w, struct block *p, uint64_t ip, bool first_inside)
{
	int inside = block_index(p, ip);

	if (inside >= 0 && first_inside)
		return partial(w, p, inside);
	if (p->kind == BLOCK_TRAP) {
		emupmu_pass(w->pmu);
		emupmu_interrupt(w->pmu, p->ip);
		return enter(w, ip);
	}
	if (p->kind == BLOCK_KERNEL && ip == p->next) {
		emupmu_pass(w->pmu);
		walk_truth(w, p, p->n);
		emupmu_leave(w->pmu);
		return enter(w, ip);
	}
	if (!may_follow(p, ip))
		return inside >= 0 ? partial(w, p, inside) : jump(w, p, ip);
	walk_truth(w, p, p->n);
	if (p->kind == BLOCK_FAR)
		emupmu_tip(w->pmu, ip);
	else
		walk_usual(w, p, ip);
}

/* A handler may also be called or looped to by ordinary code while its frame is still the one that
 * the last signal made. */
static bool by_signal(struct walk *w, const struct block *p, const struct block *b,
		      struct walk_signal *ret)
{
	bool known;

	*ret = w->look(w->userdata);
	if (!ret->entered)
		return false;
	known = ret->rsp == w->frame_rsp && ret->ip == w->frame_ip;
	w->frame_rsp = ret->rsp;
	w->frame_ip = ret->ip;
	if (!may_follow(p, b->ip))
		return true;
	return !known && (may_follow(p, ret->ip) || block_index(p, ret->ip) >= 0);
}

static void signal_entry(struct walk *w, struct block *p, const struct block *b,
			 const struct walk_signal *s)
{
	/* INT3 and its like: to the kernel by its own doing, whole, the handler follows. */
	bool itself = p->kind == BLOCK_KERNEL && s->ip == p->next;

	if (!itself)
		go(w, p, s->ip, s->fault);
	emupmu_pass(w->pmu);
	if (itself)
		walk_truth(w, p, p->n);
	depart(w, p, s->ip);
	arrive(w, b);
}

void walk_unusual(struct walk *w, struct block *p, struct block *b)
{
	struct walk_signal s;

	if (p->kind == BLOCK_NONE) {
		if (b->flags & BLOCK_HANDLER) {
			s = w->look(w->userdata);
			w->frame_rsp = s.entered ? s.rsp : w->frame_rsp;
			w->frame_ip = s.entered ? s.ip : w->frame_ip;
		}
		return arrive(w, b);
	}
	if ((b->flags & BLOCK_HANDLER) && by_signal(w, p, b, &s))
		return signal_entry(w, p, b, &s);
	go(w, p, b->ip, (b->flags & BLOCK_SINGLE) && p->n > 1);
}

void walk_leave(struct walk *w)
{
	struct block *p = w->prev;

	w->prev = &w->none;
	if (p->kind == BLOCK_NONE)
		return;
	emupmu_pass(w->pmu);
	if (p->kind == BLOCK_TRAP)
		return emupmu_interrupt(w->pmu, p->ip);
	walk_truth(w, p, p->n);
	emupmu_leave(w->pmu);
}

void walk_depart(struct walk *w, uint64_t ip)
{
	struct block *p = w->prev;

	/* The last: on the way into a system call, whose callback comes next. */
	if (p->kind == BLOCK_NONE || p->kind == BLOCK_TRAP ||
	    (p->kind == BLOCK_KERNEL && ip == p->next))
		return walk_leave(w);
	w->prev = &w->none;
	go(w, p, ip, false);
	emupmu_pass(w->pmu);
	emupmu_interrupt(w->pmu, ip);
}
