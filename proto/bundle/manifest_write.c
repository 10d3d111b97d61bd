/*
 * struct manifest -> JSON text, streamed. Called where a bundle is written: in the recorder's job
 * and in the offline client.
 */
#include "proto/bundle/manifest.h"

#include <string.h>

#include "proto/base.h"
#include "proto/bundle/manifest_fields.h"
#include "proto/json.h"

static uint64_t number(const void *at, enum manifest_type type)
{
	switch (type) {
	case MANIFEST_U16: return *(const uint16_t *)at;
	case MANIFEST_U32: return *(const uint32_t *)at;
	default: return *(const uint64_t *)at;
	}
}

static void write_number(struct json_writer *w, const struct manifest_field *f, const void *at)
{
	uint64_t v = number(at, f->type);

	if (f->nullable && v == f->absent)
		json_null(w, f->key);
	else if (f->type == MANIFEST_HEX)
		json_hex(w, f->key, v);
	else
		json_u64(w, f->key, v);
}

static void write_string(struct json_writer *w, const struct manifest_field *f, const void *at)
{
	const char *s = *(char *const *)at;

	json_string(w, f->key, s || f->nullable ? s : "");
}

static bool says_nothing(const struct manifest_field *f, const void *at)
{
	if (f->type == MANIFEST_STRING)
		return *(char *const *)at == NULL;
	if (f->type == MANIFEST_BOOL)
		return !*(const bool *)at;
	return number(at, f->type) == f->absent;
}

static void write_fields(struct json_writer *w, const void *object,
			 const struct manifest_field *fields, size_t n_fields)
{
	for (size_t i = 0; i < n_fields; i++) {
		const void *at = (const char *)object + fields[i].offset;

		if (fields[i].quiet && says_nothing(&fields[i], at))
			continue;
		if (fields[i].type == MANIFEST_STRING)
			write_string(w, &fields[i], at);
		else if (fields[i].type == MANIFEST_BOOL)
			json_boolean(w, fields[i].key, *(const bool *)at);
		else
			write_number(w, &fields[i], at);
	}
}

static void write_group(struct json_writer *w, const struct manifest *m,
			const struct manifest_group *g)
{
	if (g->have != MANIFEST_ALWAYS && !*(const bool *)((const char *)m + g->have)) {
		json_null(w, g->key);
		return;
	}
	if (g->key)
		json_begin_object(w, g->key);
	write_fields(w, m, g->fields, g->n_fields);
	if (g->key)
		json_end_object(w);
}

static void write_list(struct json_writer *w, const struct manifest *m, enum manifest_list_id id)
{
	const struct manifest_list *l = &manifest_lists[id];
	size_t n;
	const char *elements = manifest_elements(m, id, &n);

	if (l->optional && n == 0)
		return;
	json_begin_array(w, l->key);
	for (size_t i = 0; i < n; i++) {
		json_begin_object(w, NULL);
		write_fields(w, elements + i * l->element_size, l->fields, l->n_fields);
		json_end_object(w);
	}
	json_end_array(w);
}

int manifest_write(const struct manifest *m, struct bytes_out *out)
{
	CLEANUP(json_writer_freep) struct json_writer *w = NULL;
	int r;

	r = json_writer_new_bytes(out, true, &w);
	if (r < 0)
		return r;
	json_begin_object(w, NULL);
	json_u64(w, MANIFEST_VERSION_KEY, MANIFEST_VERSION);
	for (size_t i = 0; i < MANIFEST_N_GROUPS; i++)
		write_group(w, m, &manifest_groups[i]);
	for (unsigned id = 0; id < MANIFEST_N_LISTS; id++)
		write_list(w, m, id);
	json_end_object(w);
	return json_writer_finish(w);
}
