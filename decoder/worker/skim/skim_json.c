/*
 * The map as JSON: totals, and functions, threads, CPUs and slices of time, each with what was most
 * in it.
 */
#include "decoder/worker/skim/skim_private.h"

#include <string.h>

#include "decoder/worker/report/report.h"
#include "proto/base.h"
#include "proto/memfd.h"

#define MAX_LISTED 1024u /* of threads and CPUs */
#define MAX_TOP	   200u	 /* of functions */
#define MAX_WITHIN 8u	 /* of functions and threads within each of these */
#define MAX_NAME   256u	 /* bytes */

/* How much is written. */
struct limits {
	size_t listed, top, within;
	bool slices;
};

struct out {
	const struct skim_json *j;
	const struct limits *limits;
	struct json_writer *w;
	uint64_t shown[4], total[4]; /* of enum list */
};

enum list { LIST_FUNCTIONS, LIST_THREADS, LIST_CPUS, LIST_SLICES };
static const char *const list_names[] = {"functions", "threads", "cpus", "slices"};

/* The perf time of TSC relative to the trigger; null if either is unknown. */
static void write_at(const struct out *o, const char *key, uint64_t tsc)
{
	uint64_t ns = tsc == 0 ? MANIFEST_ABSENT : tscmap_ns(&o->j->replay->clock, tsc);

	report_since(o->w, key, ns, o->j->replay->manifest->perf_ns);
}

static void write_sum(const struct out *o, const struct skim_cell *sum)
{
	json_u64(o->w, "samples", sum->samples);
	json_u64(o->w, "bytes", sum->bytes);
}

static void write_thread_id(const struct out *o, const struct skim_cell *row)
{
	const struct replay *r = o->j->replay;
	const struct timeline_thread *t = row->thread;
	uint64_t now =
		r->manifest->perf_ns == MANIFEST_ABSENT ? SPACE_NOW - 1 : r->manifest->perf_ns;

	report_ids(o->w, t, row->some ? NULL : t);
	report_string_cut(o->w, "comm", t ? timeline_comm(r->timeline, t->tid, now) : NULL,
			  MAX_NAME);
}

/* Writes the first rows of G, which are functions or threads, as KEY. */
static void write_rows(const struct out *o, const char *key, const struct skim_ranking *r,
		       const struct skim_group *g, size_t limit)
{
	const struct manifest *m = o->j->replay->manifest;
	size_t n = MIN_OF(g->n, limit);

	json_begin_array(o->w, key);
	for (size_t i = 0; i < n; i++) {
		const struct skim_cell *row = &r->rows[g->first + i];
		const struct function *f = &o->j->map->functions.list[row->function];
		const char *path = f->image < m->n_images ? m->images[f->image].path : NULL;

		json_begin_object(o->w, NULL);
		if (strcmp(key, "functions") != 0) {
			write_thread_id(o, row);
		} else {
			if (f->name || !path)
				report_string_cut(o->w, "name", f->name, MAX_NAME);
			else
				report_unnamed(o->w, "name", path, f->file_address, f->offset);
			report_string_cut(o->w, "image", path, MAX_NAME);
		}
		write_sum(o, row);
		json_end_object(o->w);
	}
	json_end_array(o->w);
}

static void note_list(struct out *o, enum list list, size_t shown, size_t total)
{
	o->shown[list] = shown;
	o->total[list] = total;
}

static void write_threads(struct out *o, const struct skim_ranking *threads)
{
	size_t n = MIN_OF(threads->n_groups, o->limits->listed);

	json_begin_array(o->w, "threads");
	for (size_t i = 0; i < n; i++) {
		const struct skim_group *g = &threads->groups[i];

		json_begin_object(o->w, NULL);
		write_thread_id(o, &g->sum);
		write_sum(o, &g->sum);
		write_rows(o, "functions", threads, g, o->limits->within);
		json_end_object(o->w);
	}
	json_end_array(o->w);
	note_list(o, LIST_THREADS, n, threads->n_groups);
}

/* The group of slice WHICH (SLICES: the groups are slices) or of CPU WHICH; an empty one if there
 * is none. */
static const struct skim_group *find_group(const struct skim_ranking *r, bool slices,
					   uint32_t which)
{
	static const struct skim_group none;
	size_t lo = FIRST_WHERE(i, r->n_groups,
				(slices ? r->groups[i].sum.slice : r->groups[i].sum.cpu) >= which);

	if (lo < r->n_groups) {
		const struct skim_cell *sum = &r->groups[lo].sum;

		if ((slices ? sum->slice : sum->cpu) == which)
			return &r->groups[lo];
	}
	return &none;
}

static void write_both(const struct out *o, const struct skim_ranking *functions,
		       const struct skim_ranking *threads, bool slices, uint32_t which)
{
	const struct skim_group *f = find_group(functions, slices, which);

	write_sum(o, &f->sum);
	write_rows(o, "functions", functions, f, o->limits->within);
	write_rows(o, "threads", threads, find_group(threads, slices, which), o->limits->within);
}

static void write_counts(const struct out *o, const struct skim_counts *c)
{
	json_u64(o->w, "headBytes", c->head);
	json_u64(o->w, "psbs", c->psbs);
	json_u64(o->w, "overflows", c->overflows);
	json_u64(o->w, "badPackets", c->bad_packets);
	json_u64(o->w, "badBytes", c->bad_bytes);
	json_u64(o->w, "timeBackwards", c->backwards);
	json_u64(o->w, "timeBackwardsBytes", c->backwards_bytes);
	json_u64(o->w, "seams", c->seams);
	report_tsc(o->w, "tscFirst", c->tsc_first);
	report_tsc(o->w, "tscLast", c->tsc_last);
	write_at(o, "fromNSec", c->tsc_first);
	write_at(o, "untilNSec", c->tsc_last);
}

static void write_cpus(struct out *o, const struct skim_ranking *functions,
		       const struct skim_ranking *threads)
{
	const struct manifest *m = o->j->replay->manifest;
	size_t n = MIN_OF(m->n_cpus, o->limits->listed);

	json_begin_array(o->w, "cpus");
	for (size_t i = 0; i < n; i++) {
		json_begin_object(o->w, NULL);
		report_id(o->w, "cpu", m->cpus[i].cpu);
		if (m->cpus[i].tid != MANIFEST_ANY)
			json_u64(o->w, "tid", m->cpus[i].tid);
		json_u64(o->w, "traceBytes", m->cpus[i].bytes);
		write_counts(o, &o->j->counts[i]);
		write_both(o, functions, threads, false, (uint32_t)i);
		json_end_object(o->w);
	}
	json_end_array(o->w);
	note_list(o, LIST_CPUS, n, m->n_cpus);
}

/* Writes the slices that have samples. */
static void write_slices(struct out *o, const struct skim_ranking *functions,
			 const struct skim_ranking *threads)
{
	const struct skim_map *map = o->j->map;
	size_t n = 0, total = 0;

	json_begin_array(o->w, "slices");
	for (size_t i = 0; i < functions->n_groups; i++) {
		uint32_t slice = functions->groups[i].sum.slice;

		total += slice != SKIM_NO_SLICE;
		if (slice == SKIM_NO_SLICE || !o->limits->slices)
			continue;
		json_begin_object(o->w, NULL);
		report_tsc(o->w, "tsc", skim_map_slice(map, slice));
		write_at(o, "fromNSec", skim_map_slice(map, slice));
		write_at(o, "untilNSec", skim_map_slice(map, slice + 1));
		write_both(o, functions, threads, true, slice);
		json_end_object(o->w);
		n++;
	}
	json_end_array(o->w);
	note_list(o, LIST_SLICES, n, total);
}

static void write_totals(const struct out *o)
{
	const struct manifest *m = o->j->replay->manifest;
	struct skim_counts sum = {0};
	uint64_t bytes = 0;

	for (size_t i = 0; i < m->n_cpus; i++) {
		skim_counts_add(&sum, &o->j->counts[i]);
		bytes += m->cpus[i].bytes;
	}
	json_string(o->w, "skim", o->j->skim);
	report_string_cut(o->w, "id", m->id, MAX_NAME);
	/* The rest of the trace besides these samples: all branches, or nothing. */
	if (manifest_contents(m) != MANIFEST_BRANCHES)
		json_string(o->w, "contents",
			    manifest_contents(m) == MANIFEST_TARGETS ? "targets" : "events");
	report_filters(o->w, m);
	json_u64(o->w, "traceBytes", bytes);
	json_u64(o->w, "samples", sum.samples);
	write_counts(o, &sum);
}

/* Rankings in the order in which they are written. */
enum rank {
	RANK_ALL,
	RANK_THREADS,
	RANK_CPU_FUNCTIONS,
	RANK_CPU_THREADS,
	RANK_SLICE_FUNCTIONS,
	RANK_SLICE_THREADS,
	RANK_N_,
};

static void write_all(struct out *o, const struct skim_ranking *ranks)
{
	static const struct skim_group none;
	const struct skim_ranking *all = &ranks[RANK_ALL];
	const struct skim_group *functions = all->n_groups > 0 ? all->groups : &none;

	json_begin_object(o->w, NULL);
	write_totals(o);
	if (o->j->map) {
		write_rows(o, "functions", all, functions, o->limits->top);
		note_list(o, LIST_FUNCTIONS, MIN_OF(functions->n, o->limits->top), functions->n);
		write_threads(o, &ranks[RANK_THREADS]);
		write_cpus(o, &ranks[RANK_CPU_FUNCTIONS], &ranks[RANK_CPU_THREADS]);
		write_slices(o, &ranks[RANK_SLICE_FUNCTIONS], &ranks[RANK_SLICE_THREADS]);
		json_begin_array(o->w, "cut");
		for (size_t i = 0; i < ARRAY_SIZE(list_names); i++)
			report_cut_line(o->w, list_names[i], o->shown[i], o->total[i]);
		report_cut_line(o->w, "functionsUnlisted", 0, o->j->map->functions.refused);
		report_cut_line(o->w, "samplesUnlisted", 0, o->j->map->refused);
		json_end_array(o->w);
	}
	json_end_object(o->w);
}

static int rank_all(const struct skim_map *map, struct skim_ranking *ranks)
{
	static const unsigned int by[RANK_N_][2] = {
		[RANK_ALL] = {0, SKIM_BY_FUNCTION},
		[RANK_THREADS] = {SKIM_BY_THREAD, SKIM_BY_FUNCTION},
		[RANK_CPU_FUNCTIONS] = {SKIM_BY_CPU, SKIM_BY_FUNCTION},
		[RANK_CPU_THREADS] = {SKIM_BY_CPU, SKIM_BY_THREAD},
		[RANK_SLICE_FUNCTIONS] = {SKIM_BY_SLICE, SKIM_BY_FUNCTION},
		[RANK_SLICE_THREADS] = {SKIM_BY_SLICE, SKIM_BY_THREAD},
	};
	int r = 0;

	for (int i = 0; i < RANK_N_ && r == 0; i++)
		r = skim_rank(map, by[i][0], by[i][1], &ranks[i]);
	return r;
}

/* Writes to BYTES, which has a limit. 0, -E2BIG or -ENOMEM. */
static int write_within(const struct skim_json *j, const struct limits *limits,
			const struct skim_ranking *ranks, struct bytes_out *bytes)
{
	CLEANUP(json_writer_freep) struct json_writer *w = NULL;
	struct out o = {.j = j, .limits = limits};
	int r = json_writer_new_bytes(bytes, j->pretty, &w);

	if (r < 0)
		return r;
	o.w = w;
	write_all(&o, ranks);
	r = json_writer_finish(w);
	if (r == 0 && !j->pretty)
		bytes_put_block(bytes, "\n", 1);
	return r != 0 ? r : bytes->error;
}

/* False: there is nothing left to cut. */
static bool halve(struct limits *l)
{
	bool any = l->within > 0 || l->top > 0 || l->listed > 0 || l->slices;

	l->slices = l->slices && l->within > 0;
	l->within /= 2;
	l->top /= 2;
	l->listed /= 2;
	return any;
}

int skim_json_write(const struct skim_json *j)
{
	struct limits limits = {MAX_LISTED, MAX_TOP, MAX_WITHIN, true};
	struct skim_ranking ranks[RANK_N_] = {0};
	CLEANUP(bytes_out_done) struct bytes_out bytes;
	int r = j->map ? rank_all(j->map, ranks) : 0;

	bytes_out_init(&bytes, j->limit != 0 ? j->limit : SIZE_MAX / 2);
	while (r == 0) {
		r = write_within(j, &limits, ranks, &bytes);
		if (r != -E2BIG || !halve(&limits))
			break;
		bytes_out_reset(&bytes);
		r = 0;
	}
	if (r == 0)
		r = memfd_write_all(j->fd, bytes.data, bytes.size);
	for (int i = 0; i < RANK_N_; i++)
		skim_ranking_done(&ranks[i]);
	return r;
}
