/*
 * Prints the records of several files in the order of time.
 *
 * The files and their number are a stranger's: each record is read once and none is kept; a file is
 * left at its first record that makes no sense, with a message.
 */
#include "decoder/worker/view/pevent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <linux/perf_event.h>

#include "proto/base.h"

#define SHOW_RECORDS                                                                 \
	(WORKER_SHOW_SB_COMPACT | WORKER_SHOW_SB_VERBOSE | WORKER_SHOW_SB_FILENAME | \
	 WORKER_SHOW_SB_OFFSET | WORKER_SHOW_SB_TIME)

enum place { PLACE_UNKNOWN, PLACE_LIKELY_USER, PLACE_USER, PLACE_LIKELY_KERNEL, PLACE_KERNEL };

/* A process as libipt knows it: exec and fork make another process with the same number. */
struct pid_context {
	bool known, stale; /* stale: PID is another process by now */
	uint32_t pid;
};

struct stream {
	const struct manifest_pevent *m;
	const uint8_t *begin, *end, *pos; /* pos: the current record */
	struct pevent_record record;
	bool due;	/* there is a current record */
	bool dead;	/* the file is left, and takes no more events */
	uint64_t order; /* of records with the same time, the one with the highest order is first */
	enum place place;
	struct pid_context now, next;
};

struct pevent {
	struct lines *lines;
	uint64_t show, kernel_start, n_orders;
	size_t n;
	struct stream streams[];
};

/* Prints a message about the current record. */
static void say(const struct pevent *p, const struct stream *s, const char *kind, const char *text)
{
	lines_text(p->lines, "[", 1);
	pevent_put_text(p->lines, s->m->name ? s->m->name : "<unknown>");
	lines_print(p->lines, ":%016" PRIx64 " sideband %s: %s]\n", (uint64_t)(s->pos - s->begin),
		    kind, text);
}

static void warn(const struct pevent *p, const struct stream *s, const char *text)
{
	if (p->show & WORKER_SHOW_SB_WARN)
		say(p, s, "warning", text);
}

/* Reads the record at POS as the current record. */
static void fetch(struct pevent *p, struct stream *s)
{
	static const char *const texts[] = {
		[PEVENT_BAD_TEXT] = "unknown packet",
		[PEVENT_BAD_SIZE] = "decoder out of sync",
		[PEVENT_BAD_CONFIG] = "bad configuration",
	};
	enum pevent_read r = pevent_record_read(s->pos, s->end, s->m, &s->record);

	s->due = r == PEVENT_OK;
	s->order = p->n_orders++;
	if (r == PEVENT_OK || r == PEVENT_END)
		return;
	s->dead = true;
	say(p, s, "error", texts[r]);
}

static void next(struct pevent *p, struct stream *s)
{
	s->pos += s->record.size;
	fetch(p, s);
}

/* The stream with the earliest record, if that is not later than TSC; NULL: none. */
static struct stream *first(struct pevent *p, uint64_t tsc)
{
	struct stream *found = NULL;

	for (size_t i = 0; i < p->n; i++) {
		struct stream *s = &p->streams[i];

		if (!s->due || s->record.tsc > tsc)
			continue;
		if (!found || s->record.tsc < found->record.tsc ||
		    (s->record.tsc == found->record.tsc && s->order > found->order))
			found = s;
	}
	return found;
}

static void print(const struct pevent *p, const struct stream *s)
{
	if (!(p->show & SHOW_RECORDS) || (p->show & WORKER_SHOW_QUIET))
		return;
	if (p->show & WORKER_SHOW_SB_FILENAME)
		pevent_put_text(p->lines, s->m->name ? s->m->name : "<unknown>");
	if (p->show & WORKER_SHOW_SB_OFFSET)
		lines_print(p->lines, "%s%016" PRIx64, p->show & WORKER_SHOW_SB_FILENAME ? ":" : "",
			    (uint64_t)(s->pos - s->begin));
	if (p->show & (WORKER_SHOW_SB_FILENAME | WORKER_SHOW_SB_OFFSET))
		lines_print(p->lines, "  ");
	if ((p->show & WORKER_SHOW_SB_TIME) && (s->record.has & PERF_SAMPLE_TIME))
		lines_print(p->lines, "%016" PRIx64 "  ", s->record.tsc);
	pevent_record_print(&s->record, p->show, p->lines);
}

void pevent_until(struct pevent *p, uint64_t tsc)
{
	struct stream *s;

	while (p && (s = first(p, tsc))) {
		print(p, s);
		next(p, s);
	}
}

/* From here on, PID is another process. */
static void replace(struct pevent *p, uint32_t pid)
{
	for (size_t i = 0; i < p->n; i++) {
		struct stream *s = &p->streams[i];

		s->now.stale |= s->now.pid == pid;
		s->next.stale |= s->next.pid == pid;
	}
}

static void prepare(struct stream *s, uint32_t pid)
{
	if (s->next.known && !s->next.stale && s->next.pid == pid)
		return;
	s->next.known = !s->now.known || s->now.stale || s->now.pid != pid;
	s->next.stale = false;
	s->next.pid = pid;
}

static void take_next(const struct pevent *p, struct stream *s)
{
	s->now = s->next;
	s->next.known = false;
	if (p->show & WORKER_SHOW_SB_SWITCH)
		lines_print(p->lines, "[context: pid-%x]\n", s->now.pid);
}

/* Warns if the name of a mapping shows that its code cannot be had. */
static void apply_mapping(const struct pevent *p, const struct stream *s)
{
	const char *name = s->record.text;

	/* The kernel's code is not taken from the files that its records name. */
	if ((s->record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL)
		return;
	if (strcmp(name, "[vdso]") == 0)
		say(p, s, "error", "bad configuration"); /* has no file */
	else if (name[0] == '[' || strcmp(name, "//anon") == 0 || strstr(name, " (deleted)"))
		warn(p, s, "image section lost");
}

static void apply_primary(struct pevent *p, struct stream *s)
{
	bool out = s->record.misc & PERF_RECORD_MISC_SWITCH_OUT;
	bool has = s->record.has & PERF_SAMPLE_TID;

	switch (s->record.type) {
	case PERF_RECORD_ITRACE_START:
		/* Tracing begins: there is no older context to wait for. */
		prepare(s, (uint32_t)s->record.fields[0]);
		if (s->next.known)
			take_next(p, s);
		break;
	case PERF_RECORD_SWITCH_CPU_WIDE:
		if (out)
			prepare(s, (uint32_t)s->record.fields[0]);
		else if (has)
			prepare(s, s->record.pid);
		break;
	case PERF_RECORD_SWITCH:
		if (!out && has)
			prepare(s, s->record.pid);
		else if (!out)
			say(p, s, "error", "bad configuration");
		break;
	case PERF_RECORD_AUX:
		if (s->record.fields[2] & PERF_AUX_FLAG_TRUNCATED)
			warn(p, s, "trace lost");
		break;
	default: break;
	}
}

static void apply(struct pevent *p, struct stream *s)
{
	const struct pevent_record *r = &s->record;
	uint32_t pid = (uint32_t)r->fields[0], ppid = (uint32_t)r->fields[1];

	switch (r->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2: apply_mapping(p, s); break;
	case PERF_RECORD_FORK:
		if (pid == ppid)
			break;
		if (pid != r->fields[2])
			say(p, s, "error", "internal error");
		else
			replace(p, pid);
		break;
	case PERF_RECORD_COMM:
		if (!(r->misc & PERF_RECORD_MISC_COMM_EXEC))
			break;
		replace(p, pid);
		if (!s->m->secondary)
			prepare(s, pid);
		break;
	case PERF_RECORD_LOST: warn(p, s, "sideband lost"); break;
	default:
		if (!s->m->secondary)
			apply_primary(p, s);
	}
}

static enum place place_at(const struct pevent *p, uint64_t ip)
{
	return ip < p->kernel_start ? PLACE_USER : PLACE_KERNEL;
}

static enum place across(enum place from)
{
	switch (from) {
	case PLACE_LIKELY_KERNEL:
	case PLACE_KERNEL: return PLACE_LIKELY_USER;
	case PLACE_LIKELY_USER:
	case PLACE_USER: return PLACE_LIKELY_KERNEL;
	default: return PLACE_UNKNOWN;
	}
}

static bool is_user(enum place place)
{
	return place == PLACE_USER || place == PLACE_LIKELY_USER;
}

void pevent_event(struct pevent *p, const struct pevent_event *event)
{
	struct stream *s;

	while (p && (s = first(p, event->tsc))) {
		print(p, s);
		apply(p, s);
		next(p, s);
	}
	for (size_t i = 0; p && i < p->n; i++) {
		enum place old;

		s = &p->streams[i];
		if (s->m->secondary || s->dead)
			continue;
		/* The next context is taken in the kernel, or where the place is unknown: user code
		 * that precedes the switch in the trace still belongs to the old context. */
		old = s->place;
		switch (event->where) {
		case PEVENT_AT: s->place = place_at(p, event->ip); break;
		case PEVENT_ACROSS: s->place = across(old); break;
		case PEVENT_ACROSS_FROM: s->place = across(place_at(p, event->ip)); break;
		case PEVENT_LIKELY_KERNEL: s->place = PLACE_LIKELY_KERNEL; break;
		default: s->place = PLACE_UNKNOWN; break;
		}
		if (s->next.known && (!is_user(old) || !is_user(s->place)))
			take_next(p, s);
	}
}

int pevent_new(const struct bundle *b, const struct decode_options *options, struct lines *l,
	       struct pevent **ret)
{
	const struct manifest *m = bundle_manifest(b);
	struct pevent *p;

	*ret = NULL;
	if (m->n_pevents == 0)
		return 0;
	p = calloc(1, sizeof(*p) + m->n_pevents * sizeof(p->streams[0]));
	if (!p)
		return -ENOMEM;
	p->lines = l;
	p->show = options->show;
	p->kernel_start = options->kernel_start != 0 ? options->kernel_start : UINT64_C(1) << 63;
	p->n = m->n_pevents;
	/* The last file first: of records with the same time, the first file's then come first. */
	for (size_t i = p->n; i > 0; i--) {
		struct stream *s = &p->streams[i - 1];
		size_t size;

		s->m = &m->pevents[i - 1];
		s->begin = s->pos = bundle_pevent(b, i - 1, &size);
		s->end = s->begin + size;
		fetch(p, s);
	}
	*ret = p;
	return 0;
}

void pevent_free(struct pevent *p)
{
	free(p);
}

void pevent_freep(struct pevent **p)
{
	pevent_free(*p);
}
