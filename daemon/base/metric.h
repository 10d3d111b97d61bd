/*
 * One number of a Prometheus text file: finds a series by its name and labels, and compares its
 * values with limits.
 *
 * Another program writes the file, so its bytes are hostile. Nothing is allocated and nothing is
 * kept of a line. Source of the format: prometheus.io, "Exposition formats", text format 0.0.4.
 */
#pragma once

#include <stddef.h>

#define METRIC_MAX_LABELS 8u
#define METRIC_NAME_SIZE  128u /* with the NUL */
#define METRIC_VALUE_SIZE 128u /* of a label, with the NUL */

struct metric_label {
	char name[METRIC_NAME_SIZE], value[METRIC_VALUE_SIZE];
};

struct metric_series {
	char name[METRIC_NAME_SIZE];
	struct metric_label labels[METRIC_MAX_LABELS];
	size_t n_labels;
};

/* Parses "NAME" or NAME{LABEL="VALUE",...}, with \\, \" and \n in values. 0, or -EINVAL: something
 * else, or more or longer than fits. */
int metric_parse(const char *text, struct metric_series *ret);

/* Looks in the SIZE bytes at TEXT for lines of SERIES: of its name, with all its labels, and maybe
 * others. Lines of another form, and a last line without its end, are left out.
 * METRIC_REACHED: *RET is the first value that is greater than ABOVE or less than BELOW; 0: *RET is
 * the last value, and no value is beyond a limit; -ENOENT: there is no such line. */
#define METRIC_REACHED 1
int metric_find(const char *text, size_t size, const struct metric_series *series, double above,
		double below, double *ret);
