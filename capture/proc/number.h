/*
 * Unsigned numbers in text that the kernel or a user wrote, without what strtoull forgives.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Digits of BASE (0: "0x" means 16, else 10), no sign and no blank before them, at most MAX, up to
 * the end of TEXT or a character of STOP. True: *ret, and *ret_end (may be NULL) behind the digits.
 */
bool number_parse(const char *text, int base, uint64_t max, const char *stop, const char **ret_end,
		  uint64_t *ret);
