/*
 * ptsnap-example: a small server with a fault, for ptsnap-tutorial(7). It is slow once in a while,
 * and its log does not say why.
 *
 *   ptsnap-example [--requests=N] [--slow=MS] [--watchdog=PID]
 *
 * Two threads share a table. "serve" handles requests: parse, look up, render. "keep_house"
 * rebuilds the table now and then, and holds the lock meanwhile, which is the fault. With
 * --watchdog, a request that took longer than 3 ms and ten times the median sends SIGUSR2 to
 * process PID, once.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ENTRIES	     4096u
#define SLOW_MS	     3u
#define HOUSE_EVERY  1000u /* requests */
#define HOUSE_ROUNDS 600u
#define ROWS	     200u

struct entry {
	uint64_t key, value;
};

static struct entry table[ENTRIES];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t house_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t house_due = PTHREAD_COND_INITIALIZER;
static bool due, finished;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static __attribute__((noipa)) uint64_t mix(uint64_t v)
{
	v ^= v >> 33;
	v *= 0xff51afd7ed558ccdull;
	v ^= v >> 29;
	return v;
}

/* The number in "GET /item/NUMBER". */
static __attribute__((noipa)) uint64_t parse(const char *request)
{
	uint64_t number = 0;

	for (const char *c = strrchr(request, '/'); *++c != '\0';)
		number = number * 10 + (uint64_t)(*c - '0');
	return number;
}

static __attribute__((noipa)) uint64_t look_up(uint64_t key)
{
	uint64_t value;

	pthread_mutex_lock(&table_lock);
	value = table[mix(key) % ENTRIES].value;
	pthread_mutex_unlock(&table_lock);
	return value;
}

static __attribute__((noipa)) size_t render(uint64_t value, char *page, size_t size)
{
	size_t used = 0;

	for (unsigned int row = 0; row < ROWS && used + 24 < size; row++)
		used += (size_t)snprintf(page + used, size - used, "<td>%u</td>",
					 (unsigned int)(mix(value + row) % 1000));
	return used;
}

static __attribute__((noipa)) size_t handle(const char *request, char *page, size_t size)
{
	return render(look_up(parse(request)), page, size);
}

/* Rebuilds the table, under the lock that each request needs. */
static __attribute__((noipa)) void rebuild_table(void)
{
	pthread_mutex_lock(&table_lock);
	for (unsigned int round = 0; round < HOUSE_ROUNDS; round++)
		for (unsigned int i = 0; i < ENTRIES; i++) {
			table[i].key = i;
			table[i].value = mix(table[i].value + i);
		}
	pthread_mutex_unlock(&table_lock);
}

static void *keep_house(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&house_lock);
	while (!finished) {
		while (!due && !finished)
			pthread_cond_wait(&house_due, &house_lock);
		due = false;
		pthread_mutex_unlock(&house_lock);
		rebuild_table();
		pthread_mutex_lock(&house_lock);
	}
	pthread_mutex_unlock(&house_lock);
	return NULL;
}

static void call_house(bool end)
{
	pthread_mutex_lock(&house_lock);
	due = true;
	finished = end;
	pthread_cond_signal(&house_due);
	pthread_mutex_unlock(&house_lock);
}

/* Logs a slow request, and wakes the watchdog's process the first time. */
static void complain(uint64_t number, uint64_t took, pid_t *watchdog)
{
	fprintf(stderr, "request %llu took %.1f ms\n", (unsigned long long)number,
		(double)took / 1e6);
	if (*watchdog != 0 && kill(*watchdog, SIGUSR2) < 0)
		fprintf(stderr, "cannot signal process %d: %s\n", (int)*watchdog, strerror(errno));
	*watchdog = 0;
}

static void serve(uint64_t requests, uint64_t slow_ns, pid_t watchdog)
{
	uint64_t bytes = 0;
	char request[64], page[8192];

	for (uint64_t i = 1; i <= requests; i++) {
		uint64_t since = now_ns(), took;

		snprintf(request, sizeof(request), "GET /item/%llu",
			 (unsigned long long)mix(i) % 9973);
		bytes += handle(request, page, sizeof(page));
		took = now_ns() - since;
		if (took > slow_ns)
			complain(i, took, &watchdog);
		if (i % HOUSE_EVERY == 0)
			call_house(false);
	}
	printf("%llu requests, %llu bytes\n", (unsigned long long)requests,
	       (unsigned long long)bytes);
}

/* Reads a number from 1 on. False: TEXT is no such number. */
static bool read_number(const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0' && *text != '-' && *ret > 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"requests", required_argument, NULL, 'r'},
		{"slow", required_argument, NULL, 's'},
		{"watchdog", required_argument, NULL, 'w'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	uint64_t requests = UINT64_MAX, slow = SLOW_MS, watchdog = 0;
	pthread_t house;
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		uint64_t *number = option == 'r' ? &requests : option == 's' ? &slow : &watchdog;
		bool good = option == 'h' || (option != '?' && read_number(optarg, number));

		if (good && option != 'h')
			continue;
		fprintf(good ? stdout : stderr,
			"ptsnap-example [--requests=N] [--slow=MS] [--watchdog=PID]\n\n"
			"A server with a fault, for ptsnap-tutorial(7). Handles N requests, or requests\n"
			"without end. The first request that takes longer than MS milliseconds (3) sends\n"
			"SIGUSR2 to process PID.\n");
		return good ? 0 : 2;
	}
	if (pthread_create(&house, NULL, keep_house, NULL) != 0) {
		fprintf(stderr, "cannot start a thread\n");
		return 1;
	}
	serve(requests, slow * 1000000, (pid_t)watchdog);
	call_house(true);
	pthread_join(house, NULL);
	return 0;
}
