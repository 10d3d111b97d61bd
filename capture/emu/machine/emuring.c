/*
 * The shared memory between the recorder and the software PMU: its layout, the kernel's side of a
 * DATA ring, and the messages that offer the memory to a recorder in another process. Other
 * processes may write anything into this memory at any time; every value is read once and used
 * modulo the ring. The recorder does not trust the peer that offers, either: each number of a
 * message is checked.
 */
#include "capture/emu/machine/emuring.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include <linux/perf_event.h>

#include "proto/base.h"
#include "proto/perf/perfrecord.h"

#define PAGE 4096u

static bool is_ring_size(uint64_t size)
{
	return size >= PAGE && (size & (size - 1)) == 0;
}

int emuring_layout(struct emuring_layout *l)
{
	uint64_t all;

	if (l->n_cpus == 0 || l->n_cpus > EMURING_MAX_CPUS || l->max_tasks < EMURING_MIN_TASKS ||
	    l->max_tasks > EMURING_MAX_TASKS)
		return -EINVAL;
	if (!is_ring_size(l->data_size) || !is_ring_size(l->aux_size))
		return -EINVAL;
	l->tasks_at = EMURING_HEAD_SIZE;
	l->cpus_at = l->tasks_at + (((uint64_t)l->max_tasks * EMURING_TASK_SIZE + PAGE - 1) &
				    ~(uint64_t)(PAGE - 1));
	if (__builtin_add_overflow(l->data_size, l->aux_size, &l->cpu_stride) ||
	    __builtin_add_overflow(l->cpu_stride, EMURING_CPU_SIZE + PAGE, &l->cpu_stride) ||
	    __builtin_mul_overflow(l->cpu_stride, l->n_cpus, &all) ||
	    __builtin_add_overflow(all, l->cpus_at, &all) || all > INT64_MAX)
		return -EINVAL;
	l->total = all;
	return 0;
}

int emuring_check(const struct emuring_head *head, uint64_t size)
{
	struct emuring_layout l;

	if (size < EMURING_HEAD_SIZE || head->magic != EMURING_MAGIC ||
	    head->version != EMURING_VERSION)
		return -EBADMSG;
	l = (struct emuring_layout){.n_cpus = head->n_cpus,
				    .max_tasks = head->max_tasks,
				    .data_size = head->data_size,
				    .aux_size = head->aux_size};
	if (emuring_layout(&l) < 0 || l.cpu_stride != head->cpu_stride ||
	    l.cpus_at != head->cpus_at || l.tasks_at != head->tasks_at || l.total > size)
		return -EBADMSG;
	return 0;
}

void emuring_attach(struct emuring *r, struct emuring_head *head)
{
	r->shared = head;
	r->fixed = *head;
}

struct emuring_cpu *emuring_cpu_at(const struct emuring *r, uint32_t cpu)
{
	return (void *)((uint8_t *)r->shared + r->fixed.cpus_at + cpu * r->fixed.cpu_stride);
}

struct emuring_task *emuring_task_at(const struct emuring *r, uint32_t task)
{
	return (void *)((uint8_t *)r->shared + r->fixed.tasks_at +
			(uint64_t)task * EMURING_TASK_SIZE);
}

struct perf_event_mmap_page *emuring_page_at(const struct emuring *r, uint32_t cpu)
{
	return (void *)((uint8_t *)emuring_cpu_at(r, cpu) + EMURING_CPU_SIZE);
}

uint8_t *emuring_data_at(const struct emuring *r, uint32_t cpu)
{
	return (uint8_t *)emuring_page_at(r, cpu) + PAGE;
}

uint8_t *emuring_aux_at(const struct emuring *r, uint32_t cpu)
{
	return emuring_data_at(r, cpu) + r->fixed.data_size;
}

/* One DATA ring as its writer sees it. */
struct writer {
	uint8_t *data;
	uint64_t size, head, room;
};

static void writer_put(struct writer *w, const void *record, size_t size)
{
	uint64_t at = w->head & (w->size - 1);
	size_t first = (size_t)MIN_OF((uint64_t)size, w->size - at);

	memcpy(w->data + at, record, first);
	memcpy(w->data, (const uint8_t *)record + first, size - first);
	w->head += size;
	w->room -= size;
}

/* Composes the LOST record that precedes RECORD. It has the same sample_id: the last
 * PERFRECORD_SAMPLE_ID_SIZE bytes of RECORD (same task, time and CPU, as in perf_output_begin). */
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

int emuring_write_record(const struct emuring *r, uint32_t cpu, const void *record, size_t size)
{
	struct perf_event_mmap_page *page = emuring_page_at(r, cpu);
	struct emuring_cpu *c = emuring_cpu_at(r, cpu);
	struct writer w = {.data = emuring_data_at(r, cpu),
			   .size = r->fixed.data_size,
			   .head = page->data_head};
	uint64_t used = w.head - __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE);
	uint64_t lost = atomic_load_explicit(&c->data_lost, memory_order_relaxed);
	uint8_t lost_record[128];
	size_t lost_size = 0;
	bool full;

	/* A wrong tail must not lead to a write outside of the ring. */
	w.room = used > w.size ? 0 : w.size - used;
	if (lost > 0 && size >= PERFRECORD_SAMPLE_ID_SIZE)
		lost_size = compose_lost(record, size, lost, lost_record, sizeof(lost_record));
	full = w.room < (uint64_t)size + lost_size;
	/* lose_every: the option --emu-lose. */
	if (full || (r->fixed.lose_every != 0 &&
		     (atomic_fetch_add(&c->records, 1) + 1) % r->fixed.lose_every == 0)) {
		atomic_store_explicit(&c->data_lost, lost + 1, memory_order_relaxed);
		return EMURING_LOST;
	}
	if (lost_size > 0) {
		writer_put(&w, lost_record, lost_size);
		atomic_store_explicit(&c->data_lost, 0, memory_order_relaxed);
		atomic_fetch_add(&r->shared->resync, 1);
	}
	writer_put(&w, record, size);
	__atomic_store_n(&page->data_head, w.head, __ATOMIC_RELEASE);
	return 0;
}

void emuring_add_reason(struct emuring_head *head, const char *why)
{
	uint32_t at, n = MIN_OF(atomic_load(&head->n_reasons), EMURING_MAX_REASONS);

	for (uint32_t i = 0; i < n; i++)
		if (strncmp(head->reasons[i], why, EMURING_REASON_SIZE - 1) == 0)
			return;
	at = atomic_fetch_add(&head->n_reasons, 1);
	if (at < EMURING_MAX_REASONS)
		strncpy(head->reasons[at], why, EMURING_REASON_SIZE - 1);
}

static bool is_text(const char *text, size_t size)
{
	return text[0] != '\0' && memchr(text, '\0', size);
}

static const char *what_is_wrong(const struct emuoffer *o, struct emuring_layout *ret_l)
{
	*ret_l = (struct emuring_layout){.n_cpus = o->n_cpus,
					 .max_tasks = o->max_tasks,
					 .data_size = o->data_size,
					 .aux_size = o->aux_size};
	if ((o->flags & ~EMURING_BUILD_ID) != 0 || o->n_cpus > EMUOFFER_MAX_CPUS ||
	    o->data_size > EMUOFFER_MAX_RING || o->aux_size > EMUOFFER_MAX_RING || o->pid == 0 ||
	    o->pid > INT_MAX || emuring_layout(ret_l) < 0)
		return "its layout is not valid";
	/* clock_tsc_to_ns() and clock_ns_to_tsc() divide by these. */
	if (o->clock > EMURING_CLOCK_VIRTUAL || o->tsc_hz == 0 || o->tsc_art_num == 0 ||
	    o->tsc_art_den == 0 || o->max_nonturbo_ratio == 0 ||
	    o->max_nonturbo_ratio > UINT8_MAX || o->time_shift >= 32 || o->time_mult == 0)
		return "its clock is not valid";
	if (!is_text(o->preset, sizeof(o->preset)) || !is_text(o->name, sizeof(o->name)) ||
	    !is_text(o->qemu, sizeof(o->qemu)) || o->qemu[0] != '/')
		return "its names are not valid";
	return NULL;
}

int emuoffer_read(const void *data, size_t size, struct emuoffer *ret, struct emuring_layout *ret_l,
		  const char **ret_why)
{
	*ret_why = "it is not an offer of an emulated machine";
	if (size != sizeof(*ret))
		return -EBADMSG;
	memcpy(ret, data, sizeof(*ret));
	if (ret->magic != EMUOFFER_MAGIC)
		return -EBADMSG;
	*ret_why = "it is from another version of ptsnapd";
	if (ret->version != (EMUOFFER_VERSION | EMURING_VERSION << 16))
		return -EBADMSG;
	*ret_why = what_is_wrong(ret, ret_l);
	return *ret_why ? -EBADMSG : 0;
}

int emuoffer_read_end(const void *data, size_t size, struct emuoffer_end *ret)
{
	if (size != sizeof(*ret))
		return -EBADMSG;
	memcpy(ret, data, sizeof(*ret));
	if (ret->magic != EMUOFFER_END_MAGIC || ret->exit_status < 0 || ret->exit_status > 255 ||
	    ret->killed_by < 0 || ret->killed_by > 127)
		return -EBADMSG;
	return 0;
}

void emuoffer_head(const struct emuoffer *o, const struct emuring_layout *l,
		   struct emuring_head *ret)
{
	assert(o->n_cpus == l->n_cpus && o->max_tasks == l->max_tasks);
	assert(o->data_size == l->data_size && o->aux_size == l->aux_size);
	*ret = (struct emuring_head){
		.magic = EMURING_MAGIC,
		.version = EMURING_VERSION,
		.n_cpus = l->n_cpus,
		.data_size = l->data_size,
		.aux_size = l->aux_size,
		.cpu_stride = l->cpu_stride,
		.cpus_at = l->cpus_at,
		.tasks_at = l->tasks_at,
		.max_tasks = l->max_tasks,
		.flags = o->flags,
		.clock = o->clock,
		.pt_config = o->pt_config,
		.tsc_hz = o->tsc_hz,
		.tsc_art_num = o->tsc_art_num,
		.tsc_art_den = o->tsc_art_den,
		.max_nonturbo_ratio = o->max_nonturbo_ratio,
		.time_shift = (uint16_t)o->time_shift,
		.time_mult = o->time_mult,
		.time_zero = o->time_zero,
	};
}
