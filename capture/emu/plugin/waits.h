/*
 * Which system calls may block: then the thread's virtual CPU is anybody's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether call NUMBER with ARGS (guest addresses) would block if it were made now, or is long
 * anyway. A wrong "no" costs the others a few ms, a wrong "yes" a switch. */
bool waits_would_block(int64_t number, const uint64_t args[6]);
