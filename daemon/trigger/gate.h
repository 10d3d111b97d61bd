/*
 * How often triggers may fire: two buckets for each trigger and one for each user, and what became
 * of every wish. Owned by trigger.c; outlives the configuration that its limits come from.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/bucket.h"
#include "daemon/config/config.h"
#include "daemon/config/trigger_set.h"

#define GATE_MAX_USERS 64u

/* What users can use up is theirs alone: a unit that fails has its snapshot however often they
 * fired the trigger that is for it. */
struct gate_share {
	struct bucket bucket;
	bool told; /* that it is limited: once until it fires again */
};

/* What a trigger has done so far. */
struct gate_trigger {
	char name[ENTRY_NAME_SIZE];
	struct gate_share own; /* of what the recorder sees itself, of root and of our own user */
	struct gate_share users;
	uint64_t fired;	  /* snapshots begun */
	uint64_t joined;  /* served by one that was about to be taken */
	uint64_t limited; /* refused by a limit of its own or of a user */
	uint64_t refused; /* for another reason */
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
/* Is UID (ENTRY_ABSENT: nobody's) counted as a user? Root and our own user are not. */
bool gate_is_user(uint64_t uid);
/* Of whose share trigger T fires for UID. */
struct gate_share *gate_share_of(struct gate_trigger *t, uint64_t uid);
/* How long until trigger T may fire for UID; 0: it may, and a token of its share, and of the user,
 * is gone. */
uint64_t gate_pass(struct gate *g, struct gate_trigger *t, uint64_t uid, uint64_t now_usec);
