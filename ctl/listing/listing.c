/*
 * Reads an execution stream, checks it, and hands on the lines of a slice.
 */
#include "ctl/listing/listing.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define MAX_GAP_NAMES 256u

struct listing {
	const struct slice *slice;
	listing_fn fn;
	void *userdata;
	struct listing_told told;
	uint64_t from, to; /* ns */
	bool begun, ended, timed;
	/* What the next lines are of. */
	struct listing_origin *origin;
	bool wanted; /* the origin is of the slice, */
	bool within; /* and so is the time */
	uint64_t time, width;
	struct listing_function *functions; /* from 1 on */
	size_t n_functions, capacity;
	struct listing_place **places;	/* by number */
	char *gap_names[MAX_GAP_NAMES]; /* owned */
	size_t n_gap_names;
	uint64_t branches, insns, gaps; /* lines of the stream so far */
	struct listing_line gap;	/* gaps that wait for the next line */
	bool has_gap;
	struct listing_line *newest; /* a ring of LAST lines; NULL: all are handed on */
	uint64_t last, n_newest;
};

/* --- References --- */

static void forget_place(struct listing_place *p)
{
	if (p && --p->refs == 0)
		free(p);
}

static void forget_origin(struct listing_origin *o)
{
	if (o && --o->refs == 0)
		free(o);
}

static void refer(const struct listing_line *line)
{
	line->origin->refs++;
	if (line->from)
		line->from->refs++;
	if (line->to)
		line->to->refs++;
}

static void forget(const struct listing_line *line)
{
	forget_origin(line->origin);
	forget_place(line->from);
	forget_place(line->to);
}

/* Copies N texts behind a struct of SIZE bytes, with one allocation. NULL: no memory. */
static void *with_texts(size_t size, const char *const *texts, const char **ret, size_t n)
{
	size_t all = size;
	char *p, *at;

	for (size_t i = 0; i < n; i++)
		all += strlen(texts[i]) + 1;
	p = calloc(1, all);
	at = p + size;
	for (size_t i = 0; i < n && p; i++) {
		ret[i] = at;
		at = stpcpy(at, texts[i]) + 1;
	}
	return p;
}

/* --- Making --- */

int listing_new(const struct slice *slice, uint64_t last, listing_fn fn, void *userdata,
		struct listing **ret)
{
	CLEANUP(listing_freep) struct listing *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->slice = slice;
	l->fn = fn;
	l->userdata = userdata;
	l->last = last;
	l->places = calloc(EXECSTREAM_PLACES + 1, sizeof(struct listing_place *));
	if (last > 0)
		l->newest = calloc(last, sizeof(*l->newest));
	if (!l->places || (last > 0 && !l->newest) ||
	    ARRAY_RESERVE(l->functions, l->capacity, 1) < 0)
		return -ENOMEM;
	l->functions[0] = (struct listing_function){0};
	l->n_functions = 1;
	*ret = TAKE_PTR(l);
	return 0;
}

void listing_freep(struct listing **lp)
{
	struct listing *l = *lp;

	if (!l)
		return;
	for (uint64_t i = 0; l->newest && i < MIN_OF(l->n_newest, l->last); i++)
		forget(&l->newest[i]);
	if (l->has_gap)
		forget(&l->gap);
	for (size_t i = 0; l->places && i <= EXECSTREAM_PLACES; i++)
		forget_place(l->places[i]);
	for (size_t i = 1; i < l->n_functions; i++) {
		free(l->functions[i].name);
		free(l->functions[i].image);
	}
	for (size_t i = 0; i < l->n_gap_names; i++)
		free(l->gap_names[i]);
	forget_origin(l->origin);
	free(l->newest);
	free(l->places);
	free(l->functions);
	free(l);
	*lp = NULL;
}

const struct listing_told *listing_told(const struct listing *l)
{
	return &l->told;
}

const struct listing_function *listing_function(const struct listing *l,
						const struct listing_place *place)
{
	return place->function == 0 ? NULL : &l->functions[place->function];
}

/* --- Handing on --- */

static int emit(struct listing *l, const struct listing_line *line)
{
	struct listing_line *to;

	l->told.lines++;
	if (!l->newest)
		return l->fn(l->userdata, line);
	to = &l->newest[l->n_newest % l->last];
	if (l->n_newest++ >= l->last)
		forget(to);
	refer(line);
	*to = *line;
	return 0;
}

static int emit_gap(struct listing *l)
{
	const struct listing_line gap = l->gap;
	int r;

	if (!l->has_gap)
		return 0;
	l->has_gap = false;
	r = emit(l, &gap);
	forget(&gap);
	return r;
}

static int emit_line(struct listing *l, const struct listing_line *line)
{
	int r = emit_gap(l);

	return r == 0 ? emit(l, line) : r;
}

/* --- Items --- */

static bool matches(const char *pattern, const char *text)
{
	return !pattern || fnmatch(pattern, text, 0) == 0;
}

/* Whether the slice has no function and no image, so that unknown code is of it. */
static bool any_function(const struct listing *l)
{
	return !l->slice->function && !l->slice->image;
}

static int take_head(struct listing *l, const struct execstream_item *item)
{
	const struct callstream_item span = {
		.time = item->time, .width = item->width, .value = item->trigger};

	l->told.first = item->time;
	l->told.trigger = item->trigger;
	return slice_span(l->slice, &span, &l->from, &l->to);
}

static int take_context(struct listing *l, const struct execstream_item *item)
{
	const struct slice *s = l->slice;
	const char *comm;
	struct listing_origin *o = with_texts(sizeof(*o), &item->name, &comm, 1);

	if (!o)
		return -ENOMEM;
	*o = (struct listing_origin){1, item->cpu, item->pid, item->tid, comm};
	forget_origin(l->origin);
	l->origin = o;
	l->wanted = (!s->has_cpu || s->cpu == o->cpu) && (!s->has_pid || s->pid == o->pid) &&
		    (!s->has_tid || s->tid == o->tid) && matches(s->comm, o->comm);
	return 0;
}

static int take_when(struct listing *l, const struct execstream_item *item)
{
	uint64_t middle;

	if (__builtin_add_overflow(item->time, item->width, &middle))
		return -EBADMSG;
	middle = item->time + item->width / 2;
	l->timed = true;
	l->time = item->time;
	l->width = item->width;
	l->within = middle >= l->from && middle <= l->to;
	return 0;
}

static int take_function(struct listing *l, const struct execstream_item *item)
{
	struct listing_function f = {.wanted = matches(l->slice->function, item->name) &&
					       matches(l->slice->image, item->image)};

	if (item->function != l->n_functions)
		return -EBADMSG;
	if (ARRAY_RESERVE(l->functions, l->capacity, l->n_functions + 1) < 0)
		return -ENOMEM;
	f.name = strdup(item->name);
	f.image = strdup(item->image);
	l->functions[l->n_functions++] = f;
	return f.name && f.image ? 0 : -ENOMEM;
}

static int take_place(struct listing *l, const struct execstream_item *item)
{
	const char *texts[] = {item->bytes, item->text, item->file}, *own[3];
	struct listing_place *p;

	if (item->place == 0 || item->function >= l->n_functions)
		return -EBADMSG;
	p = with_texts(sizeof(*p), texts, own, 3);
	if (!p)
		return -ENOMEM;
	*p = (struct listing_place){.refs = 1,
				    .function = item->function,
				    .line = item->line,
				    .address = item->address,
				    .offset = item->offset,
				    .bytes = own[0],
				    .text = own[1],
				    .file = own[2]};
	forget_place(l->places[item->place]);
	l->places[item->place] = p;
	return 0;
}

/* Whether PLACE (NULL: no code) is of the functions of the slice. */
static bool is_of_functions(const struct listing *l, const struct listing_place *place)
{
	if (!place || place->function == 0)
		return any_function(l);
	return l->functions[place->function].wanted;
}

static int take_code(struct listing *l, const struct execstream_item *item)
{
	bool is_insn = item->kind == EXECSTREAM_INSN;
	struct listing_line line = {.kind = item->kind,
				    .branch = item->branch,
				    .time = l->time,
				    .width = l->width,
				    .origin = l->origin,
				    .from = l->places[is_insn ? item->place : item->from],
				    .to = l->places[item->to]};

	l->insns += is_insn;
	l->branches += !is_insn;
	line.number = l->insns + l->branches + l->gaps;
	if (!l->timed || !l->origin || (is_insn && !line.from) || (item->from && !line.from) ||
	    (item->to && !line.to))
		return -EBADMSG;
	if (!l->wanted || !l->within ||
	    !(is_of_functions(l, line.from) || (line.to && is_of_functions(l, line.to))))
		return 0;
	return emit_line(l, &line);
}

/* The name, kept. NULL: no memory, or more names than there are faults. */
static const char *gap_name(struct listing *l, const char *name)
{
	for (size_t i = 0; i < l->n_gap_names; i++)
		if (strcmp(l->gap_names[i], name) == 0)
			return l->gap_names[i];
	if (l->n_gap_names == MAX_GAP_NAMES || !(l->gap_names[l->n_gap_names] = strdup(name)))
		return NULL;
	return l->gap_names[l->n_gap_names++];
}

static int take_gap(struct listing *l, const struct execstream_item *item)
{
	const char *name;
	int r;

	l->gaps++;
	if (!l->timed || !l->origin)
		return -EBADMSG;
	if (!l->wanted || !l->within)
		return 0;
	name = gap_name(l, item->name);
	if (!name)
		return -EBADMSG;
	if (l->has_gap && l->gap.gap == name && l->gap.origin->cpu == l->origin->cpu &&
	    l->gap.origin->tid == l->origin->tid && l->gap.origin->pid == l->origin->pid) {
		l->gap.gaps++;
		return 0;
	}
	r = emit_gap(l);
	l->gap = (struct listing_line){.kind = EXECSTREAM_GAP,
				       .time = l->time,
				       .width = l->width,
				       .origin = l->origin,
				       .gap = name,
				       .gaps = 1};
	refer(&l->gap);
	l->has_gap = true;
	return r;
}

static int take_end(struct listing *l, const struct execstream_item *item)
{
	if (item->branches != l->branches || item->insns != l->insns || item->gaps != l->gaps)
		return -EBADMSG;
	l->ended = true;
	l->told.branches = l->branches;
	l->told.insns = l->insns;
	l->told.gaps = l->gaps;
	return 0;
}

int listing_take(void *listing, char *line)
{
	struct listing *l = listing;
	struct execstream_item item;
	int r = execstream_parse(line, &item);

	if (r != 0 || l->ended || l->begun == (item.kind == EXECSTREAM_HEAD))
		return -EBADMSG;
	l->begun = true;
	switch (item.kind) {
	case EXECSTREAM_HEAD: return take_head(l, &item);
	case EXECSTREAM_CONTEXT: return take_context(l, &item);
	case EXECSTREAM_WHEN: return take_when(l, &item);
	case EXECSTREAM_FUNCTION: return take_function(l, &item);
	case EXECSTREAM_PLACE: return take_place(l, &item);
	case EXECSTREAM_GAP: return take_gap(l, &item);
	case EXECSTREAM_RECORDING: l->told.recording += item.count; return 0;
	case EXECSTREAM_END: return take_end(l, &item);
	default: return take_code(l, &item);
	}
}

int listing_finish(struct listing *l, bool cut)
{
	int r = cut ? 0 : emit_gap(l);
	uint64_t first = l->n_newest > l->last ? l->n_newest - l->last : 0;

	if (!l->ended && !cut)
		return -EBADMSG;
	for (uint64_t i = first; i < l->n_newest && r == 0; i++)
		r = l->fn(l->userdata, &l->newest[i % l->last]);
	return r;
}
