/*
 * Numbers as people read them. Each gives a small value with its text inside, to be used in the
 * expression that makes it: printf("%s", figure_bytes(n).text).
 */
#pragma once

#include <stdint.h>

#include <json-c/json.h>

struct figure {
	char text[32];
};

struct figure figure_count(uint64_t n);	    /* 1,234,567 */
struct figure figure_bytes(uint64_t bytes); /* 4.0 MiB */
struct figure figure_nsec(uint64_t nsec);   /* 12.3 ms */
struct figure figure_date(uint64_t usec);   /* 2024-05-17 12:34:56 +0200, of CLOCK_REALTIME */

/* The same of a field (field.h); "-" when it is absent. An id has no separators. */
struct figure figure_field_id(struct json_object *o, const char *path);
struct figure figure_field_count(struct json_object *o, const char *path);
struct figure figure_field_bytes(struct json_object *o, const char *path);
struct figure figure_field_nsec(struct json_object *o, const char *path);
struct figure figure_field_date(struct json_object *o, const char *path);
/* "98.76 %", never rounded up to 100. */
struct figure figure_field_percent(struct json_object *o, const char *path);
