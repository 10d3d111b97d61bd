/*
 * From block to block: what the PMU is to be told of the way between two of them. One retirement a
 * virtual CPU, used by its guest thread only. retire_step is the hot path, inlined into the block
 * callback; everything unusual is in retire.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/machine/pmu.h"
#include "capture/emu/plugin/code.h"
#include "capture/emu/plugin/truth.h"

/* Blocks between two looks at the clock, at the recorder's wishes and at the PSB counter: about a
 * microsecond. */
#define RETIRE_BUDGET 64

struct retire_signal {
	bool entered; /* a signal brought us to the block */
	uint64_t rsp, ip;
	bool fault;
};

struct retire {
	struct block *prev; /* kind BLOCK_NONE: nothing of the way here is to be told */
	bool retcomp;
	struct emupmu *pmu;
	struct encode_state *encode;
	_Atomic uint64_t *tnt;
	struct emuring_cpu *cpu;
	uint32_t cpu_index;
	struct truth *truth; /* NULL: not asked for */
	struct block none;
	/* The signal frame on which the last seen handler runs; 0: none or returned. */
	uint64_t frame_rsp, frame_ip;
	/* Asks whether a signal brought the guest to its block at a handler. */
	struct retire_signal (*look)(void *userdata);
	/* The recorder's wishes, between two blocks; IP: of the next. */
	void (*service)(void *userdata, uint64_t ip);
	/* An unexplained way. */
	void (*on_jump)(void *userdata);
	void *userdata;
};

/* The caller fills in the callbacks. */
void retire_init(struct retire *rt, struct truth *truth);
/* On another CPU from now on, out of user code. */
void retire_attach(struct retire *rt, struct emupmu *pmu, uint32_t cpu);

/* B is about to run: everything but the usual ways. */
void retire_unusual(struct retire *rt, struct block *prev, struct block *b);
/* The budget is spent, or a PSB is due; B is about to run. */
void retire_service(struct retire *rt, struct block *b);
/* An indirect way to IP, or a return that the stack did not foretell. */
void retire_tip(struct retire *rt, uint64_t ip);
void retire_tnt_full(struct retire *rt);
/* The guest entered the kernel by the last instruction of the last block. */
void retire_leave(struct retire *rt);
/* The guest was interrupted between two blocks, IP the next one's: user code ends here. */
void retire_depart(struct retire *rt, uint64_t ip);
/* rt_sigreturn: the last frame is gone. */
void retire_frame_gone(struct retire *rt);

/* The first N instructions of P were executed. Comes before what tells the PMU of it. */
static inline void retire_truth(struct retire *rt, const struct block *p, unsigned int n)
{
	if (rt->truth != NULL)
		truth_block(rt->truth, rt->pmu->s->now, p, n);
}

static inline void retire_branch(struct retire *rt, bool taken)
{
	if (__builtin_expect(encode_branch(rt->tnt, taken), 0))
		retire_tnt_full(rt);
}

static inline void retire_return(struct retire *rt, uint64_t ip)
{
	if (__builtin_expect(rt->retcomp && encode_return(rt->encode, ip), 1))
		retire_branch(rt, true);
	else
		retire_tip(rt, ip);
}

/* Whether P itself may have led to IP, in a usual way. */
static inline bool retire_follows(const struct block *p, uint64_t ip)
{
	switch (p->kind) {
	case BLOCK_COND: return ip == p->target || ip == p->next;
	case BLOCK_PLAIN:
	case BLOCK_JMP:
	case BLOCK_CALL: return ip == p->target;
	case BLOCK_RET:
	case BLOCK_JMP_IND:
	case BLOCK_CALL_IND: return true;
	default: return false;
	}
}

/* Tells the way from P to IP where it is a usual one; false: it is none. The most frequent kinds
 * first; a jump through a table would be mispredicted more often. */
static inline __attribute__((always_inline)) bool retire_usual(struct retire *rt,
							       const struct block *p, uint64_t ip)
{
	unsigned int kind = p->kind;

	if (kind == BLOCK_COND) {
		if (ip != p->target && ip != p->next)
			return false;
		retire_branch(rt, ip == p->target);
		return true;
	}
	if (kind == BLOCK_PLAIN || kind == BLOCK_JMP)
		return ip == p->target;
	if (kind == BLOCK_RET) {
		retire_return(rt, ip);
		return true;
	}
	if (kind == BLOCK_CALL && ip == p->target) {
		encode_call(rt->encode, p->next);
		return true;
	}
	if (kind != BLOCK_CALL_IND && kind != BLOCK_JMP_IND)
		return false;
	if (kind == BLOCK_CALL_IND)
		encode_call(rt->encode, p->next);
	retire_tip(rt, ip);
	return true;
}

/* B is about to run. */
static inline __attribute__((always_inline)) void retire_step(struct retire *rt, struct block *b,
							      bool with_truth)
{
	struct block *p = rt->prev;
	uint64_t executed = atomic_load_explicit(&rt->cpu->instructions, memory_order_relaxed);

	rt->prev = b;
	atomic_store_explicit(&rt->cpu->ip, 0, memory_order_relaxed);
	atomic_store_explicit(&rt->cpu->instructions, executed + b->n, memory_order_relaxed);
	/* The truth comes first: the thread may be killed between the two. */
	if (with_truth && b->flags == 0 && retire_follows(p, b->ip))
		retire_truth(rt, p, p->n);
	if (__builtin_expect(b->flags != 0 || !retire_usual(rt, p, b->ip), 0))
		retire_unusual(rt, p, b);
	if (__builtin_expect(--rt->pmu->budget < 0, 0))
		retire_service(rt, b);
	atomic_signal_fence(memory_order_release);
	atomic_store_explicit(&rt->cpu->ip, b->ip, memory_order_relaxed);
}
