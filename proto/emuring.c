/*
 * The shared memory between the recorder and the software PMU: where things lie, and the kernel's
 * half of a DATA ring. Called by capture/source_emu.c in ptsnapd (layout) and by the plugin in the
 * emulator's process (records). The other process may write anything into this memory at any time,
 * so every value is read once and used modulo the ring.
 */
#include "proto/emuring.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <linux/perf_event.h>

#include "proto/base.h"
#include "proto/perfrecord.h"
#include "proto/ptpacket.h"

#define PAGE 4096u

static bool is_ring_size(uint64_t size)
{
	return size >= PAGE && (size & (size - 1)) == 0;
}

int emuring_layout(uint32_t n_cpus, uint64_t data_size, uint64_t aux_size, uint64_t *ret_stride,
		   uint64_t *ret_total)
{
	uint64_t stride, all;

	if (n_cpus == 0 || n_cpus > EMURING_MAX_CPUS)
		return -EINVAL;
	if (!is_ring_size(data_size) || !is_ring_size(aux_size))
		return -EINVAL;
	if (__builtin_add_overflow(data_size, aux_size, &stride) ||
	    __builtin_add_overflow(stride, EMURING_CPU_SIZE + PAGE, &stride) ||
	    __builtin_mul_overflow(stride, n_cpus, &all) ||
	    __builtin_add_overflow(all, EMURING_HEAD_SIZE, &all) || all > INT64_MAX)
		return -EINVAL;
	*ret_stride = stride;
	*ret_total = all;
	return 0;
}

struct emuring_cpu *emuring_cpu_at(struct emuring_head *head, uint32_t cpu)
{
	return (void *)((uint8_t *)head + EMURING_HEAD_SIZE + cpu * head->cpu_stride);
}

struct perf_event_mmap_page *emuring_page_at(struct emuring_head *head, uint32_t cpu)
{
	return (void *)((uint8_t *)emuring_cpu_at(head, cpu) + EMURING_CPU_SIZE);
}

uint8_t *emuring_data_at(struct emuring_head *head, uint32_t cpu)
{
	return (uint8_t *)emuring_page_at(head, cpu) + PAGE;
}

uint8_t *emuring_aux_at(struct emuring_head *head, uint32_t cpu)
{
	return emuring_data_at(head, cpu) + head->data_size;
}

/* One DATA ring as its writer sees it. */
struct writer {
	uint8_t *data;
	uint64_t size, head, room;
};

static void writer_init(struct writer *w, struct emuring_head *head, uint32_t cpu)
{
	struct perf_event_mmap_page *page = emuring_page_at(head, cpu);
	uint64_t tail = __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE);
	uint64_t used;

	w->data = emuring_data_at(head, cpu);
	w->size = head->data_size;
	w->head = page->data_head;
	/* A tail that the reader got wrong must not make us write outside of the ring. */
	used = w->head - tail;
	w->room = used > w->size ? 0 : w->size - used;
}

static void writer_put(struct writer *w, const void *record, size_t size)
{
	uint64_t at = w->head & (w->size - 1);
	size_t first = (size_t)MIN_OF((uint64_t)size, w->size - at);

	memcpy(w->data + at, record, first);
	memcpy(w->data, (const uint8_t *)record + first, size - first);
	w->head += size;
	w->room -= size;
}

/* The trailer of RECORD, last PERFRECORD_SAMPLE_ID_SIZE bytes, serves the LOST record too: same
 * task, same time, same CPU, as the kernel does it (perf_output_begin). */
static size_t compose_lost(const uint8_t *record, size_t size, uint64_t lost, uint8_t *buffer,
			   size_t capacity)
{
	struct perfrecord r = {.type = PERF_RECORD_LOST, .pid = UINT32_MAX, .tid = UINT32_MAX};
	const uint8_t *trailer = record + size - PERFRECORD_SAMPLE_ID_SIZE;
	size_t composed = 0;

	memcpy(&r.pid, trailer, 4);
	memcpy(&r.tid, trailer + 4, 4);
	memcpy(&r.time, trailer + 8, 8);
	memcpy(&r.cpu, trailer + 16, 4);
	memcpy(&r.id, trailer + 24, 8);
	r.u.lost.id = r.id;
	r.u.lost.lost = lost;
	return perfrecord_compose(&r, buffer, capacity, &composed) < 0 ? 0 : composed;
}

int emuring_write_record(struct emuring_head *head, uint32_t cpu, const void *record, size_t size)
{
	struct emuring_cpu *c = emuring_cpu_at(head, cpu);
	uint64_t lost = atomic_load_explicit(&c->data_lost, memory_order_relaxed);
	uint8_t lost_record[128];
	size_t lost_size = 0;
	struct writer w;

	writer_init(&w, head, cpu);
	if (lost > 0 && size >= PERFRECORD_SAMPLE_ID_SIZE)
		lost_size = compose_lost(record, size, lost, lost_record, sizeof(lost_record));
	if (w.room < (uint64_t)size + lost_size) {
		atomic_store_explicit(&c->data_lost, lost + 1, memory_order_relaxed);
		return EMURING_LOST;
	}
	if (lost_size > 0) {
		writer_put(&w, lost_record, lost_size);
		atomic_store_explicit(&c->data_lost, 0, memory_order_relaxed);
	}
	writer_put(&w, record, size);
	__atomic_store_n(&emuring_page_at(head, cpu)->data_head, w.head, __ATOMIC_RELEASE);
	return 0;
}

uint64_t emuring_finish(struct emuring_cpu *cpu, uint8_t *aux, uint64_t size, uint64_t pos)
{
	uint64_t tnt = atomic_exchange(&cpu->tnt, 1);
	uint8_t bytes[8] = {PT_OPC_EXT, PT_EXT_TNT64};
	size_t n = sizeof(bytes);

	if (tnt <= 1 || tnt >> (PT_TNT64_MAX + 1) != 0)
		return pos;
	if (tnt >> (PT_TNT8_MAX + 1) == 0) {
		bytes[0] = (uint8_t)(tnt << 1);
		n = 1;
	}
	for (size_t i = 0; n > 1 && i < 6; i++)
		bytes[2 + i] = (uint8_t)(tnt >> (8 * i));
	for (size_t i = 0; i < n; i++)
		aux[(pos + i) & (size - 1)] = bytes[i];
	return pos + n;
}
