/*
 * speedscope's evented profiles: for each thread one list of frames that open and close, in order.
 * The stream has the threads mixed, and a JSON document cannot: each thread's events go to a strand
 * of the spool and are written at the end.
 */
#include "ctl/export/export_private.h"

#include "proto/json.h"

/* Frames of the document before those of functions. */
enum { FRAME_OFF_CPU, FRAME_GAP, FRAMES_OWN };

struct track {
	struct spool_strand *strand;
	uint64_t last;	    /* time of the last event */
	uint64_t gap_until; /* end of the last gap */
	bool off, in_gap;   /* such a frame is open */
	uint64_t n;
};

static int track_of(struct exporter *e, struct export_thread *t, struct track **ret)
{
	struct track *track = t->own;
	int r;

	*ret = track;
	if (track)
		return 0;
	track = calloc(1, sizeof(*track));
	if (!track)
		return -ENOMEM;
	t->own = *ret = track;
	track->last = e->first;
	r = spool_strand_new(e->own, &track->strand);
	return r;
}

/* An event is two numbers: time since the last one; frame and whether it closes. */
static int put(struct exporter *e, struct track *track, uint64_t time, uint32_t frame, bool close)
{
	int r;

	time = MAX_OF(time, track->last);
	r = spool_put(e->own, track->strand, time - track->last);
	track->last = time;
	track->n++;
	return r < 0 ? r : spool_put(e->own, track->strand, (uint64_t)frame << 1 | close);
}

/* Closes the frames of ours before something of the thread happens at TIME. A gap is the innermost
 * frame. */
static int resume(struct exporter *e, struct track *track, uint64_t time)
{
	int r = 0;

	if (track->in_gap)
		r = put(e, track, MIN_OF(time, track->gap_until), FRAME_GAP, true);
	if (r == 0 && track->off)
		r = put(e, track, time, FRAME_OFF_CPU, true);
	track->off = track->in_gap = false;
	return r;
}

/* Opens a frame for the rest of the last gap, if TIME lies in it. */
static int go_on(struct exporter *e, struct track *track, uint64_t time)
{
	if (track->gap_until <= MAX_OF(time, track->last))
		return 0;
	track->in_gap = true;
	return put(e, track, time, FRAME_GAP, false);
}

static int event(struct exporter *e, struct export_thread *t, uint64_t time, uint32_t function,
		 bool close)
{
	struct track *track;
	int r = track_of(e, t, &track);

	if (r == 0)
		r = resume(e, track, time);
	if (r == 0)
		r = put(e, track, time, FRAMES_OWN + function, close);
	return r < 0 ? r : go_on(e, track, time);
}

static int start(struct exporter *e)
{
	struct spool *s;
	int r = spool_new(&s);

	if (r == 0)
		e->own = s;
	return r;
}

static int begin(struct exporter *e, struct export_thread *t, struct export_frame *f)
{
	return event(e, t, f->begin, f->function, false);
}

static int end(struct exporter *e, struct export_thread *t, const struct export_call *c)
{
	return event(e, t, c->end, c->frame->function, true);
}

/* Within a function, a frame shows the time without a CPU. */
static int off(struct exporter *e, struct export_thread *t, const struct callstream_item *i)
{
	struct track *track;
	int r = 0;

	if (t->n == 0)
		return 0;
	r = track_of(e, t, &track);
	if (r == 0)
		r = resume(e, track, i->time);
	if (r < 0)
		return r;
	track->off = true;
	r = put(e, track, i->time, FRAME_OFF_CPU, false);
	return r < 0 ? r : go_on(e, track, i->time);
}

static int on(struct exporter *e, struct export_thread *t, const struct callstream_item *i)
{
	struct track *track = t->own;
	int r;

	if (!track || !track->off)
		return 0;
	r = resume(e, track, i->time);
	return r < 0 ? r : go_on(e, track, i->time);
}

/* A frame shows the gap, within the open calls, and within the time without a CPU. The gap of a CPU
 * is no thread's. */
static int gap(struct exporter *e, struct export_thread *t, const struct callstream_item *i)
{
	struct track *track;
	int r;

	if (!t)
		return 0;
	r = track_of(e, t, &track);
	if (r == 0 && track->in_gap)
		r = put(e, track, MIN_OF(i->time, track->gap_until), FRAME_GAP, true);
	if (r < 0)
		return r;
	track->in_gap = false;
	track->gap_until = MAX_OF(track->gap_until, i->time + i->width);
	return go_on(e, track, i->time);
}

static int write_events(struct exporter *e, struct json_writer *w, struct track *track)
{
	uint64_t time = 0, passed = 0, v = 0;
	int r = spool_rewind(e->own, track->strand);

	for (uint64_t i = 0; i < track->n && r == 0; i++) {
		r = spool_get(e->own, track->strand, &passed);
		if (r == 0)
			r = spool_get(e->own, track->strand, &v);
		time += passed;
		json_begin_object(w, NULL);
		json_string(w, "type", v & 1 ? "C" : "O");
		json_u64(w, "frame", v >> 1);
		json_u64(w, "at", time);
		json_end_object(w);
	}
	return r;
}

static int write_profile(struct exporter *e, struct json_writer *w, struct export_thread *t)
{
	struct track *track = t->own;
	char title[EXPORT_MAX_NAME + 32];
	int r = resume(e, track, MAX_OF(e->until, track->gap_until));

	if (r < 0)
		return r;
	thread_title(e, t, title);
	json_begin_object(w, NULL);
	json_string(w, "type", "evented");
	json_string(w, "name", title);
	json_string(w, "unit", "nanoseconds");
	json_u64(w, "startValue", 0);
	json_u64(w, "endValue", MAX_OF(e->until, track->last) - e->first);
	json_begin_array(w, "events");
	r = write_events(e, w, track);
	json_end_array(w);
	json_end_object(w);
	return r;
}

static void write_frame(struct json_writer *w, const char *name)
{
	json_begin_object(w, NULL);
	json_string(w, "name", name);
	json_end_object(w);
}

static void write_frames(struct exporter *e, struct json_writer *w)
{
	json_begin_object(w, "shared");
	json_begin_array(w, "frames");
	write_frame(w, "[off CPU]");
	write_frame(w, "[gap]");
	for (uint32_t i = 0; i < e->n_functions; i++) {
		const struct export_function *f = &e->functions[i];
		const char *file = name_text(e, f->file);

		json_begin_object(w, NULL);
		json_string(w, "name", function_name(e, i));
		json_string(w, "file", *file ? file : name_text(e, f->image));
		if (f->line > 0)
			json_u64(w, "line", f->line);
		json_end_object(w);
	}
	json_end_array(w);
	json_end_object(w);
}

static int finish(struct exporter *e)
{
	CLEANUP(json_writer_freep) struct json_writer *w = NULL;
	int r = json_writer_new_fd(e->out.fd, 0, false, &w);

	if (r < 0)
		return r;
	json_begin_object(w, NULL);
	json_string(w, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_string(w, "exporter", "ptsnapctl");
	json_begin_array(w, "profiles");
	for (uint32_t i = 0; i < e->n_threads && r == 0; i++)
		if (e->threads[i] && e->threads[i]->own)
			r = write_profile(e, w, e->threads[i]);
	if (r < 0)
		return r;
	json_end_array(w);
	write_frames(e, w);
	json_end_object(w);
	return json_writer_finish(w);
}

static void done(struct exporter *e)
{
	struct spool *s = e->own;

	for (uint32_t i = 0; i < e->n_threads; i++) {
		struct track *track = e->threads[i] ? e->threads[i]->own : NULL;

		if (track)
			spool_strand_free(track->strand);
		free(track);
	}
	spool_freep(&s);
}

const struct export_ops speedscope_ops = {
	.start = start,
	.begin = begin,
	.end = end,
	.on = on,
	.off = off,
	.gap = gap,
	.finish = finish,
	.done = done,
};
