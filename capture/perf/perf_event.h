/*
 * One perf event of one CPU with its rings mapped: the DATA ring, and for a PT event the AUX ring
 * behind it in the same stretch of address space.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/perf_event.h>

#include "capture/ring/ring.h"

struct perf_event {
	int fd; /* -EBADF: not open */
	struct ring ring;
	void *base; /* page, DATA, AUX; NULL: not mapped */
	size_t mapped;
	uint64_t enabled_ns, running_ns; /* as read last: perf_event_alive */
};

#define PERF_EVENT_LEAST_AUX (64u << 10)
/* PERF_FORMAT_LOST (include/uapi/linux/perf_event.h), which old headers do not have. */
#define PERF_EVENT_FORMAT_LOST (1u << 4)

/* Nothing open. */
void perf_event_init(struct perf_event *e);
/* Opens ATTR on CPU and maps DATA_SIZE bytes and *AUX_SIZE (0: no AUX) bytes, powers of two of at
 * least a page. AUX is mapped read-only, which makes it overwrite mode
 * (kernel/events/ring_buffer.c, rb_alloc_aux); where there is no memory for so much, or it may
 * not be locked, it is halved, down to PERF_EVENT_LEAST_AUX, and *AUX_SIZE says what it is.
 * SCRATCH: PERFRECORD_MAX_SIZE bytes, borrowed. Left disabled: an event that is enabled before AUX
 * is mapped never traces. 0; -errno of perf_event_open(2) or mmap(2) (-EPERM: beyond the limit of
 * locked memory). */
int perf_event_start(struct perf_event *e, const struct perf_event_attr *attr, uint32_t cpu,
		     uint64_t data_size, uint64_t *aux_size, uint8_t *scratch);
/* Unmaps and closes; may be called at any time. */
void perf_event_stop(struct perf_event *e);
/* 0 or -errno. A CPU that is away: 0, and nothing happens. */
int perf_event_enable(struct perf_event *e);
/* On return aux_head is final: the call waits for the CPU (kernel/events/core.c,
 * event_function_call). */
int perf_event_disable(struct perf_event *e);
/* Has it really run since the last call? The first call says yes when it runs at all. A pinned
 * event that could not be put on the CPU is in the error state, which read(2) tells by 0 bytes
 * (perf_read); one whose CPU went away and came back never runs again. */
bool perf_event_alive(struct perf_event *e);
/* How many records found no room in its ring, ever: those that a LOST record has told of, and those
 * that the next record will (kernel/events/ring_buffer.c, __perf_output_begin). 0; -EOPNOTSUPP: it
 * was not opened with PERF_EVENT_FORMAT_LOST; -errno. */
int perf_event_lost(const struct perf_event *e, uint64_t *ret);
