/*
 * Lines of branches, instructions and gaps, and of whose they are and when.
 */
#include <stdlib.h>
#include <string.h>

#include "decoder/worker/listing/listing_private.h"
#include "proto/base.h"

void listing_put(struct listing *l, const struct execstream_item *item)
{
	lines_text(l->lines, l->line, execstream_compose(item, l->line));
}

/* --- Whose, and when --- */

/* A CPU and a thread (NULL: not known), or only its process. */
static void set_origin(struct listing *l, size_t index, const struct timeline_thread *thread,
		       const struct timeline_thread *process)
{
	uint32_t cpu = l->replay->manifest->cpus[index].cpu;
	struct execstream_item item = {
		.kind = EXECSTREAM_CONTEXT,
		.cpu = cpu == MANIFEST_ANY ? EXECSTREAM_UNKNOWN : cpu,
		.pid = process ? process->pid : EXECSTREAM_UNKNOWN,
		.tid = thread ? thread->tid : EXECSTREAM_UNKNOWN,
		.name = "",
	};

	if (l->has_origin && l->cpu == index && l->thread == thread && l->process == process)
		return;
	l->has_origin = true;
	l->cpu = index;
	l->thread = thread;
	l->process = process;
	/* The last name: a program that was executed has another one than its caller. */
	if (thread)
		item.name = timeline_comm(l->replay->timeline, thread->tid,
					  thread->end > 0 ? thread->end - 1 : 0);
	if (!item.name)
		item.name = "";
	listing_put(l, &item);
}

static void set_when(struct listing *l, uint64_t tsc_lo, uint64_t tsc_hi)
{
	struct stream_when when = stream_time_when(&l->time, l->cpu, tsc_lo, tsc_hi);

	if (l->has_when && when.lo == l->when.lo && when.hi == l->when.hi)
		return;
	l->has_when = true;
	l->when = when;
	listing_put(l, &(struct execstream_item){.kind = EXECSTREAM_WHEN,
						 .time = when.lo,
						 .width = when.hi - when.lo});
}

static void put_gap(struct listing *l, enum fault fault)
{
	l->gaps++;
	listing_put(l,
		    &(struct execstream_item){.kind = EXECSTREAM_GAP, .name = fault_name(fault)});
}

/* --- Items --- */

static enum execstream_branch branch_of(const struct flow_item *item)
{
	switch (item->kind) {
	case FLOW_COND: return EXECSTREAM_COND;
	case FLOW_JUMP: return EXECSTREAM_JUMP;
	case FLOW_CALL: return EXECSTREAM_CALL;
	case FLOW_JUMP_IND: return EXECSTREAM_JUMP_IND;
	case FLOW_CALL_IND: return EXECSTREAM_CALL_IND;
	case FLOW_RET: return EXECSTREAM_RET;
	case FLOW_SYSCALL: return EXECSTREAM_SYSCALL;
	case FLOW_ASYNC: return EXECSTREAM_ASYNC;
	case FLOW_ENABLE: return item->flags & FLOW_GOES_ON ? EXECSTREAM_RESUME : EXECSTREAM_ENABLE;
	case FLOW_DISABLE:
		return item->flags & FLOW_ASYNC_STOP ? EXECSTREAM_STOP : EXECSTREAM_DISABLE;
	default: return EXECSTREAM_FAR;
	}
}

static int put_branch(struct listing *l, const struct replay_stretch *s,
		      const struct flow_item *item)
{
	struct execstream_item line = {.kind = EXECSTREAM_BRANCH, .branch = branch_of(item)};
	uint8_t mode = flow_run_mode(s->flow);
	int r = listing_place(l, s->context, mode, item->from, &line.from);

	if (r == 0)
		r = listing_place(l, s->context, mode, item->to, &line.to);
	if (r < 0)
		return r;
	l->branches++;
	set_when(l, item->tsc_lo, item->tsc_hi);
	listing_put(l, &line);
	return 0;
}

/* Instructions of a stretch. */
struct run {
	struct listing *l;
	const struct replay_stretch *s;
	int result;
};

static void put_insns(void *userdata, const uint64_t *ips, size_t n)
{
	struct run *run = userdata;
	struct execstream_item line = {.kind = EXECSTREAM_INSN};
	uint8_t mode = flow_run_mode(run->s->flow);

	for (size_t i = 0; i < n && run->result == 0; i++) {
		run->result = listing_place(run->l, run->s->context, mode, ips[i], &line.place);
		if (run->result == 0)
			listing_put(run->l, &line);
		run->l->insns++;
	}
}

/* The instructions up to ITEM, which began to run when the item before it had happened. */
static int put_run(struct listing *l, const struct replay_stretch *s, const struct flow_item *item)
{
	struct run run = {l, s, 0};
	uint64_t lo = item->tsc_lo;

	if (item->insns > 0) {
		if (l->before != 0 && (l->before < lo || lo == 0))
			lo = l->before;
		set_when(l, lo, item->tsc_hi);
		if (!views_each_run(s, item, put_insns, &run) && run.result == 0)
			run.result = -ENOMEM;
	}
	l->before = item->tsc_lo;
	return run.result;
}

static int put_item(struct listing *l, const struct replay_stretch *s, const struct flow_item *item)
{
	bool is_branch =
		item->kind != FLOW_END && item->kind != FLOW_GAP && item->kind != FLOW_MARK;
	int r = 0;

	if (l->options->view == WORKER_VIEW_INSNS)
		r = put_run(l, s, item);
	else if (is_branch)
		r = put_branch(l, s, item);
	if (r == 0 && item->kind == FLOW_GAP) {
		enum fault fault = s->gaps[item->gap - s->first_gap].fault;

		set_when(l, item->tsc_lo, item->tsc_hi);
		/* Before the first PSB is no gap. */
		if (fault != FAULT_HEAD)
			put_gap(l, fault);
	}
	return r;
}

int listing_stretch(struct listing *l, const struct replay_stretch *s)
{
	const struct timeline_thread *process = s->thread ? s->thread : s->process;
	int r = 0;

	if (s->n_items == 0)
		return 0;
	if (!s->goes_on || l->cpu != s->cpu)
		l->before = 0;
	if (s->process && !(s->goes_on && l->has_origin && l->process == process)) {
		set_origin(l, s->cpu, s->thread, process);
		set_when(l, s->items[0].tsc_lo, s->items[0].tsc_hi);
		put_gap(l, FAULT_THREAD_UNCERTAIN);
	}
	set_origin(l, s->cpu, s->thread, process);
	for (size_t i = 0; i < s->n_items && r == 0; i++)
		r = put_item(l, s, &s->items[i]);
	return r == 0 ? l->lines->error : r;
}

void listing_left_out(struct listing *l, size_t index, enum fault fault)
{
	set_origin(l, index, NULL, NULL);
	if (!l->has_when)
		set_when(l, 0, UINT64_MAX);
	put_gap(l, fault);
}

void listing_recording(struct listing *l, enum fault fault, uint64_t count)
{
	listing_put(l, &(struct execstream_item){.kind = EXECSTREAM_RECORDING,
						 .name = fault_name(fault),
						 .count = count});
}

int listing_end(struct listing *l)
{
	listing_put(l, &(struct execstream_item){.kind = EXECSTREAM_END,
						 .branches = l->branches,
						 .insns = l->insns,
						 .gaps = l->gaps});
	return lines_flush(l->lines);
}

/* --- Making --- */

int listing_new(const struct decode_options *options, const struct replay *replay,
		struct functions *functions, struct lines *lines, struct listing **ret)
{
	CLEANUP(listing_freep) struct listing *l = calloc(1, sizeof(*l));
	enum insn_syntax syntax = options->show & WORKER_SHOW_INTEL ? INSN_INTEL : INSN_ATT;

	if (!l)
		return -ENOMEM;
	l->options = options;
	l->replay = replay;
	l->functions = functions;
	l->lines = lines;
	l->time = stream_time_of(replay);
	l->line = malloc(EXECSTREAM_MAX_LINE);
	l->places = calloc(EXECSTREAM_PLACES, sizeof(*l->places));
	if (options->view == WORKER_VIEW_INSNS)
		l->text = insn_text_new(syntax);
	if (!l->line || !l->places || (options->view == WORKER_VIEW_INSNS && !l->text))
		return -ENOMEM;
	listing_put(l, &(struct execstream_item){.kind = EXECSTREAM_HEAD,
						 .version = EXECSTREAM_VERSION,
						 .time = l->time.first,
						 .width = l->time.last - l->time.first,
						 .trigger = l->time.trigger});
	*ret = TAKE_PTR(l);
	return 0;
}

void listing_freep(struct listing **l)
{
	if (!*l)
		return;
	insn_text_freep(&(*l)->text);
	free((*l)->line);
	free((*l)->places);
	free((*l)->numbers);
	free(*l);
	*l = NULL;
}
