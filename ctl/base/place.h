/*
 * Places of a report: an address of code with what is known of it (ptsnap-report(5), PLACES). The
 * report has each place once, and mentions it by its index.
 */
#pragma once

#include <stddef.h>

#include <json-c/json.h>

/* The place whose index in REPORT's list is at PATH of OWNER; borrowed. NULL: there is none, which
 * is never an error. */
struct json_object *place_at(struct json_object *report, struct json_object *owner,
			     const char *path);
/* The place of frame INDEX of THREAD, innermost first; or NULL. */
struct json_object *place_of_frame(struct json_object *report, struct json_object *thread,
				   size_t index);
/* The name of the function at PLACE, or the address; NULL: neither is known. */
const char *place_name(struct json_object *place);
/* "NAME+0xOFFSET" of PLACE, or the address; the caller's. NULL: unknown, or no memory. */
char *place_text(struct json_object *place);
/* "FILE:LINE" of PLACE (or of a function, or of one that is inlined there); the caller's. NULL:
 * unknown, or no memory. */
char *place_source(struct json_object *place);
/* The same for the instruction itself, which may be of an inlined function. */
char *place_line(struct json_object *place);
/* A copy of ROW, an element of a list of REPORT, with each place in place of its index; the
 * caller's. NULL: no memory. */
struct json_object *place_expand(struct json_object *report, struct json_object *row);
