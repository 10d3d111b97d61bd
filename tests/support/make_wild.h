/*
 * Makes a random program of one page, and the trace of a random walk through it: functions call,
 * jump, fall and run into each other; one symbol lies within another; some code has no symbol. For
 * tests that count the same in two ways.
 */
#pragma once

#include <stdint.h>

#include "proto/bytes.h"

/* Writes the file, mapped at BASE: at most one page. */
void make_wild_program(uint32_t seed, uint64_t base, struct bytes_out *out);
/* Writes its trace: ROUNDS runs of user code; each begins at TSC + its number * TICKS and takes
 * half as long. */
void make_wild_trace(uint32_t seed, uint64_t base, unsigned rounds, uint64_t tsc, uint64_t ticks,
		     struct bytes_out *out);
