/*
 * Whether the trace unit writes: traces a moment of this thread's own code on one CPU, and looks
 * whether the ring has moved. A unit that a hypervisor or firmware holds can take every setting and
 * write nothing.
 */
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "capture/perf/perf_event.h"
#include "daemon/check/check_private.h"
#include "proto/perf/perfrecord.h"

#define DATA_BYTES 4096u
#define ROUNDS	   1000000u

/* Runs user code with branches and, now and then, the kernel's. */
static void run_code(void)
{
	volatile uint32_t state = 1;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		state = state * 1664525u + 1013904223u;
		if (state & 0x10000)
			state ^= i;
		if (i % 10000 == 0)
			(void)getppid();
	}
}

/* Runs code on CPU only. False: this thread may not run there. */
static bool run_on(uint32_t cpu)
{
	cpu_set_t before, one;
	bool ran;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before) < 0 ||
	    sched_setaffinity(0, sizeof(one), &one) < 0)
		return false;
	run_code();
	ran = sched_getcpu() == (int)cpu;
	sched_setaffinity(0, sizeof(before), &before);
	return ran;
}

static bool has_bytes(const struct ring *ring)
{
	if (__atomic_load_n(&ring->page->aux_head, __ATOMIC_ACQUIRE) != 0)
		return true;
	for (uint64_t i = 0; i < ring->aux_size; i++)
		if (ring->aux[i] != 0)
			return true;
	return false;
}

void check_unit(struct check *c, const struct perf_event_attr *attr)
{
	CLEANUP_FREE uint8_t *scratch = malloc(PERFRECORD_MAX_SIZE);
	uint64_t aux = PERF_EVENT_LEAST_AUX;
	uint32_t cpu = check_first_cpu(c);
	struct perf_event e;
	bool ran = false, wrote;
	int r;

	/* Whether rings can be had is the business of check_memory(). */
	if (!scratch || perf_event_start(&e, attr, cpu, DATA_BYTES, &aux, scratch) < 0)
		return;
	r = perf_event_restart(&e);
	if (r == 0)
		ran = run_on(cpu);
	perf_event_disable(&e);
	wrote = has_bytes(&e.ring);
	perf_event_stop(&e);
	if (r < 0)
		check_say(c, FINDING_WARNING, "silent", "dmesg | grep -w PT",
			  "the kernel takes the intel_pt event of CPU %u, and does not run it: %s",
			  cpu, strerror(-r));
	else if (ran && !wrote)
		check_say(
			c, FINDING_WARNING, "silent",
			"dmesg | grep -w PT; a hypervisor or the firmware may hold the trace unit",
			"the trace unit of CPU %u wrote nothing while code ran there (pt-silent)",
			cpu);
	else if (ran)
		check_say(c, FINDING_OK, "silent", "",
			  "the trace unit of CPU %u writes while code runs there", cpu);
}
