/*
 * Hands Intel PT back and takes it again, in the loop's thread and never while a job has the events
 * of the source. Time that the host sleeps counts.
 */
#include "daemon/job/lease.h"

#include <string.h>
#include <time.h>

#include "daemon/base/log.h"
#include "proto/base.h"

/* About 36,000 years. A longer time is for ever, so that no sum overflows. */
#define LONGEST_USEC (1ull << 60)

void lease_init(struct lease *l, sd_event *event, struct source *source, struct jobs *jobs,
		const struct lease_handler *handler)
{
	*l = (struct lease){
		.event = event,
		.source = source,
		.jobs = jobs,
		.handler = *handler,
		.until_usec = LEASE_FOR_EVER,
	};
}

void lease_done(struct lease *l)
{
	sd_event_source_disable_unref(l->timer);
	l->timer = NULL;
}

static int lease_on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct lease *l = userdata;
	int r;

	(void)source;
	(void)usec;
	r = lease_ask(l, false, LEASE_FOR_EVER, NULL);
	if (r < 0)
		log_warning("Intel PT cannot be taken again: %s", strerror(-r));
	return 0;
}

static int lease_apply(struct lease *l, bool away)
{
	bool news = away != l->away;
	int r = l->source->ops->yield(l->source, away);

	if (r < 0)
		return r;
	l->away = away;
	jobs_fit_area(l->jobs);
	l->timer = sd_event_source_disable_unref(l->timer);
	l->until_usec = LEASE_FOR_EVER;
	if (away && l->for_usec <= LONGEST_USEC) {
		l->until_usec = now_usec(CLOCK_REALTIME) + l->for_usec;
		r = sd_event_add_time_relative(l->event, &l->timer, CLOCK_BOOTTIME, l->for_usec,
					       1000, lease_on_timer, l);
	}
	if (r < 0 && away) { /* without a timer Intel PT would never be taken again */
		l->source->ops->yield(l->source, false);
		l->away = false;
		return r;
	}
	if (away)
		log_info("Intel PT is handed back at the request of uid %ju, pid %ju",
			 (uintmax_t)l->uid, (uintmax_t)l->pid);
	else if (news)
		log_info("Intel PT is taken again");
	if (news)
		l->handler.on_changed(l->handler.userdata);
	return 0;
}

int lease_ask(struct lease *l, bool away, uint64_t for_usec, const struct ucred *who)
{
	if (!l->source->ops->yield)
		return -EOPNOTSUPP;
	l->for_usec = for_usec;
	if (who) {
		l->uid = who->uid;
		l->pid = (uint64_t)who->pid;
	}
	l->wanted = away;
	l->waits = jobs_capturing(l->jobs);
	return l->waits ? LEASE_LATER : lease_apply(l, away);
}

void lease_on_captured(struct lease *l)
{
	if (!l->waits || jobs_capturing(l->jobs))
		return;
	l->waits = false;
	l->handler.on_done(l->handler.userdata, lease_apply(l, l->wanted));
}
