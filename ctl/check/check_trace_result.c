/*
 * Judges the result, and prints it as JSON, or as one page that can be pasted into a bug report:
 * the machine, how it traced, a line for each CPU, and a last line with the result.
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

/* The result of one CPU. */
enum verdict {
	VERDICT_EQUAL = 0,
	VERDICT_DIFFERENT,
	VERDICT_NOTHING, /* traced, with a walk, but no round was found */
	VERDICT_OTHER,	 /* not traced, or without a walk: nothing to compare */
};

/* Under the test's own recorder, a CPU need not have had a walk. */
static enum verdict verdict_of(const struct check *c, size_t index)
{
	const struct check_cpu *cpu = &c->cpus[index];

	if (cpu->tally.differences > 0)
		return VERDICT_DIFFERENT;
	if (cpu->tally.branches > 0)
		return VERDICT_EQUAL;
	if (c->live && cpu->walked && is_tracing(&manifest_of(c)->cpus[index]))
		return VERDICT_NOTHING;
	return VERDICT_OTHER;
}

static size_t count(const struct check *c, enum verdict verdict, uint32_t *ret_first)
{
	const struct manifest *m = manifest_of(c);
	size_t n = 0;

	for (size_t i = 0; i < m->n_cpus; i++) {
		if (verdict_of(c, i) != verdict)
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

/* Writes the result of all CPUs as one line, and returns the exit code. */
static int sentence_of(const struct check *c, char *ret, size_t size)
{
	uint32_t first = 0;
	size_t equal = count(c, VERDICT_EQUAL, &first);
	size_t nothing = count(c, VERDICT_NOTHING, &first);
	size_t different = count(c, VERDICT_DIFFERENT, &first);
	struct figure branches = figure_count(sum(c, false));
	bool traced = false;

	for (size_t i = 0; i < manifest_of(c)->n_cpus; i++)
		traced |= is_tracing(&manifest_of(c)->cpus[i]) && manifest_of(c)->cpus[i].bytes > 0;
	if (different > 0) {
		snprintf(ret, size,
			 "DIFFERENT: %s differences on %zu CPUs, the first is CPU %u; "
			 "%s branches are equal",
			 figure_count(sum(c, true)).text, different, first, branches.text);
		return EXIT_CODE_FAILURE;
	}
	if (!traced) {
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

static double mb_per_second(const struct check *c, size_t index)
{
	const struct check_cpu *cpu = &c->cpus[index];
	double ns;

	if (cpu->tsc_first == 0 || cpu->tsc_last <= cpu->tsc_first)
		return NAN;
	ns = tsc_to_ns(c, (double)(cpu->tsc_last - cpu->tsc_first));
	return (double)cpu->bytes / ns * 1000;
}

/* The mean width of the intervals in which branches are known to lie. NAN: not known. */
static double interval_ns(const struct check *c)
{
	double widths = 0, n = 0;

	for (size_t i = 0; i < manifest_of(c)->n_cpus; i++) {
		widths += (double)c->cpus[i].tally.width_sum;
		n += (double)c->cpus[i].tally.widths;
	}
	return n == 0 ? NAN : tsc_to_ns(c, widths / n);
}

/* An upper bound: BYTES includes the trace of other programs. */
static double bytes_per_branch(const struct check *c, size_t index)
{
	uint64_t n = c->cpus[index].tally.branches;

	return n == 0 ? NAN : (double)c->cpus[index].bytes / (double)n;
}

/* Reads KEY of the first processor in /proc/cpuinfo; "" if there is none. */
static void read_cpuinfo(const char *key, char *ret, size_t size)
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
	read_cpuinfo("microcode", microcode, sizeof(microcode));
	read_cpuinfo("model name", name, sizeof(name));
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
	double width = interval_ns(c);

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

static void print_double(double v, int width, const char *unit)
{
	if (isnan(v))
		printf(" %*s", width, "-");
	else
		printf(" %*.*f%s", width - (int)strlen(unit), v < 10 ? 2 : 1, v, unit);
}

static void print_cpu(const struct check *c, size_t i)
{
	static const char *const words[] = {"yes", "NO", "NOTHING", "-"};
	const struct manifest_cpu *m = &manifest_of(c)->cpus[i];
	const struct check_cpu *cpu = &c->cpus[i];

	printf("%3u %12s %8s %7s %10s", m->cpu, figure_count(cpu->tally.branches).text,
	       figure_count(cpu->tally.rounds).text, words[verdict_of(c, i)],
	       figure_bytes(cpu->bytes).text);
	print_double(mb_per_second(c, i), 7, "");
	print_double(bytes_per_branch(c, i), 8, "");
	print_double(cpu->psbs > 1 ? (double)cpu->psb_sum / (double)(cpu->psbs - 1) : NAN, 8, "");
	printf(" %8ju", (uintmax_t)cpu->psb_max);
	printf(" %9s", m->dark_ns == MANIFEST_ABSENT ? "-" : figure_nsec(m->dark_ns).text);
	/* Bytes per nanosecond are GB/s. */
	print_double(m->copy_ns == 0 || m->copy_ns == MANIFEST_ABSENT
			     ? NAN
			     : (double)m->bytes / (double)m->copy_ns,
		     6, "");
	putchar('\n');
}

static const char *walk_kind_name(uint8_t kind)
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
	       walk_kind_name(d->expected.kind), (uintmax_t)d->expected.from,
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
		const struct manifest_cpu *cpu = &m->cpus[i];

		if (verdict_of(c, i) == VERDICT_EQUAL && shown++ >= MAX_LINES) {
			left++;
			continue;
		}
		if (is_tracing(cpu)) {
			print_cpu(c, i);
		} else {
			printf("%3u not traced: ", cpu->cpu);
			text_puts(stdout, cpu->state, 20);
			if (cpu->why) {
				printf(", ");
				text_puts(stdout, cpu->why, 200);
			}
			putchar('\n');
		}
		print_difference(c, i);
	}
	if (left > 0)
		printf("... and %zu more that are equal\n", left);
}

int check_page(const struct check *c)
{
	char sentence[256];
	int code = sentence_of(c, sentence, sizeof(sentence));
	size_t n = field_count(c->report, "errata");

	printf("ptsnap " PTSNAP_VERSION ", check --trace: ptsnap-walk, seed %ju\n\n",
	       (uintmax_t)c->seed);
	print_host(c);
	print_source(c);
	print_clock(c);
	printf("%-10s ", "Errata");
	for (size_t i = 0; i < n; i++) {
		printf("%s", i > 0 ? ", " : "");
		text_puts(stdout, json_object_get_string(field_at(c->report, "errata", i)), 20);
	}
	puts(!c->report ? "not known" : n == 0 ? "none known of this processor" : "");
	print_skew(c);
	printf("%-10s ", "Gaps");
	for (size_t i = 0; i < c->n_gaps; i++) {
		printf("%s", i > 0 ? ", " : "");
		text_puts(stdout, c->gaps[i].kind, 32);
		printf(" %ju", (uintmax_t)c->gaps[i].n);
	}
	puts(c->n_gaps == 0 ? "none in the walks" : " (in the walks)");
	print_cpus(c);
	printf("\n%s\n", sentence);
	return code;
}

/* --- As JSON, with the content of the page --- */

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

	read_cpuinfo("microcode", microcode, sizeof(microcode));
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

static struct json_object *difference_of(const struct walk_difference *d)
{
	struct json_object *o;

	if (!d->known)
		return NULL;
	o = json_object_new_object();
	put_number(o, "seed", d->seed);
	put_number(o, "round", d->round);
	put_text(o, "expected", walk_kind_name(d->expected.kind));
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
	put_text(o, "verdict", words[verdict_of(c, i)]);
	put_number(o, "branches", cpu->tally.branches);
	put_number(o, "rounds", cpu->tally.rounds);
	put_number(o, "skipped", cpu->tally.skipped);
	put_number(o, "interrupts", cpu->tally.interrupts);
	put_number(o, "differences", cpu->tally.differences);
	put(o, "firstDifference", difference_of(&cpu->difference));
	put_number(o, "bytes", cpu->bytes);
	put_number(o, "copiedBytes", m->bytes);
	put_double(o, "mbPerSecond", mb_per_second(c, i));
	put_double(o, "bytesPerBranch", bytes_per_branch(c, i));
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
	struct json_object *cpus = json_object_new_array(), *clock = json_object_new_object();
	const struct manifest *m = manifest_of(c);
	char sentence[256];
	int code = sentence_of(c, sentence, sizeof(sentence));

	put_text(o, "version", PTSNAP_VERSION);
	put_text(o, "result", sentence);
	put(o, "equal", json_object_new_boolean(code == 0));
	put_number(o, "seed", c->seed);
	put(o, "host", host_of(c));
	put(o, "configuration", configuration_of(c));
	put_number(clock, "timeMult", m->have_clock ? m->time_mult : MANIFEST_ABSENT);
	put_number(clock, "timeShift", m->have_clock ? m->time_shift : MANIFEST_ABSENT);
	put_number(clock, "timeZero", m->have_clock ? m->time_zero : MANIFEST_ABSENT);
	put_double(clock, "meanIntervalNSec", interval_ns(c));
	put(o, "clock", clock);
	put(o, "errata", json_object_get(field_get(c->report, "errata")));
	for (size_t i = 0; i < c->n_gaps; i++)
		put_number(gaps, c->gaps[i].kind, c->gaps[i].n);
	put(o, "gapCounts", gaps);
	for (size_t i = 0; i < m->n_cpus; i++)
		json_object_array_add(cpus, cpu_of(c, i));
	put(o, "cpus", cpus);
	json_print(c->options->settings, o);
	json_object_put(o);
	return code;
}
