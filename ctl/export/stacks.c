/*
 * Adds up calls by stack: a tree with one node for each different stack of each thread.
 */
#include "ctl/export/export_private.h"

static uint32_t hash_of(const struct stacks *s, uint32_t parent, uint32_t function)
{
	const uint32_t both[2] = {parent, function};

	return slots_hash(&s->slots, both, sizeof(both));
}

static bool find(const struct stacks *s, uint32_t parent, uint32_t function, uint32_t hash,
		 uint32_t *ret)
{
	uint32_t step = 0, node;

	while (slots_next(&s->slots, hash, &step, &node))
		if (s->list[node].parent == parent && s->list[node].function == function) {
			*ret = node;
			return true;
		}
	return false;
}

/* The node of FUNCTION below PARENT. -E2BIG: there is none, and no room for one. */
static int node(struct stacks *s, uint32_t parent, uint32_t function, uint32_t *ret)
{
	uint32_t hash = hash_of(s, parent, function);
	int r;

	if (find(s, parent, function, hash, ret))
		return 0;
	if (s->n >= EXPORT_MAX_STACKS)
		return -E2BIG;
	if (ARRAY_RESERVE(s->list, s->capacity, s->n + 1) < 0)
		return -ENOMEM;
	r = slots_add(&s->slots, hash, s->n);
	if (r < 0)
		return r;
	s->list[s->n] = (struct stack_node){
		.parent = parent, .function = function, .child = STACK_NONE, .sibling = STACK_NONE};
	if (parent != STACK_NONE) {
		s->list[s->n].sibling = s->list[parent].child;
		s->list[parent].child = s->n;
	}
	*ret = s->n++;
	return 0;
}

int stacks_start(struct exporter *e)
{
	struct stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	e->own = s;
	return slots_init(&s->slots);
}

int stacks_thread(struct exporter *e, struct export_thread *t)
{
	return node(e->own, STACK_NONE, t->number, &t->node);
}

int stacks_begin(struct exporter *e, struct export_thread *t, struct export_frame *f)
{
	uint32_t parent = t->n > 1 ? t->frames[t->n - 2].node : t->node;
	int r = t->n > EXPORT_MAX_DEPTH ? -E2BIG : node(e->own, parent, f->function, &f->node);

	if (r != -E2BIG)
		return r;
	/* The caller gets what the call costs. */
	f->node = parent;
	e->told.folded++;
	return 0;
}

int stacks_end(struct exporter *e, struct export_thread *t, const struct export_call *c)
{
	struct stack_node *n = &((struct stacks *)e->own)->list[c->frame->node];

	(void)t;
	n->calls++;
	n->insns += c->self_insns;
	n->cpu_ns += c->frame->self_cpu;
	n->wall_ns += c->frame->self_ns;
	return 0;
}

void stacks_done(struct exporter *e)
{
	struct stacks *s = e->own;

	if (!s)
		return;
	free(s->list);
	slots_done(&s->slots);
	free(s);
}
