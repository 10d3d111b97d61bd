/*
 * Formats that add up calls by stack: collapsed stacks, and callgrind's profiles.
 */
#include "ctl/export/export_private.h"

/* --- Collapsed: "thread;function;function 123", a line for each stack --- */

static uint64_t weight(const struct exporter *e, const struct stack_node *n)
{
	switch (e->weight) {
	case EXPORT_CPU: return n->cpu_ns;
	case EXPORT_WALL: return n->wall_ns;
	case EXPORT_INSNS: return n->insns;
	}
	return 0;
}

/* Writes the frames of NODE, outermost first. */
static void write_path(struct exporter *e, const struct stacks *s, uint32_t node)
{
	uint32_t path[EXPORT_MAX_DEPTH + 1]; /* and the thread */
	size_t n = 0;

	for (; node != STACK_NONE; node = s->list[node].parent)
		path[n++] = node;
	while (n-- > 0) {
		const struct stack_node *at = &s->list[path[n]];

		if (at->parent == STACK_NONE) {
			const char *name = name_text(e, e->threads[at->function]->name);

			out_escaped(&e->out, *name ? name : "[unknown]", ";");
			continue;
		}
		out_block(&e->out, ";", 1);
		out_escaped(&e->out, function_name(e, at->function), ";");
	}
}

static int collapsed_finish(struct exporter *e)
{
	const struct stacks *s = e->own;

	for (uint32_t i = 0; i < s->n; i++) {
		if (weight(e, &s->list[i]) == 0)
			continue;
		write_path(e, s, i);
		out_block(&e->out, " ", 1);
		out_number(&e->out, weight(e, &s->list[i]));
		out_block(&e->out, "\n", 1);
	}
	return 0;
}

const struct export_ops collapsed_ops = {
	.start = stacks_start,
	.thread = stacks_thread,
	.begin = stacks_begin,
	.end = stacks_end,
	.finish = collapsed_finish,
	.done = stacks_done,
};

/* --- callgrind: costs of each function itself, and of each function that it calls --- */

/* Three events: instructions, ns on a CPU, ns in all. */
struct cost {
	uint64_t insns, cpu_ns, wall_ns;
};

static void add(struct cost *to, const struct cost *more)
{
	to->insns += more->insns;
	to->cpu_ns += more->cpu_ns;
	to->wall_ns += more->wall_ns;
}

static struct cost self_cost(const struct stack_node *n)
{
	return (struct cost){n->insns, n->cpu_ns, n->wall_ns};
}

static void write_cost(struct exporter *e, uint32_t line, const struct cost *c)
{
	const uint64_t numbers[] = {line, c->insns, c->cpu_ns, c->wall_ns};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (i > 0)
			out_block(&e->out, " ", 1);
		out_number(&e->out, numbers[i]);
	}
	out_block(&e->out, "\n", 1);
}

/* "KEY=(N) NAME", and the name only the first time. */
static void write_name(struct exporter *e, const char *key, uint32_t n, bool *known,
		       const char *name)
{
	out_text(&e->out, key);
	out_text(&e->out, "=(");
	out_number(&e->out, n);
	out_text(&e->out, ")");
	if (!*known) {
		out_text(&e->out, " ");
		out_text(&e->out, name);
	}
	*known = true;
	out_text(&e->out, "\n");
}

struct known {
	bool *objects, *files; /* by number of the name */
	bool *functions;
};

static void write_place(struct exporter *e, const struct known *k, uint32_t function, bool called)
{
	const struct export_function *f = &e->functions[function];
	const char *image = name_text(e, f->image), *file = name_text(e, f->file);

	write_name(e, called ? "cob" : "ob", f->image, &k->objects[f->image],
		   *image ? image : "???");
	write_name(e, called ? "cfi" : "fl", f->file, &k->files[f->file], *file ? file : "???");
	write_name(e, called ? "cfn" : "fn", function, &k->functions[function],
		   function_name(e, function));
}

static void write_node(struct exporter *e, const struct known *k, const struct cost *inclusive,
		       uint32_t node)
{
	const struct stacks *s = e->own;
	const struct stack_node *n = &s->list[node];
	uint32_t line = e->functions[n->function].line;
	struct cost self = self_cost(n);

	write_place(e, k, n->function, false);
	write_cost(e, line, &self);
	for (uint32_t i = n->child; i != STACK_NONE; i = s->list[i].sibling) {
		write_place(e, k, s->list[i].function, true);
		out_text(&e->out, "calls=");
		out_number(&e->out, s->list[i].calls);
		out_text(&e->out, " ");
		out_number(&e->out, e->functions[s->list[i].function].line);
		out_text(&e->out, "\n");
		write_cost(e, line, &inclusive[i]);
	}
	out_text(&e->out, "\n");
}

static void write_profile(struct exporter *e, const struct known *k, struct cost *inclusive)
{
	const struct stacks *s = e->own;
	struct cost total = {0};

	for (uint32_t i = 0; i < s->n; i++)
		inclusive[i] = self_cost(&s->list[i]);
	for (uint32_t i = s->n; i-- > 0;) {
		if (s->list[i].parent != STACK_NONE)
			add(&inclusive[s->list[i].parent], &inclusive[i]);
		else
			add(&total, &inclusive[i]);
	}
	out_text(&e->out, "# callgrind format\nversion: 1\ncreator: ptsnapctl\n"
			  "positions: line\nevents: Ir Cpu_ns Wall_ns\nsummary: ");
	out_number(&e->out, total.insns);
	out_text(&e->out, " ");
	out_number(&e->out, total.cpu_ns);
	out_text(&e->out, " ");
	out_number(&e->out, total.wall_ns);
	out_text(&e->out, "\n\n");
	for (uint32_t i = 0; i < s->n; i++)
		if (s->list[i].parent != STACK_NONE)
			write_node(e, k, inclusive, i);
}

static int callgrind_finish(struct exporter *e)
{
	const struct stacks *s = e->own;
	CLEANUP_FREE struct cost *inclusive = calloc(MAX_OF(s->n, 1u), sizeof(*inclusive));
	CLEANUP_FREE bool *objects = calloc(e->names.n, 1);
	CLEANUP_FREE bool *files = calloc(e->names.n, 1);
	CLEANUP_FREE bool *functions = calloc(e->n_functions, 1);
	const struct known known = {objects, files, functions};

	if (!inclusive || !objects || !files || !functions)
		return -ENOMEM;
	write_profile(e, &known, inclusive);
	return 0;
}

const struct export_ops callgrind_ops = {
	.start = stacks_start,
	.thread = stacks_thread,
	.begin = stacks_begin,
	.end = stacks_end,
	.finish = callgrind_finish,
	.done = stacks_done,
};
