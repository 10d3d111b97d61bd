/*
 * decoder/worker/report/report_suspects.c and suspects_*.c: what a decode has found is made up, as
 * are the answers of the rooms below. For each rule there is a case that meets it, and cases that
 * just do not.
 */
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

static void make_thread(size_t i)
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

static int set_up(void **state)
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

static int tear_down(void **state)
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
static void set_threads(size_t n)
{
	w->r.n_states = n;
	w->r.lists[REPORT_THREADS].total = n;
}

static void assert_only(enum report_suspect_kind kind)
{
	assert_int_equal(report_prepare_suspects(&w->r), 0);
	assert_int_equal(w->r.n_suspects, 1);
	assert_int_equal(w->r.suspects[0].kind, kind);
}

static void assert_none(void)
{
	assert_int_equal(report_prepare_suspects(&w->r), 0);
	if (w->r.n_suspects > 0)
		fail_msg("%zu suspects, the first of kind %u", w->r.n_suspects,
			 w->r.suspects[0].kind);
}

static void set_last(size_t thread, enum flow_kind kind)
{
	struct tally_counters *c = &w->counters[thread];

	c->last[c->n_last++ % REPORT_LAST_BRANCHES] =
		(struct tally_branch){.kind = kind, .tsc_lo = c->last_tsc, .tsc_hi = c->last_tsc};
}

static void add_calls(uint32_t function, uint64_t n, uint64_t ticks)
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

/* --- Nothing --- */

static void suspects_of_nothing_are_none(void **state)
{
	(void)state;
	assert_none();
}

static void suspects_of_an_idle_process_are_none(void **state)
{
	(void)state;
	set_threads(N_THREADS);
	add_calls(1, 1000, 50 * US);
	add_calls(2, 1000, 300);
	assert_none();
}

static void suspects_without_a_trigger_are_none_of_threads(void **state)
{
	(void)state;
	set_threads(1);
	w->r.now = MANIFEST_ABSENT;
	w->states[0].kind = REPORT_STATE_RUNNABLE;
	w->states[0].left = BEGIN;
	assert_none();
}

/* --- crash --- */

static void exit_all(size_t n)
{
	set_threads(n);
	for (size_t i = 0; i < n; i++) {
		w->states[i].kind = REPORT_STATE_EXITED;
		w->states[i].ran = NOW - 11 * MS;
		set_last(i, FLOW_DISABLE);
		w->counters[i].last_tsc = NOW - 10 * MS + i;
	}
}

static void suspects_crash_names_the_thread_that_was_interrupted_first(void **state)
{
	(void)state;
	exit_all(2);
	assert_only(SUSPECT_CRASH);
	assert_ptr_equal(w->r.suspects[0].thread, &w->threads[0]);
	assert_int_equal(w->r.suspects[0].address, 0x3000);
}

/* As abort(3), a failed assertion, or an exception that nothing catches. */
static void suspects_crash_by_a_signal_of_its_own(void **state)
{
	const uint64_t calls[] = {62, 200, 234}; /* kill, tkill, tgkill */

	(void)state;
	exit_all(2);
	set_last(0, FLOW_SYSCALL);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		w->calls[0] = calls[i];
		w->r.n_suspects = 0;
		assert_only(SUSPECT_CRASH);
		assert_ptr_equal(w->r.suspects[0].thread, &w->threads[0]);
	}
}

static void suspects_crash_with_a_thread_left_is_none(void **state)
{
	(void)state;
	exit_all(2);
	w->states[1].kind = REPORT_STATE_BLOCKED;
	assert_none();
}

static void suspects_crash_with_a_thread_that_may_have_called_exit_is_none(void **state)
{
	(void)state;
	exit_all(2);
	set_last(1, FLOW_SYSCALL);
	w->calls[1] = 231;
	assert_none();
	w->calls[1] = REPORT_NO_CALL;
	assert_none();
}

static void suspects_crash_with_a_thread_of_unknown_code_is_none(void **state)
{
	(void)state;
	exit_all(2);
	w->known[1].end = w->known[1].first;
	assert_none();
}

/* What the threads executed behind the gap is not known. */
static void suspects_crash_with_a_gap_behind_is_none(void **state)
{
	(void)state;
	exit_all(2);
	w->gaps[0] = gaps_blank(FAULT_THREAD_UNCERTAIN);
	w->gaps[0].time_ns = NOW - 10 * MS + 1000;
	w->states[0].left = w->states[1].left = NOW - 9 * MS;
	w->d.gaps.n = 1;
	assert_none();
	w->gaps[0].time_ns = NOW - 12 * MS;
	assert_only(SUSPECT_CRASH);
}

/* A deadline left only parts of the trace, in which the last code may be another thread's. */
static void suspects_crash_with_a_last_stretch_is_none(void **state)
{
	(void)state;
	exit_all(2);
	w->d.window.limited = true;
	w->known[0].known = REPORT_LAST_STRETCH;
	assert_none();
	w->known[0].known = REPORT_DECODED;
	assert_only(SUSPECT_CRASH);
}

static void suspects_crash_with_a_thread_that_is_not_listed_is_none(void **state)
{
	(void)state;
	exit_all(2);
	w->r.lists[REPORT_THREADS].total = 1;
	assert_none();
}

/* Both threads were interrupted at 0x3010, behind other instructions. */
static void interrupt_all(void)
{
	w->r.reader = insn_reader_new();
	assert_non_null(w->r.reader);
	exit_all(2);
	for (size_t i = 0; i < 2; i++) {
		struct tally_counters *c = &w->counters[i];

		c->n_last = 0;
		c->last[c->n_last++] = (struct tally_branch){.kind = FLOW_RET, .to = 0x3000};
		c->last[c->n_last++] = (struct tally_branch){.kind = FLOW_DISABLE,
							     .from = 0x3010,
							     .tsc_lo = c->last_tsc,
							     .tsc_hi = c->last_tsc};
	}
}

static bool is_from_outside(const char *code)
{
	memset(w->code, 0x90, sizeof(w->code));
	memcpy(w->code, code, strlen(code));
	w->r.n_suspects = 0;
	assert_only(SUSPECT_CRASH);
	return w->r.suspects[0].outside;
}

static void suspects_crash_at_an_instruction_of_registers_came_from_outside(void **state)
{
	static const char *const harmless[] = {
		"\x48\x89\xc3",		    /* mov %rax, %rbx */
		"\x83\xc0\x01",		    /* add $1, %eax */
		"\x75\xfe",		    /* jne */
		"\x0f\x84\x10\x20\x30\x40", /* je */
		"\xeb\xfe",		    /* jmp */
		"\x48\x8d\x44\x24\x08",	    /* lea 8(%rsp), %rax */
		"\x48\xf7\xd8",		    /* neg %rax */
		"\x41\xff\xc4",		    /* inc %r12d */
		"\x0f\xb6\xc0",		    /* movzbl %al, %eax */
		"\x0f\x1f\x44",		    /* nop */
		"\xf3\x90",		    /* pause */
		"\xb8\x01\x02\x03\x04",	    /* mov $, %eax */
		"\x66\x90",
	};
	static const char *const others[] = {
		"\x48\x89\x03",		    /* mov %rax, (%rbx) */
		"\x48\x8b\x44\x24\x08",	    /* mov 8(%rsp), %rax */
		"\x50",			    /* push %rax */
		"\xc3",			    /* ret */
		"\xe8\x01\x01\x01\x01",	    /* call: writes to the stack */
		"\x48\xf7\xf9",		    /* idiv %rcx */
		"\xf7\xf1",		    /* div %ecx */
		"\x0f\x0b",		    /* ud2 */
		"\xf4",			    /* hlt */
		"\xcc",			    /* int3 */
		"\x0f\x05",		    /* syscall */
		"\xf2\x0f\x5e\xc1",	    /* divsd */
		"\x0f\x57\xc0",		    /* xorps */
		"\xa4",			    /* movsb */
		"\xff\xe0",		    /* jmp *%rax: it may lead anywhere */
		"\xff\xd0",		    /* call *%rax */
		"\xd9\xe8",		    /* fld1 */
		"\xc5\xf8\x28\xc1",	    /* vmovaps */
		"\xf0\x48\x01\xc3",	    /* lock add %rax, %rbx is no instruction */
		"\x9d",			    /* popf */
		"\x8e\xd8",		    /* mov %eax, %ds */
		"\xc7\xf8\x10\x20\x30\x40", /* xbegin */
	};

	(void)state;
	interrupt_all();
	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		if (!is_from_outside(harmless[i]))
			fail_msg("harmless instruction %zu", i);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (is_from_outside(others[i]))
			fail_msg("other instruction %zu", i);
}

static void suspects_crash_that_may_be_another_thread_s_does_not_say_from_where(void **state)
{
	const char *nop = "\x90";

	(void)state;
	interrupt_all();
	assert_true(is_from_outside(nop));
	/* The second thread waits, or writes to a pipe, which may be closed. */
	w->counters[1].last[1].kind = FLOW_SYSCALL;
	w->calls[1] = FUTEX;
	assert_true(is_from_outside(nop));
	w->calls[1] = 1;
	assert_false(is_from_outside(nop));
	w->counters[1].last[1].kind = FLOW_DISABLE;
	/* The page of the instruction may be there no more. */
	w->counters[1].last[0].to = 0x3010;
	assert_false(is_from_outside(nop));
	w->counters[1].last[0].to = 0x2ffe;
	assert_false(is_from_outside(nop));
	w->counters[1].last[0].to = 0x3000;
	assert_true(is_from_outside(nop));
	/* A jump within the page. */
	w->counters[1].last[0].to = 0x3010;
	w->counters[1].last[0].from = 0x3020;
	assert_true(is_from_outside(nop));
	w->counters[1].last[0].from = 0x4020;
	assert_false(is_from_outside(nop));
}

/* --- deadlock, lock-wait --- */

static void wait_for_lock(size_t thread, uint64_t ns)
{
	w->states[thread].left = NOW - ns;
	w->states[thread].ran = NOW - ns - US;
	w->counters[thread].last_tsc = NOW - ns;
	w->counters[thread].ip = LOCK_AT;
	w->calls[thread] = FUTEX;
	set_last(thread, FLOW_SYSCALL);
	assert_int_equal(calls_push(&w->counters[thread].calls,
				    &(struct calls_frame){.from = CALLER},
				    &(struct calls_frame){0}),
			 0);
}

static void suspects_deadlock_has_the_threads_that_wait_for_a_lock(void **state)
{
	(void)state;
	set_threads(3);
	wait_for_lock(0, 20 * MS);
	wait_for_lock(1, 10 * MS);
	wait_for_lock(2, 30 * MS);
	w->counters[2].ip = 0x3000; /* in pthread_join */
	assert_only(SUSPECT_DEADLOCK);
	assert_int_equal(w->r.suspects[0].n_tids, 2);
	assert_int_equal(w->r.suspects[0].tids[1], PID + 1);
	assert_int_equal(w->r.suspects[0].since, NOW - 10 * MS);
}

/* What /proc told of THREAD behind the trigger: it waits for a lock that OWNER holds. */
static void sleep_for(size_t thread, size_t owner)
{
	w->asleep[w->r.n_asleep++] = (struct report_asleep){.pid = PID,
							    .tid = PID + (uint32_t)thread,
							    .ns_tid = 1 + (uint32_t)thread,
							    .call = FUTEX,
							    .futex = 0x5000 + owner,
							    .owner = 1 + (uint32_t)owner};
	w->r.asleep = w->asleep;
	w->r.states = w->states;
}

/* Threads 0, 1 and 2 wait for one another, and thread 3 runs. */
static void make_cycle(void)
{
	w->r.n_suspects = w->r.n_asleep = 0;
	set_threads(4);
	for (size_t i = 0; i < 3; i++) {
		w->states[i].again = false;
		w->states[i].certain = true;
		wait_for_lock(i, (20 + i) * MS);
		sleep_for(i, (i + 1) % 3);
	}
	w->states[3].kind = REPORT_STATE_RUNNING;
}

static void suspects_deadlock_of_threads_that_hold_each_others_locks(void **state)
{
	(void)state;
	make_cycle();
	assert_only(SUSPECT_DEADLOCK);
	assert_true(w->r.suspects[0].cycle);
	assert_int_equal(w->r.suspects[0].n_tids, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(w->r.suspects[0].tids[i], PID + i);
	assert_int_equal(w->r.suspects[0].since, NOW - 20 * MS);
}

static size_t suspects_of_cycle(void)
{
	size_t deadlocks = 0;

	assert_int_equal(report_prepare_suspects(&w->r), 0);
	for (size_t i = 0; i < w->r.n_suspects; i++)
		deadlocks += w->r.suspects[i].kind == SUSPECT_DEADLOCK;
	return deadlocks;
}

static void suspects_deadlock_of_locks_that_may_have_changed_hands_is_none(void **state)
{
	(void)state;
	make_cycle();
	w->states[1].again = true; /* it had a CPU behind the trigger */
	assert_int_equal(suspects_of_cycle(), 0);
	make_cycle();
	w->r.doubt_behind = true;
	assert_int_equal(suspects_of_cycle(), 0);
	w->r.doubt_behind = false;
	make_cycle();
	w->states[2].certain = false;
	assert_int_equal(suspects_of_cycle(), 0);
	make_cycle();
	w->asleep[2].call = 1; /* not what the trace shows */
	assert_int_equal(suspects_of_cycle(), 0);
	make_cycle();
	w->asleep[2].owner = 4; /* thread 3, which runs */
	assert_int_equal(suspects_of_cycle(), 0);
	make_cycle();
	w->lock = "pthread_rwlock_wrlock"; /* has no owner there */
	assert_int_equal(suspects_of_cycle(), 0);
	w->lock = "pthread_mutex_lock";
	make_cycle();
	assert_int_equal(suspects_of_cycle(), 1);
}

static void suspects_lock_wait_names_who_holds_the_lock(void **state)
{
	(void)state;
	set_threads(2);
	wait_for_lock(0, 20 * MS);
	sleep_for(0, 1);
	sleep_for(1, 9);
	w->asleep[1].call = 0; /* read(2) */
	w->calls[1] = 0;
	set_last(1, FLOW_SYSCALL);
	assert_only(SUSPECT_LOCK_WAIT);
	assert_ptr_equal(w->r.suspects[0].other, &w->threads[1]);
}

static void suspects_deadlock_too_short_is_the_wait_of_one(void **state)
{
	(void)state;
	set_threads(2);
	wait_for_lock(0, 20 * MS);
	wait_for_lock(1, 10 * MS - 1);
	assert_only(SUSPECT_LOCK_WAIT);
	assert_ptr_equal(w->r.suspects[0].thread, &w->threads[0]);
	assert_int_equal(w->r.suspects[0].address, CALLER);
}

static void suspects_deadlock_with_an_uncertain_thread_is_none(void **state)
{
	(void)state;
	set_threads(2);
	wait_for_lock(0, 20 * MS);
	wait_for_lock(1, 20 * MS);
	w->states[1].certain = false;
	assert_only(SUSPECT_LOCK_WAIT);
}

static void suspects_deadlock_with_a_thread_that_is_not_listed_is_none(void **state)
{
	(void)state;
	set_threads(3);
	wait_for_lock(0, 20 * MS);
	wait_for_lock(1, 20 * MS);
	w->states[2].kind = REPORT_STATE_RUNNING;
	w->r.lists[REPORT_THREADS].total = 2;
	assert_int_equal(report_prepare_suspects(&w->r), 0);
	assert_int_equal(w->r.n_suspects, 2);
	assert_int_equal(w->r.suspects[0].kind, SUSPECT_LOCK_WAIT);
}

/* A lock of a process with one thread may be shared with another process. */
static void suspects_deadlock_of_one_thread_is_the_wait_of_one(void **state)
{
	(void)state;
	set_threads(2);
	wait_for_lock(0, 20 * MS);
	w->states[1].kind = REPORT_STATE_EXITED;
	w->states[1].left = NOW - 30 * MS;
	set_last(1, FLOW_SYSCALL);
	w->calls[1] = 60;
	assert_only(SUSPECT_LOCK_WAIT);
}

/* Who holds the lock waits for a condition, and not forever. */
static void suspects_deadlock_with_a_wait_that_has_a_limit_is_none(void **state)
{
	static const char *const names[] = {"pthread_cond_timedwait@@GLIBC_2.3.2",
					    "___pthread_cond_clockwait", "sem_timedwait"};

	(void)state;
	set_threads(2);
	wait_for_lock(0, 20 * MS);
	wait_for_lock(1, 20 * MS);
	w->counters[1].ip = 0x3000;
	assert_only(SUSPECT_DEADLOCK);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		w->functions[5].name = names[i];
		w->counters[1].function = i == 0 ? 5 : TALLY_NO_FUNCTION;
		calls_slot(&w->counters[1].calls, 0)->function = i == 0 ? TALLY_NO_FUNCTION : 5;
		w->r.n_suspects = 0;
		assert_only(SUSPECT_LOCK_WAIT);
	}
}

static void suspects_deadlock_of_locks_of_other_languages(void **state)
{
	static const char *const names[] = {
		"_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync5mutex5futexNtB2_5Mutex14lock_contended",
		"_ZN3std3sys4sync6rwlock5futex6RwLock15write_contended17h0123456789abcdefE",
		"__cxa_guard_acquire@@CXXABI_1.3",
		"_ZN13ObjectMonitor6EnterIEP10JavaThread",
	};

	(void)state;
	set_threads(2);
	wait_for_lock(0, 20 * MS);
	wait_for_lock(1, 20 * MS);
	w->calls[0] = w->calls[1] = REPORT_NO_CALL; /* syscall(2) has the number of its caller */
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		w->lock = names[i];
		w->r.n_suspects = 0;
		assert_only(SUSPECT_DEADLOCK);
	}
}

static void suspects_lock_wait_too_short_is_none(void **state)
{
	(void)state;
	set_threads(2);
	wait_for_lock(0, 10 * MS - 1);
	assert_none();
}

/* As Java's, which sleeps, is woken, and sleeps again until it has the lock. */
static void
suspects_lock_wait_of_a_function_that_sleeps_again_lasts_as_long_as_the_call(void **state)
{
	struct calls_frame jumped = {.from = CALLS_JUMP};

	(void)state;
	set_threads(2);
	wait_for_lock(0, MS);
	w->counters[0].begin.tsc = NOW - 10 * MS + 1;
	assert_none();
	w->counters[0].begin.tsc = NOW - 10 * MS;
	assert_only(SUSPECT_LOCK_WAIT);
	assert_int_equal(w->r.suspects[0].since, NOW - 10 * MS);
	/* The caller called the PLT, which jumped to the function. */
	jumped.begin.tsc = NOW - 20 * MS;
	assert_int_equal(calls_push(&w->counters[0].calls, &jumped, &(struct calls_frame){0}), 0);
	w->r.n_suspects = 0;
	calls_slot(&w->counters[0].calls, 0)->begin.tsc = NOW - 90 * MS; /* the caller's */
	assert_only(SUSPECT_LOCK_WAIT);
	assert_int_equal(w->r.suspects[0].since, NOW - 20 * MS);
	w->states[0].certain = false;
	w->r.n_suspects = 0;
	assert_none();
}

/* What lasts comes before what was, which may be long ago. */
static void suspects_lock_wait_comes_before_slow_calls(void **state)
{
	(void)state;
	set_threads(2);
	wait_for_lock(0, 20 * MS);
	add_calls(1, 1000, 30 * US);
	add_calls(1, 6, 3 * MS);
	assert_int_equal(report_prepare_suspects(&w->r), 0);
	assert_int_equal(w->r.n_suspects, 2);
	assert_int_equal(w->r.suspects[0].kind, SUSPECT_LOCK_WAIT);
	assert_int_equal(w->r.suspects[1].kind, SUSPECT_SLOW_CALLS);
}

static void suspects_lock_wait_in_a_page_fault_is_none(void **state)
{
	(void)state;
	set_threads(2);
	wait_for_lock(0, 20 * MS);
	w->calls[0] = REPORT_NO_CALL;
	set_last(0, FLOW_DISABLE);
	assert_none();
}

/* --- long-call --- */

/* Thread 0 runs FUNCTION since SINCE, directly in what runs so far. */
static void enter(uint32_t function, uint64_t since)
{
	struct tally_counters *c = &w->counters[0];
	const struct calls_frame frame = {
		.from = CALLER, .function = c->function, .begin = c->begin};

	if (c->function != TALLY_NO_FUNCTION)
		assert_int_equal(calls_push(&c->calls, &frame, &(struct calls_frame){0}), 0);
	c->function = function;
	c->begin = (struct calls_begin){since, c->ticks - (NOW - since)};
	w->functions[function].calls++;
	w->functions[function].unended++;
	w->functions[function].total_ticks += NOW - since;
}

static void run(uint64_t since)
{
	set_threads(1);
	w->states[0].kind = REPORT_STATE_RUNNING;
	w->states[0].ran = since;
	w->states[0].left = NOW;
	w->counters[0].last_tsc = NOW;
	set_last(0, FLOW_COND);
}

static void suspects_long_call_that_usually_ends_at_once(void **state)
{
	(void)state;
	run(BEGIN);
	add_calls(1, 50, 2 * MS);
	enter(1, NOW - 20 * MS);
	assert_only(SUSPECT_LONG_CALL);
	assert_int_equal(w->r.suspects[0].function, 1);
	assert_int_equal(w->r.suspects[0].since, NOW - 20 * MS);
	assert_int_equal(w->r.suspects[0].calls, 50);
	assert_int_equal(w->r.suspects[0].longest_ns, 2 * MS);
}

static void suspects_long_call_too_short_is_none(void **state)
{
	(void)state;
	run(NOW - 30 * MS);
	add_calls(1, 50, 2 * MS);
	enter(1, NOW - 20 * MS + 1);
	assert_none();
}

static void suspects_long_call_that_often_takes_a_tenth_is_none(void **state)
{
	(void)state;
	run(NOW - 30 * MS);
	add_calls(1, 50, 2 * MS + 1);
	enter(1, NOW - 20 * MS);
	assert_none();
}

static void suspects_long_call_of_an_uncertain_thread_is_none(void **state)
{
	(void)state;
	run(NOW - 30 * MS);
	add_calls(1, 50, US);
	enter(1, NOW - 20 * MS);
	w->states[0].certain = false;
	assert_none();
}

static void suspects_long_call_whose_end_has_no_exact_time_is_none(void **state)
{
	(void)state;
	run(NOW - 30 * MS);
	add_calls(1, 50, US);
	enter(1, NOW - 25 * MS);
	w->counters[0].last[0].tsc_lo = NOW - 25 * MS;
	w->counters[0].last[0].tsc_hi = NOW + 25 * MS;
	assert_none();
}

/* What jumped to another function has no more to do: that one is in its place. */
static void suspects_long_call_that_jumped_to_another_is_none(void **state)
{
	(void)state;
	run(NOW - 30 * MS);
	add_calls(1, 50, US);
	enter(1, NOW - 20 * MS);
	enter(2, NOW - MS);
	calls_slot(&w->counters[0].calls, 0)->from = CALLS_JUMP;
	assert_none();
	add_calls(2, 50, US);
	w->counters[0].begin.tsc = NOW - 20 * MS;
	assert_only(SUSPECT_LONG_CALL);
	assert_int_equal(w->r.suspects[0].function, 2);
}

/* The thread went on behind the trigger until its CPU was stopped: its state does not say how. */
static void suspects_long_call_counts_only_up_to_the_trigger(void **state)
{
	(void)state;
	run(NOW - 30 * MS);
	add_calls(1, 50, US);
	enter(1, NOW - 20 * MS + 1);
	w->counters[0].last_tsc = NOW + 15 * MS;
	set_last(0, FLOW_COND);
	assert_none();
}

static void suspects_long_call_that_was_blocked_for_most_of_the_time_is_none(void **state)
{
	(void)state;
	run(NOW - 10 * MS);
	add_calls(1, 50, US);
	enter(1, NOW - 40 * MS);
	w->states[0].cpu = 0;
	w->turns[0] = (struct turns_cpu){.list = w->turn, .n = 2};
	w->turn[0] = (struct turns_turn){.since = BEGIN, .before = TURNS_NONE};
	w->turn[1] = (struct turns_turn){.since = NOW - 10 * MS, .before = 0};
	w->told[0] = (struct timeline_turn){.since = BEGIN, .until = NOW - 31 * MS};
	assert_none();
}

/* fetch() tries again every 2 ms, and usually comes back at once. */
static void retry(unsigned turns, uint64_t calls)
{
	static const uint64_t step = 2 * MS;

	run(NOW - step);
	add_calls(1, calls, US);
	enter(1, NOW - 40 * MS);
	w->states[0].kind = REPORT_STATE_BLOCKED;
	w->states[0].cpu = 1;
	w->calls[0] = 230; /* clock_nanosleep */
	w->states[0].left = w->counters[0].last_tsc = NOW - step + US;
	set_last(0, FLOW_SYSCALL);
	w->turns[1] = (struct turns_cpu){.cpu = 1, .list = w->shared, .n = turns + 1};
	for (unsigned i = 0; i <= turns; i++) {
		const uint64_t since = i == 0 ? BEGIN : NOW - step * (turns + 1 - i);

		w->shared[i] = (struct turns_turn){.since = since,
						   .until = since + US,
						   .thread = &w->threads[0],
						   .before = i == 0 ? TURNS_NONE : i - 1,
						   .before_cpu = 1};
		w->turns_told[i] = (struct timeline_turn){.since = since, .until = since + US};
	}
}

static void suspects_long_call_that_sleeps_and_tries_again(void **state)
{
	(void)state;
	retry(10, 100);
	assert_only(SUSPECT_LONG_CALL);
	assert_int_equal(w->r.suspects[0].function, 1);
}

static void suspects_long_call_that_sleeps_seldom_is_none(void **state)
{
	(void)state;
	retry(9, 100);
	assert_none();
}

static void suspects_long_call_that_sleeps_and_has_no_usual_duration_is_none(void **state)
{
	(void)state;
	retry(10, 99);
	assert_none();
}

static void suspects_long_call_of_a_first_call_that_spins(void **state)
{
	(void)state;
	run(NOW - 30 * MS);
	enter(1, NOW - 63 * MS);
	w->functions[1].self_ticks = 63 * MS;
	assert_only(SUSPECT_LONG_CALL);
	assert_int_equal(w->r.suspects[0].calls, 0);
}

static void suspects_long_call_since_the_beginning_is_none(void **state)
{
	(void)state;
	run(NOW - 30 * MS);
	enter(1, BEGIN + 249 * MS);
	w->functions[1].self_ticks = 251 * MS;
	assert_none();
}

/* serve() calls handle() again and again, which is running now. */
static void suspects_long_call_of_an_endless_outer_loop_is_none(void **state)
{
	(void)state;
	run(NOW - 30 * MS);
	add_calls(2, 1000, 50 * US);
	enter(1, NOW - 63 * MS);
	enter(2, NOW - 15 * MS);
	w->functions[1].self_ticks = 31 * MS;
	assert_none();
}

/* Around it are others that wait for the loop. */
static void suspects_long_call_around_an_endless_loop_is_none(void **state)
{
	(void)state;
	run(NOW - 30 * MS);
	add_calls(2, 1000, 50 * US);
	enter(3, NOW - 63 * MS);
	enter(1, NOW - 60 * MS);
	enter(2, NOW - MS);
	assert_none();
}

/* What it called last returned, and it runs itself. */
static void suspects_long_call_of_an_outer_loop_between_two_calls_is_none(void **state)
{
	(void)state;
	run(NOW - 30 * MS);
	enter(1, NOW - 63 * MS);
	set_last(0, FLOW_RET);
	set_last(0, FLOW_COND);
	w->functions[1].self_ticks = 31 * MS;
	assert_none();
}

static void suspects_long_call_of_a_loop_whose_calls_take_little_is_told(void **state)
{
	(void)state;
	run(NOW - 30 * MS);
	enter(1, NOW - 63 * MS);
	set_last(0, FLOW_RET);
	w->functions[1].self_ticks = 32 * MS;
	assert_only(SUSPECT_LONG_CALL);
}

/* The call within has no usual duration that says more. */
static void suspects_long_call_of_a_loop_that_is_held_up_within_is_told(void **state)
{
	(void)state;
	run(NOW - 30 * MS);
	add_calls(2, 1000, 5 * MS);
	enter(1, NOW - 63 * MS);
	enter(2, NOW - 17 * MS);
	assert_only(SUSPECT_LONG_CALL);
	assert_int_equal(w->r.suspects[0].function, 1);
}

/* --- stuck-call --- */

#define QUERY	 1u /* sends and receives */
#define SENDER	 2u /* in the C library */
#define RECEIVER 3u
#define SENDTO	 44u
#define RECVFROM 45u
#define EPOLL	 232u

static void branch(enum flow_kind kind, uint64_t from, uint64_t to)
{
	struct tally_counters *c = &w->counters[0];

	c->last[c->n_last++ % REPORT_LAST_BRANCHES] = (struct tally_branch){
		.from = from, .to = to, .tsc_lo = c->last_tsc, .tsc_hi = c->last_tsc, .kind = kind};
}

static void call_system(uint64_t call)
{
	w->made[w->counters[0].n_last % REPORT_LAST_BRANCHES] = call;
	branch(FLOW_SYSCALL, 0x3000, 0);
}

/* A function of the C library calls the system, and returns. */
static void call_and_return(uint64_t call)
{
	branch(FLOW_CALL, CALLER, 0x2ff0);
	call_system(call);
	branch(FLOW_ENABLE, 0, 0x3002);
	branch(FLOW_RET, 0x3010, CALLER + 5);
}

/* The thread waits in CALL, which the running function calls. */
static void wait_in(uint64_t call)
{
	branch(FLOW_CALL, CALLER, 0x2ff0);
	enter(RECEIVER, w->counters[0].last_tsc);
	call_system(call);
	w->calls[0] = call;
}

/* Thread 0 calls query() since SINCE (perf ns), as it did ENDED times before. */
static void query(uint64_t since, uint64_t ended)
{
	struct tally_counters *c = &w->counters[0];

	set_threads(1);
	c->n_last = 0;
	calls_done(&c->calls);
	calls_init(&c->calls);
	c->function = TALLY_NO_FUNCTION;
	w->states[0].ran = since - MS;
	w->states[0].left = c->last_tsc = since + 100 * US;
	w->functions[SENDER].image = w->functions[RECEIVER].image = 1;
	w->r.n_suspects = 0;
	if (ended > 0)
		add_calls(QUERY, ended, 5 * MS);
	enter(4, since - MS);
	branch(FLOW_CALL, CALLER, 0x1ff0);
	enter(QUERY, since);
}

static void suspects_stuck_call_that_gets_no_answer(void **state)
{
	(void)state;
	query(NOW - 50 * MS, 100);
	call_and_return(SENDTO);
	wait_in(RECVFROM);
	assert_only(SUSPECT_STUCK_CALL);
	assert_int_equal(w->r.suspects[0].function, QUERY);
	assert_int_equal(w->r.suspects[0].since, NOW - 50 * MS);
	assert_int_equal(w->r.suspects[0].calls, 100);
	assert_int_equal(w->r.suspects[0].longest_ns, 5 * MS);
	assert_int_equal(w->r.suspects[0].count, RECVFROM);
}

/* By a PLT, and with a page fault in between. */
static void suspects_stuck_call_through_jumps(void **state)
{
	(void)state;
	query(NOW - 50 * MS, 100);
	call_and_return(1);
	branch(FLOW_DISABLE, CALLER, 0);
	branch(FLOW_ENABLE, 0, CALLER);
	branch(FLOW_CALL, CALLER, 0x2f00);
	enter(5, w->counters[0].last_tsc);
	branch(FLOW_JUMP_IND, 0x2f00, 0x2ff0);
	enter(RECEIVER, w->counters[0].last_tsc);
	calls_slot(&w->counters[0].calls, w->counters[0].calls.end - 1)->from = CALLS_JUMP;
	call_system(0);
	w->calls[0] = 0;
	assert_only(SUSPECT_STUCK_CALL);
	assert_int_equal(w->r.suspects[0].function, QUERY);
}

static void suspects_stuck_call_below_the_least_is_none(void **state)
{
	(void)state;
	query(NOW - 50 * MS + 1, 99);
	call_and_return(SENDTO);
	wait_in(RECVFROM);
	assert_none();
	query(NOW - 50 * MS, 0);
	call_and_return(SENDTO);
	wait_in(RECVFROM);
	assert_none(); /* 99 calls ended */
	query(NOW - 50 * MS + 1, 1);
	call_and_return(SENDTO);
	wait_in(RECVFROM);
	assert_none();
	add_calls(QUERY, 1, 5 * MS + 1);
	query(NOW - 50 * MS, 0);
	call_and_return(SENDTO);
	wait_in(RECVFROM);
	assert_none();
}

/* It executed for most of the time, or may not be blocked at all. */
static void suspects_stuck_call_that_waits_for_a_short_time_is_none(void **state)
{
	(void)state;
	query(NOW - 50 * MS, 100);
	call_and_return(SENDTO);
	wait_in(RECVFROM);
	w->states[0].left = NOW - 25 * MS + 1;
	assert_none();
	w->states[0].left = NOW - 25 * MS;
	w->states[0].certain = false;
	assert_none();
	w->states[0].certain = true;
	assert_only(SUSPECT_STUCK_CALL);
}

/* A server answers 400 requests, and then nobody asks. */
static void suspects_stuck_call_of_an_idle_server_is_none(void **state)
{
	(void)state;
	query(NOW - 100 * MS, 400);
	wait_in(RECVFROM); /* receive_request() */
	assert_none();
	/* serve_connection() */
	query(NOW - 100 * MS, 0);
	call_and_return(RECVFROM);
	call_and_return(SENDTO);
	wait_in(RECVFROM);
	assert_none();
	/* Its loop is longer than the last branches. */
	query(NOW - 100 * MS, 0);
	for (size_t i = 0; i < REPORT_LAST_BRANCHES; i++)
		branch(FLOW_COND, 0x1000, 0x1000);
	call_and_return(SENDTO);
	wait_in(RECVFROM);
	assert_none();
}

/* process_events() writes out the last answers, and waits for what comes. */
static void suspects_stuck_call_of_an_idle_event_loop_is_none(void **state)
{
	static const uint64_t waits[] = {EPOLL, 281, 7, 271, 23, 270};

	(void)state;
	add_calls(QUERY, 400, MS);
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
		query(NOW - 100 * MS, 0);
		call_and_return(SENDTO);
		wait_in(waits[i]);
		assert_none();
	}
}

/* Worker threads, a shell, cron, and a loop that sleeps; each of them writes a log. */
static void suspects_stuck_call_that_waits_for_work_or_time_is_none(void **state)
{
	static const uint64_t waits[] = {FUTEX, 61, 247, 35, 230, 43, 288, 34, 130};

	(void)state;
	add_calls(QUERY, 400, MS);
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
		query(NOW - 100 * MS, 0);
		call_and_return(1);
		wait_in(waits[i]);
		assert_none();
		query(NOW - 100 * MS, 0);
		call_and_return(waits[i]);
		call_and_return(1);
		wait_in(0);
		assert_none();
	}
}

/* A system call of unknown number may have waited; and a signal's handler returned elsewhere. */
static void suspects_stuck_call_of_unknown_order_is_none(void **state)
{
	(void)state;
	query(NOW - 100 * MS, 400);
	call_and_return(REPORT_NO_CALL);
	call_and_return(SENDTO);
	wait_in(RECVFROM);
	assert_none();
	query(NOW - 100 * MS, 0);
	branch(FLOW_DISABLE, CALLER, 0);
	branch(FLOW_ENABLE, 0, CALLER + 100);
	call_and_return(SENDTO);
	wait_in(RECVFROM);
	assert_none();
	query(NOW - 100 * MS, 0);
	branch(FLOW_GAP, CALLER, 0);
	call_and_return(SENDTO);
	wait_in(RECVFROM);
	assert_none();
	/* The stack knows another caller than the branches. */
	query(NOW - 100 * MS, 0);
	call_and_return(SENDTO);
	wait_in(RECVFROM);
	calls_slot(&w->counters[0].calls, w->counters[0].calls.end - 2)->from++;
	assert_none();
}

/* The library writes what was printed before it reads: the program waits for its next order. */
static void suspects_stuck_call_of_the_libraries_input_is_none(void **state)
{
	(void)state;
	query(NOW - 100 * MS, 400);
	call_and_return(1);
	wait_in(0);
	w->functions[QUERY].image = 1;
	assert_none();
	w->functions[QUERY].image = 2;
	w->functions[QUERY].name = "_ZSt7getlineIcSt11char_traitsIcESaIcEERSt13basic_istream";
	assert_none();
	w->functions[QUERY].name = "ask";
	assert_only(SUSPECT_STUCK_CALL);
}

/* --- slow-calls --- */

static void suspects_slow_calls_are_few_and_clear_of_the_others(void **state)
{
	(void)state;
	add_calls(1, 1000, 30 * US);
	add_calls(1, 6, 3 * MS);
	assert_only(SUSPECT_SLOW_CALLS);
	assert_int_equal(w->r.suspects[0].function, 1);
	assert_int_equal(w->r.suspects[0].calls, 1006);
	assert_int_equal(w->r.suspects[0].count, 6);
	assert_int_equal(w->r.suspects[0].longest_ns, 3 * MS);
}

static void suspects_slow_calls_inside_many_end_with_the_innermost(void **state)
{
	(void)state;
	add_calls(1, 1000, 50 * US);
	for (uint32_t i = 1; i < N_FUNCS; i++)
		add_calls(i, 1, 10 * MS - i * US);
	assert_only(SUSPECT_SLOW_CALLS);
	assert_int_equal(w->r.suspects[0].n_inside, SUSPECT_INSIDE);
	for (uint32_t i = 0; i < SUSPECT_INSIDE - 1; i++)
		assert_int_equal(w->r.suspects[0].inside[i], i + 2);
	assert_int_equal(w->r.suspects[0].inside[SUSPECT_INSIDE - 1], N_FUNCS - 1);
	assert_int_equal(w->r.suspects[0].inside_ns[SUSPECT_INSIDE - 1], 10 * MS - 7 * US);
}

static void suspects_slow_calls_of_too_few_are_none(void **state)
{
	(void)state;
	add_calls(1, 98, 30 * US);
	add_calls(1, 1, 10 * MS);
	assert_none();
}

/* Such as the evaluator of an interpreter: the outer calls are the whole program. */
static void suspects_slow_calls_of_a_recursive_function_are_none(void **state)
{
	(void)state;
	add_calls(1, 1000, 30 * US);
	add_calls(1, 6, 3 * MS);
	w->d.tally.functions.durations.list[0].nested = 1006 / 8 + 1;
	assert_none();
	w->d.tally.functions.durations.list[0].nested--;
	assert_only(SUSPECT_SLOW_CALLS);
}

/* A shell waits for a child, a server for events, and a script sleeps once: nobody is held up. */
static void suspects_slow_calls_that_wait_by_themselves_are_none(void **state)
{
	(void)state;
	add_calls(1, 1000, 30 * US);
	add_calls(1, 1, 10 * MS);
	add_calls(2, 1, 8 * MS - 1); /* less than most of it */
	w->functions[2].name = "wait4@@GLIBC_2.2.5";
	assert_only(SUSPECT_SLOW_CALLS);
	add_calls(3, 1, 8 * MS);
	w->functions[3].name = "epoll_wait";
	w->r.n_suspects = 0;
	assert_none();
	w->functions[3].name = "__clock_nanosleep";
	assert_none();
	add_calls(1, 1, 10 * MS);
	assert_only(SUSPECT_SLOW_CALLS);
}

static void suspects_slow_calls_more_than_one_of_100_are_none(void **state)
{
	(void)state;
	add_calls(1, 197, 30 * US);
	add_calls(1, 3, 3 * MS);
	assert_none();
}

static void suspects_slow_calls_below_half_a_millisecond_are_none(void **state)
{
	(void)state;
	add_calls(1, 1000, 5 * US);
	add_calls(1, 4, 500 * US - 1);
	assert_none();
}

static void suspects_slow_calls_one_below_five_milliseconds_is_none(void **state)
{
	(void)state;
	add_calls(1, 1000, 5 * US);
	add_calls(1, 1, 5 * MS - 1);
	assert_none();
}

/* Such as what an interpreter executes for one kind of instruction: it jumps to the next. */
static void suspects_slow_calls_of_a_function_that_jumps_on_are_none(void **state)
{
	(void)state;
	add_calls(1, 1000, 30 * US);
	add_calls(1, 6, 3 * MS);
	w->functions[1].left = 504;
	assert_none();
	w->functions[1].left = 503;
	assert_only(SUSPECT_SLOW_CALLS);
}

/* What happened once, before the last tenth of the window, has passed. */
static void suspects_slow_calls_one_long_ago_is_none(void **state)
{
	struct durations *d;

	(void)state;
	add_calls(1, 1000, 30 * US);
	add_calls(1, 1, 5 * MS); /* ends 50 ms before the trigger */
	assert_only(SUSPECT_SLOW_CALLS);
	d = &w->d.tally.functions.durations.list[0];
	for (size_t i = 0; i < DURATIONS_OCTAVES; i++)
		d->slow[i].last -= d->slow[i].n == 1;
	w->r.n_suspects = 0;
	assert_none();
	/* Without a trigger, the end of the window counts. */
	w->r.now = MANIFEST_ABSENT;
	assert_none();
	w->reach[0].end = w->reach[1].end = NOW - MS;
	assert_only(SUSPECT_SLOW_CALLS);
}

/* The slowest call of the first is longer, but those of the second took more time. */
static void suspects_slow_calls_of_most_time_come_first(void **state)
{
	(void)state;
	add_calls(1, 1000, 30 * US);
	add_calls(1, 2, 9 * MS);
	add_calls(2, 1000, 30 * US);
	add_calls(2, 8, 5 * MS);
	w->d.tally.functions.durations.list[1].slowest.thread = &w->threads[1];
	assert_int_equal(report_prepare_suspects(&w->r), 0);
	assert_int_equal(w->r.n_suspects, 2);
	assert_int_equal(w->r.suspects[0].function, 2);
	assert_int_equal(w->r.suspects[1].function, 1);
}

static void suspects_slow_calls_that_are_not_clear_of_others_are_none(void **state)
{
	(void)state;
	add_calls(1, 1000, 30 * US);
	for (uint64_t us = 60; us < 4000; us *= 2)
		add_calls(1, 3, us * US);
	assert_none();
}

/* --- contention --- */

/* Code executes for 200 ms, and N of 1000 calls of function 1 wait for NS each. */
static void contend(uint64_t n, uint64_t ns)
{
	for (size_t i = 0; i < N_THREADS; i++)
		w->counters[i].ticks = 50 * MS;
	w->functions[1].name = "pthread_mutex_lock@@GLIBC_2.2.5";
	add_calls(1, 1000 - n, 300);
	add_calls(1, n, ns);
}

static void suspects_contention_of_many_waits_names_the_callers(void **state)
{
	(void)state;
	contend(40, MS);
	add_calls(2, 1, 1200 * US);
	add_calls(3, 1, 1100 * US);
	add_calls(4, 1, 900 * US);
	assert_only(SUSPECT_CONTENTION);
	assert_int_equal(w->r.suspects[0].function, 1);
	assert_ptr_equal(w->r.suspects[0].thread, &w->threads[0]);
	assert_int_equal(w->r.suspects[0].count, 40);
	assert_int_equal(w->r.suspects[0].calls, 1000);
	/* By the power of two below a millisecond. */
	assert_int_equal(w->r.suspects[0].off_ns, 40 * 524288);
	assert_int_equal(w->r.suspects[0].usual_ns, 200 * MS);
	assert_int_equal(w->r.suspects[0].n_inside, 2);
	assert_int_equal(w->r.suspects[0].inside[0], 3);
	assert_int_equal(w->r.suspects[0].inside[1], 2);
}

static void suspects_contention_of_the_locks_of_glibc(void **state)
{
	(void)state;
	contend(40, MS);
	w->functions[1].name = "__lll_lock_wait_private";
	assert_only(SUSPECT_CONTENTION);
}

static void suspects_contention_of_few_waits_is_none(void **state)
{
	(void)state;
	contend(29, 4 * MS);
	assert_none();
}

static void suspects_contention_of_short_waits_is_none(void **state)
{
	(void)state;
	contend(30, MS);
	assert_none();
}

static void suspects_contention_beside_much_work_is_none(void **state)
{
	(void)state;
	contend(40, MS);
	w->counters[0].ticks = 70 * MS;
	assert_none();
}

static void suspects_contention_of_other_functions_is_none(void **state)
{
	(void)state;
	contend(40, MS);
	w->functions[1].name = "pthread_mutex_locker";
	assert_none();
	w->functions[1].name = NULL;
	assert_none();
}

/* --- wait, runnable, ran-until-trigger --- */

static void block_in(uint64_t call, uint64_t ns)
{
	set_threads(1);
	w->states[0].left = w->counters[0].last_tsc = NOW - ns;
	w->states[0].ran = NOW - ns - US;
	w->calls[0] = call;
	set_last(0, FLOW_SYSCALL);
}

static void suspects_wait_for_a_reader(void **state)
{
	(void)state;
	block_in(1, 50 * MS);
	assert_only(SUSPECT_WAIT);
	assert_int_equal(w->r.suspects[0].count, 1);
}

static void suspects_wait_too_short_or_in_read_is_none(void **state)
{
	(void)state;
	block_in(1, 50 * MS - 1);
	assert_none();
	block_in(0, 50 * MS);
	assert_none();
}

static void preempt(uint64_t ns)
{
	set_threads(2);
	w->states[0].kind = REPORT_STATE_RUNNABLE;
	w->states[0].left = NOW - ns;
	w->states[0].ran = NOW - ns - US;
	w->states[1].kind = REPORT_STATE_RUNNING;
	w->states[1].ran = NOW - ns;
}

static void suspects_runnable_names_who_has_the_cpu(void **state)
{
	(void)state;
	preempt(20 * MS);
	assert_only(SUSPECT_RUNNABLE);
	assert_ptr_equal(w->r.suspects[0].thread, &w->threads[0]);
	assert_ptr_equal(w->r.suspects[0].other, &w->threads[1]);
}

static void suspects_runnable_does_not_name_who_may_have_the_cpu(void **state)
{
	(void)state;
	preempt(20 * MS);
	w->states[1].certain = false;
	assert_only(SUSPECT_RUNNABLE);
	assert_null(w->r.suspects[0].other);
}

static void suspects_runnable_too_short_or_uncertain_is_none(void **state)
{
	(void)state;
	preempt(20 * MS - 1);
	assert_none();
	preempt(20 * MS);
	w->states[0].certain = false;
	assert_none();
}

static void suspects_ran_until_the_trigger_on_its_cpu(void **state)
{
	(void)state;
	run(BEGIN + 250 * MS);
	w->states[0].cpu = 0;
	assert_only(SUSPECT_RAN);
}

static void suspects_ran_less_or_elsewhere_is_none(void **state)
{
	(void)state;
	run(BEGIN + 250 * MS + 1);
	w->states[0].cpu = 0;
	assert_none();
	w->states[0].ran = BEGIN;
	w->states[0].cpu = 1;
	assert_none();
}

static void suspects_ran_in_a_short_window_is_none(void **state)
{
	(void)state;
	run(NOW - 50 * MS + 1);
	w->states[0].cpu = 0;
	w->reach[0].begin = w->reach[1].begin = NOW - 60 * MS;
	assert_none();
}

/* --- cpu-wait --- */

static void set_turn(size_t i, size_t thread, uint64_t since, uint64_t until, bool preempted)
{
	w->shared[i] = (struct turns_turn){
		.since = since,
		.until = until,
		.thread = thread < N_THREADS ? &w->threads[thread] : NULL,
		.before_cpu = 1,
		.before = i >= 2 ? (uint32_t)i - 2 : TURNS_NONE,
	};
	w->turns_told[i] = (struct timeline_turn){.since = since,
						  .until = until,
						  .thread = w->shared[i].thread,
						  .preempted = preempted};
}

/* Behind the first N turns, thread 0 has CPU 1 alone from BEGAN until SINCE, and then shares it
 * with thread 1 of another process, in turns of 5 ms. The newest turn is thread 0's, in which it
 * blocks.
 */
static void share_behind(size_t n, uint64_t began, uint64_t since)
{
	set_threads(2);
	w->threads[1].pid = PID + 50;
	set_turn(n++, 0, began, since, true);
	for (uint64_t at = since; at < NOW; at += 5 * MS, n++)
		set_turn(n, n % 2, at, at + 5 * MS, true);
	w->turns[1] = (struct turns_cpu){.list = w->shared, .n = n, .cpu = 1};
	assert_int_equal(n % 2, 1);
	w->turns_told[n - 1].preempted = false;
	w->shared[n - 1].until = w->turns_told[n - 1].until = NOW - MS;
	w->states[0].ran = w->shared[n - 1].since;
	w->states[0].left = NOW - MS;
	w->states[1].ran = w->shared[n - 2].since;
	w->states[1].left = w->shared[n - 2].until;
	w->states[1].kind = REPORT_STATE_RUNNABLE;
}

static void share(uint64_t since)
{
	share_behind(0, BEGIN, since);
}

static void suspects_cpu_wait_names_who_had_the_cpu(void **state)
{
	(void)state;
	share(NOW - 100 * MS);
	assert_only(SUSPECT_CPU_WAIT);
	assert_ptr_equal(w->r.suspects[0].thread, &w->threads[0]);
	assert_ptr_equal(w->r.suspects[0].other, &w->threads[1]);
	assert_int_equal(w->r.suspects[0].since, NOW - 100 * MS);
	assert_int_equal(w->r.suspects[0].off_ns, 50 * MS);
	assert_int_equal(w->r.suspects[0].longest_ns, 50 * MS);
}

static void suspects_cpu_wait_too_short_is_none(void **state)
{
	(void)state;
	share(NOW - 90 * MS);
	assert_none();
}

static void suspects_cpu_wait_of_a_smaller_part_is_none(void **state)
{
	(void)state;
	share(NOW - 100 * MS);
	/* The thread sleeps between its turns. */
	for (size_t i = 2; i < w->turns[1].n; i += 2)
		w->turns_told[i].preempted = i % 8 == 0;
	assert_none();
}

static void suspects_cpu_wait_as_before_is_none(void **state)
{
	(void)state;
	/* The thread had CPUs for less time before than it waits now. */
	share(NOW - 200 * MS);
	w->shared[0].since = w->turns_told[0].since = NOW - 299 * MS;
	assert_none();
	w->shared[0].since = w->turns_told[0].since = NOW - 300 * MS;
	assert_only(SUSPECT_CPU_WAIT);
}

static void suspects_cpu_wait_behind_many_waits_is_none(void **state)
{
	(void)state;
	set_turn(0, 0, BEGIN, BEGIN + 80 * MS, true);
	set_turn(1, 1, BEGIN + 80 * MS, BEGIN + 100 * MS, true);
	share_behind(2, BEGIN + 100 * MS, NOW - 100 * MS);
	assert_none();
	w->turns_told[0].until = BEGIN + 81 * MS;
	assert_only(SUSPECT_CPU_WAIT);
}

static void suspects_cpu_wait_behind_unknown_turns_is_none(void **state)
{
	(void)state;
	share(NOW - 100 * MS);
	w->shared[2].hidden = true;
	assert_none();
}

static void suspects_cpu_wait_uncertain_or_ended_is_none(void **state)
{
	(void)state;
	share(NOW - 100 * MS);
	w->states[0].certain = false;
	assert_none();
	w->states[0].certain = true;
	w->states[0].kind = REPORT_STATE_EXITED;
	assert_none();
}

static void suspects_cpu_wait_for_many_is_none(void **state)
{
	(void)state;
	share(NOW - 100 * MS);
	for (size_t i = 1; i < w->turns[1].n; i += 2) {
		w->threads[i / 2 % 3 + 1].pid = PID + 50 + (uint32_t)i / 2 % 3;
		w->shared[i].thread = &w->threads[i / 2 % 3 + 1];
	}
	assert_none();
}

static void suspects_cpu_wait_of_a_runnable_thread_is_told_once(void **state)
{
	(void)state;
	share(NOW - 200 * MS);
	w->states[0].kind = REPORT_STATE_RUNNABLE;
	w->states[0].left = NOW - 20 * MS;
	assert_only(SUSPECT_RUNNABLE);
}

/* --- late-function --- */

/* Function 2 appears at FIRST; function 1 of the same file ran from the beginning. */
static void appear(uint64_t first)
{
	w->functions[1] = (struct function){.first = BEGIN, .self_insns = 1000000, .image = 1};
	w->functions[2] =
		(struct function){.first = first, .calls = 10, .self_insns = 50000, .image = 1};
	w->order[0] = 1;
	w->order[1] = 2;
	w->r.lists[REPORT_FUNCTIONS].total = 2;
}

static void suspects_late_function_in_the_last_twentieth(void **state)
{
	(void)state;
	appear(NOW - 25 * MS);
	assert_only(SUSPECT_LATE_FUNCTION);
	assert_int_equal(w->r.suspects[0].function, 2);
	assert_int_equal(w->r.suspects[0].since, NOW - 25 * MS);
}

static void suspects_late_function_slightly_earlier_is_none(void **state)
{
	(void)state;
	appear(NOW - 25 * MS - 1);
	assert_none();
}

static void suspects_late_function_of_little_work_or_a_new_file_is_none(void **state)
{
	(void)state;
	appear(NOW - 25 * MS);
	w->functions[2].calls = 9;
	w->functions[2].self_insns = 9999;
	assert_none();
	appear(NOW - 25 * MS);
	w->functions[2].image = 2;
	assert_none();
}

/* The ring of the CPU on which it runs may reach back no further. */
static void suspects_late_function_with_a_short_ring_is_none(void **state)
{
	(void)state;
	appear(NOW - 25 * MS);
	w->reach[1].begin = NOW - 30 * MS;
	assert_none();
	w->reach[1].begin = NOW - 400 * MS;
	assert_none();
}

static void suspects_late_function_behind_a_gap_is_none(void **state)
{
	(void)state;
	appear(NOW - 25 * MS);
	w->gaps[0] = gaps_blank(FAULT_OVERFLOW);
	w->gaps[0].time_ns = BEGIN + 100 * MS;
	w->gaps[0].until_ns = BEGIN + 126 * MS;
	w->d.gaps.n = 1;
	assert_none();
}

/* --- frequency --- */

static void set_ratio(uint64_t lo, uint64_t hi)
{
	w->marks[1] = (struct marks_cpu){.ratio = 20, .lowest = 20, .highest = 30};
	w->mark[0] = (struct mark){.flow = {.value = 20, .tsc_lo = lo, .tsc_hi = hi}, .cpu = 1};
	w->mark[1] =
		(struct mark){.flow = {.value = 30, .tsc_lo = BEGIN, .tsc_hi = BEGIN}, .cpu = 1};
	w->d.marks.lists[MARKS_FREQUENCIES].n = 2;
}

static void suspects_frequency_of_two_thirds(void **state)
{
	(void)state;
	set_ratio(NOW - MS, NOW - MS);
	assert_only(SUSPECT_FREQUENCY);
	assert_int_equal(w->r.suspects[0].cpu, 1);
	assert_int_equal(w->r.suspects[0].count, 20);
	assert_int_equal(w->r.suspects[0].calls, 30);
}

static void suspects_frequency_higher_or_short_is_none(void **state)
{
	(void)state;
	set_ratio(NOW - MS, NOW - MS);
	w->mark[0].flow.value = 21;
	assert_none();
	set_ratio(NOW - MS + 1, NOW - MS + 1);
	assert_none();
}

static void suspects_frequency_that_may_have_dropped_later_is_none(void **state)
{
	(void)state;
	set_ratio(NOW - 2 * MS, NOW - MS + 1);
	assert_none();
	set_ratio(NOW - 2 * MS, UINT64_MAX);
	assert_none();
}

/* --- gap --- */

static void set_gap(enum fault kind, uint64_t since, uint64_t until)
{
	w->gaps[0] = gaps_blank(kind);
	w->gaps[0].time_ns = since;
	w->gaps[0].until_ns = until;
	w->d.gaps.n = 1;
}

static void suspects_gap_near_the_trigger(void **state)
{
	(void)state;
	set_gap(FAULT_OVERFLOW, NOW - 11 * MS, NOW - 10 * MS);
	assert_only(SUSPECT_GAP);
}

static void suspects_gap_of_a_tenth_of_the_window(void **state)
{
	(void)state;
	set_gap(FAULT_OVERFLOW, BEGIN + 50 * MS, BEGIN + 100 * MS);
	assert_only(SUSPECT_GAP);
}

static void suspects_gap_shorter_or_earlier_is_none(void **state)
{
	(void)state;
	set_gap(FAULT_OVERFLOW, NOW - 10 * MS, NOW - 9 * MS - 1);
	assert_none();
	set_gap(FAULT_OVERFLOW, BEGIN + 50 * MS, BEGIN + 100 * MS - 1);
	assert_none();
	set_gap(FAULT_HEAD, BEGIN, BEGIN + 100 * MS);
	assert_none();
}

static void suspects_gap_counts_only_up_to_the_trigger(void **state)
{
	(void)state;
	set_gap(FAULT_OVERFLOW, NOW - MS + 1, NOW + 5 * MS);
	assert_none();
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(suspects_of_nothing_are_none),
		CASE(suspects_of_an_idle_process_are_none),
		CASE(suspects_without_a_trigger_are_none_of_threads),
		CASE(suspects_crash_names_the_thread_that_was_interrupted_first),
		CASE(suspects_crash_by_a_signal_of_its_own),
		CASE(suspects_crash_with_a_thread_left_is_none),
		CASE(suspects_crash_with_a_thread_that_may_have_called_exit_is_none),
		CASE(suspects_crash_with_a_thread_of_unknown_code_is_none),
		CASE(suspects_crash_with_a_gap_behind_is_none),
		CASE(suspects_crash_with_a_last_stretch_is_none),
		CASE(suspects_crash_with_a_thread_that_is_not_listed_is_none),
		CASE(suspects_crash_at_an_instruction_of_registers_came_from_outside),
		CASE(suspects_crash_that_may_be_another_thread_s_does_not_say_from_where),
		CASE(suspects_deadlock_has_the_threads_that_wait_for_a_lock),
		CASE(suspects_deadlock_of_threads_that_hold_each_others_locks),
		CASE(suspects_deadlock_of_locks_that_may_have_changed_hands_is_none),
		CASE(suspects_lock_wait_names_who_holds_the_lock),
		CASE(suspects_deadlock_too_short_is_the_wait_of_one),
		CASE(suspects_deadlock_with_an_uncertain_thread_is_none),
		CASE(suspects_deadlock_with_a_thread_that_is_not_listed_is_none),
		CASE(suspects_deadlock_of_one_thread_is_the_wait_of_one),
		CASE(suspects_deadlock_with_a_wait_that_has_a_limit_is_none),
		CASE(suspects_deadlock_of_locks_of_other_languages),
		CASE(suspects_lock_wait_too_short_is_none),
		CASE(suspects_lock_wait_of_a_function_that_sleeps_again_lasts_as_long_as_the_call),
		CASE(suspects_lock_wait_comes_before_slow_calls),
		CASE(suspects_lock_wait_in_a_page_fault_is_none),
		CASE(suspects_long_call_that_usually_ends_at_once),
		CASE(suspects_long_call_too_short_is_none),
		CASE(suspects_long_call_that_often_takes_a_tenth_is_none),
		CASE(suspects_long_call_of_an_uncertain_thread_is_none),
		CASE(suspects_long_call_whose_end_has_no_exact_time_is_none),
		CASE(suspects_long_call_that_jumped_to_another_is_none),
		CASE(suspects_long_call_counts_only_up_to_the_trigger),
		CASE(suspects_long_call_that_was_blocked_for_most_of_the_time_is_none),
		CASE(suspects_long_call_that_sleeps_and_tries_again),
		CASE(suspects_long_call_that_sleeps_seldom_is_none),
		CASE(suspects_long_call_that_sleeps_and_has_no_usual_duration_is_none),
		CASE(suspects_long_call_of_a_first_call_that_spins),
		CASE(suspects_long_call_since_the_beginning_is_none),
		CASE(suspects_long_call_of_an_endless_outer_loop_is_none),
		CASE(suspects_long_call_around_an_endless_loop_is_none),
		CASE(suspects_long_call_of_an_outer_loop_between_two_calls_is_none),
		CASE(suspects_long_call_of_a_loop_whose_calls_take_little_is_told),
		CASE(suspects_long_call_of_a_loop_that_is_held_up_within_is_told),
		CASE(suspects_stuck_call_that_gets_no_answer),
		CASE(suspects_stuck_call_through_jumps),
		CASE(suspects_stuck_call_below_the_least_is_none),
		CASE(suspects_stuck_call_that_waits_for_a_short_time_is_none),
		CASE(suspects_stuck_call_of_an_idle_server_is_none),
		CASE(suspects_stuck_call_of_an_idle_event_loop_is_none),
		CASE(suspects_stuck_call_that_waits_for_work_or_time_is_none),
		CASE(suspects_stuck_call_of_unknown_order_is_none),
		CASE(suspects_stuck_call_of_the_libraries_input_is_none),
		CASE(suspects_slow_calls_are_few_and_clear_of_the_others),
		CASE(suspects_slow_calls_inside_many_end_with_the_innermost),
		CASE(suspects_slow_calls_of_too_few_are_none),
		CASE(suspects_slow_calls_of_a_recursive_function_are_none),
		CASE(suspects_slow_calls_that_wait_by_themselves_are_none),
		CASE(suspects_slow_calls_more_than_one_of_100_are_none),
		CASE(suspects_slow_calls_below_half_a_millisecond_are_none),
		CASE(suspects_slow_calls_one_below_five_milliseconds_is_none),
		CASE(suspects_slow_calls_of_a_function_that_jumps_on_are_none),
		CASE(suspects_slow_calls_one_long_ago_is_none),
		CASE(suspects_slow_calls_of_most_time_come_first),
		CASE(suspects_slow_calls_that_are_not_clear_of_others_are_none),
		CASE(suspects_contention_of_many_waits_names_the_callers),
		CASE(suspects_contention_of_the_locks_of_glibc),
		CASE(suspects_contention_of_few_waits_is_none),
		CASE(suspects_contention_of_short_waits_is_none),
		CASE(suspects_contention_beside_much_work_is_none),
		CASE(suspects_contention_of_other_functions_is_none),
		CASE(suspects_wait_for_a_reader),
		CASE(suspects_wait_too_short_or_in_read_is_none),
		CASE(suspects_runnable_names_who_has_the_cpu),
		CASE(suspects_runnable_does_not_name_who_may_have_the_cpu),
		CASE(suspects_runnable_too_short_or_uncertain_is_none),
		CASE(suspects_ran_until_the_trigger_on_its_cpu),
		CASE(suspects_ran_less_or_elsewhere_is_none),
		CASE(suspects_ran_in_a_short_window_is_none),
		CASE(suspects_cpu_wait_names_who_had_the_cpu),
		CASE(suspects_cpu_wait_too_short_is_none),
		CASE(suspects_cpu_wait_of_a_smaller_part_is_none),
		CASE(suspects_cpu_wait_as_before_is_none),
		CASE(suspects_cpu_wait_behind_many_waits_is_none),
		CASE(suspects_cpu_wait_behind_unknown_turns_is_none),
		CASE(suspects_cpu_wait_uncertain_or_ended_is_none),
		CASE(suspects_cpu_wait_for_many_is_none),
		CASE(suspects_cpu_wait_of_a_runnable_thread_is_told_once),
		CASE(suspects_late_function_in_the_last_twentieth),
		CASE(suspects_late_function_slightly_earlier_is_none),
		CASE(suspects_late_function_of_little_work_or_a_new_file_is_none),
		CASE(suspects_late_function_with_a_short_ring_is_none),
		CASE(suspects_late_function_behind_a_gap_is_none),
		CASE(suspects_frequency_of_two_thirds),
		CASE(suspects_frequency_higher_or_short_is_none),
		CASE(suspects_frequency_that_may_have_dropped_later_is_none),
		CASE(suspects_gap_near_the_trigger),
		CASE(suspects_gap_of_a_tenth_of_the_window),
		CASE(suspects_gap_shorter_or_earlier_is_none),
		CASE(suspects_gap_counts_only_up_to_the_trigger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
