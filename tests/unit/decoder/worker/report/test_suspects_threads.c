/*
 * Suspects among threads, CPUs and gaps: suspects_threads.c and what it calls, suspects_waits.c.
 * For each rule there is a case that meets it, and cases that just do not.
 */
#include "tests/unit/decoder/worker/report/suspects_world.h"

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
