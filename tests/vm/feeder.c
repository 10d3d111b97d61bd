/*
 * Plays the processor in the tests' VM: feeds the fake PMU, and checks what the recorder stored.
 * Run by the guest's scripts; static, so that it needs no libraries there.
 *
 * feeder numbers CPU FROM N
 *      feeds N bytes of the CPU's numbered stream, from position FROM on
 * feeder run CPU FROM
 *      feeds the stream until SIGTERM; then prints the position where it ended
 * feeder check BUNDLE CPU BASE
 *      checks that the CPU's trace is the stream, which began at BASE; prints the end's position
 * feeder aux BUNDLE
 *      prints AUX records, one line "CPU OFFSET SIZE FLAGS" each
 * feeder walk CPU SEED ROUNDS PROGRAM EXPECTED
 *      runs PROGRAM (ptsnap-walk) alone on CPU, as user $WALK_UID, and feeds its packets;
 *      writes its branches to EXPECTED. Prints its pid and the number of branches. The
 *      process continues to run until it is killed.
 * feeder accompany CPU PID SEED ROUNDS PROGRAM
 *      the same for process PID, which execs PROGRAM
 * feeder disturb CPU
 *      does there what other programs may do with perf events
 * feeder facts CPU
 *      tests how the kernel treats events that are enabled before they have a ring, on a CPU
 *      that no other program traces
 * feeder hold CPU
 *      opens intel_pt as another user of Intel PT would, prints "held" and waits for SIGTERM
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "tests/vm/bundle_member.h"
#include "tests/vm/number_in_file.h"
#include "tests/vm/numbers.h"
#include "tests/vm/stranger.h"
#include "tests/vm/walk_packets.h"

#define PMU	   "/sys/bus/event_source/devices/intel_pt/"
#define FAKE	   "/sys/kernel/debug/fake_pt/"
#define CHUNK	   4096
#define MTC_BIT	   9 /* bits of attr.config: format/mtc, format/mtc_period */
#define MTC_PERIOD 14

static int fail(const char *what)
{
	fprintf(stderr, "feeder: %s: %s\n", what, strerror(errno));
	return 1;
}

static int open_feed(unsigned cpu)
{
	char path[128];

	snprintf(path, sizeof(path), FAKE "cpu%u/feed", cpu);
	return open(path, O_WRONLY | O_CLOEXEC);
}

static int feed_numbers(unsigned cpu, uint64_t from, uint64_t n)
{
	uint8_t bytes[CHUNK];
	int fd = open_feed(cpu);

	if (fd < 0)
		return fail("feed");
	while (n > 0) {
		size_t k = n < CHUNK ? (size_t)n : CHUNK;
		ssize_t taken;

		numbers_fill(cpu, from, bytes, k);
		taken = write(fd, bytes, k);
		if (taken < 0)
			return fail("not tracing");
		from += (uint64_t)taken;
		n -= (uint64_t)taken;
	}
	return 0;
}

static volatile sig_atomic_t ended;

static void on_term(int signal)
{
	(void)signal;
	ended = 1;
}

/* Continues at the same position after tracing was off for a while. */
static int run_numbers(unsigned cpu, uint64_t from)
{
	uint8_t bytes[CHUNK];
	int fd = open_feed(cpu);

	signal(SIGTERM, on_term);
	if (fd < 0)
		return fail("feed");
	for (unsigned i = 1; !ended; i = i * 5 + 3) {
		size_t k = 1 + i % CHUNK;
		ssize_t taken;

		numbers_fill(cpu, from, bytes, k);
		taken = write(fd, bytes, k);
		if (taken > 0)
			from += (uint64_t)taken;
		usleep(500);
	}
	printf("%" PRIu64 "\n", from);
	return 0;
}

static int check_numbers(const char *path, unsigned cpu, uint64_t base)
{
	const uint8_t *bundle, *trace;
	size_t bundle_size, size, wrong;
	char name[32];
	uint64_t end;
	int r = bundle_load(path, &bundle, &bundle_size);

	snprintf(name, sizeof(name), "cpu%u.pt", cpu);
	if (r == 0)
		r = bundle_member(bundle, bundle_size, name, &trace, &size);
	errno = -r;
	if (r < 0)
		return fail(name);
	if (numbers_check(cpu, base, trace, size, &end, &wrong) == 0) {
		printf("%" PRIu64 "\n", end);
		return 0;
	}
	if (wrong == size)
		printf("no end, %zu bytes\n", size);
	else
		printf("byte %zu of %zu is wrong (end %" PRIu64 ", base %" PRIu64 ")\n", wrong,
		       size, end, base);
	return 1;
}

/* Body: offset, size, flags; then TID, TIME, CPU, IDENTIFIER; eight bytes each. */
static int print_aux(const char *path)
{
	const uint8_t *bundle, *records;
	size_t bundle_size, size;
	int r = bundle_load(path, &bundle, &bundle_size);

	if (r == 0)
		r = bundle_member(bundle, bundle_size, "sideband", &records, &size);
	errno = -r;
	if (r < 0)
		return fail("sideband");
	for (size_t at = 0; at + sizeof(struct perf_event_header) <= size;) {
		struct perf_event_header h;
		uint64_t body[7];

		memcpy(&h, records + at, sizeof(h));
		if (h.type == PERF_RECORD_AUX && h.size == sizeof(h) + sizeof(body)) {
			memcpy(body, records + at + sizeof(h), sizeof(body));
			printf("%u %" PRIu64 " %" PRIu64 " %#" PRIx64 "\n", (unsigned)body[5],
			       body[0], body[1], body[2]);
		}
		if (h.size == 0)
			break;
		at += h.size;
	}
	return 0;
}

static int pin(pid_t pid, unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(pid, sizeof(set), &set);
}

/* Switches to user $WALK_UID if set. */
static int become_user(void)
{
	const char *uid = getenv("WALK_UID");

	return uid == NULL ? 0 : setuid((uid_t)strtoul(uid, NULL, 10));
}

static pid_t start_walk(unsigned cpu, const char *program, const char *seed)
{
	struct sched_param priority = {.sched_priority = 99};
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	/* The reader of our output must not wait for the child. */
	close(STDOUT_FILENO);
	if (pin(0, cpu) == 0 && sched_setscheduler(0, SCHED_FIFO, &priority) == 0 &&
	    become_user() == 0)
		execl(program, program, seed, (char *)NULL);
	_exit(127);
}

/* Whether PID has exec'ed the program; its name comes with exec. */
static bool runs_program(pid_t pid, const char *program)
{
	char path[64], text[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, text, sizeof(text) - 1);
	if (n < 0)
		return false;
	text[n] = '\0';
	return strcmp(text, program) == 0;
}

static void configure(struct walk_packets_config *c, unsigned cpu)
{
	char path[128];
	uint64_t config;

	snprintf(path, sizeof(path), FAKE "cpu%u/state", cpu);
	config = number_in_file(path, "rtit_ctl=");
	c->mtc_period = config >> MTC_BIT & 1 ? config >> MTC_PERIOD & 15 : UINT32_MAX;
	c->art_num = (uint32_t)number_in_file(PMU "tsc_art_ratio", "");
	c->art_den = (uint32_t)number_in_file(PMU "tsc_art_ratio", ":");
	c->feed = open_feed(cpu);
}

/* Feeds packets while PID, which becomes PROGRAM, has CPU to itself. */
static int feed_for(pid_t pid, unsigned cpu, const char *program, struct walk_packets_config *c,
		    uint64_t *ret_branches)
{
	struct sched_param none = {0};
	int r;

	configure(c, cpu);
	if (c->feed < 0 || c->expected == NULL || c->art_num == 0 || c->art_den == 0)
		return -EINVAL;
	for (int i = 0; i < 1000 && !runs_program(pid, program); i++)
		usleep(10000);
	/* A recorder must have seen the process's owner before that user may see anything of the
	 * process. */
	usleep(getenv("WALK_UID") != NULL ? 1000000 : 50000);
	r = walk_packets_feed(c, ret_branches);
	fclose(c->expected);
	usleep(20000);
	/* Other processes may use the CPU again. */
	sched_setscheduler(pid, SCHED_OTHER, &none);
	return r;
}

static int feed_walk(unsigned cpu, char **arg)
{
	struct walk_packets_config c = {.seed = strtoull(arg[0], NULL, 0),
					.rounds = (uint32_t)strtoul(arg[1], NULL, 0),
					.expected = fopen(arg[3], "w")};
	uint64_t branches;
	pid_t pid;
	int r;

	pin(0, cpu == 0 ? 1 : 0);
	pid = start_walk(cpu, arg[2], arg[0]);
	r = feed_for(pid, cpu, arg[2], &c, &branches);
	if (r == 0)
		printf("%d %" PRIu64 "\n", (int)pid, branches);
	errno = -r;
	return r < 0 ? fail("walk") : 0;
}

/* The same for a process that another program starts. */
static int feed_other(unsigned cpu, char **arg)
{
	struct sched_param priority = {.sched_priority = 50};
	struct walk_packets_config c = {.seed = strtoull(arg[1], NULL, 0),
					.rounds = (uint32_t)strtoul(arg[2], NULL, 0),
					.expected = fopen("/dev/null", "w")};
	pid_t pid = (pid_t)strtol(arg[0], NULL, 10);
	uint64_t branches;
	int r;

	pin(0, cpu == 0 ? 1 : 0);
	if (sched_setscheduler(pid, SCHED_FIFO, &priority) < 0)
		return fail("walk");
	r = feed_for(pid, cpu, arg[3], &c, &branches);
	errno = -r;
	return r < 0 ? fail("walk") : 0;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 2 ? argv[1] : "";
	unsigned cpu = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 0;

	if (strcmp(verb, "numbers") == 0 && argc == 5)
		return feed_numbers(cpu, strtoull(argv[3], NULL, 0), strtoull(argv[4], NULL, 0));
	if (strcmp(verb, "run") == 0 && argc == 4)
		return run_numbers(cpu, strtoull(argv[3], NULL, 0));
	if (strcmp(verb, "check") == 0 && argc == 5)
		return check_numbers(argv[2], (unsigned)strtoul(argv[3], NULL, 0),
				     strtoull(argv[4], NULL, 0));
	if (strcmp(verb, "aux") == 0 && argc == 3)
		return print_aux(argv[2]);
	if (strcmp(verb, "walk") == 0 && argc == 7)
		return feed_walk(cpu, argv + 3);
	if (strcmp(verb, "accompany") == 0 && argc == 7)
		return feed_other(cpu, argv + 3);
	if (strcmp(verb, "hold") == 0 && argc == 3)
		return stranger_hold(cpu);
	if (strcmp(verb, "disturb") == 0 && argc == 3)
		return stranger_disturb(cpu);
	if (strcmp(verb, "facts") == 0 && argc == 3)
		return stranger_facts(cpu);
	fputs("feeder: see the head of tests/vm/feeder.c\n", stderr);
	return 2;
}
