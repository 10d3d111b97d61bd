/*
 * A token bucket: allows a burst of so many at once, and so many within an interval in the long
 * run.
 *
 * The caller says what time it is. A token is worth the time that it takes to earn one, so that
 * nothing is lost to rounding, however often the bucket is asked.
 */
#pragma once

#include <stdint.h>

/* A value. */
struct bucket {
	uint64_t cost_usec; /* of one token; 0: no limit */
	uint64_t most_usec; /* worth of a full bucket */
	uint64_t credit_usec, last_usec;
};

/* Makes a full bucket of BURST tokens. Tokens come back one by one, BURST of them in INTERVAL_USEC.
 * BURST or INTERVAL_USEC 0: no limit. NOW_USEC is of any clock that does not go back. */
void bucket_init(struct bucket *b, uint32_t burst, uint64_t interval_usec, uint64_t now_usec);
/* Changes the limits and keeps the tokens, as far as they fit. */
void bucket_change(struct bucket *b, uint32_t burst, uint64_t interval_usec, uint64_t now_usec);
/* Microseconds until there is a token; 0: there is one. */
uint64_t bucket_wait(const struct bucket *b, uint64_t now_usec);
/* Takes a token if there is one. */
void bucket_take(struct bucket *b, uint64_t now_usec);
/* The number of tokens; UINT32_MAX: no limit. */
uint32_t bucket_tokens(const struct bucket *b, uint64_t now_usec);
