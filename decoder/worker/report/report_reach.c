/*
 * When a CPU's window was: that of its trace, or, where there is none, that of the sideband. Used
 * by the parts of the report that tell who ran.
 */
#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"

/* There is nothing of it but who ran on it, and its records' times are those of the trigger. */
bool report_is_untraced(const struct report *r, size_t cpu)
{
	const struct manifest_cpu *c = &r->m->cpus[cpu];

	if (c->cpu == MANIFEST_ANY || c->state == NULL)
		return false;
	return c->bytes == 0 || (!r->d->replay->clock.known && r->m->clock_is_monotonic);
}

/* The first moment that a switch record of CPU tells of; UINT64_MAX: none does. */
static uint64_t first_switch(const struct report *r, uint32_t cpu)
{
	const struct timeline *timeline = r->d->replay->timeline;
	const size_t n = timeline_n_turns(timeline, cpu);
	size_t i;

	/* Only the first one may begin before what is known. */
	for (i = 0; i < n && i < 2; i++) {
		struct timeline_turn turn;

		timeline_get_turn(timeline, cpu, i, &turn);
		if (turn.since > 0)
			return turn.since;
	}
	return UINT64_MAX;
}

void report_prepare_reach(struct report *r)
{
	size_t i;

	r->sideband_begin = r->m->horizon_ns;
	for (i = 0; i < r->m->n_cpus && r->m->horizon_ns == MANIFEST_ABSENT; i++)
		r->sideband_begin = MIN_OF(r->sideband_begin, first_switch(r, r->m->cpus[i].cpu));
}

static struct report_reach of_sideband(const struct report *r, size_t cpu)
{
	struct report_reach reach = {r->sideband_begin, r->m->cpus[cpu].stop_ns};

	if (reach.end == MANIFEST_ABSENT)
		reach.end = r->m->perf_ns;
	if (reach.end == MANIFEST_ABSENT)
		return (struct report_reach){0};
	if (r->m->last_ns != MANIFEST_ABSENT && r->m->last_ns <= reach.end) {
		uint64_t asked = reach.end - r->m->last_ns;

		reach.begin = reach.begin == MANIFEST_ABSENT ? asked : MAX_OF(reach.begin, asked);
	}
	return reach.begin < reach.end ? reach : (struct report_reach){0};
}

struct report_reach report_reach(const struct report *r, size_t cpu)
{
	const struct report_reach reach = {report_begin_ns(r->d, cpu), report_end_ns(r->d, cpu)};

	if (reach.begin != MANIFEST_ABSENT)
		return reach;
	return report_is_untraced(r, cpu) ? of_sideband(r, cpu) : (struct report_reach){0};
}
