/*
 * What an armed probe costs: each event with the probe, less the same event without. Run it on one
 * CPU (taskset -c 0).
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/probe/probe.h"
#include "proto/base.h"

#define HOUR	   3600000000000ull
#define N	   200000u
#define ROUNDS	   5
#define PER_SECOND 100000.0

__attribute__((noinline, noclone, used)) void target_call(void);
__attribute__((noinline, noclone, used)) void target_call(void)
{
	__asm__ volatile("");
}

static void call(void)
{
	for (unsigned i = 0; i < N; i++)
		target_call();
}

static void enter_kernel(void)
{
	for (unsigned i = 0; i < N; i++)
		syscall(SYS_getppid);
}

static int to_echo[2], from_echo[2];

static void *echo(void *arg)
{
	char byte;

	while (read(to_echo[0], &byte, 1) == 1 && write(from_echo[1], &byte, 1) == 1)
		;
	return arg;
}

/* Two switches a turn, on the one CPU that bench_probe is started on. */
static void switch_threads(void)
{
	char byte = 0;

	for (unsigned i = 0; i < N / 2; i++)
		if (write(to_echo[1], &byte, 1) != 1 || read(from_echo[0], &byte, 1) != 1)
			return;
}

static void send_signals(void)
{
	for (unsigned i = 0; i < N; i++)
		kill(getpid(), SIGCONT);
}

/* Nanoseconds an event: the fastest of some rounds. */
static double measure(void (*run)(void))
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t begin = now_ns(CLOCK_MONOTONIC);

		run();
		best = MIN_OF(best, now_ns(CLOCK_MONOTONIC) - begin);
	}
	return (double)best / N;
}

static void ignore(const struct probe_event *event, void *userdata)
{
	(void)event;
	++*(unsigned *)userdata;
}

static int bench(const char *what, void (*run)(void), struct probe_spec spec)
{
	double plain = measure(run), armed;
	struct probe *p = NULL;
	char *error = NULL;
	unsigned events = 0;

	if (probe_arm(&spec, ignore, &events, &p, &error) < 0) {
		fprintf(stderr, "%s: %s\n", what, error);
		free(error);
		return 1;
	}
	armed = measure(run);
	probe_dispatch(p);
	probe_free(p);
	printf("%-46s %8.0f %8.0f %8.0f %8.2f %6u\n", what, plain, armed, armed - plain,
	       (armed - plain) * PER_SECOND / 1e7, events);
	return 0;
}

/* With an argument: measures calls only, for another tool that watches target_call() meanwhile. */
int main(int argc, char **argv)
{
	static const char self[] = "/proc/self/exe", other[] = "no such name";
	pthread_t thread;
	int failed = 0;

	(void)argv;
	if (argc > 1)
		return printf("%.0f ns a call\n", measure(call)) < 0;
	if (pipe(to_echo) < 0 || pipe(from_echo) < 0)
		return 1;
	pthread_create(&thread, NULL, echo, NULL);
	printf("%-46s %8s %8s %8s %8s %6s\n", "event that does not match", "plain ns", "armed ns",
	       "cost ns", "% at 100k/s", "events");
	failed += bench(
		"syscall: another number", enter_kernel,
		(struct probe_spec){.kind = PROBE_SYSCALL, .limit_ns = HOUR, .syscalls = {1}});
	failed +=
		bench("syscall: another name", enter_kernel,
		      (struct probe_spec){.kind = PROBE_SYSCALL, .limit_ns = HOUR, .comm = other});
	failed += bench("syscall: below the limit", enter_kernel,
			(struct probe_spec){.kind = PROBE_SYSCALL, .limit_ns = HOUR});
	failed += bench("offcpu: another process", switch_threads,
			(struct probe_spec){.kind = PROBE_OFFCPU, .limit_ns = HOUR, .pid = 1});
	failed += bench("offcpu: below the limit", switch_threads,
			(struct probe_spec){.kind = PROBE_OFFCPU, .limit_ns = HOUR});
	failed += bench("wakeup: below the limit", switch_threads,
			(struct probe_spec){.kind = PROBE_WAKEUP, .limit_ns = HOUR});
	failed +=
		bench("signal: harmless", send_signals, (struct probe_spec){.kind = PROBE_SIGNAL});
	failed += bench("tracepoint: filter", send_signals,
			(struct probe_spec){.kind = PROBE_TRACEPOINT,
					    .tracepoint = "signal:signal_generate",
					    .filter = "sig==9"});
	failed += bench(
		"entry: another name", call,
		(struct probe_spec){
			.kind = PROBE_ENTRY, .file = self, .symbol = "target_call", .comm = other});
	failed += bench(
		"entry: another process", call,
		(struct probe_spec){
			.kind = PROBE_ENTRY, .file = self, .symbol = "target_call", .pid = 1});
	failed += bench("latency: below the limit", call,
			(struct probe_spec){.kind = PROBE_LATENCY,
					    .file = self,
					    .symbol = "target_call",
					    .limit_ns = HOUR});
	return failed != 0;
}
