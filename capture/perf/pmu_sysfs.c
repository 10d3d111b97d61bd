/*
 * What the kernel says of its PT PMU, from a directory of sysfs. Called by source_perf.c.
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

/* Types below are those of include/uapi/linux/perf_event.h, enum perf_type_id: no PMU of ours. */
#define MIN_TYPE 6
/* What the fields that the numbers are made of can hold: SDM volume 2, CPUID, leaf 14H; volume 4,
 * MSR_PLATFORM_INFO. */
#define MAX_SET	   0xffffu
#define MAX_RANGES 7u
#define MAX_RATIO  0xffu

static void dir_closep(DIR **dir)
{
	if (*dir != NULL)
		closedir(*dir);
}

/* The first line of a small file, without its newline. 0; -ENOENT; -EBADMSG: too long; -errno. */
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

/* A file that holds one number, at most MAX; absent: *ret stays 0. */
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

struct cap_number {
	const char *path;
	uint32_t max;
	uint32_t *to;
};

struct cap_flag {
	const char *path;
	bool *to;
};

static int read_cap_numbers(int dir, const struct cap_number *caps, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = read_number(dir, caps[i].path, 16, caps[i].max, caps[i].to);
	return r;
}

static int read_cap_flags(int dir, const struct cap_flag *caps, size_t n)
{
	uint32_t value;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		r = read_number(dir, caps[i].path, 16, 1, &value);
		*caps[i].to = r == 0 && value != 0;
	}
	return r;
}

/* arch/x86/events/intel/pt.c, pt_cap_show: "%x". event_trace and tnt_disable came with 5.17. */
static int read_caps(int dir, struct pmu *pmu)
{
	const struct cap_number numbers[] = {
		{"caps/max_subleaf", UINT32_MAX, &pmu->max_subleaf},
		{"caps/mtc_periods", MAX_SET, &pmu->mtc_periods},
		{"caps/cycle_thresholds", MAX_SET, &pmu->cycle_thresholds},
		{"caps/psb_periods", MAX_SET, &pmu->psb_periods},
		{"caps/num_address_ranges", MAX_RANGES, &pmu->num_address_ranges},
	};
	const struct cap_flag flags[] = {
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
	int r = read_cap_numbers(dir, numbers, ARRAY_SIZE(numbers));

	return r < 0 ? r : read_cap_flags(dir, flags, ARRAY_SIZE(flags));
}

/* arch/x86/events/intel/pt.c, pt_timing_attr_show: "%lu", and "%u:%u" of CPUID 0x15 EBX and EAX.
 * Kernels before 4.9 do not have them. The ratio is 8 bits of MSR_PLATFORM_INFO.
 * nr_addr_filters: kernel/events/core.c, one for each address range that CPUID tells. */
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

static int add_term(struct pmu *pmu, const char *name, uint64_t low, uint64_t high)
{
	struct pmu_term *term = &pmu->terms[pmu->n_terms];

	if (pmu->n_terms == PMU_MAX_TERMS || strlen(name) >= sizeof(term->name) || low > high)
		return -EBADMSG;
	strcpy(term->name, name);
	term->low = (uint8_t)low;
	term->high = (uint8_t)high;
	pmu->n_terms++;
	return 0;
}

/* "config:14-17" or "config:10"; terms of config1 and on are not for us. */
static int parse_format(struct pmu *pmu, const char *name, const char *text)
{
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
	return add_term(pmu, name, low, high);
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
	if (formats == NULL) {
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
	if (!number_parse(line, 10, UINT32_MAX, "", NULL, &type))
		return -EBADMSG;
	if (type < MIN_TYPE)
		return -EBADMSG;
	ret->type = (uint32_t)type;
	r = read_formats(dir, ret);
	if (r == 0)
		r = read_caps(dir, ret);
	if (r == 0)
		r = read_timing(dir, ret);
	return r;
}
