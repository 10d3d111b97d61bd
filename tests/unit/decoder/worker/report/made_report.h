/*
 * The report of a made bundle: for tests of decoder/worker/report.
 */
#pragma once

#include "decoder/worker/decode.h"
#include "proto/memfd.h"
#include "tests/unit/decoder/worker/made.h"
#include "tests/unit/decoder/worker/made_json.h"

/* Edits the manifest of a made bundle, whose trace lasts from BEGIN to END. */
typedef void edit_fn(struct manifest *m, uint64_t begin, uint64_t end);

/* The text of the report, freed by the caller; *ret_size its bytes. EDIT may be NULL. */
static inline char *report_text_of(const struct make_bundle *how, edit_fn *edit,
				   const struct decode_options *options, size_t *ret_size)
{
	struct bundle *bundle = made_open(how);
	struct decode_sink sink = {.version = "t"};
	uint64_t faults;

	if (edit)
		edit((struct manifest *)bundle_manifest(bundle), MAKE_TSC,
		     MAKE_TSC + (uint64_t)how->rounds * MAKE_ROUND);
	assert_int_equal(memfd_new("out", 0, &sink.fd), 0);
	assert_int_equal(decode_run(bundle, options, &sink, &faults), 0);
	bundle_free(bundle);
	return made_text(sink.fd, ret_size);
}

/* Counts the mention of a place at KEY of O, if there is one. */
static inline void report_count_place(struct json_object *o, const char *key, size_t *counts,
				      size_t n)
{
	struct json_object *index = o;

	if (key && !json_object_object_get_ex(o, key, &index))
		return;
	if (json_object_is_type(index, json_type_null))
		return;
	assert_true(json_object_is_type(index, json_type_int));
	assert_true(json_object_get_int64(index) >= 0 && json_object_get_uint64(index) < n);
	counts[json_object_get_uint64(index)]++;
}

static inline void report_count_places(struct json_object *o, size_t *counts, size_t n)
{
	if (json_object_is_type(o, json_type_array))
		for (size_t i = 0; i < json_object_array_length(o); i++)
			report_count_places(json_object_array_get_idx(o, i), counts, n);
	if (!json_object_is_type(o, json_type_object))
		return;
	json_object_object_foreach(o, key, value)
	{
		if (strcmp(key, "stack") == 0 && json_object_is_type(value, json_type_array))
			for (size_t i = 0; i < json_object_array_length(value); i++)
				report_count_place(json_object_array_get_idx(value, i), NULL,
						   counts, n);
		else if (strcmp(key, "place") == 0 || strcmp(key, "from") == 0 ||
			 strcmp(key, "to") == 0)
			report_count_place(o, key, counts, n);
		else
			report_count_places(value, counts, n);
	}
}

/* Each index of REPORT leads to something, and each place is there once and is mentioned. */
static inline void report_assert_joined(struct json_object *report)
{
	struct json_object *places = at(report, "places"), *index;
	const size_t n = json_object_array_length(places);
	size_t *counts = calloc(n + 1, sizeof(*counts));

	assert_non_null(counts);
	report_count_places(report, counts, n);
	for (size_t i = 0; i < n; i++) {
		struct json_object *place = json_object_array_get_idx(places, i);

		if (counts[i] == 0)
			fail_msg("nothing mentions place %zu: %s", i,
				 json_object_to_json_string(place));
		for (size_t k = 0; k < i && n < 1000; k++)
			assert_false(
				json_object_equal(place, json_object_array_get_idx(places, k)));
		if (json_object_object_get_ex(place, "image", &index))
			assert_true(json_object_get_uint64(index) < length_at(report, "images"));
		if (!json_object_object_get_ex(place, "function", &index))
			continue;
		assert_true(json_object_get_uint64(index) < length_at(report, "functions"));
		assert_string_equal(
			text_at(place, "name"),
			text_at(json_object_array_get_idx(at(report, "functions"),
							  json_object_get_uint64(index)),
				"name"));
	}
	free(counts);
}

static inline struct json_object *report_parsed(char *text)
{
	struct json_object *o = json_tokener_parse(text);

	assert_non_null(o);
	free(text);
	report_assert_joined(o);
	return o;
}

/* The report, parsed; *ret_size its bytes. */
static inline struct json_object *report_of(const struct make_bundle *how, uint64_t limit,
					    bool pretty, size_t *ret_size)
{
	const struct decode_options options = {
		.view = WORKER_VIEW_REPORT, .report_limit = limit, .pretty = pretty};

	return report_parsed(report_text_of(how, NULL, &options, ret_size));
}

static inline struct json_object *report_of_edited(const struct make_bundle *how, edit_fn *edit,
						   uint64_t limit, size_t *ret_size)
{
	const struct decode_options options = {.view = WORKER_VIEW_REPORT, .report_limit = limit};

	return report_parsed(report_text_of(how, edit, &options, ret_size));
}

static inline int64_t signed_at(struct json_object *o, const char *path)
{
	return json_object_get_int64(at(o, path));
}
