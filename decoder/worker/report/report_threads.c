/*
 * The threads: what each executed, how it got to where it was at the trigger.
 *
 * A thread's counters are joined here: counters add up, the last branches of all are merged by
 * time, and the stack is that of the CPU on which it was seen last.
 */
#include <stdlib.h>

#include "decoder/worker/count/tally.h"
#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"

static const char *kind_name(uint8_t kind)
{
	static const char *const names[] = {
		[FLOW_COND] = "cond",	      [FLOW_JUMP] = "jump",	    [FLOW_CALL] = "call",
		[FLOW_JUMP_IND] = "jump-ind", [FLOW_CALL_IND] = "call-ind", [FLOW_RET] = "ret",
		[FLOW_FAR] = "far",	      [FLOW_SYSCALL] = "syscall",   [FLOW_ASYNC] = "async",
		[FLOW_ENABLE] = "enable",     [FLOW_DISABLE] = "disable",
	};

	return names[kind];
}

static void write_branch(const struct report *r, struct json_writer *w,
			 const struct tally_branch *b)
{
	json_begin_object(w, NULL);
	report_address(r, w, "from", b->from);
	report_address(r, w, "to", b->to);
	json_string(w, "kind", kind_name(b->kind));
	report_name(r, w, "fromName", b->context, b->from);
	report_name(r, w, "toName", b->context, b->to);
	report_line(r, w, "fromSource", b->context, b->from);
	report_line(r, w, "toSource", b->context, b->to);
	report_when(r, w, b->tsc_lo, b->tsc_hi);
	json_end_object(w);
}

/* The newest branch not yet taken of the counters [first, end), of which TAKEN says how many; NULL:
 * none is left. */
static const struct tally_branch *newest(const struct report_thread *t, uint64_t *taken)
{
	const struct tally_branch *best = NULL;
	size_t i, from = 0;

	for (i = t->first; i < t->end; i++) {
		const struct tally_counters *counters = t->tally->threads[i];
		uint64_t n = MIN_OF(counters->n_last, (uint64_t)REPORT_LAST_BRANCHES);
		const struct tally_branch *b;

		if (taken[i - t->first] == n)
			continue;
		b = &counters->last[(counters->n_last - 1 - taken[i - t->first]) %
				    REPORT_LAST_BRANCHES];
		if (best == NULL || b->tsc_lo > best->tsc_lo) {
			best = b;
			from = i - t->first;
		}
	}
	if (best != NULL)
		taken[from]++;
	return best;
}

static void write_last_branches(const struct report *r, struct json_writer *w,
				const struct report_thread *t)
{
	const struct tally_branch *list[REPORT_LAST_BRANCHES];
	CLEANUP_FREE uint64_t *taken = calloc(t->end - t->first, sizeof(*taken));
	size_t n = 0;

	json_begin_array(w, "lastBranches");
	while (taken != NULL && n < r->branches_kept) {
		list[n] = newest(t, taken);
		if (list[n] == NULL)
			break;
		n++;
	}
	while (n-- > 0)
		write_branch(r, w, list[n]);
	json_end_array(w);
}

static void write_frame(const struct report *r, struct json_writer *w,
			const struct tally_counters *counters, uint64_t address)
{
	struct report_place place;

	if (!permit_address(r->d->replay->permit, address))
		return;
	report_place(r, counters->context, address, &place);
	json_begin_object(w, NULL);
	json_hex(w, "address", address);
	json_string(w, "name", place.name[0] != '\0' ? place.name : NULL);
	report_linkage(r, w, place.linkage);
	report_image_ref(r, w, place.image);
	report_u64(w, "offset", place.offset);
	report_source_outer(r, w, place.image, place.at);
	report_inlined(r, w, place.image, place.at);
	json_end_object(w);
}

static void write_stack(const struct report *r, struct json_writer *w,
			const struct tally_counters *counters)
{
	size_t i, depth;

	if (counters == NULL || counters->ip == 0) {
		json_null(w, "stack");
		return;
	}
	depth = MIN_OF(calls_depth(&counters->calls), (size_t)REPORT_MAX_STACK - 1);
	json_begin_array(w, "stack");
	write_frame(r, w, counters, counters->ip);
	for (i = 0; i < depth; i++)
		write_frame(r, w, counters, calls_at(&counters->calls, i)->from);
	json_end_array(w);
}

static void write_transactions(struct json_writer *w, const struct report_thread *t)
{
	struct marks_transactions sum = {0};
	size_t i;

	for (i = t->first; i < t->end; i++) {
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

/* What called what ran may have been called before what was decoded begins, unless the thread was
 * made later, as a FORK record says. */
static bool has_older_frames(const struct report *r, const struct report_thread *t)
{
	const uint64_t begin = report_all_begin_ns(r->d);

	return t->known == REPORT_LAST_STRETCH || t->thread == NULL || begin == MANIFEST_ABSENT ||
	       t->thread->ppid == UINT32_MAX || t->thread->begin <= begin;
}

static void write_window(const struct report *r, struct json_writer *w,
			 const struct report_thread *t)
{
	if (t->known == REPORT_UNTRACED) {
		json_null(w, "window");
		json_null(w, "olderFrames");
		return;
	}
	json_string(w, "window", t->known == REPORT_DECODED ? "decoded" : "last-stretch");
	json_boolean(w, "olderFrames", has_older_frames(r, t));
}

static void report_thread(const struct report *r, struct json_writer *w, size_t i)
{
	const struct report_thread *t = &r->threads[i];
	const struct tally_counters *last =
		t->end > t->first ? t->tally->threads[t->end - 1] : NULL;
	const struct timeline_thread *thread = t->thread;
	uint64_t now = r->m->perf_ns == MANIFEST_ABSENT ? SPACE_NOW - 1 : r->m->perf_ns;

	json_begin_object(w, NULL);
	report_u64(w, "pid", thread != NULL ? thread->pid : MANIFEST_ABSENT);
	report_u64(w, "tid", thread != NULL ? thread->tid : MANIFEST_ABSENT);
	report_string_cut(w, "comm", thread != NULL ? report_comm(r, thread, now) : NULL,
			  REPORT_MAX_STRING);
	json_u64(w, "instructions", t->insns);
	json_u64(w, "branches", t->branches);
	if (last == NULL)
		json_u64(w, "cpuNSec", t->cpu_ns);
	else if (last->last_tsc == 0)
		json_null(w, "cpuNSec");
	else
		report_span(r, w, "cpuNSec", t->ticks);
	write_transactions(w, t);
	write_last_branches(r, w, t);
	write_stack(r, w, last);
	if (r->d->window.limited)
		write_window(r, w, t);
	json_end_object(w);
}

static bool is_empty(const struct tally_counters *counters)
{
	return counters->n_last == 0 && counters->insns == 0;
}

/* Whether the decoded part has something of THREAD: one whose last stretch was looked for may have
 * come into it. Lanes are in order of tid, nobody's first. */
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

static bool is_left_out(const struct report *r, const struct tally_counters *counters,
			enum report_known known)
{
	if (is_empty(counters) || known == REPORT_DECODED)
		return is_empty(counters);
	return counters->thread == NULL || is_decoded(&r->d->tally, counters->thread);
}

/* Lanes of T without anything in them come last in their thread's and make no thread of their own.
 * There are N so far. */
static size_t collect(struct report *r, const struct tally *t, enum report_known known, size_t n)
{
	size_t i;

	for (i = 0; i < t->n_threads; i++) {
		const struct tally_counters *counters = t->threads[i];
		size_t frames = counters->ip != 0 ? calls_depth(&counters->calls) + 1 : 0;

		if (is_left_out(r, counters, known))
			continue;
		if (n == 0 || r->threads[n - 1].tally != t ||
		    t->threads[r->threads[n - 1].first]->thread != counters->thread)
			r->threads[n++] = (struct report_thread){
				.known = known, .tally = t, .first = i, .thread = counters->thread};
		r->threads[n - 1].end = i + 1;
		r->threads[n - 1].insns += counters->insns;
		r->threads[n - 1].branches += counters->branches;
		r->threads[n - 1].ticks += counters->ticks;
		r->branches_total += MIN_OF(counters->n_last, (uint64_t)REPORT_LAST_BRANCHES);
		r->frames_total += frames;
		r->frames_kept += MIN_OF(frames, (size_t)REPORT_MAX_STACK);
	}
	return n;
}

static size_t add_untraced(struct report_thread *to, const struct report_share *shares, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		to[i] = (struct report_thread){.known = REPORT_UNTRACED,
					       .first = SIZE_MAX,
					       .end = SIZE_MAX,
					       .thread = shares[i].thread,
					       .cpu_ns = shares[i].ns};
	return n;
}

/* What was traced goes before what was not. */
static int compare_threads(const void *a, const void *b)
{
	const struct report_thread *x = a, *y = b;

	if (x->known != y->known)
		return x->known < y->known ? -1 : 1;
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
	r->threads = calloc(r->d->tally.n_threads + r->d->past.n_threads + n_shares + 1,
			    sizeof(*r->threads));
	if (r->threads == NULL)
		return -ENOMEM;
	n = collect(r, &r->d->tally, REPORT_DECODED, 0);
	if (!r->d->window.complete)
		n = collect(r, &r->d->past, REPORT_LAST_STRETCH, n);
	n += add_untraced(r->threads + n, shares, n_shares);
	qsort(r->threads, n, sizeof(*r->threads), compare_threads);
	r->lists[REPORT_THREADS] = (struct report_list){"threads", n, 0, report_thread, false};
	return 0;
}
