/*
 * Works out, once for each kind of step, what the step adds to the counters of which functions.
 */
#include "decoder/worker/count/tally_cache.h"

#include <stdlib.h>

#include "proto/base.h"

int tally_cache_init(struct tally_cache *c, struct functions *functions)
{
	*c = (struct tally_cache){.functions = functions};
	return namings_init(&c->namings, functions->replay);
}

void tally_cache_done(struct tally_cache *c)
{
	namings_done(&c->namings);
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

int tally_cache_use(struct tally_cache *c, const struct nodes *nodes)
{
	uint32_t n;
	int r;

	if (c->nodes != nodes) {
		namings_forget_places(&c->namings);
		steps_table_done(&c->table);
		c->n_ops = 0;
		c->n_offsets = 0;
	}
	c->nodes = nodes;
	c->table.size = sizeof(*c->records);
	r = steps_table_reserve(&c->table, nodes);
	c->records = c->table.records;
	if (r < 0)
		return r;
	n = nodes_count(nodes);
	if (ARRAY_RESERVE(c->offsets, c->max_offsets, n) < 0)
		return -ENOMEM;
	for (; c->n_offsets < n; c->n_offsets++)
		c->offsets[c->n_offsets] = nodes->list[c->n_offsets].offset;
	return 0;
}

int tally_cache_naming(struct tally_cache *c, uint32_t context, uint32_t place, uint32_t *ret)
{
	int r = namings_find(&c->namings, c->nodes, context, place, ret);

	if (r != NAMINGS_FULL)
		return r;
	forget_records(c);
	r = namings_find(&c->namings, c->nodes, context, place, ret);
	return MIN_OF(r, 0);
}

/* Makes PIECE the op *OP. 0; 1: the piece lies in several functions; -ENOMEM. */
static int make_op(struct tally_cache *c, uint32_t context, uint64_t base,
		   const struct steps_piece *piece, bool begins, struct tally_op *op)
{
	bool item = piece->kind != STEPS_ON;
	const struct functions_span *span = &c->span;
	uint64_t start = base + piece->start;

	/* Mostly the function of the piece before. */
	if (span->context != context || start < span->lo || start >= span->hi) {
		int r = functions_find(c->functions, context, start, &c->span);

		if (r < 0)
			return r;
	}
	*op = (struct tally_op){
		.function = span->function,
		.from = piece->last,
		.insns = piece->insns,
		.items = item,
		.before = item && piece->decided == 0,
		.first = item && piece->decided == 1 && !piece->direct,
		.entry = start == span->entry,
		.begins = begins,
		.pushes = (piece->kind == FLOW_CALL || piece->kind == FLOW_CALL_IND) &&
			  (piece->flags & FLOW_ZERO_LENGTH) == 0,
		.returns = piece->kind == FLOW_RET,
	};
	return base + piece->last >= span->hi;
}

/* Adds OP to the op BEFORE. False: the two cannot be one op. */
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

/* Makes N pieces *ret_n ops, behind the ops that are kept. 0; 1: a piece lies in several functions;
 * -ENOMEM. */
static int make_ops(struct tally_cache *c, uint32_t context, uint64_t base,
		    const struct steps_piece *pieces, size_t n, size_t *ret_n)
{
	struct tally_op *ops = c->ops + c->n_ops;
	bool begins = true;
	size_t made = 0;
	int r = n == 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		r = make_op(c, context, base, &pieces[i], begins, &ops[made]);
		begins = pieces[i].kind != STEPS_ON;
		made += made == 0 || !join(&ops[made - 1], &ops[made]);
	}
	*ret_n = made;
	return r;
}

int tally_cache_make(struct tally_cache *c, uint32_t context, uint32_t naming, uint32_t place,
		     uint32_t step)
{
	struct steps_piece pieces[STEPS_MAX_PIECES];
	size_t n = steps_pieces(c->nodes, step, pieces), n_ops;
	struct tally_record *record = &c->records[step];
	const struct tally_op *ops;
	int r;

	if (c->n_ops + STEPS_MAX_PIECES > TALLY_MAX_OPS)
		forget_records(c);
	if (ARRAY_RESERVE(c->ops, c->max_ops, c->n_ops + STEPS_MAX_PIECES) < 0)
		return -ENOMEM;
	r = make_ops(c, context, nodes_place_address(c->nodes, place), pieces, n, &n_ops);
	if (r < 0)
		return r;
	ops = c->ops + c->n_ops;
	if (r > 0) {
		*record = (struct tally_record){
			.match = TALLY_HARD_MATCH, .kind = TALLY_HARD, .insns = (uint16_t)naming};
	} else if (n_ops == 1 && !ops[0].pushes && !ops[0].returns) {
		*record = (struct tally_record){
			.match = tally_match(naming, ops[0].function),
			.insns = ops[0].insns,
			.items = ops[0].items,
			.kind = TALLY_PLAIN,
			.before = ops[0].before,
			.first = ops[0].first,
			.entry = ops[0].entry,
		};
	} else {
		*record = (struct tally_record){
			.match = (uint32_t)c->n_ops * TALLY_NO_MATCH,
			.insns = (uint16_t)naming,
			.items = (uint8_t)n_ops,
			.kind = TALLY_OPS,
		};
		c->n_ops += n_ops;
	}
	record->open = n > 0 && pieces[n - 1].kind == STEPS_ON;
	return 0;
}
