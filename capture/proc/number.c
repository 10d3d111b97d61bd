/*
 * Parses numbers and lists of CPUs, strictly: without what strtoull() forgives.
 */
#include "capture/proc/number.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/proc/procfile.h"

/* 4096 CPUs, each a range of its own, with commas. */
#define LIST_TEXT_MAX (24u << 10)

bool number_parse(const char *text, int base, uint64_t max, const char *stop, const char **ret_end,
		  uint64_t *ret)
{
	unsigned long long value;
	char *end;

	if (text[0] == '\0' || !strchr("0123456789abcdefABCDEF", text[0]))
		return false;
	/* A leading zero does not mean an octal number. */
	if (base == 0)
		base = text[0] == '0' && (text[1] | 0x20) == 'x' ? 16 : 10;
	else if (base == 16 && text[0] == '0' && (text[1] | 0x20) == 'x')
		return false;
	errno = 0;
	value = strtoull(text, &end, base);
	if (errno != 0 || end == text || value > max)
		return false;
	if (*end != '\0' && !strchr(stop, *end))
		return false;
	if (ret_end)
		*ret_end = end;
	*ret = value;
	return true;
}

bool cpulist_has(const struct cpulist *l, uint32_t cpu)
{
	return cpu < CPULIST_MAX && (l->bits[cpu / 64] >> cpu % 64 & 1) != 0;
}

size_t cpulist_count(const struct cpulist *l)
{
	size_t n = 0;

	for (size_t i = 0; i < CPULIST_MAX / 64; i++)
		n += (size_t)__builtin_popcountll(l->bits[i]);
	return n;
}

/* Parses one "N" or "N-M", and moves *TEXT behind it. */
static int parse_range(const char **text, struct cpulist *ret)
{
	uint64_t low, high;

	if (!number_parse(*text, 10, CPULIST_MAX - 1, "-,\n", text, &low))
		return -EINVAL;
	high = low;
	if (**text == '-' && !number_parse(*text + 1, 10, CPULIST_MAX - 1, ",\n", text, &high))
		return -EINVAL;
	if (low > high)
		return -EINVAL;
	for (uint64_t cpu = low; cpu <= high; cpu++)
		ret->bits[cpu / 64] |= UINT64_C(1) << cpu % 64;
	return 0;
}

/* As lib/bitmap-str.c, bitmap_parselist, without strides. */
int cpulist_parse(const char *text, struct cpulist *ret)
{
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	if (*text == '\0' || *text == '\n')
		return 0;
	for (;;) {
		r = parse_range(&text, ret);
		if (r < 0 || *text != ',')
			return r;
		text++;
	}
}

void cpulist_format(const struct cpulist *l, char *ret, size_t size)
{
	const size_t dots = sizeof("...");
	size_t used = 0;

	assert(size > dots);
	ret[0] = '\0';
	for (uint32_t first = 0; first < CPULIST_MAX; first++) {
		uint32_t last = first;
		char range[24];
		size_t n;

		if (!cpulist_has(l, first))
			continue;
		while (last + 1 < CPULIST_MAX && cpulist_has(l, last + 1))
			last++;
		n = (size_t)snprintf(range, sizeof(range), last > first ? "%s%u-%u" : "%s%u",
				     used > 0 ? "," : "", first, last);
		if (used + n + dots > size) {
			strcpy(ret + used, "...");
			return;
		}
		strcpy(ret + used, range);
		used += n;
		first = last;
	}
}

int cpulist_read(const char *path, struct cpulist *ret)
{
	char text[LIST_TEXT_MAX];
	ssize_t n = procfile_read(AT_FDCWD, path, text, sizeof(text));

	if (n < 0)
		return (int)n;
	return cpulist_parse(text, ret) < 0 ? -EBADMSG : 0;
}
