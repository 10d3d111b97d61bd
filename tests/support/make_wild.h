/*
 * A random program of a page and what a CPU would have traced of a random walk through it:
 * functions that call, jump, fall and run into each other, one symbol within another, code without
 * one. For tests that count the same in two ways.
 */
#pragma once

#include <stdint.h>

#include "proto/bytes.h"

/* The file, mapped at BASE: at most a page. */
void make_wild_program(uint32_t seed, uint64_t base, struct bytes_out *out);
/* Its trace: ROUNDS stays in user code, each begun at TSC + its number * TICKS and half as long. */
void make_wild_trace(uint32_t seed, uint64_t base, unsigned rounds, uint64_t tsc, uint64_t ticks,
		     struct bytes_out *out);
