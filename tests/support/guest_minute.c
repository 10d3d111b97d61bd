/*
 * A server's ordinary minute, for the emulated machine: requests of different sizes, in an order
 * that no two runs share. Then the program triggers a snapshot: it sends SIGUSR2 to the recorder,
 * its parent. guest_minute [slow|detour]
 *
 * slow: each lookup compares five times as much. detour: one request in four takes a way that an
 * ordinary minute does not have, and the snapshot is triggered on that way.
 */
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define REQUESTS 4000u

static volatile uint64_t sink;
static volatile unsigned int comparisons = 40;
static uint64_t state;

/* xorshift64 */
static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static NOINLINE void parse(unsigned int size)
{
	for (unsigned int i = 0; i < size; i++)
		sink = sink * 31 + i;
}

static NOINLINE void look_up(unsigned int size)
{
	for (unsigned int i = 0; i < comparisons + size; i++)
		sink = sink * 33 + i;
}

static NOINLINE void render(unsigned int size)
{
	for (unsigned int i = 0; i < 3 * size; i++)
		sink = sink * 35 + i;
}

static NOINLINE void read_archive(unsigned int size, int last)
{
	for (unsigned int i = 0; i < 10 * size; i++)
		sink = sink * 37 + i;
	if (last)
		kill(getppid(), SIGUSR2);
	while (last)
		pause();
	sink++;
}

static NOINLINE void handle(int detour, int last)
{
	const unsigned int size = 10 + (unsigned int)(next() % 20);

	parse(size);
	look_up(size);
	if (detour && (last || next() % 4 == 0))
		read_archive(size, last);
	render(size);
	sink++;
}

int main(int argc, char **argv)
{
	const int detour = argc > 1 && strcmp(argv[1], "detour") == 0;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	state = (uint64_t)now.tv_nsec * 2654435761u + (uint64_t)getpid() + 1;
	if (argc > 1 && strcmp(argv[1], "slow") == 0)
		comparisons *= 5;
	for (unsigned int i = 0; i < REQUESTS; i++)
		handle(detour, i == REQUESTS - 1);
	kill(getppid(), SIGUSR2);
	for (;;)
		pause();
}
