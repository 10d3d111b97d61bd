/*
 * Reads a PT PMU from sysfs, and says which values its capabilities allow for each term.
 */
#include "capture/perf/pmu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/proc/number.h"
#include "proto/base.h"

/* Smaller types are built into perf (include/uapi/linux/perf_event.h, enum perf_type_id). */
#define MIN_TYPE 6
/* The largest values that the hardware's fields can hold: SDM volume 2, CPUID, leaf 14H; volume 4,
 * MSR_PLATFORM_INFO. */
#define MAX_SET	   0xffffu
#define MAX_RANGES 7u
#define MAX_RATIO  0xffu

static void dir_closep(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

/* Reads the first line of a small file, without its newline. 0; -ENOENT; -EBADMSG: too long; or
 * -errno. */
static int read_line(int dir, const char *path, char *ret, size_t size)
{
	CLEANUP_CLOSE int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, ret, size - 1);
	if (n < 0)
		return -errno;
	if ((size_t)n == size - 1)
		return -EBADMSG;
	ret[n] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	return 0;
}

/* Reads a file that holds one number of at most MAX. If the file is absent, *ret is 0. */
static int read_number(int dir, const char *path, int base, uint32_t max, uint32_t *ret)
{
	char line[64];
	uint64_t value;
	int r = read_line(dir, path, line, sizeof(line));

	*ret = 0;
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (!number_parse(line, base, max, "", NULL, &value))
		return -EBADMSG;
	*ret = (uint32_t)value;
	return 0;
}

/* arch/x86/events/intel/pt.c, pt_cap_show: "%x". Linux 5.17 added event_trace and tnt_disable. */
static int read_caps(int dir, struct pmu *pmu)
{
	const struct {
		const char *path;
		uint32_t max;
		uint32_t *to;
	} numbers[] = {
		{"caps/max_subleaf", UINT32_MAX, &pmu->max_subleaf},
		{"caps/mtc_periods", MAX_SET, &pmu->mtc_periods},
		{"caps/cycle_thresholds", MAX_SET, &pmu->cycle_thresholds},
		{"caps/psb_periods", MAX_SET, &pmu->psb_periods},
		{"caps/num_address_ranges", MAX_RANGES, &pmu->num_address_ranges},
	};
	const struct {
		const char *path;
		bool *to;
	} flags[] = {
		{"caps/cr3_filtering", &pmu->cr3_filtering},
		{"caps/psb_cyc", &pmu->psb_cyc},
		{"caps/ip_filtering", &pmu->ip_filtering},
		{"caps/mtc", &pmu->mtc},
		{"caps/ptwrite", &pmu->ptwrite},
		{"caps/power_event_trace", &pmu->power_event_trace},
		{"caps/event_trace", &pmu->event_trace},
		{"caps/tnt_disable", &pmu->tnt_disable},
		{"caps/topa_output", &pmu->topa_output},
		{"caps/topa_multiple_entries", &pmu->topa_multiple_entries},
		{"caps/single_range_output", &pmu->single_range_output},
		{"caps/output_subsys", &pmu->output_subsys},
		{"caps/payloads_lip", &pmu->payloads_lip},
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(numbers) && r == 0; i++)
		r = read_number(dir, numbers[i].path, 16, numbers[i].max, numbers[i].to);
	for (size_t i = 0; i < ARRAY_SIZE(flags) && r == 0; i++) {
		uint32_t value;

		r = read_number(dir, flags[i].path, 16, 1, &value);
		*flags[i].to = r == 0 && value != 0;
	}
	return r;
}

/* arch/x86/events/intel/pt.c, pt_timing_attr_show: "%lu", and "%u:%u" of CPUID 0x15 EBX and EAX.
 * Kernels before 4.9 lack both files. The ratio is 8 bits of MSR_PLATFORM_INFO. nr_addr_filters
 * (kernel/events/core.c) is the number of address ranges in CPUID. */
static int read_timing(int dir, struct pmu *pmu)
{
	char line[64];
	const char *end;
	uint64_t num, den;
	int r = read_number(dir, "max_nonturbo_ratio", 10, MAX_RATIO, &pmu->max_nonturbo_ratio);

	if (r == 0)
		r = read_number(dir, "nr_addr_filters", 10, MAX_RANGES, &pmu->nr_addr_filters);
	if (r < 0)
		return r;
	r = read_line(dir, "tsc_art_ratio", line, sizeof(line));
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (!number_parse(line, 10, UINT32_MAX, ":", &end, &num) || *end != ':' ||
	    !number_parse(end + 1, 10, UINT32_MAX, "", NULL, &den))
		return -EBADMSG;
	pmu->tsc_art_num = (uint32_t)num;
	pmu->tsc_art_den = (uint32_t)den;
	return 0;
}

/* Adds the term of "config:14-17" or "config:10". Terms of config1 and higher are ignored. */
static int parse_format(struct pmu *pmu, const char *name, const char *text)
{
	struct pmu_term *term = &pmu->terms[pmu->n_terms];
	uint64_t low, high;
	const char *end;

	if (strncmp(text, "config", 6) != 0)
		return -EBADMSG;
	if (text[6] >= '1' && text[6] <= '9')
		return 0;
	if (text[6] != ':' || !number_parse(text + 7, 10, 63, "-", &end, &low))
		return -EBADMSG;
	high = low;
	if (*end == '-' && !number_parse(end + 1, 10, 63, "", NULL, &high))
		return -EBADMSG;
	if (pmu->n_terms == PMU_MAX_TERMS || strlen(name) >= sizeof(term->name) || low > high)
		return -EBADMSG;
	strcpy(term->name, name);
	term->low = (uint8_t)low;
	term->high = (uint8_t)high;
	pmu->n_terms++;
	return 0;
}

static int compare_terms(const void *a, const void *b)
{
	const struct pmu_term *x = a, *y = b;

	return x->low != y->low ? (int)x->low - (int)y->low : strcmp(x->name, y->name);
}

static int read_formats(int dir, struct pmu *pmu)
{
	CLEANUP(dir_closep) DIR *formats = NULL;
	int fd = openat(dir, "format", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	char line[64];
	int r = 0;

	formats = fd < 0 ? NULL : fdopendir(fd);
	if (!formats) {
		r = errno == ENOENT ? -EBADMSG : -errno;
		close_fd(fd);
		return r;
	}
	while (r == 0 && (entry = readdir(formats)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		r = read_line(fd, entry->d_name, line, sizeof(line));
		if (r == 0)
			r = parse_format(pmu, entry->d_name, line);
	}
	qsort(pmu->terms, pmu->n_terms, sizeof(pmu->terms[0]), compare_terms);
	return r;
}

int pmu_read(const char *directory, struct pmu *ret)
{
	CLEANUP_CLOSE int dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char line[64];
	uint64_t type;
	int r;

	*ret = (struct pmu){0};
	if (dir < 0)
		return errno == ENOTDIR ? -ENOENT : -errno;
	r = read_line(dir, "type", line, sizeof(line));
	if (r < 0)
		return r == -ENOENT ? -EBADMSG : r;
	if (!number_parse(line, 10, UINT32_MAX, "", NULL, &type) || type < MIN_TYPE)
		return -EBADMSG;
	ret->type = (uint32_t)type;
	r = read_formats(dir, ret);
	if (r == 0)
		r = read_caps(dir, ret);
	if (r == 0)
		r = read_timing(dir, ret);
	return r;
}

/* --- The software PMU --- */

/* The bits are those of arch/x86/events/intel/pt.c (SDM volume 3, IA32_RTIT_CTL MSR). An MTC
 * carries CTC bits N+7..N and a TMA carries CTC bits 15..0, so they have a bit in common up to
 * period N = 15. Thresholds and PSB periods are those of Skylake. */
void pmu_emulated(struct pmu *ret)
{
	static const struct pmu_term terms[] = {
		{"pt", 0, 0},		{"cyc", 1, 1},		{"mtc", 9, 9},
		{"tsc", 10, 10},	{"noretcomp", 11, 11},	{"branch", 13, 13},
		{"mtc_period", 14, 17}, {"cyc_thresh", 19, 22}, {"psb_period", 24, 27},
	};

	*ret = (struct pmu){
		.n_terms = ARRAY_SIZE(terms),
		.mtc_periods = 0xffff,
		.cycle_thresholds = 0x3fff,
		.psb_periods = 0x3f,
		.psb_cyc = true,
		.mtc = true,
		.topa_output = true,
		.topa_multiple_entries = true,
		.max_subleaf = 1,
		.software = true,
	};
	memcpy(ret->terms, terms, sizeof(terms));
}

/* --- Terms and their values --- */

const struct pmu_term *pmu_find_term(const struct pmu *pmu, const char *name)
{
	for (size_t i = 0; i < pmu->n_terms; i++)
		if (strcmp(pmu->terms[i].name, name) == 0)
			return &pmu->terms[i];
	return NULL;
}

/* As arch/x86/events/intel/pt.c, pt_event_valid: a flag and the fields that belong to the flag need
 * the flag's capability. 0 is always valid, as it leaves a field alone. */
static uint64_t capped_values(const struct pmu *pmu, const char *name)
{
	bool mtc = pmu->mtc && pmu->mtc_periods != 0;
	const struct {
		const char *name;
		uint64_t values;
	} limits[] = {
		{"mtc", mtc ? 3 : 1},
		{"mtc_period", mtc ? pmu->mtc_periods | 1 : 1},
		{"cyc", pmu->psb_cyc ? 3 : 1},
		{"cyc_thresh", pmu->psb_cyc ? pmu->cycle_thresholds | 1 : 1},
		{"psb_period", pmu->psb_cyc ? pmu->psb_periods | 1 : 1},
		{"pwr_evt", pmu->power_event_trace ? 3 : 1},
		{"event", pmu->event_trace ? 3 : 1},
		{"notnt", pmu->tnt_disable ? 3 : 1},
		{"ptw", pmu->ptwrite ? 3 : 1},
		{"fup_on_ptw", pmu->ptwrite ? 3 : 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (strcmp(limits[i].name, name) == 0)
			return limits[i].values;
	return UINT64_MAX;
}

uint64_t pmu_term_values(const struct pmu *pmu, const char *name)
{
	const struct pmu_term *term = pmu_find_term(pmu, name);
	unsigned bits;

	if (!term)
		return 0;
	bits = term->high - term->low + 1u;
	/* A field of 6 bits or more has 64 values or more. */
	return capped_values(pmu, name) & (bits >= 6 ? UINT64_MAX : (1ull << (1u << bits)) - 1);
}

uint64_t pmu_term_value(const struct pmu *pmu, uint64_t config, const char *name)
{
	const struct pmu_term *term = pmu_find_term(pmu, name);

	if (!term)
		return 0;
	return config >> term->low & UINT64_MAX >> (63 - (term->high - term->low));
}
