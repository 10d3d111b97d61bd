/*
 * The report as a whole: its parts in order, and what is left out when it would be too long. Called
 * by decode.c in ptsnap-decode.
 *
 * The lists are measured element by element through the same functions that write them, from the
 * most to the least important, each getting what those before it left; then all is streamed.
 */
#include "decoder/worker/report/report.h"

#include <stdio.h>
#include <stdlib.h>

#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"
#include "proto/report.h"

/* "cut" is measured with all lists empty: all its lines are there, with 0 kept. The numbers that
 * come instead are longer. */
#define CUT_RESERVE 256u
/* A single element is far smaller than that (strings are cut). */
#define SCRATCH_LIMIT (16u << 20)

static void write_list(const struct report *r, struct json_writer *w, enum report_list_id id)
{
	const struct report_list *l = &r->lists[id];
	size_t i;

	json_begin_array(w, l->key);
	for (i = 0; i < l->kept; i++)
		l->element(r, w, l->newest_first ? l->kept - 1 - i : i);
	json_end_array(w);
}

/* With what there is no element for. */
static uint64_t list_total(const struct report *r, enum report_list_id id)
{
	switch (id) {
	case REPORT_GAPS: return r->d->gaps.total;
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
	uint64_t branches = r->branches_kept * r->lists[REPORT_THREADS].kept;
	size_t i;

	json_begin_array(w, "cut");
	for (i = 0; i < REPORT_N_LISTS; i++) {
		const struct report_list *l = &r->lists[i];

		report_cut_line(w, l->key, l->kept, list_total(r, i));
	}
	if (r->branches_kept < REPORT_LAST_BRANCHES)
		report_cut_line(w, "lastBranches", MIN_OF(branches, r->branches_total),
				r->branches_total);
	report_cut_line(w, "stack", r->frames_kept, r->frames_total);
	report_cut_line(w, "functionsUnlisted", 0, d->tally.functions.refused);
	report_cut_line(w, "threadsUnlisted", 0, d->tally.threads_refused);
	json_end_array(w);
}

static void write_generator(const struct report *r, struct json_writer *w)
{
	json_string(w, "schemaVersion", REPORT_SCHEMA_VERSION);
	json_begin_object(w, "generator");
	json_string(w, "name", "ptsnap-decode");
	json_string(w, "version", r->version);
	json_end_object(w);
	json_string(w, "id", r->m->id);
}

static void write_all(const struct report *r, struct json_writer *w)
{
	json_begin_object(w, NULL);
	write_generator(r, w);
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
	write_cut(r, w);
	json_end_object(w);
}

/* How many bytes the first N elements of L take, and how many elements fit into BUDGET. */
static int measure(const struct report *r, const struct report_list *l, uint64_t budget,
		   size_t *ret_fits, uint64_t *ret_bytes)
{
	CLEANUP(bytes_out_done) struct bytes_out out;
	CLEANUP(json_writer_freep) struct json_writer *w = NULL;
	uint64_t bytes = 0;
	size_t i;

	bytes_out_init(&out, SCRATCH_LIMIT);
	if (json_writer_new_bytes(&out, r->options->pretty, &w) < 0)
		return -ENOMEM;
	json_begin_object(w, NULL);
	json_begin_array(w, l->key);
	for (i = 0; i < l->total; i++) {
		bytes_out_reset(&out);
		l->element(r, w, i);
		if (out.error == -ENOMEM)
			return -ENOMEM;
		if (out.size > budget - bytes)
			break;
		bytes += out.size;
	}
	*ret_fits = i;
	*ret_bytes = bytes;
	return 0;
}

/* The parts that are never cut, with all lists empty. */
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

/* Takes from *LEFT what the elements of L that fit into it need; all of it when not all fit, so
 * that no list gets what one before it could not use. */
static int fit(const struct report *r, struct report_list *l, uint64_t *left)
{
	uint64_t bytes;
	size_t fits;
	int result = measure(r, l, *left, &fits, &bytes);

	if (result < 0)
		return result;
	l->kept = fits;
	*left = fits < l->total ? 0 : *left - bytes;
	return 0;
}

/* Of lists that would each take all that is left: no more than GIVEN for this one. */
static int fit_within(const struct report *r, struct report_list *l, uint64_t given, uint64_t *left)
{
	uint64_t rest = given;
	int result = fit(r, l, &rest);

	*left -= given - rest;
	return result;
}

static int fit_marks(struct report *r, uint64_t *left)
{
	const uint64_t eighth = *left / 8;
	int i, result = 0;

	for (i = REPORT_ABORTS; i <= REPORT_PTWRITES && result == 0; i++)
		result = fit_within(r, &r->lists[i], eighth, left);
	return result;
}

/* As many last branches as fit into LEFT, the same number for every thread. */
static int fit_branches(struct report *r, uint64_t *left)
{
	struct report_list kept = r->lists[REPORT_THREADS];
	uint64_t bare, bytes;
	size_t fits;
	int result;

	kept.total = kept.kept;
	result = measure(r, &kept, UINT64_MAX, &fits, &bare);
	for (r->branches_kept = REPORT_LAST_BRANCHES; result == 0 && r->branches_kept > 0;
	     r->branches_kept /= 2) {
		result = measure(r, &kept, *left + bare, &fits, &bytes);
		if (result == 0 && fits == kept.total) {
			*left -= bytes - bare;
			break;
		}
	}
	return result;
}

static int plan_within(struct report *r, uint64_t limit)
{
	uint64_t rest, left;
	int i, result;

	r->measuring = true;
	result = measure_rest(r, &rest);
	if (result < 0)
		return result;
	if (rest + CUT_RESERVE > limit)
		return -E2BIG;
	left = limit - rest - CUT_RESERVE;
	r->branches_kept = 0;
	for (i = REPORT_CPUS; i <= REPORT_GAPS && result == 0; i++)
		result = fit(r, &r->lists[i], &left);
	if (result == 0)
		result = fit_branches(r, &left);
	if (result == 0)
		result = fit_marks(r, &left);
	if (result == 0)
		result = fit_within(r, &r->lists[REPORT_TURNS], left / 2, &left);
	if (result == 0)
		result = fit(r, &r->lists[REPORT_FUNCTIONS], &left);
	r->measuring = false;
	return result;
}

static int plan(struct report *r)
{
	size_t i;

	if (r->options->report_limit > 0)
		return plan_within(r, r->options->report_limit);
	r->branches_kept = REPORT_LAST_BRANCHES;
	for (i = 0; i < REPORT_N_LISTS; i++)
		r->lists[i].kept = r->lists[i].total;
	return 0;
}

static int prepare(struct report *r)
{
	int result;

	report_prepare_reach(r);
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
	/* Numbers of a CPU tell what all did on it. */
	r->lists[REPORT_CPUS] = (struct report_list){
		"cpus", report_is_limited(r) ? 0 : r->m->n_cpus, 0, report_cpu, false};
	r->lists[REPORT_GAPS] = (struct report_list){"gaps", r->d->gaps.n, 0, report_gap, false};
	return result;
}

static int stream(const struct report *r, int fd)
{
	CLEANUP(json_writer_freep) struct json_writer *w = NULL;
	int result = json_writer_new_fd(fd, r->options->report_limit, r->options->pretty, &w);

	if (result < 0)
		return result;
	write_all(r, w);
	return json_writer_finish(w);
}

int report_write(struct decode *d, const struct decode_options *options, const char *version,
		 int fd)
{
	struct report r = {
		.d = d, .m = d->replay->manifest, .options = options, .version = version};
	int result;

	r.symbols = calloc(REPORT_SYMBOLS, sizeof(*r.symbols));
	result = r.symbols == NULL ? -ENOMEM : report_source_init(&r);
	if (result == 0)
		result = prepare(&r);
	if (result == 0)
		result = plan(&r);
	if (result == 0)
		result = stream(&r, fd);
	free(r.threads);
	free(r.turns);
	free(r.images);
	free(r.image_places);
	free(r.functions);
	free(r.processes);
	free(r.symbols);
	report_source_done(&r);
	return result;
}
