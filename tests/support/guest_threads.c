/*
 * A program for the emulated machine: eight threads that constantly wait for each other (mutex,
 * condition, barrier, once, all by futexes), and some short-lived threads. Prints a sum that does
 * not depend on their order. guest_threads [ROUNDS]
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define N_THREADS 8
#define N_SLOTS	  4

static struct {
	pthread_mutex_t lock;
	pthread_cond_t filled, emptied;
	uint64_t slots[N_SLOTS];
	unsigned int n;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER,
	   .filled = PTHREAD_COND_INITIALIZER,
	   .emptied = PTHREAD_COND_INITIALIZER};
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic uint64_t total;
static _Atomic unsigned int turn;
static unsigned int rounds = 200;

static void first(void)
{
	atomic_fetch_add(&total, 1000000007);
}

static __attribute__((noinline)) uint64_t mix(uint64_t v, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		v = v & 1 ? v * 3 + 1 : v / 2 + i;
	return v;
}

static __attribute__((noinline)) uint64_t recurse(uint64_t v, unsigned int depth)
{
	return depth == 0 ? v : recurse(v * 7 + depth, depth - 1) ^ depth;
}

static void put(uint64_t v)
{
	pthread_mutex_lock(&queue.lock);
	while (queue.n == N_SLOTS)
		pthread_cond_wait(&queue.emptied, &queue.lock);
	queue.slots[queue.n++] = v;
	pthread_cond_signal(&queue.filled);
	pthread_mutex_unlock(&queue.lock);
}

static uint64_t take(void)
{
	uint64_t v;

	pthread_mutex_lock(&queue.lock);
	while (queue.n == 0)
		pthread_cond_wait(&queue.filled, &queue.lock);
	v = queue.slots[--queue.n];
	pthread_cond_signal(&queue.emptied);
	pthread_mutex_unlock(&queue.lock);
	return v;
}

static void *short_lived(void *argument)
{
	atomic_fetch_add(&total, mix((uintptr_t)argument, 30));
	return NULL;
}

/* Each thread waits for its turn by yielding, never by sleeping. */
static void in_turn(unsigned int self, unsigned int r)
{
	while (atomic_load(&turn) != r * N_THREADS + self)
		sched_yield();
	atomic_store(&turn, r * N_THREADS + self + 1);
}

static void *thread(void *argument)
{
	unsigned int self = (unsigned int)(uintptr_t)argument;
	pthread_t child;

	pthread_once(&once, first);
	for (unsigned int r = 0; r < rounds; r++) {
		if (self % 2 == 0)
			put(mix(self * 1000 + r, 300));
		else
			atomic_fetch_add(&total, recurse(take(), 40));
		if (r % 16 == 0)
			pthread_barrier_wait(&barrier);
		if (r % 64 == self && pthread_create(&child, NULL, short_lived, argument) == 0)
			pthread_join(child, NULL);
		if (r < 2)
			in_turn(self, r);
	}
	atomic_fetch_add(&total, mix(self, 50000));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[N_THREADS];

	if (argc > 1)
		rounds = (unsigned int)atoi(argv[1]);
	pthread_barrier_init(&barrier, NULL, N_THREADS);
	for (uintptr_t i = 0; i < N_THREADS; i++)
		if (pthread_create(&threads[i], NULL, thread, (void *)i) != 0)
			return 1;
	for (unsigned int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%llu\n", (unsigned long long)total);
	return 0;
}
