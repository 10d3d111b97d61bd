/*
 * Where decoding can begin: PSB packets, and what the PSB+ behind one says.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first PSB that begins at or after POS; NULL: none. */
const uint8_t *sync_find(const uint8_t *pos, const uint8_t *end);
/* True when the PSB+ at POS has a TSC packet, and then in *ret_tsc. */
bool sync_tsc(const uint8_t *pos, const uint8_t *end, uint64_t *ret_tsc);
/* The first PSB at or after POS whose TSC is at least TSC; NULL: none. */
const uint8_t *sync_find_tsc(const uint8_t *pos, const uint8_t *end, uint64_t tsc);
