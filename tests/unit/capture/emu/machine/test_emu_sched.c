/*
 * capture/emu/sched and vcpu: who gets which virtual CPU, and what the records say of it. Threads
 * of this test are the guests.
 */
#include "capture/emu/machine/vcpu.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/unit/capture/emu_ring.h"

#define N_CPUS 2u

static struct emuring *ring;
static struct vcpu cpus[N_CPUS];

static int set_up(void **state)
{
	(void)state;
	ring = emu_ring_new_machine(RING_BRANCH | RING_TSC, N_CPUS);
	ring->fixed.recorder_pid = (uint32_t)getpid();
	for (uint32_t i = 0; i < N_CPUS; i++) {
		vcpu_attach(&cpus[i], ring, i);
		emupmu_init(&cpus[i].pmu, ring, i);
		sched_put(cpus[i].cpu, EMURING_IDLE, EMURING_NO_TASK);
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	emu_ring_free(ring);
	return 0;
}

/* A task in place INDEX with tid 100 + INDEX in a process of its own. */
static struct emuring_task *task(uint32_t index, enum emuring_task_state state)
{
	struct emuring_task *t = emuring_task_at(ring, index);

	t->tid = t->pid = 100 + index;
	t->state = state;
	t->ticket = ring->shared->tickets++;
	if (state == EMURING_TASK_WAITS)
		ring->shared->n_waiting++;
	return t;
}

static void assert_hold(uint32_t cpu, enum emuring_hold hold, uint32_t index)
{
	uint64_t word = atomic_load(&cpus[cpu].cpu->hold);

	assert_int_equal(emuring_hold_of(word), hold);
	assert_int_equal(emuring_task_of(word), index);
}

/* The records of CPU as text, and forgotten. "OUT 101>0 IN 0<101 ..." with tids. */
static const char *records(uint32_t cpu)
{
	static char text[4096];
	struct perf_event_mmap_page *page = emuring_page_at(ring, cpu);
	size_t used = 0;

	text[0] = '\0';
	while (page->data_tail < page->data_head) {
		uint8_t bytes[512];
		struct perfrecord r;

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = emuring_data_at(ring, cpu)[(page->data_tail + i) % 4096];
		assert_int_equal(perfrecord_parse(bytes, sizeof(bytes), &r), 0);
		if (r.type == PERF_RECORD_SWITCH_CPU_WIDE)
			used += (size_t)snprintf(
				text + used, sizeof(text) - used, "%s%s %u%s%u ",
				r.misc & PERF_RECORD_MISC_SWITCH_OUT ? "OUT" : "IN",
				r.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? "!" : "", r.tid,
				r.misc & PERF_RECORD_MISC_SWITCH_OUT ? ">" : "<",
				r.u.context_switch.next_prev_tid);
		else
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s(%u) ",
						 perfrecord_type_name(r.type), r.tid);
		page->data_tail += r.size;
	}
	return text;
}

static void acquire_idle_machine_gives_the_last_cpu(void **state)
{
	struct emuring_task *t = task(3, EMURING_TASK_RUNS);
	struct vcpu *v;

	(void)state;
	t->cpu = 1;
	v = sched_acquire(cpus, N_CPUS, 3);
	assert_ptr_equal(v, &cpus[1]);
	assert_hold(1, EMURING_BUSY, 3);
	assert_hold(0, EMURING_IDLE, EMURING_NO_TASK);
	assert_string_equal(records(1), "OUT 0>103 IN 103<0 ");
}

static void acquire_own_sleeping_cpu_writes_no_switch(void **state)
{
	(void)state;
	task(3, EMURING_TASK_RUNS);
	sched_put(sched_acquire(cpus, N_CPUS, 3)->cpu, EMURING_KERNEL, 3);
	records(0);
	assert_ptr_equal(sched_acquire(cpus, N_CPUS, 3), &cpus[0]);
	assert_string_equal(records(0), "");
}

static void acquire_takes_a_sleepers_cpu_but_no_short_calls(void **state)
{
	(void)state;
	task(1, EMURING_TASK_RUNS);
	task(2, EMURING_TASK_RUNS);
	task(3, EMURING_TASK_RUNS);
	sched_put(sched_acquire(cpus, N_CPUS, 1)->cpu, EMURING_KERNEL, 1);
	sched_put(sched_acquire(cpus, N_CPUS, 2)->cpu, EMURING_ASLEEP, 2);
	records(1);
	assert_ptr_equal(sched_acquire(cpus, N_CPUS, 3), &cpus[1]);
	assert_hold(0, EMURING_KERNEL, 1);
	assert_string_equal(records(1), "OUT 102>103 IN 103<102 ");
}

static void acquire_prefers_idle_to_sleeping(void **state)
{
	(void)state;
	task(1, EMURING_TASK_RUNS);
	task(2, EMURING_TASK_RUNS)->cpu = 0;
	sched_put(sched_acquire(cpus, N_CPUS, 1)->cpu, EMURING_ASLEEP, 1);
	assert_ptr_equal(sched_acquire(cpus, N_CPUS, 2), &cpus[1]);
}

/* Never on two CPUs at a time. */
static void acquire_own_cpu_that_is_to_go_leaves_it_first(void **state)
{
	(void)state;
	task(1, EMURING_TASK_RUNS);
	sched_put(sched_acquire(cpus, N_CPUS, 1)->cpu, EMURING_KERNEL, 1);
	records(0);
	cpus[0].cpu->offline = 1;
	assert_ptr_equal(sched_acquire(cpus, N_CPUS, 1), &cpus[1]);
	assert_string_equal(records(0), "OUT! 101>0 IN 0<101 ");
	assert_hold(0, EMURING_OFF, EMURING_NO_TASK);
	assert_hold(1, EMURING_BUSY, 1);
}

static void acquire_closing_machine_gives_none(void **state)
{
	(void)state;
	task(1, EMURING_TASK_RUNS);
	ring->shared->closing = 1;
	assert_null(sched_acquire(cpus, N_CPUS, 1));
}

static void give_serves_who_waits_longest_and_is_not_stopped(void **state)
{
	struct emuring_task *first = task(5, EMURING_TASK_WAITS);
	struct emuring_task *second = task(2, EMURING_TASK_WAITS);
	struct emuring_task *third = task(4, EMURING_TASK_WAITS);

	(void)state;
	first->stopped = 1;
	sched_put(cpus[1].cpu, EMURING_BUSY, 9);
	assert_true(sched_give(&cpus[1], true));
	assert_hold(1, EMURING_GIVEN, 2);
	assert_int_equal(second->state, EMURING_TASK_GIVEN | 1u << 8);
	assert_int_equal(first->state, EMURING_TASK_WAITS);
	assert_int_equal(third->state, EMURING_TASK_WAITS);
	assert_int_equal(ring->shared->n_waiting, 2);
	assert_string_equal(records(1), "OUT! 0>102 IN 102<0 ");
}

static void give_nobody_waits_leaves_it_with_the_owner(void **state)
{
	(void)state;
	task(2, EMURING_TASK_RUNS);
	sched_put(cpus[0].cpu, EMURING_BUSY, 2);
	assert_false(sched_give(&cpus[0], true));
	assert_hold(0, EMURING_BUSY, 2);
	assert_string_equal(records(0), "");
}

static void give_cpu_that_is_to_go_is_not_given(void **state)
{
	(void)state;
	task(2, EMURING_TASK_WAITS);
	cpus[0].cpu->offline = 1;
	sched_put(cpus[0].cpu, EMURING_BUSY, 9);
	assert_false(sched_give(&cpus[0], true));
}

static void release_nobody_waits_tells_the_idle_task(void **state)
{
	(void)state;
	task(1, EMURING_TASK_RUNS);
	sched_release(sched_acquire(cpus, N_CPUS, 1), 1, false);
	assert_hold(0, EMURING_IDLE, EMURING_NO_TASK);
	assert_string_equal(records(0), "OUT 0>101 IN 101<0 OUT 101>0 IN 0<101 ");
}

static void offer_sleepers_cpu_goes_to_who_waits(void **state)
{
	(void)state;
	task(1, EMURING_TASK_RUNS);
	sched_put(sched_acquire(cpus, N_CPUS, 1)->cpu, EMURING_ASLEEP, 1);
	sched_offer(&cpus[0], 1, 1);
	assert_hold(0, EMURING_ASLEEP, 1);
	task(2, EMURING_TASK_WAITS);
	sched_offer(&cpus[0], 1, 1);
	assert_hold(0, EMURING_GIVEN, 2);
}

/* exec in another thread killed the one with this tid, in user code, and had given it a CPU. */
static void disown_what_a_killed_namesake_had_is_free(void **state)
{
	struct emuring_task *t = task(1, EMURING_TASK_WAITS);

	(void)state;
	sched_put(cpus[0].cpu, EMURING_USER, 1);
	sched_put(cpus[1].cpu, EMURING_GIVEN, 1);
	sched_disown(cpus, N_CPUS, 1);
	assert_hold(0, EMURING_IDLE, EMURING_NO_TASK);
	assert_hold(1, EMURING_IDLE, EMURING_NO_TASK);
	assert_int_equal(t->state, EMURING_TASK_RUNS);
	assert_int_equal(ring->shared->n_waiting, 0);
}

static void disown_cpu_on_which_it_called_exec_stays(void **state)
{
	(void)state;
	task(1, EMURING_TASK_RUNS);
	sched_put(cpus[0].cpu, EMURING_ASLEEP, 1);
	sched_put(cpus[1].cpu, EMURING_USER, 2);
	sched_disown(cpus, N_CPUS, 1);
	assert_hold(0, EMURING_ASLEEP, 1);
	assert_hold(1, EMURING_USER, 2);
}

static void take_at_rest_only_where_nobody_works(void **state)
{
	static const struct {
		enum emuring_hold hold;
		bool result;
	} cases[] = {
		{EMURING_IDLE, true},	{EMURING_USER, false}, {EMURING_KERNEL, true},
		{EMURING_ASLEEP, true}, {EMURING_GIVEN, true}, {EMURING_BUSY, false},
		{EMURING_OFF, false},
	};
	uint64_t hold;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		sched_put(cpus[0].cpu, cases[i].hold, 1);
		assert_int_equal(sched_take_at_rest(cpus[0].cpu, EMURING_RECORDER, &hold),
				 cases[i].result);
		if (cases[i].result) {
			assert_hold(0, EMURING_BUSY, EMURING_RECORDER);
			assert_int_equal(emuring_hold_of(hold), cases[i].hold);
		}
	}
}

/* 60 us of the virtual clock: the task was asleep from the call on. */
static void switch_after_a_sleep_tells_when_it_began(void **state)
{
	const struct sideband_task next = {.pid = 7, .tid = 7};
	uint64_t since;

	(void)state;
	task(1, EMURING_TASK_RUNS);
	sched_acquire(cpus, N_CPUS, 1);
	records(0);
	vcpu_enter_kernel(&cpus[0]);
	since = cpus[0].cpu->kernel_since;
	emu_ring_pass(ring, 60000);
	vcpu_switch(&cpus[0], &next, false);
	assert_true(vcpu_now(&cpus[0]) - since >= 60000);
	assert_string_equal(records(0), "OUT 101>0 IN 0<101 OUT 0>7 IN 7<0 ");
}

static void serve_starts_and_stops_with_records(void **state)
{
	(void)state;
	cpus[0].cpu->want = 1;
	vcpu_serve(&cpus[0], NULL);
	assert_int_equal(cpus[0].cpu->is, 1);
	assert_string_equal(records(0), "ITRACE_START(0) ");
	cpus[0].cpu->want = 2;
	vcpu_serve(&cpus[0], NULL);
	assert_string_equal(records(0), "AUX(0) ");
	assert_int_equal(emuring_page_at(ring, 0)->aux_head, cpus[0].cpu->aux_pos);
	cpus[0].cpu->want = 3;
	vcpu_serve(&cpus[0], NULL);
	assert_string_equal(records(0), "");
}

/* The sleep of the thread is told later, with the time at which it began. */
static void serve_in_a_call_puts_the_sleep_behind_its_records(void **state)
{
	struct vcpu *v;

	(void)state;
	task(1, EMURING_TASK_RUNS);
	v = sched_acquire(cpus, N_CPUS, 1);
	vcpu_enter_kernel(v);
	for (uint32_t want = 1; want <= 2; want++) {
		v->cpu->want = want;
		vcpu_serve(v, NULL);
		assert_true(v->cpu->kernel_since >= v->pmu.s->now);
	}
}

static void go_off_stops_tracing_and_come_back_resumes_it(void **state)
{
	(void)state;
	task(1, EMURING_TASK_RUNS);
	cpus[0].cpu->want = 1;
	vcpu_serve(sched_acquire(cpus, N_CPUS, 1), NULL);
	records(0);
	vcpu_go_off(&cpus[0]);
	assert_false(cpus[0].pmu.s->enabled);
	assert_string_equal(records(0), "OUT! 101>0 IN 0<101 AUX(0) ");
	assert_int_equal(cpus[0].cpu->absences, 1);
	assert_true(cpus[0].cpu->gone_tsc > 0);
	assert_int_equal(cpus[0].cpu->back_tsc, 0);
	vcpu_come_back(&cpus[0]);
	assert_true(cpus[0].cpu->back_tsc >= cpus[0].cpu->gone_tsc);
	assert_true(cpus[0].pmu.s->enabled);
	assert_int_equal(cpus[0].cpu->is, 1);
}

#define N_THREADS 6
#define ROUNDS	  2000

static _Atomic uint32_t on_cpu[N_CPUS];
static _Atomic uint32_t collisions, rounds_done;

/* A guest: now it calls the kernel, now it sleeps there, now it is preempted. */
static void *guest(void *userdata)
{
	uint32_t me = (uint32_t)(uintptr_t)userdata;
	struct vcpu mine[N_CPUS];

	for (uint32_t i = 0; i < N_CPUS; i++)
		vcpu_attach(&mine[i], ring, i);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct vcpu *v = sched_acquire(mine, N_CPUS, me);

		collisions += atomic_exchange(&on_cpu[v->index], me) != 0;
		collisions += v->cpu->tid != 100 + me;
		sched_put(v->cpu, EMURING_USER, me);
		collisions += atomic_exchange(&on_cpu[v->index], 0) != me;
		rounds_done++;
		switch ((i + me) % 4) {
		case 0: sched_put(v->cpu, EMURING_KERNEL, me); break;
		case 1:
			sched_put(v->cpu, EMURING_ASLEEP, me);
			sched_offer(v, me, me);
			break;
		case 2:
			if (!sched_give(v, true))
				sched_put(v->cpu, EMURING_KERNEL, me);
			break;
		default: sched_release(v, me, true);
		}
	}
	/* Whatever it has is anybody's. */
	for (uint32_t i = 0; i < N_CPUS; i++)
		if (sched_take(mine[i].cpu, emuring_hold_word(EMURING_KERNEL, me), me) ||
		    sched_take(mine[i].cpu, emuring_hold_word(EMURING_ASLEEP, me), me))
			sched_release(&mine[i], me, false);
	return NULL;
}

static void acquire_many_guests_at_once_never_share_a_cpu(void **state)
{
	pthread_t threads[N_THREADS];

	(void)state;
	rounds_done = collisions = 0;
	for (uint32_t i = 0; i < N_THREADS; i++)
		task(i + 1, EMURING_TASK_RUNS);
	for (uint32_t i = 0; i < N_THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, guest, (void *)(uintptr_t)(i + 1)), 0);
	for (uint32_t i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(rounds_done, N_THREADS * ROUNDS);
	assert_int_equal(collisions, 0);
	assert_int_equal(ring->shared->n_waiting, 0);
	for (uint32_t i = 0; i < N_CPUS; i++)
		assert_hold(i, EMURING_IDLE, EMURING_NO_TASK);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(acquire_idle_machine_gives_the_last_cpu),
		CASE(acquire_own_sleeping_cpu_writes_no_switch),
		CASE(acquire_takes_a_sleepers_cpu_but_no_short_calls),
		CASE(acquire_prefers_idle_to_sleeping),
		CASE(acquire_own_cpu_that_is_to_go_leaves_it_first),
		CASE(acquire_closing_machine_gives_none),
		CASE(give_serves_who_waits_longest_and_is_not_stopped),
		CASE(give_nobody_waits_leaves_it_with_the_owner),
		CASE(give_cpu_that_is_to_go_is_not_given),
		CASE(release_nobody_waits_tells_the_idle_task),
		CASE(offer_sleepers_cpu_goes_to_who_waits),
		CASE(disown_what_a_killed_namesake_had_is_free),
		CASE(disown_cpu_on_which_it_called_exec_stays),
		CASE(take_at_rest_only_where_nobody_works),
		CASE(switch_after_a_sleep_tells_when_it_began),
		CASE(serve_starts_and_stops_with_records),
		CASE(serve_in_a_call_puts_the_sleep_behind_its_records),
		CASE(go_off_stops_tracing_and_come_back_resumes_it),
		CASE(acquire_many_guests_at_once_never_share_a_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
