/*
 * Whether triggers may fire: two token buckets for each trigger and one for each user, counters of
 * what each trigger did, and for how long CPUs have been traced.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/ring/source.h"
#include "daemon/base/bucket.h"
#include "daemon/config/config.h"
#include "daemon/config/trigger_set.h"

#define GATE_MAX_USERS 64u

/* Users have a share of their own, so that a unit that fails has its snapshot however often users
 * fired its trigger. */
struct gate_share {
	struct bucket bucket;
	bool told; /* a limit was logged; false again when the trigger fires */
};

/* The history of one trigger. */
struct gate_trigger {
	char name[ENTRY_NAME_SIZE];
	struct gate_share
		own; /* for what the recorder sees itself, for root and for our own user */
	struct gate_share users;
	uint64_t fired;	     /* snapshots begun */
	uint64_t joined;     /* requests that joined a snapshot about to be taken */
	uint64_t limited;    /* requests refused by a limit of the trigger or of a user */
	uint64_t refused;    /* requests refused for another reason */
	uint64_t since_usec; /* when the gate got to know the trigger */
};

struct gate_user {
	uint32_t uid;
	bool used;
	struct bucket bucket;
};

/* Outlives the configuration that its limits come from. */
struct gate {
	struct gate_trigger triggers[TRIGGER_SET_MAX]; /* in the order of the configuration's */
	size_t n;
	struct gate_user users[GATE_MAX_USERS];
	uint32_t user_burst;
	uint64_t user_interval_usec;
};

/* Uses the triggers of SET and the limits of CONFIG from now on. A trigger keeps the counters and
 * tokens of the trigger of the same name. An empty struct gate knows no triggers yet. */
void gate_use(struct gate *g, const struct trigger_set *set, const struct config *config,
	      uint64_t now_usec);
/* NULL: there is no trigger of that name. */
struct gate_trigger *gate_find(struct gate *g, const char *name);
/* Whether T, whose settings are O, has taken its last snapshot (Count=, ExpireAfter=). */
bool gate_is_over(const struct gate_trigger *t, const struct trigger_object *o, uint64_t now_usec);
/* Whether UID (ENTRY_ABSENT: nobody) counts as a user. Root and our own user do not. */
bool gate_is_user(uint64_t uid);
/* The share of trigger T that UID uses. */
struct gate_share *gate_share_of(struct gate_trigger *t, uint64_t uid);
/* Returns how long until trigger T may fire for UID. 0: the trigger may fire, and a token of the
 * share and one of the user were taken. */
uint64_t gate_pass(struct gate *g, struct gate_trigger *t, uint64_t uid, uint64_t now_usec);

/* For how long each CPU has been traced without a break, as far as fill_look() saw: how far its
 * ring can reach back at most. */
struct fill {
	const struct source *source; /* borrowed */
	uint64_t *since_ns;	     /* owned, one for each CPU; 0: the CPU is not traced */
	uint64_t started_ns;
};

/* NOW_NS, here and below: CLOCK_MONOTONIC. 0 or -ENOMEM. */
int fill_init(struct fill *f, const struct source *source, uint64_t now_ns);
void fill_done(struct fill *f);
/* Looks which CPUs are traced now. A break between two looks is not seen. */
void fill_look(struct fill *f, uint64_t now_ns);
/* For how long CPU has been traced. If CPU is not traced, or ENTRY_NO_CPU: the longest time of all
 * CPUs. If no CPU is traced: the time since fill_init(). */
uint64_t fill_ns(const struct fill *f, uint32_t cpu, uint64_t now_ns);
