/*
 * Reads the places of a report.
 */
#include "ctl/base/place.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/field.h"
#include "proto/base.h"

struct json_object *place_at(struct json_object *report, struct json_object *owner,
			     const char *path)
{
	uint64_t index;

	if (!field_u64(owner, path, &index) || index > SIZE_MAX)
		return NULL;
	return field_at(report, "places", (size_t)index);
}

struct json_object *place_of_frame(struct json_object *report, struct json_object *thread,
				   size_t index)
{
	return place_at(report, field_at(thread, "stack", index), "");
}

const char *place_name(struct json_object *place)
{
	const char *name = field_text(place, "name");

	return name ? name : field_text(place, "address");
}

char *place_text(struct json_object *place)
{
	const char *name = place_name(place);
	uint64_t offset = 0;
	char *text;

	if (!name)
		return NULL;
	if (!field_text(place, "name") || !field_u64(place, "offset", &offset) || offset == 0)
		return strdup(name);
	return asprintf(&text, "%s+0x%jx", name, (uintmax_t)offset) < 0 ? NULL : text;
}

char *place_source(struct json_object *place)
{
	const char *file = field_text(place, "file");
	uint64_t line;
	char *text;

	if (!file || !field_u64(place, "line", &line))
		return NULL;
	return asprintf(&text, "%s:%ju", file, (uintmax_t)line) < 0 ? NULL : text;
}

char *place_line(struct json_object *place)
{
	struct json_object *innermost = field_at(place, "inlined", 0);

	return place_source(innermost ? innermost : place);
}

/* Puts the place in place of its index at KEY of O. */
static void expand_at(struct json_object *report, struct json_object *o, const char *key)
{
	struct json_object *place = place_at(report, o, key);

	if (place)
		json_object_object_add(o, key, json_object_get(place));
}

static void expand_all(struct json_object *report, struct json_object *o)
{
	static const char *const keys[] = {"place", "from", "to"};
	static const char *const lists[] = {"lastBranches", "inside", "rare", "callers"};

	if (!json_object_is_type(o, json_type_object))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		expand_at(report, o, keys[i]);
	for (size_t i = 0; i < field_count(o, "stack"); i++) {
		struct json_object *place = place_of_frame(report, o, i);

		if (place)
			json_object_array_put_idx(field_get(o, "stack"), i, json_object_get(place));
	}
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t k = 0; k < field_count(o, lists[i]); k++)
			expand_all(report, field_at(o, lists[i], k));
}

struct json_object *place_expand(struct json_object *report, struct json_object *row)
{
	struct json_object *copy = NULL;

	if (json_object_deep_copy(row, &copy, NULL) < 0)
		return NULL;
	expand_all(report, copy);
	return copy;
}
