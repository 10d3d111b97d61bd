/*
 * Functions and images: where the instructions were executed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"

#define MAX_BUILD_ID 64u

static void write_nsec(const struct report *r, struct json_writer *w, const char *key,
		       uint64_t ticks)
{
	/* A trace without any time measures nothing. */
	if (decode_total(r->d).tsc_first == 0)
		json_null(w, key);
	else
		report_span(r, w, key, ticks);
}

static void write_slowest(const struct report *r, struct json_writer *w, const struct durations *d)
{
	uint64_t at = tscmap_ns(&r->d->replay->clock, d->max_tsc);

	if (!d->max_thread || !report_permits(r, d->max_thread, at)) {
		json_null(w, "slowest");
		return;
	}
	json_begin_object(w, "slowest");
	report_at(r, w, "atNSec", at);
	json_u64(w, "pid", d->max_thread->pid);
	json_u64(w, "tid", d->max_thread->tid);
	report_span(r, w, "untracedNSec", d->max_off);
	json_end_object(w);
}

/* How long the calls of F took. Nothing if none took time. */
/* The octaves from the first one that has calls to the last one. */
static void write_histogram(const struct report *r, struct json_writer *w,
			    const struct durations *d)
{
	/* A tick is a fraction of a nanosecond. */
	const double tick =
		ldexp((double)tscmap_span(&r->d->replay->clock, UINT64_C(1) << 40), -40);
	unsigned first = 0, end = DURATIONS_OCTAVES;

	while (first < end && durations_octave(d, first) == 0)
		first++;
	while (end > first && durations_octave(d, end - 1) == 0)
		end--;
	if (first == end || !r->d->replay->clock.known)
		return;
	json_begin_object(w, "histogram");
	json_fixed(w, "firstNSec", ldexp(tick, (int)first), 1);
	json_begin_array(w, "counts");
	for (unsigned i = first; i < end; i++)
		json_u64(w, NULL, durations_octave(d, i));
	json_end_array(w);
	json_end_object(w);
}

static void write_durations(const struct report *r, struct json_writer *w, const struct function *f)
{
	const struct durations *d =
		f->durations ? &r->d->tally.functions.durations.list[f->durations - 1] : NULL;
	uint64_t ended = f->calls - f->unended;

	if (!d)
		return;
	json_begin_object(w, "durations");
	json_u64(w, "ended", ended);
	report_span(r, w, "p50NSec", durations_quantile(d, ended, 500));
	report_span(r, w, "p90NSec", durations_quantile(d, ended, 900));
	report_span(r, w, "p99NSec", durations_quantile(d, ended, 990));
	report_span(r, w, "maxNSec", d->max);
	report_span(r, w, "untracedNSec", d->off);
	write_slowest(r, w, d);
	write_histogram(r, w, d);
	json_end_object(w);
}

void report_name(const struct report *r, struct json_writer *w, const char *name, uint32_t image,
		 uint64_t file_address, uint64_t offset)
{
	if (name)
		report_string_cut(w, "name", report_source_name(r, name), REPORT_MAX_STRING);
	else
		report_unnamed(w, "name", image < r->m->n_images ? r->m->images[image].path : NULL,
			       file_address, offset);
	report_linkage(r, w, name);
}

static void report_function(const struct report *r, struct json_writer *w, size_t i)
{
	const struct function *f = &r->d->tally.functions.list[r->functions[i]];

	json_begin_object(w, NULL);
	if (f->image != UINT32_MAX) {
		json_hex(w, "address", f->address);
		report_name(r, w, f->name, f->image, f->file_address, f->offset);
		report_image_ref(r, w, f->image);
		if (f->file_address != 0)
			json_hex(w, "fileAddress", f->file_address);
		if (f->offset != FUNCTIONS_WHOLE_IMAGE)
			report_source(r, w, f->image, f->offset);
	}
	if (f->unbounded)
		json_bool(w, "boundsUnknown", true);
	json_u64(w, "calls", f->calls);
	json_u64(w, "selfInstructions", f->self_insns);
	json_u64(w, "totalInstructions", f->total_insns);
	write_nsec(r, w, "selfNSec", f->self_ticks);
	write_nsec(r, w, "totalNSec", f->total_ticks);
	report_ipc(r, w, f->self_insns, f->self_ticks);
	write_durations(r, w, f);
	json_end_object(w);
}

static void write_build_id(const struct report *r, struct json_writer *w, uint32_t image)
{
	const struct manifest_image *m = &r->m->images[image];
	char text[2 * MAX_BUILD_ID + 1];
	const uint8_t *id = NULL;
	size_t size = 0;

	/* An image that lies elsewhere and was not needed is not fetched for its build id. */
	if (image_was_asked(r->d->replay->images, image) || (!m->missing && !m->elsewhere))
		id = symbols_build_id(r->d->replay->symbols, image, &size);
	size = MIN_OF(size, (size_t)MAX_BUILD_ID);
	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	/* Without a file: the build id in the records. */
	json_string(w, "buildId", size > 0 ? text : m->build_id);
}

/* Why there are no bytes; NULL if nobody asked for them. A bundle knows the size of an image that
 * it leaves out because the image was not needed. */
static const char *missing_of(const struct report *r, uint32_t image)
{
	const struct manifest_image *m = &r->m->images[image];
	bool asked = image_was_asked(r->d->replay->images, image);

	if (m->elsewhere)
		return asked ? image_source(r->d->replay->images, image)->missing : NULL;
	return asked || m->file_size == MANIFEST_ABSENT ? m->missing : NULL;
}

/* What was read of the code that a compiler wrote down. */
static void write_dump(const struct report *r, struct json_writer *w, uint32_t image)
{
	bool times;
	const struct jitdump *dump = image_jitdump(r->d->replay->images, image, &times);

	if (!dump)
		return;
	json_begin_object(w, "jitdump");
	json_boolean(w, "times", times);
	json_boolean(w, "whole", jitdump_is_whole(dump));
	json_u64(w, "dropped", jitdump_dropped(dump));
	json_end_object(w);
}

static void report_image(const struct report *r, struct json_writer *w, size_t i)
{
	const struct report_image *image = &r->images[i];
	const struct manifest_image *m = &r->m->images[image->index];
	const char *missing = missing_of(r, image->index);
	uint64_t bytes = m->file_size == MANIFEST_ABSENT && !m->elsewhere ? m->size : m->file_size;

	json_begin_object(w, NULL);
	report_string_cut(w, "path", m->path, REPORT_MAX_STRING);
	write_build_id(r, w, image->index);
	report_u64(w, "bytes", missing ? MANIFEST_ABSENT : bytes);
	report_string_cut(w, "missing", missing, REPORT_MAX_STRING);
	json_u64(w, "instructions", image->insns);
	json_u64(w, "unnamedInstructions", image->unnamed);
	report_dwarf(r, w, image->index);
	write_dump(r, w, image->index);
	json_end_object(w);
}

static int compare_images(const void *a, const void *b)
{
	const struct report_image *x = a, *y = b;

	if (x->insns != y->insns)
		return x->insns < y->insns ? 1 : -1;
	return x->index < y->index ? -1 : 1;
}

int report_prepare_images(struct report *r)
{
	const struct functions *f = &r->d->tally.functions;
	size_t n = r->m->n_images;

	r->images = calloc(n + 1, sizeof(*r->images));
	r->image_places = calloc(n + 1, sizeof(*r->image_places));
	if (!r->images || !r->image_places)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		r->images[i].index = (uint32_t)i;
	for (size_t i = 1; i < f->n; i++) {
		const struct function *fn = &f->list[i];

		if (fn->image >= n)
			continue;
		r->images[fn->image].insns += fn->self_insns;
		r->images[fn->image].unnamed += fn->name ? 0 : fn->self_insns;
	}
	qsort(r->images, n, sizeof(*r->images), compare_images);
	for (size_t i = 0; i < n; i++)
		r->image_places[r->images[i].index] = (uint32_t)i;
	/* A user is told of no image that may belong to other users. */
	while (report_is_limited(r) && n > 0 && r->images[n - 1].insns == 0)
		n--;
	r->lists[REPORT_IMAGES] =
		(struct report_list){.key = "images", .total = n, .element = report_image};
	return 0;
}

static int compare_functions(const void *a, const void *b, void *list)
{
	const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct function *f = list;

	if (f[i].self_insns != f[j].self_insns)
		return f[i].self_insns < f[j].self_insns ? 1 : -1;
	return i < j ? -1 : i > j;
}

int report_prepare_functions(struct report *r)
{
	const struct functions *f = &r->d->tally.functions;
	size_t n = 0;

	r->functions = calloc(f->n, sizeof(*r->functions));
	r->function_places = calloc(f->n, sizeof(*r->function_places));
	if (!r->functions || !r->function_places)
		return -ENOMEM;
	for (size_t i = 0; i < f->n; i++) {
		r->function_places[i] = UINT32_MAX;
		if (f->list[i].self_insns > 0)
			r->functions[n++] = (uint32_t)i;
	}
	qsort_r(r->functions, n, sizeof(*r->functions), compare_functions, f->list);
	for (size_t i = 0; i < n; i++)
		r->function_places[r->functions[i]] = (uint32_t)i;
	r->lists[REPORT_FUNCTIONS] =
		(struct report_list){.key = "functions", .total = n, .element = report_function};
	return 0;
}
