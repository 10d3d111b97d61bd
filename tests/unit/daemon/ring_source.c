/*
 * A source in memory, for tests of what comes after the rings.
 */
#include "tests/unit/daemon/ring_source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define PAGE  4096u
#define TOTAL (PAGE + RING_SOURCE_DATA + RING_SOURCE_AUX)

struct ring_source {
	struct source base;
	uint8_t scratch[PERFRECORD_MAX_SIZE];
};

static int nothing(struct source *s, uint32_t index)
{
	(void)s;
	(void)index;
	return 0;
}

static const struct source_ops ops = {.name = "emulated", .disable = nothing, .enable = nothing};

static void make_rings(struct ring_source *s, size_t cpu)
{
	struct perf_event_mmap_page *page =
		mmap(NULL, TOTAL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	page->data_offset = PAGE;
	page->data_size = RING_SOURCE_DATA;
	page->aux_offset = PAGE + RING_SOURCE_DATA;
	page->aux_size = RING_SOURCE_AUX;
	assert_int_equal(ring_init(&s->base.cpus[cpu].pt, page, TOTAL, s->scratch), 0);
}

struct ring_source *ring_source_new(size_t n_cpus)
{
	struct ring_source *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->base.ops = &ops;
	s->base.n_cpus = n_cpus;
	s->base.pt_terms = "tsc";
	s->base.cpus = calloc(n_cpus, sizeof(*s->base.cpus));
	assert_non_null(s->base.cpus);
	for (size_t i = 0; i < n_cpus; i++) {
		s->base.cpus[i].cpu = (uint32_t)i;
		make_rings(s, i);
	}
	return s;
}

void ring_source_free(struct ring_source *s)
{
	for (size_t i = 0; i < s->base.n_cpus; i++)
		if (s->base.cpus[i].pt.data)
			munmap(s->base.cpus[i].pt.page, TOTAL);
	free(s->base.cpus);
	free(s);
}

void ring_source_remove(struct ring_source *s, uint32_t cpu)
{
	const struct source_watch *w = s->base.watch;
	struct ring *r = &s->base.cpus[cpu].pt;

	w->ring_removed(w->userdata, cpu, r);
	munmap(r->page, TOTAL);
	r->data = NULL; /* the rest leads nowhere: who still looks at it will know */
	r->aux = NULL;
}

void ring_source_add(struct ring_source *s, uint32_t cpu)
{
	const struct source_watch *w = s->base.watch;

	make_rings(s, cpu);
	w->ring_added(w->userdata, cpu, &s->base.cpus[cpu].pt, 0);
}

struct source *ring_source_base(struct ring_source *s)
{
	return &s->base;
}

void ring_source_put_bytes(struct ring_source *s, size_t cpu, const void *bytes, size_t size)
{
	struct ring *r = &s->base.cpus[cpu].pt;
	uint64_t head = r->page->data_head;
	uint64_t tail = __atomic_load_n(&r->page->data_tail, __ATOMIC_ACQUIRE);

	assert_true(head + size - tail <= r->data_size);
	for (size_t i = 0; i < size; i++)
		r->data[(head + i) & (r->data_size - 1)] = ((const uint8_t *)bytes)[i];
	__atomic_store_n(&r->page->data_head, head + size, __ATOMIC_RELEASE);
}

void ring_source_put(struct ring_source *s, size_t cpu, const struct perfrecord *record)
{
	uint8_t bytes[1024];
	size_t size;

	assert_int_equal(perfrecord_compose(record, bytes, sizeof(bytes), &size), 0);
	ring_source_put_bytes(s, cpu, bytes, size);
}

struct perfrecord ring_source_switch(uint32_t pid, uint64_t time)
{
	struct perfrecord r = {.type = PERF_RECORD_SWITCH_CPU_WIDE,
			       .misc = PERF_RECORD_MISC_SWITCH_OUT,
			       .pid = pid,
			       .tid = pid,
			       .time = time};

	return r;
}

struct perfrecord ring_source_comm(uint32_t pid, const char *comm, uint64_t time)
{
	struct perfrecord r = {.type = PERF_RECORD_COMM, .pid = pid, .tid = pid, .time = time};

	r.u.comm.pid = r.u.comm.tid = pid;
	r.u.comm.comm = comm;
	return r;
}
