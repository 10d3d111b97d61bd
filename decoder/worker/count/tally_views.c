/*
 * From places of code to views. Used by tally_cache.c in ptsnap-decode.
 */
#include "decoder/worker/count/tally_views.h"

#include <stdlib.h>
#include <string.h>

#include "decoder/worker/replay/replay.h"
#include "proto/base.h"

#define SLOTS  4096u
#define NO_PID UINT32_MAX

int tally_views_init(struct tally_views *v, const struct replay *replay)
{
	*v = (struct tally_views){.replay = replay, .n = 1};
	v->slots = calloc(SLOTS, sizeof(*v->slots));
	return v->slots == NULL ? -ENOMEM : 0;
}

void tally_views_done(struct tally_views *v)
{
	free(v->list);
	free(v->slots);
	free(v->of_place);
	*v = (struct tally_views){0};
}

void tally_views_forget_places(struct tally_views *v)
{
	if (v->n_places > 0)
		memset(v->of_place, 0, v->n_places * sizeof(*v->of_place));
}

static void forget(struct tally_views *v)
{
	tally_views_forget_places(v);
	memset(v->slots, 0, SLOTS * sizeof(*v->slots));
	v->n = 1;
}

/* False: nobody knows what PLACE is, or what is found there now is not what was walked. */
static bool describe(const struct tally_views *v, const struct node_place *place, uint32_t context,
		     struct tally_view *ret)
{
	const struct replay *r = v->replay;
	const struct space *space = r->contexts.list[context].space;
	uint32_t pid = space != NULL ? space_pid(space) : NO_PID;
	struct image_code code;

	/* More of the file may be at hand now than when the place was made. */
	if (replay_is_kernel(r, place->address) ||
	    replay_find(r, context, place->address, &code) != 0 ||
	    code.map_end - place->address < place->size)
		return false;
	*ret = (struct tally_view){
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

static bool same_view(const struct tally_view *a, const struct tally_view *b)
{
	return a->offset == b->offset && a->map_before == b->map_before &&
	       a->map_behind == b->map_behind && a->address == b->address && a->image == b->image &&
	       a->pid == b->pid;
}

static uint32_t *slot_of(const struct tally_views *v, const struct tally_view *view)
{
	uint64_t h = (view->offset ^ view->address ^ (uint64_t)view->image << 40 ^
		      (uint64_t)view->pid << 20) *
		     UINT64_C(0x9e3779b97f4a7c15);

	return &v->slots[h >> 32 & (SLOTS - 1)];
}

static int intern(struct tally_views *v, const struct tally_view *view, uint32_t *ret)
{
	uint32_t *slot = slot_of(v, view), i;

	for (i = *slot; i != 0; i = v->list[i].next)
		if (same_view(&v->list[i], view))
			break;
	if (i == 0) {
		if (v->n >= TALLY_MAX_VIEWS)
			return TALLY_VIEWS_FULL;
		if (ARRAY_RESERVE(v->list, v->max, v->n + 1) < 0)
			return -ENOMEM;
		i = v->n++;
		v->list[i] = *view;
		v->list[i].next = *slot;
		*slot = i;
	}
	*ret = i;
	return 0;
}

static int reserve(struct tally_views *v, uint32_t place)
{
	size_t n = v->n_places;

	if (ARRAY_RESERVE(v->of_place, v->n_places, (size_t)place + 1) < 0)
		return -ENOMEM;
	memset(v->of_place + n, 0, (v->n_places - n) * sizeof(*v->of_place));
	return 0;
}

int tally_views_look_up(struct tally_views *v, const struct nodes *nodes, uint32_t context,
			uint32_t place, uint32_t *ret)
{
	struct tally_view view;
	int r = reserve(v, place);

	*ret = TALLY_NO_VIEW;
	if (r == 0 && describe(v, &nodes->places[place], context, &view))
		r = intern(v, &view, ret);
	if (r == 0)
		v->of_place[place] = *ret + 1;
	else if (r == TALLY_VIEWS_FULL)
		forget(v);
	return r;
}
