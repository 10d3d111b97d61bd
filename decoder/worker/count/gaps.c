/*
 * The list of what is missing. Filled by decode.c while it replays; read by the report.
 */
#include "decoder/worker/count/gaps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/worker/replay/replay.h"
#include "proto/base.h"

void gaps_init(struct gaps *g)
{
	*g = (struct gaps){0};
}

void gaps_done(struct gaps *g)
{
	size_t i;

	for (i = 0; i < g->n; i++)
		free(g->list[i].why);
	free(g->list);
	*g = (struct gaps){0};
}

struct gap gaps_blank(enum fault kind)
{
	return (struct gap){
		.kind = kind,
		.cpu = GAPS_NO_CPU,
		.trace = SIZE_MAX,
		.time_ns = MANIFEST_ABSENT,
		.tsc = MANIFEST_ABSENT,
		.offset = MANIFEST_ABSENT,
		.bytes = MANIFEST_ABSENT,
		.address = MANIFEST_ABSENT,
		.count = 1,
	};
}

int gaps_add(struct gaps *g, const struct gap *gap, const char *why)
{
	g->counts[gap->kind]++;
	g->total++;
	if (g->n >= GAPS_MAX)
		return 0;
	if (ARRAY_RESERVE(g->list, g->capacity, g->n + 1) < 0)
		return -ENOMEM;
	g->list[g->n] = *gap;
	g->list[g->n].why = why != NULL ? strdup(why) : NULL;
	if (why != NULL && g->list[g->n].why == NULL)
		return -ENOMEM;
	g->n++;
	return 0;
}

static struct gap from_flow(const struct replay *r, uint32_t cpu, const struct flow_gap *from)
{
	struct gap gap = gaps_blank(from->fault);

	if (from->fault <= FAULT_NONE || from->fault >= FAULT_N_)
		gap.kind = FAULT_UNSUPPORTED;
	gap.cpu = cpu;
	if (from->tsc_lo != 0) {
		gap.tsc = from->tsc_lo;
		gap.time_ns = tscmap_ns(&r->clock, from->tsc_lo);
	}
	gap.offset = from->offset;
	gap.bytes = from->bytes;
	if (from->address != 0)
		gap.address = from->address;
	return gap;
}

int gaps_add_flow(struct gaps *g, const struct replay *r, uint32_t cpu, const struct flow_gap *from)
{
	struct gap gap = from_flow(r, cpu, from);
	char why[160];

	if (from->fault == FAULT_HEAD) {
		g->head_bytes += from->bytes;
		return 0;
	}
	if (from->stays == 0)
		return gaps_add(g, &gap, NULL);
	snprintf(why, sizeof(why), "%s; %" PRIu64 " more packets lead to such code",
		 fault_why(gap.kind), from->stays);
	return gaps_add(g, &gap, why);
}

int gaps_add_nobodys(struct gaps *g, const struct replay *r, uint32_t cpu,
		     const struct flow_gap *from, uint64_t insns)
{
	struct gap gap = from_flow(r, cpu, from);

	gap.bytes = MANIFEST_ABSENT;
	gap.count = insns;
	return gaps_add(g, &gap, NULL);
}
