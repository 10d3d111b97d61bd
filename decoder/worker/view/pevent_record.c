/*
 * Reads and prints one perf record of a foreign layout, as libipt's sideband decoder does.
 *
 * One table says what each type holds and how it is written. Layouts:
 * include/uapi/linux/perf_event.h, "enum perf_event_type"; the text is that of libipt's ptdump and
 * ptxed (--sb:compact, --sb:verbose). The bytes are a stranger's.
 */
#include "decoder/worker/view/pevent.h"

#include <inttypes.h>
#include <string.h>

#include <linux/perf_event.h>

#include "proto/base.h"
#include "proto/bytes.h"
#include "proto/decode_options.h"

struct pevent_field {
	const char *label;
	uint8_t size; /* bytes */
};

/* COMPACT: letter a to k stands for field 0 to 10 in hex, $ for the text; other characters stand
 * for themselves. */
struct pevent_kind {
	uint32_t type;
	const char *name, *compact;
	struct pevent_field fields[PEVENT_FIELDS];
	const char *text; /* label; NULL: none */
};

/* clang-format off */
static const struct pevent_kind kinds[] = {
	{ PERF_RECORD_MMAP, "MMAP", "a/b, c, d, e, $",
	  {{"pid", 4}, {"tid", 4}, {"addr", 8}, {"len", 8}, {"pgoff", 8}}, "filename" },
	{ PERF_RECORD_LOST, "LOST", "a, b", {{"id", 8}, {"lost", 8}}, NULL },
	{ PERF_RECORD_COMM, "COMM", "a/b, $", {{"pid", 4}, {"tid", 4}}, "comm" },
	{ PERF_RECORD_EXIT, "EXIT", "a/c, b/d, e",
	  {{"pid", 4}, {"ppid", 4}, {"tid", 4}, {"ptid", 4}, {"time", 8}}, NULL },
	{ PERF_RECORD_THROTTLE, "THROTTLE", "a, b, c",
	  {{"time", 8}, {"id", 8}, {"stream_id", 8}}, NULL },
	{ PERF_RECORD_UNTHROTTLE, "UNTHROTTLE", "a, b, c",
	  {{"time", 8}, {"id", 8}, {"stream_id", 8}}, NULL },
	{ PERF_RECORD_FORK, "FORK", "a/c, b/d, e",
	  {{"pid", 4}, {"ppid", 4}, {"tid", 4}, {"ptid", 4}, {"time", 8}}, NULL },
	{ PERF_RECORD_MMAP2, "MMAP2", "a/b, c, d, e, f, g, h, i, j, k, $",
	  {{"pid", 4}, {"tid", 4}, {"addr", 8}, {"len", 8}, {"pgoff", 8}, {"maj", 4}, {"min", 4},
	   {"ino", 8}, {"ino_generation", 8}, {"prot", 4}, {"flags", 4}}, "filename" },
	{ PERF_RECORD_AUX, "AUX", "a, b, c",
	  {{"aux offset", 8}, {"aux size", 8}, {"flags", 8}}, NULL },
	{ PERF_RECORD_ITRACE_START, "ITRACE_START", "a/b", {{"pid", 4}, {"tid", 4}}, NULL },
	{ PERF_RECORD_LOST_SAMPLES, "LOST_SAMPLES", "a", {{"lost", 8}}, NULL },
	{ PERF_RECORD_SWITCH, "SWITCH", "", {{0}}, NULL },
	{ PERF_RECORD_SWITCH_CPU_WIDE, "SWITCH_CPU_WIDE", "a/b", {{"pid", 4}, {"tid", 4}}, NULL },
};
/* clang-format on */

static void read_sample(struct bytes_in *in, struct pevent_record *r)
{
	if (r->has & PERF_SAMPLE_TID) {
		r->pid = bytes_get_u32(in);
		r->tid = bytes_get_u32(in);
	}
	if (r->has & PERF_SAMPLE_TIME)
		r->time = bytes_get_u64(in);
	if (r->has & PERF_SAMPLE_ID)
		r->id = bytes_get_u64(in);
	if (r->has & PERF_SAMPLE_STREAM_ID)
		r->stream_id = bytes_get_u64(in);
	if (r->has & PERF_SAMPLE_CPU) {
		r->cpu = bytes_get_u32(in);
		bytes_get_u32(in);
	}
	if (r->has & PERF_SAMPLE_IDENTIFIER)
		r->identifier = bytes_get_u64(in);
}

/* The inverse of the clock's formula (perf_event_mmap_page, cap_user_time_zero). The offset is
 * signed; the result is limited to 0 and UINT64_MAX. */
static uint64_t to_tsc(uint64_t time, const struct manifest_pevent *m)
{
	uint64_t ns = time - m->time_zero, tsc;
	unsigned int shift = m->time_shift & 63;

	tsc = ((ns / m->time_mult) << shift) + ((ns % m->time_mult) << shift) / m->time_mult;
	if ((int64_t)m->tsc_offset >= 0)
		return tsc > m->tsc_offset ? tsc - m->tsc_offset : 0;
	return tsc - m->tsc_offset > tsc ? tsc - m->tsc_offset : UINT64_MAX;
}

static enum pevent_read read_known(struct bytes_in *in, const struct manifest_pevent *m,
				   struct pevent_record *r)
{
	const struct pevent_field *f = r->kind->fields;

	for (size_t i = 0; i < PEVENT_FIELDS && f[i].size > 0; i++)
		r->fields[i] = f[i].size == 4 ? bytes_get_u32(in) : bytes_get_u64(in);
	if (!in->bad && r->kind->text) {
		/* A string and its padding. */
		size_t left = bytes_in_left(in), size = strnlen((const char *)in->pos, left);

		if (size == left)
			return PEVENT_BAD_TEXT;
		r->text = (const char *)in->pos;
		bytes_get_block(in, (size + 1 + 7) / 8 * 8);
	}
	r->has =
		m->sample_type & (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				  PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER);
	read_sample(in, r);
	if (in->bad || bytes_in_left(in) > 0)
		return PEVENT_BAD_SIZE;
	if ((r->has & PERF_SAMPLE_TIME) && m->time_mult == 0)
		return PEVENT_BAD_CONFIG;
	if (r->has & PERF_SAMPLE_TIME)
		r->tsc = to_tsc(r->time, m);
	return PEVENT_OK;
}

enum pevent_read pevent_record_read(const uint8_t *pos, const uint8_t *end,
				    const struct manifest_pevent *m, struct pevent_record *ret)
{
	static const size_t header = sizeof(struct perf_event_header);
	size_t left = (size_t)(end - pos);
	struct bytes_in in;

	*ret = (struct pevent_record){.sampled = m->sample_type != 0};
	bytes_in_init(&in, pos, left);
	ret->type = bytes_get_u32(&in);
	ret->misc = bytes_get_u16(&in);
	ret->size = bytes_get_u16(&in);
	if (in.bad || ret->type == 0 || ret->size > left)
		return PEVENT_END;
	if (ret->size < header)
		return PEVENT_BAD_SIZE;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].type == ret->type)
			ret->kind = &kinds[i];
	if (!ret->kind)
		return PEVENT_OK;
	bytes_in_init(&in, pos + header, ret->size - header);
	return read_known(&in, m, ret);
}

void pevent_put_text(struct lines *l, const char *text)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c >= 0x20 && c < 0x7f)
			lines_text(l, text, 1);
		else
			lines_print(l, "\\x%02x", c);
	}
}

/* The text that follows the type's name. */
static const char *suffix(const struct pevent_record *r)
{
	switch (r->type) {
	case PERF_RECORD_COMM: return r->misc & PERF_RECORD_MISC_COMM_EXEC ? ".EXEC" : "";
	case PERF_RECORD_AUX: return r->fields[2] & PERF_AUX_FLAG_TRUNCATED ? ".TRUNCATED" : "";
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return r->misc & PERF_RECORD_MISC_SWITCH_OUT ? ".OUT" : ".IN";
	default: return "";
	}
}

static void print_sample_compact(const struct pevent_record *r, struct lines *l)
{
	lines_print(l, "  {");
	if (r->has & PERF_SAMPLE_TID)
		lines_print(l, " %x/%x", r->pid, r->tid);
	if (r->has & PERF_SAMPLE_TIME)
		lines_print(l, " %" PRIx64, r->time);
	if (r->has & PERF_SAMPLE_ID)
		lines_print(l, " %" PRIx64, r->id);
	if (r->has & PERF_SAMPLE_CPU)
		lines_print(l, " cpu-%x", r->cpu);
	if (r->has & PERF_SAMPLE_STREAM_ID)
		lines_print(l, " %" PRIx64, r->stream_id);
	if (r->has & PERF_SAMPLE_IDENTIFIER)
		lines_print(l, " %" PRIx64, r->identifier);
	lines_print(l, " }");
}

static void print_verbose(const struct pevent_record *r, struct lines *l)
{
	const struct pevent_field *f = r->kind->fields;
	const char *before = "";

	/* The thread that comes next, or that was before. */
	if (r->type == PERF_RECORD_SWITCH_CPU_WIDE)
		before = r->misc & PERF_RECORD_MISC_SWITCH_OUT ? "next " : "prev ";
	lines_print(l, "PERF_RECORD_%s%s", r->kind->name, suffix(r));
	for (size_t i = 0; i < PEVENT_FIELDS && f[i].size > 0; i++)
		lines_print(l, "\n  %s%s: %" PRIx64, before, f[i].label, r->fields[i]);
	if (!r->kind->text)
		return;
	lines_print(l, "\n  %s: ", r->kind->text);
	pevent_put_text(l, r->text);
}

static void print_sample_verbose(const struct pevent_record *r, struct lines *l)
{
	if (r->has & PERF_SAMPLE_TID)
		lines_print(l, "\n  pid: %x\n  tid: %x", r->pid, r->tid);
	if (r->has & PERF_SAMPLE_TIME)
		lines_print(l, "\n  time: %" PRIx64, r->time);
	if (r->has & PERF_SAMPLE_ID)
		lines_print(l, "\n  id: %" PRIx64, r->id);
	if (r->has & PERF_SAMPLE_CPU)
		lines_print(l, "\n  cpu: %x", r->cpu);
	if (r->has & PERF_SAMPLE_STREAM_ID)
		lines_print(l, "\n  stream id: %" PRIx64, r->stream_id);
	if (r->has & PERF_SAMPLE_IDENTIFIER)
		lines_print(l, "\n  identifier: %" PRIx64, r->identifier);
}

void pevent_record_print(const struct pevent_record *r, uint64_t show, struct lines *l)
{
	bool compact = show & WORKER_SHOW_SB_COMPACT, verbose = show & WORKER_SHOW_SB_VERBOSE;

	if (compact && r->kind) {
		const char *c = r->kind->compact;

		lines_print(l, "PERF_RECORD_%s%s%s", r->kind->name, suffix(r),
			    *c != '\0' ? "  " : "");
		for (; *c != '\0'; c++)
			if (*c == '$')
				pevent_put_text(l, r->text);
			else if (*c >= 'a' && *c <= 'k')
				lines_print(l, "%" PRIx64, r->fields[*c - 'a']);
			else
				lines_text(l, c, 1);
	} else if (compact) {
		lines_print(l, "UNKNOWN (%x, %x)", r->type, r->misc);
	} else if (verbose && r->kind) {
		print_verbose(r, l);
	} else if (verbose) {
		lines_print(l, "UNKNOWN\n  type: %x\n  misc: %x", r->type, r->misc);
	}
	if (compact && r->sampled)
		print_sample_compact(r, l);
	else if (verbose)
		print_sample_verbose(r, l);
	lines_text(l, "\n", 1);
}
