/*
 * The tables of a report's summary: the first few rows of each, and how many there are more. An
 * empty table prints nothing.
 */
#pragma once

#include <stdio.h>

#include <json-c/json.h>

/* Of N CPUs so many are shown in each table: all of a few, a few of many. */
#define SHOW_CPUS(n) ((n) <= 8 ? (n) : 4)

/* TEXT in a column of WIDTH, left-aligned. */
void show_cell(FILE *out, const char *text, size_t width);
/* Below a table: that of N rows only so many were shown, unless they were all. */
void show_more(FILE *out, size_t n, size_t shown);

void show_table_cpus(FILE *out, struct json_object *report);
void show_table_threads(FILE *out, struct json_object *report);
/* The call stack and the last branches of the first thread that has any. */
void show_table_stack(FILE *out, struct json_object *report);
void show_table_branches(FILE *out, struct json_object *report);
void show_table_functions(FILE *out, struct json_object *report);
void show_table_gaps(FILE *out, struct json_object *report);
