/*
 * Finds threads that wait for locks, and deadlocks among them.
 */
#include <string.h>

#include "decoder/worker/report/report_suspects.h"
#include "proto/base.h"

#define MAX_OF_KIND 4u
#define LOCK_NS	    10000000u /* a thread that waits for a lock this long */
#define LOCK_FRAMES 4u	      /* the lock's function is one of the innermost frames */
#define LIMIT_CALLS 8u	      /* and that of a wait with a time limit one of so many calls */

enum { CALL_FUTEX = 202 };

/* The address of frame number I, 0 being where the thread is; 0: there is none. */
static uint64_t frame_at(const struct tally_counters *c, size_t i)
{
	const size_t depth = calls_depth(&c->calls);
	size_t seen = 0;

	if (i == 0)
		return c->ip;
	for (size_t k = 0; k < depth; k++)
		if (calls_at(&c->calls, k)->from != CALLS_JUMP && ++seen == i)
			return calls_at(&c->calls, k)->from;
	return 0;
}

/* When the call began that is frame number I, perf ns; 0: unknown. */
static uint64_t frame_begin(const struct report *r, const struct tally_counters *c, size_t i)
{
	const size_t depth = calls_depth(&c->calls);
	uint64_t begin = c->begin.tsc;
	size_t seen = 0;

	/* Of what jumped to one another, the outermost one was called. */
	for (size_t k = 0; k < depth; k++) {
		if (calls_at(&c->calls, k)->from != CALLS_JUMP && seen++ == i)
			break;
		begin = calls_at(&c->calls, k)->begin.tsc;
	}
	return begin == 0 ? 0 : tscmap_ns(&r->d->replay->clock, begin);
}

void suspects_find_lock(const struct report *r, struct moment *m)
{
	const struct report_asleep *asleep = report_asleep(r, m->state, m->call);

	m->locking = m->state->left;
	for (size_t i = 0; i < LOCK_FRAMES && frame_at(m->last, i) != 0; i++) {
		const char *name = report_linkage_at(r, m->last->context, frame_at(m->last, i));
		const uint64_t begin = frame_begin(r, m->last, i);

		if (!suspects_is_lock_function(name))
			continue;
		m->lock = true;
		m->mutex |= suspects_is_mutex(name);
		m->caller = frame_at(m->last, i + 1);
		if (begin != 0)
			m->locking = MIN_OF(begin, m->state->left);
	}
	if (m->mutex && asleep)
		m->owner = report_lock_owner(r, asleep);
}

/* Whether function NAME waits no longer than it is told to. */
static bool is_limited(const char *name)
{
	static const char *const names[] = {
		"pthread_cond_timedwait",
		"pthread_cond_clockwait",
		"sem_timedwait",
		"sem_clockwait",
		"pthread_mutex_timedlock",
		"pthread_mutex_clocklock",
		"pthread_rwlock_timedrdlock",
		"pthread_rwlock_clockrdlock",
		"pthread_rwlock_timedwrlock",
		"pthread_rwlock_clockwrlock",
		"pthread_timedjoin_np",
		"pthread_clockjoin_np",
		"cnd_timedwait",
		"mtx_timedlock",
	};

	/* glibc's own names for them begin with underscores. */
	return name && suspects_is_one_of(name + strspn(name, "_"), names, ARRAY_SIZE(names));
}

/* Whether the wait of M has a time limit: one of the innermost calls, in which a function may have
 * jumped to another, is of a function that takes one. */
static bool has_limit(const struct report *r, const struct moment *m)
{
	const struct calls *calls = m->last ? &m->last->calls : NULL;
	const size_t n = calls ? MIN_OF(calls_depth(calls), (size_t)LIMIT_CALLS) : 0;

	for (size_t i = 0; i <= n && calls; i++) {
		const uint32_t f = i == 0 ? m->last->function : calls_at(calls, i - 1)->function;

		if (f < r->d->tally.functions.n && is_limited(r->d->tally.functions.list[f].name))
			return true;
	}
	return false;
}

bool suspects_may_wait_for_lock(const struct moment *m)
{
	const struct tally_branch *last = suspects_last_branch(m);

	return last && last->kind == FLOW_SYSCALL && m->state->kind == REPORT_STATE_BLOCKED &&
	       (m->call == CALL_FUTEX || m->call == REPORT_NO_CALL);
}

/* Each thread of the process, and there are several, waits for a futex without a time limit, and
 * one or more of them in a lock: nobody is left who could release the lock. One thread alone may
 * wait for another process as well. */
static bool is_deadlock(const struct report *r, const struct moments *all, size_t first, size_t end,
			size_t *ret_locks)
{
	size_t threads = 0;

	*ret_locks = 0;
	for (size_t i = first; i < end; i++) {
		const struct moment *m = &all->list[i];

		if (m->state->kind == REPORT_STATE_EXITED)
			continue;
		if (m->state->kind != REPORT_STATE_BLOCKED || suspects_age(all, m) < LOCK_NS ||
		    (!m->lock && m->call != CALL_FUTEX) || has_limit(r, m))
			return false;
		*ret_locks += m->lock;
		threads++;
	}
	return *ret_locks >= 1 && threads >= 2 &&
	       !suspects_is_missing(all, all->list[first].thread->pid, UINT64_MAX);
}

static int add_deadlock(struct report *r, const struct moments *all, size_t first, size_t end)
{
	struct report_suspect s = {.kind = SUSPECT_DEADLOCK};

	for (size_t i = first; i < end; i++) {
		const struct moment *m = &all->list[i];

		if (!m->lock)
			continue;
		s.thread = s.thread ? s.thread : m->thread;
		s.since = MAX_OF(s.since, m->state->left);
		if (s.n_tids < SUSPECT_TIDS)
			s.tids[s.n_tids++] = m->thread->tid;
		s.count++;
	}
	return suspects_add(r, &s);
}

/* The thread of [first, end) that holds the lock of M; NULL: not known. */
static const struct moment *holder_of(const struct moments *all, size_t first, size_t end,
				      const struct moment *m)
{
	for (size_t i = first; i < end && m->owner; i++)
		if (all->list[i].state == m->owner)
			return &all->list[i];
	return NULL;
}

/* Whether M waits for a lock that a thread holds that waits for a lock ... that M holds. *RET: who
 * they are, from M on. No other thread can help them. */
static bool is_in_cycle(const struct report *r, const struct moments *all, size_t first, size_t end,
			const struct moment *m, struct report_suspect *ret)
{
	const struct moment *at = m;

	*ret = suspects_of(SUSPECT_DEADLOCK, m);
	ret->cycle = true;
	do {
		if (!at->lock || suspects_age(all, at) < LOCK_NS || has_limit(r, at) ||
		    ret->n_tids == SUSPECT_TIDS)
			return false;
		ret->since = MAX_OF(ret->since, at->state->left);
		ret->tids[ret->n_tids++] = at->thread->tid;
		ret->count++;
		at = holder_of(all, first, end, at);
	} while (at && at != m);
	return at == m && ret->n_tids > 1;
}

int suspects_deadlocks(struct report *r, const struct moments *all, size_t first, size_t end)
{
	size_t locks, added = 0;

	for (size_t i = first; i < end; i++) {
		struct report_suspect s;

		if (is_in_cycle(r, all, first, end, &all->list[i], &s))
			return suspects_add(r, &s);
	}
	if (is_deadlock(r, all, first, end, &locks))
		return add_deadlock(r, all, first, end);
	for (size_t i = first; i < end && added < MAX_OF_KIND; i++) {
		struct report_suspect s;

		if (!all->list[i].lock || suspects_age(all, &all->list[i]) == 0 ||
		    all->now - all->list[i].locking < LOCK_NS)
			continue;
		s = suspects_of(SUSPECT_LOCK_WAIT, &all->list[i]);
		s.since = all->list[i].locking;
		s.address = all->list[i].caller;
		s.other = all->list[i].owner ? all->list[i].owner->thread : NULL;
		if (suspects_add(r, &s) < 0)
			return -ENOMEM;
		added++;
	}
	return 0;
}
