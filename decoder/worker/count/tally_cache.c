/*
 * Steps, looked through once: into which functions they fall. Called by tally_steps.c in
 * ptsnap-decode.
 */
#include "decoder/worker/count/tally_cache.h"

#include <stdlib.h>

#include "decoder/worker/count/steps.h"
#include "proto/base.h"

int tally_cache_init(struct tally_cache *c, struct functions *functions)
{
	*c = (struct tally_cache){.functions = functions};
	return tally_views_init(&c->views, functions->replay);
}

void tally_cache_done(struct tally_cache *c)
{
	tally_views_done(&c->views);
	steps_table_done(&c->table);
	free(c->offsets);
	free(c->ops);
	*c = (struct tally_cache){0};
}

static void forget_records(struct tally_cache *c)
{
	steps_table_clear(&c->table);
	c->n_ops = 0;
}

/* Those of the nodes that are new, too. */
static int note_offsets(struct tally_cache *c, const struct nodes *nodes)
{
	uint32_t i, n = nodes_count(nodes);

	if (ARRAY_RESERVE(c->offsets, c->max_offsets, n) < 0)
		return -ENOMEM;
	for (i = c->n_offsets; i < n; i++)
		c->offsets[i] = nodes->list[i].offset;
	c->n_offsets = n;
	return 0;
}

int tally_cache_use(struct tally_cache *c, const struct nodes *nodes)
{
	int r;

	if (c->nodes != nodes) {
		tally_views_forget_places(&c->views);
		steps_table_done(&c->table);
		c->n_ops = 0;
		c->n_offsets = 0;
	}
	c->nodes = nodes;
	c->table.size = sizeof(*c->records);
	r = steps_table_reserve(&c->table, nodes);
	c->records = c->table.records;
	return r == 0 ? note_offsets(c, nodes) : r;
}

int tally_cache_view(struct tally_cache *c, uint32_t context, uint32_t place, uint32_t *ret)
{
	int r = tally_views_find(&c->views, c->nodes, context, place, ret);

	if (r != TALLY_VIEWS_FULL)
		return r;
	forget_records(c);
	r = tally_views_find(&c->views, c->nodes, context, place, ret);
	return MIN_OF(r, 0);
}

/* Room for the ops of one more step. */
static int reserve(struct tally_cache *c)
{
	if (c->n_ops + STEPS_MAX_PIECES > TALLY_MAX_OPS)
		forget_records(c);
	return ARRAY_RESERVE(c->ops, c->max_ops, c->n_ops + STEPS_MAX_PIECES);
}

/* The function at ADDRESS: mostly that of the last one. 0 or -ENOMEM. */
static int find_function(struct tally_cache *c, uint32_t context, uint64_t address)
{
	const struct functions_span *span = &c->span;

	if (span->context == context && address >= span->lo && address < span->hi)
		return 0;
	return functions_find(c->functions, context, address, &c->span);
}

/* Into *OP. 1: it falls into several functions. 0 or -ENOMEM. */
static int make_op(struct tally_cache *c, uint32_t context, uint64_t base,
		   const struct steps_piece *piece, bool begins, struct tally_op *op)
{
	bool item = piece->kind != STEPS_ON;
	const struct functions_span *span = &c->span;
	int r = find_function(c, context, base + piece->start);

	if (r < 0)
		return r;
	*op = (struct tally_op){
		.function = span->function,
		.from = piece->last,
		.insns = piece->insns,
		.items = item,
		.before = item && piece->decided == 0,
		.first = item && piece->decided == 1 && !piece->direct,
		.entry = base + piece->start == span->entry,
		.begins = begins,
		.pushes = (piece->kind == FLOW_CALL || piece->kind == FLOW_CALL_IND) &&
			  (piece->flags & FLOW_ZERO_LENGTH) == 0,
		.returns = piece->kind == FLOW_RET,
	};
	return base + piece->last >= span->hi;
}

/* Adds OP to the one before it. False: it stands by itself. */
static bool join(struct tally_op *before, const struct tally_op *op)
{
	if (before->function != op->function || before->pushes ||
	    before->insns + op->insns > UINT16_MAX || before->before + op->before > 7)
		return false;
	before->from = op->from;
	before->insns = (uint16_t)(before->insns + op->insns);
	before->items = (uint8_t)(before->items + op->items);
	before->before = (before->before + op->before) & 7u;
	before->first |= op->first;
	before->pushes = op->pushes;
	before->returns = op->returns;
	return true;
}

/* The N pieces as *ret_n ops behind those that there are. 1: one falls into several functions. */
static int make_ops(struct tally_cache *c, uint32_t context, uint64_t base,
		    const struct steps_piece *pieces, size_t n, size_t *ret_n)
{
	struct tally_op *ops = c->ops + c->n_ops;
	bool begins = true;
	size_t i, made = 0;
	int r = n == 0;

	for (i = 0; i < n && r == 0; i++) {
		r = make_op(c, context, base, &pieces[i], begins, &ops[made]);
		begins = pieces[i].kind != STEPS_ON;
		made += made == 0 || !join(&ops[made - 1], &ops[made]);
	}
	*ret_n = made;
	return r;
}

static bool is_plain(const struct tally_op *ops, size_t n)
{
	return n == 1 && !ops[0].pushes && !ops[0].returns;
}

static struct tally_record make_plain(uint32_t view, const struct tally_op *op)
{
	return (struct tally_record){
		.match = tally_match(view, op->function),
		.insns = op->insns,
		.items = op->items,
		.kind = TALLY_PLAIN,
		.before = op->before,
		.first = op->first,
		.entry = op->entry,
	};
}

/* The newest N ops are kept. */
static struct tally_record keep_ops(struct tally_cache *c, uint32_t view, size_t n)
{
	uint32_t first = (uint32_t)c->n_ops;

	c->n_ops += n;
	return (struct tally_record){
		.match = first * TALLY_NO_MATCH,
		.insns = (uint16_t)view,
		.items = (uint8_t)n,
		.kind = TALLY_OPS,
	};
}

int tally_cache_make(struct tally_cache *c, uint32_t context, uint32_t view, uint32_t place,
		     uint32_t step)
{
	struct steps_piece pieces[STEPS_MAX_PIECES];
	size_t n = steps_pieces(c->nodes, step, pieces), n_ops;
	struct tally_record *record = &c->records[step];
	int r = reserve(c);

	if (r == 0)
		r = make_ops(c, context, nodes_place_address(c->nodes, place), pieces, n, &n_ops);
	if (r < 0)
		return r;
	if (r > 0)
		*record = (struct tally_record){.kind = TALLY_HARD, .insns = (uint16_t)view};
	else if (is_plain(c->ops + c->n_ops, n_ops))
		*record = make_plain(view, c->ops + c->n_ops);
	else
		*record = keep_ops(c, view, n_ops);
	record->open = n > 0 && pieces[n - 1].kind == STEPS_ON;
	return 0;
}
