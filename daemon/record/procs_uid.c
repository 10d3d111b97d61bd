/*
 * Finds the uid that a process certainly has, and since when, and the processes that are excluded.
 *
 * A uid holds as long as no record, and no loss of records, speaks against it.
 */
#include "daemon/record/procs_private.h"

#include "capture/ring/clock.h"

/* How many forkers back are looked at. */
#define MAX_GENERATIONS 32u

void procs_uid_forget(const struct procs *p, struct procs_entry *e)
{
	memset(&e->uid, 0, sizeof(e->uid));
	e->uid.since = MANIFEST_ABSENT;
	e->uid.losses = p->losses;
}

void procs_uid_exec(struct procs_entry *e, uint64_t time)
{
	uint32_t more = 1;

	if (e->uid.seen && time <= e->uid.learned)
		more += MIN_OF(e->uid.covered, 1u);
	e->uid.execs += e->uid.execs < UINT32_MAX - 1 ? more : 0;
}

void procs_lost(struct procs *p, uint64_t time)
{
	p->losses++;
	p->lost_at = MAX_OF(p->lost_at, time);
}

/* The time now on the clock of the records; MANIFEST_ABSENT: not known. */
static uint64_t procs_perf_now(const struct procs *p)
{
	const struct source *s = p->source;
	struct clock_now now;
	uint64_t tsc = 0;

	clock_read(&now);
	if (!s || (!s->clock.valid && s->clock_is_monotonic))
		return now.monotonic_ns;
	if (!s->clock.valid)
		return MANIFEST_ABSENT;
	if (!s->ops->read_tsc)
		return clock_tsc_to_ns(&s->clock, now.tsc);
	for (uint32_t i = 0; i < s->n_cpus; i++)
		tsc = MAX_OF(tsc, source_tsc((struct source *)(uintptr_t)s, i));
	return clock_tsc_to_ns(&s->clock, tsc);
}

void procs_uid_learn(const struct procs *p, struct procs_entry *e, uint64_t before)
{
	bool none_lost = e->uid.losses == e->uid.asked_losses;
	bool all_seen =
		none_lost && (e->uid.asked == 0 || (e->uid.asked == 1 && e->info.program_is_plain));
	bool same = !e->uid.seen || (e->uid.since != MANIFEST_ABSENT && before == e->info.uid);

	e->uid.execs -= e->uid.asked;
	e->uid.covered = e->uid.asked;
	e->uid.asked = 0;
	e->uid.learned = procs_perf_now(p);
	e->uid.losses = e->uid.asked_losses;
	if (!e->info.uid_is_only || (!e->info.program_is_plain && !e->info.zombie)) {
		e->uid.since = MANIFEST_ABSENT;
		e->uid.since_birth = false;
	} else if (!all_seen || !same) {
		e->uid.since = e->info.program_is_plain ? e->uid.learned : MANIFEST_ABSENT;
		e->uid.since_birth = false;
	} else if (!e->uid.seen) {
		e->uid.since = e->uid.learned;
		e->uid.since_birth = true;
	}
	e->uid.seen = true;
}

void procs_exclude_learn(const struct procs *p, struct procs_entry *e)
{
	e->excluded |= exclude_has_uid(p->exclude, e->info.uid) ||
		       exclude_has_cgroup(p->exclude, e->info.cgroup);
	if (e->excluded)
		procs_forget_program(&e->info);
}

void procs_exclude_again(struct procs *p)
{
	for (uint32_t i = 0; i < p->n; i++) {
		struct procs_entry *e = &p->entries[i];

		procs_exclude_learn(p, e);
		if (!e->ended)
			procs_mark(p, e);
	}
}

bool procs_is_doubted(const struct procs *p, const struct procs_entry *e)
{
	return e->uid.losses != p->losses;
}

void procs_set_exclude(struct procs *p, const struct exclude *x)
{
	p->exclude = x;
}

bool procs_excludes(const struct procs *p)
{
	return p->exclude;
}

/* The process that forked E; NULL if its entry is gone or another process's by now. */
static const struct procs_entry *procs_forker(const struct procs *p, const struct procs_entry *e)
{
	const struct procs_entry *by;

	if (!e->forked_at || e->uid.forked_by == 0)
		return NULL;
	by = procs_find(p, e->uid.forked_by);
	return by && by != e && by->forked_at < e->forked_at ? by : NULL;
}

bool procs_is_excluded(const struct procs *p, uint32_t pid)
{
	const struct procs_entry *e = p->exclude ? procs_find(p, pid) : NULL;

	for (unsigned int i = 0; e && i < MAX_GENERATIONS; i++) {
		if (e->excluded)
			return true;
		if (e->uid.seen)
			return false;
		e = procs_forker(p, e);
	}
	return false;
}

/* Since when E has the rights of UID and no others. A child of such a process has them from birth,
 * as long as each program since has been looked at. */
static uint64_t procs_uid_since(const struct procs *p, const struct procs_entry *e, uint64_t uid,
				unsigned int generations)
{
	const struct procs_entry *by;
	bool since_birth = e->uid.seen ? e->uid.since_birth : e->exec_at == 0;

	if (e->uid.execs > 0 || procs_is_doubted(p, e) ||
	    (e->uid.seen && (e->uid.since == MANIFEST_ABSENT || e->info.uid != uid)))
		return MANIFEST_ABSENT;
	by = since_birth && generations > 0 ? procs_forker(p, e) : NULL;
	if (by && procs_uid_since(p, by, uid, generations - 1) <= e->forked_at)
		return e->forked_at;
	return e->uid.since;
}

void procs_uid_tell(const struct procs *p, const struct procs_entry *e, struct procs_told *ret)
{
	const struct procs_entry *by = e;

	/* E's uid, or that of its forker if E ended before /proc was read. */
	ret->uid = MANIFEST_ABSENT;
	for (unsigned int i = 0; by && ret->uid == MANIFEST_ABSENT && i < MAX_GENERATIONS; i++) {
		ret->uid = by->info.uid;
		by = procs_forker(p, by);
	}
	ret->uid_since = procs_uid_since(p, e, ret->uid, MAX_GENERATIONS);
	if (e->info.uid == MANIFEST_ABSENT && ret->uid_since == MANIFEST_ABSENT)
		ret->uid = MANIFEST_ABSENT;
	/* A process that nobody looked at may have become an excluded one before it was gone. */
	ret->excluded = procs_is_excluded(p, e->info.pid) ||
			(p->exclude && !e->uid.seen && ret->uid_since == MANIFEST_ABSENT);
}
