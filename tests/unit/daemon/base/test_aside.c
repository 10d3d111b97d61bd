/*
 * Tasks in a thread that is left behind when a task hangs. A task hangs until its gate opens.
 */
#include "daemon/base/aside.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define LONG_NS 60000000000u

struct task {
	struct aside_task task;
	sem_t *gate; /* NULL: the task does not hang */
	bool run;
	unsigned int moved; /* the number of threads that hung then */
};

static sem_t gates[ASIDE_STUCK_MAX];
static atomic_uint n_freed, n_contexts;
static int context_error;

static int context_new(const char *proc, void **ret)
{
	assert_string_equal(proc, "/proc");
	if (context_error)
		return context_error;
	n_contexts++;
	*ret = &n_contexts;
	return 0;
}

static void context_free(void *context)
{
	(*(atomic_uint *)context)--;
}

static void run(void *context, struct aside_task *task)
{
	struct task *t = (struct task *)(void *)task;

	(void)context;
	while (t->gate && sem_wait(t->gate) < 0)
		;
	t->run = true;
}

static void task_free(struct aside_task *task)
{
	n_freed++;
	free(task);
}

static void moved(struct aside_task *task, unsigned int n_stuck)
{
	((struct task *)(void *)task)->moved = n_stuck;
}

static const struct aside_ops ops = {context_new, context_free, run, task_free, moved};
static const struct aside_ops no_context = {.run = run, .task_free = task_free};

static int setup(void **state)
{
	struct aside *a = NULL;

	n_freed = 0;
	context_error = 0;
	for (size_t i = 0; i < ASIDE_STUCK_MAX; i++)
		sem_init(&gates[i], 0, 0);
	if (aside_new(&ops, "/proc", &a) < 0)
		return -1;
	*state = a;
	return 0;
}

static int teardown(void **state)
{
	for (size_t i = 0; i < ASIDE_STUCK_MAX; i++)
		sem_post(&gates[i]);
	aside_free(*state);
	while (n_contexts > 0)
		sched_yield();
	return 0;
}

/* Returns the result of aside_ask(). */
static int ask(struct aside *a, uint64_t tag, sem_t *gate)
{
	struct task *t = calloc(1, sizeof(*t));
	int r;

	assert_non_null(t);
	t->task.tag = tag;
	t->gate = gate;
	r = aside_ask(a, &t->task);
	if (r != 0)
		free(t);
	return r;
}

/* Takes the next task, which has TAG. Returns the number of threads that hung when it was moved. */
static unsigned int take(struct aside *a, uint64_t tag, bool given_up)
{
	struct aside_task *task;
	unsigned int n_stuck;

	while (!(task = aside_take(a)))
		assert_int_equal(aside_wait(a, LONG_NS), 0);
	assert_int_equal(task->tag, tag);
	assert_int_equal(task->given_up, given_up);
	assert_true(((struct task *)(void *)task)->run);
	n_stuck = ((struct task *)(void *)task)->moved;
	free(task);
	return n_stuck;
}

/* Gives the task with TAG up as soon as the thread has begun with it. */
static void give_up(struct aside *a, uint64_t tag)
{
	struct aside_task *task;

	while (!(task = aside_give_up(a, 0)))
		sched_yield();
	assert_int_equal(task->tag, tag);
	assert_true(task->given_up);
}

static void aside_take_gives_tasks_in_order(void **state)
{
	struct aside *a = *state;
	struct pollfd p = {.fd = aside_fd(a), .events = POLLIN};

	assert_int_equal(poll(&p, 1, 0), 0);
	for (uint64_t tag = 0; tag < 100; tag++)
		assert_int_equal(ask(a, tag, NULL), 0);
	assert_int_equal(aside_pending(a), 100);
	assert_int_equal(poll(&p, 1, -1), 1);
	for (uint64_t tag = 0; tag < 100; tag++)
		assert_int_equal(take(a, tag, false), 0);
	assert_int_equal(aside_pending(a), 0);
	assert_null(aside_take(a));
	aside_clear(a);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(ask(a, 7, NULL), 0);
	assert_int_equal(poll(&p, 1, -1), 1);
	take(a, 7, false);
	assert_int_equal(aside_wait(a, LONG_NS), 0); /* nothing is pending */
}

static void aside_give_up_before_its_time_is_nothing(void **state)
{
	struct aside *a = *state;

	assert_null(aside_give_up(a, 0)); /* no thread */
	assert_int_equal(ask(a, 1, NULL), 0);
	assert_int_equal(aside_wait(a, LONG_NS), 0);
	assert_int_equal(ask(a, 2, &gates[0]), 0);
	for (int i = 0; i < 100; i++) {
		assert_null(aside_give_up(a, 0)); /* 1 is not taken yet */
		sched_yield();
	}
	take(a, 1, false);
	assert_null(aside_give_up(a, LONG_NS));
	sem_post(&gates[0]);
	take(a, 2, false);
	assert_null(aside_give_up(a, 0));
}

static void aside_give_up_another_thread_goes_on(void **state)
{
	struct aside *a = *state;

	assert_int_equal(ask(a, 1, &gates[0]), 0);
	assert_int_equal(ask(a, 2, NULL), 0);
	give_up(a, 1);
	assert_int_equal(aside_pending(a), 1);
	assert_int_equal(aside_stuck(a), 1);
	assert_int_equal(take(a, 2, false), 1);
	assert_int_equal(n_contexts, 2);
	sem_post(&gates[0]);
	while (aside_stuck(a) > 0)
		sched_yield();
	take(a, 1, true);
	assert_int_equal(aside_pending(a), 0);
	while (n_contexts > 1)
		sched_yield();
}

static void aside_ask_when_too_many_hang_is_refused(void **state)
{
	struct aside *a = *state;

	for (unsigned int i = 0; i < ASIDE_STUCK_MAX; i++) {
		assert_int_equal(ask(a, i, &gates[i]), 0);
		if (i + 1 == ASIDE_STUCK_MAX)
			assert_int_equal(ask(a, 100, NULL), 0);
		give_up(a, i);
	}
	assert_int_equal(aside_stuck(a), ASIDE_STUCK_MAX);
	assert_int_equal(ask(a, 101, NULL), -EAGAIN);
	assert_int_equal(aside_wait(a, LONG_NS), -EAGAIN);
	assert_int_equal(aside_pending(a), 1);
	sem_post(&gates[0]);
	while (aside_stuck(a) == ASIDE_STUCK_MAX)
		sched_yield();
	take(a, 0, true);
	assert_int_equal(take(a, 100, false), ASIDE_STUCK_MAX);
	assert_int_equal(ask(a, 101, NULL), 0);
	take(a, 101, false);
}

static void aside_ask_beyond_the_room_is_refused(void **state)
{
	struct aside *a = *state;

	for (uint64_t tag = 0; tag < ASIDE_ROOM; tag++)
		assert_int_equal(ask(a, tag, tag == 0 ? &gates[0] : NULL), 0);
	assert_int_equal(ask(a, ASIDE_ROOM, NULL), ASIDE_FULL);
	give_up(a, 0);
	assert_int_equal(ask(a, ASIDE_ROOM, NULL), 0);
	for (uint64_t tag = 1; tag <= ASIDE_ROOM; tag++)
		take(a, tag, false);
}

static void aside_ask_without_a_context_fails(void **state)
{
	struct aside *a = *state;

	context_error = -EMFILE;
	assert_int_equal(ask(a, 1, NULL), -EMFILE);
	assert_int_equal(aside_pending(a), 0);
	context_error = 0;
	assert_int_equal(ask(a, 1, NULL), 0);
	take(a, 1, false);
}

static void aside_free_waits_for_no_thread(void **state)
{
	struct aside *a = NULL;

	(void)state;
	for (int i = 0; i < 2; i++) {
		n_freed = 0;
		sem_init(&gates[0], 0, 0);
		assert_int_equal(aside_new(i ? &ops : &no_context, "/proc", &a), 0);
		assert_int_equal(ask(a, 1, NULL), 0);
		assert_int_equal(aside_wait(a, LONG_NS), 0);
		assert_int_equal(ask(a, 2, &gates[0]), 0);
		assert_int_equal(ask(a, 3, NULL), 0);
		aside_free(a);
		sem_post(&gates[0]);
		while (n_freed < 3)
			sched_yield();
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(aside_take_gives_tasks_in_order),
		CASE(aside_give_up_before_its_time_is_nothing),
		CASE(aside_give_up_another_thread_goes_on),
		CASE(aside_ask_when_too_many_hang_is_refused),
		CASE(aside_ask_beyond_the_room_is_refused),
		CASE(aside_ask_without_a_context_fails),
		CASE(aside_free_waits_for_no_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
