/*
 * The manifest's keys: one table that the writer and the reader both walk, so that neither can know
 * a key that the other does not.
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
	bool nullable;	 /* null or not there: NULL, false, or the ABSENT value */
	bool quiet;	 /* so written as not there instead of null or false */
	uint64_t absent; /* of a nullable number */
	uint64_t max;	 /* of a number that is not absent */
};

/* An object of fields. */
struct manifest_group {
	const char *key; /* NULL: the fields lie in the outermost object */
	const struct manifest_field *fields;
	size_t n_fields;
	size_t have; /* offset of the bool that says whether it is there; MANIFEST_ALWAYS */
};
#define MANIFEST_ALWAYS SIZE_MAX

/* An array of objects of fields. */
struct manifest_list {
	const char *key;
	const struct manifest_field *fields;
	size_t n_fields;
	size_t element_size;
	size_t max;
	bool optional; /* may not be there at all, and is not written when it is empty */
};
enum manifest_list_id {
	MANIFEST_CPUS,
	MANIFEST_PROCESSES,
	MANIFEST_IMAGES,
	MANIFEST_NOTES,
	MANIFEST_PEVENTS,
	MANIFEST_TEXTS,
	MANIFEST_LABELS,
	MANIFEST_N_LISTS,
};

#define MANIFEST_VERSION_KEY "manifestVersion"

#define MANIFEST_N_GROUPS 8
extern const struct manifest_group manifest_groups[MANIFEST_N_GROUPS];
extern const struct manifest_list manifest_lists[MANIFEST_N_LISTS];

/* The list's elements and their number. */
void *manifest_elements(const struct manifest *m, enum manifest_list_id id, size_t *ret_n);
/* One more element, as manifest_add_*. */
void *manifest_add_element(struct manifest *m, enum manifest_list_id id);
