/*
 * A stream of bytes in which each eight bytes give their position, so that any piece shows where it
 * comes from. feeder.c feeds the stream to the fake PMU, and searches it in the recorder's bundles.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Writes N bytes of CPU's stream, from POSITION on. */
void numbers_fill(unsigned cpu, uint64_t position, uint8_t *to, size_t n);
/* Checks that the SIZE bytes are the stream of CPU up to some position, with zeros in front if the
 * stream began (at BASE) less than SIZE bytes before. *ret_end: that position. 0; -EINVAL:
 * *ret_wrong is the index of the first wrong byte (SIZE: no end found). */
int numbers_check(unsigned cpu, uint64_t base, const uint8_t *bytes, size_t size, uint64_t *ret_end,
		  size_t *ret_wrong);
