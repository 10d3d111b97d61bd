/*
 * Incidents among threads that get in each other's way, for the emulated machine, one by name:
 * guest_crowd NAME
 *
 * As in guest_incidents.c, all is well for a while, and then not. The program notices that itself
 * and triggers a snapshot: it sends SIGUSR2 to the recorder, its parent.
 */
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define MS	 1000000ull /* ns */

static volatile uint64_t sink;
static pid_t recorder;

static void pause_us(unsigned int us)
{
	const struct timespec t = {us / 1000000, us % 1000000 * 1000L};

	nanosleep(&t, NULL);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Few branches for many instructions. */
static NOINLINE void work(unsigned int n)
{
	for (unsigned int i = 0; i < n; i += 8) {
		sink = sink * 31 + i;
		sink = sink * 33 + i;
		sink = sink * 35 + i;
		sink = sink * 37 + i;
		sink = sink * 39 + i;
		sink = sink * 41 + i;
		sink = sink * 43 + i;
		sink = sink * 45 + i;
	}
}

static void alarm_recorder(void)
{
	kill(recorder, SIGUSR2);
}

static void sleep_for_ever(void)
{
	for (;;)
		pause();
}

static void set_name(const char *name)
{
	prctl(PR_SET_NAME, name, 0, 0, 0);
}

/* --- starved: a thread that waited for its CPU gets it, and does not give it back --- */

static NOINLINE void sum_up_day(void)
{
	work(20000);
	sink++;
}

static void *make_reports(void *argument)
{
	set_name("reports");
	for (;;)
		sum_up_day();
	return argument;
}

static NOINLINE void read_sensor(void)
{
	work(2000);
	sink++;
}

/* Tells of the incident, and goes on until long behind the snapshot. A system call could cost the
 * thread its CPU on a busy host, so the time is seldom asked for. */
static NOINLINE void poll_sensor(void)
{
	uint64_t end;

	for (unsigned int i = 0; i < 10000; i++)
		read_sensor();
	puts("incident");
	fflush(stdout);
	end = now_ns() + 3000 * MS;
	do {
		for (unsigned int i = 0; i < 1000; i++)
			read_sensor();
	} while (now_ns() < end);
}

static void starved(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, make_reports, NULL);
	set_name("sensor");
	/* The reports have the only CPU until their quantum is over. */
	pause_us(2000);
	poll_sensor();
	sleep_for_ever();
}

/* --- neighbour: another process begins to compute --- */

static NOINLINE void answer_request(void)
{
	work(200000);
	sink++;
}

static NOINLINE void encode_video(void)
{
	const uint64_t begin = now_ns();

	while (now_ns() - begin < 60000 * MS)
		work(20000);
}

/* Answers so many requests, and goes on until so much time has passed: the incident has both on
 * slow and on fast hosts. */
static void serve(unsigned int requests, uint64_t ns)
{
	const uint64_t begin = now_ns();

	for (unsigned int i = 0; i < requests || now_ns() - begin < ns; i++)
		answer_request();
}

static void neighbour(void)
{
	char video = 0;
	int fds[2];

	if (pipe(fds) < 0)
		exit(1);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		set_name("encoder");
		if (read(fds[0], &video, 1) == 1)
			encode_video();
		exit(0);
	}
	set_name("server");
	serve(150, 600 * MS);
	if (write(fds[1], &video, 1) != 1)
		exit(1);
	serve(25, 250 * MS);
	alarm_recorder();
	sleep_for_ever();
}

/* --- safepoint: one thread collects garbage, and all others wait until it has --- */

#define MUTATORS 3

static pthread_mutex_t world = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t world_changed = PTHREAD_COND_INITIALIZER;
static _Atomic int stop_requested;
static unsigned int parked;

static NOINLINE void wait_for_collector(void)
{
	pthread_mutex_lock(&world);
	parked++;
	pthread_cond_broadcast(&world_changed);
	while (atomic_load(&stop_requested))
		pthread_cond_wait(&world_changed, &world);
	parked--;
	pthread_mutex_unlock(&world);
}

static NOINLINE void serve_client(unsigned int i)
{
	work(2000 + i % 16);
	if (atomic_load(&stop_requested))
		wait_for_collector();
	sink++;
}

static void *serve_clients(void *argument)
{
	for (unsigned int i = 0;; i++) {
		serve_client(i);
		pause_us(500);
	}
	return argument;
}

static NOINLINE void mark_heap(void)
{
	const uint64_t begin = now_ns();

	while (now_ns() - begin < 60 * MS)
		work(20000);
}

static NOINLINE void collect_garbage(void)
{
	pthread_mutex_lock(&world);
	atomic_store(&stop_requested, 1);
	while (parked < MUTATORS)
		pthread_cond_wait(&world_changed, &world);
	pthread_mutex_unlock(&world);
	mark_heap();
	pthread_mutex_lock(&world);
	atomic_store(&stop_requested, 0);
	pthread_cond_broadcast(&world_changed);
	pthread_mutex_unlock(&world);
}

static void safepoint(void)
{
	pthread_t threads[MUTATORS];

	for (unsigned int i = 0; i < MUTATORS; i++)
		pthread_create(&threads[i], NULL, serve_clients, NULL);
	for (unsigned int i = 0; i < 2; i++) {
		/* Not like the others sleep, so that the trace tells who wakes up. */
		poll(NULL, 0, 500);
		collect_garbage();
	}
	poll(NULL, 0, 5);
	alarm_recorder();
	sleep_for_ever();
}

/* --- allocator: all threads allocate from one arena --- */

#define BLOCKS 64

static _Atomic unsigned int answers;
static _Atomic unsigned int large; /* from now on blocks are too large for a thread's own lists */

static NOINLINE void build_answer(unsigned int n)
{
	void *blocks[BLOCKS];
	const size_t size = atomic_load(&large) ? 2000 : 64;

	for (unsigned int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(size + n % 8 * 16);
		if (!blocks[i])
			exit(1);
		*(volatile char *)blocks[i] = 1;
	}
	work(80);
	for (unsigned int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
}

static void *build_answers(void *argument)
{
	for (unsigned int i = 0;; i++) {
		build_answer(i);
		if (atomic_load(&large))
			atomic_fetch_add(&answers, 1);
		else
			pause_us(1000);
	}
	return argument;
}

static void allocator(void)
{
	pthread_t threads[4];

	mallopt(M_ARENA_MAX, 1);
	for (unsigned int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, build_answers, NULL);
	pause_us(200000);
	atomic_store(&large, 1);
	while (atomic_load(&answers) < 4000)
		pause_us(20000);
	alarm_recorder();
	sleep_for_ever();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} incidents[] = {
		{"starved", starved},
		{"neighbour", neighbour},
		{"safepoint", safepoint},
		{"allocator", allocator},
	};

	recorder = getppid();
	for (size_t i = 0; argc > 1 && i < sizeof(incidents) / sizeof(incidents[0]); i++)
		if (strcmp(argv[1], incidents[i].name) == 0)
			incidents[i].run();
	return 1;
}
