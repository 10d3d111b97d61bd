/*
 * What the kernel says of its own changes: records -> places that change. Part of kernel.c.
 *
 * TEXT_POKE (kernel/events/core.c, perf_event_text_poke): u64 address, u16 old length, u16 new
 * length, the bytes before and behind. It is written when all CPUs run into the INT3 that was put
 * in front (arch/x86/kernel/alternative.c, text_poke_bp_batch): what a trace shows before its time
 * is the old code or the INT3, behind it the new code or the INT3. An INT3 has a FUP with its own
 * address, at which code of whatever version is left, so the INT3 needs no version of its own.
 * KSYMBOL: u64 address, u32 length, u16 type, u16 flags, the name; code appears or vanishes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "proto/perf/perfrecord.h"
#include "sideband/kernel/kernel_private.h"

#define CHANGES_MAX ((size_t)1 << 24)

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
	/* What was there before the first record never changed. */
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

/* How many changes from FIRST on make one place, *RET. */
static size_t gather(const struct kernel *k, size_t first, struct kernel_place *ret)
{
	uint64_t begin = k->changes[first].address, end = begin;
	size_t i;

	for (i = first; i < k->n_changes && (i == first || k->changes[i].address <= end); i++)
		end = MAX_OF(end, k->changes[i].address + k->changes[i].size);
	*ret = (struct kernel_place){
		.address = begin, .size = end - begin, .first = first, .n = i - first};
	return i - first;
}

int kernel_make_places(struct kernel *k)
{
	size_t i;

	k->places = calloc(k->n_changes + 1, sizeof(*k->places));
	if (!k->places)
		return -ENOMEM;
	if (k->n_changes > 1)
		qsort(k->changes, k->n_changes, sizeof(*k->changes), by_address);
	for (i = 0; i < k->n_changes; k->n_places++) {
		i += gather(k, i, &k->places[k->n_places]);
		qsort(&k->changes[k->places[k->n_places].first], k->places[k->n_places].n,
		      sizeof(*k->changes), by_time);
	}
	return 0;
}

void kernel_free_places(struct kernel *k)
{
	for (size_t i = 0; i < k->n_places; i++) {
		for (size_t j = 0; k->places[i].texts && j <= k->places[i].n; j++)
			free(k->places[i].texts[j].bytes);
		free(k->places[i].texts);
	}
	free(k->places);
}

size_t kernel_find_place(const struct kernel *k, uint64_t address)
{
	return FIRST_WHERE(i, k->n_places, k->places[i].address + k->places[i].size > address);
}
