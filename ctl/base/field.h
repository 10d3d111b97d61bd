/*
 * Fields of JSON that somebody else wrote: what is missing, null or of another type is absent,
 * never an error. PATH is keys joined by dots ("host.cpu.name").
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

/* NULL: absent. Borrowed. */
struct json_object *field_get(struct json_object *o, const char *path);
const char *field_text(struct json_object *o, const char *path);
/* Elements of an array; 0 when it is none. */
size_t field_count(struct json_object *o, const char *path);
struct json_object *field_at(struct json_object *o, const char *path, size_t index);
/* A number, or a string that holds a decimal or 0x one (numbers above 2^53 come so). */
bool field_u64(struct json_object *o, const char *path, uint64_t *ret);
bool field_i64(struct json_object *o, const char *path, int64_t *ret);
bool field_double(struct json_object *o, const char *path, double *ret);
/* True only when it is the boolean true. */
bool field_true(struct json_object *o, const char *path);
