/*
 * Perf events: their attributes, their rings, and the system calls behind them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/perf_event.h>

#include "capture/ring/ring.h"
#include "capture/ring/source.h"

/* --- perf_event.c: the perf_event_attr (include/uapi/linux/perf_event.h) of a CPU's two events ---
 */

/* Kinds of sideband records that a kernel may be too old for, as bits. Every kernel that supports
 * Intel PT writes the others (mmap, mmap2, comm, comm_exec, task, context_switch: Linux 4.3). */
enum perf_attr_kind {
	PERF_ATTR_TEXT_POKE = 1 << 0,  /* 5.9 */
	PERF_ATTR_CGROUP = 1 << 1,     /* 5.7 */
	PERF_ATTR_KSYMBOL = 1 << 2,    /* 5.1 */
	PERF_ATTR_BPF_EVENT = 1 << 3,  /* 5.1 */
	PERF_ATTR_NAMESPACES = 1 << 4, /* 4.12 */
	/* No record: read(2) returns the number of lost records. */
	PERF_ATTR_LOST = 1 << 5, /* 6.0 */
};
#define PERF_ATTR_ALL_KINDS 0x3fu

/* Makes the attr of the PT event: PMU type TYPE, pinned, disabled, tracing user and kernel as TRACE
 * says. */
void perf_attr_pt(uint32_t type, uint64_t config, enum source_trace trace,
		  struct perf_event_attr *ret);
/* Makes the attr of the dummy event for the sideband, with KINDS besides the records that every
 * kernel writes. Mapped files are identified by device and inode, because anybody can write any
 * build id into a file. MONOTONIC: timestamps are of CLOCK_MONOTONIC, else of the perf clock. */
void perf_attr_sideband(uint32_t kinds, bool monotonic, struct perf_event_attr *ret);
/* Finds the kinds that this kernel supports by opening events on CPU. 0; or -errno: not even an
 * event without any kind can be opened. */
int perf_attr_probe(uint32_t cpu, bool monotonic, uint32_t *ret_kinds);
/* The names of the record kinds that are not in KINDS, "text_poke,cgroup"; "" if all are. */
void perf_attr_missing(uint32_t kinds, char *ret, size_t size);
/* After the PT event of CPU was refused with EBUSY, on a processor where LBR excludes PT (cpuid.h):
 * whether LBR is the reason. Opens an event with branch records for a moment, which the kernel
 * permits as long as nobody has PT. */
bool perf_lbr_is_used(uint32_t cpu);
/* ATTR as text: the fields that are not 0, in the order of the kernel's header. Cut to SIZE bytes;
 * 512 are enough. */
void perf_attr_format(const struct perf_event_attr *attr, char *ret, size_t size);

/* --- perf_event.c: one event of one CPU, with its rings mapped --- */

struct perf_event {
	int fd; /* -EBADF: not open */
	struct ring ring;
	void *base; /* the mapped page, DATA and AUX, in one piece; NULL: not mapped */
	size_t mapped;
	uint64_t running_ns; /* as it was read last */
};

#define PERF_EVENT_LEAST_AUX (64u << 10)
/* PERF_FORMAT_LOST (include/uapi/linux/perf_event.h), which old headers lack. */
#define PERF_EVENT_FORMAT_LOST (1u << 4)

/* Makes an event that is not open. */
void perf_event_init(struct perf_event *e);
/* Opens ATTR on CPU, and maps DATA_SIZE bytes and *AUX_SIZE (0: no AUX) bytes, powers of two of at
 * least a page. Maps AUX read-only, which selects overwrite mode (kernel/events/ring_buffer.c,
 * rb_alloc_aux). If AUX cannot be allocated or locked, halves its size, down to
 * PERF_EVENT_LEAST_AUX; *AUX_SIZE returns the size. Reading AUX costs no page fault afterwards.
 * SCRATCH: PERFRECORD_MAX_SIZE bytes, borrowed. The event is left disabled: an event that is
 * enabled before AUX is mapped never traces. 0; or -errno of perf_event_open(2) or mmap(2) (-EPERM:
 * beyond the limit of locked memory). */
int perf_event_start(struct perf_event *e, const struct perf_event_attr *attr, uint32_t cpu,
		     uint64_t data_size, uint64_t *aux_size, uint8_t *scratch);
/* Unmaps and closes the event. May be called at any time. */
void perf_event_stop(struct perf_event *e);
/* 0 or -errno. On an offline CPU, returns 0 and nothing happens. */
int perf_event_enable(struct perf_event *e);
/* On return aux_head is final: the kernel waits for the CPU (kernel/events/core.c,
 * event_function_call). */
int perf_event_disable(struct perf_event *e);
/* Returns in *ret for how many ns the event has run since the last call of this function, or ever
 * at the first call. 0; -ENODATA: the event is in the error state, as is a pinned event that the
 * kernel could not schedule on its CPU (kernel/events/core.c, merge_sched_in; read(2) then returns
 * 0 bytes,
 * __perf_read); or -errno. */
int perf_event_ran(struct perf_event *e, uint64_t *ret);
/* Whether the event runs now. An event whose CPU went offline and came back never runs again. */
bool perf_event_runs(struct perf_event *e);
/* Enables the event, and sees that it runs: IOC_ENABLE returns 0 whatever becomes of the event.
 * Tries again at once if the event does not run. 0; -EIO: it does not run; or -errno. */
int perf_event_restart(struct perf_event *e);
#define PERF_EVENT_RESTARTS 3
/* Returns in *ret how many records have found no room in the ring: those that LOST records have
 * reported, and those that the next LOST record will (kernel/events/ring_buffer.c,
 * __perf_output_begin). 0; -EOPNOTSUPP: opened without PERF_EVENT_FORMAT_LOST; or -errno. */
int perf_event_lost(const struct perf_event *e, uint64_t *ret);

/* --- perf_sys.c: the system calls. Tests link other functions in its place --- */

/* perf_event_open(2) for all tasks on CPU. Returns the fd (close-on-exec) or -errno. */
int perf_sys_open(const struct perf_event_attr *attr, uint32_t cpu);
/* mmap(2) of SIZE bytes of the event from OFFSET, at AT (MAP_FIXED). 0 or -errno. */
int perf_sys_map(int fd, void *at, size_t size, int prot, uint64_t offset);
/* ioctl(2) without an argument: PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE,
 * PERF_EVENT_IOC_RESET. 0 or -errno. */
int perf_sys_ioctl(int fd, unsigned long request);
/* read(2). Returns the bytes read (0: the event is in the error state) or -errno. */
ssize_t perf_sys_read(int fd, void *to, size_t size);
/* prctl(2), PR_TASK_PERF_EVENTS_DISABLE: disables all events that the calling thread opened. 0 or
 * -errno. */
int perf_sys_disable_mine(void);
