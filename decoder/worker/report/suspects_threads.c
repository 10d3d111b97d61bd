/*
 * Finds suspects among threads: where each was at the trigger, and since when.
 */
#include <stdlib.h>
#include <string.h>

#include "decoder/worker/report/report_suspects.h"
#include "proto/base.h"

#define MAX_LOOKED  4096u /* threads */
#define MAX_OF_KIND 4u

#define LONG_NS	    20000000u /* a call that is open this long */
#define LONG_TIMES  10u	      /* and so many times as long as any that ended */
#define RETRY_CALLS 100u      /* so many calls that ended have a usual duration */
#define RETRY_TURNS 10u	      /* a loop that sleeps has had the CPU so often */
#define LOOP_PART   4u /* a loop got its thread back in the last of so many parts of its time */
#define LOCK_NS	    10000000u /* a thread that waits for a lock this long */
#define WAIT_NS	    50000000u /* a thread that is in an unusual system call this long */
#define RUNNABLE_NS 20000000u /* a thread that waits for a CPU this long */
#define RAN_NS	    50000000u /* a turn this long, */
#define RAN_PART    2u	      /* and half of the window */
#define MAX_TURNS   100000u   /* of a thread that are looked at */
#define LOCK_FRAMES 4u	      /* the lock's function is one of the innermost frames */
#define LIMIT_CALLS 8u	      /* and that of a wait with a time limit one of so many calls */

enum { CALL_WRITE = 1, CALL_WRITEV = 20, CALL_NANOSLEEP = 35, CALL_CLOCK_NANOSLEEP = 230 };
enum { CALL_EXIT = 60, CALL_KILL = 62, CALL_SEMOP = 65 };
enum { CALL_FLOCK = 73, CALL_TKILL = 200, CALL_FUTEX = 202, CALL_SEMTIMEDOP = 220 };
enum { CALL_EXIT_GROUP = 231, CALL_TGKILL = 234 };

/* A thread at the trigger. */
struct moment {
	const struct timeline_thread *thread;
	const struct report_state *state;
	const struct tally_counters *last; /* NULL: the code of its last turn is not known */
	uint64_t call;			   /* or REPORT_NO_CALL */
	bool lock;			   /* it waits for a lock, */
	bool mutex;			   /* which is a mutex of glibc, */
	const struct report_state *owner;  /* and which this thread holds; NULL: not known */
	uint64_t caller;		   /* of the lock's function; 0: unknown */
	uint64_t locking;		   /* since when it is in that function, perf ns */
};

struct moments {
	struct moment *list; /* by process */
	size_t n;
	uint64_t now;
	/* Threads that are not in the list, by process. */
	const struct report_state **missing;
	size_t n_missing;
};

bool suspects_is_one_of(const char *name, const char *const *names, size_t n)
{
	/* Without its version. */
	const size_t size = name ? strcspn(name, "@") : 0;

	for (size_t i = 0; i < n; i++)
		if (size == strlen(names[i]) && memcmp(name, names[i], size) == 0)
			return true;
	return false;
}

/* Whether NAME, in either of Rust's manglings, is where the standard library waits for a lock, or
 * where HotSpot waits for one of its own or for the monitor of a Java object. */
static bool is_mangled_lock(const char *name)
{
	static const char *const parts[] = {"5Mutex14lock_contended", "6RwLock14read_contended",
					    "6RwLock15write_contended",
					    "_ZN13ObjectMonitor6EnterI"};

	for (size_t i = 0; name && i < ARRAY_SIZE(parts); i++)
		if (strstr(name, parts[i]))
			return true;
	return false;
}

bool suspects_is_lock(const char *name)
{
	static const char *const names[] = {
		"pthread_mutex_lock",	    "__pthread_mutex_lock",	"___pthread_mutex_lock",
		"pthread_mutex_clocklock",  "pthread_mutex_timedlock",	"pthread_rwlock_rdlock",
		"pthread_rwlock_wrlock",    "__pthread_rwlock_rdlock",	"__pthread_rwlock_wrlock",
		"___pthread_rwlock_rdlock", "___pthread_rwlock_wrlock", "__pthread_mutex_cond_lock",
		"__cxa_guard_acquire",
	};

	return suspects_is_one_of(name, names, ARRAY_SIZE(names)) || is_mangled_lock(name);
}

bool suspects_is_private_lock(const char *name)
{
	static const char *const names[] = {"__lll_lock_wait_private"};

	return suspects_is_one_of(name, names, ARRAY_SIZE(names));
}

/* Whether NAME takes a mutex, and waits at the mutex's own address. */
static bool is_mutex(const char *name)
{
	static const char *const names[] = {
		"pthread_mutex_lock",	      "__pthread_mutex_lock",
		"___pthread_mutex_lock",      "pthread_mutex_clocklock",
		"pthread_mutex_timedlock",    "__pthread_mutex_cond_lock",
		"___pthread_mutex_timedlock", "___pthread_mutex_clocklock",
	};

	return suspects_is_one_of(name, names, ARRAY_SIZE(names));
}

/* Whether a thread in function NAME waits for a lock. */
static bool is_lock_function(const char *name)
{
	static const char *const names[] = {"__lll_lock_wait"};

	return suspects_is_lock(name) || suspects_is_private_lock(name) ||
	       suspects_is_one_of(name, names, ARRAY_SIZE(names));
}

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

/* Looks for a lock's function among the innermost frames of M. Such a function may sleep more than
 * once before it has the lock. */
static void find_lock(const struct report *r, struct moment *m)
{
	const struct report_asleep *asleep = report_asleep(r, m->state, m->call);

	m->locking = m->state->left;
	for (size_t i = 0; i < LOCK_FRAMES && frame_at(m->last, i) != 0; i++) {
		const char *name = report_linkage_at(r, m->last->context, frame_at(m->last, i));
		const uint64_t begin = frame_begin(r, m->last, i);

		if (!is_lock_function(name))
			continue;
		m->lock = true;
		m->mutex |= is_mutex(name);
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

static const struct tally_branch *last_branch(const struct moment *m)
{
	if (!m->last || m->last->n_last == 0)
		return NULL;
	return &m->last->last[(m->last->n_last - 1) % REPORT_LAST_BRANCHES];
}

/* Whether M blocked in futex(2), or in a system call of unknown number. In a lock's function a
 * thread may also wait for a page. */
static bool may_wait_for_lock(const struct moment *m)
{
	const struct tally_branch *last = last_branch(m);

	return last && last->kind == FLOW_SYSCALL && m->state->kind == REPORT_STATE_BLOCKED &&
	       (m->call == CALL_FUTEX || m->call == REPORT_NO_CALL);
}

static int by_process(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	if (x->thread->pid != y->thread->pid)
		return x->thread->pid < y->thread->pid ? -1 : 1;
	return x->thread->tid < y->thread->tid ? -1 : x->thread->tid > y->thread->tid;
}

static int state_by_process(const void *a, const void *b)
{
	const struct report_state *const *x = a, *const *y = b;

	if ((*x)->thread->pid != (*y)->thread->pid)
		return (*x)->thread->pid < (*y)->thread->pid ? -1 : 1;
	return 0;
}

/* LISTED: which states of R are those of the list of ALL. */
static void collect_missing(const struct report *r, struct moments *all, const bool *listed)
{
	for (size_t i = 0; i < r->n_states; i++)
		if (!listed[i])
			all->missing[all->n_missing++] = &r->states[i];
	if (all->n_missing > 0)
		qsort(all->missing, all->n_missing, sizeof(*all->missing), state_by_process);
}

/* Whether a thread of process PID that is not in the list was there at SINCE (perf ns; UINT64_MAX:
 * at the trigger) or later. */
static bool is_missing(const struct moments *all, uint32_t pid, uint64_t since)
{
	for (size_t i = FIRST_WHERE(k, all->n_missing, all->missing[k]->thread->pid >= pid);
	     i < all->n_missing && all->missing[i]->thread->pid == pid; i++)
		if (all->missing[i]->kind != REPORT_STATE_EXITED || all->missing[i]->left >= since)
			return true;
	return false;
}

static int collect(const struct report *r, struct moments *ret)
{
	const size_t total = MIN_OF(r->lists[REPORT_THREADS].total, (size_t)MAX_LOOKED);
	CLEANUP_FREE bool *listed = calloc(r->n_states + 1, sizeof(*listed));

	*ret = (struct moments){.list = calloc(total + 1, sizeof(*ret->list)),
				.missing = calloc(r->n_states + 1, sizeof(*ret->missing)),
				.now = r->now};
	if (!ret->list || !ret->missing || !listed)
		return -ENOMEM;
	for (size_t i = 0; i < total; i++) {
		const struct report_thread *t = &r->threads[i];
		const struct report_state *state = report_state(r, t->thread);
		struct moment *m = &ret->list[ret->n];

		if (!state || (state->seen && !report_permits(r, t->thread, state->ran)))
			continue;
		*m = (struct moment){.thread = t->thread, .state = state, .call = REPORT_NO_CALL};
		if (t->end > t->first)
			m->last = t->tally->threads[t->end - 1];
		/* A part that was decoded alone may not tell whose its last code is. */
		if (!report_code_is_known(r, state, m->last) ||
		    (t->known == REPORT_LAST_STRETCH && r->d->window.limited))
			m->last = NULL;
		m->call = report_system_call(r, t->thread, m->last);
		if (may_wait_for_lock(m))
			find_lock(r, m);
		listed[state - r->states] = true;
		ret->n++;
	}
	collect_missing(r, ret, listed);
	qsort(ret->list, ret->n, sizeof(*ret->list), by_process);
	return 0;
}

/* How long M has been as it is, certainly; 0: not certain. */
static uint64_t age(const struct moments *all, const struct moment *m)
{
	const uint64_t since =
		m->state->kind == REPORT_STATE_RUNNING ? m->state->ran : m->state->left;

	return m->state->certain && since > 0 && since < all->now ? all->now - since : 0;
}

static struct report_suspect suspect_of(enum report_suspect_kind kind, const struct moment *m)
{
	return (struct report_suspect){
		.kind = kind,
		.thread = m->thread,
		.cpu = m->state->cpu,
		.since = m->state->kind == REPORT_STATE_RUNNING ? m->state->ran : m->state->left,
		.context = m->last ? m->last->context : 0,
	};
}

/* --- Processes: [first, end) of the list is one --- */

/* Whether the process of [first, end) had a thread at TSC or later of whose last code nothing is
 * known: the thread may have called exit. */
static bool may_have_exited(const struct report *r, const struct moments *all, size_t first,
			    size_t end, uint64_t tsc)
{
	const uint64_t since = tscmap_ns(&r->d->replay->clock, tsc);

	for (size_t i = first; i < end; i++)
		if (!last_branch(&all->list[i]) && all->list[i].state->left >= since)
			return true;
	return is_missing(all, all->list[first].thread->pid, since);
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
	return last_branch(m)->kind == FLOW_DISABLE || m->call == CALL_KILL ||
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

	if (!last_branch(m))
		return false;
	if (last_branch(m)->kind == FLOW_DISABLE)
		return suspects_raised_nothing(r, m->last);
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
		if (m->call == waits[i])
			return true;
	return false;
}

/* A process whose threads are all gone, and none of which called exit, was ended by a signal. The
 * thread that was interrupted first got it. */
static int find_crash(struct report *r, const struct moments *all, size_t first, size_t end)
{
	const struct moment *victim = NULL;
	struct report_suspect s;

	for (size_t i = first; i < end; i++) {
		const struct moment *m = &all->list[i];
		const struct tally_branch *last = last_branch(m);

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
	s = suspect_of(SUSPECT_CRASH, victim);
	s.address = victim->last->ip;
	s.outside = true;
	for (size_t i = first; i < end && s.outside; i++)
		s.outside = is_innocent(r, &all->list[i]);
	return suspects_add(r, &s);
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
		if (m->state->kind != REPORT_STATE_BLOCKED || age(all, m) < LOCK_NS ||
		    (!m->lock && m->call != CALL_FUTEX) || has_limit(r, m))
			return false;
		*ret_locks += m->lock;
		threads++;
	}
	return *ret_locks >= 1 && threads >= 2 &&
	       !is_missing(all, all->list[first].thread->pid, UINT64_MAX);
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

	*ret = suspect_of(SUSPECT_DEADLOCK, m);
	ret->cycle = true;
	do {
		if (!at->lock || age(all, at) < LOCK_NS || has_limit(r, at) ||
		    ret->n_tids == SUSPECT_TIDS)
			return false;
		ret->since = MAX_OF(ret->since, at->state->left);
		ret->tids[ret->n_tids++] = at->thread->tid;
		ret->count++;
		at = holder_of(all, first, end, at);
	} while (at && at != m);
	return at == m && ret->n_tids > 1;
}

static int find_locks(struct report *r, const struct moments *all, size_t first, size_t end)
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

		if (!all->list[i].lock || age(all, &all->list[i]) == 0 ||
		    all->now - all->list[i].locking < LOCK_NS)
			continue;
		s = suspect_of(SUSPECT_LOCK_WAIT, &all->list[i]);
		s.since = all->list[i].locking;
		s.address = all->list[i].caller;
		s.other = all->list[i].owner ? all->list[i].owner->thread : NULL;
		if (suspects_add(r, &s) < 0)
			return -ENOMEM;
		added++;
	}
	return 0;
}

static int find_in_processes(struct report *r, const struct moments *all)
{
	size_t end;
	int result = 0;

	for (size_t first = 0; first < all->n && result == 0; first = end) {
		for (end = first + 1;
		     end < all->n && all->list[end].thread->pid == all->list[first].thread->pid;)
			end++;
		result = find_crash(r, all, first, end);
		if (result == 0)
			result = find_locks(r, all, first, end);
	}
	return result;
}

/* --- Single threads --- */

/* An instance that is open at the trigger. */
struct open_call {
	uint32_t function;
	struct calls_begin begin;
};

static struct open_call open_at(const struct tally_counters *c, size_t i)
{
	if (i == 0)
		return (struct open_call){c->function, c->begin};
	return (struct open_call){calls_at(&c->calls, i - 1)->function,
				  calls_at(&c->calls, i - 1)->begin};
}

/* How long of the time since SINCE (perf ns) the thread of M had given its CPU away itself, and how
 * often it got a CPU since then. */
static uint64_t blocked_since(const struct report *r, const struct moment *m, uint64_t since,
			      unsigned *ret_turns)
{
	const struct turns *turns = &r->d->replay->turns;
	size_t cpu = m->state->cpu, i = turns_at(&turns->cpus[cpu], m->state->ran);
	uint64_t blocked = 0;

	*ret_turns = 0;
	/* A turn before may be of a CPU without a trace, which the manifest does not have. */
	for (unsigned n = 0; n < MAX_TURNS && turns->cpus[cpu].n > 0; n++) {
		const struct turns_turn *turn = &turns->cpus[cpu].list[i];
		const uint64_t next = turn->since;
		struct timeline_turn before;

		if (turn->before == TURNS_NONE || next <= since)
			break;
		(*ret_turns)++;
		cpu = turn->before_cpu;
		i = turn->before;
		timeline_get_turn(r->d->replay->timeline, turns->cpus[cpu].cpu, i, &before);
		if (!before.preempted && before.until < next)
			blocked += next - MAX_OF(before.until, since);
	}
	return blocked;
}

/* When the thread of M was certainly still in its calls, TSC, but no later than the trigger: until
 * its CPU was stopped it went on, and its state is that at the trigger. Its last time may be known
 * only roughly. */
static uint64_t last_certain(const struct report *r, const struct moment *m)
{
	const struct tally_branch *last = last_branch(m);
	/* MANIFEST_ABSENT is the greatest number. */
	const uint64_t trigger = tscmap_tsc(&r->d->replay->clock, r->now);
	const uint64_t end = MIN_OF(m->last->last_tsc, trigger);

	return last ? MIN_OF(last->tsc_lo, end) : end;
}

/* Whether one of the last branches is a return behind TSC. */
static bool has_returned(const struct tally_counters *c, uint64_t tsc)
{
	const uint64_t n = MIN_OF(c->n_last, (uint64_t)REPORT_LAST_BRANCHES);

	for (uint64_t i = 1; i <= n; i++) {
		const struct tally_branch *b = &c->last[(c->n_last - i) % REPORT_LAST_BRANCHES];

		if (b->kind == FLOW_RET && b->tsc_lo > tsc)
			return true;
	}
	return false;
}

/* Whether instance number I goes on calling others that return, 0 being the innermost: it got its
 * thread back not long ago, and calls take most of its time. WITHIN: so does the one within it. */
static bool goes_on(const struct report *r, const struct moment *m, size_t i, bool within)
{
	const struct open_call open = open_at(m->last, i);
	const struct function *f;
	uint64_t late;

	if (open.function == TALLY_NO_FUNCTION || open.function == 0 || open.begin.tsc == 0 ||
	    last_certain(r, m) <= open.begin.tsc)
		return within;
	f = &r->d->tally.functions.list[open.function];
	if (f->self_ticks >= f->total_ticks - f->total_ticks / 2)
		return false;
	late = last_certain(r, m) - (last_certain(r, m) - open.begin.tsc) / LOOP_PART;
	if (i == 0)
		return has_returned(m->last, late);
	return within || (!calls_at(&m->last->calls, i - 1)->signal &&
			  open_at(m->last, i - 1).begin.tsc > late);
}

static bool sleeps(const struct moment *m)
{
	return m->state->kind == REPORT_STATE_BLOCKED &&
	       (m->call == CALL_NANOSLEEP || m->call == CALL_CLOCK_NANOSLEEP);
}

/* Whether a call that is open since SINCE (perf ns), and took TOOK (ns), was executing, or is a
 * loop that tries again and again with a sleep between, where ENDED calls came back at once. */
static bool goes_nowhere(const struct report *r, const struct moment *m, uint64_t since,
			 uint64_t took, uint64_t ended)
{
	unsigned turns;
	const uint64_t blocked = blocked_since(r, m, since, &turns);

	if (sleeps(m))
		return ended >= RETRY_CALLS && turns >= RETRY_TURNS;
	return blocked <= took / 2;
}

/* Whether the instance has been executing for very long: CALLS that ended are the measure, or, if
 * there are none, what the thread did before. LOOP: the instance goes on calling others. SEEN:
 * since when the thread is known, TSC. */
static bool is_long(const struct report *r, const struct moment *m, const struct open_call *open,
		    bool loop, uint64_t seen, struct report_suspect *ret)
{
	const struct tscmap *clock = &r->d->replay->clock;
	const struct tally_counters *c = m->last;
	const struct function *f;
	const struct durations *d;
	uint64_t took, ended, since;

	if (open->function == TALLY_NO_FUNCTION || open->function == 0 || open->begin.tsc == 0 ||
	    last_certain(r, m) <= open->begin.tsc)
		return false;
	f = &r->d->tally.functions.list[open->function];
	d = suspects_durations(r, open->function);
	took = last_certain(r, m) - open->begin.tsc;
	since = tscmap_ns(clock, open->begin.tsc);
	ended = f->calls - f->unended;
	if (tscmap_span(clock, took) < LONG_NS)
		return false;
	if (ended > 0 ? took / LONG_TIMES < (d ? d->max : 0)
		      : loop || seen >= open->begin.tsc || took > open->begin.tsc - seen)
		return false;
	if (!goes_nowhere(r, m, since, tscmap_span(clock, took), ended))
		return false;
	ret->function = open->function;
	ret->since = since;
	ret->calls = ended;
	ret->longest_ns = tscmap_span(clock, d ? d->max : 0);
	ret->off_ns = tscmap_span(clock, MIN_OF(c->ticks - open->begin.ticks, took));
	return true;
}

/* Whether instance number I jumped to the one within it: it has no more to do. An interpreter of
 * byte code jumps from one instruction to the next. */
static bool has_jumped(const struct tally_counters *c, size_t i)
{
	return i > 0 && calls_at(&c->calls, i - 1)->from == CALLS_JUMP;
}

/* The innermost call that does not return. */
static int find_long(struct report *r, const struct moment *m)
{
	struct report_suspect s = suspect_of(SUSPECT_LONG_CALL, m);
	uint64_t end, begin = MAX_OF(suspects_begin(r, &end), m->thread->begin);
	const uint64_t seen = tscmap_tsc(&r->d->replay->clock, begin);
	bool loop = false;

	if (seen == MANIFEST_ABSENT || !m->state->certain)
		return 0;
	for (size_t i = 0; i <= calls_depth(&m->last->calls); i++) {
		const struct open_call open = open_at(m->last, i);

		loop = goes_on(r, m, i, loop);
		if (!has_jumped(m->last, i) && is_long(r, m, &open, loop, seen, &s))
			return suspects_add(r, &s);
	}
	return 0;
}

static bool is_unusual_wait(uint64_t call)
{
	return call == CALL_FLOCK || call == CALL_SEMOP || call == CALL_SEMTIMEDOP ||
	       call == CALL_WRITE || call == CALL_WRITEV;
}

static const struct timeline_thread *running_on(const struct moments *all, size_t cpu)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->list[i].state->kind == REPORT_STATE_RUNNING &&
		    all->list[i].state->certain && all->list[i].state->cpu == cpu)
			return all->list[i].thread;
	return NULL;
}

/* Whether M is alone in having run on the CPU that was stopped first, for most of the window. */
static bool ran_throughout(const struct report *r, const struct moments *all,
			   const struct moment *m)
{
	uint64_t end;
	const uint64_t begin = suspects_begin(r, &end);

	return r->m->cpus[m->state->cpu].stop_order == 0 && age(all, m) >= RAN_NS &&
	       age(all, m) >= (end - begin) / RAN_PART;
}

static int find_in_thread(struct report *r, const struct moments *all, const struct moment *m)
{
	const size_t before = r->n_suspects;
	struct report_suspect s;
	int result = 0;

	switch (m->state->kind) {
	case REPORT_STATE_RUNNING:
	case REPORT_STATE_RUNNABLE:
		if (m->last)
			result = find_long(r, m);
		if (m->state->kind == REPORT_STATE_RUNNABLE && age(all, m) >= RUNNABLE_NS) {
			s = suspect_of(SUSPECT_RUNNABLE, m);
			s.other = running_on(all, m->state->cpu);
		} else if (m->state->kind == REPORT_STATE_RUNNING && r->n_suspects == before &&
			   ran_throughout(r, all, m)) {
			s = suspect_of(SUSPECT_RAN, m);
		} else {
			return result;
		}
		break;
	case REPORT_STATE_BLOCKED:
		if (m->last && sleeps(m))
			return find_long(r, m);
		if (m->last && !is_unusual_wait(m->call))
			return suspects_stuck(r, m->state, m->last, m->call);
		if (!m->last || age(all, m) < WAIT_NS)
			return 0;
		s = suspect_of(SUSPECT_WAIT, m);
		s.count = m->call;
		s.address = m->last->ip;
		break;
	default: return 0;
	}
	return result == 0 ? suspects_add(r, &s) : result;
}

static bool is_told_runnable(const struct report *r, const struct timeline_thread *thread)
{
	for (size_t i = 0; i < r->n_suspects; i++)
		if (r->suspects[i].kind == SUSPECT_RUNNABLE && r->suspects[i].thread == thread)
			return true;
	return false;
}

static int find_waits(struct report *r, const struct moments *all)
{
	CLEANUP_FREE const struct report_state **states = calloc(all->n + 1, sizeof(*states));
	size_t n = 0;

	if (!states)
		return -ENOMEM;
	for (size_t i = 0; i < all->n; i++)
		if (!is_told_runnable(r, all->list[i].thread))
			states[n++] = all->list[i].state;
	return suspects_waits(r, states, n);
}

int suspects_threads(struct report *r)
{
	struct moments all;
	int result;

	if (r->now == MANIFEST_ABSENT)
		return 0;
	result = collect(r, &all);
	if (result == 0)
		result = find_in_processes(r, &all);
	for (size_t i = 0; i < all.n && result == 0; i++)
		result = find_in_thread(r, &all, &all.list[i]);
	if (result == 0)
		result = find_waits(r, &all);
	free(all.list);
	free(all.missing);
	return result;
}
