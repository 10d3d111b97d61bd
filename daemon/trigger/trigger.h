/*
 * The one funnel: every wish for a snapshot (control, signal, unit, exit) comes through here. What
 * it fires, and how that is limited, are the triggers of the configuration.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>
#include <systemd/sd-event.h>

#include "capture/ring/source.h"
#include "daemon/config/config.h"
#include "daemon/config/trigger_set.h"
#include "daemon/job/jobs.h"
#include "daemon/store/entry.h"
#include "daemon/store/store.h"
#include "daemon/trigger/fill.h"
#include "daemon/trigger/gate.h"
#include "daemon/trigger/unitwatch.h"

struct trigger {
	struct source *source; /* borrowed, all */
	struct store *store;
	struct jobs *jobs;
	const struct trigger_set *set; /* of the configuration; gate's are in the same order */
	const struct names *names;     /* borrowed; NULL: of users only numbers are known */
	struct gate gate;
	struct fill fill;
	struct unitwatch *watch; /* owned; NULL: no trigger wants it */
	bool closed;		 /* the recorder ends: nothing new is begun */
	uint64_t n, joined, refused, limited;
};

/* The triggers are those of CONFIG, which is borrowed until another trigger_use. 0 or -ENOMEM. */
int trigger_init(struct trigger *t, struct source *source, struct store *store, struct jobs *jobs,
		 const struct config *config);
void trigger_done(struct trigger *t);
/* The triggers of CONFIG from now on. */
void trigger_use(struct trigger *t, const struct config *config);
/* CPUs may have changed state. */
void trigger_look(struct trigger *t);

/* An empty request: everything, decoded, by nobody. */
void request_init(struct request *q, const char *kind, const char *name);

/* What is chosen goes into Q: kind and name, and what its actions say, in place of what was there.
 * Q has its unit, pid and uid already. 0 or TRIGGER_UNKNOWN: nobody is to fire, Q is as it was. */
/* A client named the trigger NAME; "unit" stands for whichever is for Q's unit. */
int trigger_choose(const struct trigger *t, const char *name, struct request *q);
/* SIGUSR2 came. */
int trigger_choose_signal(const struct trigger *t, struct request *q);
/* The watcher saw Q's unit fail. */
int trigger_choose_watched(const struct trigger *t, struct request *q);

struct trigger_answer {
	char id[ENTRY_ID_SIZE]; /* of 0 */
	uint64_t retry_usec;	/* of TRIGGER_LIMITED: not before */
	char why[256];		/* of a refusal, in one line */
};

/* Asks for a snapshot; of the built-in trigger of that kind, when none was chosen. 0: RET's id is
 * the new one, or one that was about to be taken and serves this request as well, which costs
 * nothing; one of those below, -errno. */
#define TRIGGER_BUSY	 1
#define TRIGGER_CLOSED	 2
#define TRIGGER_LIMITED	 3
#define TRIGGER_UNFILLED 4 /* MinFill= */
#define TRIGGER_UNKNOWN	 5 /* there is no such trigger, or it is not enabled */
int trigger_fire(struct trigger *t, const struct request *request, struct trigger_answer *ret);

/* trigger_json.c: what each trigger has done, for Status. The caller's; NULL: no memory. */
struct json_object *trigger_to_json(const struct trigger *t);

/* trigger_unit.c: watches units that fail, if there is a trigger for that, or no longer. 0 or
 * -errno.
 */
int trigger_watch_units(struct trigger *t, sd_event *event);
/* trigger_signal.c: SIGUSR2, which must be blocked, fires T with the sender's pid and uid. */
int trigger_add_signal(struct trigger *t, sd_event *event, sd_event_source **ret);
