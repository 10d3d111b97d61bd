/*
 * Intel PT lent to somebody else: handed back for a time, or until it is asked for again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <systemd/sd-event.h>

#include "capture/ring/source.h"
#include "daemon/job/jobs.h"

#define LEASE_FOR_EVER UINT64_MAX

/* Called in the loop when what had to wait has been done: once, however often it was asked for in
 * the meantime; R as of lease_ask. */
struct lease_handler {
	void *userdata;
	void (*on_done)(void *userdata, int r);
	void (*on_changed)(void *userdata); /* handed back, or taken again: CPUs changed state */
};

struct lease {
	sd_event *event;       /* borrowed, all three */
	struct source *source; /* its ops->yield may be NULL */
	struct jobs *jobs;
	struct lease_handler handler;
	sd_event_source *timer;
	bool away;	     /* it is handed back now */
	bool waits, wanted;  /* a job captures: AWAY will be WANTED when it has done so */
	uint64_t for_usec;   /* of the last lease_ask */
	uint64_t until_usec; /* CLOCK_REALTIME; LEASE_FOR_EVER */
	uint64_t uid, pid;   /* who asked for it */
};

void lease_init(struct lease *l, sd_event *event, struct source *source, struct jobs *jobs,
		const struct lease_handler *handler);
void lease_done(struct lease *l);
/* Hands Intel PT back (AWAY) for FOR_USEC from now (LEASE_FOR_EVER: until asked for), in place of
 * an earlier wish; or takes it again. 0: done; LEASE_LATER: a job has the events, it is done as
 * soon as that has copied; -EOPNOTSUPP: this source has nothing to hand back; -ENODEV, -errno of
 * the source. */
#define LEASE_LATER 1
int lease_ask(struct lease *l, bool away, uint64_t for_usec, const struct ucred *who);
/* A job has copied: what had to wait for it is done now. */
void lease_on_captured(struct lease *l);
