/*
 * DATA and AUX arithmetic over perf_event_mmap_page: heads, wrap, barriers; no syscalls.
 * Protocol: include/uapi/linux/perf_event.h (struct perf_event_mmap_page), tools/lib/perf/mmap.c
 * for the barriers; AUX in overwrite mode: kernel/events/ring_buffer.c perf_aux_output_end and
 * arch/x86/events/intel/pt.c pt_update_head: after a stop aux_head is an offset inside the buffer.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <linux/perf_event.h>

struct ring {
	struct perf_event_mmap_page *page; /* borrowed */
	uint8_t *data;			   /* borrowed */
	uint64_t data_size;		   /* power of two */
	const uint8_t *aux;		   /* borrowed; NULL: an event without AUX */
	uint64_t aux_size;		   /* power of two; 0 */
	uint8_t *scratch; /* PERFRECORD_MAX_SIZE bytes, borrowed: a record that wraps is joined here
			   */
};

/* Checks the page's offsets and sizes against TOTAL mapped bytes from PAGE on, and fills *ret.
 * 0 or -EINVAL. */
int ring_init(struct ring *ret, struct perf_event_mmap_page *page, uint64_t total,
	      uint8_t *scratch);

/* The next record of the DATA ring (head loaded with acquire): *ret_record of *ret_size bytes, in
 * the ring or in scratch, good until ring_consume. 0; RING_EMPTY; -EBADMSG: the header contradicts
 * the ring (the reader must then ring_skip_all). */
#define RING_EMPTY 1
int ring_peek(struct ring *r, const void **ret_record, size_t *ret_size);
/* The bytes of all records that the DATA ring holds now: 0, RING_EMPTY, or -EBADMSG (as above). */
int ring_used(const struct ring *r, uint64_t *ret_size);
/* Copies out the oldest SIZE of those bytes, and does not look into them: that is for who has the
 * copy, which nobody changes any more. They are still in the ring, up to ring_consume. */
void ring_copy_data(const struct ring *r, uint64_t size, uint8_t *to);
/* Gives SIZE bytes back to the writer (tail stored with release). */
void ring_consume(struct ring *r, size_t size);
/* Gives back all there is; returns the bytes thrown away. */
uint64_t ring_skip_all(struct ring *r);

/* The newest WANTED bytes (0 or more than the ring: all of it) of a stopped AUX ring, oldest first,
 * into TO (at least min(WANTED, aux_size) bytes). Oldest to newest is ring[head..size) then
 * ring[0..head). Returns the bytes copied. */
uint64_t ring_copy_aux(const struct ring *r, uint64_t wanted, uint8_t *to);
