/*
 * Adds up calls by stack: a tree with one node for each different stack of each thread.
 */
#include "ctl/export/export_private.h"

#define FIRST_SLOTS 4096u

static uint32_t hash(uint32_t parent, uint32_t function)
{
	uint64_t h = ((uint64_t)parent << 32 | function) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(h >> 32);
}

static uint32_t find(const struct stacks *s, uint32_t parent, uint32_t function)
{
	uint32_t at = hash(parent, function) & (s->n_slots - 1);

	while (s->slots[at]) {
		const struct stack_node *n = &s->list[s->slots[at] - 1];

		if (n->parent == parent && n->function == function)
			break;
		at = (at + 1) & (s->n_slots - 1);
	}
	return at;
}

static int resize(struct stacks *s, uint32_t n)
{
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(s->slots);
	s->slots = slots;
	s->n_slots = n;
	for (uint32_t i = 0; i < s->n; i++)
		s->slots[find(s, s->list[i].parent, s->list[i].function)] = i + 1;
	return 0;
}

/* The node of FUNCTION below PARENT. -E2BIG: there is none, and no room for one. */
static int node(struct stacks *s, uint32_t parent, uint32_t function, uint32_t *ret)
{
	uint32_t at = find(s, parent, function);

	if (s->slots[at]) {
		*ret = s->slots[at] - 1;
		return 0;
	}
	if (s->n >= EXPORT_MAX_STACKS)
		return -E2BIG;
	if (ARRAY_RESERVE(s->list, s->capacity, s->n + 1) < 0)
		return -ENOMEM;
	s->list[s->n] = (struct stack_node){
		.parent = parent, .function = function, .child = STACK_NONE, .sibling = STACK_NONE};
	if (parent != STACK_NONE) {
		s->list[s->n].sibling = s->list[parent].child;
		s->list[parent].child = s->n;
	}
	*ret = s->n++;
	s->slots[at] = s->n;
	return s->n > s->n_slots / 2 ? resize(s, 2 * s->n_slots) : 0;
}

int stacks_start(struct exporter *e)
{
	struct stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	e->own = s;
	return resize(s, FIRST_SLOTS);
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
	free(s->slots);
	free(s);
}
