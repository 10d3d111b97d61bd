/*
 * What the kernel says of its PT PMU, from a directory of sysfs. Called by source_perf.c.
 */
#include "capture/pmu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/number.h"
#include "proto/base.h"

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

/* A file that holds one number; absent: *ret stays 0. */
static int read_number(int dir, const char *path, int base, uint32_t *ret)
{
	char line[64];
	uint64_t value;
	int r = read_line(dir, path, line, sizeof(line));

	*ret = 0;
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (!number_parse(line, base, UINT32_MAX, "", NULL, &value))
		return -EBADMSG;
	*ret = (uint32_t)value;
	return 0;
}

static int read_flag(int dir, const char *path, bool *ret)
{
	uint32_t value;
	int r = read_number(dir, path, 16, &value);

	*ret = value != 0;
	return r;
}

/* arch/x86/events/intel/pt.c, pt_cap_show: "%x". */
static int read_caps(int dir, struct pmu *pmu)
{
	const struct {
		const char *path;
		uint32_t *number;
		bool *flag;
	} caps[] = {
		{"caps/mtc_periods", &pmu->mtc_periods, NULL},
		{"caps/cycle_thresholds", &pmu->cycle_thresholds, NULL},
		{"caps/psb_periods", &pmu->psb_periods, NULL},
		{"caps/psb_cyc", NULL, &pmu->psb_cyc},
		{"caps/mtc", NULL, &pmu->mtc},
		{"caps/topa_multiple_entries", NULL, &pmu->topa_multiple_entries},
		{"caps/ptwrite", NULL, &pmu->ptwrite},
		{"caps/power_event_trace", NULL, &pmu->power_event_trace},
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(caps) && r == 0; i++) {
		if (caps[i].number != NULL)
			r = read_number(dir, caps[i].path, 16, caps[i].number);
		else
			r = read_flag(dir, caps[i].path, caps[i].flag);
	}
	return r;
}

/* arch/x86/events/intel/pt.c, pt_timing_attr_show: "%lu", and "%u:%u" of CPUID 0x15 EBX and EAX.
 * Kernels before 4.9 do not have them. */
static int read_timing(int dir, struct pmu *pmu)
{
	char line[64];
	const char *end;
	uint64_t num, den;
	int r = read_number(dir, "max_nonturbo_ratio", 10, &pmu->max_nonturbo_ratio);

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
	ret->type = (uint32_t)type;
	r = read_formats(dir, ret);
	if (r == 0)
		r = read_caps(dir, ret);
	if (r == 0)
		r = read_timing(dir, ret);
	return r;
}
