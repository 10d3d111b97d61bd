/*
 * The interface io.ptsnap.recorder: its methods, and who may call them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "daemon/check/check.h"
#include "daemon/check/status.h"
#include "daemon/config/config.h"
#include "daemon/control/access.h"
#include "daemon/control/peer.h"
#include "daemon/job/job.h"
#include "daemon/job/lease.h"
#include "daemon/job/remake.h"
#include "daemon/store/store.h"
#include "daemon/trigger/trigger.h"

#define CONTROL_MAX_WATCHES 64

/* A Snapshot call that waits for its end. */
struct control_watch {
	struct peer *peer; /* borrowed until control_on_gone; NULL: free */
	char id[ENTRY_ID_SIZE];
};

/* Calls that wait for one thing that happens for all of them. */
struct control_waits {
	struct peer *peers[CONTROL_MAX_WATCHES]; /* borrowed until control_on_gone; NULL: free */
};

struct control {
	sd_event *event; /* borrowed, all */
	const struct config *config;
	struct trigger *trigger;
	struct store *store;
	struct lease *lease;
	/* Reads the configuration again, what is to be said of it into WARNINGS. 0 or -errno with
	 * WHY. */
	int (*reload)(void *userdata, struct json_object *warnings, char *why, size_t why_size);
	void *reload_userdata;
	struct status_from status;
	const struct names *names; /* NULL: of groups only numbers are known */
	struct access access;
	struct control_watch watches[CONTROL_MAX_WATCHES];
	struct control_waits lease_waits, check_waits, monitor_waits;
	uint64_t monitor_missed[CONTROL_MAX_WATCHES]; /* lines, by place in monitor_waits */
	struct control_waits remake_waits;	      /* those of a peer are in ids */
	char remake_ids[CONTROL_MAX_WATCHES][ENTRY_ID_SIZE];
	struct remake *remake;	 /* owned; NULL: nothing was made again yet */
	struct check_job *check; /* owned; NULL: no check is under way */
};

void control_done(struct control *c);
/* CONFIG from now on, borrowed until another one is told and control_is_idle. */
void control_use(struct control *c, const struct config *config);
/* Does no thread look at a configuration? */
bool control_is_idle(const struct control *c);

/* Those who monitor hear of what the log says from now on; NULL: they do no longer. */
void control_listen(struct control *c);

/* For struct peer_handler (USERDATA is the struct control). */
void control_on_call(void *userdata, struct peer *peer, const struct varlink_call *call);
/* So, of the socket for everybody. */
void control_on_status_call(void *userdata, struct peer *peer, const struct varlink_call *call);
void control_on_gone(void *userdata, struct peer *peer);
/* News of a snapshot, passed on to those who wait for it. */
void control_on_progress(struct control *c, const char *id, enum job_phase phase, uint32_t percent);
void control_on_ended(struct control *c, const char *id);
/* What Yield and Resume had to wait for has been done, or not (R as of lease_ask). */
void control_on_lease(struct control *c, int r);
