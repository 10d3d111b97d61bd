/*
 * The interface io.ptsnap.recorder: its methods, and who may call them.
 *
 * This room serves clients. server.c makes the two sockets or takes them from systemd, accepts
 * connections and limits them. peer.c is one connection: it turns bytes into calls and replies into
 * bytes, and knows the credentials and the rank of who connected. control.c has the table of
 * methods: a call is looked up, authorized once and answered once. control_snapshot.c is the method
 * Snapshot; control_store.c has List, Get, Pin and Delete; control_trigger.c has
 * the methods for triggers; control_user.c makes what users get in
 * place of what administrators get; control_later.c has the methods that are answered when
 * something has happened: Check, Yield, Resume and Monitor.
 *
 * Decisions that govern the room:
 * - Everything runs in the loop's thread, and nothing blocks, whatever a client does. A client that
 *   does not read holds up nobody but itself.
 * - There are two ranks, user and administrator, by the credentials that the kernel noted at
 *   connect(2). Each method has the rank that it needs. Users see nothing of what others did.
 * - A few connections are for administrators alone, and connections are accepted faster than
 *   the socket's queue fills, so that no user keeps administrators out.
 * - The second socket (SOCKET.status) is for everybody. It has a server and limits of its own, so
 *   that its connections take no place of others, and the loop serves it last. Credentials are
 *   ignored there; it answers the methods for ACCESS_ANYBODY, and Status by a function that never
 *   looks at anything of users.
 * - Bytes of a trace show what all users did, so a user gets only reports that were made for his
 *   uid alone (daemon/job/remake.h), never a bundle or an image.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "daemon/check/check.h"
#include "daemon/check/status.h"
#include "daemon/config/config.h"
#include "daemon/control/peer.h"
#include "daemon/job/job.h"
#include "daemon/job/lease.h"
#include "daemon/job/remake.h"
#include "daemon/store/store.h"
#include "daemon/trigger/trigger.h"

/* Clients that may wait for one thing. */
#define CONTROL_MAX_WAITS 64

/* A Snapshot call that waits for the snapshot's end. */
struct control_snapshot_wait {
	struct peer *peer; /* borrowed until control_on_gone; NULL: free */
	char id[ENTRY_ID_SIZE];
};

/* Calls that wait for one thing that happens for all of them. */
struct control_waits {
	struct peer *peers[CONTROL_MAX_WAITS]; /* borrowed until control_on_gone; NULL: free */
};

struct control {
	sd_event *event; /* borrowed, as all below unless said otherwise */
	const struct config *config;
	struct trigger *trigger;
	struct store *store;
	struct lease *lease;
	/* Reads the configuration again and adds warnings to WARNINGS. 0, or -errno with WHY. */
	int (*reload)(void *userdata, struct json_object *warnings, char *why, size_t why_size);
	void *reload_userdata;
	struct status_from status;
	const struct names *names; /* NULL: groups are known by their numbers only */
	struct access access;
	struct control_snapshot_wait snapshot_waits[CONTROL_MAX_WAITS];
	struct control_waits lease_waits, check_waits, monitor_waits;
	uint64_t monitor_missed[CONTROL_MAX_WAITS]; /* lines, by place in monitor_waits */
	struct control_waits remake_waits;
	char remake_ids[CONTROL_MAX_WAITS][ENTRY_ID_SIZE]; /* by place in remake_waits */
	struct control_waits test_waits;
	char test_names[CONTROL_MAX_WAITS][ENTRY_NAME_SIZE]; /* by place in test_waits */
	sd_event_source *test_timer; /* ends the wait for a test that gives no event */
	struct remake *remake;	     /* owned; NULL: no report was made for a user yet */
	struct check_job *check;     /* owned; NULL: no check is under way */
};

void control_done(struct control *c);
/* Uses CONFIG from now on: borrowed until the next call, and until control_is_idle. */
void control_use(struct control *c, const struct config *config);
/* Whether no thread uses a configuration. */
bool control_is_idle(const struct control *c);

/* Sends what the log says to the callers of Monitor from now on; NULL: no longer. */
void control_listen(struct control *c);

/* For struct peer_handler (USERDATA is the struct control). */
void control_on_call(void *userdata, struct peer *peer, const struct varlink_call *call);
/* The same, for the socket for everybody. */
void control_on_status_call(void *userdata, struct peer *peer, const struct varlink_call *call);
void control_on_gone(void *userdata, struct peer *peer);
/* Passes news of a snapshot on to the calls that wait for it. */
void control_on_progress(struct control *c, const char *id, enum job_phase phase, uint32_t percent);
void control_on_ended(struct control *c, const char *id);
/* Answers the TestTrigger calls that wait for trigger NAME; as trigger_tested.fn, with the struct
 * control. */
void control_on_tested(void *userdata, const char *name, int r,
		       const struct trigger_answer *answer);
/* Answers the Yield and Resume calls that wait (R as of lease_ask). */
void control_on_lease(struct control *c, int r);
