/*
 * What the numbers mean: equal, different, or nothing to compare. Called by check_trace_page.c and
 * check_trace_json.c.
 */
#include <math.h>
#include <string.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/check/check_trace_private.h"

static const struct manifest *manifest_of(const struct check *c)
{
	return bundle_manifest(c->bundle);
}

static bool is_tracing(const struct manifest_cpu *m)
{
	return !m->state || strcmp(m->state, "tracing") == 0;
}

/* Of a recorder of our own not every CPU need have had a walk. */
enum check_verdict check_verdict(const struct check *c, size_t index)
{
	const struct check_cpu *cpu = &c->cpus[index];

	if (cpu->tally.differences > 0)
		return CHECK_VERDICT_DIFFERENT;
	if (cpu->tally.branches > 0)
		return CHECK_VERDICT_EQUAL;
	if (c->live && cpu->walked && is_tracing(&manifest_of(c)->cpus[index]))
		return CHECK_VERDICT_NOTHING;
	return CHECK_VERDICT_OTHER;
}

static size_t count(const struct check *c, enum check_verdict verdict, uint32_t *ret_first)
{
	const struct manifest *m = manifest_of(c);
	size_t n = 0;

	for (size_t i = 0; i < m->n_cpus; i++) {
		if (check_verdict(c, i) != verdict)
			continue;
		if (n++ == 0)
			*ret_first = m->cpus[i].cpu;
	}
	return n;
}

static uint64_t sum(const struct check *c, bool differences)
{
	uint64_t n = 0;

	for (size_t i = 0; i < manifest_of(c)->n_cpus; i++)
		n += differences ? c->cpus[i].tally.differences : c->cpus[i].tally.branches;
	return n;
}

static bool any_traced(const struct check *c)
{
	bool any = false;

	for (size_t i = 0; i < manifest_of(c)->n_cpus; i++)
		any |= is_tracing(&manifest_of(c)->cpus[i]) && manifest_of(c)->cpus[i].bytes > 0;
	return any;
}

int check_sentence(const struct check *c, char *ret, size_t size)
{
	uint32_t first = 0;
	size_t equal = count(c, CHECK_VERDICT_EQUAL, &first);
	size_t nothing = count(c, CHECK_VERDICT_NOTHING, &first);
	size_t different = count(c, CHECK_VERDICT_DIFFERENT, &first);
	struct figure branches = figure_count(sum(c, false));

	if (different > 0) {
		snprintf(ret, size,
			 "DIFFERENT: %s differences on %zu CPUs, the first is CPU %u; "
			 "%s branches are equal",
			 figure_count(sum(c, true)).text, different, first, branches.text);
		return EXIT_CODE_FAILURE;
	}
	if (!any_traced(c)) {
		snprintf(ret, size, "NOT TRACED: no CPU has a trace");
		return EXIT_CODE_NOT_TRACING;
	}
	if (nothing > 0 || equal == 0) {
		snprintf(ret, size, "DIFFERENT: no round of its walk is in the trace of CPU %u",
			 first);
		return EXIT_CODE_FAILURE;
	}
	snprintf(ret, size, "equal: %s branches on %zu CPUs", branches.text, equal);
	return EXIT_CODE_OK;
}

static double tsc_to_ns(const struct check *c, double tsc)
{
	const struct manifest *m = manifest_of(c);

	return m->have_clock ? ldexp(tsc * m->time_mult, -m->time_shift) : NAN;
}

double check_mb_per_second(const struct check *c, size_t index)
{
	const struct check_cpu *cpu = &c->cpus[index];
	double ns;

	if (cpu->tsc_first == 0 || cpu->tsc_last <= cpu->tsc_first)
		return NAN;
	ns = tsc_to_ns(c, (double)(cpu->tsc_last - cpu->tsc_first));
	return (double)cpu->bytes / ns * 1000;
}

double check_interval_ns(const struct check *c)
{
	double widths = 0, n = 0;

	for (size_t i = 0; i < manifest_of(c)->n_cpus; i++) {
		widths += (double)c->cpus[i].tally.width_sum;
		n += (double)c->cpus[i].tally.widths;
	}
	return n == 0 ? NAN : tsc_to_ns(c, widths / n);
}

/* As all that is not the walk's is counted, too, this is the most that it can be. */
double check_bytes_per_branch(const struct check *c, size_t index)
{
	uint64_t n = c->cpus[index].tally.branches;

	return n == 0 ? NAN : (double)c->cpus[index].bytes / (double)n;
}

void check_cpuinfo(const char *key, char *ret, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256], *value;

	*ret = '\0';
	while (f && *ret == '\0' && fgets(line, sizeof(line), f)) {
		value = strchr(line, ':');
		if (!value || strncmp(line, key, strlen(key)) != 0 ||
		    strchr(" \t:", line[strlen(key)]) == NULL)
			continue;
		value += 1 + strspn(value + 1, " ");
		value[strcspn(value, "\n")] = '\0';
		snprintf(ret, size, "%s", value);
	}
	if (f)
		fclose(f);
}
