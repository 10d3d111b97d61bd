/*
 * Finds the stretches of user code in packets. A stretch must begin here where the flow asks its
 * context function: behind TIP.PGE, and where packets are found again after some were lost.
 */
#include "decoder/worker/turns/scan.h"

#include <assert.h>

void scan_begin(struct scan *s, const struct flow *f, const struct scan_stretch *first)
{
	s->done = s->broken = false;
	s->open = s->readers = true;
	s->guests = flow_walks_guests(f);
	flow_readers(f, &s->reader, &s->timing);
	s->next = *first;
	s->begin = s->reader;
}

void scan_start(struct scan *s, const struct flow_config *config, size_t start, size_t stop)
{
	const struct errata errata = errata_for(config->cpu_family, config->cpu_model);
	const struct timing_config timing = {.mtc_period = config->mtc_period,
					     .max_nonturbo_ratio = config->max_nonturbo_ratio,
					     .tsc_art_num = config->tsc_art_num,
					     .tsc_art_den = config->tsc_art_den,
					     .end_tsc = config->end_tsc,
					     .quirks = event_quirks(&errata),
					     .skl168 = errata.skl168};

	assert(start <= stop && stop <= config->size);
	*s = (struct scan){.broken = true, .guests = config->guests};
	event_reader_init(&s->reader, config->trace, config->size, start, stop, errata);
	timing_init(&s->timing, config->trace, config->size, start, &timing);
}

static void begin(struct scan *s, const struct event *e, uint64_t ip)
{
	s->next = (struct scan_stretch){.offset = e->offset, .ip = ip, .broken = s->broken};
	if (s->readers) /* a reader is large to copy */
		s->begin = s->reader;
	timing_at(&s->timing, e->offset, &s->next.enter_lo, &s->next.enter_hi);
	s->open = true;
	s->broken = false;
}

/* E ends the open stretch, if there is one. True: *ret is it. */
static bool end(struct scan *s, const struct event *e, enum scan_end how, struct scan_stretch *ret)
{
	if (!s->open)
		return false;
	s->open = false;
	*ret = s->next;
	if (s->ended)
		*s->ended = s->begin;
	ret->end = (uint8_t)how;
	ret->until = e->offset;
	if (how == SCAN_END_ASYNC && e->has_from)
		ret->left = e->from;
	if (e->kind == EVENT_DISABLE && e->has_to)
		ret->left = e->to;
	timing_at(&s->timing, e->offset, &ret->leave_lo, &ret->leave_hi);
	return true;
}

/* E is an event that says nothing about what was executed before it. */
static bool lose(struct scan *s, const struct event *e, struct scan_stretch *ret)
{
	bool ended = end(s, e, SCAN_END_UNKNOWN, ret);

	s->broken = true;
	return ended;
}

/* With KNOWN, execution is at IP: a stretch begins there unless one is open. */
static void appear(struct scan *s, const struct event *e, bool known, uint64_t ip)
{
	if (!s->open && known)
		begin(s, e, ip);
}

/* Whether E is about code in a virtual machine, which is no thread's. */
static bool is_guests(const struct event *e)
{
	return e->guest &&
	       (e->kind == EVENT_ENABLE || e->kind == EVENT_TIP || e->kind == EVENT_ASYNC ||
		e->kind == EVENT_STATUS || (e->kind == EVENT_PSB && e->has_from));
}

/* True: a stretch ended, *ret. */
static bool on_event(struct scan *s, const struct event *e, struct scan_stretch *ret)
{
	bool ended;

	/* As if the packets of a virtual machine were lost. */
	if (!s->guests && is_guests(e))
		return lose(s, e, ret);
	switch (e->kind) {
	case EVENT_ENABLE:
		ended = s->open && lose(s, e, ret);
		if (e->has_to)
			begin(s, e, e->to);
		else
			s->broken = true;
		return ended;
	case EVENT_DISABLE: return end(s, e, SCAN_END_BRANCH, ret);
	case EVENT_ASYNC_OFF: return end(s, e, SCAN_END_ASYNC, ret);
	case EVENT_OVERFLOW:
		ended = lose(s, e, ret);
		appear(s, e, e->has_to, e->to);
		return ended;
	case EVENT_PSB:
		if (!e->has_from)
			return s->open && lose(s, e, ret);
		appear(s, e, true, e->from);
		return false;
	case EVENT_TIP:
	case EVENT_ASYNC:
		/* Where the trace has the kernel, too, a stretch ends where the kernel begins. */
		if (e->has_to && scan_is_kernel(e->to))
			return end(s, e, e->kind == EVENT_TIP ? SCAN_END_BRANCH : SCAN_END_ASYNC,
				   ret);
		appear(s, e, e->has_to, e->to);
		return false;
	case EVENT_STATUS: appear(s, e, s->broken && e->has_from, e->from); return false;
	case EVENT_BAD:
	case EVENT_STOP: return lose(s, e, ret);
	case EVENT_END: s->done = true; return end(s, e, SCAN_END_UNKNOWN, ret);
	default: return false;
	}
}

bool scan_next(struct scan *s, struct scan_stretch *ret, struct event_reader *ret_reader)
{
	struct event e;

	assert(!ret_reader || s->readers); /* none after scan_start() */
	s->ended = ret_reader;
	while (!s->done) {
		/* Branches do not end a stretch. */
		if (s->open)
			event_pass_branches(&s->reader);
		event_next(&s->reader, &e);
		if (on_event(s, &e, ret))
			return true;
	}
	return false;
}
