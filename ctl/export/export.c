/*
 * The table of formats, and what all formats need of a call stream: threads, their open frames, and
 * the time and instructions that belong to each.
 */
#include "ctl/export/export_private.h"

#include <assert.h>
#include <stdio.h>

const struct export_format export_formats[] = {
	{"speedscope", ".speedscope.json", "https://www.speedscope.app, evented JSON", false,
	 &speedscope_ops},
	{"perfetto", ".pftrace", "https://ui.perfetto.dev and trace_processor", true,
	 &perfetto_ops},
	{"pprof", ".pb.gz", "go tool pprof", true, &pprof_ops},
	{"collapsed", ".collapsed", "stacks and their weight, for flamegraph.pl", false,
	 &collapsed_ops},
	{"callgrind", ".callgrind", "kcachegrind and callgrind_annotate", false, &callgrind_ops},
	{"sql", ".sql", "tables of calls, turns, gaps and marks, for sqlite3", false, &sql_ops},
	{"csv", ".csv", "one line for each call", false, &csv_calls_ops},
	{"csv-turns", ".csv", "one line for each time that a thread had a CPU", false,
	 &csv_turns_ops},
	{"csv-gaps", ".csv", "one line for each gap", false, &csv_gaps_ops},
	{"csv-marks", ".csv", "one line for each event besides branches", false, &csv_marks_ops},
	{NULL, NULL, NULL, false, NULL},
};

const struct export_format *export_format_find(const char *name)
{
	for (const struct export_format *f = export_formats; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

void thread_title(const struct exporter *e, const struct export_thread *t,
		  char to[static EXPORT_MAX_NAME + 32])
{
	snprintf(to, EXPORT_MAX_NAME + 32, "%s (%u)", name_text(e, t->name), t->tid);
}

static int define_own(struct exporter *e)
{
	static const char *const names[OWN_FUNCTIONS] = {
		[FUNCTION_UNKNOWN] = "[unknown]",
		[FUNCTION_SYSCALL] = "[system call]",
		[FUNCTION_INTERRUPT] = "[interrupt]",
	};
	int r = 0;

	if (ARRAY_RESERVE(e->functions, e->functions_capacity, OWN_FUNCTIONS) < 0)
		return -ENOMEM;
	for (; e->n_functions < OWN_FUNCTIONS && r == 0; e->n_functions++) {
		struct export_function *f = &e->functions[e->n_functions];

		*f = (struct export_function){.defined = true};
		r = names_add(&e->names, names[e->n_functions], &f->name);
	}
	return r;
}

int exporter_new(const struct export_format *format, enum export_weight weight, int fd,
		 struct exporter **ret)
{
	CLEANUP(exporter_freep) struct exporter *e = calloc(1, sizeof(*e));
	int r;

	assert(format && format->ops && fd >= 0);
	if (!e)
		return -ENOMEM;
	e->format = format;
	e->weight = weight;
	e->next_id = 1;
	out_init(&e->out, fd);
	r = names_init(&e->names);
	if (r == 0)
		r = define_own(e);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(e);
	return 0;
}

void exporter_freep(struct exporter **ep)
{
	struct exporter *e = *ep;

	if (!e)
		return;
	if (e->format->ops->done)
		e->format->ops->done(e);
	for (uint32_t i = 0; i < e->n_threads; i++) {
		if (e->threads[i])
			free(e->threads[i]->frames);
		free(e->threads[i]);
	}
	free(e->threads);
	free(e->functions);
	names_done(&e->names);
	out_done(&e->out);
	free(e);
	*ep = NULL;
}

static int take_head(struct exporter *e, const struct callstream_item *i)
{
	int r = 0;

	e->begun = true;
	e->first = i->time;
	if (__builtin_add_overflow(i->time, i->width, &e->until))
		return -EBADMSG;
	e->trigger = i->value;
	if (e->format->ops->start)
		r = e->format->ops->start(e);
	for (uint32_t n = 0; n < OWN_FUNCTIONS && r == 0 && e->format->ops->function; n++)
		r = e->format->ops->function(e, n);
	return r;
}

static int thread_new(struct exporter *e, uint32_t number, struct export_thread **ret)
{
	struct export_thread *t;

	if (number == 0)
		return -EBADMSG;
	if (number > EXPORT_MAX_NUMBER)
		return -E2BIG;
	if (ARRAY_RESERVE(e->threads, e->threads_capacity, (size_t)number + 1) < 0)
		return -ENOMEM;
	while (e->n_threads <= number)
		e->threads[e->n_threads++] = NULL;
	if (!e->threads[number]) {
		t = calloc(1, sizeof(*t));
		if (!t)
			return -ENOMEM;
		/* No switch is known before the first. */
		*t = (struct export_thread){.number = number, .last = e->first, .on = true};
		e->threads[number] = t;
	}
	*ret = e->threads[number];
	return 0;
}

static int take_thread(struct exporter *e, const struct callstream_item *i)
{
	struct export_thread *t = NULL;
	int r = thread_new(e, i->thread, &t);

	if (r == 0)
		r = names_add(&e->names, i->name, &t->name);
	if (r < 0)
		return r;
	t->pid = i->pid;
	t->tid = i->tid;
	return e->format->ops->thread ? e->format->ops->thread(e, t) : 0;
}

static int take_function(struct exporter *e, const struct callstream_item *i)
{
	const uint32_t index = OWN_FUNCTIONS - 1 + i->function;
	struct export_function *f;
	int r;

	if (i->function == 0)
		return -EBADMSG;
	if (i->function > EXPORT_MAX_NUMBER)
		return -E2BIG;
	if (ARRAY_RESERVE(e->functions, e->functions_capacity, (size_t)index + 1) < 0)
		return -ENOMEM;
	while (e->n_functions <= index)
		e->functions[e->n_functions++] = (struct export_function){0};
	f = &e->functions[index];
	if (f->defined)
		return -EBADMSG;
	*f = (struct export_function){.address = i->address, .line = i->line, .defined = true};
	r = names_add(&e->names, i->name, &f->name);
	if (r == 0)
		r = names_add(&e->names, i->image, &f->image);
	if (r == 0)
		r = names_add(&e->names, i->file, &f->file);
	if (r < 0 || !e->format->ops->function)
		return r;
	return e->format->ops->function(e, index);
}

/* Moves the thread's time to TIME, never back, and returns it. */
static uint64_t advance(struct export_thread *t, uint64_t time)
{
	uint64_t passed;

	time = MAX_OF(time, t->last);
	passed = time - t->last;
	t->last = time;
	if (t->on)
		t->cpu_ns += passed;
	if (t->n > 0) {
		t->frames[t->n - 1].self_ns += passed;
		t->frames[t->n - 1].self_cpu += t->on ? passed : 0;
	}
	return time;
}

/* The index of the function that begins. */
static uint32_t function_of(const struct callstream_item *i)
{
	if (i->function > 0)
		return OWN_FUNCTIONS - 1 + MIN_OF(i->function, EXPORT_MAX_NUMBER);
	return i->begin == CALLSTREAM_SYSCALL	  ? FUNCTION_SYSCALL
	       : i->begin == CALLSTREAM_INTERRUPT ? FUNCTION_INTERRUPT
						  : FUNCTION_UNKNOWN;
}

static int take_begin(struct exporter *e, struct export_thread *t, const struct callstream_item *i)
{
	const uint32_t function = function_of(i);

	if (function >= e->n_functions || !e->functions[function].defined)
		return -EBADMSG;
	if (e->n_frames >= EXPORT_MAX_FRAMES)
		return -E2BIG;
	if (ARRAY_RESERVE(t->frames, t->capacity, t->n + 1) < 0)
		return -ENOMEM;
	t->frames[t->n] = (struct export_frame){.id = e->next_id++,
						.begin = advance(t, i->time),
						.cpu_before = t->cpu_ns,
						.function = function,
						.cpu = i->cpu,
						.how = i->begin};
	t->on = true; /* what begins is executed */
	t->n++;
	e->n_frames++;
	return e->format->ops->begin ? e->format->ops->begin(e, t, &t->frames[t->n - 1]) : 0;
}

static int take_finish(struct exporter *e, struct export_thread *t, const struct callstream_item *i)
{
	struct export_frame *f;
	struct export_call c;
	int r = 0;

	if (t->n == 0)
		return -EBADMSG;
	f = &t->frames[t->n - 1];
	c = (struct export_call){.frame = f,
				 .parent = t->n > 1 ? f[-1].id : 0,
				 .depth = t->n - 1,
				 .end = advance(t, i->time),
				 .self_insns = i->insns,
				 .insns = i->insns + f->inner_insns,
				 .cpu = i->cpu,
				 .how = i->end};
	c.cpu_ns = t->cpu_ns - f->cpu_before;
	if (e->format->ops->end)
		r = e->format->ops->end(e, t, &c);
	t->n--;
	e->n_frames--;
	e->told.calls++;
	if (t->n > 0)
		t->frames[t->n - 1].inner_insns += c.insns;
	return r;
}

static int end_turn(struct exporter *e, struct export_thread *t, uint64_t end,
		    enum callstream_why why)
{
	const struct export_turn turn = {
		.begin = t->turn_since, .end = end, .cpu = t->cpu_of_turn, .why = why};

	if (!t->in_turn)
		return 0;
	t->in_turn = false;
	/* A slice that begins without a CPU. */
	if (turn.begin == turn.end && why == CALLSTREAM_WHY_UNKNOWN)
		return 0;
	return e->format->ops->turn ? e->format->ops->turn(e, t, &turn) : 0;
}

static int take_on(struct exporter *e, struct export_thread *t, const struct callstream_item *i)
{
	uint64_t time = advance(t, i->time);
	int r = end_turn(e, t, time, CALLSTREAM_WHY_UNKNOWN);

	t->on = t->in_turn = true;
	t->turn_since = time;
	t->cpu_of_turn = i->cpu;
	return r == 0 && e->format->ops->on ? e->format->ops->on(e, t, i) : r;
}

static int take_off(struct exporter *e, struct export_thread *t, const struct callstream_item *i)
{
	uint64_t time = advance(t, i->time);
	int r;

	if (!t->in_turn) { /* it began before the stream */
		t->in_turn = true;
		t->turn_since = e->first;
		t->cpu_of_turn = i->cpu;
	}
	t->on = false;
	r = end_turn(e, t, time, i->why);
	return r == 0 && e->format->ops->off ? e->format->ops->off(e, t, i) : r;
}

static int take_other(struct exporter *e, struct export_thread *t, const struct callstream_item *i)
{
	const struct export_ops *ops = e->format->ops;
	uint64_t end;
	char clean[EXPORT_MAX_NAME + 1];
	struct callstream_item safe = *i;

	if (i->kind == CALLSTREAM_GAP && __builtin_add_overflow(i->time, i->width, &end))
		return -EBADMSG;
	names_clean(i->name, clean);
	safe.name = clean;
	if (i->kind == CALLSTREAM_GAP)
		return ops->gap ? ops->gap(e, t, &safe) : 0;
	return ops->mark ? ops->mark(e, t, &safe) : 0;
}

static int take_end(struct exporter *e, const struct callstream_item *i)
{
	int r = 0;

	for (uint32_t n = 0; n < e->n_threads && r == 0; n++) {
		struct export_thread *t = e->threads[n];

		if (t && t->n > 0)
			return -EBADMSG;
		if (t)
			r = end_turn(e, t, MAX_OF(t->last, e->until), CALLSTREAM_WHY_UNKNOWN);
	}
	e->told.cut = i->cut;
	e->ended = true;
	return r;
}

static int take(struct exporter *e, const struct callstream_item *i)
{
	struct export_thread *t = i->thread < e->n_threads ? e->threads[i->thread] : NULL;
	bool of_cpu = i->thread == 0 && (i->kind == CALLSTREAM_GAP || i->kind == CALLSTREAM_MARK);

	if (e->begun == (i->kind == CALLSTREAM_HEAD) || e->ended || i->cpu >= EXPORT_MAX_CPUS)
		return -EBADMSG;
	switch (i->kind) {
	case CALLSTREAM_HEAD: return take_head(e, i);
	case CALLSTREAM_THREAD: return take_thread(e, i);
	case CALLSTREAM_FUNCTION: return take_function(e, i);
	case CALLSTREAM_END: return take_end(e, i);
	default: break;
	}
	if (!t && !of_cpu)
		return -EBADMSG;
	switch (i->kind) {
	case CALLSTREAM_BEGIN: return take_begin(e, t, i);
	case CALLSTREAM_FINISH: return take_finish(e, t, i);
	case CALLSTREAM_ON: return take_on(e, t, i);
	case CALLSTREAM_OFF: return take_off(e, t, i);
	default: return take_other(e, t, i);
	}
}

int exporter_take(void *exporter, const struct callstream_item *item)
{
	struct exporter *e = exporter;

	assert(e->error == 0);
	e->error = take(e, item);
	if (e->error == 0)
		e->error = e->out.error;
	return e->error;
}

int exporter_finish(struct exporter *e, struct exporter_told *ret)
{
	int r;

	assert(e->error == 0);
	if (!e->ended)
		return -ENODATA;
	r = e->format->ops->finish ? e->format->ops->finish(e) : 0;
	if (r == 0)
		r = out_finish(&e->out);
	if (r == 0)
		*ret = e->told;
	return r;
}
