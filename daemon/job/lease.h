/*
 * Hands Intel PT back for a time, or until it is asked for again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <systemd/sd-event.h>

#include "capture/ring/source.h"
#include "daemon/job/jobs.h"

#define LEASE_FOR_EVER UINT64_MAX

/* Called in the loop. */
struct lease_handler {
	void *userdata;
	/* Called when the calls that lease_ask() had to put off (LEASE_LATER) are done: once,
	 * however many they were; R as of lease_ask(). */
	void (*on_done)(void *userdata, int r);
	void (*on_changed)(void *userdata); /* handed back, or taken again: CPUs changed state */
};

struct lease {
	sd_event *event;       /* borrowed, all three */
	struct source *source; /* its ops->yield may be NULL */
	struct jobs *jobs;
	struct lease_handler handler;
	sd_event_source *timer;
	bool away;	     /* Intel PT is handed back now */
	bool waits, wanted;  /* a job captures; afterwards away becomes wanted */
	uint64_t for_usec;   /* of the last lease_ask */
	uint64_t until_usec; /* CLOCK_REALTIME; LEASE_FOR_EVER */
	uint64_t uid, pid;   /* of the process that asked */
};

void lease_init(struct lease *l, sd_event *event, struct source *source, struct jobs *jobs,
		const struct lease_handler *handler);
void lease_done(struct lease *l);
/* Hands Intel PT back (AWAY) for FOR_USEC from now (LEASE_FOR_EVER: until asked for), or takes it
 * again. Replaces an earlier call that waits. 0: done; LEASE_LATER: a job has the events, and the
 * call is done when the job has copied; -EOPNOTSUPP: this source has nothing to hand back; -ENODEV,
 * -errno of the source. */
#define LEASE_LATER 1
int lease_ask(struct lease *l, bool away, uint64_t for_usec, const struct ucred *who);
/* Does what lease_ask() put off. Call when a job has copied. */
void lease_on_captured(struct lease *l);
