/*
 * Compares a CPU's ring at two stops.
 */
#include "capture/ring/pulse.h"

#include <string.h>

#include "proto/bundle/manifest.h"

void pulse_stop(struct pulse *p, const struct ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->page->aux_head, __ATOMIC_ACQUIRE);
	uint8_t newest[PULSE_BYTES];

	ring_copy_aux(ring, sizeof(newest), newest);
	/* A head is an offset: it is the same when exactly a whole ring was written. */
	p->stands = p->known && p->head == head && memcmp(p->newest, newest, sizeof(newest)) == 0;
	p->known = true;
	p->head = head;
	memcpy(p->newest, newest, sizeof(newest));
}

void pulse_restart(struct pulse *p, const struct pulse_times *t, uint64_t step_ns)
{
	const bool timed = t->read_ns != MANIFEST_ABSENT && t->stop_ns != MANIFEST_ABSENT;

	if (!p->stands) {
		p->since_ns = t->restart_ns;
		p->user_ns = 0;
	} else if (p->ran_ns != UINT64_MAX && t->ran_ns != UINT64_MAX && timed &&
		   t->ran_ns > p->ran_ns) {
		uint64_t ran = t->ran_ns - p->ran_ns;
		/* The CPU may have run for this long since the stop and in one tick of the count.
		 */
		uint64_t unsure = t->read_ns - t->stop_ns + step_ns;

		p->user_ns += ran > unsure ? ran - unsure : 0;
	}
	p->ran_ns = t->ran_ns;
}
