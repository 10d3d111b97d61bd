/*
 * The table of the manifest's keys, which the writer and the reader both read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/bundle/manifest.h"

enum manifest_type {
	MANIFEST_STRING, /* char *, owned */
	MANIFEST_BOOL,
	MANIFEST_U16,
	MANIFEST_U32,
	MANIFEST_U64,
	MANIFEST_HEX, /* uint64_t, a "0x..." string in JSON */
};

struct manifest_field {
	const char *key;
	enum manifest_type type;
	size_t offset;
	bool nullable;	 /* may be null or missing: NULL, false, or ABSENT */
	bool quiet;	 /* is left out instead of written as null or false */
	uint64_t absent; /* the value of a nullable number that is absent */
	uint64_t max;	 /* of a number that is not absent */
};

/* An object of fields. */
struct manifest_group {
	const char *key; /* NULL: the fields lie in the outermost object */
	const struct manifest_field *fields;
	size_t n_fields;
	size_t have; /* offset of the bool that says whether it is there, or MANIFEST_ALWAYS */
};
#define MANIFEST_ALWAYS SIZE_MAX

/* An array of objects of fields. */
struct manifest_list {
	const char *key;
	const struct manifest_field *fields;
	size_t n_fields;
	size_t element_size;
	size_t max;
	bool optional; /* may be missing, and is not written if empty */
};
enum manifest_list_id {
	MANIFEST_CPUS,
	MANIFEST_PROCESSES,
	MANIFEST_IMAGES,
	MANIFEST_NOTES,
	MANIFEST_PEVENTS,
	MANIFEST_TEXTS,
	MANIFEST_LABELS,
	MANIFEST_SEAMS,
	MANIFEST_N_LISTS,
};

#define MANIFEST_VERSION_KEY "manifestVersion"

#define MANIFEST_N_GROUPS 8
extern const struct manifest_group manifest_groups[MANIFEST_N_GROUPS];
extern const struct manifest_list manifest_lists[MANIFEST_N_LISTS];

/* Returns a list's elements and their number. */
void *manifest_elements(const struct manifest *m, enum manifest_list_id id, size_t *ret_n);
/* Appends an element, as manifest_add_*(). */
void *manifest_add_element(struct manifest *m, enum manifest_list_id id);
