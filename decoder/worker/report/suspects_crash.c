/*
 * Finds processes that a signal ended.
 */
#include "decoder/worker/report/report_suspects.h"
#include "proto/base.h"

enum { CALL_EXIT = 60, CALL_KILL = 62, CALL_TKILL = 200, CALL_FUTEX = 202 };
enum { CALL_EXIT_GROUP = 231, CALL_TGKILL = 234 };

/* Whether the process of [first, end) had a thread at TSC or later of whose last code nothing is
 * known: the thread may have called exit. */
static bool may_have_exited(const struct report *r, const struct moments *all, size_t first,
			    size_t end, uint64_t tsc)
{
	const uint64_t since = tscmap_ns(&r->d->replay->clock, tsc);

	for (size_t i = first; i < end; i++)
		if (!suspects_last_branch(&all->list[i]) && all->list[i].state->left >= since)
			return true;
	return suspects_is_missing(all, all->list[first].thread->pid, since);
}

/* Whether a gap lies between the last code of M and its end: M may have executed more. */
static bool is_cut(const struct report *r, const struct moment *m)
{
	const uint64_t from = tscmap_ns(&r->d->replay->clock, m->last->last_tsc);

	for (size_t i = 0; i < r->d->gaps.n; i++) {
		const struct gap *g = &r->d->gaps.list[i];
		const uint64_t until = g->until_ns == MANIFEST_ABSENT ? g->time_ns : g->until_ns;

		if (g->time_ns != MANIFEST_ABSENT && g->time_ns <= m->state->left &&
		    MAX_OF(until, g->time_ns) >= from)
			return true;
	}
	return false;
}

/* Whether M was interrupted in user code, or sent a signal and came back no more, as abort(3). */
static bool is_hit(const struct moment *m)
{
	return suspects_last_branch(m)->kind == FLOW_DISABLE || m->call == CALL_KILL ||
	       m->call == CALL_TKILL || m->call == CALL_TGKILL;
}

/* Whether M neither raised a signal nor made a system call that may raise one (write(2) to a closed
 * pipe, or kill(2)). */
static bool is_innocent(const struct report *r, const struct moment *m)
{
	/* poll, select, pause, nanosleep, accept, recvfrom, recvmsg, wait4, futex, clock_nanosleep,
	 * epoll_wait, waitid, pselect6, ppoll, epoll_pwait, accept4 */
	static const uint16_t waits[] = {7,	     23,  34,  35,  43,	 45,  47,  61,
					 CALL_FUTEX, 230, 232, 247, 270, 271, 281, 288};

	if (!suspects_last_branch(m))
		return false;
	if (suspects_last_branch(m)->kind == FLOW_DISABLE)
		return suspects_raised_nothing(r, m->last);
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
		if (m->call == waits[i])
			return true;
	return false;
}

int suspects_crash(struct report *r, const struct moments *all, size_t first, size_t end)
{
	const struct moment *victim = NULL;
	struct report_suspect s;

	for (size_t i = first; i < end; i++) {
		const struct moment *m = &all->list[i];
		const struct tally_branch *last = suspects_last_branch(m);

		if (m->state->kind != REPORT_STATE_EXITED || !m->state->seen)
			return 0;
		if (!last)
			continue;
		/* A system call of unknown number may be an exit. */
		if (last->kind != FLOW_DISABLE &&
		    (m->call == REPORT_NO_CALL || m->call == CALL_EXIT ||
		     m->call == CALL_EXIT_GROUP))
			return 0;
		if (is_hit(m) && (!victim || m->last->last_tsc < victim->last->last_tsc))
			victim = m;
	}
	if (!victim || is_cut(r, victim) ||
	    may_have_exited(r, all, first, end, victim->last->last_tsc))
		return 0;
	s = suspects_of(SUSPECT_CRASH, victim);
	s.address = victim->last->ip;
	s.outside = true;
	for (size_t i = first; i < end && s.outside; i++)
		s.outside = is_innocent(r, &all->list[i]);
	return suspects_add(r, &s);
}
