/*
 * A shadow stack for each thread of a truth directory.
 */
#include "tests/support/truth_stack.h"

#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "capture/emu/plugin/truth.h"
#include "proto/base.h"

enum what { WHAT_NOTHING, WHAT_CALL, WHAT_CALL_INDIRECT, WHAT_RETURN };

struct reading {
	struct truth_stack *stack;
	ZydisDecoder decoder;
	/* of the thread at hand */
	struct truth_life life;
	uint32_t *open; /* the calls whose frames are open */
	size_t n_open, open_room;
	uint64_t tsc;
	int last_mark;	/* enum truth_item */
	bool pending;	/* the last step does not know where it went */
	bool is_hidden; /* what executed since the last TRUTH_ENTER is in no span */
	bool is_cut;	/* something was not seen since the last stretch */
};

static void must(int r)
{
	if (r < 0)
		abort();
}

static struct truth_step *last_step(struct reading *r)
{
	return &r->life.steps[r->life.n_steps - 1];
}

/* --- The stack --- */

static struct truth_step *frame_at(struct reading *r, size_t i)
{
	return &r->life.steps[r->open[i]];
}

static void count(struct reading *r, uint64_t n)
{
	if (r->n_open > 0)
		frame_at(r, r->n_open - 1)->own += n;
}

static void push(struct reading *r)
{
	must(ARRAY_RESERVE(r->open, r->open_room, r->n_open + 1));
	if (r->n_open > 0)
		last_step(r)->around = r->open[r->n_open - 1];
	r->open[r->n_open++] = (uint32_t)(r->life.n_steps - 1);
}

/* The frame at K ends with the last step. */
static void join(struct reading *r, size_t k)
{
	frame_at(r, k)->other = (uint32_t)(r->life.n_steps - 1);
	last_step(r)->other = r->open[k];
	r->n_open = k;
}

/* The last step, a return, went to TO, which is not where the innermost frame returns to. */
static void return_elsewhere(struct reading *r, uint64_t to)
{
	size_t k = r->n_open, again;

	last_step(r)->odd = true;
	while (k > 0 && frame_at(r, k - 1)->back != to)
		k--;
	if (k == 0) {
		r->n_open = 0;
		return;
	}
	k--;
	for (again = 0; again < k; again++)
		if (frame_at(r, again)->back == to)
			break;
	/* It may have been any frame from AGAIN to K. */
	if (again < k) {
		r->n_open = again;
		return;
	}
	frame_at(r, k)->mixed = true;
	join(r, k);
}

/* Execution continues at IP. */
static void arrive(struct reading *r, uint64_t ip)
{
	struct truth_step *s;

	if (!r->pending)
		return;
	r->pending = false;
	s = last_step(r);
	s->to = ip;
	if (s->call || r->n_open == 0)
		return;
	if (frame_at(r, r->n_open - 1)->back == ip)
		join(r, r->n_open - 1);
	else
		return_elsewhere(r, ip);
}

/* --- Instructions --- */

/* Zydis is asked only where a byte of the opcode occurs: CALL E8, FF /2, RET C3, C2 (SDM volume 2).
 */
static bool may_be(const struct truth_block_def *b)
{
	for (size_t i = 0; i < b->last_size; i++)
		if (b->last[i] == 0xe8 || b->last[i] == 0xff || (b->last[i] & 0xfe) == 0xc2)
			return true;
	return false;
}

/* A call of the instruction behind it only reads the IP. */
static enum what classify(const struct reading *r, const struct truth_block_def *b,
			  uint64_t *ret_distance)
{
	ZydisDecodedInstruction insn;

	if (!may_be(b) || !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&r->decoder, NULL, b->last,
								      b->last_size, &insn)))
		return WHAT_NOTHING;
	if (insn.meta.branch_type != ZYDIS_BRANCH_TYPE_NEAR && insn.mnemonic != ZYDIS_MNEMONIC_RET)
		return WHAT_NOTHING;
	if (insn.mnemonic == ZYDIS_MNEMONIC_RET)
		return insn.opcode == 0xc2 || insn.opcode == 0xc3 ? WHAT_RETURN : WHAT_NOTHING;
	if (insn.mnemonic != ZYDIS_MNEMONIC_CALL)
		return WHAT_NOTHING;
	if (!insn.raw.imm[0].is_relative)
		return WHAT_CALL_INDIRECT;
	*ret_distance = (uint64_t)insn.raw.imm[0].value.s;
	return *ret_distance != 0 ? WHAT_CALL : WHAT_NOTHING;
}

static void add_step(struct reading *r, const struct truth_block_def *b, enum what what,
		     uint64_t distance)
{
	struct truth_life *l = &r->life;
	uint64_t last = b->ip, end = b->ip;

	for (unsigned int i = 0; i < b->n; i++) {
		last = end;
		end += b->length[i];
	}
	must(ARRAY_RESERVE(l->steps, l->steps_room, l->n_steps + 1));
	l->steps[l->n_steps++] = (struct truth_step){
		.from = last,
		.to = what == WHAT_CALL ? end + distance : 0,
		.back = end,
		.tsc = r->tsc,
		.other = TRUTH_STACK_NONE,
		.around = TRUTH_STACK_NONE,
		.call = what != WHAT_RETURN,
	};
	r->pending = what != WHAT_CALL;
	if (what != WHAT_RETURN)
		push(r);
}

static void on_run(void *userdata, const struct truth_event *e)
{
	struct reading *r = userdata;
	uint64_t distance = 0;
	enum what what = e->n == e->block->n ? classify(r, e->block, &distance) : WHAT_NOTHING;

	if (what == WHAT_NOTHING) {
		arrive(r, e->block->ip);
		count(r, e->n * e->times);
	}
	for (uint64_t i = 0; i < e->times && what != WHAT_NOTHING; i++) {
		arrive(r, e->block->ip);
		count(r, e->n);
		add_step(r, e->block, what, distance);
	}
	r->life.stretches[r->life.n_stretches - 1].end = r->tsc;
}

/* --- Threads and stretches --- */

/* What executes next is not seen. */
static void forget(struct reading *r)
{
	if (r->pending || (r->life.n_steps > 0 && last_step(r)->call))
		last_step(r)->odd = true;
	r->pending = false;
	for (; r->n_open > 0; r->n_open--)
		frame_at(r, r->n_open - 1)->open = true;
}

static void on_begin(void *userdata, struct truth_thread who)
{
	struct reading *r = userdata;

	r->life = (struct truth_life){.who = who};
	r->last_mark = 0;
	r->is_hidden = r->is_cut = false;
	r->tsc = 0;
}

static void on_mark(void *userdata, const struct truth_event *e)
{
	struct reading *r = userdata;

	if (e->item == TRUTH_TIME) {
		r->tsc = e->tsc;
		return;
	}
	r->last_mark = e->item;
	if (e->item == TRUTH_STOP || (e->item == TRUTH_ENTER && r->is_hidden))
		r->is_cut = true;
	if (e->item == TRUTH_ENTER)
		r->is_hidden = true;
}

static void on_stretch(void *userdata, uint32_t cpu, uint64_t tsc)
{
	struct reading *r = userdata;
	struct truth_life *l = &r->life;
	/* From a PSB on: the begin of the stretch is in no span. */
	bool cut = r->is_cut || r->last_mark == TRUTH_PSB || l->n_stretches == 0;

	if (cut)
		forget(r);
	r->is_cut = r->is_hidden = false;
	must(ARRAY_RESERVE(l->stretches, l->stretches_room, l->n_stretches + 1));
	l->stretches[l->n_stretches++] = (struct truth_stretch){
		.cpu = cpu, .begin = tsc, .end = tsc, .steps = l->n_steps, .cut = cut};
}

static void on_end(void *userdata)
{
	struct reading *r = userdata;
	struct truth_stack *s = r->stack;

	forget(r);
	if (r->life.n_stretches == 0)
		return;
	must(ARRAY_RESERVE(s->threads, s->room, s->n + 1));
	s->threads[s->n++] = r->life;
	r->life = (struct truth_life){0};
}

int truth_stack_read(const char *dir, const struct truth_span *spans, size_t n,
		     struct truth_stack *ret, char **ret_bad)
{
	struct reading r = {.stack = ret};
	const struct truth_visitor v = {.begin = on_begin,
					.stretch = on_stretch,
					.run = on_run,
					.mark = on_mark,
					.end = on_end,
					.userdata = &r};
	int result;

	*ret = (struct truth_stack){0};
	ZydisDecoderInit(&r.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	result = truth_walk(dir, spans, n, &v, ret_bad);
	free(r.open);
	return result;
}

void truth_stack_done(struct truth_stack *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->threads[i].steps);
		free(s->threads[i].stretches);
	}
	free(s->threads);
	*s = (struct truth_stack){0};
}
