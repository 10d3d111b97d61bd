/*
 * Messages for people: one line each, on stderr, escaped (text.h). stdout is for data only.
 */
#pragma once

#include "proto/base.h"

/* "ptsnapctl: MESSAGE". */
void say(const char *format, ...) PRINTF_LIKE(1, 2);
/* The same, then gives CODE back: return say_error(EXIT_CODE_USAGE, "...", ...). */
int say_error(int code, const char *format, ...) PRINTF_LIKE(2, 3);
