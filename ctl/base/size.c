/*
 * Parses numbers, sizes and times of the command line.
 */
#include "ctl/base/size.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "proto/base.h"

struct unit {
	const char *name;
	uint64_t factor;
};

/* clang-format off */
static const struct unit SIZES[] = {
	{"B", 1},
	{"K", 1ull << 10}, {"k", 1ull << 10}, {"KB", 1ull << 10}, {"kB", 1ull << 10}, {"KiB", 1ull << 10},
	{"M", 1ull << 20}, {"MB", 1ull << 20}, {"MiB", 1ull << 20},
	{"G", 1ull << 30}, {"g", 1ull << 30}, {"GB", 1ull << 30}, {"GiB", 1ull << 30},
	{"T", 1ull << 40}, {"TB", 1ull << 40}, {"TiB", 1ull << 40},
};
static const struct unit TIMES[] = {
	{"us", 1}, {"usec", 1},
	{"ms", 1000}, {"msec", 1000},
	{"s", 1000000}, {"sec", 1000000},
	{"min", 60000000ull}, {"m", 60000000ull},
	{"h", 3600000000ull},
};
/* clang-format on */

/* The value of a decimal or hexadecimal digit, 16 for other characters. */
static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

/* Reads the digits at *TEXT and moves *TEXT behind them. */
static int read_digits(const char **text, uint64_t base, uint64_t *ret)
{
	const char *pos = *text;
	uint64_t value = 0;

	for (; (uint64_t)digit_of(*pos) < base; pos++)
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit_of(*pos), &value))
			return -ERANGE;
	if (pos == *text)
		return -EINVAL;
	*text = pos;
	*ret = value;
	return 0;
}

static int read_number(const char **text, uint64_t *ret)
{
	const char *pos = *text;

	if (strncasecmp(pos, "0x", 2) != 0)
		return read_digits(text, 10, ret);
	pos += 2;
	if (digit_of(*pos) == 16)
		return -EINVAL;
	*text = pos;
	return read_digits(text, 16, ret);
}

int size_parse_number(const char *text, uint64_t *ret)
{
	uint64_t value;
	int r = read_number(&text, &value);

	if (r == 0 && *text)
		r = -EINVAL;
	if (r == 0)
		*ret = value;
	return r;
}

static const struct unit *find_unit(const struct unit *units, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(units[i].name, name) == 0)
			return &units[i];
	return NULL;
}

int size_parse_bytes(const char *text, uint64_t *ret_bytes)
{
	const struct unit *unit = &SIZES[0];
	uint64_t value;
	int r = read_number(&text, &value);

	if (r < 0)
		return r;
	if (*text)
		unit = find_unit(SIZES, ARRAY_SIZE(SIZES), text);
	if (!unit)
		return -EINVAL;
	if (__builtin_mul_overflow(value, unit->factor, &value))
		return -ERANGE;
	*ret_bytes = value;
	return 0;
}

/* Reads ".25" as millionths and drops further digits; no '.' is 0. */
static int read_fraction(const char **text, uint64_t *ret)
{
	uint64_t value = 0, place = 100000;

	*ret = 0;
	if (**text != '.')
		return 0;
	if (digit_of(*++*text) >= 10)
		return -EINVAL;
	for (; digit_of(**text) < 10; ++*text, place /= 10)
		value += (uint64_t)digit_of(**text) * place;
	*ret = value;
	return 0;
}

int size_parse_time(const char *text, uint64_t *ret_usec)
{
	const struct unit *unit;
	uint64_t value, millionths = 0;
	int r = read_digits(&text, 10, &value);

	if (r == 0)
		r = read_fraction(&text, &millionths);
	if (r < 0)
		return r;
	unit = find_unit(TIMES, ARRAY_SIZE(TIMES), *text ? text : "s");
	if (!unit)
		return -EINVAL;
	/* The longest unit, 3.6e9 us, times 10^6 stays far below 2^64. */
	millionths = millionths * unit->factor / 1000000;
	if (__builtin_mul_overflow(value, unit->factor, &value) ||
	    __builtin_add_overflow(value, millionths, &value))
		return -ERANGE;
	*ret_usec = value;
	return 0;
}

int size_parse_last(const char *text, uint64_t *ret_bytes, uint64_t *ret_usec)
{
	uint64_t value = 0;
	int r = size_parse_bytes(text, &value);

	if (r == -ERANGE)
		return r;
	if (r == 0 && value > 0)
		*ret_bytes = value;
	if (r == 0)
		return value > 0 ? 0 : -EINVAL;
	r = size_parse_time(text, &value);
	if (r < 0)
		return r;
	/* 8m could be eight minutes or 8M. */
	if (value == 0 || strcmp(text + strspn(text, "0123456789."), "m") == 0)
		return -EINVAL;
	*ret_usec = value;
	return 0;
}
