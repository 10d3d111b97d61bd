/*
 * Which function an address belongs to, fast: a cache by address before the table by (image,
 * offset). Used by tally.c in ptsnap-decode. Bounded: what exceeds the table is counted in its
 * first entry and said in the report.
 */
#include "decoder/worker/count/functions.h"

#include <stdlib.h>
#include <string.h>

#include "decoder/worker/replay/replay.h"
#include "proto/base.h"

#define CACHE_SIZE (1u << 14)
#define CACHE_LINE 64u	/* bytes of code: what lies so close mostly is of one function */
#define CACHE_AREA 512u /* where what was found last often reaches as far */
#define FIRST_SIZE 1024u
#define NO_IMAGE   UINT32_MAX
#define NO_CONTEXT UINT32_MAX

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ b * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;

	return h ^ h >> 29;
}

static uint32_t *find_slot(struct functions *f, uint32_t image, uint64_t offset)
{
	size_t mask = f->n_slots - 1, i = (size_t)mix(offset, image) & mask;

	for (; f->slots[i] != 0; i = (i + 1) & mask) {
		const struct function *fn = &f->list[f->slots[i]];

		if (fn->image == image && fn->offset == offset)
			break;
	}
	return &f->slots[i];
}

static int grow(struct functions *f)
{
	size_t i, capacity = f->capacity ? 2 * f->capacity : FIRST_SIZE;
	struct function *list = aligned_alloc(_Alignof(struct function), capacity * sizeof(*list));
	uint32_t *slots;

	if (list == NULL)
		return -ENOMEM;
	if (f->n > 0)
		memcpy(list, f->list, f->n * sizeof(*list));
	free(f->list);
	f->list = list;
	slots = calloc(2 * capacity, sizeof(*slots));
	if (slots == NULL)
		return -ENOMEM;
	free(f->slots);
	f->slots = slots;
	f->n_slots = 2 * capacity;
	f->capacity = capacity;
	for (i = 1; i < f->n; i++)
		*find_slot(f, list[i].image, list[i].offset) = (uint32_t)i;
	return 0;
}

int functions_init(struct functions *f, const struct replay *replay)
{
	size_t i;

	*f = (struct functions){.replay = replay};
	f->cache = calloc(CACHE_SIZE, sizeof(*f->cache));
	if (f->cache == NULL || grow(f) < 0) {
		functions_done(f);
		return -ENOMEM;
	}
	for (i = 0; i < CACHE_SIZE; i++)
		f->cache[i].context = NO_CONTEXT;
	f->list[0] = (struct function){.image = NO_IMAGE};
	f->n = 1;
	return 0;
}

void functions_done(struct functions *f)
{
	free(f->list);
	free(f->slots);
	free(f->cache);
	*f = (struct functions){0};
}

static int intern(struct functions *f, const struct function *fn, uint32_t *ret)
{
	uint32_t *slot = find_slot(f, fn->image, fn->offset);

	if (*slot == 0) {
		if (f->n == FUNCTIONS_MAX) {
			f->refused++;
			*ret = 0;
			return 0;
		}
		if (f->n == f->capacity) {
			if (grow(f) < 0)
				return -ENOMEM;
			slot = find_slot(f, fn->image, fn->offset);
		}
		f->list[f->n] = *fn;
		*slot = (uint32_t)f->n++;
	}
	*ret = *slot;
	return 0;
}

/* What is INTO bytes behind the beginning of something of SIZE bytes lies at ADDRESS: the thing's
 * addresses, within the mapping. */
static void place_at(const struct image_code *code, uint64_t address, uint64_t into, uint64_t size,
		     uint64_t *ret_lo, uint64_t *ret_hi)
{
	uint64_t end;

	*ret_lo = address - MIN_OF(into, address - code->map_begin);
	if (size <= into || __builtin_add_overflow(address, size - into, &end))
		end = address + 1;
	*ret_hi = MIN_OF(end, code->map_end);
}

/* Where other functions lie within it. */
static void leave_out(const struct image_code *code, const struct symbol *symbol, uint64_t address,
		      struct functions_span *ret)
{
	uint64_t at = code->offset + (address - code->address), lo, hi;

	if (symbol->begin >= symbol->end)
		return;
	place_at(code, address, at - symbol->begin, symbol->end - symbol->begin, &lo, &hi);
	ret->lo = MAX_OF(ret->lo, lo);
	ret->hi = MIN_OF(ret->hi, hi);
}

static void span_of(const struct image_code *code, const struct symbol *symbol, uint64_t address,
		    struct functions_span *ret)
{
	uint64_t at = code->offset + (address - code->address);

	place_at(code, address, at - symbol->offset, symbol->size, &ret->lo, &ret->hi);
	ret->entry = ret->lo;
}

/* Code without a name in its file may have one in the process' perf map: a compiler's that writes
 * to a memory file, or has pieces of its own in a stripped program. RET: of the map's function, or
 * gap; everything, where there is no map. */
static void look_in_map(const struct functions *f, uint32_t context, uint64_t address,
			const struct image_code *code, struct symbol *symbol,
			struct perfmap_function *ret)
{
	const struct space *space = f->replay->contexts.list[context].space;
	uint64_t begin, end;

	*ret = (struct perfmap_function){0, UINT64_MAX, NULL};
	if (space == NULL || replay_is_kernel(f->replay, address) ||
	    !symbols_find_in_map(f->replay->symbols, space_pid(space), address, ret) ||
	    ret->name == NULL)
		return;
	begin = MAX_OF(ret->start, code->map_begin);
	end = MIN_OF(ret->start + ret->size, code->map_end);
	symbol->offset = code->offset + (address - code->address) - (address - begin);
	symbol->size = end - begin;
	symbol->name = ret->name;
	symbol->begin = symbol->end = 0;
}

/* What is known without a name ends where the map has one. */
static void clip(struct functions_span *span, const struct perfmap_function *map)
{
	span->lo = MAX_OF(span->lo, map->start);
	span->entry = MAX_OF(span->entry, map->start);
	span->hi = MIN_OF(span->hi, map->start + map->size);
}

static int look_up(struct functions *f, uint32_t context, uint64_t address,
		   struct functions_span *ret)
{
	struct image_code code;
	struct symbol symbol;
	struct function fn = {0};
	struct perfmap_function map = {0, UINT64_MAX, NULL};

	*ret = (struct functions_span){address, address + 1, address, context, 0};
	if (replay_find(f->replay, context, address, &code) != 0)
		return 0;
	replay_symbol(f->replay, address, &code, &symbol);
	if (symbol.name == NULL)
		look_in_map(f, context, address, &code, &symbol, &map);
	fn.image = code.image;
	fn.name = symbol.name;
	if (symbol.name == NULL && symbol.size == 0) {
		fn.offset = FUNCTIONS_WHOLE_IMAGE;
		fn.address = code.map_begin;
		ret->lo = ret->entry = code.map_begin;
		ret->hi = code.map_end;
	} else {
		fn.offset = symbol.offset;
		fn.address = address - (code.offset + (address - code.address) - symbol.offset);
		span_of(&code, &symbol, address, ret);
	}
	leave_out(&code, &symbol, address, ret);
	clip(ret, &map);
	return intern(f, &fn, &ret->function);
}

static struct functions_span *cached(const struct functions *f, uint32_t context, uint64_t key)
{
	return &f->cache[mix(key, context) & (CACHE_SIZE - 1)];
}

static bool is_within(const struct functions_span *span, uint32_t context, uint64_t address)
{
	return span->context == context && address >= span->lo && address < span->hi;
}

int functions_find(struct functions *f, uint32_t context, uint64_t address,
		   struct functions_span *ret)
{
	struct functions_span *entry = cached(f, context, address / CACHE_LINE), *area;

	if (!is_within(entry, context, address)) {
		area = cached(f, context, ~(address / CACHE_AREA));
		if (!is_within(area, context, address)) {
			int r = look_up(f, context, address, area);

			if (r < 0) {
				area->context = NO_CONTEXT;
				return r;
			}
		}
		*entry = *area;
	}
	*ret = *entry;
	return 0;
}
