/*
 * Numbers, sizes and times as people type them.
 */
#pragma once

#include <stdint.h>

/* Decimal or 0x..., nothing before or after. 0 or -EINVAL (not a number), -ERANGE (over 64 bits).
 */
int size_parse_number(const char *text, uint64_t *ret);
/* 4096, 0x1000, 512K, 8M, 2G, 1T; K, KB and KiB are all 1024; small letters too, except the m that
 * could be minutes. 0, -EINVAL, -ERANGE. */
int size_parse_bytes(const char *text, uint64_t *ret_bytes);
/* 500us, 50ms, 2s, 1.5s, 1min or 1m, 2h; no unit: seconds. 0, -EINVAL, -ERANGE. */
int size_parse_time(const char *text, uint64_t *ret_usec);
/* --last: a SIZE (bytes without a unit) or a TIME (with a unit). Sets the one that it is, leaves
 * the other alone. Neither may be 0, and 8m is neither: it could be both. 0, -EINVAL, -ERANGE. */
int size_parse_last(const char *text, uint64_t *ret_bytes, uint64_t *ret_usec);
/* For messages. */
#define SIZE_VALID "a size like 4096, 0x1000, 512K, 8M, 1G"
#define TIME_VALID "a time like 500us, 50ms, 2s, 1min, 1h"
