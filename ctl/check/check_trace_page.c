/*
 * Judges the result, and prints one page that can be pasted into a bug report: the machine, how it
 * traced, a line for each CPU, and a last line with the result.
 */
#include <math.h>
#include <string.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/check/check_trace_private.h"

#ifndef PTSNAP_VERSION
#define PTSNAP_VERSION "0"
#endif
#define MAX_LINES 64u /* for CPUs whose branches are equal */

static const struct manifest *manifest_of(const struct check *c)
{
	return bundle_manifest(c->bundle);
}

static bool is_tracing(const struct manifest_cpu *m)
{
	return !m->state || strcmp(m->state, "tracing") == 0;
}

/* Under the test's own recorder, a CPU need not have had a walk. */
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

/* An upper bound: BYTES includes the trace of other programs. */
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

static void print_text(const char *key, const char *text)
{
	if (!text)
		return;
	printf("%-10s ", key);
	text_puts(stdout, text, 0);
	putchar('\n');
}

static void print_host(const struct check *c)
{
	const struct manifest *m = manifest_of(c);
	char microcode[32], name[128];

	/* The bundle of an emulated machine names no CPU model. */
	check_cpuinfo("microcode", microcode, sizeof(microcode));
	check_cpuinfo("model name", name, sizeof(name));
	printf("%-10s ", "Host");
	text_puts(stdout, m->cpu_model_name ? m->cpu_model_name : name, 60);
	if (m->have_cpu)
		printf(", family %u model %u stepping %u", m->cpu_family, m->cpu_model,
		       m->cpu_stepping);
	printf(", microcode ");
	text_puts(stdout, *microcode ? microcode : NULL, 32);
	printf("\n%-10s ", "Kernel");
	text_puts(stdout, m->kernel_release, 60);
	putchar(' ');
	text_puts(stdout, m->machine, 20);
	putchar('\n');
}

static void print_source(const struct check *c)
{
	const struct manifest *m = manifest_of(c);

	printf("%-10s ", "Source");
	text_puts(stdout, m->source, 20);
	printf(", %s", m->trace_user && m->trace_kernel ? "user and kernel"
		       : m->trace_kernel		? "kernel"
							: "user");
	if (m->preset) {
		printf(", preset ");
		text_puts(stdout, m->preset, 20);
	}
	printf(", terms ");
	text_puts(stdout, m->pt_terms, 0);
	if (m->pt_config != MANIFEST_ABSENT)
		printf(", config 0x%jx", (uintmax_t)m->pt_config);
	putchar('\n');
	print_text("PT attr", m->pt_attr);
	print_text("Sideband", m->sideband_attr);
	print_text("Not told", m->sideband_missing);
	print_text("Sizes", m->sizes_note);
}

static void print_clock(const struct check *c)
{
	const struct manifest *m = manifest_of(c);
	double width = check_interval_ns(c);

	printf("%-10s ", "Clock");
	if (m->have_clock)
		printf("TSC %.3f GHz (mult %u, shift %u, zero %jd)",
		       ldexp(1.0, m->time_shift) / (m->time_mult ? m->time_mult : 1), m->time_mult,
		       m->time_shift, (intmax_t)m->time_zero);
	else
		printf("%s", m->clock_is_monotonic ? "CLOCK_MONOTONIC" : "none");
	if (!isnan(width))
		printf(", a branch is known within %s", figure_nsec((uint64_t)width).text);
	putchar('\n');
}

static void print_errata(const struct check *c)
{
	size_t n = field_count(c->report, "errata");

	printf("%-10s ", "Errata");
	for (size_t i = 0; i < n; i++) {
		printf("%s", i > 0 ? ", " : "");
		text_puts(stdout, json_object_get_string(field_at(c->report, "errata", i)), 20);
	}
	puts(!c->report ? "not known" : n == 0 ? "none known of this processor" : "");
}

/* The time from the first CPU's stop to the last CPU's stop. */
static void print_skew(const struct check *c)
{
	const struct manifest *m = manifest_of(c);
	uint64_t first = UINT64_MAX, last = 0;
	size_t n = 0;

	for (size_t i = 0; i < m->n_cpus; i++) {
		if (m->cpus[i].stop_ns == MANIFEST_ABSENT || m->cpus[i].bytes == 0)
			continue;
		first = MIN_OF(first, m->cpus[i].stop_ns);
		last = MAX_OF(last, m->cpus[i].stop_ns);
		n++;
	}
	if (n > 1)
		printf("%-10s %s between the first and the last of %zu CPUs to stop\n", "Skew",
		       figure_nsec(last - first).text, n);
}

static void print_gaps(const struct check *c)
{
	printf("%-10s ", "Gaps");
	for (size_t i = 0; i < c->n_gaps; i++) {
		printf("%s", i > 0 ? ", " : "");
		text_puts(stdout, c->gaps[i].kind, 32);
		printf(" %ju", (uintmax_t)c->gaps[i].n);
	}
	puts(c->n_gaps == 0 ? "none in the walks" : " (in the walks)");
}

static void print_double(double v, int width, const char *unit)
{
	if (isnan(v))
		printf(" %*s", width, "-");
	else
		printf(" %*.*f%s", width - (int)strlen(unit), v < 10 ? 2 : 1, v, unit);
}

/* In GB/s, which are bytes per nanosecond. */
static double copy_speed(const struct manifest_cpu *cpu)
{
	if (cpu->copy_ns == 0 || cpu->copy_ns == MANIFEST_ABSENT)
		return NAN;
	return (double)cpu->bytes / (double)cpu->copy_ns;
}

static void print_known_nsec(uint64_t nsec)
{
	printf(" %9s", nsec == MANIFEST_ABSENT ? "-" : figure_nsec(nsec).text);
}

static void print_cpu(const struct check *c, size_t i)
{
	static const char *const words[] = {"yes", "NO", "NOTHING", "-"};
	const struct manifest_cpu *m = &manifest_of(c)->cpus[i];
	const struct check_cpu *cpu = &c->cpus[i];

	printf("%3u %12s %8s %7s %10s", m->cpu, figure_count(cpu->tally.branches).text,
	       figure_count(cpu->tally.rounds).text, words[check_verdict(c, i)],
	       figure_bytes(cpu->bytes).text);
	print_double(check_mb_per_second(c, i), 7, "");
	print_double(check_bytes_per_branch(c, i), 8, "");
	print_double(cpu->psbs > 1 ? (double)cpu->psb_sum / (double)(cpu->psbs - 1) : NAN, 8, "");
	printf(" %8ju", (uintmax_t)cpu->psb_max);
	print_known_nsec(m->dark_ns);
	print_double(copy_speed(m), 6, "");
	putchar('\n');
}

static void print_state(const struct manifest_cpu *m)
{
	printf("%3u not traced: ", m->cpu);
	text_puts(stdout, m->state, 20);
	if (m->why) {
		printf(", ");
		text_puts(stdout, m->why, 200);
	}
	putchar('\n');
}

const char *check_walk_kind(uint8_t kind)
{
	static const char *const names[] = {
		[WALK_KIND_TAKEN] = "conditional", [WALK_KIND_NOT_TAKEN] = "not taken",
		[WALK_KIND_JUMP] = "jump",	   [WALK_KIND_JUMP_IND] = "indirect jump",
		[WALK_KIND_CALL] = "call",	   [WALK_KIND_CALL_IND] = "indirect call",
		[WALK_KIND_RET] = "return",	   [WALK_KIND_SYSCALL] = "system call",
	};

	return kind < ARRAY_SIZE(names) ? names[kind] : "?";
}

static void print_difference(const struct check *c, size_t i)
{
	const struct walk_difference *d = &c->cpus[i].difference;

	if (!d->known)
		return;
	printf("    seed %ju round %u: expected %s 0x%jx -> 0x%jx\n", (uintmax_t)d->seed, d->round,
	       check_walk_kind(d->expected.kind), (uintmax_t)d->expected.from,
	       (uintmax_t)d->expected.to);
	printf("    got 0x%jx -> 0x%jx, packet at 0x%jx of its trace; %s differences\n",
	       (uintmax_t)d->got.from, (uintmax_t)d->got.to, (uintmax_t)d->got.offset,
	       figure_count(c->cpus[i].tally.differences).text);
}

static void print_cpus(const struct check *c)
{
	const struct manifest *m = manifest_of(c);
	size_t shown = 0, left = 0;

	puts("\nCPU     BRANCHES   ROUNDS   EQUAL      TRACE    MB/S B/BRANCH PSB MEAN  PSB MAX"
	     "      DARK COPY GB/S");
	for (size_t i = 0; i < m->n_cpus; i++) {
		if (check_verdict(c, i) == CHECK_VERDICT_EQUAL && shown++ >= MAX_LINES) {
			left++;
			continue;
		}
		if (m->cpus[i].state && strcmp(m->cpus[i].state, "tracing") != 0)
			print_state(&m->cpus[i]);
		else
			print_cpu(c, i);
		print_difference(c, i);
	}
	if (left > 0)
		printf("... and %zu more that are equal\n", left);
}

int check_page(const struct check *c)
{
	char sentence[256];
	int code = check_sentence(c, sentence, sizeof(sentence));

	printf("ptsnap " PTSNAP_VERSION ", check --trace: ptsnap-walk, seed %ju\n\n",
	       (uintmax_t)c->seed);
	print_host(c);
	print_source(c);
	print_clock(c);
	print_errata(c);
	print_skew(c);
	print_gaps(c);
	print_cpus(c);
	printf("\n%s\n", sentence);
	return code;
}
