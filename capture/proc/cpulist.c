/*
 * lib/bitmap-str.c, bitmap_parselist, without strides. Called by source_perf.c, and by whoever
 * reads the configuration.
 */
#include "capture/proc/cpulist.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "capture/proc/number.h"
#include "capture/proc/procfile.h"

/* 4096 CPUs, each a range of its own, with commas. */
#define LIST_TEXT_MAX (24u << 10)

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

/* One "N" or "N-M"; *TEXT is left behind it. */
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

int cpulist_read(const char *path, struct cpulist *ret)
{
	char text[LIST_TEXT_MAX];
	ssize_t n = procfile_read(AT_FDCWD, path, text, sizeof(text));

	if (n < 0)
		return (int)n;
	return cpulist_parse(text, ret) < 0 ? -EBADMSG : 0;
}
