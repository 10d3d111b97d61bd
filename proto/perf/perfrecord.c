/*
 * Parses and composes perf records, side by side.
 */
#include "proto/perf/perfrecord.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

#include "proto/base.h"
#include "proto/bytes.h"

#define HEADER_SIZE sizeof(struct perf_event_header)
/* TASK_COMM_LEN, without its NUL. */
#define COMM_MAX 15u

static const char *const type_names[] = {
	[PERF_RECORD_MMAP] = "MMAP",
	[PERF_RECORD_LOST] = "LOST",
	[PERF_RECORD_COMM] = "COMM",
	[PERF_RECORD_EXIT] = "EXIT",
	[PERF_RECORD_THROTTLE] = "THROTTLE",
	[PERF_RECORD_UNTHROTTLE] = "UNTHROTTLE",
	[PERF_RECORD_FORK] = "FORK",
	[PERF_RECORD_READ] = "READ",
	[PERF_RECORD_SAMPLE] = "SAMPLE",
	[PERF_RECORD_MMAP2] = "MMAP2",
	[PERF_RECORD_AUX] = "AUX",
	[PERF_RECORD_ITRACE_START] = "ITRACE_START",
	[PERF_RECORD_LOST_SAMPLES] = "LOST_SAMPLES",
	[PERF_RECORD_SWITCH] = "SWITCH",
	[PERF_RECORD_SWITCH_CPU_WIDE] = "SWITCH_CPU_WIDE",
	[PERF_RECORD_NAMESPACES] = "NAMESPACES",
	[PERF_RECORD_KSYMBOL] = "KSYMBOL",
	[PERF_RECORD_BPF_EVENT] = "BPF_EVENT",
	[PERF_RECORD_CGROUP] = "CGROUP",
	[PERF_RECORD_TEXT_POKE] = "TEXT_POKE",
	[PERF_RECORD_AUX_OUTPUT_HW_ID] = "AUX_OUTPUT_HW_ID",
};

const char *perfrecord_type_name(uint32_t type)
{
	return type < ARRAY_SIZE(type_names) ? type_names[type] : NULL;
}

/* The caller's buffer, while it is filled. */
struct target {
	uint8_t *pos;
	uint8_t *end;
	bool full;
};

static void put(struct target *t, const void *data, size_t size)
{
	if (t->full || size > (size_t)(t->end - t->pos)) {
		t->full = true;
		return;
	}
	if (size > 0)
		memcpy(t->pos, data, size);
	t->pos += size;
}

static void put_u16(struct target *t, uint16_t v)
{
	v = htole16(v);
	put(t, &v, sizeof(v));
}

static void put_u32(struct target *t, uint32_t v)
{
	v = htole32(v);
	put(t, &v, sizeof(v));
}

static void put_u64(struct target *t, uint64_t v)
{
	v = htole64(v);
	put(t, &v, sizeof(v));
}

/* Puts zeros up to the next multiple of 8 after SIZE bytes. */
static void put_padding(struct target *t, size_t size)
{
	static const uint8_t zeros[8];

	put(t, zeros, -size & 7);
}

/* perf_event_comm_event() and perf_event_mmap_event() pad with the NUL to 8 bytes. */
static void put_string(struct target *t, const char *s, size_t max)
{
	size_t size = strnlen(s, max);

	put(t, s, size);
	put(t, "", 1);
	put_padding(t, size + 1);
}

/* The fields have a fixed order, and each is present if its bit is set (kernel/events/core.c,
 * perf_event__output_id_sample()). */
static inline void parse_trailer(struct bytes_in *in, uint64_t sample_type, struct perfrecord *r)
{
	if (sample_type & PERF_SAMPLE_TID) {
		r->pid = bytes_get_u32(in);
		r->tid = bytes_get_u32(in);
	}
	if (sample_type & PERF_SAMPLE_TIME)
		r->time = bytes_get_u64(in);
	if (sample_type & PERF_SAMPLE_ID)
		r->id = bytes_get_u64(in);
	if (sample_type & PERF_SAMPLE_STREAM_ID)
		bytes_get_u64(in);
	if (sample_type & PERF_SAMPLE_CPU) {
		r->cpu = bytes_get_u32(in);
		bytes_get_u32(in);
	}
	if (sample_type & PERF_SAMPLE_IDENTIFIER)
		r->id = bytes_get_u64(in);
}

size_t perfrecord_sample_id_size(const struct perfrecord_layout *layout)
{
	static const uint64_t fields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
				       PERF_SAMPLE_IDENTIFIER;

	return layout->sample_id_all
		       ? 8 * (size_t)__builtin_popcountll(layout->sample_type & fields)
		       : 0;
}

/* MMAP is an older form of MMAP2: the fields that MMAP2 added are not known. */
static void parse_mmap(struct bytes_in *in, struct perfrecord *r)
{
	r->u.mmap2.pid = bytes_get_u32(in);
	r->u.mmap2.tid = bytes_get_u32(in);
	r->u.mmap2.addr = bytes_get_u64(in);
	r->u.mmap2.len = bytes_get_u64(in);
	r->u.mmap2.pgoff = bytes_get_u64(in);
	r->u.mmap2.prot = PROT_READ;
	if (!(r->misc & PERF_RECORD_MISC_MMAP_DATA))
		r->u.mmap2.prot |= PROT_EXEC;
	r->u.mmap2.flags = MAP_PRIVATE;
	r->u.mmap2.filename = bytes_get_string(in, bytes_in_left(in));
	r->type = PERF_RECORD_MMAP2;
	r->misc &= (uint16_t)~PERF_RECORD_MISC_MMAP_BUILD_ID;
}

static void parse_mmap2(struct bytes_in *in, struct perfrecord *r)
{
	r->u.mmap2.pid = bytes_get_u32(in);
	r->u.mmap2.tid = bytes_get_u32(in);
	r->u.mmap2.addr = bytes_get_u64(in);
	r->u.mmap2.len = bytes_get_u64(in);
	r->u.mmap2.pgoff = bytes_get_u64(in);
	if (r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		const uint8_t *build_id;

		r->u.mmap2.build_id_size = bytes_get_u8(in);
		bytes_get_u8(in);
		bytes_get_u16(in);
		build_id = bytes_get_block(in, sizeof(r->u.mmap2.build_id));
		if (r->u.mmap2.build_id_size > sizeof(r->u.mmap2.build_id))
			in->bad = true;
		else if (build_id)
			memcpy(r->u.mmap2.build_id, build_id, r->u.mmap2.build_id_size);
	} else {
		r->u.mmap2.maj = bytes_get_u32(in);
		r->u.mmap2.min = bytes_get_u32(in);
		r->u.mmap2.ino = bytes_get_u64(in);
		r->u.mmap2.ino_generation = bytes_get_u64(in);
	}
	r->u.mmap2.prot = bytes_get_u32(in);
	r->u.mmap2.flags = bytes_get_u32(in);
	r->u.mmap2.filename = bytes_get_string(in, bytes_in_left(in));
}

static void compose_mmap2(const struct perfrecord *r, struct target *t)
{
	put_u32(t, r->u.mmap2.pid);
	put_u32(t, r->u.mmap2.tid);
	put_u64(t, r->u.mmap2.addr);
	put_u64(t, r->u.mmap2.len);
	put_u64(t, r->u.mmap2.pgoff);
	if (r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		uint8_t build_id[sizeof(r->u.mmap2.build_id)] = {0};

		memcpy(build_id, r->u.mmap2.build_id, r->u.mmap2.build_id_size);
		put(t, &r->u.mmap2.build_id_size, 1);
		put(t, "", 1);
		put_u16(t, 0);
		put(t, build_id, sizeof(build_id));
	} else {
		put_u32(t, r->u.mmap2.maj);
		put_u32(t, r->u.mmap2.min);
		put_u64(t, r->u.mmap2.ino);
		put_u64(t, r->u.mmap2.ino_generation);
	}
	put_u32(t, r->u.mmap2.prot);
	put_u32(t, r->u.mmap2.flags);
	put_string(t, r->u.mmap2.filename, PATH_MAX - 1);
}

static int parse_body(struct bytes_in *in, struct perfrecord *r)
{
	switch (r->type) {
	case PERF_RECORD_COMM:
		r->u.comm.pid = bytes_get_u32(in);
		r->u.comm.tid = bytes_get_u32(in);
		r->u.comm.comm = bytes_get_string(in, bytes_in_left(in));
		return 0;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		r->u.task.pid = bytes_get_u32(in);
		r->u.task.ppid = bytes_get_u32(in);
		r->u.task.tid = bytes_get_u32(in);
		r->u.task.ptid = bytes_get_u32(in);
		r->u.task.time = bytes_get_u64(in);
		return 0;
	case PERF_RECORD_MMAP2: parse_mmap2(in, r); return 0;
	case PERF_RECORD_SWITCH: return 0;
	case PERF_RECORD_SWITCH_CPU_WIDE:
		r->u.context_switch.next_prev_pid = bytes_get_u32(in);
		r->u.context_switch.next_prev_tid = bytes_get_u32(in);
		return 0;
	case PERF_RECORD_ITRACE_START:
		r->u.itrace_start.pid = bytes_get_u32(in);
		r->u.itrace_start.tid = bytes_get_u32(in);
		return 0;
	case PERF_RECORD_AUX:
		r->u.aux.offset = bytes_get_u64(in);
		r->u.aux.size = bytes_get_u64(in);
		r->u.aux.flags = bytes_get_u64(in);
		return 0;
	case PERF_RECORD_LOST:
		r->u.lost.id = bytes_get_u64(in);
		r->u.lost.lost = bytes_get_u64(in);
		return 0;
	default:
		r->u.raw.size = bytes_in_left(in);
		r->u.raw.bytes = bytes_get_block(in, r->u.raw.size);
		return PERFRECORD_UNKNOWN;
	}
}

static void compose_body(const struct perfrecord *r, struct target *t)
{
	switch (r->type) {
	case PERF_RECORD_COMM:
		put_u32(t, r->u.comm.pid);
		put_u32(t, r->u.comm.tid);
		put_string(t, r->u.comm.comm, COMM_MAX);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		put_u32(t, r->u.task.pid);
		put_u32(t, r->u.task.ppid);
		put_u32(t, r->u.task.tid);
		put_u32(t, r->u.task.ptid);
		put_u64(t, r->u.task.time);
		break;
	case PERF_RECORD_MMAP2: compose_mmap2(r, t); break;
	case PERF_RECORD_SWITCH: break;
	case PERF_RECORD_SWITCH_CPU_WIDE:
		put_u32(t, r->u.context_switch.next_prev_pid);
		put_u32(t, r->u.context_switch.next_prev_tid);
		break;
	case PERF_RECORD_ITRACE_START:
		put_u32(t, r->u.itrace_start.pid);
		put_u32(t, r->u.itrace_start.tid);
		break;
	case PERF_RECORD_AUX:
		put_u64(t, r->u.aux.offset);
		put_u64(t, r->u.aux.size);
		put_u64(t, r->u.aux.flags);
		break;
	case PERF_RECORD_LOST:
		put_u64(t, r->u.lost.id);
		put_u64(t, r->u.lost.lost);
		break;
	default: put(t, r->u.raw.bytes, r->u.raw.size); put_padding(t, r->u.raw.size);
	}
}

/* Parses the header. 0 if the record can at least be skipped. */
static inline int parse_header(const void *bytes, size_t available, struct perfrecord *ret)
{
	struct bytes_in in;
	uint16_t size;

	bytes_in_init(&in, bytes, available);
	ret->type = bytes_get_u32(&in);
	ret->misc = bytes_get_u16(&in);
	size = bytes_get_u16(&in);
	if (in.bad || size < HEADER_SIZE || size > available || size % 8 != 0)
		return -EBADMSG;
	ret->size = size;
	return 0;
}

/* Parses body and trailer of the record at START, whose header is in RET. Inline, because with a
 * constant LAYOUT the compiler makes straight code. */
static inline __attribute__((always_inline)) int parse_rest(const uint8_t *start,
							    const struct perfrecord_layout *layout,
							    size_t trailer_size, bool mmap,
							    struct perfrecord *ret)
{
	struct bytes_in body, trailer;
	int known = 0;

	if (ret->size < HEADER_SIZE + trailer_size)
		return -EBADMSG;
	bytes_in_init(&trailer, start + ret->size - trailer_size, trailer_size);
	if (trailer_size > 0)
		parse_trailer(&trailer, layout->sample_type, ret);
	bytes_in_init(&body, start + HEADER_SIZE, ret->size - HEADER_SIZE - trailer_size);
	if (mmap)
		parse_mmap(&body, ret);
	else
		known = parse_body(&body, ret);
	/* The kernel adds fields to a record only with a new bit in the attr. Remaining bytes so
	 * mean that the size is wrong. */
	if (body.bad || bytes_in_left(&body) > 0)
		return -EBADMSG;
	return known;
}

bool perfrecord_get_switch(const void *bytes, size_t available, struct perfrecord_switch *ret)
{
	struct perf_event_header header;

	_Static_assert(sizeof(*ret) == HEADER_SIZE + 8 + PERFRECORD_SAMPLE_ID_SIZE, "no holes");
	if (__BYTE_ORDER != __LITTLE_ENDIAN || available < sizeof(*ret))
		return false;
	memcpy(&header, bytes, sizeof(header));
	if (header.type != PERF_RECORD_SWITCH_CPU_WIDE || header.size != sizeof(*ret))
		return false;
	memcpy(ret, bytes, sizeof(*ret));
	return true;
}

void perfrecord_from_switch(const struct perfrecord_switch *from, struct perfrecord *ret)
{
	*ret = (struct perfrecord){
		.type = from->type,
		.misc = from->misc,
		.size = from->size,
		.pid = from->pid,
		.tid = from->tid,
		.time = from->time,
		.cpu = from->cpu,
		.id = from->id,
		.u.context_switch = {from->next_prev_pid, from->next_prev_tid},
	};
}

int perfrecord_parse(const void *bytes, size_t available, struct perfrecord *ret)
{
	static const struct perfrecord_layout own = {PERFRECORD_SAMPLE_TYPE, true};
	struct perfrecord_switch s;
	int r;

	if (perfrecord_get_switch(bytes, available, &s)) {
		perfrecord_from_switch(&s, ret);
		return 0;
	}
	memset(ret, 0, sizeof(*ret));
	r = parse_header(bytes, available, ret);
	return r < 0 ? r : parse_rest(bytes, &own, PERFRECORD_SAMPLE_ID_SIZE, false, ret);
}

int perfrecord_parse_as(const void *bytes, size_t available, const struct perfrecord_layout *layout,
			struct perfrecord *ret)
{
	struct perfrecord_layout l = *layout;
	int r;

	memset(ret, 0, sizeof(*ret));
	r = parse_header(bytes, available, ret);
	if (r < 0)
		return r;
	/* Values of a record without these fields. */
	ret->pid = ret->tid = ret->cpu = UINT32_MAX;
	/* The kernel writes samples without a trailer. */
	if (ret->type == PERF_RECORD_SAMPLE)
		l.sample_id_all = false;
	return parse_rest(bytes, &l, perfrecord_sample_id_size(&l), ret->type == PERF_RECORD_MMAP,
			  ret);
}

static bool is_composable(const struct perfrecord *r)
{
	switch (r->type) {
	case PERF_RECORD_COMM: return r->u.comm.comm;
	case PERF_RECORD_MMAP2:
		return r->u.mmap2.filename &&
		       (!(r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) ||
			r->u.mmap2.build_id_size <= sizeof(r->u.mmap2.build_id));
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
	case PERF_RECORD_ITRACE_START:
	case PERF_RECORD_AUX:
	case PERF_RECORD_LOST: return true;
	default: return r->u.raw.bytes || r->u.raw.size == 0;
	}
}

int perfrecord_compose(const struct perfrecord *record, void *buffer, size_t capacity,
		       size_t *ret_size)
{
	uint8_t *start = buffer;
	struct target t = {.pos = start};
	uint16_t size;

	if (!is_composable(record))
		return -EINVAL;
	t.end = start + MIN_OF(capacity, (size_t)PERFRECORD_MAX_SIZE);
	put_u32(&t, record->type);
	put_u16(&t, record->misc);
	put_u16(&t, 0);
	compose_body(record, &t);
	put_u32(&t, record->pid);
	put_u32(&t, record->tid);
	put_u64(&t, record->time);
	put_u32(&t, record->cpu);
	put_u32(&t, 0);
	put_u64(&t, record->id);
	if (t.full)
		return -ENOSPC;
	size = htole16((uint16_t)(t.pos - start));
	memcpy(start + offsetof(struct perf_event_header, size), &size, sizeof(size));
	*ret_size = (size_t)(t.pos - start);
	return 0;
}
