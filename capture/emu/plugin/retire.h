/*
 * Retirement: which instructions of the last block executed, and which branch ended the block.
 *
 * The plugin is called before each translated block. Two successive blocks tell what happened
 * between them: retire_before() compares the block that is about to run with the block before it,
 * and tells the PMU about the branch. One struct retire belongs to one guest thread; only that
 * thread uses it. The frequent cases are inlined into the block callback; the others are in
 * retire.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "capture/emu/machine/pmu.h"
#include "capture/emu/plugin/code.h"
#include "capture/emu/plugin/truth.h"

/* Number of blocks between two calls of retire_service(), which reads the clock, serves the
 * recorder's requests and checks the PSB counter. 64 blocks take about a microsecond. */
#define RETIRE_BUDGET 64

struct retire_signal {
	bool entered; /* the kernel delivered a signal: the block is the first one of a handler */
	uint64_t rsp; /* address of the signal frame */
	uint64_t ip;  /* the instruction that the signal interrupted */
	bool fault;   /* the instruction at ip raised the signal */
};

struct retire {
	/* The last block. Kind BLOCK_NONE: no branch to report (before the first block, after the
	 * kernel, while tracing is off). */
	struct block *prev;
	bool retcomp;
	struct emupmu *pmu;
	struct encode_state *encode;
	_Atomic uint64_t *tnt;
	struct emuring_cpu *cpu;
	uint32_t cpu_index;
	struct truth *truth; /* NULL: no truth file was requested */
	struct block none;
	/* Signal frame of the handler that was entered last. 0: no frame, or the handler has
	 * returned. */
	uint64_t frame_rsp, frame_ip;
	/* Asks whether a signal led to the block that begins at a handler. */
	struct retire_signal (*look)(void *userdata);
	/* Serves the recorder's requests between two blocks. IP: begin of the next block. */
	void (*service)(void *userdata, uint64_t ip);
	/* No branch explains how execution came to the block. */
	void (*on_jump)(void *userdata);
	void *userdata;
};

/* Sets all members to their initial state; the caller then fills in the callbacks. TRUTH is
 * borrowed and may be NULL. */
void retire_init(struct retire *rt, struct truth *truth);
/* From now on the thread runs on the CPU of PMU (borrowed) with index CPU, and is not in user code
 * yet. */
void retire_attach(struct retire *rt, struct emupmu *pmu, uint32_t cpu);

/* B is about to run after PREV. Handles what retire_usual() does not. */
void retire_unusual(struct retire *rt, struct block *prev, struct block *b);
/* The budget is spent, or a PSB is due. B is about to run. */
void retire_service(struct retire *rt, struct block *b);
/* An indirect branch to IP, or a return that the return stack did not predict. */
void retire_tip(struct retire *rt, uint64_t ip);
void retire_tnt_full(struct retire *rt);
/* The last instruction of the last block entered the kernel (a system call). */
void retire_leave(struct retire *rt);
/* The thread was interrupted between two blocks and user code ends here. IP: begin of the next
 * block. */
void retire_interrupt(struct retire *rt, uint64_t ip);
/* The handler called rt_sigreturn, so the last signal frame no longer exists. */
void retire_frame_gone(struct retire *rt);

/* The first N instructions of P executed. Must precede the call that tells the PMU. */
static inline void retire_truth(struct retire *rt, const struct block *p, unsigned int n)
{
	if (rt->truth)
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

/* Whether the last instruction of P can lead to IP, by a branch that retire_usual() handles. */
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

/* Tells the PMU about the branch from P to IP. Returns false if P cannot lead there by a usual
 * branch. The most frequent kinds come first; a jump table would be mispredicted more often. */
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

/* B is about to run: reports what the block before it did, and counts the instructions of B. Called
 * for every block; this is the hot path of the plugin. */
static inline __attribute__((always_inline)) void retire_before(struct retire *rt, struct block *b,
								bool with_truth)
{
	struct block *p = rt->prev;
	uint64_t executed = atomic_load_explicit(&rt->cpu->instructions, memory_order_relaxed);

	rt->prev = b;
	atomic_store_explicit(&rt->cpu->ip, 0, memory_order_relaxed);
	atomic_store_explicit(&rt->cpu->instructions, executed + b->n, memory_order_relaxed);
	/* Write the truth file first: the thread may be killed before it writes the packet. */
	if (with_truth && b->flags == 0 && retire_follows(p, b->ip))
		retire_truth(rt, p, p->n);
	if (__builtin_expect(b->flags != 0 || !retire_usual(rt, p, b->ip), 0))
		retire_unusual(rt, p, b);
	if (__builtin_expect(--rt->pmu->budget < 0, 0))
		retire_service(rt, b);
	atomic_signal_fence(memory_order_release);
	atomic_store_explicit(&rt->cpu->ip, b->ip, memory_order_relaxed);
}
