/*
 * The one funnel: every wish for a snapshot (control, signal, exit) comes through here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-event.h>

#include "capture/source.h"
#include "daemon/jobs.h"
#include "daemon/request.h"
#include "daemon/store.h"

struct trigger {
	struct source *source; /* borrowed, all */
	struct store *store;
	struct jobs *jobs;
	bool closed; /* the recorder ends: nothing new is begun */
	uint64_t n, joined, refused;
};

void trigger_init(struct trigger *t, struct source *source, struct store *store, struct jobs *jobs);
/* An empty request: everything, decoded, by nobody. */
void request_init(struct request *q, const char *kind, const char *name);
/* Asks for a snapshot. 0: *ret_id (ENTRY_ID_SIZE bytes) is the new one, or one that was about to be
 * taken and serves this request as well; TRIGGER_BUSY; TRIGGER_CLOSED; -errno. */
#define TRIGGER_BUSY   1
#define TRIGGER_CLOSED 2
int trigger_fire(struct trigger *t, const struct request *request, char *ret_id);

/* trigger_signal.c: SIGUSR2, which must be blocked, fires T with the sender's pid and uid. */
int trigger_add_signal(struct trigger *t, sd_event *event, sd_event_source **ret);
