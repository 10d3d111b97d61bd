/*
 * Tolerant access to parsed JSON. Called by what shows reports, lists and status.
 */
#include "ctl/base/field.h"

#include <math.h>
#include <string.h>

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
	uint64_t size;

	if (json_object_is_type(value, json_type_int)) {
		*ret = json_object_get_int64(value);
		return true;
	}
	text = field_text(o, path);
	if (!text || size_parse_number(text + (*text == '-'), &size) < 0 || size > INT64_MAX)
		return false;
	*ret = *text == '-' ? -(int64_t)size : (int64_t)size;
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
