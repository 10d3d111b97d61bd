/*
 * The words for one suspect, S, of a report (ptsnap-report(5), SUSPECTS).
 */
#pragma once

#include <stdio.h>

#include <json-c/json.h>

#include "ctl/show/page.h"

#define SUSPECT_CALLERS 4 /* frames of a stack that are shown behind a function */

/* Writes S to OUT: a sentence without the stop at its end. Text of the report is escaped. */
void suspect_put(const struct page *p, FILE *out, struct json_object *s);
/* Writes the name of the function of S with parentheses. */
void suspect_put_function(const struct page *p, FILE *out, struct json_object *s);
/* Writes "; thread TID (NAME) holds it, and is in A <- B" where the report knows who holds the lock
 * that S waits for. */
void suspect_put_owner(const struct page *p, FILE *out, struct json_object *s);

/* The name of the function of S, or of a part of S; unescaped, borrowed, NULL if there is none. */
const char *suspect_function(const struct page *p, struct json_object *s);
/* What S waits for in a system call, as "a semaphore"; "" if that is not known. */
const char *suspect_waited_for(struct json_object *s);
/* The thread of S; NULL if the report does not have the thread. */
struct json_object *suspect_thread(const struct page *p, struct json_object *s);
