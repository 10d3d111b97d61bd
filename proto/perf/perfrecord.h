/*
 * One perf record: bytes <-> struct, every length checked; parse and compose side by side.
 * Layouts: include/uapi/linux/perf_event.h, "enum perf_event_type". All our records carry a
 * sample_id trailer of the fixed sample_type PERFRECORD_SAMPLE_TYPE (attr.sample_id_all).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/perf_event.h>

#define PERFRECORD_SAMPLE_TYPE \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)
/* The trailer: u32 pid, tid; u64 time; u32 cpu, reserved; u64 id. */
#define PERFRECORD_SAMPLE_ID_SIZE 32u
/* header.size is 16 bits, and the kernel keeps records 8-byte aligned. */
#define PERFRECORD_MAX_SIZE 65528u

struct perfrecord {
	uint32_t type; /* PERF_RECORD_* */
	uint16_t misc;
	uint16_t size; /* of the whole record, header included */
	/* sample_id */
	uint32_t pid, tid; /* of the task that caused the record; UINT32_MAX: none */
	uint64_t time;	   /* perf clock, ns */
	uint32_t cpu;
	uint64_t id;
	union {
		struct { /* COMM; misc & PERF_RECORD_MISC_COMM_EXEC: by exec */
			uint32_t pid, tid;
			const char *comm;
		} comm;
		struct { /* FORK, EXIT */
			uint32_t pid, ppid, tid, ptid;
			uint64_t time;
		} task;
		struct { /* MMAP2; misc & PERF_RECORD_MISC_MMAP_BUILD_ID: build id, else inode */
			uint32_t pid, tid;
			uint64_t addr, len, pgoff; /* bytes */
			uint32_t maj, min;
			uint64_t ino, ino_generation;
			uint8_t build_id_size; /* 0..20 */
			uint8_t build_id[20];
			uint32_t prot, flags;
			const char *filename;
		} mmap2;
		struct { /* SWITCH (no fields) and SWITCH_CPU_WIDE; misc & .._SWITCH_OUT: next_,
			    else prev_ in these two */
			uint32_t next_prev_pid, next_prev_tid;
		} context_switch;
		struct { /* ITRACE_START */
			uint32_t pid, tid;
		} itrace_start;
		struct { /* AUX; flags PERF_AUX_FLAG_* */
			uint64_t offset, size, flags;
		} aux;
		struct { /* LOST: id of the event, number of records */
			uint64_t id, lost;
		} lost;
		struct { /* NAMESPACES, CGROUP, KSYMBOL, ...: body as it lies, sample_id cut off */
			const uint8_t *bytes;
			size_t size;
		} raw;
	} u;
};

/* Parses the record at BYTES, of which AVAILABLE may be read. Strings and raw point into BYTES.
 * 0; PERFRECORD_UNKNOWN: a well-formed record of a type without a struct here (u.raw holds its
 * body); -EBADMSG: lengths or strings contradict each other (then only ret->size may be used, and
 * only when it is not 0, to skip the record). */
#define PERFRECORD_UNKNOWN 1
int perfrecord_parse(const void *bytes, size_t available, struct perfrecord *ret);

/* A SWITCH_CPU_WIDE record as it lies. A recorder meets hardly anything else. */
struct perfrecord_switch {
	uint32_t type;
	uint16_t misc, size;
	uint32_t next_prev_pid, next_prev_tid;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t id;
};

/* Whether the record at BYTES is one; then *ret is it. */
bool perfrecord_get_switch(const void *bytes, size_t available, struct perfrecord_switch *ret);
/* What perfrecord_parse() makes of it. */
void perfrecord_from_switch(const struct perfrecord_switch *from, struct perfrecord *ret);

/* How somebody else's records lie: perf_event_attr of the event that wrote them. */
struct perfrecord_layout {
	uint64_t sample_type;
	bool sample_id_all;
};

/* Bytes of the trailer that LAYOUT gives every record but samples. */
size_t perfrecord_sample_id_size(const struct perfrecord_layout *layout);

/* As perfrecord_parse(), of a record in LAYOUT. What its trailer does not tell is UINT32_MAX (pid,
 * tid, cpu) or 0 (time, id). A MMAP record is given as the MMAP2 that it stands for, private and
 * without inode, executable unless it is marked as data. A SAMPLE has no trailer: it is
 * PERFRECORD_UNKNOWN, raw. */
int perfrecord_parse_as(const void *bytes, size_t available, const struct perfrecord_layout *layout,
			struct perfrecord *ret);

/* Composes RECORD with its trailer into BUFFER; record->size is ignored, *ret_size set (a multiple
 * of 8). Strings longer than PATH_MAX or a comm beyond 15 bytes are cut, as the kernel does.
 * 0, -ENOSPC, or -EINVAL for a type that this function does not write (it writes all that parse
 * gives a struct for, and raw ones). */
int perfrecord_compose(const struct perfrecord *record, void *buffer, size_t capacity,
		       size_t *ret_size);

/* "MMAP2", ...; "type N" is the caller's business: NULL when unknown. */
const char *perfrecord_type_name(uint32_t type);
