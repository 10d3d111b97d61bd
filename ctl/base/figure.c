/*
 * Formatting of numbers. Called by what shows reports, lists and status.
 */
#include "ctl/base/figure.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/base/field.h"

struct figure figure_count(uint64_t n)
{
	struct figure f = {.text = ""};
	char digits[24];
	size_t size = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, n), used = 0;

	for (size_t i = 0; i < size; i++) {
		if (i > 0 && (size - i) % 3 == 0)
			f.text[used++] = ',';
		f.text[used++] = digits[i];
	}
	return f;
}

struct figure figure_bytes(uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes / 1024;
	struct figure f;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(f.text, sizeof(f.text), "%" PRIu64 " B", bytes);
		return f;
	}
	for (; value >= 1023.95 && i < 5; i++)
		value /= 1024;
	snprintf(f.text, sizeof(f.text), "%.1f %s", value, units[i]);
	return f;
}

struct figure figure_nsec(uint64_t nsec)
{
	static const char *const units[] = {"us", "ms", "s"};
	double value = (double)nsec / 1000;
	struct figure f;
	size_t i = 0;

	if (nsec < 1000) {
		snprintf(f.text, sizeof(f.text), "%" PRIu64 " ns", nsec);
		return f;
	}
	for (; value >= 999.95 && i < 2; i++)
		value /= 1000;
	snprintf(f.text, sizeof(f.text), "%.1f %s", value, units[i]);
	return f;
}

struct figure figure_date(uint64_t usec)
{
	time_t seconds = (time_t)(usec / 1000000);
	struct figure f;
	struct tm tm;

	if (!localtime_r(&seconds, &tm) ||
	    strftime(f.text, sizeof(f.text), "%Y-%m-%d %H:%M:%S %z", &tm) == 0)
		strcpy(f.text, "-");
	return f;
}

static struct figure of(struct json_object *o, const char *path, struct figure (*make)(uint64_t))
{
	struct figure none = {.text = "-"};
	uint64_t value;

	return field_u64(o, path, &value) ? make(value) : none;
}

static struct figure plain(uint64_t n)
{
	struct figure f;

	snprintf(f.text, sizeof(f.text), "%" PRIu64, n);
	return f;
}

struct figure figure_field_id(struct json_object *o, const char *path)
{
	return of(o, path, plain);
}

struct figure figure_field_count(struct json_object *o, const char *path)
{
	return of(o, path, figure_count);
}

struct figure figure_field_bytes(struct json_object *o, const char *path)
{
	return of(o, path, figure_bytes);
}

struct figure figure_field_nsec(struct json_object *o, const char *path)
{
	return of(o, path, figure_nsec);
}

struct figure figure_field_date(struct json_object *o, const char *path)
{
	return of(o, path, figure_date);
}

struct figure figure_field_percent(struct json_object *o, const char *path)
{
	struct figure f = {.text = "-"};
	double value;

	if (!field_double(o, path, &value) || value < 0 || value > 1e6)
		return f;
	snprintf(f.text, sizeof(f.text), "%.2f %%", floor(value * 100 + 1e-6) / 100);
	return f;
}
