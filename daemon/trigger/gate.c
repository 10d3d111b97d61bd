/*
 * Token buckets by the names of triggers and by uid, and the times since when CPUs are traced.
 *
 * There is room for GATE_MAX_USERS users. A new user takes the place of the user with the fullest
 * bucket, so that a user who has drained his bucket is not forgotten when others come.
 */
#include "daemon/trigger/gate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
		t->since_usec = now_usec;
		bucket_init(&t->own.bucket, burst, interval, now_usec);
		bucket_init(&t->users.bucket, burst, interval, now_usec);
	}
}

void gate_use(struct gate *g, const struct trigger_set *set, const struct config *config,
	      uint64_t now_usec)
{
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

/* An unused place, or that of the user with most tokens. */
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

bool gate_is_over(const struct gate_trigger *t, const struct trigger_object *o, uint64_t now_usec)
{
	return (o->count > 0 && t->fired >= o->count) ||
	       (o->expire_usec > 0 && now_usec - t->since_usec >= o->expire_usec);
}

bool gate_is_user(uint64_t uid)
{
	return uid != ENTRY_ABSENT && uid != 0 && uid != geteuid();
}

struct gate_share *gate_share_of(struct gate_trigger *t, uint64_t uid)
{
	return gate_is_user(uid) ? &t->users : &t->own;
}

/* The user UID; NULL: UID does not count as a user. */
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

int fill_init(struct fill *f, const struct source *source, uint64_t now_ns)
{
	*f = (struct fill){.source = source, .started_ns = now_ns};
	f->since_ns = calloc(MAX_OF(source->n_cpus, (size_t)1), sizeof(*f->since_ns));
	if (!f->since_ns)
		return -ENOMEM;
	fill_look(f, now_ns);
	return 0;
}

void fill_done(struct fill *f)
{
	free(TAKE_PTR(f->since_ns));
}

void fill_look(struct fill *f, uint64_t now_ns)
{
	for (size_t i = 0; i < f->source->n_cpus; i++) {
		if (f->source->cpus[i].state != SOURCE_CPU_TRACING)
			f->since_ns[i] = 0;
		else if (f->since_ns[i] == 0)
			f->since_ns[i] = MAX_OF(now_ns, (uint64_t)1);
	}
}

uint64_t fill_ns(const struct fill *f, uint32_t cpu, uint64_t now_ns)
{
	uint64_t since = UINT64_MAX;

	for (size_t i = 0; i < f->source->n_cpus; i++) {
		if (f->since_ns[i] == 0)
			continue;
		if (f->source->cpus[i].cpu == cpu) {
			since = f->since_ns[i];
			break;
		}
		since = MIN_OF(since, f->since_ns[i]);
	}
	if (since == UINT64_MAX)
		since = f->started_ns;
	return now_ns > since ? now_ns - since : 0;
}
