/*
 * Reads fields of JSON, and formats numbers for people.
 */
#include "ctl/base/field.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/base/say.h"
#include "ctl/base/size.h"

struct json_object *field_get(struct json_object *o, const char *path)
{
	char key[64];
	size_t size;

	while (o && *path) {
		size = strcspn(path, ".");
		if (size >= sizeof(key) || !json_object_is_type(o, json_type_object))
			return NULL;
		memcpy(key, path, size);
		key[size] = '\0';
		if (!json_object_object_get_ex(o, key, &o))
			return NULL;
		path += size + (path[size] == '.');
	}
	return o;
}

const char *field_text(struct json_object *o, const char *path)
{
	struct json_object *value = field_get(o, path);

	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

size_t field_count(struct json_object *o, const char *path)
{
	struct json_object *value = field_get(o, path);

	return json_object_is_type(value, json_type_array) ? json_object_array_length(value) : 0;
}

struct json_object *field_at(struct json_object *o, const char *path, size_t index)
{
	if (index >= field_count(o, path))
		return NULL;
	return json_object_array_get_idx(field_get(o, path), index);
}

bool field_u64(struct json_object *o, const char *path, uint64_t *ret)
{
	struct json_object *value = field_get(o, path);

	if (json_object_is_type(value, json_type_string))
		return size_parse_number(json_object_get_string(value), ret) == 0;
	if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0)
		return false;
	*ret = json_object_get_uint64(value);
	return true;
}

bool field_i64(struct json_object *o, const char *path, int64_t *ret)
{
	struct json_object *value = field_get(o, path);
	const char *text;
	uint64_t magnitude;

	if (json_object_is_type(value, json_type_int)) {
		*ret = json_object_get_int64(value);
		return true;
	}
	text = field_text(o, path);
	if (!text || size_parse_number(text + (*text == '-'), &magnitude) < 0 ||
	    magnitude > INT64_MAX)
		return false;
	*ret = *text == '-' ? -(int64_t)magnitude : (int64_t)magnitude;
	return true;
}

bool field_double(struct json_object *o, const char *path, double *ret)
{
	struct json_object *value = field_get(o, path);

	if (!json_object_is_type(value, json_type_double) &&
	    !json_object_is_type(value, json_type_int))
		return false;
	*ret = json_object_get_double(value);
	return isfinite(*ret);
}

bool field_true(struct json_object *o, const char *path)
{
	struct json_object *value = field_get(o, path);

	return json_object_is_type(value, json_type_boolean) && json_object_get_boolean(value);
}

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

/* VALUE, in units of UNITS[0], in the greatest unit that keeps it above 1, with one digit behind
 * the point. The last of UNITS is NULL. */
static struct figure scaled(double value, double factor, const char *const *units)
{
	struct figure f;

	/* A value that "%.1f" would round up to FACTOR belongs to the next unit. */
	for (; value >= factor - 0.05 && units[1]; units++)
		value /= factor;
	snprintf(f.text, sizeof(f.text), "%.1f %s", value, *units);
	return f;
}

struct figure figure_bytes(uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", NULL};
	struct figure f;

	if (bytes >= 1024)
		return scaled((double)bytes / 1024, 1024, units);
	snprintf(f.text, sizeof(f.text), "%" PRIu64 " B", bytes);
	return f;
}

/* The letters that the plural of WHAT has behind the singular. */
static const char *plural_of(const char *what)
{
	const size_t size = strlen(what);

	if (size > 0 && what[size - 1] == 's')
		return "es";
	return size > 1 && strcmp(what + size - 2, "ch") == 0 ? "es" : "s";
}

struct figure figure_things(uint64_t n, const char *what)
{
	struct figure f;

	snprintf(f.text, sizeof(f.text), "%.26s %.11s%s", figure_count(n).text, what,
		 n == 1 ? "" : plural_of(what));
	return f;
}

struct figure figure_nsec(uint64_t nsec)
{
	static const char *const units[] = {"us", "ms", "s", NULL};
	struct figure f;

	if (nsec >= 1000)
		return scaled((double)nsec / 1000, 1000, units);
	snprintf(f.text, sizeof(f.text), "%" PRIu64 " ns", nsec);
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

/* Returns the figure that MAKE makes of the field, or "-" if the field is absent. */
static struct figure of(struct json_object *o, const char *path, struct figure (*make)(uint64_t))
{
	struct figure none = {.text = "-"};
	uint64_t value;

	return field_u64(o, path, &value) ? make(value) : none;
}

static struct figure figure_id(uint64_t n)
{
	struct figure f;

	snprintf(f.text, sizeof(f.text), "%" PRIu64, n);
	return f;
}

struct figure figure_field_id(struct json_object *o, const char *path)
{
	return of(o, path, figure_id);
}

struct figure figure_field_count(struct json_object *o, const char *path)
{
	return of(o, path, figure_count);
}

struct figure figure_field_things(struct json_object *o, const char *path, const char *what)
{
	struct figure f;
	uint64_t n;

	if (field_u64(o, path, &n))
		return figure_things(n, what);
	snprintf(f.text, sizeof(f.text), "- %.11s%s", what, plural_of(what));
	return f;
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

bool json_wanted(const struct settings *s)
{
	return s->json == JSON_SHORT || s->json == JSON_PRETTY;
}

void json_print(const struct settings *s, struct json_object *o)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE;

	if (s->json == JSON_PRETTY)
		flags |= JSON_C_TO_STRING_PRETTY;
	text_puts_json(stdout, json_object_to_json_string_ext(o, flags));
}
