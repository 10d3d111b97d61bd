/*
 * The lines of one unit: the program of its line table is run once, and what it says is kept by
 * runs of addresses that belong together. Part of dwarf.c.
 *
 * libdw would sort the rows of all runs into one list, where those of a function that the linker
 * left out (it then begins at zero) lie between those of one that is there; and it takes a hundred
 * bytes for each byte of a stranger's program. DWARF 5 section 6.2.5.
 */
#include <errno.h>
#include <stdlib.h>

#include <dwarf.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf_line.h"

/* Of one file: 128 MiB of rows, and 64 MiB of names. */
#define MAX_ROWS  ((size_t)8 << 20)
#define MAX_NAMES ((size_t)64 << 20)
/* A run takes as much as so many rows. */
#define RUN_ROWS 4u

struct row {
	uint32_t at; /* from where the run begins */
	uint32_t file, line, column;
};

struct run {
	uint64_t begin;
	size_t first, n; /* rows */
};

struct dwarf_lines {
	struct dwarf_file *f;
	struct dwarf_line_header header;
	struct row *rows;
	size_t n_rows, max_rows, rows_capacity;
	struct run *runs;
	size_t n_runs, runs_capacity;
	struct dwarf_spans spans; /* value: the run's number */
};

/* --- Keeping --- */

static bool add_row(struct dwarf_lines *l, const struct row *row)
{
	if (ARRAY_RESERVE(l->rows, l->rows_capacity, l->n_rows + 1) < 0)
		return false;
	l->rows[l->n_rows++] = *row;
	return true;
}

static bool add_run(struct dwarf_lines *l, const struct run *run, uint64_t end)
{
	if (ARRAY_RESERVE(l->runs, l->runs_capacity, l->n_runs + 1) < 0)
		return false;
	l->runs[l->n_runs++] = *run;
	return dwarf_spans_add(&l->spans, run->begin, end, l->n_runs - 1) == 0;
}

/* --- The program --- */

struct machine {
	struct dwarf_lines *l;
	uint64_t address, file, line, column;
	struct run run; /* n is that of the rows so far */
};

static void reset(struct machine *m)
{
	m->address = 0;
	m->file = m->line = 1;
	m->column = 0;
	m->run = (struct run){0, m->l->n_rows, 0};
}

static uint32_t narrow(uint64_t value)
{
	return value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* Of rows at one address the last one counts, and one that says nothing new is none. What goes
 * backwards, or too far, is left out. */
static bool emit(struct machine *m)
{
	struct dwarf_lines *l = m->l;
	struct row *last = m->run.n > 0 ? &l->rows[l->n_rows - 1] : NULL, row;

	if (!last)
		m->run.begin = m->address;
	row = (struct row){(uint32_t)(m->address - m->run.begin), narrow(m->file), narrow(m->line),
			   narrow(m->column)};
	if (m->address < m->run.begin || m->address - m->run.begin > UINT32_MAX ||
	    (last && row.at < last->at))
		return true;
	if (last && row.file == last->file && row.line == last->line && row.column == last->column)
		return true;
	if (last && row.at == last->at) {
		*last = row;
		return true;
	}
	if (l->n_rows + RUN_ROWS * l->n_runs >= l->max_rows || !add_row(l, &row))
		return false;
	m->run.n++;
	return true;
}

static bool end_run(struct machine *m)
{
	bool ok = true;

	if (m->run.n > 0 && m->address > m->run.begin)
		ok = add_run(m->l, &m->run, m->address);
	else
		m->l->n_rows = m->run.first;
	reset(m);
	return ok;
}

static void advance(struct machine *m, uint64_t by)
{
	m->address += by * m->l->header.instruction;
}

static bool run_special(struct machine *m, unsigned opcode)
{
	const struct dwarf_line_header *h = &m->l->header;
	unsigned n = opcode - h->opcode_base;

	advance(m, n / h->line_range);
	m->line += (uint64_t)(int64_t)(h->line_base + (int)(n % h->line_range));
	return emit(m);
}

static bool run_extended(struct machine *m, struct dwarf_reader *program)
{
	uint64_t length = dwarf_unsigned(program);
	struct dwarf_reader r = {program->at, program->at, false};
	const char *name;

	if (length == 0 || !dwarf_skip(program, length))
		return length == 0 && !program->bad;
	r.end = program->at;
	switch (dwarf_byte(&r)) {
	case DW_LNE_end_sequence: return end_run(m);
	case DW_LNE_set_address:
		m->address = dwarf_fixed(&r, MIN_OF(dwarf_left(&r), (size_t)8));
		return true;
	case DW_LNE_define_file:
		name = dwarf_string(&r);
		return name && dwarf_line_add_file(&m->l->header, name, dwarf_unsigned(&r));
	default: return true;
	}
}

static void skip_unknown(const struct dwarf_line_header *h, unsigned opcode, struct dwarf_reader *r)
{
	for (unsigned n = h->lengths[opcode - 1]; n > 0; n--)
		dwarf_unsigned(r);
}

static bool run_standard(struct machine *m, unsigned opcode, struct dwarf_reader *r)
{
	const struct dwarf_line_header *h = &m->l->header;

	switch (opcode) {
	case DW_LNS_copy: return emit(m);
	case DW_LNS_advance_pc: advance(m, dwarf_unsigned(r)); break;
	case DW_LNS_advance_line: m->line += (uint64_t)dwarf_signed(r); break;
	case DW_LNS_set_file: m->file = dwarf_unsigned(r); break;
	case DW_LNS_set_column: m->column = dwarf_unsigned(r); break;
	case DW_LNS_const_add_pc: advance(m, (255 - h->opcode_base) / h->line_range); break;
	case DW_LNS_fixed_advance_pc: m->address += dwarf_fixed(r, 2); break;
	default: skip_unknown(h, opcode, r);
	}
	return true;
}

/* What was there before something cannot be read remains. */
static void run_program(struct dwarf_lines *l, struct dwarf_reader *r)
{
	struct machine m = {.l = l};
	bool ok = true;

	reset(&m);
	while (ok && !r->bad && dwarf_left(r) > 0) {
		unsigned opcode = dwarf_byte(r);

		if (opcode >= l->header.opcode_base)
			ok = run_special(&m, opcode);
		else if (opcode == 0)
			ok = run_extended(&m, r);
		else
			ok = run_standard(&m, opcode, r);
	}
	l->n_rows = m.run.first;
	dwarf_spans_sort(&l->spans);
}

/* What was thrown away, or only there to grow, goes; the rest is counted. */
static void settle(struct dwarf_file *f, struct dwarf_lines *l)
{
	if (l->rows && ARRAY_FIT(l->rows, l->n_rows) == 0)
		l->rows_capacity = MAX_OF(l->n_rows, (size_t)1);
	f->n_rows += l->n_rows + RUN_ROWS * l->n_runs;
	dwarf_room_take(f, sizeof(*l) + l->rows_capacity * sizeof(*l->rows) +
				   l->runs_capacity * sizeof(*l->runs) +
				   l->spans.capacity * sizeof(*l->spans.items) +
				   dwarf_line_header_bytes(&l->header));
}

/* --- The table --- */

static bool find_table(struct dwarf_file *f, Dwarf_Die *die, struct dwarf_reader *ret)
{
	const struct dwarf_section *s = &f->sections.of[DWARF_LINE];
	Dwarf_Attribute a;
	Dwarf_Word offset;

	if (!dwarf_attr(die, DW_AT_stmt_list, &a) || dwarf_formudata(&a, &offset) != 0 ||
	    offset >= s->size)
		return false;
	*ret = (struct dwarf_reader){s->bytes + offset, s->bytes + s->size, false};
	return true;
}

struct dwarf_lines *dwarf_lines_read(struct dwarf_file *f, uint64_t offset)
{
	struct dwarf_lines *l = calloc(1, sizeof(*l));
	const uint8_t *begin;
	struct dwarf_reader r;
	Dwarf_Die die;
	bool known;

	if (!l)
		return NULL;
	l->f = f;
	l->max_rows =
		dwarf_room_for_list(f, sizeof(*l->rows), MAX_ROWS - MIN_OF(MAX_ROWS, f->n_rows));
	if (!dwarf_offdie(f->dwarf, offset, &die) || !find_table(f, &die, &r)) {
		free(l);
		return NULL;
	}
	l->header.compiled_in = dwarf_text(f, &die, DW_AT_comp_dir);
	begin = r.at;
	known = dwarf_line_header_read(f, &r, &l->header);
	/* Many units may share a long one. */
	if (dwarf_step(f, (uint64_t)(r.end - begin)) && known)
		run_program(l, &r);
	settle(f, l);
	return l;
}

void dwarf_lines_free(struct dwarf_lines *l)
{
	if (!l)
		return;
	dwarf_line_header_free(&l->header);
	free(l->rows);
	free(l->runs);
	free(l->spans.items);
	free(l);
}

/* --- Asking --- */

const char *dwarf_lines_file(struct dwarf_lines *l, uint64_t index)
{
	const char *ret;
	size_t size;

	if (l->f->n_names > MAX_NAMES)
		return NULL;
	ret = dwarf_line_join(&l->header, index, &size);
	l->f->n_names += size;
	dwarf_room_take(l->f, size);
	return ret;
}

/* The last one that begins at or before AT; there is one, the first, at 0. */
static const struct row *find_row(const struct row *rows, size_t n, uint64_t at)
{
	size_t behind = FIRST_WHERE(i, n, rows[i].at > at);

	return &rows[behind ? behind - 1 : 0];
}

bool dwarf_lines_find(struct dwarf_lines *l, uint64_t address, struct dwarf_frame *ret)
{
	const struct dwarf_span *span = dwarf_spans_find(&l->spans, address);
	const struct run *run = span ? &l->runs[span->value] : NULL;
	const struct row *row;

	if (!run)
		return false;
	row = find_row(l->rows + run->first, run->n, address - run->begin);
	ret->file = dwarf_lines_file(l, row->file);
	ret->line = row->line;
	ret->column = row->column;
	return ret->file || ret->line > 0;
}
