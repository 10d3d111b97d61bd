/*
 * Incidents for the emulated machine, one by name: a program that works as it should for a while,
 * and then does not. guest_incidents NAME [FILE]
 *
 * Where the program itself notices, it triggers a snapshot: it sends SIGUSR2 to the recorder, its
 * parent. Else it writes a line and waits to be ended.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static volatile uint64_t sink;
static pid_t recorder;

static void pause_us(unsigned int us)
{
	const struct timespec t = {us / 1000000, us % 1000000 * 1000L};

	nanosleep(&t, NULL);
}

static NOINLINE void work(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		sink = sink * 31 + i;
}

static void alarm_recorder(void)
{
	kill(recorder, SIGUSR2);
	for (;;)
		pause();
}

static void tell(void)
{
	puts("incident");
	fflush(stdout);
}

/* --- lock: the lock is held for 4 ms once in 1,000 requests --- */

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned int requests;

static NOINLINE void write_audit(void)
{
	pause_us(4000);
	sink++;
}

static NOINLINE void update_table(unsigned int n)
{
	pthread_mutex_lock(&table);
	work(20);
	if (n % 1000 == 999)
		write_audit();
	pthread_mutex_unlock(&table);
}

static NOINLINE void handle(unsigned int n)
{
	work(100);
	update_table(n);
	sink++;
}

static void *serve_requests(void *argument)
{
	while (atomic_load(&requests) < 6000)
		handle(atomic_fetch_add(&requests, 1));
	return argument;
}

static void lock(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, serve_requests, NULL);
	serve_requests(NULL);
	pthread_join(thread, NULL);
	alarm_recorder();
}

/* --- deadlock: two threads take two locks in opposite order --- */

static pthread_mutex_t accounts[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t both;

static NOINLINE void transfer(unsigned int from, unsigned int to, int wait)
{
	pthread_mutex_lock(&accounts[from]);
	if (wait) {
		pthread_barrier_wait(&both);
		/* Long enough for the times in the trace to tell which of the two threads ran. */
		work(200000);
	}
	pthread_mutex_lock(&accounts[to]);
	work(10);
	pthread_mutex_unlock(&accounts[to]);
	pthread_mutex_unlock(&accounts[from]);
}

static NOINLINE void pay_rent(int wait)
{
	transfer(0, 1, wait);
	sink++;
}

static NOINLINE void pay_wages(int wait)
{
	transfer(1, 0, wait);
	sink++;
}

static void *rents(void *argument)
{
	for (int i = 0; i < 100; i++)
		pay_rent(0);
	pthread_barrier_wait(&both);
	pthread_barrier_wait(&both);
	pay_rent(1);
	return argument;
}

static void *wages(void *argument)
{
	pthread_barrier_wait(&both);
	for (int i = 0; i < 100; i++)
		pay_wages(0);
	pthread_barrier_wait(&both);
	pay_wages(1);
	return argument;
}

static void deadlock(void)
{
	pthread_t threads[2];

	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&threads[0], NULL, rents, NULL);
	pthread_create(&threads[1], NULL, wages, NULL);
	pause_us(300000);
	tell();
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

/* --- livelock: each of two threads lets the other one go first, for ever --- */

static _Atomic int inside[2];
static _Atomic int polite;

static NOINLINE int may_enter(unsigned int self)
{
	return !atomic_load(&inside[1 - self]);
}

static NOINLINE void enter_politely(unsigned int self)
{
	atomic_store(&inside[self], 1);
	while (!may_enter(self))
		work(5);
}

static NOINLINE void pass(unsigned int self)
{
	enter_politely(self);
	work(50);
	atomic_store(&inside[self], 0);
}

static void *walk(void *argument)
{
	const unsigned int self = (unsigned int)(uintptr_t)argument;

	/* One after the other at first. */
	for (unsigned int i = 0; i < 400; i++) {
		while (atomic_load(&polite) % 2 != (int)self)
			sched_yield();
		pass(self);
		atomic_fetch_add(&polite, 1);
	}
	pthread_barrier_wait(&both);
	atomic_store(&inside[self], 1);
	pthread_barrier_wait(&both);
	pass(self);
	return NULL;
}

static void livelock(void)
{
	pthread_t threads[2];

	pthread_barrier_init(&both, NULL, 2);
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, walk, (void *)i);
	while (atomic_load(&polite) < 800)
		pause_us(1000);
	pause_us(100000);
	alarm_recorder();
}

/* --- crash: a record's pointer leads nowhere --- */

struct record {
	const struct record *next;
	uint64_t value;
};

static NOINLINE uint64_t parse_record(const struct record *r)
{
	return r->next->value + r->value;
}

static NOINLINE void load_records(const struct record *list, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		sink += parse_record(&list[i]);
}

static void crash(void)
{
	static struct record list[3000];

	for (unsigned int i = 0; i < 3000; i++)
		list[i].next = i == 2990 ? (void *)(uintptr_t)0xdead0 : &list[(i + 1) % 3000];
	load_records(list, 3000);
}

/* --- config: behind a change of configuration each request takes a slow path --- */

static volatile uint64_t names[4096];

static NOINLINE uint64_t look_up_in_index(uint64_t key)
{
	return names[key * 31 % 4096];
}

static NOINLINE uint64_t look_up_in_log(uint64_t key)
{
	uint64_t found = 0;

	for (unsigned int i = 0; i < 4096; i++)
		found += names[i] == key;
	return found;
}

static NOINLINE void answer(uint64_t key, int use_log)
{
	sink += use_log ? look_up_in_log(key) : look_up_in_index(key);
}

static void config(void)
{
	for (unsigned int i = 0; i < 1000; i++) {
		answer(i, 0);
		pause_us(1500);
	}
	for (unsigned int i = 0; i < 20; i++) {
		answer(i, 1);
		pause_us(500);
	}
	alarm_recorder();
}

/* --- retry: what fails is tried again at once --- */

static _Atomic int backend_is_down;

static NOINLINE int connect_backend(void)
{
	work(3);
	return atomic_load(&backend_is_down) ? -1 : 0;
}

static NOINLINE void fetch(void)
{
	while (connect_backend() < 0)
		sink++;
}

static void *fetch_all(void *argument)
{
	for (;;) {
		fetch();
		pause_us(1000);
	}
	return argument;
}

static void retry(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, fetch_all, NULL);
	pause_us(300000);
	atomic_store(&backend_is_down, 1);
	pause_us(60000);
	alarm_recorder();
}

/* --- pipeline: the filter between two pipes waits for a file's lock that its parent has --- */

static NOINLINE void produce(int to)
{
	char block[4096] = "x";

	while (write(to, block, sizeof(block)) > 0)
		work(100);
}

static NOINLINE void filter(int from, int to, const char *path)
{
	const int fd = open(path, O_RDWR | O_CREAT, 0600);
	char block[4096];

	for (unsigned int i = 0; read(from, block, sizeof(block)) > 0; i++) {
		if (i == 50)
			flock(fd, LOCK_EX);
		if (write(to, block, sizeof(block)) < 0)
			break;
	}
}

static NOINLINE void consume(int from)
{
	char block[4096];

	while (read(from, block, sizeof(block)) > 0)
		work(100);
}

static void pipeline(const char *path)
{
	const int held = open(path, O_RDWR | O_CREAT, 0600);
	int first[2], second[2];
	pid_t last;

	flock(held, LOCK_EX);
	if (pipe(first) < 0 || pipe(second) < 0)
		exit(1);
	if (fork() == 0) {
		close(first[0]);
		produce(first[1]);
		exit(0);
	}
	close(first[1]);
	if (fork() == 0) {
		close(second[0]);
		filter(first[0], second[1], path);
		exit(0);
	}
	close(first[0]);
	close(second[1]);
	last = fork();
	if (last == 0) {
		close(held);
		consume(second[0]);
		exit(0);
	}
	close(second[0]);
	pause_us(300000);
	tell();
	waitpid(last, NULL, 0);
}

/* --- unanswered: after 400 requests the backend does not answer --- */

#define ANSWERED 400u

static NOINLINE void query(int backend)
{
	char answer = 'q';

	if (send(backend, &answer, 1, 0) != 1 || recv(backend, &answer, 1, 0) != 1)
		exit(1);
	work(20);
}

static void unanswered(void)
{
	int ends[2];

	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	if (fork() == 0) {
		char request;

		for (unsigned int i = 0; i < ANSWERED; i++)
			if (read(ends[1], &request, 1) != 1 || write(ends[1], &request, 1) != 1)
				exit(1);
		pause_us(2000000); /* much longer than a stall of a busy host */
		alarm_recorder();
	}
	for (;;)
		query(ends[0]);
}

/* --- idle: after 400 requests nobody asks; a loop of events, and a pool of one thread --- */

static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t new_job = PTHREAD_COND_INITIALIZER;
static unsigned int jobs;

static NOINLINE void take_job(void)
{
	pthread_mutex_lock(&jobs_lock);
	while (jobs == 0)
		pthread_cond_wait(&new_job, &jobs_lock);
	jobs--;
	pthread_mutex_unlock(&jobs_lock);
}

static void *do_jobs(void *argument)
{
	for (;;) {
		take_job();
		work(20);
	}
	return argument;
}

/* Writes out what it owes, and then waits for what comes. */
static NOINLINE void process_events(int epoll, int client, unsigned int owed)
{
	struct epoll_event event;
	char request;

	if (owed > 0 && write(client, "a", 1) != 1)
		exit(1);
	if (epoll_wait(epoll, &event, 1, -1) == 1 && read(client, &request, 1) != 1)
		exit(1);
	pthread_mutex_lock(&jobs_lock);
	jobs++;
	pthread_cond_signal(&new_job);
	pthread_mutex_unlock(&jobs_lock);
}

static void idle(void)
{
	const int epoll = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLIN};
	pthread_t thread;
	int ends[2];

	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	if (fork() == 0) {
		for (unsigned int i = 0; i < ANSWERED; i++)
			query(ends[1]);
		pause_us(300000);
		alarm_recorder();
	}
	epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
	pthread_create(&thread, NULL, do_jobs, NULL);
	for (unsigned int i = 0;; i++)
		process_events(epoll, ends[0], i);
}

/* --- killed: somebody else ends the process --- */

static NOINLINE void compute(void)
{
	/* In registers alone. */
	__asm__ volatile("1: add $1, %%rax\n"
			 "lea 8(%%rax), %%rdx\n"
			 "test %%rdx, %%rdx\n"
			 "jnz 1b\n"
			 "jmp 1b"
			 :
			 :
			 : "rax", "rdx", "cc");
}

static void killed(void)
{
	const pid_t parent = getpid();

	if (fork() == 0) {
		pause_us(100000);
		kill(parent, SIGTERM);
		while (getppid() == parent)
			pause_us(10000);
		alarm_recorder();
	}
	compute();
}

/* --- quiet: a server that has little to do; nothing stands out --- */

static void quiet(void)
{
	for (unsigned int i = 0; i < 500; i++) {
		answer(i, 0);
		pause_us(1000);
	}
	alarm_recorder();
}

/* --- serve: a server whose main loop is to run for ever, and has begun not long ago --- */

static NOINLINE void handle_batch(unsigned int n)
{
	for (unsigned int i = 0; i < 10; i++)
		answer(n + i, 0);
}

static NOINLINE void serve(void)
{
	for (unsigned int i = 0;; i++)
		handle_batch(i);
}

static void start_server(void)
{
	for (unsigned int i = 0; i < 300; i++) {
		answer(i, 0);
		pause_us(1000);
	}
	if (fork() == 0) {
		pause_us(100000);
		kill(recorder, SIGUSR2);
		exit(0);
	}
	serve();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} incidents[] = {
		{"lock", lock},	  {"deadlock", deadlock},  {"livelock", livelock},
		{"crash", crash}, {"config", config},	   {"retry", retry},
		{"quiet", quiet}, {"serve", start_server}, {"unanswered", unanswered},
		{"idle", idle},	  {"killed", killed},
	};

	recorder = getppid();
	if (argc == 3 && strcmp(argv[1], "pipeline") == 0)
		pipeline(argv[2]);
	for (size_t i = 0; argc > 1 && i < sizeof(incidents) / sizeof(incidents[0]); i++)
		if (strcmp(argv[1], incidents[i].name) == 0)
			incidents[i].run();
	return 1;
}
