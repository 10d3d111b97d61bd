/*
 * Makes findings from the state of a running recorder: what is not as it should be, and what mends
 * it.
 */
#include "daemon/check/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"

struct live {
	const struct status_from *from;
	finding_fn fn;
	void *userdata;
};

static void PRINTF_LIKE(5, 6) say(const struct live *l, enum finding_level level, const char *what,
				  const char *fix, const char *format, ...)
{
	struct finding f = {.level = level};
	va_list args;

	snprintf(f.what, sizeof(f.what), "%s", what);
	snprintf(f.fix, sizeof(f.fix), "%s", fix);
	va_start(args, format);
	vsnprintf(f.text, sizeof(f.text), format, args);
	va_end(args);
	finding_clean(&f);
	l->fn(l->userdata, &f);
}

static size_t count(const struct source *s, enum source_cpu_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_cpus; i++)
		n += s->cpus[i].state == state;
	return n;
}

static const char *state_fix(enum source_cpu_state state)
{
	switch (state) {
	case SOURCE_CPU_BUSY:
		return "end the program that traces; the CPU is taken as soon as it is free";
	case SOURCE_CPU_YIELDED: return "ptsnapctl yield --end";
	case SOURCE_CPU_FAILED: return "journalctl -u ptsnapd; it is tried again by itself";
	default: return "";
	}
}

/* Makes one finding for all CPUs in STATE that have the same reason, at the first of them. */
static void tell_state(const struct live *l, enum source_cpu_state state, enum finding_level level)
{
	const struct source *s = l->from->intake->source;

	for (size_t i = 0; i < s->n_cpus; i++) {
		const struct source_cpu *c = &s->cpus[i];
		size_t n = 0;
		bool first = c->state == state;

		for (size_t k = 0; k < s->n_cpus && first; k++) {
			if (s->cpus[k].state != state || strcmp(s->cpus[k].why, c->why) != 0)
				continue;
			first = k >= i;
			n++;
		}
		if (first)
			say(l, level, "cpus", state_fix(state), "CPU %u%s: %s%s%s", c->cpu,
			    n > 1 ? " and others" : "", source_cpu_state_name(state),
			    *c->why ? ": " : "", c->why);
	}
}

static void tell_cpus(const struct live *l)
{
	const struct source *s = l->from->intake->source;
	size_t tracing = count(s, SOURCE_CPU_TRACING), away = count(s, SOURCE_CPU_OFFLINE);
	size_t lent = count(s, SOURCE_CPU_YIELDED);
	const char *state = status_state(l->from);

	if (strcmp(state, "ended") == 0)
		say(l, FINDING_NOTE, "recorder", "", "the command has ended: nothing is traced");
	else if (tracing)
		say(l, FINDING_OK, "recorder", "", "%zu of %zu CPUs are traced (%s)", tracing,
		    s->n_cpus - away, s->ops->name);
	else if (lent)
		say(l, FINDING_NOTE, "recorder", "ptsnapctl yield --end",
		    "Intel PT is handed back: no CPU is traced");
	else
		say(l, FINDING_FAILURE, "recorder", "see the other lines",
		    "no CPU is traced: only the kernel's records are recorded (degraded)");
	tell_state(l, SOURCE_CPU_BUSY, FINDING_WARNING);
	tell_state(l, SOURCE_CPU_FAILED, FINDING_WARNING);
	if (lent && tracing)
		tell_state(l, SOURCE_CPU_YIELDED, FINDING_NOTE);
	tell_state(l, SOURCE_CPU_OFFLINE, FINDING_NOTE);
}

/* Makes one finding for all CPUs whose trace units write nothing. */
static void tell_silent(const struct live *l)
{
	const struct intake *in = l->from->intake;
	const struct source_cpu *first = NULL;
	uint64_t user_ns = 0;
	size_t n = 0;

	for (size_t i = 0; i < in->source->n_cpus; i++) {
		if (!in->cpus[i].silence.is)
			continue;
		first = first ? first : &in->source->cpus[i];
		user_ns = MAX_OF(user_ns, in->cpus[i].silence.user_ns);
		n++;
	}
	if (first)
		say(l, FINDING_WARNING, "silent",
		    "ptsnapctl yield --for=1s opens the trace anew; see dmesg | grep -w PT",
		    "CPU %u%s: user code ran for %ju ms, and the trace unit wrote nothing (pt-silent)",
		    first->cpu, n > 1 ? " and others" : "", (uintmax_t)(user_ns / 1000000));
}

/* Times that only the log and the reports tell of: the CPU's state is as before. */
static void tell_dark(const struct live *l)
{
	const struct source *s = l->from->intake->source;
	uint64_t ns = 0;
	size_t n = 0;

	for (size_t i = 0; i < s->n_cpus; i++)
		for (size_t k = 0; k < s->cpus[i].dark.n; k++) {
			const struct dark_span *span = dark_at(&s->cpus[i].dark, k);

			if (span->open || span->since_ns == MANIFEST_ABSENT ||
			    span->until_ns == MANIFEST_ABSENT ||
			    strcmp(span->kind, source_cpu_state_fault(SOURCE_CPU_FAILED)) != 0)
				continue;
			ns += span->until_ns - span->since_ns;
			n++;
		}
	if (n > 0)
		say(l, FINDING_NOTE, "dark", "",
		    "the kernel stopped or refused to trace CPUs %zu times, for %ju ms in all; they "
		    "are traced again",
		    n, (uintmax_t)(ns / 1000000));
}

static void tell_losses(const struct live *l)
{
	const struct intake *in = l->from->intake;
	struct drain_stats stats;
	uint64_t lost = 0;

	for (size_t i = 0; i < in->source->n_cpus; i++)
		lost += in->cpus[i].lost;
	drain_get_stats(in->drain, &stats);
	if (lost)
		say(l, FINDING_WARNING, "lost", "larger rings: --data-size=, SidebandRingSize=",
		    "%ju sideband records were lost since the start: which thread ran "
		    "when is less certain",
		    (uintmax_t)lost);
	if (stats.stalls)
		say(l, FINDING_WARNING, "queue", "less load, or larger rings: --data-size=",
		    "records came faster than the recorder took them in, %ju times",
		    (uintmax_t)stats.stalls);
}

/* A snapshot that does not fit beside the pinned ones stays in memory. */
static void tell_pinned(const struct live *l)
{
	const struct source *s = l->from->intake->source;
	struct store_pins pins;
	uint64_t rings = 0;

	if (!l->from->store)
		return;
	store_get_pins(l->from->store, &pins);
	for (size_t i = 0; i < s->n_cpus; i++)
		rings += s->cpus[i].pt.aux_size;
	if (pins.n > 0 && rings > pins.left_bytes)
		say(l, FINDING_WARNING, "pinned",
		    "ptsnapctl unpin, or a larger MaxUse= in ptsnapd.conf",
		    "pinned snapshots (%zu) leave %ju MiB of MaxUse= to new ones, and a snapshot of "
		    "all rings takes %ju MiB",
		    pins.n, (uintmax_t)(pins.left_bytes >> 20), (uintmax_t)(rings >> 20));
}

void check_live(const struct status_from *from, finding_fn fn, void *userdata)
{
	const struct source *s = from->intake->source;
	const struct live l = {from, fn, userdata};

	tell_cpus(&l);
	if (s->sizes_note && *s->sizes_note)
		say(&l, FINDING_WARNING, "rings", "RingBudget= in ptsnapd.conf", "%s",
		    s->sizes_note);
	if (s->sideband_missing && *s->sideband_missing)
		say(&l, FINDING_WARNING, "rings", "run a newer kernel (5.12 has all records)",
		    "recorded without: %s", s->sideband_missing);
	tell_silent(&l);
	tell_dark(&l);
	tell_losses(&l);
	tell_pinned(&l);
}
