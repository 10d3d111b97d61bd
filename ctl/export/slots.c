/*
 * A hash table of numbers: names.c finds texts with it, stacks.c stacks.
 *
 * Strangers choose what is looked up. The hash is SipHash-1-3 with a random key for each table, so
 * that nobody can choose names that all share a place and make an export quadratic. The hash only
 * says where to look: the owner compares what it finds.
 */
#include "ctl/export/export_private.h"

#include <sys/random.h>

static uint64_t rotate(uint64_t v, unsigned bits)
{
	return v << bits | v >> (64 - bits);
}

static void mix(uint64_t v[static 4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

/* Up to 8 bytes, little-endian. */
static uint64_t word(const uint8_t *bytes, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)bytes[i] << (8 * i);
	return v;
}

uint64_t slots_siphash(const uint64_t key[static 2], const void *data, size_t size)
{
	uint64_t v[4] = {
		key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
		key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
	const uint8_t *bytes = data;
	uint64_t m;

	for (size_t left = size;; left -= 8, bytes += 8) {
		m = left >= 8 ? word(bytes, 8) : word(bytes, left) | (uint64_t)size << 56;
		v[3] ^= m;
		mix(v);
		v[0] ^= m;
		if (left < 8)
			break;
	}
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		mix(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint32_t slots_hash(const struct slots *s, const void *data, size_t size)
{
	return (uint32_t)slots_siphash(s->key, data, size);
}

static void put(struct slots *s, struct slot slot)
{
	uint32_t at = slot.hash & (s->n - 1);

	while (s->list[at].number1)
		at = (at + 1) & (s->n - 1);
	s->list[at] = slot;
}

/* Makes a table of N slots, N being a power of two, with what S has. */
static int resize(struct slots *s, uint32_t n)
{
	struct slots grown = *s;

	grown.list = calloc(n, sizeof(*grown.list));
	grown.n = n;
	if (!grown.list)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n; i++)
		if (s->list[i].number1)
			put(&grown, s->list[i]);
	free(s->list);
	*s = grown;
	return 0;
}

int slots_init(struct slots *s)
{
	*s = (struct slots){0};
	if (getrandom(s->key, sizeof(s->key), 0) != (ssize_t)sizeof(s->key))
		return -EIO;
	return resize(s, 1024);
}

void slots_done(struct slots *s)
{
	free(s->list);
	*s = (struct slots){0};
}

bool slots_next(const struct slots *s, uint32_t hash, uint32_t *step, uint32_t *ret)
{
	for (;;) {
		const struct slot *slot = &s->list[(hash + *step) & (s->n - 1)];

		++*step;
		if (!slot->number1)
			return false;
		if (slot->hash == hash) {
			*ret = slot->number1 - 1;
			return true;
		}
	}
}

int slots_add(struct slots *s, uint32_t hash, uint32_t number)
{
	/* Half of the slots stay free; slots_next() ends at one. */
	if (s->used >= s->n / 2) {
		int r = resize(s, 2 * s->n);

		if (r < 0)
			return r;
	}
	put(s, (struct slot){.hash = hash, .number1 = number + 1});
	s->used++;
	return 0;
}
