/*
 * Parses the options for raw files: --raw-image, --cpu, --cpuid-0x15 and --pevent:...
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "proto/base.h"

#include "ctl/base/option.h"
#include "ctl/base/say.h"
#include "ctl/base/size.h"
#include "ctl/decode/raw.h"

void raw_init(struct raw *raw)
{
	*raw = (struct raw){.mtc_period = UINT32_MAX, .pt_config = MANIFEST_ABSENT};
	pevent_options_init(&raw->pevents);
}

void raw_done(struct raw *raw)
{
	for (size_t i = 0; i < raw->n_images; i++)
		free(raw->images[i].path);
	free(raw->images);
	pevent_options_done(&raw->pevents);
	raw_init(raw);
}

/* Cuts ":NUMBER" off the end of TEXT. Returns false, and leaves TEXT alone, if there is none. */
static bool cut_number(char *text, uint64_t *ret)
{
	char *colon = strrchr(text, ':');

	if (!colon || size_parse_number(colon + 1, ret) < 0)
		return false;
	*colon = '\0';
	return true;
}

static int parse_image(struct raw_image *image)
{
	char *at = strrchr(image->path, '@');
	CLEANUP_FREE char *rest = NULL;
	uint64_t offset, length, last;
	int r;

	if (!at)
		return -EINVAL;
	r = size_parse_number(at + 1, &image->vaddr);
	if (r < 0)
		return r;
	*at = '\0';
	/* ":OFFSET:LENGTH": both, or the text is part of the name. */
	rest = strdup(image->path);
	if (rest && cut_number(rest, &length) && cut_number(rest, &offset)) {
		free(image->path);
		image->path = TAKE_PTR(rest);
		image->offset = offset;
		image->length = length;
	}
	if (!*image->path || image->length == 0)
		return -EINVAL;
	if (image->length == UINT64_MAX)
		return 0;
	if (__builtin_add_overflow(image->vaddr, image->length - 1, &last) ||
	    __builtin_add_overflow(image->offset, image->length, &last))
		return -ERANGE;
	return 0;
}

int raw_add_image(struct raw *raw, const char *text)
{
	struct raw_image image = {.path = strdup(text), .length = UINT64_MAX};
	int r = image.path ? parse_image(&image) : -ENOMEM;

	if (r == 0 && ARRAY_EXTEND(raw->images, raw->n_images) < 0)
		r = -ENOMEM;
	if (r < 0) {
		free(image.path);
		return r;
	}
	raw->images[raw->n_images++] = image;
	return 0;
}

/* Parses N numbers of at most 32 bits, separated by SIGN. The last OPTIONAL numbers may be missing,
 * and their results then keep their values. */
static int parse_list(const char *text, char sign, uint32_t *ret, size_t n, size_t optional)
{
	CLEANUP_FREE char *copy = strdup(text);
	char separator[2] = {sign, '\0'}, *rest = copy, *word;
	uint64_t value;
	size_t i = 0;
	int r;

	if (!copy)
		return -ENOMEM;
	for (; (word = strsep(&rest, separator)); i++) {
		if (i == n)
			return -EINVAL;
		r = size_parse_number(word, &value);
		if (r < 0 || value > UINT32_MAX)
			return r < 0 ? r : -ERANGE;
		ret[i] = (uint32_t)value;
	}
	return i + optional >= n ? 0 : -EINVAL;
}

int raw_set_cpu(struct raw *raw, const char *text)
{
	uint32_t numbers[3] = {0};
	int r = parse_list(text, '/', numbers, 3, 1);

	if (r < 0)
		return r;
	/* The limits of CPUID leaf 1. */
	if (numbers[0] > 0xff + 0xf || numbers[1] > 0xff || numbers[2] > 0xf)
		return -ERANGE;
	raw->have_cpu = true;
	raw->family = numbers[0];
	raw->model = numbers[1];
	raw->stepping = numbers[2];
	return 0;
}

int raw_set_cpuid_0x15(struct raw *raw, const char *text)
{
	uint32_t numbers[2];
	int r = parse_list(text, ',', numbers, 2, 0);

	if (r < 0)
		return r;
	raw->tsc_art_den = numbers[0];
	raw->tsc_art_num = numbers[1];
	return 0;
}

enum pevent_option {
	PRIMARY,
	PRIMARY_TOO, /* another name of PRIMARY */
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

_Static_assert(N_PEVENT_OPTIONS <= PEVENT_OPTIONS_MAX, "the options do not fit the table");

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

/* Parses "FROM" or "FROM-TO". */
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

/* FILE[:FROM[-TO]]; text behind the colon that is no range is part of the name. */
static bool take_file(struct pevent_options *p, const char *value, bool secondary)
{
	CLEANUP_FREE char *path = strdup(value);
	struct pevent_file f = p->layout;
	char *colon;

	if (p->n_files == MANIFEST_MAX_PEVENTS) {
		say("more than %u files of perf records", MANIFEST_MAX_PEVENTS);
		return false;
	}
	colon = path ? strrchr(path, ':') : NULL;
	if (colon) {
		CLEANUP_FREE char *range = strdup(colon + 1);

		if (range && parse_range(range, &f.begin, &f.end))
			*colon = '\0';
	}
	if (!path || ARRAY_EXTEND(p->files, p->n_files) < 0) {
		say("out of memory");
		return false;
	}
	f.path = TAKE_PTR(path);
	f.secondary = secondary;
	p->files[p->n_files++] = f;
	return true;
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

	assert(index < N_PEVENT_OPTIONS);
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
