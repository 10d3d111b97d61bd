/*
 * Checks which options of a decode go together. An option that has no effect on the view is
 * invalid.
 */
#include "proto/decode_options.h"

#include <string.h>

static bool slice_is_sound(const struct decode_options *o)
{
	const struct decode_slice *s = &o->slice;
	const bool report = o->view == WORKER_VIEW_REPORT, span = s->from || s->to;

	if ((s->has_cpu | s->has_pid | s->has_tid) > 1 || !memchr(s->comm, 0, sizeof(s->comm)) ||
	    s->from > WORKER_TIME_TRIGGER || s->to > WORKER_TIME_TRIGGER)
		return false;
	if (decode_slice_selects(s) && !report)
		return false;
	if (!decode_slice_selects(s) && !span)
		return true;
	return (report || o->view == WORKER_VIEW_CALLS || decode_is_listing(o)) &&
	       o->skim == WORKER_SKIM_NONE && !o->has_deadline && !o->has_only_uid && !o->keep;
}

bool decode_options_are_sound(const struct decode_options *o)
{
	const uint32_t flags = o->hash | o->pretty | o->has_deadline | o->keep | o->no_symbols |
			       o->lines | o->debug | o->has_only_uid;
	const bool sums = o->view == WORKER_VIEW_REPORT || o->view == WORKER_VIEW_SUMMARY;
	const bool skims = o->skim != WORKER_SKIM_NONE;

	if (o->view > WORKER_VIEW_CALLS || o->skim > WORKER_SKIM_TIP ||
	    o->retstack > WORKER_RETSTACK_LIBIPT || o->repeat > WORKER_MAX_REPEAT ||
	    o->threads > WORKER_MAX_THREADS || flags > 1)
		return false;
	if (o->has_only_uid && (o->view != WORKER_VIEW_REPORT || skims || o->repeat > 0 ||
				o->gap > 0 || o->keep || o->has_deadline))
		return false;
	if (o->lines && ((o->view != WORKER_VIEW_REPORT && o->view != WORKER_VIEW_CALLS &&
			  !decode_is_listing(o)) ||
			 skims))
		return false;
	if (!slice_is_sound(o))
		return false;
	if (decode_is_listing(o) && (skims || o->show & WORKER_SHOW_PTXED))
		return false;
	if (skims)
		return (sums || o->view == WORKER_VIEW_BRANCHES) && o->repeat == 0 &&
		       !o->has_deadline && !o->hash && o->gap == 0;
	if (o->repeat > 0)
		return o->view == WORKER_VIEW_SUMMARY && !o->has_deadline;
	return !o->has_deadline || sums;
}
