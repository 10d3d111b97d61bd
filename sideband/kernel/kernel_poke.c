/*
 * Kernel text that changes: records -> sites -> the bytes of each site in each version.
 *
 * TEXT_POKE (kernel/events/core.c, perf_event_text_poke): u64 address, u16 old length, u16 new
 * length, the bytes before and after. The kernel writes the record when all CPUs already run into
 * the INT3 at the beginning of the site (arch/x86/kernel/alternative.c, text_poke_bp_batch). A
 * trace therefore shows the old code or the INT3 before the record's time, and the new code or the
 * INT3 after it. An executed INT3 has a FUP with its own address, which ends the code of any
 * version there, so the INT3 needs no version.
 *
 * KSYMBOL: u64 address, u32 length, u16 type, u16 flags, the name; code appears or vanishes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "proto/perf/perfrecord.h"
#include "sideband/kernel/kernel_private.h"

#define CHANGES_MAX ((size_t)1 << 24)
#define SITE_MAX    ((uint64_t)1 << 20)	 /* bytes; code that changes is not longer */
#define TEXTS_MAX   ((uint64_t)64 << 20) /* bytes of all sites' texts */
/* The most time between the time of a text and the reading of a byte of it (copying takes time), or
 * between two reads of a clock. */
#define READ_SLACK_NS UINT64_C(100000000)
#define INT3	      0xcc

/* --- Records --- */

static uint64_t get(const uint8_t *p, unsigned n)
{
	uint64_t value = 0;

	while (n-- > 0)
		value = value << 8 | p[n];
	return value;
}

static int add_change(struct kernel *k, const struct kernel_change *change)
{
	uint64_t end;

	if (change->size == 0 || __builtin_add_overflow(change->address, change->size, &end))
		return -EBADMSG;
	if (k->n_changes == CHANGES_MAX ||
	    ARRAY_RESERVE(k->changes, k->max_changes, k->n_changes + 1) < 0)
		return -ENOMEM;
	k->changes[k->n_changes] = *change;
	k->changes[k->n_changes].order = (uint32_t)k->n_changes;
	k->n_changes++;
	return 0;
}

static int add_poke(struct kernel *k, uint64_t time, const uint8_t *body, size_t size)
{
	struct kernel_change c = {.kind = KERNEL_POKE, .time = time};

	if (size < 12)
		return -EBADMSG;
	c.address = get(body, 8);
	c.old_size = (uint16_t)get(body + 8, 2);
	c.new_size = (uint16_t)get(body + 10, 2);
	c.size = MAX_OF(c.old_size, c.new_size);
	if ((size_t)c.old_size + c.new_size > size - 12)
		return -EBADMSG;
	c.old = body + 12;
	c.new = c.old + c.old_size;
	return add_change(k, &c);
}

static int add_ksymbol(struct kernel *k, uint64_t time, const uint8_t *body, size_t size)
{
	struct kernel_change c = {.time = time};
	const uint8_t *end;
	struct kernel_name name;
	bool vanishes;

	if (size < 17)
		return -EBADMSG;
	c.address = get(body, 8);
	c.size = get(body + 8, 4);
	vanishes = (get(body + 14, 2) & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER) != 0;
	c.kind = vanishes ? KERNEL_VANISHES : KERNEL_APPEARS;
	end = memchr(body + 16, 0, size - 16);
	if (!end)
		return -EBADMSG;
	name = (struct kernel_name){
		.address = c.address, .size = c.size, .type = 't', .module = "bpf"};
	if (get(body + 12, 2) != PERF_RECORD_KSYMBOL_TYPE_BPF)
		name.module = NULL;
	name.name = kernel_keep_text(k, (const char *)body + 16, (size_t)(end - body) - 16);
	if (!name.name || (c.size > 0 && kernel_add_name(k, &name) < 0))
		return -ENOMEM;
	/* Code that was there when recording began has a record at time 0. */
	return time == 0 ? 0 : add_change(k, &c);
}

int kernel_add_record(struct kernel *k, const struct perfrecord *r)
{
	switch (r->type) {
	case PERF_RECORD_TEXT_POKE: return add_poke(k, r->time, r->u.raw.bytes, r->u.raw.size);
	case PERF_RECORD_KSYMBOL: return add_ksymbol(k, r->time, r->u.raw.bytes, r->u.raw.size);
	default: return 0;
	}
}

/* --- Sites --- */

static int by_address(const void *a, const void *b)
{
	const struct kernel_change *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static int by_time(const void *a, const void *b)
{
	const struct kernel_change *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

int kernel_make_sites(struct kernel *k)
{
	k->sites = calloc(k->n_changes + 1, sizeof(*k->sites));
	if (!k->sites)
		return -ENOMEM;
	if (k->n_changes > 1)
		qsort(k->changes, k->n_changes, sizeof(*k->changes), by_address);
	for (size_t first = 0, i = 0; first < k->n_changes; first = i) {
		struct kernel_change *changes = &k->changes[first];
		uint64_t begin = changes->address, end = begin + changes->size;

		for (i = first + 1; i < k->n_changes && k->changes[i].address <= end; i++)
			end = MAX_OF(end, k->changes[i].address + k->changes[i].size);
		k->sites[k->n_sites++] = (struct kernel_site){
			.address = begin, .size = end - begin, .first = first, .n = i - first};
		qsort(changes, i - first, sizeof(*changes), by_time);
	}
	return 0;
}

void kernel_free_sites(struct kernel *k)
{
	for (size_t i = 0; i < k->n_sites; i++) {
		for (size_t j = 0; k->sites[i].texts && j <= k->sites[i].n; j++)
			free(k->sites[i].texts[j].bytes);
		free(k->sites[i].texts);
	}
	free(k->sites);
}

size_t kernel_find_site(const struct kernel *k, uint64_t address)
{
	return FIRST_WHERE(i, k->n_sites, k->sites[i].address + k->sites[i].size > address);
}

/* --- Texts --- */

/* The bytes, *ret_size of them, that CHANGE tells were there before it (NEW: after it). */
static const uint8_t *recorded(const struct kernel_change *change, bool new, uint64_t *ret_size)
{
	*ret_size = 0;
	if (change->kind != KERNEL_POKE)
		return NULL;
	*ret_size = new ? change->new_size : change->old_size;
	return new ? change->new : change->old;
}

/* Whether TEXT has the bytes that CHANGE tells. */
static bool has_recorded(const struct kernel_site *s, const struct kernel_text *text,
			 const struct kernel_change *change, bool new)
{
	uint64_t size, at = change->address - s->address;
	const uint8_t *bytes = recorded(change, new, &size);

	for (uint64_t i = 0; i < size; i++)
		if (text->states[at + i] != KERNEL_IS_KNOWN || text->bytes[at + i] != bytes[i])
			return false;
	return size > 0;
}

/* TEXT is that before CHANGE (NEW: after it). Where it has other bytes than CHANGE tells, the bytes
 * that were read were not there all the time, and are unreliable now. Where it has none, it gets
 * those that CHANGE tells. */
static void check_text(const struct kernel_site *s, const struct kernel_text *text,
		       const struct kernel_change *change, bool new)
{
	uint64_t size, at = change->address - s->address, i;
	const uint8_t *bytes = recorded(change, new, &size);

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

/* Makes TO, the text after CHANGE (NEW) or before it, of FROM, the text on the other side. */
static void step(const struct kernel_site *s, const struct kernel_text *from,
		 const struct kernel_text *to, const struct kernel_change *change, bool new)
{
	uint64_t size, at = change->address - s->address;
	const uint8_t *bytes = recorded(change, new, &size);

	memcpy(to->bytes, from->bytes, (size_t)s->size);
	memcpy(to->states, from->states, (size_t)s->size);
	memset(to->states + at, KERNEL_IS_MISSING, (size_t)change->size);
	if (size == 0)
		return;
	memcpy(to->bytes + at, bytes, (size_t)size);
	memset(to->states + at, KERNEL_IS_KNOWN, (size_t)size);
}

/* Fills TO from the pieces, and marks what they do not have and what is masked. */
static void read_text(struct kernel *k, const struct kernel_site *s, const struct kernel_text *to)
{
	size_t masked = kernel_find_masked(k, s->address);
	uint64_t at = 0, end = s->address + s->size;

	memset(to->states, KERNEL_IS_MISSING, (size_t)s->size);
	while (at < s->size) {
		const struct kernel_piece *piece = kernel_piece_at(k, s->address + at);
		uint64_t in = piece ? s->address + at - piece->address : 0, n = 1;
		struct image_code code;

		if (piece && kernel_piece_code(k, piece, piece->offset + in, &code) == 0) {
			uint64_t into = piece->offset + in - code.address;

			n = MIN_OF(MIN_OF(code.size - into, piece->size - in), s->size - at);
			memcpy(to->bytes + at, code.bytes + into, (size_t)n);
			memset(to->states + at, KERNEL_IS_KNOWN, (size_t)n);
			if (code.touched)
				code.touched[((code.address + into) >> 12) - (code.address >> 12)] =
					1;
		}
		at += n;
	}
	for (; masked < k->n_masked && k->masked[masked].address < end; masked++) {
		uint64_t from = MAX_OF(k->masked[masked].address, s->address);
		uint64_t to_end = MIN_OF(k->masked[masked].address + k->masked[masked].size, end);

		memset(to->states + (from - s->address), KERNEL_IS_MASKED, (size_t)(to_end - from));
	}
}

/* If TEXT differs from what CHANGE tells only by an INT3 in the first byte, mends that byte. */
static bool mend_int3(const struct kernel_site *s, const struct kernel_text *text,
		      const struct kernel_change *change, bool new)
{
	uint64_t size, at = change->address - s->address;
	const uint8_t *bytes = recorded(change, new, &size);
	uint8_t first;

	if (size == 0 || text->states[at] != KERNEL_IS_KNOWN || text->bytes[at] != INT3)
		return false;
	first = text->bytes[at];
	text->bytes[at] = bytes[0];
	if (has_recorded(s, text, change, new))
		return true;
	text->bytes[at] = first;
	return false;
}

/* Whether TEXT, read at TIME, is on the other side of CHANGE than the two times say, as the change
 * was under way. NEXT: CHANGE is the first one after TIME, else the last one before TIME. */
static bool is_other_side(const struct kernel_site *s, const struct kernel_text *text,
			  const struct kernel_change *change, uint64_t time, bool next)
{
	uint64_t from = MIN_OF(change->time, time), to = MAX_OF(change->time, time);

	if (change->kind != KERNEL_POKE || to - from > READ_SLACK_NS ||
	    has_recorded(s, text, change, !next) || mend_int3(s, text, change, !next))
		return false;
	return has_recorded(s, text, change, next) || mend_int3(s, text, change, next);
}

/* The number of S's changes that were done when TEXT was read, at TIME. */
static size_t find_base(const struct kernel *k, const struct kernel_site *s,
			const struct kernel_text *text, uint64_t time)
{
	const struct kernel_change *changes = &k->changes[s->first];
	size_t base = 0, moved;

	if (time == KERNEL_ABSENT)
		return 0;
	while (base < s->n && changes[base].time <= time)
		base++;
	moved = base;
	while (moved < s->n && is_other_side(s, text, &changes[moved], time, true))
		moved++;
	if (moved != base)
		return moved;
	while (moved > 0 && is_other_side(s, text, &changes[moved - 1], time, false))
		moved--;
	return moved;
}

static bool allocate_texts(struct kernel *k, struct kernel_site *s)
{
	uint64_t need;

	if (s->size > SITE_MAX || __builtin_mul_overflow(s->size, s->n + 1, &need) ||
	    need > TEXTS_MAX - k->text_bytes)
		return false;
	s->texts = calloc(s->n + 1, sizeof(*s->texts));
	for (size_t i = 0; s->texts && i <= s->n; i++) {
		s->texts[i].bytes = calloc(2, (size_t)s->size);
		if (!s->texts[i].bytes)
			return false;
		s->texts[i].states = s->texts[i].bytes + s->size;
	}
	k->text_bytes += need;
	return s->texts;
}

const struct kernel_text *kernel_texts_of(struct kernel *k, struct kernel_site *s)
{
	const struct kernel_change *changes = &k->changes[s->first];
	const struct kernel_piece *piece = kernel_piece_at(k, s->address);
	struct kernel_text read;
	size_t base;

	if (s->texts || s->refused)
		return s->refused ? NULL : s->texts;
	s->refused = !allocate_texts(k, s);
	if (s->refused)
		return NULL;
	read = s->texts[0];
	read_text(k, s, &read);
	base = find_base(k, s, &read, piece ? piece->read_ns : KERNEL_ABSENT);
	s->texts[0] = s->texts[base];
	s->texts[base] = read;
	/* From the text that was read to both ends: each text is compared with what the next record
	 * tells, then the text on the other side of that record is made of it. */
	for (size_t i = base; i < s->n; i++) {
		check_text(s, &s->texts[i], &changes[i], false);
		step(s, &s->texts[i], &s->texts[i + 1], &changes[i], true);
	}
	for (size_t i = base; i-- > 0;) {
		check_text(s, &s->texts[i + 1], &changes[i], true);
		step(s, &s->texts[i + 1], &s->texts[i], &changes[i], false);
	}
	return s->texts;
}
