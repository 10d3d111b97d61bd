/*
 * Buckets by name and by uid. Called by trigger.c, in the loop's thread.
 *
 * There is room for so many users; when a new one comes the bucket that is fullest makes room, as
 * it has least to remember: who has drained his is not forgotten for others who come.
 */
#include "daemon/trigger/gate.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/base.h"

static const struct gate_trigger *find_old(const struct gate *g, const char *name)
{
	for (size_t i = 0; i < g->n; i++)
		if (strcmp(g->triggers[i].name, name) == 0)
			return &g->triggers[i];
	return NULL;
}

struct gate_trigger *gate_find(struct gate *g, const char *name)
{
	return (struct gate_trigger *)find_old(g, name);
}

static void use_object(struct gate_trigger *t, const struct gate_trigger *old,
		       const struct trigger_object *o, const struct config *c, uint64_t now_usec)
{
	uint32_t burst = o->has_burst ? o->burst : c->trigger_burst;
	uint64_t interval = o->has_interval ? o->interval_usec : c->trigger_interval_usec;

	if (old) {
		*t = *old;
		bucket_change(&t->own.bucket, burst, interval, now_usec);
		bucket_change(&t->users.bucket, burst, interval, now_usec);
	} else {
		snprintf(t->name, sizeof(t->name), "%s", o->name);
		bucket_init(&t->own.bucket, burst, interval, now_usec);
		bucket_init(&t->users.bucket, burst, interval, now_usec);
	}
}

void gate_use(struct gate *g, const struct config *config, uint64_t now_usec)
{
	const struct trigger_set *set = config->triggers;
	struct gate old = *g;

	memset(g->triggers, 0, sizeof(g->triggers));
	g->n = set->n;
	for (size_t i = 0; i < set->n; i++)
		use_object(&g->triggers[i], find_old(&old, set->all[i].name), &set->all[i], config,
			   now_usec);
	g->user_burst = config->user_burst;
	g->user_interval_usec = config->user_interval_usec;
	for (size_t i = 0; i < GATE_MAX_USERS; i++)
		if (g->users[i].used)
			bucket_change(&g->users[i].bucket, g->user_burst, g->user_interval_usec,
				      now_usec);
}

/* The one with most tokens; an unused one before all. */
static struct gate_user *gate_spare(struct gate *g, uint64_t now_usec)
{
	struct gate_user *spare = &g->users[0];

	for (size_t i = 0; i < GATE_MAX_USERS; i++) {
		struct gate_user *u = &g->users[i];

		if (!u->used)
			return u;
		if (bucket_tokens(&u->bucket, now_usec) > bucket_tokens(&spare->bucket, now_usec))
			spare = u;
	}
	return spare;
}

bool gate_is_user(uint64_t uid)
{
	return uid != ENTRY_ABSENT && uid != 0 && uid != geteuid();
}

struct gate_share *gate_share_of(struct gate_trigger *t, uint64_t uid)
{
	return gate_is_user(uid) ? &t->users : &t->own;
}

static struct gate_user *gate_user(struct gate *g, uint64_t uid, uint64_t now_usec)
{
	struct gate_user *u;

	if (!gate_is_user(uid))
		return NULL;
	for (size_t i = 0; i < GATE_MAX_USERS; i++)
		if (g->users[i].used && g->users[i].uid == uid)
			return &g->users[i];
	u = gate_spare(g, now_usec);
	*u = (struct gate_user){.uid = (uint32_t)uid, .used = true};
	bucket_init(&u->bucket, g->user_burst, g->user_interval_usec, now_usec);
	return u;
}

uint64_t gate_pass(struct gate *g, struct gate_trigger *t, uint64_t uid, uint64_t now_usec)
{
	struct gate_user *u = gate_user(g, uid, now_usec);
	struct bucket *share = &gate_share_of(t, uid)->bucket;
	uint64_t wait = bucket_wait(share, now_usec);

	if (u)
		wait = MAX_OF(wait, bucket_wait(&u->bucket, now_usec));
	if (wait > 0)
		return wait;
	bucket_take(share, now_usec);
	if (u)
		bucket_take(&u->bucket, now_usec);
	return 0;
}
