/*
 * A token bucket: at most so many at once, and so many in a time over all. It has no clock of its
 * own.
 */
#pragma once

#include <stdint.h>

/* A value. Tokens are counted in the time that it takes to earn them. */
struct bucket {
	uint64_t cost_usec; /* of one token; 0: there is no limit */
	uint64_t most_usec; /* of a full bucket */
	uint64_t credit_usec, last_usec;
};

/* A full bucket of BURST tokens, which come back one by one, all of them within INTERVAL_USEC.
 * BURST or INTERVAL_USEC 0: no limit. NOW_USEC is of any clock that does not go back. */
void bucket_init(struct bucket *b, uint32_t burst, uint64_t interval_usec, uint64_t now_usec);
/* Other limits from now on, with as many tokens as there were, as far as they fit. */
void bucket_change(struct bucket *b, uint32_t burst, uint64_t interval_usec, uint64_t now_usec);
/* How long until there is a token; 0: there is one. */
uint64_t bucket_wait(const struct bucket *b, uint64_t now_usec);
/* Takes a token; where there is none, nothing. */
void bucket_take(struct bucket *b, uint64_t now_usec);
/* How many tokens there are; UINT32_MAX: no limit. */
uint32_t bucket_tokens(const struct bucket *b, uint64_t now_usec);
