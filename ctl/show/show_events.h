/*
 * What happened besides branches, in a line each: PTWRITEs, frequencies, transactions, interrupts,
 * power. What did not happen prints nothing.
 */
#pragma once

#include <stdio.h>

#include <json-c/json.h>

void show_events(FILE *out, struct json_object *report);
