/*
 * The recorder's error replies, in words and as exit codes.
 */
#pragma once

#include <json-c/json.h>

/* Says what ERROR ("io.ptsnap.recorder.Busy") with PARAMETERS (may be NULL) means; its exit code.
 */
int client_error_say(const char *error, struct json_object *parameters);
