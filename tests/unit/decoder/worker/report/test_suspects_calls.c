/*
 * Suspects among calls and functions: suspects_slow.c, suspects_locks.c, suspects_stuck.c.
 * For each rule there is a case that meets it, and cases that just do not.
 */
#include "tests/unit/decoder/worker/report/suspects_world.h"

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

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		CASE(suspects_late_function_in_the_last_twentieth),
		CASE(suspects_late_function_slightly_earlier_is_none),
		CASE(suspects_late_function_of_little_work_or_a_new_file_is_none),
		CASE(suspects_late_function_with_a_short_ring_is_none),
		CASE(suspects_late_function_behind_a_gap_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
