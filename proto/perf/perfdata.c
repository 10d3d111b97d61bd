/*
 * Reads the frame of a perf.data file: header, attrs, ids, features, and record after record.
 *
 * Time and memory are O(size): each attr and each id is read once (all ids together must fit into
 * the file), and each step of perfdata_next() advances by at least a record's header.
 */
#include "proto/perf/perfdata.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"
#include "proto/bytes.h"

#define MAGIC	      "PERFILE2"
#define MAGIC_SWAPPED "2ELIFREP"
#define MAGIC_OLD     "PERFFILE"
#define MAGIC_SIZE    8u
/* struct perf_pipe_file_header */
#define PIPE_HEADER_SIZE 16u
/* struct perf_file_header, with 256 feature bits */
#define HEADER_SIZE  104u
#define SECTION_SIZE 16u
/* PERF_ATTR_SIZE_VER0 */
#define MIN_ATTR_SIZE 64u
/* aux_action of struct perf_event_attr, and its first bit (since Linux 6.13). */
#define AUX_ACTION_AT	 116u
#define AUX_START_PAUSED 1u
/* Bits of the word behind perf_event_attr.read_format. */
#define ATTR_EXCLUDE_USER   (UINT64_C(1) << 4)
#define ATTR_EXCLUDE_KERNEL (UINT64_C(1) << 5)
#define ATTR_SAMPLE_ID_ALL  (UINT64_C(1) << 18)
#define ATTR_CONTEXT_SWITCH (UINT64_C(1) << 26)

struct header {
	uint64_t size, attr_size;
	struct perfdata_section attrs, data;
	uint64_t features[PERFDATA_FEATURES / 64];
};

static int bad(struct perfdata_error *error, uint64_t offset, const char *what)
{
	*error = (struct perfdata_error){offset, what};
	return -EBADMSG;
}

static bool is_within(const struct perfdata *p, const struct perfdata_section *s)
{
	return s->offset <= p->size && s->size <= p->size - s->offset;
}

static struct perfdata_section get_section(struct bytes_in *in)
{
	struct perfdata_section s;

	s.offset = bytes_get_u64(in);
	s.size = bytes_get_u64(in);
	return s;
}

bool perfdata_is(const uint8_t *bytes, size_t size)
{
	return size >= MAGIC_SIZE && (memcmp(bytes, MAGIC, MAGIC_SIZE) == 0 ||
				      memcmp(bytes, MAGIC_SWAPPED, MAGIC_SIZE) == 0 ||
				      memcmp(bytes, MAGIC_OLD, MAGIC_SIZE) == 0);
}

static int read_header(const struct perfdata *p, struct header *ret, struct perfdata_error *error)
{
	struct bytes_in in;

	bytes_in_init(&in, p->bytes, p->size);
	bytes_get_u64(&in);
	ret->size = bytes_get_u64(&in);
	if (!in.bad && ret->size == PIPE_HEADER_SIZE)
		return PERFDATA_PIPE;
	ret->attr_size = bytes_get_u64(&in);
	ret->attrs = get_section(&in);
	ret->data = get_section(&in);
	get_section(&in);
	for (size_t i = 0; i < ARRAY_SIZE(ret->features); i++)
		ret->features[i] = bytes_get_u64(&in);
	if (in.bad)
		return bad(error, p->size, "the file ends within its header");
	if (ret->size != HEADER_SIZE)
		return bad(error, 8, "the header has an invalid size");
	return 0;
}

/* Reads attr number I, and the section of ids behind the attr. */
static int read_attr(struct perfdata *p, const struct header *h, size_t i,
		     struct perfdata_section *ret_ids)
{
	uint64_t offset = h->attrs.offset + i * h->attr_size, flags;
	struct perfdata_attr *a = &p->attrs[i];
	struct bytes_in in;

	bytes_in_init(&in, p->bytes + offset, h->attr_size);
	a->type = bytes_get_u32(&in);
	bytes_get_u32(&in);
	a->config = bytes_get_u64(&in);
	bytes_get_u64(&in);
	a->layout.sample_type = bytes_get_u64(&in);
	bytes_get_u64(&in);
	flags = bytes_get_u64(&in);
	a->layout.sample_id_all = flags & ATTR_SAMPLE_ID_ALL;
	a->exclude_user = flags & ATTR_EXCLUDE_USER;
	a->exclude_kernel = flags & ATTR_EXCLUDE_KERNEL;
	a->switches = flags & ATTR_CONTEXT_SWITCH;
	if (h->attr_size - SECTION_SIZE >= AUX_ACTION_AT + sizeof(uint32_t)) {
		bytes_in_init(&in, p->bytes + offset + AUX_ACTION_AT, sizeof(uint32_t));
		a->start_paused = bytes_get_u32(&in) & AUX_START_PAUSED;
	}
	bytes_in_init(&in, p->bytes + offset + h->attr_size - SECTION_SIZE, SECTION_SIZE);
	*ret_ids = get_section(&in);
	a->n_ids = ret_ids->size / sizeof(uint64_t);
	return is_within(p, ret_ids) && ret_ids->size % sizeof(uint64_t) == 0 ? 0 : -EBADMSG;
}

static int add_ids(struct perfdata *p, size_t attr, const struct perfdata_section *s)
{
	size_t n = s->size / sizeof(uint64_t);
	struct bytes_in in;

	/* Sections of ids do not overlap. */
	if (n > p->size / sizeof(uint64_t) - p->n_ids)
		return -EBADMSG;
	if (n == 0)
		return 0;
	if (ARRAY_FIT(p->ids, p->n_ids + n) < 0)
		return -ENOMEM;
	bytes_in_init(&in, p->bytes + s->offset, s->size);
	for (size_t i = 0; i < n; i++)
		p->ids[p->n_ids++] = (struct perfdata_id){bytes_get_u64(&in), (uint32_t)attr};
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct perfdata_id *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->attr < y->attr ? -1 : x->attr > y->attr;
}

static int read_attrs(struct perfdata *p, const struct header *h, struct perfdata_error *error)
{
	struct perfdata_section ids;
	int r;

	if (!is_within(p, &h->attrs))
		return bad(error, h->attrs.offset,
			   "the events lie beyond the file's end: it is truncated");
	if (h->attr_size < MIN_ATTR_SIZE + SECTION_SIZE || h->attrs.size == 0 ||
	    h->attrs.size % h->attr_size != 0 || h->attrs.size / h->attr_size > UINT32_MAX)
		return bad(error, h->attrs.offset, "the list of events has an invalid size");
	p->n_attrs = h->attrs.size / h->attr_size;
	p->attrs = calloc(p->n_attrs, sizeof(*p->attrs));
	if (!p->attrs)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_attrs; i++) {
		r = read_attr(p, h, i, &ids);
		if (r == 0)
			r = add_ids(p, i, &ids);
		if (r == -EBADMSG)
			return bad(error, h->attrs.offset + i * h->attr_size,
				   "the ids of an event lie beyond the file's end");
		if (r < 0)
			return r;
	}
	if (p->n_ids > 0)
		qsort(p->ids, p->n_ids, sizeof(*p->ids), by_id);
	return 0;
}

/* Returns the distance of the id from the end of a record, or 0. IDENTIFIER is always the last
 * field. */
static size_t id_from_end(const struct perfrecord_layout *l)
{
	struct perfrecord_layout behind = *l;

	if (!l->sample_id_all)
		return 0;
	if (l->sample_type & PERF_SAMPLE_IDENTIFIER)
		return 8;
	if (!(l->sample_type & PERF_SAMPLE_ID))
		return 0;
	behind.sample_type &= PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU;
	return perfrecord_sample_id_size(&behind);
}

/* All attrs have one layout, or their ids lie at one place (tools/perf/util/evlist.c,
 * evlist__valid_sample_type()). */
static int find_layout(struct perfdata *p, const struct header *h, struct perfdata_error *error)
{
	const struct perfrecord_layout *first = &p->attrs[0].layout;
	size_t from_end = id_from_end(first);

	p->same_layout = true;
	for (size_t i = 1; i < p->n_attrs; i++) {
		const struct perfrecord_layout *l = &p->attrs[i].layout;

		if (l->sample_type == first->sample_type &&
		    l->sample_id_all == first->sample_id_all)
			continue;
		p->same_layout = false;
		if (from_end == 0 || id_from_end(l) != from_end)
			return bad(error, h->attrs.offset + i * h->attr_size,
				   "the events have different layouts of records, and no record "
				   "tells its event");
	}
	p->id_from_end = from_end;
	return 0;
}

/* Finds the section of records, and the sections of features, which lie behind the records. */
static int find_sections(struct perfdata *p, const struct header *h, struct perfdata_error *error)
{
	struct bytes_in in;
	uint64_t at;

	p->data = h->data;
	if (p->data.offset < HEADER_SIZE || p->data.offset > p->size)
		return bad(error, p->data.offset,
			   "the records lie beyond the file's end: it is truncated");
	p->unfinished = p->data.size == 0;
	if (p->unfinished) {
		p->data.size = p->size - p->data.offset;
		return 0;
	}
	if (!is_within(p, &p->data))
		return bad(error, p->size, "the file ends within its records: it is truncated");
	at = p->data.offset + p->data.size;
	bytes_in_init(&in, p->bytes + at, p->size - at);
	for (size_t i = 0; i < PERFDATA_FEATURES; i++) {
		if (!(h->features[i / 64] >> (i % 64) & 1))
			continue;
		p->features[i] = get_section(&in);
		if (in.bad || !is_within(p, &p->features[i]))
			return bad(error, at,
				   "a feature lies beyond the file's end: it is truncated");
	}
	return 0;
}

int perfdata_open(const uint8_t *bytes, size_t size, struct perfdata *ret,
		  struct perfdata_error *error)
{
	struct header h;
	int r;

	*ret = (struct perfdata){.bytes = bytes, .size = size};
	*error = (struct perfdata_error){0};
	if (!perfdata_is(bytes, size))
		r = PERFDATA_OTHER;
	else if (memcmp(bytes, MAGIC_SWAPPED, MAGIC_SIZE) == 0)
		r = PERFDATA_SWAPPED;
	else if (memcmp(bytes, MAGIC_OLD, MAGIC_SIZE) == 0)
		r = PERFDATA_OLD;
	else
		r = read_header(ret, &h, error);
	if (r == 0)
		r = read_attrs(ret, &h, error);
	if (r == 0)
		r = find_layout(ret, &h, error);
	if (r == 0)
		r = find_sections(ret, &h, error);
	if (r != 0)
		perfdata_done(ret);
	return r;
}

void perfdata_done(struct perfdata *p)
{
	free(p->attrs);
	free(p->ids);
	*p = (struct perfdata){0};
}

int perfdata_frame(const uint8_t *bytes, size_t size, struct perfdata_record *ret)
{
	struct bytes_in in;

	*ret = (struct perfdata_record){.bytes = bytes};
	bytes_in_init(&in, bytes, size);
	ret->type = bytes_get_u32(&in);
	ret->misc = bytes_get_u16(&in);
	ret->size = bytes_get_u16(&in);
	if (in.bad)
		return PERFDATA_CUT;
	if (ret->size < sizeof(struct perf_event_header))
		return -EBADMSG;
	return ret->size > size ? PERFDATA_CUT : 0;
}

/* Finds the bytes behind RECORD that belong to it. */
static int find_trace(struct perfdata_record *record)
{
	struct perfdata_auxtrace a;
	struct bytes_in in;

	if (record->type == PERFDATA_AUXTRACE) {
		if (perfdata_parse_auxtrace(record, &a) < 0)
			return -EBADMSG;
		record->trace_size = a.size;
	} else if (record->type == PERFDATA_HEADER_TRACING_DATA) {
		bytes_in_init(&in, record->bytes + sizeof(struct perf_event_header),
			      record->size - sizeof(struct perf_event_header));
		record->trace_size = ((uint64_t)bytes_get_u32(&in) + 7) & ~UINT64_C(7);
		if (in.bad)
			return -EBADMSG;
	}
	record->trace = record->bytes + record->size;
	return 0;
}

static int cut(const struct perfdata *p, uint64_t offset, struct perfdata_error *error)
{
	if (p->unfinished)
		return PERFDATA_CUT;
	return bad(error, offset, "a record exceeds the end of all records");
}

int perfdata_next(const struct perfdata *p, uint64_t *at, struct perfdata_record *ret,
		  struct perfdata_error *error)
{
	const uint8_t *bytes = p->bytes + p->data.offset + *at;
	uint64_t left = p->data.size - *at, offset = p->data.offset + *at;
	int r;

	if (left == 0)
		return PERFDATA_END;
	r = perfdata_frame(bytes, left, ret);
	ret->offset = offset;
	if (r == PERFDATA_CUT)
		return cut(p, offset, error);
	if (r < 0)
		return bad(error, offset, "a record is smaller than its own header");
	if (find_trace(ret) < 0)
		return bad(error, offset, "a record about a trace has an invalid size");
	if (ret->trace_size > left - ret->size)
		return cut(p, offset, error);
	*at += ret->size + ret->trace_size;
	return 0;
}

/* Records that perf itself made have the id 0, and the layout of the first event. */
static const struct perfrecord_layout *layout_of(const struct perfdata *p,
						 const struct perfdata_record *record)
{
	size_t lo;
	struct bytes_in in;
	uint64_t id;

	if (p->same_layout || record->size < sizeof(struct perf_event_header) + p->id_from_end)
		return &p->attrs[0].layout;
	bytes_in_init(&in, record->bytes + record->size - p->id_from_end, p->id_from_end);
	id = bytes_get_u64(&in);
	lo = FIRST_WHERE(i, p->n_ids, p->ids[i].id >= id);
	if (lo == p->n_ids || p->ids[lo].id != id)
		return &p->attrs[0].layout;
	return &p->attrs[p->ids[lo].attr].layout;
}

int perfdata_parse(const struct perfdata *p, const struct perfdata_record *record,
		   struct perfrecord *ret)
{
	return perfrecord_parse_as(record->bytes, record->size, layout_of(p, record), ret);
}
