/*
 * Stretches with a known truth, millions of them: threads that enter and leave user code on several
 * CPUs, with signals, siglongjmp, forks, turns without a stretch, lost packets and lost records,
 * under times that are coarse in different ways. A thread that is decided must be the true one, and
 * the candidates of a stretch that is not decided must have the true one among them.
 *
 * test_turns_sweep --full: ten million stretches, and a table with the share of undecided ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "decoder/worker/turns/turns.h"
#include "proto/base.h"

#define MAX_CPUS    9u
#define MAX_THREADS 64u
#define N_PLACES    6u	 /* system calls of a program */
#define HORIZON	    400u /* stretches of a world, for each CPU */

#define CODE	 UINT64_C(0x10000)
#define HANDLERS UINT64_C(0x20000)
#define FORK	 UINT64_C(0x30002) /* behind the system call that makes threads */
#define MIDDLE	 UINT64_C(0x40000) /* where interrupts leave code */

/* --- Settings --- */

struct setting {
	const char *name;
	uint64_t grain;	  /* ns: a time is known to a multiple of it */
	uint64_t quantum; /* ns: a turn's length, about */
	unsigned int cpus, threads;
	unsigned int processes;			  /* different programs */
	unsigned int signals;			  /* in 1024 entries */
	unsigned int forks, empty, lost, unknown; /* in 1024 */
	unsigned int unseen;			  /* CPUs, besides, that are not recorded */
};

/* One world: what really happened. */
struct real {
	uint64_t enter, leave; /* ns */
	uint64_t ip;
	struct turns_left left; /* as the code tells */
	uint32_t turn;
	bool asynchronous, broken;
};

struct thread {
	struct timeline_thread thread;
	struct turns_left left;
	uint64_t interrupted; /* where a handler goes back to; 0: in none, or it never does */
	uint64_t free_at;     /* not on a CPU since */
};

struct cpu {
	struct real *list;
	size_t n, at;
	bool lost; /* packets, since the last stretch */
	struct turns_state state;
	struct turns_stretch seen[TURNS_WINDOW];
};

struct world {
	const struct setting *setting;
	uint64_t random;
	struct thread threads[MAX_THREADS];
	size_t n_threads;
	struct cpu cpus[MAX_CPUS];
	struct turns turns;
	size_t asked; /* the CPU that is asked for */
};

struct sums {
	uint64_t stretches, undecided, wrong, unnamed;
};

static uint64_t draw(struct world *w, uint64_t n)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return n > 0 ? w->random % n : 0;
}

static bool chance(struct world *w, unsigned int of_1024)
{
	return draw(w, 1024) < of_1024;
}

static unsigned int all_cpus(const struct setting *s)
{
	return s->cpus + s->unseen;
}

/* --- What happens --- */

static uint32_t process_of(const struct thread *t)
{
	return t->thread.pid;
}

static struct thread *new_thread(struct world *w, uint64_t time, uint32_t pid)
{
	struct thread *t;

	if (w->n_threads == MAX_THREADS)
		return NULL;
	t = &w->threads[w->n_threads++];
	*t = (struct thread){
		.thread = {.pid = pid,
			   .tid = (uint32_t)w->n_threads,
			   .begin = time,
			   .end = SPACE_NOW},
		.left = {.ip = FORK, .again = FORK - 2, .context = pid, .inside = true},
		.free_at = time};
	return t;
}

/* A thread enters user code: where it left, or in a handler, of which some never go back. */
static void enter(struct world *w, struct thread *t, struct real *to)
{
	to->ip = t->left.ip;
	if (chance(w, w->setting->signals)) {
		t->interrupted = draw(w, 2) == 0 ? t->left.ip : 0;
		to->ip = HANDLERS + 0x100 * draw(w, 2);
	} else if (t->left.again != 0 && chance(w, 8)) {
		to->ip = t->left.again; /* the system call is restarted */
	}
}

/* The instruction in front of that at IP. */
static enum turns_call behind(uint64_t ip)
{
	if (ip == FORK)
		return TURNS_CALL_FORK;
	if (ip >= HANDLERS || (ip & 2) == 0)
		return TURNS_CALL_NONE;
	return (ip & 0x20) != 0 ? TURNS_CALL_UNKNOWN : TURNS_CALL_OTHER;
}

/* T leaves user code; what its code tells of that is TO->left. */
static void leave(struct world *w, struct thread *t, struct real *to)
{
	const uint32_t context = process_of(t);
	const bool shared = w->setting->processes == 1;
	uint64_t place = CODE + 0x20 * draw(w, N_PLACES) + (shared ? 0 : 0x1000 * context) + 2;

	to->asynchronous = draw(w, 4) == 0;
	if (to->asynchronous) {
		/* At few places, as where threads wait in loops; sometimes where a handler begins.
		 */
		t->left = (struct turns_left){.ip = MIDDLE + 4 * draw(w, 8), .context = context};
		t->left.inside = t->left.ip % 16 != 0;
		if (draw(w, 256) == 0)
			t->left = (struct turns_left){.ip = HANDLERS, .context = context};
	} else if (t->interrupted != 0 && draw(w, 2) == 0) {
		/* The end of a handler: the code does not tell where that goes. */
		t->left = (struct turns_left){.ip = t->interrupted};
		t->interrupted = 0;
		return;
	} else {
		if (chance(w, w->setting->forks) && new_thread(w, to->leave, context))
			place = FORK;
		t->left = (struct turns_left){
			.ip = place, .again = place - 2, .context = context, .inside = true};
	}
	to->left = t->left;
}

static struct thread *choose(struct world *w, uint64_t time)
{
	size_t first = (size_t)draw(w, w->n_threads);

	for (size_t i = 0; i < w->n_threads; i++) {
		struct thread *t = &w->threads[(first + i) % w->n_threads];

		if (t->free_at <= time)
			return t;
	}
	return NULL;
}

static void add_turn(struct turns_cpu *to, uint64_t since, uint64_t until, const struct thread *t)
{
	to->list[to->n++] = (struct turns_turn){
		.since = since, .until = until, .thread = t ? &t->thread : NULL};
}

/* What THREAD does in the turn that was added last to CPU. */
static void run(struct world *w, size_t cpu, struct thread *t)
{
	const struct turns_cpu *turns = &w->turns.cpus[cpu];
	const struct turns_turn *turn = &turns->list[turns->n - 1];
	const uint64_t length = turn->until - turn->since;
	uint64_t time = turn->since + draw(w, 1 + length / 16);
	struct cpu *c = &w->cpus[cpu];

	while (c->n < HORIZON && time < turn->until) {
		struct real *to = &c->list[c->n];

		*to = (struct real){
			.enter = time, .turn = (uint32_t)turns->n - 1, .broken = c->lost};
		enter(w, t, to);
		time += draw(w, 2 + length / (1 + draw(w, 6)));
		to->leave = MIN_OF(time, turn->until);
		leave(w, t, to);
		time = to->leave + 1 + draw(w, 1 + length / 32);
		c->lost = chance(w, w->setting->lost);
		c->n += !c->lost;
	}
}

/* All CPUs together, turn by turn, in the order of time. */
static void happen(struct world *w)
{
	uint64_t now[MAX_CPUS] = {0};
	const struct setting *s = w->setting;

	for (;;) {
		size_t cpu = 0;
		struct thread *t;
		uint64_t until;

		for (size_t i = 1; i < all_cpus(s); i++)
			if (now[i] < now[cpu])
				cpu = i;
		if (w->cpus[cpu].n == HORIZON || w->turns.cpus[cpu].n == 2 * HORIZON)
			break;
		until = now[cpu] + 1 + draw(w, 2 * s->quantum);
		t = draw(w, 8) == 0 ? NULL : choose(w, now[cpu]);
		add_turn(&w->turns.cpus[cpu], now[cpu], until, t);
		if (t) {
			t->free_at = until;
			if (!chance(w, s->empty))
				run(w, cpu, t);
		}
		now[cpu] = until;
	}
	for (size_t i = 0; i < all_cpus(s); i++)
		w->turns.cpus[i].list[w->turns.cpus[i].n - 1].until = SPACE_NOW;
}

/* Records are lost: some turns become uncertain, several of them together. */
static void lose_records(struct world *w)
{
	for (size_t i = 0; i < w->setting->cpus; i++)
		for (size_t k = 0; k < w->turns.cpus[i].n; k++)
			if (chance(w, w->setting->unknown)) {
				w->turns.lossy = w->turns.cpus[i].list[k].uncertain = true;
				w->turns.cpus[i].list[k].thread = NULL;
			}
}

/* The last CPUs are not recorded. */
static void leave_unseen(struct world *w)
{
	for (unsigned int i = 0; i < w->setting->unseen; i++) {
		w->turns.n_cpus--;
		free(w->turns.cpus[w->turns.n_cpus].list);
	}
	if (w->setting->unseen > 0)
		assert_int_equal(turns_unseen(&w->turns, 0, SPACE_NOW), 0);
}

static void make_world(struct world *w, const struct setting *s, uint64_t seed)
{
	*w = (struct world){.setting = s, .random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
	assert_int_equal(turns_init(&w->turns, all_cpus(s)), 0);
	for (size_t i = 0; i < all_cpus(s); i++) {
		w->turns.cpus[i].list = calloc(2 * HORIZON, sizeof(struct turns_turn));
		w->cpus[i].list = calloc(HORIZON + 1, sizeof(struct real));
		assert_non_null(w->turns.cpus[i].list);
		assert_non_null(w->cpus[i].list);
	}
	for (uint32_t i = 0; i < s->threads; i++)
		new_thread(w, 0, 1 + i % s->processes);
	happen(w);
	leave_unseen(w);
	lose_records(w);
	assert_int_equal(turns_link(&w->turns), 0);
}

static void free_world(struct world *w)
{
	for (size_t i = 0; i < all_cpus(w->setting); i++)
		free(w->cpus[i].list);
	turns_done(&w->turns);
}

/* --- What is asked and told --- */

static uint64_t not_before(const struct world *w, uint64_t time)
{
	return time - time % w->setting->grain;
}

static uint64_t not_after(const struct world *w, uint64_t time)
{
	return not_before(w, time) + w->setting->grain - 1;
}

static const struct turns_stretch *on_stretch(void *userdata, size_t i)
{
	struct world *w = userdata;
	struct cpu *c = &w->cpus[w->asked];
	const struct real *r = &c->list[c->at + i];

	if (c->at + i >= c->n)
		return NULL;
	c->seen[i] = (struct turns_stretch){.enter_lo = not_before(w, r->enter),
					    .enter_hi = not_after(w, r->enter),
					    .leave_lo = not_before(w, r->leave),
					    .leave_hi = not_after(w, r->leave),
					    .enter = r->ip,
					    .broken = r->broken};
	if (r->asynchronous)
		c->seen[i].left.ip = r->left.ip;
	return &c->seen[i];
}

static const struct timeline_thread *truth_of(const struct world *w, size_t cpu,
					      const struct real *r)
{
	const struct turns_turn *turn = &w->turns.cpus[cpu].list[r->turn];

	return turn->uncertain ? NULL : turn->thread;
}

static void on_proof(void *userdata, size_t i, uint32_t turn, struct turns_proof *ret)
{
	const struct world *w = userdata;
	const struct cpu *c = &w->cpus[w->asked];
	const struct real *r = &c->list[c->at + i];
	const struct timeline_thread *thread = w->turns.cpus[w->asked].list[turn].thread;
	const struct timeline_thread *truth = truth_of(w, w->asked, r);

	if (!thread || w->turns.cpus[w->asked].list[turn].uncertain)
		return;
	/* Half of the stretches of another program fit by chance. */
	ret->impossible = truth && truth->pid != thread->pid && (r->ip >> 4 & 1) != 0;
	ret->context = thread->pid;
	ret->behind = (uint8_t)behind(r->ip);
	ret->left = r->left;
	ret->left.context = thread->pid;
}

static bool on_alike(void *userdata, uint32_t a, uint32_t b, uint64_t ip)
{
	(void)userdata;
	return a == b || ip >= HANDLERS;
}

static bool is_named(const struct turns_answer *answer, const struct timeline_thread *truth)
{
	bool found = answer->n_threads == 0;

	for (size_t i = 0; i < answer->n_threads; i++)
		found = found || answer->threads[i] == truth;
	return found && (!answer->process || !truth || answer->process->pid == truth->pid);
}

static void decide_next(struct world *w, size_t cpu, struct sums *sums)
{
	struct cpu *c = &w->cpus[cpu];
	const struct real *r = &c->list[c->at];
	const struct timeline_thread *truth = truth_of(w, cpu, r);
	struct turns_stretch first;
	struct turns_question q = {.turns = &w->turns,
				   .cpu = cpu,
				   .state = &c->state,
				   .first = &first,
				   .stretch = on_stretch,
				   .proof = on_proof,
				   .alike = on_alike,
				   .userdata = w};
	struct turns_answer answer;

	w->asked = cpu;
	first = *on_stretch(w, 0);
	turns_decide(&q, &answer);
	sums->stretches++;
	sums->undecided += !answer.thread;
	sums->wrong += answer.thread && answer.thread != truth;
	sums->unnamed += !answer.thread && truth && !is_named(&answer, truth);
	if (answer.first != TURNS_NONE)
		w->turns.cpus[cpu].passed = answer.first;
	if (!answer.same)
		c->state = answer.state;
	turns_leave(&w->turns, cpu, &c->state, answer.thread || answer.process ? &r->left : NULL);
	if (++c->at == c->n)
		turns_end(&w->turns, cpu, &c->state);
}

/* The CPU whose next stretch begins first goes on. */
static void decide_all(struct world *w, struct sums *sums)
{
	for (;;) {
		size_t cpu = MAX_CPUS;

		for (size_t i = 0; i < w->setting->cpus; i++) {
			const struct cpu *c = &w->cpus[i];

			if (c->at < c->n &&
			    (cpu == MAX_CPUS ||
			     c->list[c->at].enter < w->cpus[cpu].list[w->cpus[cpu].at].enter))
				cpu = i;
		}
		if (cpu == MAX_CPUS)
			return;
		decide_next(w, cpu, sums);
	}
}

static struct sums sweep(const struct setting *s, uint64_t wanted, uint64_t seed)
{
	static struct world w;
	struct sums sums = {0};

	while (sums.stretches < wanted) {
		make_world(&w, s, ++seed);
		for (size_t i = 0; i < s->cpus; i++) {
			const struct cpu *c = &w.cpus[i];

			turns_begin(&w.turns, i, 0, c->n > 0 ? not_after(&w, c->list[0].enter) : 0,
				    &w.cpus[i].state);
		}
		decide_all(&w, &sums);
		free_world(&w);
	}
	return sums;
}

/* --- The sweep --- */

static const struct {
	const char *name;
	uint64_t grain;
} grains[] = {{"cyc", 4}, {"mtc 3", 333}, {"mtc 6", 2667}, {"mtc 9", 21333}, {"tsc", 200000}};
static const uint64_t quanta[] = {500, 2000, 20000, 200000, 1000000};

static const struct setting workloads[] = {
	{.name = "identical", .threads = 4, .processes = 1},
	{.name = "signals", .threads = 4, .processes = 1, .signals = 200, .empty = 20},
	{.name = "different", .threads = 6, .processes = 6, .signals = 20, .empty = 20},
	{.name = "forks", .threads = 2, .processes = 2, .forks = 60, .empty = 50},
	{.name = "losses",
	 .threads = 5,
	 .processes = 2,
	 .signals = 50,
	 .empty = 50,
	 .lost = 30,
	 .unknown = 10},
	{.name = "unseen", .threads = 5, .processes = 2, .signals = 20, .empty = 20, .unseen = 1},
};

static void check(const struct setting *s, uint64_t n, uint64_t seed, struct sums *all)
{
	const struct sums sums = sweep(s, n, seed);

	if (sums.wrong > 0 || sums.unnamed > 0)
		fail_msg("%s, %llu ns, quantum %llu, %u CPUs: of %llu stretches %llu wrong and "
			 "certain, %llu without the true candidate",
			 s->name, (unsigned long long)s->grain, (unsigned long long)s->quantum,
			 s->cpus, (unsigned long long)sums.stretches,
			 (unsigned long long)sums.wrong, (unsigned long long)sums.unnamed);
	all->stretches += sums.stretches;
	all->undecided += sums.undecided;
}

/* N stretches of each setting. */
static uint64_t sweep_all(uint64_t n, bool show)
{
	static const unsigned int cpus[] = {1, 2, 8};
	uint64_t total = 0;

	for (size_t g = 0; g < ARRAY_SIZE(grains); g++)
		for (size_t q = 0; q < ARRAY_SIZE(quanta); q++) {
			if (show)
				printf("%-6s %8llu ns", grains[g].name,
				       (unsigned long long)quanta[q]);
			for (size_t i = 0; i < ARRAY_SIZE(workloads); i++) {
				struct setting s = workloads[i];
				struct sums sums = {0};

				s.grain = grains[g].grain;
				s.quantum = quanta[q];
				for (size_t c = 0; c < ARRAY_SIZE(cpus); c++) {
					s.cpus = cpus[c];
					check(&s, n, 1 + 1000 * c, &sums);
				}
				total += sums.stretches;
				if (show)
					printf("  %s %.3f %%", s.name,
					       100 * (double)sums.undecided /
						       (double)sums.stretches);
			}
			if (show)
				printf("\n");
			fflush(stdout);
		}
	return total;
}

static void turns_decide_sweep_has_no_wrong_thread(void **state)
{
	(void)state;
	sweep_all(1000, false);
}

static void turns_decide_long_sweep_has_no_wrong_thread(void **state)
{
	(void)state;
	printf("%llu stretches\n", (unsigned long long)sweep_all(23000, true));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest quick[] = {
		cmocka_unit_test(turns_decide_sweep_has_no_wrong_thread),
	};
	const struct CMUnitTest full[] = {
		cmocka_unit_test(turns_decide_long_sweep_has_no_wrong_thread),
	};

	if (argc > 1 && strcmp(argv[1], "--full") == 0)
		return cmocka_run_group_tests(full, NULL, NULL);
	return cmocka_run_group_tests(quick, NULL, NULL);
}
