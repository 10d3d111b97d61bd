/*
 * Who ran on which CPU, out of a report's turns.
 */
#pragma once

#include <stdio.h>

#include <json-c/json.h>

/* For each CPU how many turns, the last one's thread, and each thread's share of the time. Nothing
 * where one thread ran on one CPU, or the report has no turns. */
void show_turns(FILE *out, struct json_object *report);
/* "0,2-4": the CPUs that thread TID had turns on, cut to SIZE; "" where the report does not say. */
void show_turns_cpus_of(struct json_object *report, uint64_t tid, char *ret, size_t size);
