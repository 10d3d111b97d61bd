/*
 * A report (proto/report.h) in about 40 lines for a terminal.
 */
#pragma once

#include <stdio.h>

#include <json-c/json.h>

/* Prints what is there; what is absent, null or of an unexpected type is "-" or left out. Every
 * string of the report is escaped (text.h). */
void show_report(FILE *out, struct json_object *report);
