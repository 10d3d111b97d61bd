/*
 * Prints the result as JSON, with the content of the page.
 */
#include <math.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/check/check_trace_private.h"

#ifndef PTSNAP_VERSION
#define PTSNAP_VERSION "0"
#endif

static const struct manifest *manifest_of(const struct check *c)
{
	return bundle_manifest(c->bundle);
}

static void put(struct json_object *to, const char *key, struct json_object *value)
{
	if (json_object_object_add(to, key, value) < 0)
		json_object_put(value);
}

static void put_text(struct json_object *to, const char *key, const char *value)
{
	put(to, key, value ? json_object_new_string(value) : NULL);
}

static void put_number(struct json_object *to, const char *key, uint64_t value)
{
	put(to, key, value == MANIFEST_ABSENT ? NULL : json_object_new_uint64(value));
}

static void put_double(struct json_object *to, const char *key, double value)
{
	put(to, key, isnan(value) ? NULL : json_object_new_double(value));
}

static void put_hex(struct json_object *to, const char *key, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%jx", (uintmax_t)value);
	put_text(to, key, text);
}

static struct json_object *host_of(const struct check *c)
{
	const struct manifest *m = manifest_of(c);
	struct json_object *o = json_object_new_object();
	char microcode[32];

	check_cpuinfo("microcode", microcode, sizeof(microcode));
	put_text(o, "cpu", m->cpu_model_name);
	put_number(o, "family", m->have_cpu ? m->cpu_family : MANIFEST_ABSENT);
	put_number(o, "model", m->have_cpu ? m->cpu_model : MANIFEST_ABSENT);
	put_number(o, "stepping", m->have_cpu ? m->cpu_stepping : MANIFEST_ABSENT);
	put_text(o, "microcode", *microcode ? microcode : NULL);
	put_text(o, "kernel", m->kernel_release);
	put_text(o, "machine", m->machine);
	return o;
}

static struct json_object *configuration_of(const struct check *c)
{
	const struct manifest *m = manifest_of(c);
	struct json_object *o = json_object_new_object();

	put_text(o, "source", m->source);
	put_text(o, "preset", m->preset);
	put_text(o, "terms", m->pt_terms);
	if (m->pt_config != MANIFEST_ABSENT)
		put_hex(o, "config", m->pt_config);
	put_text(o, "ptAttr", m->pt_attr);
	put_text(o, "sidebandAttr", m->sideband_attr);
	put_text(o, "sidebandMissing", m->sideband_missing);
	put_text(o, "sizesNote", m->sizes_note);
	return o;
}

static struct json_object *clock_of(const struct check *c)
{
	const struct manifest *m = manifest_of(c);
	struct json_object *o = json_object_new_object();

	put_number(o, "timeMult", m->have_clock ? m->time_mult : MANIFEST_ABSENT);
	put_number(o, "timeShift", m->have_clock ? m->time_shift : MANIFEST_ABSENT);
	put_number(o, "timeZero", m->have_clock ? m->time_zero : MANIFEST_ABSENT);
	put_double(o, "meanIntervalNSec", check_interval_ns(c));
	return o;
}

static struct json_object *difference_of(const struct walk_difference *d)
{
	struct json_object *o;

	if (!d->known)
		return NULL;
	o = json_object_new_object();
	put_number(o, "seed", d->seed);
	put_number(o, "round", d->round);
	put_text(o, "expected", check_walk_kind(d->expected.kind));
	put_hex(o, "expectedFrom", d->expected.from);
	put_hex(o, "expectedTo", d->expected.to);
	put_hex(o, "from", d->got.from);
	put_hex(o, "to", d->got.to);
	put_hex(o, "offset", d->got.offset);
	return o;
}

static struct json_object *cpu_of(const struct check *c, size_t i)
{
	static const char *const words[] = {"equal", "different", "nothing", "other"};
	const struct manifest_cpu *m = &manifest_of(c)->cpus[i];
	const struct check_cpu *cpu = &c->cpus[i];
	struct json_object *o = json_object_new_object();

	put_number(o, "cpu", m->cpu);
	put_text(o, "state", m->state);
	put_text(o, "why", m->why);
	put_text(o, "verdict", words[check_verdict(c, i)]);
	put_number(o, "branches", cpu->tally.branches);
	put_number(o, "rounds", cpu->tally.rounds);
	put_number(o, "skipped", cpu->tally.skipped);
	put_number(o, "interrupts", cpu->tally.interrupts);
	put_number(o, "differences", cpu->tally.differences);
	put(o, "firstDifference", difference_of(&cpu->difference));
	put_number(o, "bytes", cpu->bytes);
	put_number(o, "copiedBytes", m->bytes);
	put_double(o, "mbPerSecond", check_mb_per_second(c, i));
	put_double(o, "bytesPerBranch", check_bytes_per_branch(c, i));
	put_number(o, "psbs", cpu->psbs);
	put_double(o, "psbMeanBytes",
		   cpu->psbs > 1 ? (double)cpu->psb_sum / (double)(cpu->psbs - 1) : NAN);
	put_number(o, "psbMaxBytes", cpu->psb_max);
	put_number(o, "stopNSec", m->stop_ns);
	put_number(o, "darkNSec", m->dark_ns);
	put_number(o, "copyNSec", m->copy_ns);
	return o;
}

int check_json(const struct check *c)
{
	struct json_object *o = json_object_new_object(), *gaps = json_object_new_object();
	struct json_object *cpus = json_object_new_array();
	char sentence[256];
	int code = check_sentence(c, sentence, sizeof(sentence));

	put_text(o, "version", PTSNAP_VERSION);
	put_text(o, "result", sentence);
	put(o, "equal", json_object_new_boolean(code == 0));
	put_number(o, "seed", c->seed);
	put(o, "host", host_of(c));
	put(o, "configuration", configuration_of(c));
	put(o, "clock", clock_of(c));
	put(o, "errata", json_object_get(field_get(c->report, "errata")));
	for (size_t i = 0; i < c->n_gaps; i++)
		put_number(gaps, c->gaps[i].kind, c->gaps[i].n);
	put(o, "gapCounts", gaps);
	for (size_t i = 0; i < manifest_of(c)->n_cpus; i++)
		json_object_array_add(cpus, cpu_of(c, i));
	put(o, "cpus", cpus);
	json_print(c->options->settings, o);
	json_object_put(o);
	return code;
}
