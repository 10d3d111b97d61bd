/*
 * The distance of two words: insertions, deletions, changes and exchanges of neighbours (optimal
 * string alignment).
 */
#include "ctl/base/nearest.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"

static unsigned distance_of(const char *a, size_t m, const char *b, size_t n)
{
	unsigned rows[3][NEAREST_MAX + 1];
	unsigned *before = rows[0], *last = rows[1], *now = rows[2];

	assert(m <= NEAREST_MAX && n <= NEAREST_MAX);
	for (size_t j = 0; j <= n; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= m; i++) {
		unsigned *free_row = before;

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= n; j++) {
			now[j] = MIN_OF(MIN_OF(last[j] + 1, now[j - 1] + 1),
					last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = MIN_OF(now[j], before[j - 2] + 1);
		}
		before = last;
		last = now;
		now = free_row;
	}
	return last[n];
}

void nearest_init(struct nearest *n, const char *word)
{
	size_t size = strlen(word);

	*n = (struct nearest){.word = word, .distance = (unsigned)MAX_OF(size / 3, (size_t)1) + 1};
	if (size == 0 || size > NEAREST_MAX)
		n->distance = 0;
}

void nearest_try(struct nearest *n, const char *candidate)
{
	size_t size = strlen(n->word), other = strlen(candidate);
	unsigned distance = 1;

	if (n->distance == 0 || other > NEAREST_MAX)
		return;
	if (strncmp(candidate, n->word, size) != 0 || size < 2)
		distance = distance_of(n->word, size, candidate, other);
	if (distance >= n->distance)
		return;
	n->distance = distance;
	n->found = candidate;
}

const char *nearest_text(const struct nearest *n, const char *prefix, char *buffer, size_t size)
{
	if (!n->found)
		return "";
	snprintf(buffer, size, " (did you mean %s%s?)", prefix, n->found);
	return buffer;
}
