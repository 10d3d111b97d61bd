/*
 * Reads a call stream.
 */
#include "tests/support/call_lines.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "proto/callstream.h"

static void must(bool fine)
{
	if (!fine)
		abort();
}

static struct call_step *add_step(struct call_thread *t, const struct callstream_item *i)
{
	must(ARRAY_RESERVE(t->steps, t->steps_room, t->n_steps + 1) == 0);
	t->steps[t->n_steps] = (struct call_step){
		.lo = i->time,
		.hi = i->time + i->width,
		.other = CALL_LINES_NONE,
		.around = CALL_LINES_NONE,
	};
	return &t->steps[t->n_steps++];
}

static uint32_t innermost(const struct call_thread *t)
{
	return t->n_frames > 0 ? t->frames[t->n_frames - 1].step : CALL_LINES_NONE;
}

static void begin(struct call_lines *l, struct call_thread *t, const struct callstream_item *i)
{
	struct call_frame frame = {.step = innermost(t)};
	struct call_step *s;

	frame.returns = i->begin != CALLSTREAM_SYSCALL && i->begin != CALLSTREAM_INTERRUPT &&
			i->begin != CALLSTREAM_SIGNAL && i->begin != CALLSTREAM_INLINED;
	if (i->begin == CALLSTREAM_FOUND)
		frame.step = CALL_LINES_NONE;
	if (i->begin == CALLSTREAM_JUMP && t->left != CALL_LINES_NONE) {
		frame.step = t->left;
		l->again++;
	}
	t->left = CALL_LINES_NONE;
	if (i->begin == CALLSTREAM_CALL) {
		s = add_step(t, i);
		s->call = true;
		s->around = frame.step;
		s->function = i->function;
		frame.step = (uint32_t)(t->n_steps - 1);
	}
	must(ARRAY_RESERVE(t->frames, t->frames_room, t->n_frames + 1) == 0);
	t->frames[t->n_frames++] = frame;
}

static bool end(struct call_thread *t, const struct callstream_item *i)
{
	struct call_frame frame;

	if (t->n_frames == 0)
		return false;
	frame = t->frames[--t->n_frames];
	if (frame.step != CALL_LINES_NONE)
		t->steps[frame.step].own += i->insns;
	t->left = CALL_LINES_NONE;
	if (i->end == CALLSTREAM_LEFT && frame.step != innermost(t) &&
	    frame.step != CALL_LINES_NONE && t->steps[frame.step].other == CALL_LINES_NONE)
		t->left = frame.step;
	if (i->end != CALLSTREAM_RETURN || !frame.returns)
		return true;
	add_step(t, i)->other = frame.step;
	if (frame.step != CALL_LINES_NONE)
		t->steps[frame.step].other = (uint32_t)(t->n_steps - 1);
	return true;
}

static void leave(struct call_thread *t, const struct callstream_item *i)
{
	must(ARRAY_RESERVE(t->offs, t->offs_room, t->n_offs + 1) == 0);
	t->offs[t->n_offs++] =
		(struct call_off){.leave = i->time, .cpu = i->cpu, .steps = t->n_steps};
	t->off = true;
}

/* What the thread did before it was seen is not known. */
static void come(struct call_thread *t, const struct callstream_item *i)
{
	struct call_off *off;

	if (!t->off)
		return;
	off = &t->offs[t->n_offs - 1];
	off->back = i->time;
	off->cpu_back = i->cpu;
	off->steps_back = t->n_steps;
	t->off = false;
}

static bool define_thread(struct call_lines *l, const struct callstream_item *i)
{
	if (i->thread != l->n_threads)
		return false;
	must(ARRAY_RESERVE(l->threads, l->threads_room, l->n_threads + 1) == 0);
	l->threads[l->n_threads++] =
		(struct call_thread){.pid = i->pid, .tid = i->tid, .left = CALL_LINES_NONE};
	return true;
}

static bool define_function(struct call_lines *l, const struct callstream_item *i)
{
	struct call_function f = {i->address, strdup(i->name), strdup(i->image)};

	must(f.name && f.image);
	must(ARRAY_RESERVE(l->functions, l->functions_room, l->n_functions + 1) == 0);
	l->functions[l->n_functions++] = f;
	return i->function == l->n_functions - 1;
}

static bool take(struct call_lines *l, const struct callstream_item *i)
{
	struct call_thread *t = i->thread < l->n_threads ? &l->threads[i->thread] : NULL;

	if (i->kind == CALLSTREAM_THREAD)
		return define_thread(l, i);
	if (i->kind == CALLSTREAM_FUNCTION)
		return define_function(l, i);
	if (!t || i->function >= l->n_functions)
		return false;
	switch (i->kind) {
	case CALLSTREAM_BEGIN: begin(l, t, i); break;
	case CALLSTREAM_FINISH: return end(t, i);
	case CALLSTREAM_ON: come(t, i); break;
	case CALLSTREAM_OFF: leave(t, i); break;
	case CALLSTREAM_GAP: l->gaps++; break;
	case CALLSTREAM_END: l->cut = i->cut; break;
	default: break;
	}
	return true;
}

bool call_lines_read(FILE *f, struct call_lines *ret, size_t *ret_line)
{
	static const struct callstream_item nobody = {.name = "", .image = ""};
	struct callstream_item item = {.kind = CALLSTREAM_HEAD};
	char *line = NULL;
	size_t room = 0;
	bool fine = true;

	*ret = (struct call_lines){0};
	define_thread(ret, &nobody);
	define_function(ret, &nobody);
	*ret_line = 0;
	while (fine && getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		++*ret_line;
		fine = callstream_parse(line, &item) == 0 && take(ret, &item);
	}
	free(line);
	return fine && item.kind == CALLSTREAM_END;
}

void call_lines_done(struct call_lines *l)
{
	for (size_t i = 0; i < l->n_threads; i++) {
		free(l->threads[i].steps);
		free(l->threads[i].offs);
		free(l->threads[i].frames);
	}
	for (size_t i = 0; i < l->n_functions; i++) {
		free(l->functions[i].name);
		free(l->functions[i].image);
	}
	free(l->threads);
	free(l->functions);
	*l = (struct call_lines){0};
}
