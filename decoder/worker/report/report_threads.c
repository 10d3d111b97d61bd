/*
 * The threads: what each executed, its last branches, and its stack at the trigger.
 *
 * The counters of one thread add up, its last branches are merged by time, and the stack is that of
 * the counters that come last.
 */
#include <stdlib.h>

#include "decoder/worker/count/tally.h"
#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"

static void write_branch(const struct report *r, struct json_writer *w,
			 const struct tally_branch *b)
{
	static const char *const kinds[] = {
		[FLOW_COND] = "cond",	      [FLOW_JUMP] = "jump",	    [FLOW_CALL] = "call",
		[FLOW_JUMP_IND] = "jump-ind", [FLOW_CALL_IND] = "call-ind", [FLOW_RET] = "ret",
		[FLOW_FAR] = "far",	      [FLOW_SYSCALL] = "syscall",   [FLOW_ASYNC] = "async",
		[FLOW_ENABLE] = "enable",     [FLOW_DISABLE] = "disable",   [FLOW_GAP] = "gap",
	};

	json_begin_object(w, NULL);
	report_place(r, w, "from", b->context, b->from);
	report_place(r, w, "to", b->context, b->to);
	json_string(w, "kind", kinds[b->kind]);
	if (b->kind == FLOW_GAP)
		json_string(w, "gap", fault_name((enum fault)b->fault));
	report_when(r, w, b->tsc_lo, b->tsc_hi);
	json_end_object(w);
}

/* Takes the newest branch that is left in the counters [first, end); NULL: none is left. TAKEN says
 * how many branches were taken of each. */
static const struct tally_branch *newest(const struct report_thread *t, uint64_t *taken)
{
	const struct tally_branch *best = NULL;
	size_t from = 0;

	for (size_t i = t->first; i < t->end; i++) {
		const struct tally_counters *counters = t->tally->threads[i];
		uint64_t n = MIN_OF(counters->n_last, (uint64_t)REPORT_LAST_BRANCHES);
		const struct tally_branch *b;

		if (taken[i - t->first] == n)
			continue;
		b = &counters->last[(counters->n_last - 1 - taken[i - t->first]) %
				    REPORT_LAST_BRANCHES];
		if (!best || b->tsc_lo > best->tsc_lo) {
			best = b;
			from = i - t->first;
		}
	}
	if (best)
		taken[from]++;
	return best;
}

static void write_last_branches(const struct report *r, struct json_writer *w,
				const struct report_thread *t, uint64_t kept)
{
	const struct tally_branch *list[REPORT_LAST_BRANCHES];
	CLEANUP_FREE uint64_t *taken = calloc(t->end - t->first, sizeof(*taken));
	size_t n = 0;

	json_begin_array(w, "lastBranches");
	while (taken && n < kept) {
		list[n] = newest(t, taken);
		if (!list[n])
			break;
		n++;
	}
	while (n-- > 0)
		write_branch(r, w, list[n]);
	json_end_array(w);
}

uint64_t report_branches_kept(const struct report *r, size_t i)
{
	if (i >= r->branches_threads)
		return 0;
	return MIN_OF(r->threads[i].last_branches, (uint64_t)r->branches_kept);
}

static void write_frame(const struct report *r, struct json_writer *w,
			const struct tally_counters *counters, uint64_t address)
{
	if (permit_address(r->d->replay->permit, address))
		report_place(r, w, NULL, counters->context, address);
}

static void write_stack(const struct report *r, struct json_writer *w,
			const struct tally_counters *counters)
{
	size_t depth;

	if (!counters || counters->ip == 0) {
		json_null(w, "stack");
		return;
	}
	depth = MIN_OF(calls_depth(&counters->calls), (size_t)REPORT_MAX_STACK - 1);
	json_begin_array(w, "stack");
	write_frame(r, w, counters, counters->ip);
	for (size_t i = 0; i < depth; i++)
		if (calls_at(&counters->calls, i)->from != CALLS_JUMP)
			write_frame(r, w, counters, calls_at(&counters->calls, i)->from);
	json_end_array(w);
}

static void write_transactions(struct json_writer *w, const struct report_thread *t)
{
	struct marks_transactions sum = {0};

	for (size_t i = t->first; i < t->end; i++) {
		const struct marks_transactions *of = &t->tally->threads[i]->transactions;

		sum.begun += of->begun;
		sum.committed += of->committed;
		sum.aborted += of->aborted;
	}
	if (sum.begun == 0 && sum.committed == 0 && sum.aborted == 0) {
		json_null(w, "transactions");
		return;
	}
	json_begin_object(w, "transactions");
	json_u64(w, "begun", sum.begun);
	json_u64(w, "committed", sum.committed);
	json_u64(w, "aborted", sum.aborted);
	json_end_object(w);
}

/* Whether some threads were decoded apart from the window. */
static bool has_parts(const struct report *r)
{
	return r->d->window.limited || r->d->window.searched;
}

static void report_thread(const struct report *r, struct json_writer *w, size_t i)
{
	const struct report_thread *t = &r->threads[i];
	const struct tally_counters *last =
		t->end > t->first ? t->tally->threads[t->end - 1] : NULL;
	const struct timeline_thread *thread = t->thread;
	uint64_t now = r->m->perf_ns == MANIFEST_ABSENT ? SPACE_NOW - 1 : r->m->perf_ns;

	json_begin_object(w, NULL);
	report_u64(w, "pid", thread ? thread->pid : MANIFEST_ABSENT);
	report_u64(w, "tid", thread ? thread->tid : MANIFEST_ABSENT);
	report_string_cut(w, "comm", thread ? report_comm(r, thread, now) : NULL,
			  REPORT_MAX_STRING);
	json_u64(w, "instructions", t->insns);
	json_u64(w, "branches", t->branches);
	if (!last)
		json_u64(w, "cpuNSec", t->cpu_ns);
	else if (last->last_tsc == 0)
		json_null(w, "cpuNSec");
	else
		report_span(r, w, "cpuNSec", t->ticks);
	if (last)
		report_ipc(r, w, t->insns, t->ticks);
	write_transactions(w, t);
	write_last_branches(r, w, t, report_branches_kept(r, i));
	write_stack(r, w, last);
	report_write_state(r, w, thread, last);
	if (has_parts(r) && t->known >= REPORT_UNTRACED) {
		json_null(w, "window");
		json_null(w, "olderFrames");
	} else if (has_parts(r)) {
		uint64_t begin = report_all_begin_ns(r->d);
		/* Functions on the stack may have been called before the window, unless a FORK
		 * record says that the thread was made within the window. */
		bool older = t->known == REPORT_LAST_STRETCH || !thread ||
			     begin == MANIFEST_ABSENT || thread->ppid == UINT32_MAX ||
			     thread->begin <= begin;

		json_string(w, "window", t->known == REPORT_DECODED ? "decoded" : "last-stretch");
		json_boolean(w, "olderFrames", older);
	}
	json_end_object(w);
}

static bool is_empty(const struct tally_counters *counters)
{
	return counters->n_last == 0 && counters->insns == 0;
}

/* Whether the window has something of THREAD, whose last stretch was looked for before the window.
 * Threads are in order of tid, unknown threads first. */
static bool is_decoded(const struct tally *t, const struct timeline_thread *thread)
{
	size_t from =
		FIRST_WHERE(i, t->n_threads,
			    t->threads[i]->thread && t->threads[i]->thread->tid >= thread->tid);

	for (; from < t->n_threads && t->threads[from]->thread->tid == thread->tid; from++)
		if (t->threads[from]->thread == thread)
			return !is_empty(t->threads[from]);
	return false;
}

/* Adds the threads of T, which are KNOWN, to the N threads so far; returns the new number. Counters
 * with nothing in them make no thread. */
static size_t collect(struct report *r, const struct tally *t, enum report_known known, size_t n)
{
	for (size_t i = 0; i < t->n_threads; i++) {
		const struct tally_counters *counters = t->threads[i];
		size_t frames = counters->ip != 0 ? calls_depth(&counters->calls) + 1 : 0;

		if (is_empty(counters))
			continue;
		if (known != REPORT_DECODED &&
		    (!counters->thread || is_decoded(&r->d->tally, counters->thread)))
			continue;
		if (n == 0 || r->threads[n - 1].tally != t ||
		    t->threads[r->threads[n - 1].first]->thread != counters->thread)
			r->threads[n++] = (struct report_thread){
				.known = known, .tally = t, .first = i, .thread = counters->thread};
		r->threads[n - 1].end = i + 1;
		r->threads[n - 1].insns += counters->insns;
		r->threads[n - 1].branches += counters->branches;
		r->threads[n - 1].ticks += counters->ticks;
		r->threads[n - 1].last_branches =
			MIN_OF(r->threads[n - 1].last_branches + counters->n_last,
			       (uint64_t)REPORT_LAST_BRANCHES);
		r->threads[n - 1].frames = frames;
	}
	return n;
}

static int by_pid(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int by_rank(const void *a, const void *b)
{
	const struct report_thread *x = a, *y = b;

	return x->rank > y->rank ? -1 : x->rank < y->rank;
}

/* Whether the thread of S, of which there is no code, belongs to the last moment: it is a thread of
 * a program that is not excluded, and was there within what the report is about. */
static bool is_of_interest(const struct report *r, const struct report_state *s, uint64_t since)
{
	const struct timeline *timeline = r->d->replay->timeline;
	const struct space *space = timeline_space(timeline, s->thread->pid, r->m->perf_ns);

	if (s->kind == REPORT_STATE_EXITED && s->left < since)
		return false;
	return space && space_is_mapped(space, r->m->perf_ns) &&
	       permit_thread(r->d->replay->permit, s->thread,
			     s->seen ? s->ran : s->thread->begin) == PERMIT_YES;
}

/* The pids of the N threads so far that have code, sorted; the caller's. NULL: no memory. */
static uint32_t *pids_with_code(const struct report *r, size_t n, size_t *ret_n)
{
	uint32_t *pids = calloc(n + 1, sizeof(*pids));

	*ret_n = 0;
	for (size_t i = 0; pids && i < n; i++)
		if (r->threads[i].known <= REPORT_LAST_STRETCH && r->threads[i].thread)
			pids[(*ret_n)++] = r->threads[i].thread->pid;
	if (pids)
		qsort(pids, *ret_n, sizeof(*pids), by_pid);
	return pids;
}

/* Adds threads of which nothing was decoded to the N so far; *ret_n is the new number. 0 or
 * -ENOMEM. */
static int add_waited(struct report *r, size_t n, size_t *ret_n)
{
	CLEANUP_FREE uint32_t *pids = NULL;
	const size_t first = n;
	uint64_t since = UINT64_MAX;
	size_t n_pids;

	*ret_n = n;
	pids = pids_with_code(r, n, &n_pids);
	if (!pids)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		report_state_mark(r, r->threads[i].thread);
	for (size_t i = 0; i < r->m->n_cpus; i++)
		since = MIN_OF(since, report_reach(r, i).begin);
	for (size_t i = 0; i < r->n_states; i++) {
		const struct report_state *s = &r->states[i];
		const uint32_t pid = s->thread->pid;

		if (s->listed || !is_of_interest(r, s, since))
			continue;
		r->threads[n++] = (struct report_thread){
			.known = REPORT_WAITED,
			.first = SIZE_MAX,
			.end = SIZE_MAX,
			.thread = s->thread,
			.rank = s->left / 2 + (bsearch(&pid, pids, n_pids, sizeof(pid), by_pid)
						       ? UINT64_MAX / 2
						       : 0),
		};
	}
	r->waited_total = n - first;
	qsort(r->threads + first, n - first, sizeof(*r->threads), by_rank);
	*ret_n = MIN_OF(n, first + REPORT_MAX_WAITED);
	return 0;
}

/* Traced threads come before others. */
static int compare_threads(const void *a, const void *b)
{
	const struct report_thread *x = a, *y = b;

	if (x->known != y->known)
		return x->known < y->known ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? 1 : -1;
	if (x->insns != y->insns)
		return x->insns < y->insns ? 1 : -1;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns < y->cpu_ns ? 1 : -1;
	if (x->thread->tid != y->thread->tid)
		return x->thread->tid < y->thread->tid ? -1 : 1;
	return x->thread->begin < y->thread->begin ? -1 : x->thread->begin > y->thread->begin;
}

int report_prepare_threads(struct report *r)
{
	CLEANUP_FREE struct report_share *shares = NULL;
	size_t n, n_shares;

	tally_sort(&r->d->tally);
	if (r->d->past.n_threads > 0)
		tally_sort(&r->d->past);
	if (report_untraced(r, &shares, &n_shares) < 0)
		return -ENOMEM;
	r->threads =
		calloc(r->d->tally.n_threads + r->d->past.n_threads + n_shares + r->n_states + 1,
		       sizeof(*r->threads));
	if (!r->threads)
		return -ENOMEM;
	n = collect(r, &r->d->tally, REPORT_DECODED, 0);
	if (r->d->past.n_threads > 0)
		n = collect(r, &r->d->past, REPORT_LAST_STRETCH, n);
	for (size_t i = 0; i < n_shares; i++)
		r->threads[n++] = (struct report_thread){.known = REPORT_UNTRACED,
							 .first = SIZE_MAX,
							 .end = SIZE_MAX,
							 .thread = shares[i].thread,
							 .cpu_ns = shares[i].ns};
	if (add_waited(r, n, &n) < 0)
		return -ENOMEM;
	qsort(r->threads, n, sizeof(*r->threads), compare_threads);
	for (size_t i = 0; i < n; i++) {
		r->branches_total += r->threads[i].last_branches;
		r->frames_total += r->threads[i].frames;
	}
	r->lists[REPORT_THREADS] =
		(struct report_list){.key = "threads", .total = n, .element = report_thread};
	return 0;
}
