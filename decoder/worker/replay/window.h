/*
 * The part of a ring that was asked for by time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The TSC of the last PSB of TRACE whose TSC is not after TSC: from there on everything that
 * happened since is decoded. 0: no such PSB, the whole trace is newer. */
uint64_t window_begin(const uint8_t *trace, size_t size, uint64_t tsc);
