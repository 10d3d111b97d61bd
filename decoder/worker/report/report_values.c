/*
 * Writes single values of the report.
 */
#include <stdio.h>
#include <string.h>

#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"

/* As long as any index of an image: MANIFEST_MAX_IMAGES has five digits. */
#define WIDEST_IMAGE 99999u

void report_u64(struct json_writer *w, const char *key, uint64_t v)
{
	if (v == MANIFEST_ABSENT)
		json_null(w, key);
	else
		json_u64(w, key, v);
}

void report_id(struct json_writer *w, const char *key, uint32_t v)
{
	report_u64(w, key, v == MANIFEST_ANY ? MANIFEST_ABSENT : v);
}

void report_hex(struct json_writer *w, const char *key, uint64_t v)
{
	if (v == MANIFEST_ABSENT)
		json_null(w, key);
	else
		json_hex(w, key, v);
}

void report_since(struct json_writer *w, const char *key, uint64_t ns, uint64_t trigger)
{
	if (ns == MANIFEST_ABSENT || trigger == MANIFEST_ABSENT)
		json_null(w, key);
	else
		json_i64(w, key, (int64_t)(ns - trigger));
}

void report_percent_decoded(struct json_writer *w, const char *key, const struct decode *d,
			    double percent)
{
	const bool walks = manifest_contents(d->replay->manifest) == MANIFEST_BRANCHES;

	report_percent(w, key, walks ? percent : -1);
}

void report_percent(struct json_writer *w, const char *key, double percent)
{
	if (percent < 0)
		json_null(w, key);
	else
		json_fixed(w, key, percent, 2);
}

void report_ids(struct json_writer *w, const struct timeline_thread *process,
		const struct timeline_thread *thread)
{
	report_u64(w, "pid", process ? process->pid : MANIFEST_ABSENT);
	report_u64(w, "tid", thread ? thread->tid : MANIFEST_ABSENT);
}

void report_filters(struct json_writer *w, const struct manifest *m)
{
	static const struct {
		enum manifest_filter filter;
		const char *name;
	} names[] = {
		{MANIFEST_ONLY_USER, "user"},	     {MANIFEST_ONLY_KERNEL, "kernel"},
		{MANIFEST_ONLY_TASKS, "tasks"},	     {MANIFEST_ONLY_ADDRESSES, "addresses"},
		{MANIFEST_ONLY_CR3, "addressSpace"}, {MANIFEST_ONLY_BETWEEN, "betweenEvents"},
	};
	const unsigned int filters = manifest_filters(m);

	if (m->pt_config == MANIFEST_ABSENT) {
		json_null(w, "filters");
		return;
	}
	json_begin_array(w, "filters");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (filters & names[i].filter)
			json_string(w, NULL, names[i].name);
	json_end_array(w);
}

void report_cut_line(struct json_writer *w, const char *what, uint64_t kept, uint64_t total)
{
	if (kept >= total)
		return;
	json_begin_object(w, NULL);
	json_string(w, "what", what);
	json_u64(w, "kept", kept);
	json_u64(w, "total", total);
	json_end_object(w);
}

bool report_is_limited(const struct report *r)
{
	return permit_is_limited(r->d->replay->permit);
}

bool report_permits(const struct report *r, const struct timeline_thread *thread, uint64_t time)
{
	return !report_is_limited(r) ||
	       permit_thread(r->d->replay->permit, thread, time) == PERMIT_YES;
}

const char *report_comm(const struct report *r, const struct timeline_thread *thread, uint64_t time)
{
	if (report_is_limited(r) && thread->end > thread->begin)
		time = MIN_OF(time, thread->end - 1);
	return timeline_comm(r->d->replay->timeline, thread->tid, time);
}

void report_tsc(struct json_writer *w, const char *key, uint64_t tsc)
{
	report_hex(w, key, tsc == 0 ? MANIFEST_ABSENT : tsc);
}

void report_at(const struct report *r, struct json_writer *w, const char *key, uint64_t ns)
{
	report_since(w, key, ns, r->m->perf_ns);
}

void report_when(const struct report *r, struct json_writer *w, uint64_t lo, uint64_t hi)
{
	uint64_t at = lo == 0 ? MANIFEST_ABSENT : tscmap_ns(&r->d->replay->clock, lo);

	report_at(r, w, "atNSec", at);
	if (at == MANIFEST_ABSENT || hi == UINT64_MAX || hi < lo)
		json_null(w, "uncertainNSec");
	else
		report_span(r, w, "uncertainNSec", hi - lo);
}

void report_span(const struct report *r, struct json_writer *w, const char *key, uint64_t ticks)
{
	report_u64(w, key, tscmap_span(&r->d->replay->clock, ticks));
}

void report_mhz(const struct report *r, struct json_writer *w, const char *key, uint64_t ratio)
{
	report_u64(w, key, marks_mhz(r->d->replay, ratio));
}

void report_image_ref(const struct report *r, struct json_writer *w, uint32_t index)
{
	uint32_t place = index < r->m->n_images ? r->image_places[index] : UINT32_MAX;

	if (r->measuring)
		json_u64(w, "image", WIDEST_IMAGE);
	else if (place < r->lists[REPORT_IMAGES].kept)
		json_u64(w, "image", place);
}

void report_exact(struct json_writer *w, const struct flow_stats *total)
{
	uint64_t exact = decode_exact(total);

	report_percent(w, "exactPercent", decode_percent(exact, total->instructions));
	json_u64(w, "instructionsExact", exact);
	json_begin_object(w, "mayHaveChanged");
	for (int i = CODE_SAME + 1; i < CODE_CHANGES_N; i++)
		if (total->changing[i] > 0)
			json_u64(w, decode_change_name((enum code_change)i), total->changing[i]);
	json_end_object(w);
}

void report_string_cut(struct json_writer *w, const char *key, const char *v, size_t max)
{
	if (!v)
		json_null(w, key);
	else
		json_string_n(w, key, v, strnlen(v, max));
}

void report_unnamed(struct json_writer *w, const char *key, const char *path, uint64_t address,
		    uint64_t offset)
{
	char text[FUNCTIONS_MAX_UNNAMED];

	functions_unnamed(text, path, address, offset);
	json_string(w, key, text);
}
