/*
 * The map of a skim (ptsnapctl decode --skim) for a terminal.
 */
#pragma once

#include <stdio.h>

#include <json-c/json.h>

/* As show_report(): what is absent is "-" or left out, every string is escaped. */
void show_skim(FILE *out, struct json_object *map);
