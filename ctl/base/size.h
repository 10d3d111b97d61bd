/*
 * Parses numbers, sizes and times of the command line.
 *
 * All functions return 0; -EINVAL for text that is none of what they take; or -ERANGE for a number
 * of more than 64 bits. They set the result on success only.
 */
#pragma once

#include <stdint.h>

/* A decimal or 0x number, with nothing before or behind it. */
int size_parse_number(const char *text, uint64_t *ret);
/* 4096, 0x1000, 512K, 8M, 2G, 1T. K, KB and KiB are all 1024 bytes. Small letters are valid, except
 * m, which could mean minutes. */
int size_parse_bytes(const char *text, uint64_t *ret_bytes);
/* 500us, 50ms, 2s, 1.5s, 1min or 1m, 2h. A number without a unit is seconds. */
int size_parse_time(const char *text, uint64_t *ret_usec);
/* The value of --last: a size (bytes if without a unit) or a time (with a unit), above 0. Sets one
 * of the results and leaves the other alone. 8m is invalid, as it could be either. */
int size_parse_last(const char *text, uint64_t *ret_bytes, uint64_t *ret_usec);

/* For messages. */
#define SIZE_VALID "a size like 4096, 0x1000, 512K, 8M, 1G"
#define TIME_VALID "a time like 500us, 50ms, 2s, 1min, 1h"
