/*
 * The types of settings: how a text becomes a value.
 */
#include "daemon/config/config_setting.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/proc/number.h"
#include "proto/base.h"

static void *field(const struct config_setting *s, struct config *c)
{
	return (char *)c + s->offset;
}

static int parse_digits(const char **at, uint64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return -EINVAL;
	errno = 0;
	*ret = strtoull(*at, &end, 10);
	*at = end;
	return errno ? -EINVAL : 0;
}

int config_parse_size(const char *text, uint64_t *ret)
{
	static const char suffixes[] = "KMG";
	unsigned shift = 0;
	uint64_t v;

	if (parse_digits(&text, &v) < 0)
		return -EINVAL;
	if (*text) {
		const char *at = strchr(suffixes, *text);

		if (!at || text[1])
			return -EINVAL;
		shift = 10 * (unsigned)(at - suffixes + 1);
	}
	if (shift && v >> (64 - shift))
		return -EINVAL;
	*ret = v << shift;
	return 0;
}

/* Parses the unit at *AT and moves *AT behind it. */
static int parse_unit(const char **at, uint64_t *ret_usec)
{
	/* clang-format off */
	static const struct { const char *suffix; uint64_t usec; } units[] = {
		{"", 1000000}, {"us", 1}, {"ms", 1000}, {"s", 1000000},
		{"min", 60000000}, {"m", 60000000}, {"h", 3600000000ull},
	};
	/* clang-format on */
	size_t n = strcspn(*at, " ");

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (strlen(units[i].suffix) == n && strncmp(*at, units[i].suffix, n) == 0) {
			*ret_usec = units[i].usec;
			*at += n;
			return 0;
		}
	return -EINVAL;
}

int config_parse_time(const char *text, uint64_t *ret_usec)
{
	uint64_t sum = 0, v, unit;

	for (;;) {
		if (parse_digits(&text, &v) < 0 || parse_unit(&text, &unit) < 0 ||
		    __builtin_mul_overflow(v, unit, &v) || __builtin_add_overflow(sum, v, &sum))
			return -EINVAL;
		if (!*text)
			break;
		text += strspn(text, " ");
	}
	*ret_usec = sum;
	return 0;
}

static bool in_range(const struct config_setting *s, uint64_t v)
{
	return (s->zero && v == 0) || (v >= s->min && v <= s->max);
}

/* For an enum whose numbers follow the words, from MIN on. */
static int take_word(const struct config_setting *s, const char *text, struct config *c)
{
	for (size_t i = 0; s->words[i]; i++)
		if (strcmp(text, s->words[i]) == 0) {
			*(unsigned *)field(s, c) = (unsigned)(s->min + i);
			return 0;
		}
	return -EINVAL;
}

/* For a bool: the first of two words is false, the second true. */
static int take_either(const struct config_setting *s, const char *text, struct config *c)
{
	bool second = strcmp(text, s->words[1]) == 0;

	if (!second && strcmp(text, s->words[0]) != 0)
		return -EINVAL;
	*(bool *)field(s, c) = second;
	return 0;
}

static int take_preset(const struct config_setting *s, const char *text, struct config *c)
{
	const char *const *word = s->words;

	while (*text && *word && strcmp(text, *word) != 0)
		word++;
	if (!*word)
		return -EINVAL;
	*(const char **)field(s, c) = *text ? *word : NULL;
	return 0;
}

static int take_size(const struct config_setting *s, const char *text, struct config *c)
{
	uint64_t v;

	if (config_parse_size(text, &v) < 0 || !in_range(s, v))
		return -EINVAL;
	*(uint64_t *)field(s, c) = v;
	return 0;
}

static int take_ring(const struct config_setting *s, const char *text, struct config *c)
{
	uint64_t v;

	if (config_parse_size(text, &v) < 0 || (v & (v - 1)))
		return -EINVAL;
	return take_size(s, text, c);
}

static int take_number(const struct config_setting *s, const char *text, struct config *c)
{
	uint64_t v;

	if (config_parse_size(text, &v) < 0 || !in_range(s, v))
		return -EINVAL;
	*(uint32_t *)field(s, c) = (uint32_t)v;
	return 0;
}

/* A size, or a percentage of the host's memory. */
static int take_budget(const struct config_setting *s, const char *text, struct config *c)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	const char *at = text;
	uint64_t v = 0;

	if (*text && parse_digits(&at, &v) == 0 && strcmp(at, "%") == 0) {
		if (v < 1 || v > 100)
			return -EINVAL;
		v = pages > 0 && page > 0 ? (uint64_t)pages / 100 * v * (uint64_t)page : 0;
	} else if (*text && (config_parse_size(text, &v) < 0 || !in_range(s, v)))
		return -EINVAL;
	*(uint64_t *)field(s, c) = v;
	return 0;
}

static int take_time(const struct config_setting *s, const char *text, struct config *c)
{
	uint64_t v;

	if (config_parse_time(text, &v) < 0 || !in_range(s, v))
		return -EINVAL;
	*(uint64_t *)field(s, c) = v;
	return 0;
}

int config_parse_flag(const char *text, bool *ret)
{
	/* As systemd's parse_boolean(): the first half says no. */
	static const char *const words[] = {"no",  "n", "false", "f", "off", "0",
					    "yes", "y", "true",	 "t", "on",  "1"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcasecmp(text, words[i]) == 0) {
			*ret = i >= ARRAY_SIZE(words) / 2;
			return 0;
		}
	return -EINVAL;
}

static int take_flag(const struct config_setting *s, const char *text, struct config *c)
{
	return config_parse_flag(text, field(s, c));
}

static int take_text(const struct config_setting *s, const char *text, struct config *c)
{
	if (strlen(text) >= PATH_MAX)
		return -EINVAL;
	*(const char **)field(s, c) = *text ? text : NULL;
	return 0;
}

/* "none": NULL, as an empty value takes back what files have said. */
static int take_or_none(const struct config_setting *s, const char *text, struct config *c)
{
	return take_text(s, strcmp(text, "none") == 0 ? "" : text, c);
}

static int take_cpus(const struct config_setting *s, const char *text, struct config *c)
{
	struct cpulist list;

	if (*text && (strchr(text, '\n') || cpulist_parse(text, &list) < 0))
		return -EINVAL;
	return take_text(s, text, c);
}

/* Checks the form of terms only, NAME or NAME=NUMBER: the PMU knows which ones exist. */
static int take_terms(const struct config_setting *s, const char *text, struct config *c)
{
	static const char names[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
	const char *at = text;

	while (*at) {
		size_t n = strspn(at, names);

		if (n == 0)
			return -EINVAL;
		at += n;
		if (*at == '=') {
			n = strspn(++at, "0123456789abcdefABCDEFx");
			if (n == 0)
				return -EINVAL;
			at += n;
		}
		if (*at == ',' ? !at[1] : *at != '\0')
			return -EINVAL;
		at += *at == ',';
	}
	return take_text(s, text, c);
}

/* Parses "CPU:FROM:TO" and cuts TEXT at its colons. Without TO the CPU stays away. */
static int parse_offline(char *text, struct source_emu_offline *ret)
{
	char *from = strchr(text, ':'), *to = from ? strchr(from + 1, ':') : NULL;
	uint64_t cpu;

	if (!to)
		return -EINVAL;
	*from++ = *to++ = '\0';
	if (config_parse_size(text, &cpu) < 0 || cpu >= SOURCE_EMU_MAX_CPUS ||
	    config_parse_time(from, &ret->from_usec) < 0)
		return -EINVAL;
	ret->cpu = (uint32_t)cpu;
	ret->to_usec = UINT64_MAX;
	if (*to && config_parse_time(to, &ret->to_usec) < 0)
		return -EINVAL;
	return ret->from_usec < ret->to_usec ? 0 : -EINVAL;
}

static int take_offline(const struct config_setting *s, const char *text, struct config *c)
{
	char copy[SOURCE_EMU_MAX_OFFLINE * 64], *at = copy, *one;
	size_t n = 0;

	(void)s;
	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return -EINVAL;
	while (*text && (one = strsep(&at, ","))) {
		if (n == SOURCE_EMU_MAX_OFFLINE || parse_offline(one, &c->emu_offline[n]) < 0)
			return -EINVAL;
		n++;
	}
	c->n_emu_offline = n;
	return 0;
}

/* clang-format off */
const struct config_type
	config_type_word = {.take = take_word},
	config_type_either = {.take = take_either},
	config_type_preset = {.take = take_preset},
	config_type_ring = {.take = take_ring, .json = CONFIG_JSON_U64},
	config_type_size = {.take = take_size, .json = CONFIG_JSON_U64},
	config_type_number = {.take = take_number, .json = CONFIG_JSON_U32},
	config_type_budget = {.take = take_budget, .json = CONFIG_JSON_U64},
	config_type_time = {.take = take_time, .json = CONFIG_JSON_U64},
	config_type_flag = {.take = take_flag, .json = CONFIG_JSON_BOOL, .is_flag = true},
	config_type_text = {.take = take_text},
	config_type_or_none = {.take = take_or_none},
	config_type_texts = {.take = take_text, .list = true},
	config_type_cpus = {.take = take_cpus, .list = true},
	config_type_terms = {.take = take_terms, .list = true},
	config_type_offline = {.take = take_offline, .list = true};
/* clang-format on */
