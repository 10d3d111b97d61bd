/*
 * Finds trace units that write nothing although code runs that they are to trace.
 *
 * Three witnesses must agree: the ring stood still from one stop to the next
 * (capture/ring/pulse.h), the kernel's switch records say that threads had the CPU, and the kernel
 * counted time of user code there. Where the kernel is traced, a switch is itself code that is to
 * be traced.
 */
#include "daemon/record/intake.h"

#include <inttypes.h>

#include "daemon/base/log.h"
#include "proto/base.h"

static bool is_silent(const struct intake *in, size_t index)
{
	const struct source_cpu *cpu = &in->source->cpus[index];
	const struct intake_cpu *seen = &in->cpus[index];
	const struct pulse *p = &cpu->pulse;

	if (!p->stands)
		return false;
	/* KVM had switched the unit off; the flag is a gap of its own. */
	if (seen->partial_ns != MANIFEST_ABSENT && seen->partial_ns >= p->since_ns)
		return false;
	if (in->source->trace_user && p->user_ns > 0)
		return seen->silence.turns || seen->busy;
	return in->source->trace_kernel && seen->silence.turns;
}

static void tell(const struct source_cpu *cpu, const struct silence *now)
{
	const struct log_fields none = LOG_NO_FIELDS;

	if (now->is)
		log_event(
			LOG_WARNING, LOG_EVENT_RINGS_DEGRADED, &none,
			"CPU %u: the trace unit writes nothing (pt-silent): threads had the CPU, user "
			"code ran for at least %" PRIu64 " ms, and the ring is as it was",
			cpu->cpu, now->user_ns / 1000000);
	else
		log_event(LOG_INFO, NULL, &none, "CPU %u: the trace unit writes again", cpu->cpu);
}

void silence_judge(struct intake *in)
{
	for (size_t i = 0; i < in->source->n_cpus; i++) {
		const struct source_cpu *cpu = &in->source->cpus[i];
		struct silence *silence = &in->cpus[i].silence;
		bool was = silence->is;

		/* A ring that was stopped for the first time says nothing, and a CPU that is away
		 * is another fault. */
		if (cpu->state != SOURCE_CPU_TRACING || !cpu->pulse.known)
			continue;
		silence->turns = cpu->pulse.stands &&
				 (silence->turns || (in->cpus[i].turn_ns != 0 &&
						     in->cpus[i].turn_ns < cpu->frozen_ns));
		in->cpus[i].turn_ns = 0;
		silence->is = is_silent(in, i);
		if (silence->is) {
			silence->since_ns = cpu->pulse.since_ns;
			silence->until_ns = cpu->frozen_ns;
			silence->user_ns = cpu->pulse.user_ns;
		}
		in->silences += silence->is && !was;
		if (silence->is != was && (silence->is || !cpu->pulse.stands))
			tell(cpu, silence);
	}
}
