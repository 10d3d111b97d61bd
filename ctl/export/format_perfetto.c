/*
 * Perfetto's protobuf trace. Threads are tracks with a slice for each call; switches are the
 * kernel's sched_switch events, from which Perfetto makes a track for each CPU and the states of
 * threads; gaps have tracks of their own; other events are instants, or counters of a CPU.
 *
 * Field numbers are those of protos/perfetto/trace in Perfetto's repository. Times are
 * CLOCK_MONOTONIC, which the first packet declares to be the clock of the trace.
 */
#include "ctl/export/export_private.h"

#include <stdio.h>

/* Trace */
#define TRACE_PACKET 1u
/* TracePacket */
#define PACKET_FTRACE	  1u
#define PACKET_CLOCKS	  6u
#define PACKET_TIMESTAMP  8u
#define PACKET_SEQUENCE	  10u
#define PACKET_EVENT	  11u
#define PACKET_INTERNED	  12u
#define PACKET_FLAGS	  13u
#define PACKET_CLOCK_ID	  58u
#define PACKET_DESCRIPTOR 60u
#define SEQUENCE	  1u
#define FLAGS_CLEARED	  1u
#define FLAGS_NEEDS	  2u
/* ClockSnapshot, ClockSnapshot.Clock, BuiltinClock */
#define CLOCKS_CLOCK   1u
#define CLOCKS_PRIMARY 2u
#define CLOCK_ID       1u
#define CLOCK_TIME     2u
#define MONOTONIC      3u
#define BOOTTIME       6u
/* InternedData, EventName */
#define INTERNED_NAMES 2u
#define NAME_IID       1u
#define NAME_TEXT      2u
/* TrackDescriptor, ProcessDescriptor, ThreadDescriptor, CounterDescriptor */
#define TRACK_UUID    1u
#define TRACK_NAME    2u
#define TRACK_PROCESS 3u
#define TRACK_THREAD  4u
#define TRACK_PARENT  5u
#define TRACK_COUNTER 8u
#define PROCESS_PID   1u
#define PROCESS_NAME  6u
#define THREAD_PID    1u
#define THREAD_TID    2u
#define THREAD_NAME   5u
/* TrackEvent, DebugAnnotation */
#define EVENT_ANNOTATION 4u
#define EVENT_TYPE	 9u
#define EVENT_NAME_IID	 10u
#define EVENT_TRACK	 11u
#define EVENT_NAME	 23u
#define EVENT_COUNTER	 30u
#define EVENT_DOUBLE	 44u /* a counter, too */
#define TYPE_BEGIN	 1u
#define TYPE_END	 2u
#define TYPE_INSTANT	 3u
#define TYPE_COUNTER	 4u
#define ANNOTATION_UINT	 3u
#define ANNOTATION_TEXT	 6u
#define ANNOTATION_NAME	 10u
/* FtraceEventBundle, FtraceEvent, SchedSwitchFtraceEvent */
#define FTRACE_CPU    1u
#define FTRACE_EVENT  2u
#define FEVENT_TIME   1u
#define FEVENT_PID    2u
#define FEVENT_SWITCH 4u
#define PREV_COMM     1u
#define PREV_PID      2u
#define PREV_PRIO     3u
#define PREV_STATE    4u
#define NEXT_COMM     5u
#define NEXT_PID      6u
#define NEXT_PRIO     7u
/* States of a task, as the kernel's include/linux/sched.h has them; a runnable task has 0. */
#define STATE_SLEEPS 1u
#define STATE_DEAD   16u
#define PRIO	     120u

/* Kinds of tracks; the lower half of a UUID says which one. 0 is Perfetto's own. */
enum track_kind {
	TRACK_OF_THREAD = 1,
	TRACK_GAPS,
	TRACK_CPU_GAPS,
	TRACK_CPU_COUNTER,
	TRACK_THREAD_COUNTER,
	TRACK_CPU,
	TRACK_TRIGGER,
	TRACK_OF_PROCESS
};

#define UUID(kind, n) ((uint64_t)(kind) << 56 | (uint64_t)(n))

/* A track of gaps. */
struct gaps {
	bool declared;
	uint64_t until; /* end of the last one */
};

struct cpu {
	uint32_t pid; /* of the thread that runs as far as was written; 0: idle */
	uint32_t name;
	bool instants, frequency; /* tracks that were declared */
	struct gaps gaps;
};

struct perfetto {
	struct bytes_out packet;
	struct cpu *cpus;
	uint32_t n_cpus, cpus_capacity;
};

/* --- Packets --- */

static struct bytes_out *packet(struct exporter *e, uint64_t time)
{
	struct bytes_out *m = &((struct perfetto *)e->own)->packet;

	pb_number(m, PACKET_SEQUENCE, SEQUENCE);
	if (time > 0) {
		pb_number(m, PACKET_TIMESTAMP, time);
		pb_number(m, PACKET_CLOCK_ID, MONOTONIC);
	}
	return m;
}

static int packet_done(struct exporter *e)
{
	return pb_write(&e->out, TRACE_PACKET, &((struct perfetto *)e->own)->packet);
}

static int declare(struct exporter *e, uint64_t uuid, uint64_t parent, const char *name,
		   bool counter)
{
	struct bytes_out *m = packet(e, 0);
	size_t track = pb_begin(m, PACKET_DESCRIPTOR);

	pb_number(m, TRACK_UUID, uuid);
	if (parent)
		pb_number(m, TRACK_PARENT, parent);
	pb_text(m, TRACK_NAME, name);
	if (counter)
		pb_end(m, pb_begin(m, TRACK_COUNTER));
	pb_end(m, track);
	return packet_done(e);
}

/* An event up to its name; the caller adds the rest and ends *RET_EVENT. */
static struct bytes_out *event(struct exporter *e, uint64_t time, uint32_t type, uint64_t uuid,
			       size_t *ret_event)
{
	struct bytes_out *m = packet(e, time);

	pb_number(m, PACKET_FLAGS, FLAGS_NEEDS);
	*ret_event = pb_begin(m, PACKET_EVENT);
	pb_number(m, EVENT_TYPE, type);
	pb_number(m, EVENT_TRACK, uuid);
	return m;
}

static int event_done(struct exporter *e, size_t event)
{
	pb_end(&((struct perfetto *)e->own)->packet, event);
	return packet_done(e);
}

static void annotate(struct bytes_out *m, const char *name, const char *text, uint64_t v)
{
	size_t at = pb_begin(m, EVENT_ANNOTATION);

	pb_text(m, ANNOTATION_NAME, name);
	if (text)
		pb_text(m, ANNOTATION_TEXT, text);
	else
		pb_number(m, ANNOTATION_UINT, v);
	pb_end(m, at);
}

/* --- Definitions --- */

/* A function's name is written once, and has a number in events. */
static int function(struct exporter *e, uint32_t n)
{
	struct bytes_out *m = packet(e, 0);
	size_t data, entry;

	pb_number(m, PACKET_FLAGS, FLAGS_NEEDS);
	data = pb_begin(m, PACKET_INTERNED);
	entry = pb_begin(m, INTERNED_NAMES);
	pb_number(m, NAME_IID, (uint64_t)n + 1);
	pb_text(m, NAME_TEXT, function_name(e, n));
	pb_end(m, entry);
	pb_end(m, data);
	return packet_done(e);
}

/* The clock of the trace is CLOCK_MONOTONIC. Perfetto takes the times of switches for
 * CLOCK_BOOTTIME; one reading for both makes them the same clock. */
static int write_clock(struct exporter *e)
{
	static const uint32_t ids[] = {MONOTONIC, BOOTTIME};
	struct bytes_out *m = packet(e, 0);
	size_t clocks, clock;

	pb_number(m, PACKET_FLAGS, FLAGS_CLEARED);
	clocks = pb_begin(m, PACKET_CLOCKS);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		clock = pb_begin(m, CLOCKS_CLOCK);
		pb_number(m, CLOCK_ID, ids[i]);
		pb_number(m, CLOCK_TIME, e->first);
		pb_end(m, clock);
	}
	pb_number(m, CLOCKS_PRIMARY, MONOTONIC);
	pb_end(m, clocks);
	return packet_done(e);
}

static int write_trigger(struct exporter *e)
{
	size_t at;
	int r;

	if (e->trigger == 0)
		return 0;
	r = declare(e, UUID(TRACK_TRIGGER, 0), 0, "trigger", false);
	if (r < 0)
		return r;
	pb_text(event(e, e->trigger, TYPE_INSTANT, UUID(TRACK_TRIGGER, 0), &at), EVENT_NAME,
		"trigger");
	return event_done(e, at);
}

static int start(struct exporter *e)
{
	struct perfetto *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	/* A name has at most EXPORT_MAX_NAME bytes, and no packet more than a few names. */
	bytes_out_init(&p->packet, 65536);
	e->own = p;
	r = write_clock(e);
	return r < 0 ? r : write_trigger(e);
}

/* A process has the name of its first thread. */
static int write_process(struct exporter *e, const struct export_thread *t)
{
	struct bytes_out *m = packet(e, 0);
	size_t track = pb_begin(m, PACKET_DESCRIPTOR), process;

	pb_number(m, TRACK_UUID, UUID(TRACK_OF_PROCESS, t->pid));
	process = pb_begin(m, TRACK_PROCESS);
	pb_number(m, PROCESS_PID, t->pid);
	pb_text(m, PROCESS_NAME, name_text(e, t->name));
	pb_end(m, process);
	pb_end(m, track);
	return packet_done(e);
}

static int thread(struct exporter *e, struct export_thread *t)
{
	char title[EXPORT_MAX_NAME + 32];
	struct bytes_out *m;
	size_t track, of_thread;
	int r = t->tid > 0 && t->tid == t->pid ? write_process(e, t) : 0;

	if (r < 0)
		return r;
	thread_title(e, t, title);
	/* A thread without an ID is unknown: several of these are not the same. */
	if (t->tid == 0)
		return declare(e, UUID(TRACK_OF_THREAD, t->number), 0, title, false);
	m = packet(e, 0);
	track = pb_begin(m, PACKET_DESCRIPTOR);
	pb_number(m, TRACK_UUID, UUID(TRACK_OF_THREAD, t->number));
	of_thread = pb_begin(m, TRACK_THREAD);
	pb_number(m, THREAD_PID, t->pid);
	pb_number(m, THREAD_TID, t->tid);
	pb_text(m, THREAD_NAME, name_text(e, t->name));
	pb_end(m, of_thread);
	pb_end(m, track);
	return packet_done(e);
}

/* --- Calls --- */

static int begin(struct exporter *e, struct export_thread *t, struct export_frame *f)
{
	size_t at;
	struct bytes_out *m = event(e, f->begin, TYPE_BEGIN, UUID(TRACK_OF_THREAD, t->number), &at);

	pb_number(m, EVENT_NAME_IID, (uint64_t)f->function + 1);
	if (f->how != CALLSTREAM_CALL)
		annotate(m, "began", callstream_begin_name(f->how), 0);
	return event_done(e, at);
}

static int end(struct exporter *e, struct export_thread *t, const struct export_call *c)
{
	size_t at;
	struct bytes_out *m = event(e, c->end, TYPE_END, UUID(TRACK_OF_THREAD, t->number), &at);

	annotate(m, "instructions", NULL, c->insns);
	if (c->how != CALLSTREAM_RETURN)
		annotate(m, "ended", callstream_end_name(c->how), 0);
	return event_done(e, at);
}

/* --- Switches --- */

static int cpu_of(struct exporter *e, uint32_t n, struct cpu **ret)
{
	struct perfetto *p = e->own;

	if (ARRAY_RESERVE(p->cpus, p->cpus_capacity, (size_t)n + 1) < 0)
		return -ENOMEM;
	while (p->n_cpus <= n)
		p->cpus[p->n_cpus++] = (struct cpu){0};
	*ret = &p->cpus[n];
	return 0;
}

static int write_switch(struct exporter *e, struct cpu *c, const struct callstream_item *i,
			uint32_t pid, uint32_t name, uint64_t state)
{
	struct bytes_out *m = packet(e, 0);
	size_t bundle = pb_begin(m, PACKET_FTRACE), fevent, body;

	pb_number(m, FTRACE_CPU, i->cpu);
	fevent = pb_begin(m, FTRACE_EVENT);
	pb_number(m, FEVENT_TIME, i->time);
	pb_number(m, FEVENT_PID, c->pid);
	body = pb_begin(m, FEVENT_SWITCH);
	pb_text(m, PREV_COMM, c->pid ? name_text(e, c->name) : "swapper");
	pb_number(m, PREV_PID, c->pid);
	pb_number(m, PREV_PRIO, PRIO);
	pb_number(m, PREV_STATE, state);
	pb_text(m, NEXT_COMM, pid ? name_text(e, name) : "swapper");
	pb_number(m, NEXT_PID, pid);
	pb_number(m, NEXT_PRIO, PRIO);
	pb_end(m, body);
	pb_end(m, fevent);
	pb_end(m, bundle);
	c->pid = pid;
	c->name = name;
	return packet_done(e);
}

static int on(struct exporter *e, struct export_thread *t, const struct callstream_item *i)
{
	struct cpu *c;
	int r = cpu_of(e, i->cpu, &c);

	if (r < 0 || t->tid == 0 || c->pid == t->tid)
		return r;
	return write_switch(e, c, i, t->tid, t->name, 0);
}

static int off(struct exporter *e, struct export_thread *t, const struct callstream_item *i)
{
	struct cpu *c;
	int r = cpu_of(e, i->cpu, &c);

	/* The next thread's begin may come before this one's end. */
	if (r < 0 || t->tid == 0 || (c->pid != 0 && c->pid != t->tid))
		return r;
	if (c->pid == 0) { /* had the CPU since before the stream */
		c->pid = t->tid;
		c->name = t->name;
	}
	return write_switch(e, c, i, 0, 0,
			    i->why == CALLSTREAM_BLOCKED  ? STATE_SLEEPS
			    : i->why == CALLSTREAM_EXITED ? STATE_DEAD
							  : 0);
}

/* --- Gaps and other events --- */

static int thread_gaps(struct export_thread *t, struct gaps **ret)
{
	struct gaps *gaps = t->own;

	if (!gaps)
		gaps = t->own = calloc(1, sizeof(*gaps));
	if (!gaps)
		return -ENOMEM;
	*ret = gaps;
	return 0;
}

static int gap_track(struct exporter *e, struct export_thread *t, uint32_t n, uint64_t *ret_uuid,
		     struct gaps **ret)
{
	char name[64] = "gaps";
	struct cpu *c;
	int r = t ? thread_gaps(t, ret) : cpu_of(e, n, &c);

	if (r < 0)
		return r;
	if (!t) {
		*ret = &c->gaps;
		snprintf(name, sizeof(name), "gaps of CPU %u", n);
	}
	*ret_uuid = t ? UUID(TRACK_GAPS, t->number) : UUID(TRACK_CPU_GAPS, n);
	if ((*ret)->declared)
		return 0;
	(*ret)->declared = true;
	return declare(e, *ret_uuid, t ? UUID(TRACK_OF_THREAD, t->number) : 0, name, false);
}

/* Slices of a track cannot overlap, as an end is of the innermost one: what lies in an earlier gap
 * is cut, and an annotation has the whole. */
static int gap(struct exporter *e, struct export_thread *t, const struct callstream_item *i)
{
	struct gaps *gaps = NULL;
	struct bytes_out *m;
	uint64_t uuid, begin, end;
	size_t at;
	int r = gap_track(e, t, i->cpu, &uuid, &gaps);

	if (r < 0)
		return r;
	begin = MAX_OF(i->time, gaps->until);
	end = gaps->until = MAX_OF(i->time + i->width, begin);
	m = event(e, begin, TYPE_BEGIN, uuid, &at);
	pb_text(m, EVENT_NAME, i->name);
	if (end - begin < i->width)
		annotate(m, "nanoseconds", NULL, i->width);
	r = event_done(e, at);
	if (r < 0)
		return r;
	event(e, end, TYPE_END, uuid, &at);
	return event_done(e, at);
}

static int frequency(struct exporter *e, const struct callstream_item *i, bool megahertz)
{
	uint64_t uuid = UUID(TRACK_CPU_COUNTER, i->cpu);
	char title[64];
	struct cpu *c;
	size_t at;
	int r = cpu_of(e, i->cpu, &c);

	if (r == 0 && !c->frequency) {
		c->frequency = true;
		snprintf(title, sizeof(title), "%s of CPU %u", megahertz ? "MHz" : "bus ratio",
			 i->cpu);
		r = declare(e, uuid, 0, title, true);
	}
	if (r < 0)
		return r;
	pb_number(event(e, i->time, TYPE_COUNTER, uuid, &at), EVENT_COUNTER, i->value);
	return event_done(e, at);
}

/* The rate is of the thread up to this time. */
static int rate(struct exporter *e, struct export_thread *t, const struct callstream_item *i)
{
	const uint64_t uuid = UUID(TRACK_THREAD_COUNTER, t->number);
	int r = 0;
	size_t at;

	if (t->node == 0)
		r = declare(e, uuid, UUID(TRACK_OF_THREAD, t->number), "instructions per cycle",
			    true);
	t->node = 1;
	if (r < 0)
		return r;
	pb_double(event(e, i->time, TYPE_COUNTER, uuid, &at), EVENT_DOUBLE, (double)i->value / 100);
	return event_done(e, at);
}

static int mark_track(struct exporter *e, const struct export_thread *t, uint32_t n, uint64_t *ret)
{
	char name[64];
	struct cpu *c;
	int r;

	*ret = t ? UUID(TRACK_OF_THREAD, t->number) : UUID(TRACK_CPU, n);
	if (t)
		return 0;
	r = cpu_of(e, n, &c);
	if (r < 0 || c->instants)
		return r;
	c->instants = true;
	snprintf(name, sizeof(name), "events of CPU %u", n);
	return declare(e, *ret, 0, name, false);
}

static int mark(struct exporter *e, struct export_thread *t, const struct callstream_item *i)
{
	struct bytes_out *m;
	uint64_t uuid;
	size_t at;
	int r;

	if (strcmp(i->name, "frequency") == 0 || strcmp(i->name, "ratio") == 0)
		return frequency(e, i, *i->name == 'f');
	if (t && strcmp(i->name, "ipc") == 0)
		return rate(e, t, i);
	/* The head had it. */
	if (!t && i->time == e->trigger && strcmp(i->name, "trigger") == 0)
		return 0;
	r = mark_track(e, t, i->cpu, &uuid);
	if (r < 0)
		return r;
	m = event(e, i->time, TYPE_INSTANT, uuid, &at);
	pb_text(m, EVENT_NAME, i->name);
	annotate(m, "value", NULL, i->value);
	return event_done(e, at);
}

static void done(struct exporter *e)
{
	struct perfetto *p = e->own;

	for (uint32_t i = 0; i < e->n_threads; i++)
		free(e->threads[i] ? e->threads[i]->own : NULL);
	if (!p)
		return;
	bytes_out_done(&p->packet);
	free(p->cpus);
	free(p);
}

const struct export_ops perfetto_ops = {
	.start = start,
	.thread = thread,
	.function = function,
	.begin = begin,
	.end = end,
	.on = on,
	.off = off,
	.gap = gap,
	.mark = mark,
	.done = done,
};
