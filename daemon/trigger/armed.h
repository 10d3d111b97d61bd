/*
 * The condition of one trigger while the recorder runs: armed, resting, or not to be had.
 */
#pragma once

#include <stdint.h>

#include <systemd/sd-event.h>

#include "daemon/base/bucket.h"
#include "daemon/condition/condition.h"
#include "daemon/config/trigger_set.h"

enum armed_state {
	ARMED_WATCHING = 0,
	ARMED_RESTING, /* had too many events; armed again when the time is over */
	ARMED_BROKEN,  /* could not be armed, or was lost; tried again now and then */
	ARMED_OVER,    /* Count= or ExpireAfter= */
};
/* "armed", ... */
const char *armed_state_name(enum armed_state state);

/* Events that a condition may have at once, and in how long as many more: a host that is in trouble
 * has no time for the others. */
#define ARMED_STORM_BURST 20u
#define ARMED_STORM_USEC  2000000u

struct armed;

/* What all conditions of a recorder share. */
struct armed_setup {
	sd_event *event; /* borrowed, as the paths */
	const struct condition_paths *paths;
	uint64_t rest_usec;   /* of a condition with too many events */
	uint64_t broken_usec; /* until a condition that cannot be armed is tried again */
};
#define ARMED_REST_USEC	  10000000u
#define ARMED_BROKEN_USEC 60000000u

struct armed_handler {
	void *userdata;
	/* O is the trigger whose event has come. */
	void (*on_event)(void *userdata, const struct trigger_object *o,
			 const struct condition_event *event);
};

/* Arms the condition of O. SETUP and O are copied. 0; -errno with WHY:
 * nothing is armed. */
int armed_new(const struct armed_setup *setup, const struct trigger_object *o,
	      const struct armed_handler *handler, struct armed **ret,
	      char why[CONDITION_WHY_SIZE]);
/* The same, but a condition that cannot be armed now is logged and tried again now and then. 0 or
 * -ENOMEM. */
int armed_new_patient(const struct armed_setup *setup, const struct trigger_object *o,
		      const struct armed_handler *handler, struct armed **ret);
void armed_free(struct armed *a);
/* The trigger is over: watches no more. */
void armed_end(struct armed *a);

/* The trigger, as it was armed. */
const struct trigger_object *armed_object(const struct armed *a);

struct armed_news {
	enum armed_state state;
	const char *why;    /* "": there is nothing to say */
	uint64_t n_events;  /* events that came, whether they gave a snapshot or not */
	const char *last;   /* the last event; "": there was none */
	uint64_t last_usec; /* CLOCK_REALTIME */
};
/* Borrowed until A changes. */
void armed_tell(const struct armed *a, struct armed_news *ret);
/* As condition_test(); -EAGAIN with WHY: the condition is not armed now. */
int armed_test(struct armed *a, char why[CONDITION_WHY_SIZE]);
