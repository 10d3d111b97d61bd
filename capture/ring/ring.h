/*
 * One perf event's two ring buffers, DATA and AUX, as struct perf_event_mmap_page describes them.
 *
 * Heads, wrapping and memory barriers; no system calls. Sources: include/uapi/linux/perf_event.h
 * (struct perf_event_mmap_page) for the protocol; tools/lib/perf/mmap.c for the barriers;
 * kernel/events/ring_buffer.c (perf_aux_output_end) and arch/x86/events/intel/pt.c (pt_update_head)
 * for AUX in overwrite mode, where aux_head is an offset inside the buffer after a stop.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <linux/perf_event.h>

/* All pointers are borrowed. */
struct ring {
	struct perf_event_mmap_page *page;
	uint8_t *data;
	uint64_t data_size; /* a power of two */
	const uint8_t *aux; /* NULL: an event without AUX */
	uint64_t aux_size;  /* a power of two, or 0 */
	uint8_t *scratch;   /* PERFRECORD_MAX_SIZE bytes: ring_peek() copies the record here */
};

/* Checks the page's offsets and sizes against the TOTAL mapped bytes from PAGE on, and fills *ret.
 * 0 or -EINVAL. */
int ring_init(struct ring *ret, struct perf_event_mmap_page *page, uint64_t total,
	      uint8_t *scratch);

/* Copies the oldest record of the DATA ring into scratch, where it is valid until the next call. 0;
 * RING_EMPTY; -EBADMSG: the header contradicts the ring (the reader must then ring_skip_all()). */
#define RING_EMPTY 1
int ring_peek(struct ring *r, const void **ret_record, size_t *ret_size);
/* Returns in *ret_size the bytes of all records in the DATA ring. 0, RING_EMPTY, or -EBADMSG. */
int ring_used(const struct ring *r, uint64_t *ret_size);
/* Copies the oldest SIZE bytes out without looking at them: the writer may still change the ring,
 * but not the copy, so the copy's reader checks the records. The bytes stay in the ring until
 * ring_consume(). */
void ring_copy_data(const struct ring *r, uint64_t size, uint8_t *to);
/* Gives the oldest SIZE bytes back to the writer. */
void ring_consume(struct ring *r, size_t size);
/* Gives everything back to the writer; returns the number of bytes discarded. */
uint64_t ring_skip_all(struct ring *r);

/* Copies the newest WANTED bytes of a stopped AUX ring, oldest first, to TO, which has room for
 * min(WANTED, aux_size) bytes. WANTED 0 or larger than the ring: the whole ring. Oldest to newest
 * is ring[head..size) and then ring[0..head). Returns the number of bytes copied. */
uint64_t ring_copy_aux(const struct ring *r, uint64_t wanted, uint8_t *to);
