/*
 * Knows functions that take locks by their names, and finds locks that many calls had to wait for:
 * contention, where each wait may be short.
 */
#include <stdlib.h>
#include <string.h>

#include "decoder/worker/report/report_suspects.h"
#include "proto/base.h"

#define MAX_OF_KIND 2u

#define WAIT_NS	      50000u /* a call that took so long has waited */
#define WAITS	      30u
#define WAITED_NS     20000000u /* all waits together, at least, */
#define EXECUTED_PART 10u	/* and so large a part of what all code executed */

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

bool suspects_is_mutex(const char *name)
{
	static const char *const names[] = {
		"pthread_mutex_lock",	      "__pthread_mutex_lock",
		"___pthread_mutex_lock",      "pthread_mutex_clocklock",
		"pthread_mutex_timedlock",    "__pthread_mutex_cond_lock",
		"___pthread_mutex_timedlock", "___pthread_mutex_clocklock",
	};

	return suspects_is_one_of(name, names, ARRAY_SIZE(names));
}

bool suspects_is_lock_function(const char *name)
{
	static const char *const names[] = {"__lll_lock_wait"};

	return suspects_is_lock(name) || suspects_is_private_lock(name) ||
	       suspects_is_one_of(name, names, ARRAY_SIZE(names));
}

static uint64_t executed(const struct report *r)
{
	const struct tally *t = &r->d->tally;
	uint64_t ticks = 0;

	for (size_t i = 0; i < t->n_threads; i++)
		ticks += t->threads[i]->ticks;
	return ticks;
}

/* The functions within whose slowest call the slowest call of S lies, innermost first. */
static void find_callers(const struct report *r, struct report_suspect *s)
{
	const struct functions *f = &r->d->tally.functions;

	for (uint32_t i = 1; i < f->n; i++) {
		const struct durations *d = suspects_durations(r, i);
		size_t at = 0;

		if (!d || i == s->function || !d->slowest.thread ||
		    !suspects_is_within(d, suspects_durations(r, s->function)))
			continue;
		while (at < s->n_inside && suspects_is_longer(r, i, s->inside[at]))
			at++;
		if (at == SUSPECT_INSIDE)
			continue;
		s->n_inside = MIN_OF(s->n_inside + 1, (size_t)SUSPECT_INSIDE);
		for (size_t k = s->n_inside - 1; k > at; k--) {
			s->inside[k] = s->inside[k - 1];
			s->inside_ns[k] = s->inside_ns[k - 1];
		}
		s->inside[at] = i;
		s->inside_ns[at] = suspects_span(r, d->slowest.ticks);
	}
}

static int look_at(struct report *r, uint32_t function)
{
	const struct function *f = &r->d->tally.functions.list[function];
	const struct durations *d = suspects_durations(r, function);
	const unsigned octave = suspects_octave(r, WAIT_NS);
	struct report_suspect s = {.kind = SUSPECT_CONTENTION, .function = function};
	uint64_t last;

	if (!d || !d->slowest.thread || !f->name ||
	    !(suspects_is_lock(f->name) || suspects_is_private_lock(f->name)))
		return 0;
	s.count = durations_slower(d, octave, &last);
	s.off_ns = suspects_span(r, suspects_least_sum(d, octave));
	s.usual_ns = suspects_span(r, executed(r));
	if (s.count < WAITS || s.off_ns < WAITED_NS || s.off_ns < s.usual_ns / EXECUTED_PART)
		return 0;
	s.thread = d->slowest.thread;
	s.since = tscmap_ns(&r->d->replay->clock, d->slowest.tsc);
	if (!report_permits(r, s.thread, s.since))
		return 0;
	s.until = last == 0 ? MANIFEST_ABSENT : tscmap_ns(&r->d->replay->clock, last);
	s.calls = f->calls - f->unended;
	s.limit_ns = suspects_span(r, UINT64_C(1) << octave);
	s.longest_ns = suspects_span(r, d->slowest.ticks);
	find_callers(r, &s);
	return suspects_add(r, &s);
}

int suspects_locks(struct report *r)
{
	const size_t before = r->n_suspects;
	int result = 0;

	/* A user is not told what others wait for. */
	for (uint32_t i = 1; i < r->d->tally.functions.n && result == 0 && !report_is_limited(r) &&
			     r->n_suspects < before + MAX_OF_KIND;
	     i++)
		result = look_at(r, i);
	return result;
}
