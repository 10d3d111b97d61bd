/*
 * The views of branches and instructions, and the choice of a view.
 */
#include "decoder/worker/view/views.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/worker/view/views_ptxed.h"
#include "proto/base.h"

#define CHUNK 4096u /* instruction addresses at once */

static void write_number(struct lines *l, const char *key, bool known, uint32_t v)
{
	char text[32];
	int n = known ? snprintf(text, sizeof(text), " %s %u", key, v)
		      : snprintf(text, sizeof(text), " %s -", key);

	lines_text(l, text, (size_t)n);
}

static void write_gap(struct lines *l, enum fault fault)
{
	const char *name = fault_name(fault);

	lines_text(l, "# gap ", 6);
	lines_text(l, name, strlen(name));
	lines_text(l, "\n", 1);
}

static enum fault fault_of(const struct replay_stretch *s, const struct flow_item *item)
{
	return s->gaps[item->gap - s->first_gap].fault;
}

/* Before the lines of S, if they are of another CPU or thread than the lines before: "# cpu N pid P
 * tid T", with "-" for what is not known. If only the process is known, "# gap thread-uncertain"
 * follows. */
static void write_origin(struct views_origin *v, struct lines *l, const struct replay_stretch *s,
			 const struct manifest *m)
{
	const struct timeline_thread *process = s->thread ? s->thread : s->process;
	uint32_t cpu = m->cpus[s->cpu].cpu;

	if (v->known && v->cpu == s->cpu && v->thread == s->thread && v->process == process)
		return;
	*v = (struct views_origin){true, s->cpu, s->thread, process};
	lines_text(l, "#", 1);
	write_number(l, "cpu", cpu != MANIFEST_ANY, cpu);
	write_number(l, "pid", process, process ? process->pid : 0);
	write_number(l, "tid", s->thread, s->thread ? s->thread->tid : 0);
	lines_text(l, "\n", 1);
	if (s->process)
		write_gap(l, FAULT_THREAD_UNCERTAIN);
}

/* Writes a line "FROM TO" for each branch that was taken. With WORKER_SHOW_TIME in SHOW, " LO HI"
 * follows: when the branch happened in TSC, 0 and all ones where unknown; with WORKER_SHOW_PLACES
 * too, " OFFSET" of the packet. Writes "# gap KIND" at each gap. 0 or the sticky error of L. */
static int write_branches(struct lines *l, const struct replay_stretch *s, uint64_t show)
{
	bool time = (show & WORKER_SHOW_TIME) != 0, places = (show & WORKER_SHOW_PLACES) != 0;

	for (size_t i = 0; i < s->n_items; i++) {
		const struct flow_item *item = &s->items[i];

		if (item->kind == FLOW_GAP)
			write_gap(l, fault_of(s, item));
		if (item->kind == FLOW_END || item->kind == FLOW_GAP || item->kind == FLOW_MARK)
			continue;
		lines_hex(l, item->from, ' ');
		lines_hex(l, item->to, time ? ' ' : '\n');
		if (!time)
			continue;
		lines_hex(l, item->tsc_lo, ' ');
		lines_hex(l, item->tsc_hi, places ? ' ' : '\n');
		if (places)
			lines_hex(l, item->offset, '\n');
	}
	return l->error;
}

bool views_each_run(const struct replay_stretch *s, const struct flow_item *item,
		    void (*fn)(void *userdata, const uint64_t *ips, size_t n), void *userdata)
{
	uint64_t ips[CHUNK], start = item->start;
	size_t left = item->insns, skip = 0;

	/* From the second chunk on, a chunk begins with the last instruction of the one before. */
	while (left > 0) {
		size_t want = MIN_OF(left + skip, CHUNK);
		size_t n = flow_run(s->flow, start, want, ips);

		if (n > skip)
			fn(userdata, ips + skip, n - skip);
		if (n < want || n <= skip)
			return false;
		left -= n - skip;
		start = ips[n - 1];
		skip = 1;
	}
	return true;
}

static void write_ips(void *userdata, const uint64_t *ips, size_t n)
{
	struct lines *l = userdata;

	for (size_t i = 0; i < n; i++)
		lines_hex(l, ips[i], '\n');
}

int views_insns(struct lines *l, const struct replay_stretch *s)
{
	for (size_t i = 0; i < s->n_items; i++) {
		if (!views_each_run(s, &s->items[i], write_ips, l) && l->error == 0)
			l->error = -ENOMEM;
		if (s->items[i].kind == FLOW_GAP)
			write_gap(l, fault_of(s, &s->items[i]));
	}
	return l->error;
}

/* The hashes of the two streams of instructions that an instruction belongs to. */
struct hashes {
	uint64_t cpu, thread;
	bool same; /* the two hashes are equal so far */
};

static void hash_ips(void *userdata, const uint64_t *ips, size_t n)
{
	struct hashes *hashes = userdata, h = *hashes;

	for (size_t i = 0; i < n; i++) {
		h.cpu = hash_u64(h.cpu, ips[i]);
		if (!h.same)
			h.thread = hash_u64(h.thread, ips[i]);
	}
	*hashes = h;
}

int views_hash_two(uint64_t *cpu, uint64_t *thread, const struct replay_stretch *s)
{
	struct hashes hashes = {*cpu, *thread, *cpu == *thread};

	for (size_t i = 0; i < s->n_items; i++)
		if (!views_each_run(s, &s->items[i], hash_ips, &hashes))
			return -ENOMEM;
	*cpu = hashes.cpu;
	*thread = hashes.same ? hashes.cpu : hashes.thread;
	return 0;
}

uint64_t views_hash(uint64_t hash, const struct replay_stretch *s)
{
	uint64_t same = hash;

	(void)views_hash_two(&hash, &same, s);
	return hash;
}

int views_init(struct views *v, const struct decode_options *options, int fd)
{
	*v = (struct views){.options = options};
	return lines_init(&v->lines, fd);
}

void views_done(struct views *v)
{
	for (size_t i = 0; i < v->n_ptxed; i++)
		views_ptxed_done(&v->ptxed[i]);
	free(v->ptxed);
	lines_done(&v->lines);
}

int views_begin(struct views *v, const struct replay *r, bool plain)
{
	const size_t n = r->manifest->n_cpus;
	int result = 0;

	assert(!v->ptxed); /* only once */
	v->replay = r;
	v->plain = plain && !(v->options->show & WORKER_SHOW_PLACES);
	if (v->options->view != WORKER_VIEW_INSNS || !(v->options->show & WORKER_SHOW_PTXED))
		return 0;
	v->ptxed = calloc(n + 1, sizeof(*v->ptxed));
	if (!v->ptxed)
		return -ENOMEM;
	while (v->n_ptxed < n && result == 0) {
		result = views_ptxed_init(&v->ptxed[v->n_ptxed], r, v->n_ptxed, v->options,
					  &v->lines);
		v->n_ptxed++;
	}
	if (result == 0 && n > 0)
		views_ptxed_begin(&v->ptxed[0]);
	return result;
}

void views_configure(const struct views *v, struct flow_config *flow)
{
	const uint64_t show = v->options->show;

	if (v->options->view == WORKER_VIEW_EVENTS)
		flow->marks = true;
	if (!v->ptxed)
		return;
	flow->marks = true;
	flow->ticks = (show & WORKER_SHOW_EVENT_TICK) != 0;
	flow->resume_at_psb = (show & WORKER_SHOW_RESYNC_ON_ERROR) == 0;
	flow->resume_at_tip = (show & WORKER_SHOW_RESYNC_ON_ERROR) != 0;
	flow->cut = true; /* libipt's newest decoders look no further */
}

int views_stretch(struct views *v, const struct replay_stretch *s)
{
	int r;

	if (!v->plain)
		write_origin(&v->origin, &v->lines, s, v->replay->manifest);
	if (v->options->view == WORKER_VIEW_BRANCHES)
		return write_branches(&v->lines, s, v->options->show);
	if (v->options->view == WORKER_VIEW_EVENTS)
		return views_events(&v->lines, s);
	if (!v->ptxed)
		return views_insns(&v->lines, s);
	r = views_ptxed_stretch(&v->ptxed[s->cpu], s);
	/* The next lines may be of another thread. */
	if (!v->plain)
		views_ptxed_settle(&v->ptxed[s->cpu]);
	return r;
}

/* Whether the view says of a gap what no line of another tool says. */
static bool tells_gaps(const struct views *v)
{
	const uint32_t view = v->options->view;

	return !v->ptxed && !(v->options->show & WORKER_SHOW_STREAM) &&
	       (view == WORKER_VIEW_BRANCHES || view == WORKER_VIEW_INSNS ||
		view == WORKER_VIEW_EVENTS);
}

void views_left_out(struct views *v, enum fault fault)
{
	if (!tells_gaps(v))
		return;
	write_gap(&v->lines, fault);
	v->origin.known = false;
}

void views_recording(struct views *v, enum fault fault, uint64_t count)
{
	if (tells_gaps(v))
		lines_print(&v->lines, "# recording %s %" PRIu64 "\n", fault_name(fault), count);
}

int views_end(struct views *v)
{
	/* The statistics come behind all lines. */
	for (size_t i = 0; i < v->n_ptxed; i++)
		views_ptxed_end(&v->ptxed[i]);
	return lines_flush(&v->lines);
}
