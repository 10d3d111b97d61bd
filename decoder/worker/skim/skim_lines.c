/*
 * Writes one line for each sample. Each line is complete in itself, so that lines can be sorted and
 * searched.
 */
#include "decoder/worker/skim/skim_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/code/insn.h"
#include "decoder/worker/turns/scan.h"
#include "proto/base.h"
#include "proto/decode_options.h"

#define MAX_NAME 1024u /* bytes of a symbol or path */
#define NSEC_SEC UINT64_C(1000000000)

int skim_lines_init(struct skim_lines *l, const struct replay *r, uint64_t show,
		    struct lines *lines)
{
	*l = (struct skim_lines){.lines = lines, .replay = r, .show = show};
	return functions_init(&l->functions, r);
}

void skim_lines_done(struct skim_lines *l)
{
	functions_done(&l->functions);
}

static void write_text(struct skim_lines *l, const char *text)
{
	lines_text(l->lines, text, strlen(text));
}

/* Writes a stranger's name as one field, and with nothing that a terminal would obey. */
static void write_name(struct skim_lines *l, const char *name)
{
	size_t i, from = 0, n = strnlen(name, MAX_NAME);
	char text[8];

	for (i = 0; i < n; i++) {
		uint8_t c = (uint8_t)name[i];

		if (c > ' ' && c < 0x7f && c != '\\')
			continue;
		lines_text(l->lines, name + from, i - from);
		snprintf(text, sizeof(text), "\\x%02x", c);
		write_text(l, text);
		from = i + 1;
	}
	lines_text(l->lines, name + from, n - from);
}

/* Makes the text of a time: seconds since the trigger, or the TSC if that is unknown. */
static void make_time(struct skim_lines *l, uint64_t tsc)
{
	const struct manifest *m = l->replay->manifest;
	uint64_t ns = tsc == 0 ? MANIFEST_ABSENT : tscmap_ns(&l->replay->clock, tsc);
	bool before = ns < m->perf_ns;
	int n;

	l->tsc = tsc;
	if (tsc == 0) {
		n = snprintf(l->time, sizeof(l->time), "- ");
	} else if (ns == MANIFEST_ABSENT || m->perf_ns == MANIFEST_ABSENT) {
		n = snprintf(l->time, sizeof(l->time), "0x%" PRIx64 " ", tsc);
	} else {
		ns = before ? m->perf_ns - ns : ns - m->perf_ns;
		n = snprintf(l->time, sizeof(l->time), "%s%" PRIu64 ".%09" PRIu64 " ",
			     before ? "-" : "", ns / NSEC_SEC, ns % NSEC_SEC);
	}
	l->time_size = (size_t)n;
}

/* Writes NUMBER in decimal, or "-" if the number is unknown, and then AFTER. */
static void write_number(struct skim_lines *l, bool known, uint32_t number, char after)
{
	char text[16];
	size_t i = sizeof(text);

	text[--i] = after;
	do {
		text[--i] = (char)(known ? '0' + number % 10 : '-');
		number /= 10;
	} while (known && number > 0);
	lines_text(l->lines, text + i, sizeof(text) - i);
}

static void write_kind(struct skim_lines *l, const struct skim_sample *s)
{
	static const char *const kinds[] = {[SKIM_PSB] = "psb ",
					    [SKIM_TIP] = "tip ",
					    [SKIM_ENABLE] = "tip.pge ",
					    [SKIM_DISABLE] = "tip.pgd ",
					    [SKIM_FUP] = "fup "};
	static const char *const modes[] = {
		[INSN_MODE_64] = "psb/64 ", [INSN_MODE_32] = "psb/32 ", [INSN_MODE_16] = "psb/16 "};

	write_text(l, s->kind == SKIM_PSB && s->mode_known ? modes[s->mode] : kinds[s->kind]);
}

static int write_place(struct skim_lines *l, const struct skim_sample *s,
		       const struct skim_owner *owner)
{
	const struct manifest *m = l->replay->manifest;
	const struct function *f = &l->functions.list[0];
	struct functions_span span = {0};
	struct image_code code;
	uint64_t into = 0;
	const char *path;
	int r = 0;

	if (!owner->guest)
		r = functions_find(&l->functions, owner->context, s->ip, &span);
	if (r < 0)
		return r;
	f = &l->functions.list[span.function];
	path = f->image < m->n_images ? m->images[f->image].path : NULL;
	if (owner->guest) {
		write_text(l, "- [guest]");
		return 0;
	}
	if (span.function == 0) {
		write_text(l, scan_is_kernel(s->ip) ? "- [kernel]" : "- [unknown]");
		return 0;
	}
	/* A function without a name has its address in the file, and memory its offset. */
	if (f->name || f->file_address != 0)
		into = s->ip - span.entry;
	else if (replay_find(l->replay, owner->context, s->ip, &code) == 0)
		into = code.offset + (s->ip - code.address);
	if (f->name) {
		write_name(l, f->name);
	} else if (f->file_address != 0) {
		char text[32];

		snprintf(text, sizeof(text), "@0x%llx", (unsigned long long)f->file_address);
		write_text(l, text);
	}
	write_text(l, "+0x");
	lines_hex(l->lines, into, ' ');
	write_name(l, path ? path : "-");
	return 0;
}

/* The fields of a line up to the CPU. */
static void write_when(struct skim_lines *l, size_t cpu, const struct skim_sample *s)
{
	const uint32_t number = l->replay->manifest->cpus[cpu].cpu;

	if ((l->show & WORKER_SHOW_TIME) != 0) {
		lines_hex(l->lines, s->tsc_lo, ' ');
		lines_hex(l->lines, s->tsc_hi, ' ');
	} else {
		if (l->time_size == 0 || l->tsc != s->tsc_lo)
			make_time(l, s->tsc_lo);
		lines_text(l->lines, l->time, l->time_size);
	}
	if ((l->show & WORKER_SHOW_PLACES) != 0)
		lines_hex(l->lines, s->offset, ' ');
	write_number(l, number != MANIFEST_ANY, number, ' ');
}

int skim_lines_gap(struct skim_lines *l, size_t cpu, const struct skim_sample *before,
		   uint64_t offset, enum fault kind)
{
	struct skim_sample at = *before;

	at.offset = offset;
	at.tsc_hi = UINT64_MAX;
	write_when(l, cpu, &at);
	write_text(l, "-/- gap - - [");
	write_text(l, fault_name(kind));
	write_text(l, "]\n");
	return l->lines->error;
}

int skim_lines_write(struct skim_lines *l, size_t cpu, const struct skim_sample *s,
		     const struct skim_owner *owner)
{
	const struct timeline_thread *t = owner->thread, *p = t ? t : owner->process;
	int r = 0;

	write_when(l, cpu, s);
	write_number(l, p, p ? p->pid : 0, '/');
	write_number(l, t, t ? t->tid : 0, ' ');
	write_kind(l, s);
	if (s->has_ip) {
		lines_hex(l->lines, s->ip, ' ');
		r = write_place(l, s, owner);
	} else {
		write_text(l, "- - [off]");
	}
	write_text(l, "\n");
	return r != 0 ? r : l->lines->error;
}
