/*
 * The parts of the summary of a report, for the files of ctl/show. A part that has nothing to say
 * prints nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <json-c/json.h>

#include "ctl/show/show.h"

/* How many of N CPUs a table shows: all of a few, a few of many. */
#define SHOW_CPUS(n) ((n) <= 8 ? (n) : 4)

/* The word that begins a line of the summary. */
void show_label(FILE *out, const char *name);
/* Prints the kind of trigger of REPORT in words. */
void show_trigger_kind(FILE *out, struct json_object *report);
/* Prints TEXT left-aligned in a column of WIDTH. */
void show_cell(FILE *out, const char *text, size_t width);
/* PATH without its directories; borrowed. NULL for NULL. */
const char *show_file_name(const char *path);
/* Prints below a table of N rows how many rows are not shown, if any. */
void show_more(FILE *out, size_t n, size_t shown);

/* show_events.c: a line for each kind of event that is not a branch. */
void show_events(FILE *out, struct json_object *report);

/* show_table.c: tables. The stack and the last branches are those of the first thread that has any.
 */
void show_table_cpus(FILE *out, struct json_object *report);
void show_table_threads(FILE *out, struct json_object *report);
void show_table_stack(FILE *out, struct json_object *report);
void show_table_branches(FILE *out, struct json_object *report);
void show_table_functions(FILE *out, struct json_object *report);
void show_table_gaps(FILE *out, struct json_object *report);

/* show_names.c: which files have functions without names, and what would give them names. */
void show_names(FILE *out, struct json_object *report);

/* show_turns.c: for each CPU the number of turns, the last thread, and each thread's share of the
 * time. Prints nothing for one thread on one CPU, and for a report without turns. */
void show_turns(FILE *out, struct json_object *report);
/* Writes the CPUs on which thread TID had turns to RET, as "0,2-4", cut to SIZE bytes; "" when the
 * report has no turns of that thread. */
void show_turns_cpus_of(struct json_object *report, uint64_t tid, char *ret, size_t size);

/* --- packages.c --- */

#define PACKAGES_MAX  8u
#define PACKAGES_NAME 64u

struct packages {
	char names[PACKAGES_MAX][PACKAGES_NAME];
	size_t n;
};

/* Asks dpkg-query(1) which packages have the N files at PATHS, and waits 2 s at most. None if it
 * does not answer, or does not know the files. */
void packages_find(const char *const *paths, size_t n, struct packages *ret);

/* --- name.c: names of functions and source lines, shortened to a number of columns --- */

/* Prints "NAME+0xOFFSET" of PLACE (ctl/base/place.h), or its address, as name_puts() does. */
size_t name_puts_place(FILE *out, struct json_object *place, size_t columns);
/* Prints "FILE:LINE" likewise. The beginning of a path that is too long is left out. */
size_t name_puts_source(FILE *out, const char *source, size_t columns);
/* Prints "FILE:LINE" likewise, with the file's name only. */
size_t name_puts_line(FILE *out, const char *source, size_t columns);
