/*
 * How often triggers may fire: a bucket for each trigger and for each user, and what became of
 * every wish. Owned by trigger.c; outlives the configuration that its limits come from.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/bucket.h"
#include "daemon/config.h"
#include "daemon/trigger_set.h"

#define GATE_MAX_USERS 64u

/* What a trigger has done so far. */
struct gate_trigger {
	char name[ENTRY_NAME_SIZE];
	struct bucket bucket;
	uint64_t fired;	  /* snapshots begun */
	uint64_t joined;  /* served by one that was about to be taken */
	uint64_t limited; /* refused by a limit of its own or of a user */
	uint64_t refused; /* for another reason */
	bool told;	  /* that it is limited: once until it fires again */
};

struct gate_user {
	uint32_t uid;
	bool used;
	struct bucket bucket;
};

struct gate {
	struct gate_trigger triggers[TRIGGER_SET_MAX];
	size_t n;
	struct gate_user users[GATE_MAX_USERS];
	uint32_t user_burst;
	uint64_t user_interval_usec;
};

/* The triggers and limits of CONFIG from now on. Counters and tokens stay those of the trigger of
 * the same name. An empty struct gate is one that knows no triggers yet. */
void gate_use(struct gate *g, const struct config *config, uint64_t now_usec);
/* NULL: there is none of that name. */
struct gate_trigger *gate_find(struct gate *g, const char *name);
/* How long until trigger T may fire for user UID (ENTRY_ABSENT: nobody's); 0: it may, and a token
 * of both is gone. Root and our own user are not counted as users. */
uint64_t gate_pass(struct gate *g, struct gate_trigger *t, uint64_t uid, uint64_t now_usec);
