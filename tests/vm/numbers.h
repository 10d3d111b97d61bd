/*
 * A stream of bytes of which each eight tell their place, so that a piece of it shows where it
 * comes from. Fed to the fake PMU by feeder.c, and looked for in what the recorder made of it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* N bytes from POSITION on of the stream of CPU. */
void numbers_fill(unsigned cpu, uint64_t position, uint8_t *to, size_t n);
/* Whether the SIZE bytes are the stream of CPU up to some place, and as far as that is less than
 * SIZE bytes behind BASE, zeros before it. *ret_end: that place. 0; -EINVAL: they are not,
 * *ret_wrong is the first byte that is wrong (SIZE: no end can be seen). */
int numbers_check(unsigned cpu, uint64_t base, const uint8_t *bytes, size_t size, uint64_t *ret_end,
		  size_t *ret_wrong);
