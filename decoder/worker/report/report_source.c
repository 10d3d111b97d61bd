/*
 * What the source says: names as it has them, lines, inlined functions. Looked up only for what is
 * written, and kept, as everything is measured before. Used by all parts that name code.
 *
 * Both tables are direct-mapped: what they hold is bounded, whatever a file makes of it. Names are
 * told apart by where they lie, as symbols and DWARF stay where they are while a report is written.
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
/* A line number has ten digits at most. */
#define MAX_FILE (REPORT_MAX_STRING - 11)

struct source_name {
	const char *linkage; /* NULL: nothing was looked up here */
	char *text;	     /* NULL: that is the name */
};

struct source_lines {
	bool known;
	uint32_t image;
	uint64_t offset;
	size_t n;
	struct dwarf_frame *frames;
};

struct report_source {
	uint64_t spent_ns; /* on lines, where that is limited, */
	uint64_t began_ns; /* before the lookup that began then */
	uint64_t limit_ns;
	struct source_name names[NAMES];
	struct source_lines lines[LINES];
};

/* Of a lookup that has begun. */
static bool is_enough(void *userdata)
{
	const struct report_source *s = userdata;

	return s->spent_ns + (now_ns(CLOCK_THREAD_CPUTIME_ID) - s->began_ns) >= s->limit_ns;
}

int report_source_init(struct report *r)
{
	r->source = calloc(1, sizeof(*r->source));
	if (r->source == NULL)
		return -ENOMEM;
	r->source->limit_ns = r->options->lines_ns;
	if (r->source->limit_ns > 0)
		symbols_limit_lines(r->d->replay->symbols, is_enough, r->source);
	return 0;
}

void report_source_done(struct report *r)
{
	size_t i;

	if (r->source == NULL)
		return;
	symbols_limit_lines(r->d->replay->symbols, NULL, NULL);
	for (i = 0; i < NAMES; i++)
		free(r->source->names[i].text);
	for (i = 0; i < LINES; i++)
		free(r->source->lines[i].frames);
	free(r->source);
}

static size_t slot_of(uint64_t a, uint64_t b, size_t n)
{
	return (size_t)((a ^ b << 40) * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (n - 1);
}

/* Of a decoder's second attempt nothing is read that strangers named, but by the kernel. */
static const char *demangled(const struct report *r, const char *linkage)
{
	struct source_name *s = &r->source->names[slot_of((uintptr_t)linkage, 0, NAMES)];

	if (linkage == NULL || r->options->no_symbols)
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

	return text != NULL ? text : linkage;
}

void report_linkage(const struct report *r, struct json_writer *w, const char *linkage)
{
	if (demangled(r, linkage) == NULL)
		return;
	report_string_cut(w, "linkage", linkage, REPORT_MAX_STRING);
}

/* Files may be made to take long, each of them: no report is late for that. */
static size_t find_lines(const struct report *r, const struct source_lines *s,
			 struct dwarf_frame *ret)
{
	uint64_t limit = r->source->limit_ns,
		 began = limit > 0 ? now_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
	size_t n;

	if (limit > 0 && r->source->spent_ns >= limit)
		return 0;
	r->source->began_ns = began;
	n = symbols_lines(r->d->replay->symbols, s->image, s->offset, ret, DWARF_MAX_FRAMES);
	if (limit > 0)
		r->source->spent_ns += now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	return n;
}

static void look_up(const struct report *r, struct source_lines *s)
{
	struct dwarf_frame frames[DWARF_MAX_FRAMES];
	size_t n = find_lines(r, s, frames);

	s->frames = n > 0 ? malloc(n * sizeof(*frames)) : NULL;
	if (s->frames == NULL)
		return;
	memcpy(s->frames, frames, n * sizeof(*frames));
	s->n = n;
}

/* What is known of OFFSET of IMAGE, innermost first: *RET_N frames; 0: nothing. */
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

/* "FILE:LINE"; nothing where it is unknown. */
static void write_line(struct json_writer *w, const char *key, const struct dwarf_frame *frame)
{
	char text[REPORT_MAX_STRING + 1];

	if (frame->file == NULL || frame->line == 0)
		return;
	snprintf(text, sizeof(text), "%.*s:%u", (int)MAX_FILE, frame->file, frame->line);
	json_string(w, key, text);
}

void report_source_line(const struct report *r, struct json_writer *w, const char *key,
			uint32_t image, uint64_t offset)
{
	size_t n;
	const struct dwarf_frame *frames = lines_at(r, image, offset, &n);

	if (n > 0)
		write_line(w, key, &frames[0]);
}

void report_source_outer(const struct report *r, struct json_writer *w, uint32_t image,
			 uint64_t offset)
{
	size_t n;
	const struct dwarf_frame *frames = lines_at(r, image, offset, &n);

	if (n > 0)
		write_line(w, "source", &frames[n - 1]);
}

static void write_inlined(const struct report *r, struct json_writer *w,
			  const struct dwarf_frame *frame)
{
	json_begin_object(w, NULL);
	report_string_cut(w, "name", report_source_name(r, frame->function), REPORT_MAX_STRING);
	report_linkage(r, w, frame->function);
	write_line(w, "source", frame);
	json_end_object(w);
}

void report_inlined(const struct report *r, struct json_writer *w, uint32_t image, uint64_t offset)
{
	size_t i, n;
	const struct dwarf_frame *frames = lines_at(r, image, offset, &n);

	if (n < 2)
		return;
	json_begin_array(w, "inlined");
	for (i = 0; i + 1 < n; i++)
		write_inlined(r, w, &frames[i]);
	json_end_array(w);
}

/* The longest: when images are measured not all is looked up. */
static enum symbols_dwarf dwarf_of(const struct report *r, uint32_t image)
{
	if (!r->options->lines || r->options->no_symbols)
		return SYMBOLS_DWARF_UNASKED;
	return r->measuring ? SYMBOLS_DWARF_LARGE : symbols_dwarf(r->d->replay->symbols, image);
}

void report_dwarf(const struct report *r, struct json_writer *w, uint32_t image)
{
	static const char *const names[] = {
		[SYMBOLS_DWARF_NONE] = "none",
		[SYMBOLS_DWARF_OWN] = "own",
		[SYMBOLS_DWARF_APART] = "apart",
		[SYMBOLS_DWARF_LARGE] = "too-large",
	};
	const enum symbols_dwarf dwarf = dwarf_of(r, image);

	if (dwarf == SYMBOLS_DWARF_UNASKED)
		return;
	json_string(w, "dwarf", names[dwarf]);
}
