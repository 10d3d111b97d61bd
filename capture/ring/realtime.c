/*
 * Sets and takes back the real-time priority of the calling thread.
 */
#include "capture/ring/realtime.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#define PRIORITY 1
#define NICE	 (-10)

void realtime_enter(void)
{
	const struct sched_param p = {.sched_priority = PRIORITY};

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &p) < 0)
		(void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
}

/* Without SCHED_RESET_ON_FORK, which only CAP_SYS_NICE could take back (sched(7)). */
void realtime_begin(struct realtime *ret)
{
	const struct sched_param p = {.sched_priority = PRIORITY};

	*ret = (struct realtime){.policy = sched_getscheduler(0),
				 .nice = getpriority(PRIO_PROCESS, (id_t)gettid())};
	/* A real-time thread has what it needs already. */
	if (ret->policy != SCHED_OTHER && ret->policy != SCHED_BATCH)
		return;
	ret->changed = sched_setscheduler(0, SCHED_FIFO, &p) == 0;
	if (!ret->changed && ret->nice > NICE)
		(void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
}

void realtime_end(const struct realtime *r)
{
	const struct sched_param none = {0};

	if (r->changed)
		(void)sched_setscheduler(0, r->policy, &none);
	else if (r->policy == SCHED_OTHER || r->policy == SCHED_BATCH)
		(void)setpriority(PRIO_PROCESS, (id_t)gettid(), r->nice);
}
