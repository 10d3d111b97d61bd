/*
 * The text of a place that changes, as it was between two of its changes: from what was read, at
 * its time, step by step forth and back. Part of kernel.c.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "sideband/kernel/kernel_private.h"

#define PLACE_MAX ((uint64_t)1 << 20)  /* bytes: no code that changes is longer */
#define TEXTS_MAX ((uint64_t)64 << 20) /* bytes of all places' texts */
/* A copy takes its time: so much may lie between its time and the reading of a byte, or two reads
 * of a clock. */
#define READ_SLACK_NS UINT64_C(100000000)
#define INT3	      0xcc

/* The bytes that CHANGE says were there before it (NEW: are there behind it), of SIZE. */
static const uint8_t *told(const struct kernel_change *change, bool new, uint64_t *ret_size)
{
	*ret_size = 0;
	if (change->kind != KERNEL_POKE)
		return NULL;
	*ret_size = new ? change->new_size : change->old_size;
	return new ? change->new : change->old;
}

static bool is_told(const struct kernel_place *p, const struct kernel_text *text,
		    const struct kernel_change *change, bool new)
{
	uint64_t size, at = change->address - p->address;
	const uint8_t *bytes = told(change, new, &size);

	for (uint64_t i = 0; i < size; i++)
		if (text->states[at + i] != KERNEL_IS_KNOWN || text->bytes[at + i] != bytes[i])
			return false;
	return size > 0;
}

/* TEXT is the one on one side of CHANGE, which tells what it was. What was read otherwise was not
 * there all of that time; what was not known is now. */
static void check_text(const struct kernel_place *p, const struct kernel_text *text,
		       const struct kernel_change *change, bool new)
{
	uint64_t size, at = change->address - p->address, i;
	const uint8_t *bytes = told(change, new, &size);

	for (i = 0; i < size; i++)
		if (text->states[at + i] == KERNEL_IS_UNRELIABLE ||
		    (text->states[at + i] == KERNEL_IS_KNOWN && text->bytes[at + i] != bytes[i]))
			break;
	if (i < size) {
		memset(text->states + at, KERNEL_IS_UNRELIABLE, (size_t)size);
		return;
	}
	if (size > 0)
		memcpy(text->bytes + at, bytes, (size_t)size);
	memset(text->states + at, KERNEL_IS_KNOWN, (size_t)size);
}

/* TO, on the other side of CHANGE than FROM; NEW: behind it. */
static void step(const struct kernel_place *p, const struct kernel_text *from,
		 const struct kernel_text *to, const struct kernel_change *change, bool new)
{
	uint64_t size, at = change->address - p->address;
	const uint8_t *bytes = told(change, new, &size);

	memcpy(to->bytes, from->bytes, (size_t)p->size);
	memcpy(to->states, from->states, (size_t)p->size);
	memset(to->states + at, KERNEL_IS_MISSING, (size_t)change->size);
	if (size == 0)
		return;
	memcpy(to->bytes + at, bytes, (size_t)size);
	memset(to->states + at, KERNEL_IS_KNOWN, (size_t)size);
}

/* As far as the pieces hold it; what is masked there. */
static void read_text(struct kernel *k, const struct kernel_place *p, const struct kernel_text *to)
{
	size_t masked = kernel_find_masked(k, p->address);
	uint64_t at = 0, end = p->address + p->size;

	memset(to->states, KERNEL_IS_MISSING, (size_t)p->size);
	while (at < p->size) {
		const struct kernel_piece *piece = kernel_piece_at(k, p->address + at);
		uint64_t in = piece ? p->address + at - piece->address : 0, n = 1;
		struct image_code code;

		if (piece && kernel_piece_code(k, piece, piece->offset + in, &code) == 0) {
			uint64_t into = piece->offset + in - code.address;

			n = MIN_OF(MIN_OF(code.size - into, piece->size - in), p->size - at);
			memcpy(to->bytes + at, code.bytes + into, (size_t)n);
			memset(to->states + at, KERNEL_IS_KNOWN, (size_t)n);
			if (code.touched)
				code.touched[((code.address + into) >> 12) - (code.address >> 12)] =
					1;
		}
		at += n;
	}
	for (; masked < k->n_masked && k->masked[masked].address < end; masked++) {
		uint64_t from = MAX_OF(k->masked[masked].address, p->address);
		uint64_t to_end = MIN_OF(k->masked[masked].address + k->masked[masked].size, end);

		memset(to->states + (from - p->address), KERNEL_IS_MASKED, (size_t)(to_end - from));
	}
}

/* The INT3 that was read at the beginning of what CHANGE tells, instead of that. */
static bool mend_int3(const struct kernel_place *p, const struct kernel_text *text,
		      const struct kernel_change *change, bool new)
{
	uint64_t size, at = change->address - p->address;
	const uint8_t *bytes = told(change, new, &size);
	uint8_t first;

	if (size == 0 || text->states[at] != KERNEL_IS_KNOWN || text->bytes[at] != INT3)
		return false;
	first = text->bytes[at];
	text->bytes[at] = bytes[0];
	if (is_told(p, text, change, new))
		return true;
	text->bytes[at] = first;
	return false;
}

static bool is_near(uint64_t a, uint64_t b)
{
	return (a > b ? a - b : b - a) <= READ_SLACK_NS;
}

/* The change at hand was under way when TEXT was read at TIME: which side of it is that? NEXT: it
 * is the first one behind that time, else the last one before. True: the other one. */
static bool is_other_side(const struct kernel_place *p, const struct kernel_text *text,
			  const struct kernel_change *change, uint64_t time, bool next)
{
	if (change->kind != KERNEL_POKE || !is_near(change->time, time) ||
	    is_told(p, text, change, !next))
		return false;
	if (mend_int3(p, text, change, !next))
		return false;
	return is_told(p, text, change, next) || mend_int3(p, text, change, next);
}

/* TEXT was read at TIME: behind so many of the place's changes. */
static size_t find_base(const struct kernel *k, const struct kernel_place *p,
			const struct kernel_text *text, uint64_t time)
{
	const struct kernel_change *changes = &k->changes[p->first];
	size_t base = 0, moved;

	if (time == KERNEL_ABSENT)
		return 0;
	while (base < p->n && changes[base].time <= time)
		base++;
	moved = base;
	while (moved < p->n && is_other_side(p, text, &changes[moved], time, true))
		moved++;
	if (moved != base)
		return moved;
	while (moved > 0 && is_other_side(p, text, &changes[moved - 1], time, false))
		moved--;
	return moved;
}

/* Each text from the next one nearer to what was read; then each is held against what the records
 * on both sides say. */
static void make_texts(const struct kernel *k, struct kernel_place *p, size_t base)
{
	const struct kernel_change *changes = &k->changes[p->first];
	size_t i;

	for (i = base; i < p->n; i++) {
		check_text(p, &p->texts[i], &changes[i], false);
		step(p, &p->texts[i], &p->texts[i + 1], &changes[i], true);
	}
	for (i = base; i-- > 0;) {
		check_text(p, &p->texts[i + 1], &changes[i], true);
		step(p, &p->texts[i + 1], &p->texts[i], &changes[i], false);
	}
}

static bool allocate_texts(struct kernel *k, struct kernel_place *p)
{
	uint64_t need;

	if (p->size > PLACE_MAX || __builtin_mul_overflow(p->size, p->n + 1, &need) ||
	    need > TEXTS_MAX - k->text_bytes)
		return false;
	p->texts = calloc(p->n + 1, sizeof(*p->texts));
	for (size_t i = 0; p->texts && i <= p->n; i++) {
		p->texts[i].bytes = calloc(2, (size_t)p->size);
		if (!p->texts[i].bytes)
			return false;
		p->texts[i].states = p->texts[i].bytes + p->size;
	}
	k->text_bytes += need;
	return p->texts != NULL;
}

const struct kernel_text *kernel_texts_of(struct kernel *k, struct kernel_place *p)
{
	const struct kernel_piece *piece = kernel_piece_at(k, p->address);
	struct kernel_text *base, read;
	size_t at;

	if (p->texts || p->refused)
		return p->refused ? NULL : p->texts;
	p->refused = !allocate_texts(k, p);
	if (p->refused)
		return NULL;
	base = &p->texts[0];
	read_text(k, p, base);
	at = find_base(k, p, base, piece ? piece->read_ns : KERNEL_ABSENT);
	read = *base;
	*base = p->texts[at];
	p->texts[at] = read;
	make_texts(k, p, at);
	return p->texts;
}
