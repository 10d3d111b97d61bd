/*
 * Fuzzes the reader of Prometheus text files: the first line is the series that is looked for, the
 * rest is the file. Invariants: what is parsed fits; a number beyond the limit is told only if a
 * looser limit tells one, too; lines in front that are of no series change nothing.
 */
#include "daemon/base/metric.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_series(const struct metric_series *s)
{
	assert(*s->name && strlen(s->name) < METRIC_NAME_SIZE);
	assert(s->n_labels <= METRIC_MAX_LABELS);
	for (size_t i = 0; i < s->n_labels; i++) {
		assert(*s->labels[i].name && strlen(s->labels[i].name) < METRIC_NAME_SIZE);
		assert(strlen(s->labels[i].value) < METRIC_VALUE_SIZE);
	}
}

static void check_file(const char *text, size_t size, const struct metric_series *s)
{
	static const char comment[] = "# a comment\n";
	CLEANUP_FREE char *longer = malloc(sizeof(comment) + size);
	double value = NAN, loose = NAN, again = NAN;
	int r = metric_find(text, size, s, 100, -100, &value);

	assert(longer);
	if (r == METRIC_REACHED) {
		assert(value > 100 || value < -100);
		assert(metric_find(text, size, s, 1, -1, &loose) == METRIC_REACHED);
	}
	assert((metric_find(text, size, s, INFINITY, -INFINITY, &loose) == -ENOENT) ==
	       (r == -ENOENT));
	memcpy(longer, comment, sizeof(comment) - 1);
	memcpy(longer + sizeof(comment) - 1, text, size);
	assert(metric_find(longer, size + sizeof(comment) - 1, s, 100, -100, &again) == r);
	assert(r < 0 || memcmp(&again, &value, sizeof(value)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const uint8_t *newline = size ? memchr(bytes, '\n', size) : NULL;
	size_t first = newline ? (size_t)(newline - bytes) : size;
	CLEANUP_FREE char *series = malloc(first + 1);
	/* Of its own size, so that a sanitizer sees a byte that is read too many. */
	CLEANUP_FREE char *file = malloc(size - first + 1);
	struct metric_series s;

	assert(series && file);
	memcpy(series, bytes, first);
	series[first] = '\0';
	if (metric_parse(series, &s) < 0 && metric_parse("a", &s) < 0)
		return 0;
	check_series(&s);
	if (!newline)
		return 0;
	memcpy(file, newline + 1, size - first - 1);
	check_file(file, size - first - 1, &s);
	return 0;
}
