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

static inline struct json_object *report_parsed(char *text)
{
	struct json_object *o = json_tokener_parse(text);

	assert_non_null(o);
	free(text);
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
