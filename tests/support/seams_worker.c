/*
 * A ptsnap-decode for scenarios with as many seams as possible: other threads begin at every PSB,
 * even in traces that are too small to be worth it, and go as far as they can before the walk asks
 * for their results. Their work therefore does not depend on timing, and they do most of it. Each
 * look at a clock advances time by a millisecond, so that a deadline is reached at the same place
 * every time. Prints on standard error how many steps of the walk came from other threads. Linked
 * with wrapped functions (local.mk); started by `ptsnapctl decode --worker=...'.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "tests/support/flow_look.h"
#include "tests/support/seams.h"

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_flow_new(const struct flow_config *config, struct flow **ret)
{
	struct flow_config with_seams = *config;

	with_seams.thread_bytes = 1;
	return __real_flow_new(&with_seams, ret);
}

void __wrap_flow_free(struct flow *f)
{
	const uint64_t steps = f != NULL ? flow_look_settle(f) : 0;

	if (steps > 0)
		fprintf(stderr, "steps of other threads: %llu\n", (unsigned long long)steps);
	__real_flow_free(f);
}

const struct ahead_piece *__wrap_ahead_take(struct ahead_trace *t, const uint8_t *pos,
					    uint64_t context, const uint8_t **ret_limit)
{
	ahead_settle(t);
	return __real_ahead_take(t, pos, context, ret_limit);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	static long looks;

	(void)clock;
	looks++;
	*ret = (struct timespec){.tv_sec = looks / 1000, .tv_nsec = looks % 1000 * 1000000};
	return 0;
}
