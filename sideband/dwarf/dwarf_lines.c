/*
 * The lines of one unit: executes the program of its line table and keeps the rows by sequence.
 *
 * A sequence has the rows of addresses that belong together (DWARF 5 section 6.2.5). libdw would
 * sort the rows of all sequences into one list. A function that the linker left out then begins at
 * address zero, and its rows lie between the rows of others. libdw also takes a hundred bytes for
 * each byte of an untrusted program.
 */
#include <errno.h>
#include <stdlib.h>

#include <dwarf.h>

#include "proto/base.h"
#include "sideband/dwarf/dwarf_private.h"

/* Limits of one file: 128 MiB of rows, and 64 MiB of names. */
#define MAX_ROWS       ((size_t)8 << 20)
#define MAX_NAME_BYTES ((size_t)64 << 20)
/* A sequence takes as much memory as so many rows. */
#define SEQUENCE_ROWS 4u

struct row {
	uint32_t at; /* bytes from the beginning of the sequence */
	uint32_t file, line, column;
};

struct sequence {
	uint64_t begin;
	size_t first, n; /* indexes rows */
};

struct dwarf_lines {
	struct dwarf_file *f;
	struct dwarf_line_header header;
	struct row *rows;
	size_t n_rows, max_rows, rows_capacity;
	struct sequence *sequences;
	size_t n_sequences, sequences_capacity;
	struct dwarf_spans spans; /* value: the sequence's index */
};

/* --- The program --- */

/* The registers of the line number state machine. */
struct machine {
	struct dwarf_lines *l;
	uint64_t address, file, line, column;
	struct sequence sequence; /* n: rows so far */
};

static void reset(struct machine *m)
{
	m->address = 0;
	m->file = m->line = 1;
	m->column = 0;
	m->sequence = (struct sequence){0, m->l->n_rows, 0};
}

static uint32_t narrow(uint64_t value)
{
	return value <= UINT32_MAX ? (uint32_t)value : 0;
}

/* Adds a row. If several rows have one address, the last one counts. A row is left out if it
 * repeats the last one, goes backwards, or lies too far from the beginning. False: a limit, or no
 * memory. */
static bool emit(struct machine *m)
{
	struct dwarf_lines *l = m->l;
	struct row *last = m->sequence.n > 0 ? &l->rows[l->n_rows - 1] : NULL, row;

	if (!last)
		m->sequence.begin = m->address;
	row = (struct row){(uint32_t)(m->address - m->sequence.begin), narrow(m->file),
			   narrow(m->line), narrow(m->column)};
	if (m->address < m->sequence.begin || m->address - m->sequence.begin > UINT32_MAX ||
	    (last && row.at < last->at))
		return true;
	if (last && row.file == last->file && row.line == last->line && row.column == last->column)
		return true;
	if (last && row.at == last->at) {
		*last = row;
		return true;
	}
	if (l->n_rows + SEQUENCE_ROWS * l->n_sequences >= l->max_rows ||
	    ARRAY_RESERVE(l->rows, l->rows_capacity, l->n_rows + 1) < 0)
		return false;
	l->rows[l->n_rows++] = row;
	m->sequence.n++;
	return true;
}

/* Keeps the sequence if it has code. False: no memory. */
static bool end_sequence(struct machine *m)
{
	struct dwarf_lines *l = m->l;

	if (m->sequence.n > 0 && m->address > m->sequence.begin) {
		if (ARRAY_RESERVE(l->sequences, l->sequences_capacity, l->n_sequences + 1) < 0 ||
		    dwarf_spans_add(&l->spans, m->sequence.begin, m->address, l->n_sequences) < 0)
			return false;
		l->sequences[l->n_sequences++] = m->sequence;
	} else {
		l->n_rows = m->sequence.first;
	}
	reset(m);
	return true;
}

static void advance(struct machine *m, uint64_t by)
{
	m->address += by * m->l->header.instruction;
}

static bool execute_extended(struct machine *m, struct dwarf_reader *program)
{
	uint64_t length = dwarf_unsigned(program);
	struct dwarf_reader r = {program->at, program->at, false};
	const char *name;

	if (length == 0 || !dwarf_skip(program, length))
		return length == 0 && !program->bad;
	r.end = program->at;
	switch (dwarf_byte(&r)) {
	case DW_LNE_end_sequence: return end_sequence(m);
	case DW_LNE_set_address:
		m->address = dwarf_fixed(&r, MIN_OF(dwarf_left(&r), (size_t)8));
		return true;
	case DW_LNE_define_file:
		name = dwarf_string(&r);
		return name && dwarf_line_add_file(&m->l->header, name, dwarf_unsigned(&r));
	default: return true;
	}
}

static bool execute_standard(struct machine *m, unsigned opcode, struct dwarf_reader *r)
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
	default:
		for (unsigned n = h->lengths[opcode - 1]; n > 0; n--)
			dwarf_unsigned(r);
	}
	return true;
}

/* Sequences that ended before an unreadable byte are kept. */
static void execute(struct dwarf_lines *l, struct dwarf_reader *r)
{
	const struct dwarf_line_header *h = &l->header;
	struct machine m = {.l = l};
	bool ok = true;

	reset(&m);
	while (ok && !r->bad && dwarf_left(r) > 0) {
		unsigned opcode = dwarf_byte(r);

		if (opcode >= h->opcode_base) {
			unsigned n = opcode - h->opcode_base;

			advance(&m, n / h->line_range);
			m.line += (uint64_t)(int64_t)(h->line_base + (int)(n % h->line_range));
			ok = emit(&m);
		} else if (opcode == 0) {
			ok = execute_extended(&m, r);
		} else {
			ok = execute_standard(&m, opcode, r);
		}
	}
	l->n_rows = m.sequence.first;
	dwarf_spans_sort(&l->spans);
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
		dwarf_memory_for_list(f, sizeof(*l->rows), MAX_ROWS - MIN_OF(MAX_ROWS, f->n_rows));
	if (!dwarf_offdie(f->dwarf, offset, &die) || !find_table(f, &die, &r)) {
		free(l);
		return NULL;
	}
	l->header.compilation_dir = dwarf_text(f, &die, DW_AT_comp_dir);
	begin = r.at;
	known = dwarf_line_header_read(f, &r, &l->header);
	/* Paid for each unit, as many units may share a long table. */
	if (dwarf_pay(f, (uint64_t)(r.end - begin)) && known)
		execute(l, &r);
	/* Rows that were dropped, and spare capacity, are given back; the rest is counted. */
	if (l->rows && ARRAY_FIT(l->rows, l->n_rows) == 0)
		l->rows_capacity = MAX_OF(l->n_rows, (size_t)1);
	f->n_rows += l->n_rows + SEQUENCE_ROWS * l->n_sequences;
	dwarf_memory_take(f, sizeof(*l) + l->rows_capacity * sizeof(*l->rows) +
				     l->sequences_capacity * sizeof(*l->sequences) +
				     l->spans.capacity * sizeof(*l->spans.items) +
				     dwarf_line_header_bytes(&l->header));
	return l;
}

void dwarf_lines_free(struct dwarf_lines *l)
{
	if (!l)
		return;
	dwarf_line_header_free(&l->header);
	free(l->rows);
	free(l->sequences);
	free(l->spans.items);
	free(l);
}

/* --- Answers --- */

const char *dwarf_lines_file(struct dwarf_lines *l, uint64_t index)
{
	const char *ret;
	size_t size;

	if (l->f->n_name_bytes > MAX_NAME_BYTES)
		return NULL;
	ret = dwarf_line_join(&l->header, index, &size);
	l->f->n_name_bytes += size;
	dwarf_memory_take(l->f, size);
	return ret;
}

bool dwarf_lines_find(struct dwarf_lines *l, uint64_t address, struct dwarf_frame *ret)
{
	const struct dwarf_span *span = dwarf_spans_find(&l->spans, address);
	const struct sequence *s = span ? &l->sequences[span->value] : NULL;
	const struct row *row;
	size_t behind;

	if (!s)
		return false;
	row = l->rows + s->first;
	behind = FIRST_WHERE(i, s->n, row[i].at > address - s->begin);
	row += behind ? behind - 1 : 0; /* the last row at ADDRESS or before */
	ret->file = dwarf_lines_file(l, row->file);
	ret->line = row->line;
	ret->column = row->column;
	return ret->file || ret->line > 0;
}
