/*
 * Fields of JSON that another program wrote, and numbers as people read them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#include "ctl/base/option.h"

/*
 * PATH is keys joined by dots ("host.cpu.name"). A field that is missing, null or of another type
 * is absent, which is never an error. Objects and strings are borrowed from the JSON tree.
 */

/* The value at PATH, NULL when absent. */
struct json_object *field_get(struct json_object *o, const char *path);
/* The string at PATH, NULL when absent. */
const char *field_text(struct json_object *o, const char *path);
/* The length of the array at PATH, 0 when absent. */
size_t field_count(struct json_object *o, const char *path);
/* Element INDEX of the array at PATH, NULL when absent. */
struct json_object *field_at(struct json_object *o, const char *path, size_t index);
/* The number at PATH, or the decimal or 0x number in a string: numbers above 2^53 are strings in
 * our JSON. Returns false, and leaves *ret alone, when absent. */
bool field_u64(struct json_object *o, const char *path, uint64_t *ret);
bool field_i64(struct json_object *o, const char *path, int64_t *ret);
bool field_double(struct json_object *o, const char *path, double *ret);
/* Whether the boolean at PATH is true; false when absent. */
bool field_true(struct json_object *o, const char *path);

/* A number as text, returned by value for use inside an expression:
 * printf("%s", figure_bytes(n).text). */
struct figure {
	char text[44];
};

struct figure figure_count(uint64_t n); /* 1,234,567 */
/* N of WHAT, which is the singular: "1 gap", "1,234 gaps", "2 processes", "3 branches". */
struct figure figure_things(uint64_t n, const char *what);
struct figure figure_bytes(uint64_t bytes); /* 4.0 MiB */
struct figure figure_nsec(uint64_t nsec);   /* 12.3 ms */
struct figure figure_date(uint64_t usec);   /* 2024-05-17 12:34:56 +0200, of CLOCK_REALTIME */

/* The same for the number at PATH; "-" when absent. */
struct figure figure_field_id(struct json_object *o, const char *path); /* without separators */
struct figure figure_field_count(struct json_object *o, const char *path);
struct figure figure_field_things(struct json_object *o, const char *path, const char *what);
struct figure figure_field_bytes(struct json_object *o, const char *path);
struct figure figure_field_nsec(struct json_object *o, const char *path);
struct figure figure_field_date(struct json_object *o, const char *path);
/* "98.76 %", rounded down: only the whole is 100.00 %. */
struct figure figure_field_percent(struct json_object *o, const char *path);

/* Whether --json asks for JSON. JSON_UNSET is text. */
bool json_wanted(const struct settings *s);
/* Prints O as --json says, with unsafe characters escaped, and a newline. */
void json_print(const struct settings *s, struct json_object *o);
