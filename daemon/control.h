/*
 * The interface io.ptsnap.recorder: its methods, and who may call them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/job.h"
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

struct control {
	struct trigger *trigger; /* borrowed, all */
	struct store *store;
	struct status_from status;
	bool have_group; /* members of group are trusted: the socket's file lets them in */
	gid_t group;
	struct control_watch watches[CONTROL_MAX_WATCHES];
};

/* For struct peer_handler (USERDATA is the struct control). */
void control_on_call(void *userdata, struct peer *peer, const struct varlink_call *call);
void control_on_gone(void *userdata, struct peer *peer);
/* News of a snapshot, passed on to those who wait for it. */
void control_on_progress(struct control *c, const char *id, enum job_phase phase, uint32_t percent);
void control_on_ended(struct control *c, const char *id);
