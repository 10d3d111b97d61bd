/*
 * The head of the report, from the manifest: host, trigger, configuration, trace and window.
 */
#include <string.h>

#include "decoder/packet/errata.h"
#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

static void write_string(struct json_writer *w, const char *key, const char *v)
{
	report_string_cut(w, key, v, REPORT_MAX_STRING);
}

void report_host(const struct report *r, struct json_writer *w)
{
	json_begin_object(w, "host");
	write_string(w, "hostname", r->m->hostname);
	write_string(w, "kernel", r->m->kernel_release);
	write_string(w, "machine", r->m->machine);
	write_string(w, "bootId", r->m->boot_id);
	if (!r->m->have_cpu) {
		json_null(w, "cpu");
	} else {
		json_begin_object(w, "cpu");
		json_string(w, "vendor", r->m->cpu_intel ? "GenuineIntel" : NULL);
		json_u64(w, "family", r->m->cpu_family);
		json_u64(w, "model", r->m->cpu_model);
		json_u64(w, "stepping", r->m->cpu_stepping);
		write_string(w, "name", r->m->cpu_model_name);
		json_end_object(w);
	}
	json_end_object(w);
}

/* A user is not told why another user took the snapshot. */
static bool is_own_request(const struct report *r)
{
	return !report_is_limited(r) || r->m->sender_uid == r->d->replay->permit->uid;
}

static uint64_t to_usec(uint64_t ns)
{
	return ns == MANIFEST_ABSENT ? ns : ns / 1000;
}

/* Writes only the keys that have a value. */
static void write_units(const struct report *r, struct json_writer *w)
{
	const struct manifest *m = r->m;
	const char *last = NULL;

	if (!is_own_request(r))
		return;
	if (m->unit)
		json_string(w, "unit", m->unit);
	if (m->sender_unit)
		json_string(w, "senderUnit", m->sender_unit);
	/* The name of a core dump tells the name and the user of the process that crashed. */
	if (m->coredump && !report_is_limited(r))
		json_string(w, "coredump", m->coredump);
	if (m->n_labels == 0)
		return;
	json_begin_object(w, "labels");
	for (size_t i = 0; i < m->n_labels; i++) {
		/* The recorder sorts labels and has each key once. A label out of order is left
		 * out: the manifest may be a stranger's. */
		if (last && strcmp(last, m->labels[i].key) >= 0)
			continue;
		last = m->labels[i].key;
		json_string(w, last, m->labels[i].value);
	}
	json_end_object(w);
}

void report_trigger(const struct report *r, struct json_writer *w)
{
	const struct manifest *m = r->m;

	json_begin_object(w, "trigger");
	write_string(w, "kind", m->trigger_kind);
	write_string(w, "name", is_own_request(r) ? m->trigger_name : NULL);
	write_string(w, "reason", is_own_request(r) ? m->reason : NULL);
	if (!is_own_request(r) ||
	    (m->sender_pid == MANIFEST_ABSENT && m->sender_uid == MANIFEST_ABSENT)) {
		json_null(w, "sender");
	} else {
		json_begin_object(w, "sender");
		report_u64(w, "pid", m->sender_pid);
		report_u64(w, "uid", m->sender_uid);
		json_end_object(w);
	}
	report_u64(w, "realtimeUSec", to_usec(m->realtime_ns));
	report_u64(w, "monotonicUSec", to_usec(m->monotonic_ns));
	report_hex(w, "tsc", m->tsc);
	/* One moment on each clock: all times relative to the trigger can be told on each. */
	json_begin_object(w, "clocks");
	report_u64(w, "realtimeNSec", m->realtime_ns);
	report_u64(w, "monotonicNSec", m->monotonic_ns);
	report_u64(w, "perfNSec", m->perf_ns);
	json_end_object(w);
	write_units(r, w);
	json_end_object(w);
}

/* Why there is no trace at all; NULL if there is a trace, or if the recording does not say that
 * there should be a trace. */
static const char *degraded_why(const struct manifest *m)
{
	const char *why = NULL;

	for (size_t i = 0; i < m->n_cpus; i++) {
		const struct manifest_cpu *cpu = &m->cpus[i];

		if (cpu->bytes > 0 || !cpu->state || strcmp(cpu->state, "tracing") == 0)
			return NULL;
		if (!why && cpu->why && *cpu->why != '\0')
			why = cpu->why;
	}
	return why || m->n_cpus == 0 ? why : m->cpus[0].state;
}

static void write_bool(struct json_writer *w, const char *key, bool known, bool value)
{
	if (known)
		json_bool(w, key, value);
	else
		json_null(w, key);
}

/* How much the packets can tell by the configuration, and which ones it leaves out. */
static void write_contents(struct json_writer *w, const struct manifest *m)
{
	static const char *const kinds[] = {[MANIFEST_BRANCHES] = "branches",
					    [MANIFEST_TARGETS] = "targets",
					    [MANIFEST_EVENTS] = "events"};
	const enum manifest_contents contents = manifest_contents(m);

	if (m->pt_config == MANIFEST_ABSENT) {
		json_null(w, "contents");
		json_null(w, "withoutPackets");
		return;
	}
	json_string(w, "contents", kinds[contents]);
	json_begin_array(w, "withoutPackets");
	if (contents == MANIFEST_EVENTS)
		json_string(w, NULL, "branches");
	if ((m->pt_config & PT_CONFIG_NOTNT) != 0)
		json_string(w, NULL, "tnt");
	if ((m->pt_config & PT_CONFIG_TSC) == 0)
		json_string(w, NULL, "tsc");
	if ((m->pt_config & PT_CONFIG_MTC) == 0)
		json_string(w, NULL, "mtc");
	json_end_array(w);
}

void report_configuration(const struct report *r, struct json_writer *w)
{
	const struct manifest *m = r->m;
	/* Whether a trace was configured at all. */
	bool traced = m->pt_config != MANIFEST_ABSENT || !degraded_why(m);

	json_begin_object(w, "configuration");
	write_string(w, "source", m->source);
	write_contents(w, m);
	report_filters(w, m);
	json_begin_object(w, "attr");
	report_hex(w, "config", m->pt_config);
	write_string(w, "terms", m->pt_terms);
	write_bool(w, "excludeUser", traced, !m->trace_user);
	write_bool(w, "excludeKernel", traced, !m->trace_kernel);
	json_end_object(w);
	report_u64(w, "mtcPeriod", m->mtc_period == UINT32_MAX ? MANIFEST_ABSENT : m->mtc_period);
	report_u64(w, "maxNonturboRatio",
		   m->max_nonturbo_ratio == 0 ? MANIFEST_ABSENT : m->max_nonturbo_ratio);
	if (m->tsc_art_num == 0 || m->tsc_art_den == 0) {
		json_null(w, "tscArtRatio");
	} else {
		json_begin_object(w, "tscArtRatio");
		json_u64(w, "numerator", m->tsc_art_num);
		json_u64(w, "denominator", m->tsc_art_den);
		json_end_object(w);
	}
	write_bool(w, "returnCompression", traced, !m->noretcomp);
	if (!m->have_clock) {
		json_null(w, "clock");
	} else {
		json_begin_object(w, "clock");
		json_u64(w, "timeZero", m->time_zero);
		json_u64(w, "timeMult", m->time_mult);
		json_u64(w, "timeShift", m->time_shift);
		json_end_object(w);
	}
	json_end_object(w);
}

/* The list of the words between the commas of WORDS. */
static void write_words(struct json_writer *w, const char *key, const char *words)
{
	size_t left = REPORT_MAX_STRING;

	json_begin_array(w, key);
	while (words && *words != '\0' && left > 0) {
		size_t n = MIN_OF(strcspn(words, ","), left);

		json_string_n(w, NULL, words, n);
		left -= n;
		words += n;
		words += *words == ',';
	}
	json_end_array(w);
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
	json_boolean(w, "degraded", why);
	write_string(w, "why", report_is_limited(r) ? NULL : why);
	write_string(w, "preset", r->m->preset);
	json_begin_object(w, "attrs");
	write_string(w, "pt", r->m->pt_attr);
	write_string(w, "sideband", r->m->sideband_attr);
	write_words(w, "sidebandMissing", r->m->sideband_missing);
	json_end_object(w);
	write_string(w, "sizesNote", r->m->sizes_note);
	json_boolean(w, "clockIsMonotonic", r->m->clock_is_monotonic);
	write_shift(r, w);
	json_end_object(w);
}

/* An emulated trace has no errata: its recorder names no CPU, because the host's errata are not
 * those of the emulated PMU. */
void report_errata(const struct report *r, struct json_writer *w)
{
	const bool known = r->m->have_cpu && r->m->cpu_intel;
	const struct errata errata = errata_for(r->m->cpu_family, r->m->cpu_model);
	const char *names[ERRATA_N];
	size_t n = known ? errata_list(&errata, names) : 0;

	json_begin_array(w, "errata");
	for (size_t i = 0; i < n; i++)
		json_string(w, NULL, names[i]);
	json_end_array(w);
}

void report_window(const struct report *r, struct json_writer *w)
{
	/* A trace begins before the end of the previous snapshot. */
	bool overlaps = false;

	for (size_t i = 0; i < r->m->n_cpus; i++) {
		uint64_t begin = report_begin_ns(r->d, i);

		overlaps |= begin != MANIFEST_ABSENT && begin < r->m->previous_stop_ns;
	}
	json_begin_object(w, "window");
	report_u64(w, "askedBytes", r->m->last_bytes);
	report_u64(w, "askedNSec", r->m->last_ns);
	write_bool(w, "overlapsPrevious", r->m->previous_stop_ns != MANIFEST_ABSENT, overlaps);
	if (r->d->window.searched &&
	    (r->m->last_ns != MANIFEST_ABSENT || r->d->window.from_ns != MANIFEST_ABSENT)) {
		report_at(r, w, "ringsSinceNSec",
			  r->d->window.whole_since == 0 ? MANIFEST_ABSENT
							: r->d->window.whole_since);
		report_u64(w, "lastStretchesLeft", r->d->window.threads_left);
	}
	json_end_object(w);
}

void report_slice(const struct report *r, struct json_writer *w)
{
	const struct decode_slice *slice = &r->options->slice;
	const bool all = slice->from == WORKER_TIME_NONE && slice->to == WORKER_TIME_NONE;

	if (all && !decode_slice_selects(slice))
		return;
	json_begin_object(w, "slice");
	report_at(r, w, "fromNSec", r->d->window.from_ns);
	report_at(r, w, "toNSec", r->d->window.to_ns);
	report_u64(w, "cpu", slice->has_cpu ? slice->cpu : MANIFEST_ABSENT);
	report_u64(w, "pid", slice->has_pid ? slice->pid : MANIFEST_ABSENT);
	report_u64(w, "tid", slice->has_tid ? slice->tid : MANIFEST_ABSENT);
	report_string_cut(w, "comm", slice->comm[0] ? slice->comm : NULL, sizeof(slice->comm));
	json_end_object(w);
}
