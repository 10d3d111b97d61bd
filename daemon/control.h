/*
 * The interface io.ptsnap.recorder: its methods, and who may call them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "daemon/check_job.h"
#include "daemon/config.h"
#include "daemon/job.h"
#include "daemon/lease.h"
#include "daemon/peer.h"
#include "daemon/status.h"
#include "daemon/store.h"
#include "daemon/trigger.h"

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
	struct status_from status;
	bool have_group; /* members of group are trusted: the socket's file lets them in */
	gid_t group;
	struct control_watch watches[CONTROL_MAX_WATCHES];
	struct control_waits lease_waits, check_waits;
	struct check_job *check; /* owned; NULL: no check is under way */
};

void control_done(struct control *c);

/* For struct peer_handler (USERDATA is the struct control). */
void control_on_call(void *userdata, struct peer *peer, const struct varlink_call *call);
void control_on_gone(void *userdata, struct peer *peer);
/* News of a snapshot, passed on to those who wait for it. */
void control_on_progress(struct control *c, const char *id, enum job_phase phase, uint32_t percent);
void control_on_ended(struct control *c, const char *id);
/* What Yield and Resume had to wait for has been done, or not (R as of lease_ask). */
void control_on_lease(struct control *c, int r);
