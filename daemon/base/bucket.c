/*
 * A token bucket.
 */
#include "daemon/base/bucket.h"

#include "proto/base.h"

static void bucket_set(struct bucket *b, uint32_t burst, uint64_t interval_usec)
{
	b->cost_usec = burst > 0 && interval_usec > 0 ? MAX_OF(interval_usec / burst, 1u) : 0;
	b->most_usec = b->cost_usec * burst;
}

void bucket_init(struct bucket *b, uint32_t burst, uint64_t interval_usec, uint64_t now_usec)
{
	bucket_set(b, burst, interval_usec);
	b->credit_usec = b->most_usec;
	b->last_usec = now_usec;
}

static uint64_t bucket_credit(const struct bucket *b, uint64_t now_usec)
{
	uint64_t passed = now_usec > b->last_usec ? now_usec - b->last_usec : 0;
	uint64_t room = b->most_usec - b->credit_usec;

	return b->credit_usec + MIN_OF(passed, room);
}

void bucket_change(struct bucket *b, uint32_t burst, uint64_t interval_usec, uint64_t now_usec)
{
	uint64_t credit = bucket_credit(b, now_usec), cost = b->cost_usec;

	bucket_set(b, burst, interval_usec);
	/* There was no limit before, so no tokens were counted. */
	if (cost == 0) {
		b->credit_usec = b->most_usec;
	} else {
		__extension__ unsigned __int128 scaled = credit;

		scaled = scaled * b->cost_usec / cost;
		b->credit_usec = scaled < b->most_usec ? (uint64_t)scaled : b->most_usec;
	}
	b->last_usec = now_usec;
}

uint64_t bucket_wait(const struct bucket *b, uint64_t now_usec)
{
	uint64_t credit = bucket_credit(b, now_usec);

	return credit >= b->cost_usec ? 0 : b->cost_usec - credit;
}

void bucket_take(struct bucket *b, uint64_t now_usec)
{
	uint64_t credit = bucket_credit(b, now_usec);

	if (credit < b->cost_usec)
		return;
	b->credit_usec = credit - b->cost_usec;
	b->last_usec = MAX_OF(now_usec, b->last_usec);
}

uint32_t bucket_tokens(const struct bucket *b, uint64_t now_usec)
{
	if (b->cost_usec == 0)
		return UINT32_MAX;
	return (uint32_t)(bucket_credit(b, now_usec) / b->cost_usec);
}
