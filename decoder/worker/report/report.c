/*
 * Writes a report: measures its lists, decides what is cut, and streams the parts in order.
 *
 * The functions that write the elements of a list also measure them. Each list has a share of the
 * room, and what it does not need goes to others, the most important first.
 */
#include "decoder/worker/report/report.h"

#include <stdio.h>
#include <stdlib.h>

#include "decoder/code/insn.h"
#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"
#include "proto/report.h"

/* "cut" is measured with all lists empty, when it has all its lines with 0 kept. The final numbers
 * are longer than 0. */
#define CUT_RESERVE 256u
/* Each list gets at least one of so many parts of the room, and so do the last branches. */
#define SHARES (REPORT_N_LISTS + 4u)
/* Fewer last branches of a thread say little; then fewer threads have them. */
#define LEAST_BRANCHES 8u
/* A single element is far smaller (strings are cut). */
#define SCRATCH_LIMIT (16u << 20)

static void write_list(const struct report *r, struct json_writer *w, enum report_list_id id)
{
	const struct report_list *l = &r->lists[id];

	json_begin_array(w, l->key);
	for (size_t i = 0; i < l->kept; i++)
		l->element(r, w, l->newest_first ? l->kept - 1 - i : i);
	json_end_array(w);
}

/* The length of a list, including what has no element. */
static uint64_t list_total(const struct report *r, enum report_list_id id)
{
	switch (id) {
	case REPORT_GAPS: return r->d->gaps.total;
	case REPORT_THREADS:
		return r->lists[id].total + r->waited_total -
		       MIN_OF(r->waited_total, (uint64_t)REPORT_MAX_WAITED);
	case REPORT_TURNS: return r->turns_total;
	case REPORT_ABORTS: return r->d->marks.lists[MARKS_ABORTS].total;
	case REPORT_INTERRUPTS: return r->d->marks.lists[MARKS_INTERRUPTS].total;
	case REPORT_POWER: return r->d->marks.lists[MARKS_POWER].total;
	case REPORT_FREQUENCIES: return r->d->marks.lists[MARKS_FREQUENCIES].total;
	case REPORT_PTWRITES: return r->d->marks.lists[MARKS_PTWRITES].total;
	default: return r->lists[id].total;
	}
}

static void write_cut(const struct report *r, struct json_writer *w)
{
	const struct decode *d = r->d;
	uint64_t branches = 0, frames = 0;

	for (size_t i = 0; i < r->lists[REPORT_THREADS].kept; i++) {
		branches += report_branches_kept(r, i);
		frames += MIN_OF(r->threads[i].frames, (size_t)REPORT_MAX_STACK);
	}
	json_begin_array(w, "cut");
	for (size_t i = 0; i < REPORT_N_LISTS; i++) {
		const struct report_list *l = &r->lists[i];

		report_cut_line(w, l->key, l->kept, list_total(r, i));
	}
	report_cut_line(w, "lastBranches", branches, r->branches_total);
	report_cut_line(w, "stack", frames, r->frames_total);
	report_cut_line(w, "functionsUnlisted", 0, d->tally.functions.refused);
	report_cut_line(w, "threadsUnlisted", 0, d->tally.threads_refused);
	json_end_array(w);
}

static void write_all(const struct report *r, struct json_writer *w)
{
	json_begin_object(w, NULL);
	json_string(w, "schemaVersion", REPORT_SCHEMA_VERSION);
	json_begin_object(w, "generator");
	json_string(w, "name", "ptsnap-decode");
	json_string(w, "version", r->version);
	json_end_object(w);
	json_string(w, "id", r->m->id);
	report_host(r, w);
	report_trigger(r, w);
	report_configuration(r, w);
	report_trace(r, w);
	report_errata(r, w);
	report_window(r, w);
	if (r->options->no_symbols)
		json_boolean(w, "namesLeftOut", true);
	if (report_is_limited(r))
		json_u64(w, "onlyUid", r->d->replay->permit->uid);
	if (r->d->window.limited)
		report_decoded(r, w);
	report_slice(r, w);
	write_list(r, w, REPORT_SUSPECTS);
	write_list(r, w, REPORT_CPUS);
	report_coverage(r, w);
	report_totals(r, w);
	report_event_counts(r, w);
	write_list(r, w, REPORT_GAPS);
	write_list(r, w, REPORT_PROCESSES);
	write_list(r, w, REPORT_THREADS);
	write_list(r, w, REPORT_TURNS);
	write_list(r, w, REPORT_PTWRITES);
	write_list(r, w, REPORT_FREQUENCIES);
	write_list(r, w, REPORT_POWER);
	write_list(r, w, REPORT_INTERRUPTS);
	write_list(r, w, REPORT_ABORTS);
	write_list(r, w, REPORT_FUNCTIONS);
	write_list(r, w, REPORT_IMAGES);
	report_places(r, w);
	write_cut(r, w);
	json_end_object(w);
}

/* Keeps the further elements of L that fit into BUDGET bytes, together with the places that no
 * element before them mentions. *RET_SPENT is what they take. 0 or -ENOMEM. */
static int measure(const struct report *r, struct report_list *l, uint64_t budget,
		   uint64_t *ret_spent)
{
	const struct report_places_mark first = report_places_mark(r);
	uint64_t elements = 0;
	CLEANUP(bytes_out_done) struct bytes_out out;
	CLEANUP(json_writer_freep) struct json_writer *w = NULL;

	bytes_out_init(&out, SCRATCH_LIMIT);
	if (json_writer_new_bytes(&out, r->options->pretty, &w) < 0)
		return -ENOMEM;
	json_begin_object(w, NULL);
	json_begin_array(w, l->key);
	*ret_spent = 0;
	while (l->kept < l->total) {
		const struct report_places_mark before = report_places_mark(r);

		bytes_out_reset(&out);
		l->element(r, w, l->kept);
		if (out.error == -ENOMEM || report_places_error(r) < 0)
			return -ENOMEM;
		elements += out.size;
		if (elements + (report_places_mark(r).bytes - first.bytes) > budget) {
			report_places_forget(r, before);
			break;
		}
		*ret_spent = elements + (report_places_mark(r).bytes - first.bytes);
		l->bytes += out.size;
		l->kept++;
	}
	return 0;
}

/* The size of the parts that are never cut, and of the empty lists. */
static int measure_rest(const struct report *r, uint64_t *ret_bytes)
{
	CLEANUP(bytes_out_done) struct bytes_out out;
	CLEANUP(json_writer_freep) struct json_writer *w = NULL;

	bytes_out_init(&out, SIZE_MAX / 2);
	if (json_writer_new_bytes(&out, r->options->pretty, &w) < 0)
		return -ENOMEM;
	write_all(r, w);
	*ret_bytes = out.size;
	return json_writer_finish(w);
}

/* Keeps the elements of L that fit into GIVEN bytes of *LEFT besides those that L has already. */
static int fit(const struct report *r, struct report_list *l, uint64_t given, uint64_t *left)
{
	uint64_t spent;
	int result = measure(r, l, given, &spent);

	if (result == 0)
		*left -= spent;
	return result;
}

static int fit_lists(struct report *r, enum report_list_id first, enum report_list_id last,
		     uint64_t share, uint64_t *left)
{
	int result = 0;

	for (enum report_list_id i = first; i <= last && result == 0; i++)
		result = fit(r, &r->lists[i], *left / share, left);
	return result;
}

/* Keeps as many last branches as fit into GIVEN bytes of *LEFT: the same number for all threads, or
 * the least number for the first threads. */
static int fit_branches(struct report *r, uint64_t given, uint64_t *left)
{
	const struct report_places_mark before = report_places_mark(r);
	struct report_list *l = &r->lists[REPORT_THREADS];
	uint64_t spent;
	int result = 0;

	r->branches_kept = REPORT_LAST_BRANCHES;
	r->branches_threads = SIZE_MAX;
	while (result == 0 && r->branches_threads > 0) {
		struct report_list all = *l;

		all.total = l->kept;
		all.kept = 0;
		all.bytes = 0;
		result = measure(r, &all, l->bytes + given, &spent);
		if (result == 0 && all.kept == all.total) {
			*left -= spent - l->bytes;
			l->bytes = all.bytes;
			break;
		}
		report_places_forget(r, before);
		if (r->branches_kept > LEAST_BRANCHES)
			r->branches_kept /= 2;
		else
			r->branches_threads = MIN_OF(r->branches_threads, l->kept) / 2;
	}
	return result;
}

/* Each list, and the last branches together, have a share that no other list can take. What they
 * leave is divided: each takes up to half of what those before it left, the last branches up to
 * three quarters, and then the first of them take the rest. */
static int plan_within(struct report *r, uint64_t limit)
{
	uint64_t rest = 0, left, share;
	int result;

	r->measuring = true;
	result = report_places_measure(r);
	if (result == 0)
		result = measure_rest(r, &rest);
	if (result < 0)
		return result;
	if (rest + CUT_RESERVE > limit)
		return -E2BIG;
	left = limit - rest - CUT_RESERVE;
	share = left / SHARES;
	r->branches_threads = 0;
	for (int i = 0; i < REPORT_N_LISTS && result == 0; i++)
		result = fit(r, &r->lists[i], share, &left);
	left -= share;
	if (result == 0)
		result = fit_lists(r, REPORT_SUSPECTS, REPORT_FUNCTIONS, 2, &left);
	left += share;
	if (result == 0)
		result = fit_branches(r, share + (left - share) / 4 * 3, &left);
	if (result == 0)
		result = fit_lists(r, REPORT_ABORTS, REPORT_TURNS, 2, &left);
	if (result == 0)
		result = fit_lists(r, REPORT_SUSPECTS, REPORT_TURNS, 1, &left);
	r->measuring = false;
	report_places_forget(r, (struct report_places_mark){0});
	return result;
}

static int prepare(struct report *r)
{
	int result;

	report_prepare_reach(r);
	result = report_prepare_untraced(r);
	if (result == 0)
		result = report_prepare_asleep(r);
	if (result == 0)
		result = report_prepare_states(r);
	if (result == 0)
		result = report_prepare_threads(r);
	if (result == 0)
		result = report_prepare_images(r);
	if (result == 0)
		result = report_prepare_functions(r);
	if (result == 0)
		result = report_prepare_processes(r);
	if (result == 0)
		result = report_prepare_turns(r);
	report_prepare_marks(r);
	/* The numbers of a CPU would tell what all users did on it. */
	r->lists[REPORT_CPUS] =
		(struct report_list){.key = "cpus",
				     .total = report_is_limited(r) ? 0 : r->m->n_cpus,
				     .element = report_cpu};
	if (result == 0)
		result = report_prepare_gaps(r);
	return result == 0 ? report_prepare_suspects(r) : result;
}

int report_write(struct decode *d, const struct decode_options *options, const char *version,
		 int fd)
{
	const struct manifest *m = d->replay->manifest;
	struct report r = {.d = d,
			   .m = m,
			   .options = options,
			   .version = version,
			   .now = d->window.to_ns == MANIFEST_ABSENT ? m->perf_ns
								     : MANIFEST_ABSENT};
	CLEANUP(json_writer_freep) struct json_writer *w = NULL;
	int result;

	r.reader = insn_reader_new();
	result = !r.reader ? -ENOMEM : report_source_init(&r);
	if (result == 0)
		result = report_places_init(&r);
	if (result == 0)
		result = prepare(&r);
	if (result == 0 && options->report_limit > 0) {
		result = plan_within(&r, options->report_limit);
	} else {
		r.branches_kept = REPORT_LAST_BRANCHES;
		r.branches_threads = SIZE_MAX;
		for (size_t i = 0; i < REPORT_N_LISTS; i++)
			r.lists[i].kept = r.lists[i].total;
	}
	report_sort_gaps(&r);
	if (result == 0)
		result = json_writer_new_fd(fd, options->report_limit, options->pretty, &w);
	if (result == 0) {
		write_all(&r, w);
		result = report_places_error(&r);
	}
	if (result == 0)
		result = json_writer_finish(w);
	free(r.threads);
	free(r.states);
	free(r.asleep);
	free(r.suspects);
	insn_reader_free(r.reader);
	free(r.gaps);
	free(r.turns);
	free(r.images);
	free(r.image_places);
	free(r.functions);
	free(r.processes);
	free(r.function_places);
	report_places_done(&r);
	report_source_done(&r);
	return result;
}
