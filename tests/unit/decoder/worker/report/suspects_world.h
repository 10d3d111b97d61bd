/*
 * A made-up decode for the tests of what stands out (decoder/worker/report/suspects*.c): its world,
 * and the answers of the rooms below.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/code/insn.h"
#include "decoder/worker/report/report_suspects.h"
#include "proto/base.h"

#define MS	  UINT64_C(1000000)
#define US	  UINT64_C(1000)
#define NOW	  (1000 * MS)
#define BEGIN	  (500 * MS) /* of the window */
#define N_THREADS 4u
#define N_FUNCS	  8u
#define PID	  100u
#define LOCK_AT	  0x1000u /* in pthread_mutex_lock */
#define CALLER	  0x2000u
#define FUTEX	  202u
#define SHARED	  41u /* turns on a CPU that two threads share */

/* One tick is one ns. CPU 0 was stopped first. Function 0 is unknown code. */
static struct world {
	struct report r;
	struct decode d;
	struct replay replay;
	struct decode_options options;
	struct manifest m;
	struct manifest_cpu cpus[2];
	struct timeline_thread threads[N_THREADS];
	struct report_state states[N_THREADS];
	struct report_thread known[N_THREADS];
	struct tally_counters counters[N_THREADS];
	struct tally_counters *list[N_THREADS];
	struct function functions[N_FUNCS];
	uint32_t order[N_FUNCS];
	struct turns_cpu turns[2];
	struct turns_turn turn[3];
	struct timeline_turn told[3];
	struct turns_turn shared[SHARED]; /* of CPU 1 */
	struct timeline_turn turns_told[SHARED];
	struct marks_cpu marks[2];
	struct mark mark[4];
	struct gap gaps[4];
	struct report_reach reach[2];
	uint64_t calls[N_THREADS];
	uint64_t made[REPORT_LAST_BRANCHES]; /* the system calls of the last branches */
	struct report_asleep asleep[N_THREADS];
	const char *lock; /* the function at LOCK_AT */
	uint8_t code[16]; /* wherever one reads */
} * w;

/* --- The rooms below --- */

struct report_reach __wrap_report_reach(const struct report *r, size_t cpu);
uint64_t __wrap_report_all_begin_ns(const struct decode *d);
uint64_t __wrap_report_system_call(const struct report *r, const struct timeline_thread *thread,
				   const struct tally_counters *counters);
uint64_t __wrap_report_call_at(const struct report *r, const struct tally_counters *c,
			       uint64_t back);
size_t __wrap_replay_read(const struct replay *r, uint32_t context, uint64_t address, uint8_t *to,
			  size_t n);
const char *__wrap_report_linkage_at(const struct report *r, uint32_t context, uint64_t address);
void __wrap_timeline_get_turn(const struct timeline *t, uint32_t cpu, size_t index,
			      struct timeline_turn *ret);

struct report_reach __wrap_report_reach(const struct report *r, size_t cpu)
{
	(void)r;
	return w->reach[cpu];
}

uint64_t __wrap_report_all_begin_ns(const struct decode *d)
{
	(void)d;
	return MAX_OF(w->reach[0].begin, w->reach[1].begin);
}

uint64_t __wrap_report_system_call(const struct report *r, const struct timeline_thread *thread,
				   const struct tally_counters *counters)
{
	(void)r;
	return counters ? w->calls[thread - w->threads] : REPORT_NO_CALL;
}

uint64_t __wrap_report_call_at(const struct report *r, const struct tally_counters *c,
			       uint64_t back)
{
	(void)r;
	return w->made[(c->n_last - 1 - back) % REPORT_LAST_BRANCHES];
}

size_t __wrap_replay_read(const struct replay *r, uint32_t context, uint64_t address, uint8_t *to,
			  size_t n)
{
	(void)r;
	(void)context;
	(void)address;
	memcpy(to, w->code, MIN_OF(n, sizeof(w->code)));
	return MIN_OF(n, sizeof(w->code));
}

const char *__wrap_report_linkage_at(const struct report *r, uint32_t context, uint64_t address)
{
	(void)r;
	(void)context;
	return address == LOCK_AT ? w->lock : "other";
}

void __wrap_timeline_get_turn(const struct timeline *t, uint32_t cpu, size_t index,
			      struct timeline_turn *ret)
{
	(void)t;
	*ret = cpu == 1 ? w->turns_told[index] : w->told[index];
}

/* --- The world --- */

static inline void make_thread(size_t i)
{
	struct tally_counters *c = &w->counters[i];

	w->threads[i] = (struct timeline_thread){PID, PID + (uint32_t)i, 0, SPACE_NOW, 1};
	w->states[i] = (struct report_state){.thread = &w->threads[i],
					     .kind = REPORT_STATE_BLOCKED,
					     .seen = true,
					     .certain = true,
					     .ran = NOW - 2 * MS,
					     .left = NOW - MS,
					     .cpu = 1};
	c->thread = &w->threads[i];
	c->last_tsc = NOW - MS;
	c->ticks = 400 * MS;
	c->ip = 0x3000;
	c->function = TALLY_NO_FUNCTION;
	calls_init(&c->calls);
	w->list[i] = c;
	w->known[i] = (struct report_thread){
		.tally = &w->d.tally, .first = i, .end = i + 1, .thread = &w->threads[i]};
	w->calls[i] = REPORT_NO_CALL;
}

static inline int set_up(void **state)
{
	(void)state;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -1;
	w->lock = "pthread_mutex_lock@@GLIBC_2.2.5";
	w->r.d = &w->d;
	w->r.m = &w->m;
	w->m.cpus = w->cpus;
	w->m.n_cpus = 2;
	w->m.n_images = 3;
	w->m.perf_ns = w->r.now = NOW;
	w->r.options = &w->options;
	w->cpus[1].stop_order = 1;
	w->replay.clock = (struct tscmap){.known = true, .mult = 1};
	w->replay.manifest = &w->m;
	w->replay.turns.cpus = w->turns;
	w->d.replay = &w->replay;
	w->d.tally.functions.list = w->functions;
	w->d.tally.functions.n = N_FUNCS;
	w->d.tally.threads = w->list;
	w->d.tally.n_threads = N_THREADS;
	w->d.marks.cpus = w->marks;
	w->d.marks.lists[MARKS_FREQUENCIES].list = w->mark;
	w->d.gaps.list = w->gaps;
	w->r.states = w->states;
	w->r.threads = w->known;
	w->r.functions = w->order;
	for (size_t i = 0; i < 2; i++)
		w->reach[i] = (struct report_reach){BEGIN, NOW};
	for (size_t i = 0; i < N_THREADS; i++)
		make_thread(i);
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_THREADS; i++)
		calls_done(&w->counters[i].calls);
	durations_done(&w->d.tally.functions.durations);
	insn_reader_free(w->r.reader);
	free(w->r.suspects);
	free(w);
	return 0;
}

/* There are threads [0, N). */
static inline void set_threads(size_t n)
{
	w->r.n_states = n;
	w->r.lists[REPORT_THREADS].total = n;
}

static inline void assert_only(enum report_suspect_kind kind)
{
	assert_int_equal(report_prepare_suspects(&w->r), 0);
	assert_int_equal(w->r.n_suspects, 1);
	assert_int_equal(w->r.suspects[0].kind, kind);
}

static inline void assert_none(void)
{
	assert_int_equal(report_prepare_suspects(&w->r), 0);
	if (w->r.n_suspects > 0)
		fail_msg("%zu suspects, the first of kind %u", w->r.n_suspects,
			 w->r.suspects[0].kind);
}

static inline void set_last(size_t thread, enum flow_kind kind)
{
	struct tally_counters *c = &w->counters[thread];

	c->last[c->n_last++ % REPORT_LAST_BRANCHES] =
		(struct tally_branch){.kind = kind, .tsc_lo = c->last_tsc, .tsc_hi = c->last_tsc};
}

static inline void add_calls(uint32_t function, uint64_t n, uint64_t ticks)
{
	const struct durations_call call = {
		.ticks = ticks, .tsc = NOW - 55 * MS, .thread = &w->threads[0]};

	w->functions[function].calls += n;
	w->functions[function].total_ticks += n * ticks;
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(durations_add(&w->d.tally.functions.durations,
					       &w->functions[function].durations, &call),
				 0);
}

static inline void run(uint64_t since)
{
	set_threads(1);
	w->states[0].kind = REPORT_STATE_RUNNING;
	w->states[0].ran = since;
	w->states[0].left = NOW;
	w->counters[0].last_tsc = NOW;
	set_last(0, FLOW_COND);
}
