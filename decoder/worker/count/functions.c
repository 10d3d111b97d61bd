/*
 * Finds the function of an address, and the naming of a piece of code.
 *
 * A cache by address answers nearly all look-ups; behind it lies the table by image and offset.
 * Functions beyond the limit of the table are counted in its first entry, and the report says how
 * many look-ups that concerns.
 */
#include "decoder/worker/count/functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/worker/replay/replay.h"
#include "proto/base.h"

#define MAX_FILE_NAME 256u /* bytes */
#define CACHE_SIZE    (1u << 14)
#define CACHE_LINE    64u  /* bytes of code, mostly of one function */
#define CACHE_AREA    512u /* bytes of code around a line, often of the same function */
#define FIRST_SIZE    1024u
#define NO_IMAGE      UINT32_MAX
#define NO_CONTEXT    UINT32_MAX
#define NO_PID	      UINT32_MAX
#define SLOTS	      4096u /* of namings */

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ b * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;

	return h ^ h >> 29;
}

static uint32_t *find_slot(const struct functions *f, uint32_t image, uint64_t offset)
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
	size_t capacity = f->capacity ? 2 * f->capacity : FIRST_SIZE;
	struct function *list = aligned_alloc(_Alignof(struct function), capacity * sizeof(*list));
	uint32_t *slots;

	if (!list)
		return -ENOMEM;
	if (f->n > 0)
		memcpy(list, f->list, f->n * sizeof(*list));
	free(f->list);
	f->list = list;
	slots = calloc(2 * capacity, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(f->slots);
	f->slots = slots;
	f->n_slots = 2 * capacity;
	f->capacity = capacity;
	for (size_t i = 1; i < f->n; i++)
		*find_slot(f, list[i].image, list[i].offset) = (uint32_t)i;
	return 0;
}

int functions_init(struct functions *f, const struct replay *replay)
{
	*f = (struct functions){.replay = replay};
	f->cache = calloc(CACHE_SIZE, sizeof(*f->cache));
	if (!f->cache || grow(f) < 0) {
		functions_done(f);
		return -ENOMEM;
	}
	for (size_t i = 0; i < CACHE_SIZE; i++)
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
	durations_done(&f->durations);
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
		f->list[f->n].first = f->now;
		*slot = (uint32_t)f->n++;
	}
	*ret = *slot;
	return 0;
}

/* The addresses, within the mapping, of a range of SIZE bytes whose byte number INTO lies at
 * ADDRESS. */
static void place_at(const struct image_code *code, uint64_t address, uint64_t into, uint64_t size,
		     uint64_t *ret_lo, uint64_t *ret_hi)
{
	uint64_t end;

	*ret_lo = address - MIN_OF(into, address - code->map_begin);
	if (size <= into || __builtin_add_overflow(address, size - into, &end))
		end = address + 1;
	*ret_hi = MIN_OF(end, code->map_end);
}

/* Code without a name in its file may have a name in the process' perf map: code of a compiler that
 * writes to a memory file, or that has its own pieces in a stripped program. *ret is the map's
 * function or gap at ADDRESS; all addresses if there is no map. */
static void look_in_map(const struct functions *f, uint32_t context, uint64_t address,
			const struct image_code *code, struct symbol *symbol,
			struct perfmap_function *ret)
{
	const struct space *space = f->replay->contexts.list[context].space;
	uint64_t begin, end, at;

	*ret = (struct perfmap_function){0, UINT64_MAX, NULL};
	if (!space || replay_is_kernel(f->replay, address) ||
	    !symbols_find_in_map(f->replay->symbols, space_pid(space), address, ret) || !ret->name)
		return;
	begin = MAX_OF(ret->start, code->map_begin);
	end = MIN_OF(ret->start + ret->size, code->map_end);
	at = code->offset + (address - code->address) - (address - begin);
	if (symbol->address != 0)
		symbol->address += at - symbol->offset;
	symbol->offset = at;
	symbol->size = end - begin;
	symbol->name = ret->name;
	symbol->begin = symbol->end = 0;
	symbol->unbounded = false;
}

/* What is known of the code at an address. */
struct found {
	struct image_code code;
	struct symbol symbol;
	struct perfmap_function map;
	uint64_t at; /* in the file */
};

/* Fills *RET_FN with the function at ADDRESS; false: there is no code. */
static bool resolve(const struct functions *f, uint32_t context, uint64_t address,
		    struct found *found, struct function *ret_fn)
{
	struct symbol *symbol = &found->symbol;

	if (replay_find(f->replay, context, address, &found->code) != 0)
		return false;
	found->map = (struct perfmap_function){0, UINT64_MAX, NULL};
	found->at = found->code.offset + (address - found->code.address);
	replay_symbol(f->replay, address, &found->code, symbol);
	if (!symbol->name)
		look_in_map(f, context, address, &found->code, symbol, &found->map);
	*ret_fn = (struct function){
		.image = found->code.image,
		.name = symbol->name,
		.file_address = symbol->address,
		.unbounded = symbol->unbounded,
		.offset = symbol->offset,
		.address = address - (found->at - symbol->offset),
	};
	if (!symbol->name && symbol->size == 0) {
		ret_fn->offset = FUNCTIONS_WHOLE_IMAGE;
		ret_fn->address = found->code.map_begin;
	}
	return true;
}

static int look_up(struct functions *f, uint32_t context, uint64_t address,
		   struct functions_span *ret)
{
	struct function fn;
	struct found found;
	const struct symbol *symbol = &found.symbol;

	*ret = (struct functions_span){address, address + 1, address, context, 0};
	if (!resolve(f, context, address, &found, &fn))
		return 0;
	if (fn.offset == FUNCTIONS_WHOLE_IMAGE) {
		ret->lo = ret->entry = found.code.map_begin;
		ret->hi = found.code.map_end;
	} else {
		place_at(&found.code, address, found.at - symbol->offset, symbol->size, &ret->lo,
			 &ret->hi);
		ret->entry = ret->lo;
	}
	/* Other functions may lie within this one. */
	if (symbol->begin < symbol->end) {
		uint64_t lo, hi;

		place_at(&found.code, address, found.at - symbol->begin,
			 symbol->end - symbol->begin, &lo, &hi);
		ret->lo = MAX_OF(ret->lo, lo);
		ret->hi = MIN_OF(ret->hi, hi);
	}
	/* Code without a name ends where the map has a name. */
	ret->lo = MAX_OF(ret->lo, found.map.start);
	ret->entry = MAX_OF(ret->entry, found.map.start);
	ret->hi = MIN_OF(ret->hi, found.map.start + found.map.size);
	return intern(f, &fn, &ret->function);
}

bool functions_resolve(const struct functions *f, uint32_t context, uint64_t address,
		       struct function *ret, uint64_t *ret_at, uint32_t *ret_number)
{
	struct found found;

	if (!resolve(f, context, address, &found, ret))
		return false;
	*ret_at = found.at;
	*ret_number = *find_slot(f, ret->image, ret->offset);
	return true;
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
	struct functions_span *entry = cached(f, context, address / CACHE_LINE);

	if (!is_within(entry, context, address)) {
		struct functions_span *area = cached(f, context, ~(address / CACHE_AREA));

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

void functions_unnamed(char ret[static FUNCTIONS_MAX_UNNAMED], const char *path, uint64_t address,
		       uint64_t offset)
{
	const char *slash = path ? strrchr(path, '/') : NULL, *name = path;
	int n;

	if (slash && slash[1] != '\0')
		name = slash + 1;
	if (!name || *name == '\0')
		name = "?";
	n = snprintf(ret, FUNCTIONS_MAX_UNNAMED, "%.*s", (int)MAX_FILE_NAME, name);
	if (offset != FUNCTIONS_WHOLE_IMAGE)
		snprintf(ret + n, FUNCTIONS_MAX_UNNAMED - (size_t)n, "%s0x%llx",
			 address ? "@" : "+", (unsigned long long)(address ? address : offset));
}

/* --- Namings --- */

int namings_init(struct namings *n, const struct replay *replay)
{
	*n = (struct namings){.replay = replay, .n = 1};
	n->slots = calloc(SLOTS, sizeof(*n->slots));
	return !n->slots ? -ENOMEM : 0;
}

void namings_done(struct namings *n)
{
	free(n->list);
	free(n->slots);
	free(n->of_place);
	*n = (struct namings){0};
}

void namings_forget_places(struct namings *n)
{
	if (n->n_places > 0)
		memset(n->of_place, 0, n->n_places * sizeof(*n->of_place));
}

/* False: the code at PLACE is unknown, or is no longer the code that was executed there. */
static bool describe(const struct namings *n, const struct node_place *place, uint32_t context,
		     struct naming *ret)
{
	const struct replay *r = n->replay;
	const struct space *space = r->contexts.list[context].space;
	uint32_t pid = space ? space_pid(space) : NO_PID;
	struct image_code code;

	/* More of the file may be known now than when the place was made. */
	if (replay_is_kernel(r, place->address) ||
	    replay_find(r, context, place->address, &code) != 0 ||
	    code.map_end - place->address < place->size)
		return false;
	*ret = (struct naming){
		.offset = code.offset + (place->address - code.address),
		.map_before = place->address - code.map_begin,
		.map_behind = code.map_end - place->address,
		.image = code.image,
		.pid = NO_PID,
	};
	if (pid != NO_PID && symbols_has_map(r->symbols, pid)) {
		ret->pid = pid;
		ret->address = place->address;
	}
	return true;
}

static int intern_naming(struct namings *n, const struct naming *naming, uint32_t *ret)
{
	uint64_t h = (naming->offset ^ naming->address ^ (uint64_t)naming->image << 40 ^
		      (uint64_t)naming->pid << 20) *
		     UINT64_C(0x9e3779b97f4a7c15);
	uint32_t *slot = &n->slots[h >> 32 & (SLOTS - 1)], i;

	for (i = *slot; i != 0; i = n->list[i].next) {
		const struct naming *a = &n->list[i];

		if (a->offset == naming->offset && a->map_before == naming->map_before &&
		    a->map_behind == naming->map_behind && a->address == naming->address &&
		    a->image == naming->image && a->pid == naming->pid)
			break;
	}
	if (i == 0) {
		if (n->n >= NAMINGS_MAX)
			return NAMINGS_FULL;
		if (ARRAY_RESERVE(n->list, n->max, n->n + 1) < 0)
			return -ENOMEM;
		i = n->n++;
		n->list[i] = *naming;
		n->list[i].next = *slot;
		*slot = i;
	}
	*ret = i;
	return 0;
}

int namings_look_up(struct namings *n, const struct nodes *nodes, uint32_t context, uint32_t place,
		    uint32_t *ret)
{
	size_t n_places = n->n_places;
	struct naming naming;
	int r = 0;

	*ret = NAMING_NONE;
	if (ARRAY_RESERVE(n->of_place, n->n_places, (size_t)place + 1) < 0)
		return -ENOMEM;
	memset(n->of_place + n_places, 0, (n->n_places - n_places) * sizeof(*n->of_place));
	if (describe(n, &nodes->places[place], context, &naming))
		r = intern_naming(n, &naming, ret);
	if (r == 0) {
		n->of_place[place] = *ret + 1;
	} else if (r == NAMINGS_FULL) {
		namings_forget_places(n);
		memset(n->slots, 0, SLOTS * sizeof(*n->slots));
		n->n = 1;
	}
	return r;
}
