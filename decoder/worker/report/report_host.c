/*
 * The head of the report: host, trigger, configuration, window. All of it is what the manifest
 * says.
 */
#include <string.h>

#include "decoder/packet/errata.h"
#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"

static void write_string(struct json_writer *w, const char *key, const char *v)
{
	report_string_cut(w, key, v, REPORT_MAX_STRING);
}

static void write_cpu_model(const struct report *r, struct json_writer *w)
{
	if (!r->m->have_cpu) {
		json_null(w, "cpu");
		return;
	}
	json_begin_object(w, "cpu");
	json_string(w, "vendor", r->m->cpu_intel ? "GenuineIntel" : NULL);
	json_u64(w, "family", r->m->cpu_family);
	json_u64(w, "model", r->m->cpu_model);
	json_u64(w, "stepping", r->m->cpu_stepping);
	write_string(w, "name", r->m->cpu_model_name);
	json_end_object(w);
}

void report_host(const struct report *r, struct json_writer *w)
{
	json_begin_object(w, "host");
	write_string(w, "hostname", r->m->hostname);
	write_string(w, "kernel", r->m->kernel_release);
	write_string(w, "machine", r->m->machine);
	write_string(w, "bootId", r->m->boot_id);
	write_cpu_model(r, w);
	json_end_object(w);
}

/* Why somebody else wanted it is his business. */
static bool is_own_request(const struct report *r)
{
	return !report_is_limited(r) || r->m->sender_uid == r->d->replay->permit->uid;
}

static void write_sender(const struct report *r, struct json_writer *w)
{
	if (!is_own_request(r) ||
	    (r->m->sender_pid == MANIFEST_ABSENT && r->m->sender_uid == MANIFEST_ABSENT)) {
		json_null(w, "sender");
		return;
	}
	json_begin_object(w, "sender");
	report_u64(w, "pid", r->m->sender_pid);
	report_u64(w, "uid", r->m->sender_uid);
	json_end_object(w);
}

static uint64_t to_usec(uint64_t ns)
{
	return ns == MANIFEST_ABSENT ? ns : ns / 1000;
}

/* One moment on each clock: all that counts from the trigger can be told on any of them. */
static void write_clocks(const struct report *r, struct json_writer *w)
{
	json_begin_object(w, "clocks");
	report_u64(w, "realtimeNSec", r->m->realtime_ns);
	report_u64(w, "monotonicNSec", r->m->monotonic_ns);
	report_u64(w, "perfNSec", r->m->perf_ns);
	json_end_object(w);
}

/* Ours are sorted, each key once; of a stranger's, what is not is left out. */
static void write_labels(const struct manifest *m, struct json_writer *w)
{
	const char *last = NULL;

	json_begin_object(w, "labels");
	for (size_t i = 0; i < m->n_labels; i++) {
		if (last != NULL && strcmp(last, m->labels[i].key) >= 0)
			continue;
		last = m->labels[i].key;
		json_string(w, last, m->labels[i].value);
	}
	json_end_object(w);
}

/* Each only where there is something to say. */
static void write_units(const struct report *r, struct json_writer *w)
{
	const struct manifest *m = r->m;

	if (!is_own_request(r))
		return;
	if (m->unit != NULL)
		json_string(w, "unit", m->unit);
	if (m->sender_unit != NULL)
		json_string(w, "senderUnit", m->sender_unit);
	/* Its name has those of the process that crashed. */
	if (m->coredump != NULL && !report_is_limited(r))
		json_string(w, "coredump", m->coredump);
	if (m->n_labels > 0)
		write_labels(m, w);
}

void report_trigger(const struct report *r, struct json_writer *w)
{
	json_begin_object(w, "trigger");
	write_string(w, "kind", r->m->trigger_kind);
	write_string(w, "name", is_own_request(r) ? r->m->trigger_name : NULL);
	write_string(w, "reason", is_own_request(r) ? r->m->reason : NULL);
	write_sender(r, w);
	report_u64(w, "realtimeUSec", to_usec(r->m->realtime_ns));
	report_u64(w, "monotonicUSec", to_usec(r->m->monotonic_ns));
	report_hex(w, "tsc", r->m->tsc);
	write_clocks(r, w);
	write_units(r, w);
	json_end_object(w);
}

/* Why there is no trace at all; NULL: there is one, or it is not known that there should be. */
static const char *degraded_why(const struct manifest *m)
{
	const char *why = NULL;
	size_t i;

	for (i = 0; i < m->n_cpus; i++) {
		const struct manifest_cpu *cpu = &m->cpus[i];

		if (cpu->bytes > 0 || cpu->state == NULL || strcmp(cpu->state, "tracing") == 0)
			return NULL;
		if (why == NULL && cpu->why != NULL && *cpu->why != '\0')
			why = cpu->why;
	}
	return why != NULL || m->n_cpus == 0 ? why : m->cpus[0].state;
}

/* No trace was configured at all. */
static bool is_untraced(const struct manifest *m)
{
	return m->pt_config == MANIFEST_ABSENT && degraded_why(m) != NULL;
}

static void write_bool(struct json_writer *w, const char *key, bool known, bool value)
{
	if (known)
		json_bool(w, key, value);
	else
		json_null(w, key);
}

static void write_attr(const struct report *r, struct json_writer *w)
{
	json_begin_object(w, "attr");
	report_hex(w, "config", r->m->pt_config);
	write_string(w, "terms", r->m->pt_terms);
	write_bool(w, "excludeUser", !is_untraced(r->m), !r->m->trace_user);
	write_bool(w, "excludeKernel", !is_untraced(r->m), !r->m->trace_kernel);
	json_end_object(w);
}

static void write_ratio(const struct report *r, struct json_writer *w)
{
	if (r->m->tsc_art_num == 0 || r->m->tsc_art_den == 0) {
		json_null(w, "tscArtRatio");
		return;
	}
	json_begin_object(w, "tscArtRatio");
	json_u64(w, "numerator", r->m->tsc_art_num);
	json_u64(w, "denominator", r->m->tsc_art_den);
	json_end_object(w);
}

static void write_clock(const struct report *r, struct json_writer *w)
{
	if (!r->m->have_clock) {
		json_null(w, "clock");
		return;
	}
	json_begin_object(w, "clock");
	json_u64(w, "timeZero", r->m->time_zero);
	json_u64(w, "timeMult", r->m->time_mult);
	json_u64(w, "timeShift", r->m->time_shift);
	json_end_object(w);
}

void report_configuration(const struct report *r, struct json_writer *w)
{
	uint64_t mtc = r->m->mtc_period, ratio = r->m->max_nonturbo_ratio;

	json_begin_object(w, "configuration");
	write_string(w, "source", r->m->source);
	write_attr(r, w);
	report_u64(w, "mtcPeriod", mtc == UINT32_MAX ? MANIFEST_ABSENT : mtc);
	report_u64(w, "maxNonturboRatio", ratio == 0 ? MANIFEST_ABSENT : ratio);
	write_ratio(r, w);
	write_bool(w, "returnCompression", !is_untraced(r->m), !r->m->noretcomp);
	write_clock(r, w);
	json_end_object(w);
}

/* What is between commas, as a list. */
static void write_words(struct json_writer *w, const char *key, const char *words)
{
	size_t left = REPORT_MAX_STRING;

	json_begin_array(w, key);
	while (words != NULL && *words != '\0' && left > 0) {
		size_t n = MIN_OF(strcspn(words, ","), left);

		json_string_n(w, NULL, words, n);
		left -= n;
		words += n;
		words += *words == ',';
	}
	json_end_array(w);
}

static void write_attrs(const struct report *r, struct json_writer *w)
{
	json_begin_object(w, "attrs");
	write_string(w, "pt", r->m->pt_attr);
	write_string(w, "sideband", r->m->sideband_attr);
	write_words(w, "sidebandMissing", r->m->sideband_missing);
	json_end_object(w);
}

static void write_shifts(const struct report *r, struct json_writer *w)
{
	const struct shift *s = &r->d->replay->shift;

	if (!s->differ) {
		json_null(w, "cpus");
		return;
	}
	json_begin_array(w, "cpus");
	for (size_t i = 0; i < s->n_cpus && i < r->m->n_cpus; i++) {
		json_begin_object(w, NULL);
		report_id(w, "cpu", r->m->cpus[i].cpu);
		json_i64(w, "shiftNSec", s->cpus[i].ns);
		json_end_object(w);
	}
	json_end_array(w);
}

static void write_shift(const struct report *r, struct json_writer *w)
{
	const struct shift *s = &r->d->replay->shift;

	if (!s->found || report_is_limited(r)) {
		json_null(w, "sidebandShift");
		return;
	}
	json_begin_object(w, "sidebandShift");
	json_i64(w, "shiftNSec", s->ns);
	json_u64(w, "uncertainNSec", s->doubt);
	write_shifts(r, w);
	json_u64(w, "samples", s->samples);
	json_u64(w, "contradictions", s->before);
	json_u64(w, "contradictionsLeft", s->after);
	json_end_object(w);
}

void report_trace(const struct report *r, struct json_writer *w)
{
	const char *why = degraded_why(r->m);

	json_begin_object(w, "trace");
	json_boolean(w, "degraded", why != NULL);
	write_string(w, "why", report_is_limited(r) ? NULL : why);
	write_string(w, "preset", r->m->preset);
	write_attrs(r, w);
	write_string(w, "sizesNote", r->m->sizes_note);
	json_boolean(w, "clockIsMonotonic", r->m->clock_is_monotonic);
	write_shift(r, w);
	json_end_object(w);
}

/* An emulated trace has none: its recorder names no CPU, as the host's errata are not its own. */
void report_errata(const struct report *r, struct json_writer *w)
{
	const bool known = r->m->have_cpu && r->m->cpu_intel;
	const struct errata errata = errata_for(r->m->cpu_family, r->m->cpu_model);
	const char *names[ERRATA_N];
	size_t i, n = known ? errata_list(&errata, names) : 0;

	json_begin_array(w, "errata");
	for (i = 0; i < n; i++)
		json_string(w, NULL, names[i]);
	json_end_array(w);
}

/* Some CPU's trace begins before the snapshot before this one stopped. */
static bool overlaps_previous(const struct report *r)
{
	size_t i;

	for (i = 0; i < r->m->n_cpus; i++) {
		uint64_t begin = report_begin_ns(r->d, i);

		if (begin != MANIFEST_ABSENT && begin < r->m->previous_stop_ns)
			return true;
	}
	return false;
}

void report_window(const struct report *r, struct json_writer *w)
{
	json_begin_object(w, "window");
	report_u64(w, "askedBytes", r->m->last_bytes);
	report_u64(w, "askedNSec", r->m->last_ns);
	if (r->m->previous_stop_ns == MANIFEST_ABSENT)
		json_null(w, "overlapsPrevious");
	else
		json_bool(w, "overlapsPrevious", overlaps_previous(r));
	json_end_object(w);
}
