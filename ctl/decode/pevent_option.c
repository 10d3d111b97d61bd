/*
 * Texts of --pevent:... to struct pevent_file. Called by decode_option.c; import_pevents.c reads
 * the files.
 */
#include "ctl/decode/pevent_option.h"

#include <errno.h>
#include <string.h>

#include "proto/base.h"
#include "proto/bundle/manifest.h"

#include "ctl/base/option.h"
#include "ctl/base/say.h"
#include "ctl/base/size.h"

enum pevent_option {
	PRIMARY,
	PRIMARY_TOO, /* another name of it */
	SECONDARY,
	SAMPLE_TYPE,
	TIME_ZERO,
	TIME_SHIFT,
	TIME_MULT,
	TSC_OFFSET,
	KERNEL_START,
	SYSROOT,
	N_PEVENT_OPTIONS,
};

static const char *const NAMES[N_PEVENT_OPTIONS] = {
	[PRIMARY] = "pevent:primary",		[PRIMARY_TOO] = "pevent",
	[SECONDARY] = "pevent:secondary",	[SAMPLE_TYPE] = "pevent:sample-type",
	[TIME_ZERO] = "pevent:time-zero",	[TIME_SHIFT] = "pevent:time-shift",
	[TIME_MULT] = "pevent:time-mult",	[TSC_OFFSET] = "pevent:tsc-offset",
	[KERNEL_START] = "pevent:kernel-start", [SYSROOT] = "pevent:sysroot",
};

_Static_assert(N_PEVENT_OPTIONS <= PEVENT_OPTIONS_MAX, "they do not fit the table");

void pevent_options_init(struct pevent_options *p)
{
	*p = (struct pevent_options){.layout.time_mult = 1};
}

void pevent_options_done(struct pevent_options *p)
{
	for (size_t i = 0; i < p->n_files; i++)
		free(p->files[i].path);
	free(p->files);
	pevent_options_init(p);
}

size_t pevent_option_table(struct option to[static PEVENT_OPTIONS_MAX], int first)
{
	for (size_t i = 0; i < N_PEVENT_OPTIONS; i++)
		to[i] = (struct option){NAMES[i], required_argument, NULL, first + (int)i};
	return N_PEVENT_OPTIONS;
}

/* "FROM" or "FROM-TO". */
static bool parse_range(char *text, uint64_t *ret_begin, uint64_t *ret_end)
{
	char *minus = strchr(text, '-');
	uint64_t begin, end = 0;

	if (minus) {
		*minus = '\0';
		if (size_parse_number(minus + 1, &end) < 0)
			return false;
	}
	if (size_parse_number(text, &begin) < 0 || (minus && end <= begin))
		return false;
	*ret_begin = begin;
	*ret_end = end;
	return true;
}

/* FILE[:FROM[-TO]]; what is no range is part of the name. */
static int cut_range(struct pevent_file *f)
{
	char *colon = strrchr(f->path, ':');
	CLEANUP_FREE char *range = NULL;

	if (!colon)
		return 0;
	range = strdup(colon + 1);
	if (!range)
		return -ENOMEM;
	if (parse_range(range, &f->begin, &f->end))
		*colon = '\0';
	return 0;
}

static int add_file(struct pevent_options *p, const char *text, bool secondary)
{
	struct pevent_file f = p->layout;

	if (p->n_files == MANIFEST_MAX_PEVENTS)
		return -ERANGE;
	f.secondary = secondary;
	f.path = strdup(text);
	if (!f.path || cut_range(&f) < 0 || ARRAY_EXTEND(p->files, p->n_files) < 0) {
		free(f.path);
		return -ENOMEM;
	}
	p->files[p->n_files++] = f;
	return 0;
}

static bool take_file(struct pevent_options *p, const char *value, bool secondary)
{
	int r = add_file(p, value, secondary);

	if (r == -ERANGE)
		say("more than %u files of perf records", MANIFEST_MAX_PEVENTS);
	else if (r < 0)
		say("out of memory");
	return r == 0;
}

static bool take_number(size_t index, const char *value, uint64_t max, uint64_t *ret)
{
	char option[32] = "--";

	strncat(option, NAMES[index], sizeof(option) - 3);
	if (!option_good(size_parse_number(value, ret), option, value, "a number, decimal or 0x"))
		return false;
	if (*ret <= max)
		return true;
	say("%s=%s: give a number from 0 to %ju", option, value, (uintmax_t)max);
	return false;
}

static bool take_small(size_t index, const char *value, uint64_t max, uint32_t *ret)
{
	uint64_t v;

	if (!take_number(index, value, max, &v))
		return false;
	*ret = (uint32_t)v;
	return true;
}

bool pevent_option_take(struct pevent_options *p, size_t index, const char *value)
{
	struct pevent_file *l = &p->layout;

	switch (index) {
	case PRIMARY:
	case PRIMARY_TOO: return take_file(p, value, false);
	case SECONDARY: return take_file(p, value, true);
	case SAMPLE_TYPE: return take_number(index, value, UINT64_MAX, &l->sample_type);
	case TIME_ZERO: return take_number(index, value, UINT64_MAX, &l->time_zero);
	case TIME_SHIFT: return take_small(index, value, 63, &l->time_shift);
	case TIME_MULT: return take_small(index, value, UINT32_MAX, &l->time_mult);
	case TSC_OFFSET: return take_number(index, value, UINT64_MAX, &l->tsc_offset);
	case KERNEL_START: return take_number(index, value, UINT64_MAX, &p->kernel_start);
	default: p->sysroot = value; return true;
	}
}
