/*
 * Lines of the call stream: their times, and what is defined before its first use.
 */
#include "decoder/worker/calltree/calltree_private.h"

#include <stdlib.h>
#include <string.h>

#include "decoder/packet/fault.h"
#include "sideband/dwarf/dwarf.h"
#include "sideband/symbols/symbols.h"

uint32_t calltree_cpu(const struct calltree *c, size_t index)
{
	uint32_t cpu = c->replay->manifest->cpus[index].cpu;

	return cpu == MANIFEST_ANY ? 0 : cpu;
}

void calltree_put(struct calltree *c, const struct callstream_item *item)
{
	lines_text(c->lines, c->line, callstream_compose(item, c->line));
}

void calltree_head(struct calltree *c)
{
	calltree_put(c, &(struct callstream_item){.kind = CALLSTREAM_HEAD,
						  .version = CALLSTREAM_VERSION,
						  .time = c->time.first,
						  .width = c->time.last - c->time.first,
						  .value = c->time.trigger});
}

uint32_t calltree_define_thread(struct calltree *c, struct calltree_thread *t)
{
	const struct timeline_thread *thread = t->thread;
	const char *comm;

	if (t->number != 0)
		return t->number;
	t->number = ++c->threads_defined;
	/* The last name: a program that was executed has another one than its caller. */
	comm = timeline_comm(c->replay->timeline, thread->tid,
			     thread->end > 0 ? thread->end - 1 : 0);
	calltree_put(c, &(struct callstream_item){.kind = CALLSTREAM_THREAD,
						  .thread = t->number,
						  .pid = thread->pid,
						  .tid = thread->tid,
						  .name = comm ? comm : ""});
	return t->number;
}

/* Its source line, where lines are asked for. */
static void add_source(const struct calltree *c, const struct function *f,
		       struct callstream_item *item)
{
	struct dwarf_frame frames[DWARF_MAX_FRAMES];
	size_t n;

	if (!c->options->lines || f->offset == FUNCTIONS_WHOLE_IMAGE)
		return;
	n = symbols_lines(c->replay->symbols, f->image, f->offset, frames, DWARF_MAX_FRAMES);
	if (n == 0 || !frames[n - 1].file)
		return;
	item->file = frames[n - 1].file;
	item->line = frames[n - 1].line;
}

static void put_function(struct calltree *c, uint32_t number, const struct function *f)
{
	const struct manifest *m = c->replay->manifest;
	const char *path = f->image < m->n_images ? m->images[f->image].path : NULL;
	CLEANUP_FREE char *source = NULL;
	char unnamed[FUNCTIONS_MAX_UNNAMED];
	struct callstream_item item = {
		.kind = CALLSTREAM_FUNCTION,
		.function = number,
		.address = f->file_address ? f->file_address : f->address,
		.image = path ? path : "",
		.file = "",
	};

	if (replay_is_kernel(c->replay, f->address))
		item.image = "[kernel]";
	/* A second attempt to decode reads no names of strangers. */
	if (f->name && !c->options->no_symbols)
		source = demangle(f->name);
	functions_unnamed(unnamed, path, f->file_address, f->offset);
	item.name = source ? source : f->name ? f->name : unnamed;
	add_source(c, f, &item);
	calltree_put(c, &item);
}

int calltree_define_function(struct calltree *c, uint32_t index, uint32_t *ret)
{
	size_t n = c->n_functions;

	*ret = 0;
	/* Unknown code. */
	if (index == 0)
		return 0;
	if (ARRAY_RESERVE(c->functions, c->n_functions, (size_t)index + 1) < 0)
		return -ENOMEM;
	memset(c->functions + n, 0, (c->n_functions - n) * sizeof(*c->functions));
	if (c->functions[index] == 0) {
		c->functions[index] = (uint32_t)++c->functions_defined;
		put_function(c, c->functions[index], &c->tally->functions.list[index]);
	}
	*ret = c->functions[index];
	return 0;
}

void calltree_put_gap(struct calltree *c, struct calltree_thread *t, uint32_t cpu,
		      const struct calltree_gap *g, uint64_t until)
{
	struct callstream_item item = {
		.kind = CALLSTREAM_GAP,
		.thread = t ? calltree_define_thread(c, t) : 0,
		.time = t ? MAX_OF(g->time, t->time) : g->time,
		.cpu = cpu,
		.name = fault_name(g->fault),
	};

	item.width = until > item.time ? until - item.time : 0;
	if (t)
		t->time = item.time;
	calltree_put(c, &item);
}

void calltree_put_mark(struct calltree *c, struct calltree_thread *t, uint32_t cpu, uint64_t time,
		       uint64_t value, const char *name)
{
	struct callstream_item item = {
		.kind = CALLSTREAM_MARK,
		.thread = t ? calltree_define_thread(c, t) : 0,
		.time = t ? MAX_OF(time, t->time) : time,
		.cpu = cpu,
		.value = value,
		.name = name,
	};

	if (t)
		t->time = item.time;
	calltree_put(c, &item);
}
