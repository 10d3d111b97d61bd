/*
 * Produces records of a busy host. One process life after another is planned record by record, and
 * then written. Used by bench_timeline and by the unit tests of the timeline.
 */
#include "tests/bench/storm.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "proto/base.h"

#define FIRST_DAEMON 100u
#define FIRST_PID    1000u
#define STEP_NS	     4000u
#define LOST_EVERY   65536u /* lives */
#define LIBRARIES    40u
#define PROGRAMS     800u

void storm_init(struct storm *s, uint64_t seed)
{
	*s = (struct storm){.time = 1000000000, .random = seed, .pid = FIRST_PID};
	for (uint32_t i = 0; i < STORM_DAEMONS; i++)
		s->daemons[i] = FIRST_DAEMON + i;
}

/* xorshift64* */
static uint32_t dice(struct storm *s, uint32_t sides)
{
	s->random ^= s->random >> 12;
	s->random ^= s->random << 25;
	s->random ^= s->random >> 27;
	return (uint32_t)((s->random * 0x2545f4914f6cdd1dull) >> 33) % sides;
}

static struct perfrecord *plan(struct storm *s, uint32_t type, uint32_t pid, uint32_t tid)
{
	struct perfrecord *r = &s->planned[s->n_planned++];

	assert(s->n_planned <= STORM_PLANNED);
	*r = (struct perfrecord){.type = type, .pid = pid, .tid = tid};
	return r;
}

static void plan_task(struct storm *s, uint32_t type, uint32_t pid, uint32_t tid, uint32_t parent)
{
	struct perfrecord *r = plan(s, type, pid, tid);

	r->u.task = (__typeof__(r->u.task)){
		.pid = pid, .ppid = parent, .tid = tid, .ptid = parent, .time = s->time};
}

static void plan_switches(struct storm *s, uint32_t pid, uint32_t tid, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct perfrecord *r = plan(s, PERF_RECORD_SWITCH_CPU_WIDE, pid, tid);
		uint32_t other = s->daemons[dice(s, STORM_DAEMONS)];

		r->misc = i % 2 ? PERF_RECORD_MISC_SWITCH_OUT : 0;
		r->u.context_switch = (__typeof__(r->u.context_switch)){other, other};
	}
}

static void plan_mapping(struct storm *s, uint32_t pid, unsigned place, uint64_t ino,
			 const char *format)
{
	struct perfrecord *r = plan(s, PERF_RECORD_MMAP2, pid, pid);
	char *path = s->paths[s->n_planned - 1];

	snprintf(path, sizeof(s->paths[0]), "%s%" PRIu64, format, ino);
	r->misc = PERF_RECORD_MISC_USER;
	r->u.mmap2 = (__typeof__(r->u.mmap2)){.pid = pid,
					      .tid = pid,
					      .addr = 0x7f0000000000 + place * 0x400000ull,
					      .len = 0x1000ull * (1 + ino % 64),
					      .pgoff = 0x1000,
					      .maj = 8,
					      .min = 1,
					      .ino = ino,
					      .prot = PROT_READ | PROT_EXEC,
					      .flags = MAP_PRIVATE,
					      .filename = path};
}

static void plan_program(struct storm *s, uint32_t pid)
{
	struct perfrecord *r = plan(s, PERF_RECORD_COMM, pid, pid);
	unsigned libraries = 3 + dice(s, 5);

	r->misc = PERF_RECORD_MISC_COMM_EXEC;
	r->u.comm = (__typeof__(r->u.comm)){.pid = pid, .tid = pid, .comm = "cc1plus"};
	/* One in eight programs was built just now and is a new file. */
	if (dice(s, 8) == 0)
		plan_mapping(s, pid, 0, 1000000 + s->n_lives, "/build/tests/program-");
	else
		plan_mapping(s, pid, 0, 1000 + dice(s, PROGRAMS), "/usr/bin/program-");
	for (unsigned i = 0; i < libraries; i++)
		plan_mapping(s, pid, 1 + i, 1 + dice(s, LIBRARIES), "/usr/lib/lib.so.");
}

static void plan_thread(struct storm *s, uint32_t pid, uint32_t tid)
{
	plan_task(s, PERF_RECORD_FORK, pid, tid, pid);
	plan_switches(s, pid, tid, 4);
	plan_task(s, PERF_RECORD_EXIT, pid, tid, pid);
}

static uint32_t next_pid(struct storm *s)
{
	do
		s->pid = s->pid + 1 < STORM_PIDS ? s->pid + 1 : FIRST_PID;
	while (s->stays[s->pid]);
	return s->pid;
}

static void plan_life(struct storm *s)
{
	uint32_t *daemon = &s->daemons[dice(s, STORM_DAEMONS)];
	uint32_t pid = next_pid(s), parent = s->daemons[dice(s, STORM_DAEMONS)];
	bool stays = dice(s, 200) == 0;

	plan_task(s, PERF_RECORD_FORK, pid, pid, parent);
	plan_switches(s, pid, pid, 2 + dice(s, 4));
	plan_program(s, pid);
	plan_switches(s, pid, pid, dice(s, 12));
	if (dice(s, 10) == 0)
		plan_thread(s, pid, next_pid(s));
	if (!stays) {
		plan_task(s, PERF_RECORD_EXIT, pid, pid, parent);
		plan_switches(s, pid, pid, 1);
		return;
	}
	/* The new process replaces an older one. */
	plan_task(s, PERF_RECORD_EXIT, *daemon, *daemon, 1);
	s->stays[*daemon] = false;
	s->stays[pid] = true;
	*daemon = pid;
}

/* Processes that exist from the beginning. */
static void plan_daemon(struct storm *s, uint32_t pid)
{
	plan_task(s, PERF_RECORD_FORK, pid, pid, 1);
	plan_program(s, pid);
}

static void plan_next(struct storm *s)
{
	s->at = s->n_planned = 0;
	if (s->n_daemons < STORM_DAEMONS) {
		plan_daemon(s, s->daemons[s->n_daemons++]);
		return;
	}
	if (++s->n_lives % LOST_EVERY == 0)
		plan(s, PERF_RECORD_LOST, UINT32_MAX, UINT32_MAX)->u.lost.lost = 10;
	plan_life(s);
}

uint16_t storm_next(struct storm *s, uint8_t *to)
{
	struct perfrecord *r;
	size_t size;
	int result;

	if (s->at == s->n_planned)
		plan_next(s);
	r = &s->planned[s->at++];
	/* The path of a mapping record follows the fixed part. */
	s->time += 1 + dice(s, STEP_NS);
	r->time = s->time;
	r->cpu = (uint32_t)(s->n_lives % STORM_CPUS);
	result = perfrecord_compose(r, to, STORM_MAX_SIZE, &size);
	assert(result == 0);
	(void)result;
	s->n_records++;
	return (uint16_t)size;
}
