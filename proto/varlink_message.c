/*
 * Makes and checks Varlink calls, replies and errors, for both sides of the socket.
 */
#include "proto/varlink.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"

/* Returns FIELD of OBJECT, or NULL if the field is absent or null. */
static struct json_object *field_of(struct json_object *object, const char *field)
{
	struct json_object *value = NULL;

	if (!object || !json_object_object_get_ex(object, field, &value))
		return NULL;
	return value;
}

int varlink_get_string(struct json_object *parameters, const char *field, const char **ret)
{
	struct json_object *value = field_of(parameters, field);
	const char *text;

	if (!value)
		return 0;
	if (!json_object_is_type(value, json_type_string))
		return -EINVAL;
	text = json_object_get_string(value);
	/* With \u0000 within, the text behind it would be lost in a C string. */
	if (!text || strlen(text) != (size_t)json_object_get_string_len(value))
		return -EINVAL;
	*ret = text;
	return 0;
}

int varlink_get_u64(struct json_object *parameters, const char *field, uint64_t *ret)
{
	struct json_object *value = field_of(parameters, field);
	uint64_t number;

	if (!value)
		return 0;
	if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0)
		return -EINVAL;
	number = json_object_get_uint64(value);
	/* json-c returns this for every number that does not fit. */
	if (number == UINT64_MAX)
		return -EINVAL;
	*ret = number;
	return 0;
}

int varlink_get_bool(struct json_object *parameters, const char *field, bool *ret)
{
	struct json_object *value = field_of(parameters, field);

	if (!value)
		return 0;
	if (!json_object_is_type(value, json_type_boolean))
		return -EINVAL;
	*ret = json_object_get_boolean(value);
	return 0;
}

const char *varlink_unknown_field(struct json_object *parameters, const char *const *allowed)
{
	const char *const *name;

	if (!parameters)
		return NULL;
	json_object_object_foreach(parameters, key, value)
	{
		(void)value;
		for (name = allowed; *name && strcmp(*name, key) != 0; name++)
			;
		if (!*name)
			return key;
	}
	return NULL;
}

/* *ret is "parameters", or NULL if these are absent, null or {}. */
static int get_parameters(struct json_object *message, struct json_object **ret)
{
	struct json_object *value = field_of(message, "parameters");

	if (value && !json_object_is_type(value, json_type_object))
		return -EBADMSG;
	*ret = value && json_object_object_length(value) > 0 ? value : NULL;
	return 0;
}

int varlink_parse_call(struct json_object *message, struct varlink_call *ret)
{
	struct varlink_call call = {.method = NULL};
	const char *dot;
	size_t size;

	if (varlink_get_string(message, "method", &call.method) < 0 || !call.method)
		return -EBADMSG;
	dot = strrchr(call.method, '.');
	size = dot ? (size_t)(dot - call.method) : 0;
	if (size == 0 || size >= sizeof(call.interface) || dot[1] == '\0')
		return -EBADMSG;
	memcpy(call.interface, call.method, size);
	call.interface[size] = '\0';
	call.name = dot + 1;
	if (get_parameters(message, &call.parameters) < 0)
		return -EBADMSG;
	if (varlink_get_bool(message, "more", &call.more) < 0 ||
	    varlink_get_bool(message, "oneway", &call.oneway) < 0 ||
	    varlink_get_bool(message, "upgrade", &call.upgrade) < 0)
		return -EBADMSG;
	if (call.more && call.oneway)
		return -EBADMSG;
	*ret = call;
	return 0;
}

int varlink_parse_reply(struct json_object *message, struct varlink_reply *ret)
{
	struct varlink_reply reply = {.error = NULL};

	if (varlink_get_string(message, "error", &reply.error) < 0 ||
	    (reply.error && !*reply.error))
		return -EBADMSG;
	if (get_parameters(message, &reply.parameters) < 0 ||
	    varlink_get_bool(message, "continues", &reply.continues) < 0)
		return -EBADMSG;
	*ret = reply;
	return 0;
}

/* Adds VALUE, which is taken over even on failure. VALUE NULL means that there was no memory. */
static bool add(struct json_object *object, const char *key, struct json_object *value)
{
	if (object && value && json_object_object_add(object, key, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

static struct json_object *or_empty(struct json_object *parameters)
{
	return parameters ? parameters : json_object_new_object();
}

/* Returns MESSAGE if COMPLETE, else frees it. */
static struct json_object *finished(struct json_object *message, bool complete)
{
	if (complete)
		return message;
	json_object_put(message);
	return NULL;
}

struct json_object *varlink_make_call(const char *method, struct json_object *parameters, bool more)
{
	struct json_object *message = json_object_new_object();
	bool good = add(message, "parameters", or_empty(parameters));

	assert(!parameters || json_object_is_type(parameters, json_type_object));
	good = good && add(message, "method", json_object_new_string(method));
	if (good && more)
		good = add(message, "more", json_object_new_boolean(true));
	return finished(message, good);
}

struct json_object *varlink_make_reply(struct json_object *parameters, bool continues)
{
	struct json_object *message = json_object_new_object();
	bool good = add(message, "parameters", or_empty(parameters));

	assert(!parameters || json_object_is_type(parameters, json_type_object));
	if (good && continues)
		good = add(message, "continues", json_object_new_boolean(true));
	return finished(message, good);
}

struct json_object *varlink_make_error(const char *error, struct json_object *parameters)
{
	struct json_object *message = json_object_new_object();
	bool good = add(message, "parameters", or_empty(parameters));

	assert(!parameters || json_object_is_type(parameters, json_type_object));
	return finished(message, good && add(message, "error", json_object_new_string(error)));
}

struct json_object *varlink_make_service_error(const char *name, const char *key, const char *value)
{
	struct json_object *parameters = json_object_new_object();
	char error[128];

	if (!add(parameters, key, json_object_new_string(value))) {
		json_object_put(parameters);
		return NULL;
	}
	snprintf(error, sizeof(error), "org.varlink.service.%s", name);
	return varlink_make_error(error, parameters);
}
