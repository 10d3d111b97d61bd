/*
 * One perf record: parsed from bytes and composed to bytes, with every length checked.
 *
 * This room has the layouts of perf and of Intel PT, and nothing that knows what they are used for:
 * perfrecord.c has the kernel's records, perfdata.c the frame of a perf.data file (header, events,
 * features, record after record), perfdata_record.c what perf's own records and features say, and
 * ptpacket.h the opcodes of Intel PT packets. ptsnapd parses the DATA rings with these functions,
 * ptsnap-decode the sideband of a bundle, and ptsnapctl a perf.data file; the emulated PMU and the
 * scan of /proc compose records.
 *
 * Decisions that govern the room:
 * - Sideband is always perf records in the kernel's layout, in the rings and in the bundle.
 * - Our records all end in a sample_id trailer of one sample_type (PERFRECORD_SAMPLE_TYPE,
 *   attr.sample_id_all). The trailer lies at the end of a record whatever the body holds, so that a
 *   reader finds it without knowing the record's type.
 * - Parsing and composing of a record stand side by side, so that a layout changes in both.
 * - Nothing is copied: parsed strings and raw bodies point into the caller's bytes. Parsing and
 *   composing a record allocate nothing.
 * - Byte order is the host's, which is little-endian on every machine with Intel PT.
 * - Facts have a source: include/uapi/linux/perf_event.h (enum perf_event_type) for records,
 *   tools/perf for perf.data files, the SDM for packets.
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
	uint32_t pid, tid; /* of the task that caused the record; UINT32_MAX: unknown */
	uint64_t time;	   /* perf clock, ns */
	uint32_t cpu;
	uint64_t id;
	union {
		struct { /* COMM; misc & PERF_RECORD_MISC_COMM_EXEC: caused by exec */
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
		struct { /* SWITCH_CPU_WIDE (SWITCH has no fields): the next task if
			  * misc & PERF_RECORD_MISC_SWITCH_OUT, else the previous one */
			uint32_t next_prev_pid, next_prev_tid;
		} context_switch;
		struct { /* ITRACE_START */
			uint32_t pid, tid;
		} itrace_start;
		struct { /* AUX; flags PERF_AUX_FLAG_* */
			uint64_t offset, size, flags;
		} aux;
		struct { /* LOST: id of the event, number of lost records */
			uint64_t id, lost;
		} lost;
		struct { /* NAMESPACES, CGROUP, KSYMBOL, ...: the body without the trailer */
			const uint8_t *bytes;
			size_t size;
		} raw;
	} u;
};

/* Parses the record at BYTES, of which AVAILABLE may be read. Strings and raw point into BYTES. 0;
 * PERFRECORD_UNKNOWN: a valid record of a type without a struct above (u.raw is its body);
 * -EBADMSG: lengths or strings contradict each other. Only ret->size may then be used: to skip the
 * record, if it is not 0. */
#define PERFRECORD_UNKNOWN 1
int perfrecord_parse(const void *bytes, size_t available, struct perfrecord *ret);

/* A SWITCH_CPU_WIDE record as it lies in memory. Nearly all records are of this type. */
struct perfrecord_switch {
	uint32_t type;
	uint16_t misc, size;
	uint32_t next_prev_pid, next_prev_tid;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t id;
};

/* Returns whether the record at BYTES is one, and copies it. */
bool perfrecord_get_switch(const void *bytes, size_t available, struct perfrecord_switch *ret);
/* Sets *RET as perfrecord_parse() does for this record. */
void perfrecord_from_switch(const struct perfrecord_switch *from, struct perfrecord *ret);

/* The layout of records that another recorder wrote: from the event's perf_event_attr. */
struct perfrecord_layout {
	uint64_t sample_type;
	bool sample_id_all;
};

/* Returns the size of the trailer in LAYOUT. Samples have no trailer. */
size_t perfrecord_sample_id_size(const struct perfrecord_layout *layout);

/* Parses a record in LAYOUT, as perfrecord_parse(). Values that the trailer does not have are
 * UINT32_MAX (pid, tid, cpu) or 0 (time, id). A MMAP record becomes the MMAP2 record of the same
 * mapping: private, without inode, and executable unless it is marked as data. A SAMPLE is
 * PERFRECORD_UNKNOWN, raw. */
int perfrecord_parse_as(const void *bytes, size_t available, const struct perfrecord_layout *layout,
			struct perfrecord *ret);

/* Composes RECORD with our trailer in BUFFER. record->size is ignored; *ret_size is a multiple
 * of 8. A file name is cut to PATH_MAX and a comm to 15 bytes, as by the kernel. 0; -ENOSPC;
 * -EINVAL: a pointer is NULL, or a build id is too long. */
int perfrecord_compose(const struct perfrecord *record, void *buffer, size_t capacity,
		       size_t *ret_size);

/* Returns "MMAP2" and so on, or NULL for an unknown type. */
const char *perfrecord_type_name(uint32_t type);
