/*
 * Fuzzes the timeline with untrusted sideband records. Invariants: loaded records can be pushed
 * into a small log, folded, written and loaded again without a bad record; a question for any time
 * has an answer whose span contains that time; a CPU's turns follow one another without a break and
 * are never empty; an uncertain turn names no thread; without a loss every process is certain.
 */
#include <assert.h>
#include <stdint.h>

#include "proto/base.h"
#include "sideband/timeline/timeline.h"
#include "tests/support/timeline_look.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void push_all(struct timeline *t, const uint8_t *data, size_t size)
{
	struct perfrecord r;

	for (size_t at = 0; at < size; at += r.size) {
		if (perfrecord_parse(data + at, size - at, &r) >= 0)
			(void)timeline_push(t, &r, data + at, r.size);
		if (r.size == 0)
			return;
	}
}

static void ask(const struct timeline *t, uint64_t time)
{
	uint64_t since, until;

	for (size_t i = 0; i < timeline_n_threads(t) && i < 64; i++) {
		const struct timeline_thread *thread = timeline_thread(t, i);
		const struct space *s = timeline_space(t, thread->pid, time);
		const struct space_mapping *m = s ? space_find(s, time, time) : NULL;

		assert(!m || (m->begin <= time && time - m->start < m->size));
		assert(!timeline_space_uncertain(t, thread->pid, time) || timeline_loss(t, 0));
		(void)timeline_comm(t, thread->tid, time);
		(void)timeline_look_running(t, (uint32_t)i, time, &since, &until);
		assert(since <= time && (time < until || until == SPACE_NOW));
	}
}

static void check_turns(const struct timeline *t, uint32_t cpu)
{
	size_t n = timeline_n_turns(t, cpu);
	uint64_t at = 0;

	for (size_t i = 0; i < n; i++) {
		struct timeline_turn turn;

		timeline_get_turn(t, cpu, i, &turn);
		assert(i == 0 || turn.since == at);
		assert(turn.until > turn.since || turn.since == SPACE_NOW);
		assert(i + 1 < n || turn.until == SPACE_NOW);
		assert(!turn.uncertain || !turn.thread);
		assert(timeline_look_find_turn(t, cpu, turn.since) == i);
		at = turn.until;
	}
}

static void check(const struct timeline *t)
{
	for (uint64_t time = 1; time != 0; time *= 16)
		ask(t, time);
	for (uint32_t cpu = 0; cpu < 4096; cpu++)
		check_turns(t, cpu);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(timeline_freep) struct timeline *t = NULL, *loaded = NULL, *again = NULL;
	struct bytes_out out;
	uint64_t bad;

	bytes_out_init(&out, 64 << 20);
	assert(timeline_load(data, size, &loaded, &bad) == 0);
	check(loaded);
	assert(timeline_new(1024, 256 << 10, &t) == 0);
	push_all(t, data, size);
	assert(timeline_write(t, &out) == 0);
	assert(timeline_load(out.data, out.size, &again, &bad) == 0 && bad == 0);
	check(again);
	bytes_out_done(&out);
	return 0;
}
