/*
 * Names of code as in its source: demangled names, lines and inlined functions.
 *
 * Names and lines are looked up only for what is written, and kept, because everything is measured
 * before it is written. Both tables are direct-mapped, so that their size is bounded whatever a
 * file contains. A name is known by its pointer: symbols and DWARF do not move while a report is
 * written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decoder/worker/report/report_parts.h"
#include "proto/base.h"
#include "sideband/dwarf/dwarf.h"
#include "sideband/symbols/symbols.h"

#define NAMES (1u << 12)
#define LINES (1u << 16)

struct source_name {
	const char *linkage; /* NULL: the entry is free */
	char *text;	     /* demangled; NULL: LINKAGE is the name */
};

struct source_lines {
	bool known;
	uint32_t image;
	uint64_t offset;
	size_t n;
	struct dwarf_frame *frames;
};

struct report_source {
	uint64_t spent_ns; /* CPU time spent on lines, if that is limited, before BEGAN_NS */
	uint64_t began_ns; /* when the current look-up began */
	uint64_t limit_ns;
	struct source_name names[NAMES];
	struct source_lines lines[LINES];
};

/* Whether a look-up that has begun has used up the time. */
static bool is_enough(void *userdata)
{
	const struct report_source *s = userdata;

	return s->spent_ns + (now_ns(CLOCK_THREAD_CPUTIME_ID) - s->began_ns) >= s->limit_ns;
}

int report_source_init(struct report *r)
{
	r->source = calloc(1, sizeof(*r->source));
	if (!r->source)
		return -ENOMEM;
	r->source->limit_ns = r->options->lines_ns;
	if (r->source->limit_ns > 0)
		symbols_limit_lines(r->d->replay->symbols, is_enough, r->source);
	return 0;
}

void report_source_done(struct report *r)
{
	if (!r->source)
		return;
	symbols_limit_lines(r->d->replay->symbols, NULL, NULL);
	for (size_t i = 0; i < NAMES; i++)
		free(r->source->names[i].text);
	for (size_t i = 0; i < LINES; i++)
		free(r->source->lines[i].frames);
	free(r->source);
}

static size_t slot_of(uint64_t a, uint64_t b, size_t n)
{
	return (size_t)((a ^ b << 40) * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (n - 1);
}

/* NULL: LINKAGE is not mangled, or symbols are not to be read. A decoder's second attempt reads no
 * names of strangers, except those that the kernel passed on. */
static const char *demangled(const struct report *r, const char *linkage)
{
	struct source_name *s = &r->source->names[slot_of((uintptr_t)linkage, 0, NAMES)];

	if (!linkage || r->options->no_symbols)
		return NULL;
	if (s->linkage != linkage) {
		free(s->text);
		*s = (struct source_name){linkage, demangle(linkage)};
	}
	return s->text;
}

const char *report_source_name(const struct report *r, const char *linkage)
{
	const char *text = demangled(r, linkage);

	return text ? text : linkage;
}

void report_linkage(const struct report *r, struct json_writer *w, const char *linkage)
{
	if (!demangled(r, linkage))
		return;
	report_string_cut(w, "linkage", linkage, REPORT_MAX_STRING);
}

/* A file can be made so that lines take long to find. OPTIONS->lines_ns limits the time for all
 * files together, so that the report is not late. */
static void look_up(const struct report *r, struct source_lines *s)
{
	struct report_source *source = r->source;
	struct dwarf_frame frames[DWARF_MAX_FRAMES];
	bool limited = source->limit_ns > 0;
	size_t n;

	if (limited && source->spent_ns >= source->limit_ns)
		return;
	source->began_ns = limited ? now_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
	n = symbols_lines(r->d->replay->symbols, s->image, s->offset, frames, DWARF_MAX_FRAMES);
	if (limited)
		source->spent_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - source->began_ns;
	s->frames = n > 0 ? malloc(n * sizeof(*frames)) : NULL;
	if (!s->frames)
		return;
	memcpy(s->frames, frames, n * sizeof(*frames));
	s->n = n;
}

/* The *ret_n frames of OFFSET of IMAGE, innermost first; 0: nothing is known. */
static const struct dwarf_frame *lines_at(const struct report *r, uint32_t image, uint64_t offset,
					  size_t *ret_n)
{
	struct source_lines *s = &r->source->lines[slot_of(offset, image, LINES)];

	*ret_n = 0;
	if (!r->options->lines || r->options->no_symbols || image >= r->m->n_images)
		return NULL;
	if (!s->known || s->image != image || s->offset != offset) {
		free(s->frames);
		*s = (struct source_lines){.known = true, .image = image, .offset = offset};
		look_up(r, s);
	}
	*ret_n = s->n;
	return s->frames;
}

static void write_line(struct json_writer *w, const struct dwarf_frame *frame)
{
	if (!frame->file || frame->line == 0)
		return;
	report_string_cut(w, "file", frame->file, REPORT_MAX_STRING);
	json_u64(w, "line", frame->line);
}

void report_source(const struct report *r, struct json_writer *w, uint32_t image, uint64_t offset)
{
	size_t n;
	const struct dwarf_frame *frames = lines_at(r, image, offset, &n);

	if (n > 0)
		write_line(w, &frames[n - 1]);
}

void report_inlined(const struct report *r, struct json_writer *w, uint32_t image, uint64_t offset)
{
	size_t n;
	const struct dwarf_frame *frames = lines_at(r, image, offset, &n);

	if (n < 2)
		return;
	json_begin_array(w, "inlined");
	for (size_t i = 0; i + 1 < n; i++) {
		const char *name = frames[i].function;

		json_begin_object(w, NULL);
		report_string_cut(w, "name", report_source_name(r, name), REPORT_MAX_STRING);
		report_linkage(r, w, name);
		write_line(w, &frames[i]);
		json_end_object(w);
	}
	json_end_array(w);
}

void report_dwarf(const struct report *r, struct json_writer *w, uint32_t image)
{
	static const char *const names[] = {
		[SYMBOLS_DWARF_NONE] = "none",
		[SYMBOLS_DWARF_OWN] = "own",
		[SYMBOLS_DWARF_APART] = "apart",
		[SYMBOLS_DWARF_LARGE] = "too-large",
	};
	/* Measuring looks up only some lines, and therefore counts the longest name. */
	enum symbols_dwarf dwarf = SYMBOLS_DWARF_LARGE;

	if (!r->options->lines || r->options->no_symbols)
		return;
	if (!r->measuring)
		dwarf = symbols_dwarf(r->d->replay->symbols, image);
	if (dwarf == SYMBOLS_DWARF_UNASKED)
		return;
	json_string(w, "dwarf", names[dwarf]);
}
