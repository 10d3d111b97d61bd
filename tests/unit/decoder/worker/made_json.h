/*
 * Looking into a parsed report: for tests of the worker.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

/* The value at "key/0/key"; fails where there is none. */
static inline struct json_object *at(struct json_object *o, const char *path)
{
	char *copy = strdup(path), *save = NULL, *part;

	for (part = strtok_r(copy, "/", &save); part != NULL; part = strtok_r(NULL, "/", &save)) {
		struct json_object *next = NULL;

		if (json_object_is_type(o, json_type_array))
			next = json_object_array_get_idx(o, strtoul(part, NULL, 10));
		else if (!json_object_object_get_ex(o, part, &next))
			fail_msg("%s: no %s", path, part);
		o = next;
	}
	free(copy);
	return o;
}

/* The place whose index is at PATH of REPORT; fails where there is none. */
static inline struct json_object *place_of(struct json_object *report, const char *path)
{
	struct json_object *index = at(report, path);

	assert_true(json_object_is_type(index, json_type_int));
	return json_object_array_get_idx(at(report, "places"), json_object_get_uint64(index));
}

static inline const char *text_at(struct json_object *o, const char *path)
{
	return json_object_get_string(at(o, path));
}

static inline uint64_t number_at(struct json_object *o, const char *path)
{
	return json_object_get_uint64(at(o, path));
}

static inline size_t length_at(struct json_object *o, const char *path)
{
	return json_object_array_length(at(o, path));
}
